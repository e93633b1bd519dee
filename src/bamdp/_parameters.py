"""Declarations of parameters: the valid values, meaning and default of each.

    n_models: int = whole_number(5, help="K, models drawn at each decision")
    tol: float = positive_number(1e-4, help="relative error at which solving stops")
    leaf: str = choice("zero", LEAVES, help="value after the last stage")

are fields of a dataclass derived from :class:`Declared`. Declarations are used to validate new instances and to
document the class; :func:`declared` lists them for text parsers and forms. A field whose default is None may also be
None. Functions are declared by their signatures: ``size: Annotated[int, "cells along a side"] = 5``.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any

from bamdp import _checks

WHOLE, NUMBER, CHOICE, FLAG, PART, ANY = "whole number", "number", "choice", "flag", "part", "value"


@dataclass(frozen=True)
class Parameter:
    """The valid values, meaning and default of a parameter."""

    kind: str  # one of the kinds above
    help: str = ""
    name: str = ""
    default: Any = None
    choices: tuple[str, ...] = ()  # allowed names
    parts: Mapping[str, type] | None = None  # classes by name, if the parameter is a part
    check: Callable[[Any, str], Any] | None = field(default=None, compare=False)

    def refuse(self, value: Any) -> None:
        """Raise an error if a value is invalid."""
        if self.check is not None and not (value is None and self.default is None):
            self.check(value, self.name)

    def convert(self, value: Any) -> Any:
        """Convert a value read from text to this parameter's type, such as 1e3 to an integer or 6 to a float."""
        if self.kind == NUMBER and type(value) is int:
            return float(value)
        if self.kind == WHOLE and type(value) is float and value.is_integer():
            return int(value)
        word = isinstance(value, str) and value.lower()
        return word if word in self.choices else value

    def __str__(self) -> str:
        """Return the description of valid values shown in the documentation."""
        words = [f'"{word}"' for word in self.choices]
        kinds = words if self.kind in (CHOICE, PART) else [self.kind, *words]
        return f"{' | '.join(kinds)}, default {self.default!r}"


class Declared:
    """Base of dataclasses with declared parameters, which are validated on construction and listed in the docstring."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = _with_parameters(cls)

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        taken = [*inspect.signature(cls.__init__).parameters.values()][1:] if args or parameters else []
        names = [one.name for one in taken]
        if names and args and taken[0].kind is inspect.Parameter.KEYWORD_ONLY:
            name = cls.__name__
            raise TypeError(f"parameters of {name} are given by name, such as {name}({names[0]}={args[0]!r})")
        if not any(one.kind is one.VAR_KEYWORD for one in taken):
            for name in parameters:
                try:
                    _checks.one_of(name, f"parameter of {cls.__name__}", names)
                except ValueError as error:
                    raise TypeError(str(error)) from None
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_parameters(self)


def declared(thing: Any) -> list[Parameter]:
    """Return the parameters of a dataclass, or of a function, with their names and defaults."""
    if is_dataclass(thing):
        return [_named(f, f.name) for f in fields(thing) if f.init]
    try:
        hints = typing.get_type_hints(thing, include_extras=True)
    except NameError:  # an annotation uses a name imported only for type checking
        hints = {}
    given = inspect.signature(thing).parameters.values()
    return [_of_hint(hints.get(one.name, Any), one) for one in given if one.kind is not one.VAR_KEYWORD]


def check_parameters(owner: Any) -> None:
    """Raise an error if any field of a dataclass instance is invalid."""
    for one in declared(type(owner)):
        one.refuse(getattr(owner, one.name))


# --- declarations ---------------------------------------------------------------------------------------------------


def parameter(
    default: Any, check: Callable[..., Any], *, help: str = "", kind: str = ANY, **limits: Any
) -> Any:
    """Declare a parameter validated by ``check(value, name, **limits)``; ``help`` describes it in a sentence or two."""
    choices = tuple(limits.get("names") or limits.get("choices") or ())
    made = Parameter(kind, help, choices=choices, check=partial(check, **limits))
    return field(default=default, metadata={"parameter": made})


def whole_number(
    default: int | str | None, *, low: int = 1, names: Iterable[str] = (), help: str = ""
) -> Any:
    """Declare an integer of at least ``low``, or one of ``names``."""
    return parameter(default, _check_whole, low=low, names=tuple(names), help=help, kind=WHOLE)


def _check_whole(value: Any, name: str, low: int, names: Iterable[str]) -> None:
    if names and isinstance(value, str):
        _checks.one_of(value, name, names)
    else:
        _checks.integer(value, name, low=low)


def real_number(default: float | None, *, help: str = "", **limits: Any) -> Any:
    """Declare a finite number with the limits accepted by :func:`bamdp._checks.real`."""
    return parameter(default, _checks.real, help=help, kind=NUMBER, **limits)


def positive_number(default: float | None, *, help: str = "") -> Any:
    """Declare a positive number."""
    return real_number(default, low=0.0, open_low=True, help=help)


def choice(default: str, choices: Iterable[str], *, help: str = "") -> Any:
    """Declare a choice between several names."""
    return parameter(default, _checks.one_of, choices=tuple(choices), help=help, kind=CHOICE)


def flag(default: bool, *, help: str = "") -> Any:
    """Declare a boolean."""
    return parameter(default, _check_flag, help=help, kind=FLAG)


def _check_flag(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def part(default: str, parts: Mapping[str, type], check: Callable[[Any, str], Any], *, help: str = "") -> Any:
    """Declare a choice of a component with its own parameters, such as a generator, or any value ``check`` accepts."""
    made = Parameter(PART, help, choices=tuple(parts), parts=parts, check=check)
    return field(default=default, metadata={"parameter": made})


# --- reading declarations ---------------------------------------------------------------------------------------------


def _named(f: Field[Any], name: str) -> Parameter:
    """Return the declaration of a field, or one inferred from its type."""
    default = None if f.default is MISSING else f.default
    return replace(f.metadata.get("parameter") or Parameter(_kind(str(f.type))), name=name, default=default)


def _of_hint(hint: Any, given: inspect.Parameter) -> Parameter:
    """Return the declaration of a function parameter from its type hint and default."""
    help = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)), "")
    kind = typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    options = [kind, *typing.get_args(kind)]
    choices = tuple(
        word for one in options if typing.get_origin(one) is typing.Literal for word in typing.get_args(one)
    )
    default = None if given.default is given.empty else given.default
    name = CHOICE if choices else _kind(getattr(kind, "__name__", str(kind)))
    return Parameter(name, help, given.name, default, choices)


def _kind(annotation: str) -> str:
    """Return the kind of a parameter given its annotation as text, such as ``float | None``."""
    kinds = {"int": WHOLE, "float": NUMBER, "bool": FLAG}
    words = [word for word in re.findall(r"[\w.\[\]]+", annotation) if word not in ("None", "str")]
    return kinds.get(words[0], ANY) if len(words) == 1 else ANY


def _with_parameters(cls: type) -> str | None:
    """Return the docstring of a class with a section on its declared parameters inserted before the other sections."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    inherited = (
        fields(cls) if is_dataclass(cls) else ()
    )  # fields of the bases: the class itself is not a dataclass yet
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
    known = {f.name: _named(f, f.name) for f in inherited} | {
        name: _named(f, name) for name, f in own.items()
    }
    shown = [one for one in known.values() if one.help]
    if not shown or "Parameters\n---" in doc:
        return cls.__doc__
    entries = (f"{one.name} : {one}\n    {one.help.rstrip('.')}." for one in shown)
    section = "\n".join(["Parameters", "----------", *entries])
    head, *rest = re.split(r"\n\n(?=\w[\w ]*\n-{3,})", doc, maxsplit=1)
    return "\n\n".join([head, section, *rest])
