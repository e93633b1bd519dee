"""Pieces of a TOML file, checked: keys, numbers, lists, tables by label, and where an error is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bamdp import _checks
from bamdp.lab.spaces import Scalar

Table = Mapping[str, Any]


def keys(given: Any, known: Any, kind: str) -> None:
    """That a table has known keys only."""
    if not isinstance(given, (dict, set)):
        raise ValueError(f"expected a table of values, got {given!r}")
    for key in given:
        _checks.one_of(key, kind, known)


def number(value: Any, name: str, low: int = 1) -> int:
    """A whole number."""
    return _checks.integer(value, name, low=low)


def texts(value: Any, name: str) -> list[str]:
    """A list of texts; one by itself is a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise ValueError(f"{name} must be a list of texts")
    return value


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Say where an error is."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise ValueError(f"{where}: {error}") from None


def entries(data: Table, name: str) -> list[tuple[str, Table]]:
    """Tables by label, or a plain list of labels."""
    given = data.get(name)
    if isinstance(given, list) and all(isinstance(label, str) for label in given):
        twice = next((label for label in given if given.count(label) > 1), None)
        if twice is not None:
            raise ValueError(f"{name}: {twice!r} is given twice; drop one")
        given = {label: {} for label in given}
    if (
        not isinstance(given, dict)
        or not given
        or not all(isinstance(table, dict) for table in given.values())
    ):
        raise ValueError(
            f'{name} are missing; write for instance {name} = ["..."] or a table [{name}.NAME] for each'
        )
    return list(given.items())


def flat(table: Table) -> dict[str, Any]:
    """Tables in tables as keys with dots."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        nested = isinstance(value, dict)
        found |= {f"{key}.{inner}": v for inner, v in flat(value).items()} if nested else {key: value}
    return found


def values(key: str, value: Any) -> tuple[Scalar, ...]:
    """A value, or several to choose from."""
    held = value if isinstance(value, list) else [value]
    if not held or not all(isinstance(one, (str, int, float, bool)) for one in held):
        raise ValueError(f"{key} must be a value or a list of values to choose from, got {value!r}")
    return tuple(held)
