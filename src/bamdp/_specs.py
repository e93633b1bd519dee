"""Text syntax of settings: ``name:key=value,key=value``.

:func:`parse_spec` parses text into a :class:`Spec` with parameter values. A parameter may be a component (a *part*)
with its own parameters, such as the generator of DSS. It is selected by name, and its parameters are written with a
dot: ``generator=rtdp,generator.depth=50``. :func:`build` creates an instance of a class from a spec; the class declares
its parameters and their valid values (:mod:`bamdp._parameters`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from bamdp import _checks
from bamdp._parameters import Parameter, declared

LIST_WIDTH = 100  # maximum number of characters per line
WORDS = {"true": True, "false": False, "none": None}


class Spec(NamedTuple):
    """A parsed spec: a name and parameter values."""

    name: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        """Return text that :func:`parse_spec` parses into this spec."""
        written = ",".join(f"{key}={write_value(value)}" for key, value in self.parameters.items())
        return f"{self.name}:{written}" if written else self.name

    def extended(self, parameters: Mapping[str, Any] | None, source: str) -> Spec:
        """Return the spec with additional parameters; error messages name ``source`` as their origin."""
        for key in parameters or ():
            if key in self.parameters:
                raise ValueError(f"{key} is given twice, in {str(self)!r} and {source}; drop one")
        return Spec(self.name, {**self.parameters, **(parameters or {})})


def parse_spec(text: str | Spec) -> Spec:
    """Parse ``name`` or ``name:key=value,...``; a parsed spec is returned unchanged.

    Commas inside brackets are part of the value. Keys may contain dots (``generator.depth``) and hyphens, which are
    converted to underscores.

    Examples
    --------
    >>> parse_spec("sparse:alpha=0.2,p_k=(1, 2)")
    Spec(name='sparse', parameters={'alpha': 0.2, 'p_k': (1, 2)})
    >>> parse_spec("maze")
    Spec(name='maze', parameters={})
    """
    if isinstance(text, Spec):
        return text
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in split_commas(rest):
        key, value = split_assignment(part, text)
        if key in parameters:
            raise ValueError(f"{key} is given twice in {text!r}; drop one")
        parameters[key] = read_value(value)
    return Spec(name.strip(), parameters)


def split_assignment(part: str, whole: str) -> tuple[str, str]:
    """Split ``key=value`` into key and value; error messages also show the full text ``whole``."""
    key, equals, value = (piece.strip() for piece in part.partition("="))
    key = key.replace("-", "_")
    if not equals or not value or not all(piece.isidentifier() for piece in key.split(".")):
        inside = f" in {whole!r}" if part.strip() != whole.strip() else ""
        raise ValueError(f"{part.strip()!r}{inside} is not key=value; write for instance grid:size=7")
    return key, value


def split_commas(text: str) -> list[str]:
    """Split text at commas outside brackets; return an empty list for empty text."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces if text.strip() else []


def read_value(text: Any) -> Any:
    """Parse text as a Python literal or as true, false or none (case-insensitive); otherwise return it unchanged.

    Examples
    --------
    >>> read_value("0.5"), read_value("false"), read_value("8x8"), read_value("[2, 1]"), read_value(3)
    (0.5, False, '8x8', (2, 1), 3)
    """
    if not isinstance(text, str):
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return tuple(value) if isinstance(value, list) else value


def write_value(value: Any) -> str:
    """Return a value in spec syntax, with numbers in their shortest form."""
    if value is None:
        return "none"
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, tuple):
        return f"({','.join(write_value(item) for item in value)})"
    return str(value)


# --- lists of named components ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """List entry of an environment, planner, prior or reward model."""

    name: str
    help: str
    declared: list[Parameter]

    @property
    def parameters(self) -> dict[str, Any]:
        """Default values by parameter name."""
        return {one.name: one.default for one in self.declared}

    def data(self) -> dict[str, Any]:
        """Return the entry as plain JSON, with defaults in spec syntax."""
        shown = [
            {"name": p.name, "default": write_value(p.default), "help": p.help, "choices": list(p.choices)}
            for p in self.declared
        ]
        return {"name": self.name, "help": self.help, "parameters": shown}

    def parameters_text(self) -> str:
        """Return the parameters in spec syntax on one line."""
        return "  ".join(f"{key}={write_value(value)}" for key, value in self.parameters.items())


class InfoList(list[Info]):
    """A list that prints each name with its help text, followed by the parameters with their defaults.

    Examples
    --------
    >>> def grid(size=5, slip=0.2): pass
    >>> InfoList([Info("grid", "A square grid.", declared(grid)), Info("maze", "A maze.", [])])
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


# --- classes with names -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A registry entry: a class, the parameters fixed by the name, and a note added to the help text."""

    cls: type
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def help(self) -> str:
        """The first line of the class's docstring (omitted for abstract classes) and the note."""
        first = (
            ""
            if inspect.isabstract(self.cls)
            else (self.cls.__doc__ or "").strip().partition("\n")[0].strip()
        )
        return f"{first} {self.note}".strip()

    def declared(self) -> list[Parameter]:
        """Return the parameters, using fixed values as defaults; parameters of a part have dotted names."""
        found = []
        for one in declared(self.cls):
            default = self.fixed.get(one.name, one.default)
            found.append(replace(one, default=default))
            part = (one.parts or {}).get(default) if isinstance(default, str) else None
            inner = [] if part is None else declared(part)
            found += [replace(other, name=f"{one.name}.{other.name}") for other in inner]
        return found

    def defaults(self) -> dict[str, Any]:
        """Return the default values by parameter name."""
        return {one.name: one.default for one in self.declared()}


def build(entry: Entry, spec: Spec) -> Any:
    """Create an instance of an entry's class from the entry's fixed parameters and those of the spec.

    The spec's name is used only in error messages.
    """
    known = {one.name: one for one in declared(entry.cls)}
    values: dict[str, Any] = dict(entry.fixed)
    inner: dict[str, dict[str, Any]] = {}
    for key, written in spec.parameters.items():
        head, dot, rest = key.partition(".")
        if not known:
            raise ValueError(f"{spec.name} takes no parameters, got {key!r}")
        if dot and head in known and known[head].parts:
            inner.setdefault(head, {})[rest] = written
        else:
            _checks.one_of(key, f"parameter of {spec.name}", known)
            values[key] = known[key].convert(read_value(written))
    for key, parameters in inner.items():
        parts, part = known[key].parts or {}, values.get(key, known[key].default)
        if isinstance(part, str):
            part = parts[_checks.one_of(part, key, parts)]()
        chosen = {name: getattr(part, name) for name in (one.name for one in declared(type(part)))}
        name = next((name for name, cls in parts.items() if cls is type(part)), type(part).__name__)
        values[key] = build(Entry(type(part), chosen), Spec(f"the {key} {name}", parameters))
    try:
        return entry.cls(**values)
    except TypeError as error:  # text where another type is needed
        raise ValueError(str(error)) from None
