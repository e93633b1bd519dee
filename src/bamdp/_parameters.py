"""Parameters from text: the fields of a dataclass, read by their types.

A parameter that is itself one of several named things, such as the generator of DSS, is set by name, and its own
parameters with a dot: ``generator=rtdp``, ``generator.depth=50``.
"""

from __future__ import annotations

import ast
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bamdp import _checks
from bamdp.generators import GENERATORS

PARTS: dict[str, Mapping[str, type]] = {
    "generator": GENERATORS
}  # parameters that are named things themselves


@dataclass(frozen=True)
class Named:
    """An entry of a table: a class, the parameters that the name stands for, and what the name adds to its help."""

    cls: type
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def build(named: Named, name: str, written: Mapping[str, str]) -> Any:
    """An instance of the class, with what the name stands for and what is written; ``name`` is for messages."""
    values: dict[str, Any] = dict(named.fixed)
    hints = _hints(named.cls)
    known = [key for key in defaults(named) if "." not in key]
    inner: dict[str, dict[str, str]] = {}
    for key, text in written.items():
        head, dot, rest = key.partition(".")
        if not known:
            raise ValueError(f"{name} takes no parameters, got {key!r}")
        if dot and head in PARTS and head in known:
            inner.setdefault(head, {})[rest] = text
            continue
        _checks.one_of(key, f"parameter of {name}", known)
        if key in PARTS:
            values[key] = _checks.one_of(text.lower(), key, PARTS[key])
        else:
            values[key] = _read(text, _kinds(hints[key], _default_of(named.cls, key)), key)
    for key, settings in inner.items():
        which = values.get(key, _default_of(named.cls, key))
        values[key] = build(Named(PARTS[key][which]), f"the {key} {which}", settings)
    return named.cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    """Types of a class's fields; a study builds the same few classes thousands of times."""
    return typing.get_type_hints(cls)


def defaults(named: Named) -> dict[str, Any]:
    """Parameters with their defaults; those of a named part with a dot."""
    found: dict[str, Any] = {}
    for f in dataclasses.fields(named.cls):
        found[f.name] = named.fixed.get(f.name, _default_of(named.cls, f.name))
        if f.name in PARTS:
            part = Named(PARTS[f.name][found[f.name]])
            found.update({f"{f.name}.{key}": value for key, value in defaults(part).items()})
    return found


def _default_of(cls: type, name: str) -> Any:
    return next(f.default for f in dataclasses.fields(cls) if f.name == name)


def _kinds(hint: Any, default: Any) -> list[Any]:
    """The types that a parameter may have, the most particular first."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = list(typing.get_args(hint)) if union else [type(default) if hint is Any else hint]
    return sorted(kinds, key=lambda kind: kind is str)


def _read(text: str, kinds: list[Any], name: str) -> Any:
    for kind in kinds:
        try:
            return _READERS.get(typing.get_origin(kind) or kind, ast.literal_eval)(text)
        except (ValueError, SyntaxError, KeyError):
            continue
    wanted = " or ".join(_WORDS.get(typing.get_origin(kind) or kind, "a Python literal") for kind in kinds)
    raise ValueError(f"{name} must be {wanted}, got {text!r}")


def _whole(text: str) -> int:
    number = float(text.replace("_", ""))
    if not number.is_integer():
        raise ValueError
    return int(text) if text.lstrip("+-").isdigit() else int(number)


def _numbers(text: str) -> tuple[float, ...]:
    found = ast.literal_eval(text)
    return tuple(float(number) for number in (found if isinstance(found, (tuple, list)) else (found,)))


_READERS: dict[Any, Any] = {
    int: _whole,
    float: float,
    str: str,
    bool: lambda text: {"true": True, "false": False}[text.lower()],
    tuple: _numbers,
    type(None): lambda text: {"none": None}[text.lower()],
}
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
    tuple: "numbers in brackets, such as (2, 1)",
    type(None): "none",
}
