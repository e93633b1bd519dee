"""Parameters that are checked when a planner or a generator is made: each field says what it may be.

    n_models: int = whole_number(5, help="K, models drawn at each decision")
    tol: float = positive_number(1e-4, help="relative error at which solving stops")
    leaf: str = choice("zero", LEAVES, help="value after the last stage")

are fields of a dataclass with those defaults, whose ``__post_init__`` calls :func:`check_parameters`. A field whose
default is None may also be None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, fields
from functools import partial
from typing import Any

from bamdp import _checks


def parameter(default: Any, check: Callable[..., Any], *, help: str = "", **limits: Any) -> Any:
    """A parameter that ``check(value, name, **limits)`` is called for; ``help`` is one or two sentences on it."""
    return field(default=default, metadata={"check": partial(check, **limits), "help": help})


def whole_number(
    default: int | str | None, *, low: int = 1, names: Iterable[str] = (), help: str = ""
) -> Any:
    """A whole number of at least ``low``, or one of ``names``."""
    return parameter(default, _check_whole, low=low, names=names, help=help)


def _check_whole(value: Any, name: str, low: int, names: Iterable[str]) -> None:
    if names and isinstance(value, str):
        _checks.one_of(value, name, names)
    else:
        _checks.integer(value, name, low=low)


def real_number(default: float | None, *, help: str = "", **limits: Any) -> Any:
    """A finite number within the limits that :func:`bamdp._checks.real` takes."""
    return parameter(default, _checks.real, help=help, **limits)


def positive_number(default: float | None, *, help: str = "") -> Any:
    """A number above 0."""
    return real_number(default, low=0.0, open_low=True, help=help)


def choice(default: str, choices: Iterable[str], *, help: str = "") -> Any:
    """One of several names."""
    return parameter(default, _checks.one_of, choices=choices, help=help)


def flag(default: bool, *, help: str = "") -> Any:
    """True or False."""
    return parameter(default, _check_flag, help=help)


def _check_flag(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_parameters(owner: Any) -> None:
    """Refuse an instance of a dataclass in which a field is not what it may be."""
    for part in fields(owner):
        value, check = getattr(owner, part.name), part.metadata.get("check")
        if check is not None and not (value is None and part.default is None):
            check(value, part.name)
