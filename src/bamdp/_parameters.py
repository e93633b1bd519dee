"""Parameters: their declarations, and the text form ``name:key=value,key=value`` of anything that has some.

    n_models: int = whole_number(5, help="K, models drawn at each decision")
    tol: float = positive_number(1e-4, help="relative error at which solving stops")
    leaf: str = choice("zero", LEAVES, help="value after the last stage")

are fields of a dataclass derived from :class:`Declared`. Declarations are used to validate new instances and to
document the class; :func:`declared` lists them for text parsers and forms. A field whose default is None may also be
None. Functions are declared by their signatures.

:func:`parse_spec` parses text into a :class:`Spec`, and :func:`build` creates an instance from it. A parameter may be a
component (a *part*) with its own parameters, such as the generator of DSS. It is selected by name, and its parameters
are written with a dot: ``generator=rtdp,generator.depth=50``.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from bamdp import _checks

WHOLE, NUMBER, CHOICE, FLAG, PART, ANY = "whole number", "number", "choice", "flag", "part", "value"
KINDS = {"int": WHOLE, "float": NUMBER, "bool": FLAG}
WORDS = {"true": True, "false": False, "none": None}
LIST_WIDTH = 100  # maximum number of characters per line


@dataclass(frozen=True)
class Parameter:
    """The valid values, meaning and default of a parameter."""

    kind: str = ANY  # one of the kinds above
    help: str = ""
    name: str = ""
    default: Any = None
    choices: tuple[str, ...] = ()  # allowed names
    parts: Mapping[str, type] = field(default_factory=dict)  # classes by name, if the parameter is a part
    check: Callable[[Any, str], Any] | None = field(default=None, compare=False)

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
        name, (_, *taken) = cls.__name__, inspect.signature(cls.__init__).parameters.values()
        if args and taken and taken[0].kind is inspect.Parameter.KEYWORD_ONLY:
            example = f"{name}({taken[0].name}={args[0]!r})"
            raise TypeError(f"parameters of {name} are given by name, such as {example}")
        if not any(one.kind is one.VAR_KEYWORD for one in taken):
            for key in parameters:
                _checks.parameter(key, name, [one.name for one in taken], TypeError)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for one in declared(type(self)):
            value = getattr(self, one.name)
            if one.check is not None and not (value is None and one.default is None):
                one.check(value, one.name)


def declared(thing: Any) -> list[Parameter]:
    """Return the parameters of a dataclass, or of a function, with their names and defaults."""
    if is_dataclass(thing):
        return [_named(f, f.name) for f in fields(thing) if f.init]
    try:
        hints = typing.get_type_hints(thing)
    except NameError:  # an annotation uses a name imported only for type checking
        hints = {}
    choices = {
        name: typing.get_args(hint)
        for name, hint in hints.items()
        if typing.get_origin(hint) is typing.Literal
    }
    return [
        Parameter(
            name=one.name,
            default=None if one.default is one.empty else one.default,
            choices=choices.get(one.name, ()),
        )
        for one in inspect.signature(thing).parameters.values()
        if one.kind is not one.VAR_KEYWORD
    ]


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


def _named(f: Field[Any], name: str) -> Parameter:
    """Return the declaration of a field, or one inferred from its type, such as ``float`` or ``float | None``."""
    kind = KINDS.get(str(getattr(f.type, "__name__", f.type)).removesuffix(" | None"), ANY)
    default = None if f.default is MISSING else f.default
    return replace(f.metadata.get("parameter") or Parameter(kind), name=name, default=default)


def _with_parameters(cls: type) -> str | None:
    """Return the docstring of a class with a section on its declared parameters inserted before the other sections."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    # the class itself is not a dataclass yet, so these are the fields of its bases
    inherited = {f.name: f for f in fields(cls)} if is_dataclass(cls) else {}
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
    shown = [one for name, f in (inherited | own).items() if (one := _named(f, name)).help]
    if not shown or "Parameters\n---" in doc:
        return cls.__doc__
    entries = (f"{one.name} : {one}\n    {one.help.rstrip('.')}." for one in shown)
    head, *rest = re.split(r"\n\n(?=\w[\w ]*\n-{3,})", doc, maxsplit=1)
    return "\n\n".join([head, "\n".join(["Parameters", "----------", *entries]), *rest])


# --- text -----------------------------------------------------------------------------------------------------------


class Spec(NamedTuple):
    """A parsed spec: a name and parameter values."""

    name: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        """Return text that :func:`parse_spec` parses into this spec."""
        written = ",".join(f"{key}={write_value(value)}" for key, value in self.parameters.items())
        return f"{self.name}:{written}" if written else self.name

    def extended(self, parameters: Mapping[str, Any] | None) -> Spec:
        """Return the spec with additional parameters."""
        for key in parameters or ():
            if key in self.parameters:
                raise ValueError(f"{key} is given twice, in {str(self)!r} and as a parameter; drop one")
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
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, tuple):
        return f"({','.join(write_value(item) for item in value)})"
    return "none" if value is None else str(value)


# --- named classes and functions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A named class or function, the parameters fixed by its name, and a note added to the help text."""

    cls: Any
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    name: str = ""

    @property
    def help(self) -> str:
        """The first line of the docstring (omitted for abstract classes) and the note."""
        first = "" if inspect.isabstract(self.cls) else (self.cls.__doc__ or "").strip().partition("\n")[0]
        return f"{first.strip()} {self.note}".strip()

    @property
    def parameters(self) -> dict[str, Any]:
        """Default values by parameter name."""
        return {one.name: one.default for one in self.declared()}

    def declared(self) -> list[Parameter]:
        """Return the parameters, using fixed values as defaults; parameters of a part have dotted names."""
        found = []
        for one in [] if inspect.isabstract(self.cls) else declared(self.cls):
            default = self.fixed.get(one.name, one.default)
            part = one.parts.get(default) if isinstance(default, str) else None
            inner = [] if part is None else declared(part)
            found.append(replace(one, default=default))
            found += [replace(other, name=f"{one.name}.{other.name}") for other in inner]
        return found

    def data(self) -> dict[str, Any]:
        """Return the entry as plain JSON, with defaults in spec syntax."""
        shown = [
            {"name": p.name, "default": write_value(p.default), "help": p.help, "choices": list(p.choices)}
            for p in self.declared()
        ]
        return {"name": self.name, "help": self.help, "parameters": shown}

    def parameters_text(self) -> str:
        """Return the parameters in spec syntax on one line."""
        return "  ".join(f"{key}={write_value(value)}" for key, value in self.parameters.items())


def as_entry(instance: Any) -> Entry:
    """Return an entry that describes an instance of a dataclass with its parameters."""
    return Entry(type(instance), {one.name: getattr(instance, one.name) for one in declared(type(instance))})


def build(entry: Entry, spec: Spec) -> Any:
    """Create an instance of an entry's class from the entry's fixed parameters and those of the spec.

    The spec's name is used only in error messages.
    """
    known = {one.name: one for one in declared(entry.cls)}
    values: dict[str, Any] = dict(entry.fixed)
    inner: dict[str, dict[str, Any]] = {}
    for key, written in spec.parameters.items():
        head, dot, rest = key.partition(".")
        if dot and head in known and known[head].parts:
            inner.setdefault(head, {})[rest] = written
        else:
            _checks.parameter(key, spec.name, known)
            values[key] = known[key].convert(read_value(written))
    for key, parameters in inner.items():
        parts, part = known[key].parts, values.get(key, known[key].default)
        if isinstance(part, str):
            part = parts[_checks.one_of(part, key, parts)]()
        name = next((name for name, cls in parts.items() if cls is type(part)), type(part).__name__)
        values[key] = build(as_entry(part), Spec(f"the {key} {name}", parameters))
    try:
        return entry.cls(**values)
    except TypeError as error:  # text where another type is needed
        raise ValueError(str(error)) from None


def find(spec: str | Spec, kind: str, entries: Mapping[str, Entry]) -> Spec:
    """Parse a spec whose name, in any case and with hyphens or underscores, must be among the entries."""
    if not isinstance(spec, (str, Spec)):
        name, entry = next(iter(entries.items()))
        given = f"the class {spec.__name__}, not an object" if isinstance(spec, type) else repr(spec)
        raise TypeError(
            f"{kind} must be an object such as {entry.cls.__name__}() or text such as {name!r}; got {given}"
        )
    name, parameters = parse_spec(spec)
    return Spec(_checks.one_of(name.lower().replace("_", "-"), kind, entries), parameters)


class InfoList(list[Entry]):
    """A list that prints each name with its help text, followed by the parameters with their defaults.

    Examples
    --------
    >>> def grid(size=5, slip=0.2):
    ...     "A square grid."
    >>> def maze():
    ...     "A maze."
    >>> InfoList.of({"grid": Entry(grid), "maze": Entry(maze)})
    grid  A square grid.
            size=5  slip=0.2
    maze  A maze.
    """

    @classmethod
    def of(cls, entries: Mapping[str, Entry]) -> InfoList:
        """Return the list of these entries."""
        return cls(replace(entry, name=name) for name, entry in entries.items())

    def __repr__(self) -> str:
        width = max((len(info.name) for info in self), default=0) + 2
        lines = []
        for info in self:
            margin = " " * width
            for text, first, rest in (
                (info.help, f"{info.name:{width}}", margin),
                (info.parameters_text(), margin + "  ", margin + "  "),
            ):
                lines += textwrap.wrap(text, LIST_WIDTH, initial_indent=first, subsequent_indent=rest)
        return "\n".join(lines)
