"""The small language of settings in text, ``name:key=value,key=value``: parsing, reading of values, building.

- :func:`parse_spec` parses a text once, into a :class:`Spec`: a name and parameters as they are written.
- :func:`read_value` reads one written value by its type; :func:`write_value` writes one so that it can be read again.
- :func:`build` makes an instance of a dataclass from written parameters, which are the fields of the dataclass.

A parameter may itself be one of several named things (a *part*), such as the generator of DSS. It is chosen by name,
and its own parameters are written with a dot: ``generator=rtdp``, ``generator.depth=50``.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from bamdp import _checks

LIST_WIDTH = 100  # characters of a line
Parts = Mapping[str, Mapping[str, type]]  # of a parameter that is a named thing: the classes, by name


# --- specs --------------------------------------------------------------------------------------------------------


class Spec(NamedTuple):
    """A parsed text: a name, and parameters whose values are still text."""

    name: str
    parameters: dict[str, str]

    def __str__(self) -> str:
        """Return the text that :func:`parse_spec` reads as this spec."""
        written = ",".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}:{written}" if written else self.name

    def extended(self, parameters: Mapping[str, str] | None, source: str) -> Spec:
        """Return the spec with more parameters; ``source`` says in messages where those are written."""
        for key in parameters or ():
            if key in self.parameters:
                raise ValueError(f"{key} is given twice, in {str(self)!r} and {source}; drop one")
        return Spec(self.name, {**self.parameters, **(parameters or {})})


def parse_spec(text: str | Spec) -> Spec:
    """Parse ``name`` or ``name:key=value,...``; a spec that is parsed already is returned as it is.

    Commas inside brackets belong to the value. A key may have dots (``generator.depth``) and hyphens, which
    become underscores.

    Examples
    --------
    >>> parse_spec("sparse:alpha=0.2,p_k=(1, 2)")
    Spec(name='sparse', parameters={'alpha': '0.2', 'p_k': '(1, 2)'})
    >>> parse_spec("maze")
    Spec(name='maze', parameters={})
    """
    if isinstance(text, Spec):
        return text
    name, _, rest = text.partition(":")
    parameters: dict[str, str] = {}
    for part in split_commas(rest):
        key, value = split_assignment(part, text)
        if key in parameters:
            raise ValueError(f"{key} is given twice in {text!r}; drop one")
        parameters[key] = value
    return Spec(name.strip(), parameters)


def split_assignment(part: str, whole: str) -> tuple[str, str]:
    """Split ``key=value`` into key and value; messages show it as a part of ``whole``."""
    key, equals, value = (piece.strip() for piece in part.partition("="))
    key = key.replace("-", "_")
    if not equals or not value or not all(piece.isidentifier() for piece in key.split(".")):
        inside = f" in {whole!r}" if part.strip() != whole.strip() else ""
        raise ValueError(f"{part.strip()!r}{inside} is not key=value; write for instance grid:size=7")
    return key, value


def split_commas(text: str) -> list[str]:
    """Split a text at the commas that are outside all brackets; an empty text has no pieces."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces if text.strip() else []


# --- values -------------------------------------------------------------------------------------------------------


def read_value(text: str, kind: Any = Any, name: str = "value") -> Any:
    """Read a written value as a type.

    Parameters
    ----------
    text
        The value as it is written.
    kind
        A type, or several joined by ``|``, of which the first that fits is taken, text last. Any: a Python literal
        (with true, false and none in any case), or else the text itself.
    name
        What messages call the value.

    Examples
    --------
    >>> read_value("1e2", int), read_value("none", float | None), read_value("(2, 1)", tuple)
    (100, None, (2.0, 1.0))
    >>> read_value("0.5"), read_value("false"), read_value("8x8")
    (0.5, False, '8x8')
    >>> read_value("few", int, "n_steps")
    Traceback (most recent call last):
    ...
    ValueError: n_steps must be a whole number, got 'few'
    """
    if kind is Any:
        return _read_any(text)
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    members = typing.get_args(kind) if union else (kind,)
    kinds = sorted((typing.get_origin(one) or one for one in members), key=lambda one: one is str)
    ways = [_WAYS.get(one, (ast.literal_eval, "a Python literal")) for one in kinds]
    for read, _ in ways:
        try:
            return read(text)
        except (ValueError, SyntaxError, KeyError, TypeError, OverflowError, MemoryError, RecursionError):
            continue
    allowed = " or ".join(called for _, called in ways)
    raise ValueError(f"{name} must be {allowed}, got {_checks.shown(text)}")


def write_value(value: Any) -> str:
    """Write a value as it stands in a spec: numbers without a digit too many, arrays by their shape only."""
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, tuple):
        return f"({','.join(write_value(item) for item in value)})"
    return str(value) if getattr(value, "ndim", 0) == 0 else f"array{list(value.shape)}"


def _read_any(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _read_integer(text: str) -> int:
    number = float(text.replace("_", ""))
    if not number.is_integer():
        raise ValueError
    return int(text) if text.lstrip("+-").isdigit() else int(number)


def _read_numbers(text: str) -> tuple[float, ...]:
    value = ast.literal_eval(text)
    return tuple(float(number) for number in (value if isinstance(value, (tuple, list)) else (value,)))


# how a value of each type is read, and what messages call it
_WAYS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (_read_integer, "a whole number"),
    float: (float, "a number"),
    str: (str, "a word"),
    bool: (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    tuple: (_read_numbers, "numbers in brackets, such as (2, 1)"),
    type(None): (lambda text: {"none": None}[text.lower()], "none"),
}


# --- documentation of parameters ----------------------------------------------------------------------------------


def documented_parameters(thing: Any) -> dict[str, str]:
    """Return what a docstring says of each parameter, in plain words; what is said of several holds for each.

    Examples
    --------
    >>> def grow(size=3): '''Grow.
    ...
    ...     Parameters
    ...     ----------
    ...     size : {"small", "large"}
    ...         How ``large``.
    ...     '''
    >>> documented_parameters(grow)
    {'size': 'How large. Choices: "small", "large".'}
    """
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}|\Z)", inspect.getdoc(thing) or "", re.S | re.M
    )
    found: dict[str, str] = {}
    for entry in re.finditer(
        r"^(\S[^\n]*)\n((?:[ \t]+\S[^\n]*\n?|\n)*)", section[1] if section else "", re.M
    ):
        names, _, kind = entry[1].partition(" : ")
        choices = re.match(r"\{(.*)\}", kind)
        text = " ".join(entry[2].split()) + (f" Choices: {choices[1]}." if choices else "")
        plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", text).replace("``", "").replace("`", "")
        found.update({name.strip(): plain.strip() for name in names.split(",")})
    return found


def quoted_words(text: str) -> list[str]:
    """Return the words in quotation marks, which are the choices of a parameter whose documentation this is.

    Examples
    --------
    >>> quoted_words('Worth "upper", or "zero".')
    ['upper', 'zero']
    """
    return list(dict.fromkeys(re.findall(r'"([\w-]+)"', text)))


# --- lists of what has a name -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """What a list tells of an environment, a planner, a prior or a reward model."""

    name: str
    help: str
    parameters: dict[str, Any]  # with their defaults

    def written_parameters(self) -> dict[str, str]:
        """Return the parameters with their defaults as they are written, without blanks inside a value."""
        values = self.parameters.items()
        return {key: "none" if value is None else str(value).replace(" ", "") for key, value in values}

    def parameters_text(self) -> str:
        """Return the written parameters in one line."""
        return "  ".join(f"{key}={text}" for key, text in self.written_parameters().items())


class InfoList(list[Info]):
    """A list that prints as one: each name with its help, and under it the parameters with their defaults.

    Examples
    --------
    >>> InfoList([Info("grid", "A square grid.", {"size": 5, "slip": 0.2}), Info("maze", "A maze.", {})])
    grid  A square grid.
            size=5  slip=0.2
    maze  A maze.
    """

    def __repr__(self) -> str:
        width = max((len(info.name) for info in self), default=0) + 2
        lines = []
        for info in self:
            first, margin = f"{info.name:{width}}", " " * width
            lines.append(textwrap.fill(info.help, LIST_WIDTH, initial_indent=first, subsequent_indent=margin))
            margin += "  "
            parameters = info.parameters_text()
            lines += textwrap.wrap(parameters, LIST_WIDTH, initial_indent=margin, subsequent_indent=margin)
        return "\n".join(lines)


# --- dataclasses from written parameters --------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An entry of a table of names: a class, the parameters that the name fixes, and what it adds to the help."""

    cls: type
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def help(self) -> str:
        """The first line of the class's documentation, unless it is that of an abstract class, and the note."""
        first = "" if inspect.isabstract(self.cls) else (self.cls.__doc__ or "").partition("\n")[0].strip()
        return f"{first} {self.note}".strip()


def build(entry: Entry, spec: Spec, parts: Parts = types.MappingProxyType({})) -> Any:
    """Make an instance of an entry's class, with the parameters that the entry fixes and those of the spec.

    The name of the spec is used in messages only.
    """
    values: dict[str, Any] = dict(entry.fixed)
    hints = _type_hints(entry.cls)
    defaults = {f.name: f.default for f in dataclasses.fields(entry.cls)}
    of_parts: dict[str, dict[str, str]] = {}
    for key, text in spec.parameters.items():
        head, dot, rest = key.partition(".")
        if not defaults:
            raise ValueError(f"{spec.name} takes no parameters, got {key!r}")
        if dot and head in parts and head in defaults:
            of_parts.setdefault(head, {})[rest] = text
            continue
        _checks.one_of(key, f"parameter of {spec.name}", defaults)
        if key in parts:
            values[key] = _checks.one_of(text.lower(), key, parts[key])
        else:
            kind = type(defaults[key]) if hints[key] is Any else hints[key]
            values[key] = read_value(text, kind, key)
    for key, parameters in of_parts.items():
        name = values.get(key, defaults[key])
        values[key] = build(Entry(parts[key][name]), Spec(f"the {key} {name}", parameters))
    return entry.cls(**values)


def default_values(entry: Entry, parts: Parts = types.MappingProxyType({})) -> dict[str, Any]:
    """Return the parameters of an entry with their defaults; those of a part are named with a dot."""
    values: dict[str, Any] = {}
    for f in dataclasses.fields(entry.cls):
        values[f.name] = entry.fixed.get(f.name, f.default)
        if f.name in parts:
            part = Entry(parts[f.name][values[f.name]])
            values.update({f"{f.name}.{key}": value for key, value in default_values(part).items()})
    return values


def written_fields(instance: Any) -> dict[str, str]:
    """Return the fields of a dataclass as the parameters of a spec, without those that are None."""
    values = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}
    return {key: write_value(value) for key, value in values.items() if value is not None}


@cache
def _type_hints(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields; a study builds the same few classes thousands of times."""
    return typing.get_type_hints(cls)
