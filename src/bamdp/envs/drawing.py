"""Drawings as trees of elements, and the colours in them.

An :class:`Element` is an element of SVG: ``str`` writes it as markup, and :mod:`bamdp.envs.image` paints it. Its looks
are in its classes, which a style sheet gives colours from the palette below.

The palette has one meaning for each colour, in light and dark: an action has one colour wherever it is seen, a quantity
one ramp. The agent is coral, goals are green, flags amber, walls slate; value is teal, visits indigo, entropy rose. Web
pages get it as CSS variables; files and images get the light colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

Point = tuple[float, float]

N_ACTION_COLOURS = 6  # further actions begin again

COLOURS = {  # of the light and the dark theme
    "paper": ("#f6f4ee", "#12161d"),
    "card": ("#ffffff", "#1a202a"),
    "sunken": ("#f1eee6", "#141922"),
    "ink": ("#252c38", "#e9ebef"),
    "muted": ("#616977", "#a0a9b8"),
    "line": ("#dedacf", "#313a48"),
    "faint": ("#ece8de", "#262e3a"),
    "cell": ("#ffffff", "#222a36"),
    "wall": ("#414a5b", "#0b0e13"),
    "agent": ("#e0523f", "#ff7a66"),
    "goal": ("#2f8f60", "#4cbf86"),
    "flag": ("#d98f14", "#f2b24a"),
    "wood": ("#9b6a42", "#b98558"),
    "accent": ("#1d627c", "#6fc3d8"),
    "on-accent": ("#ffffff", "#0d1a20"),
    "danger": ("#b3261e", "#ff9a90"),
    "a0": ("#c9741f", "#f0a04b"),
    "a1": ("#2e70a8", "#69aee6"),
    "a2": ("#7a58a0", "#b596dd"),
    "a3": ("#2f8a72", "#5cc4a8"),
    "a4": ("#be556e", "#ee8aa2"),
    "a5": ("#7a7a36", "#bdbd6a"),
}
RAMPS = {
    "value": (
        ("#faf6e8", "#cee4d2", "#8bc7bc", "#4297a0", "#1d627c"),
        ("#1f2731", "#23414a", "#2a6470", "#3d919b", "#7ccfcf"),
    ),
    "visits": (
        ("#fbfaf5", "#dcdcf0", "#b1b3df", "#7f81c4", "#4b4b9b"),
        ("#1f2530", "#2e335a", "#454c8a", "#6b73c0", "#a7aef2"),
    ),
    "entropy": (
        ("#fdfaf6", "#f6dfd9", "#e9b6b1", "#d2848a", "#a84f66"),
        ("#1f2530", "#432f3c", "#6d4152", "#a25c70", "#e294a2"),
    ),
}
_STOPS = {f"{name}-{i}": colours for name, themes in RAMPS.items() for i, colours in enumerate(zip(*themes))}
LIGHT_COLOURS, DARK_COLOURS = THEMES = tuple(
    {name: colours[i] for name, colours in (COLOURS | _STOPS).items()} for i in (0, 1)
)


def palette_css() -> str:
    """Return the colours of both themes as CSS variables; the system's preference or ``data-theme`` chooses."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in THEMES)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
    )


def with_colours(style_sheet: str) -> str:
    """Return a style sheet with the light colours in place of variables, for programs that know no variables."""
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT_COLOURS[match[1]], style_sheet)


def action_class(action: int) -> str:
    """Return the class, and name in the palette, of an action's colour."""
    return f"a{action % N_ACTION_COLOURS}"


def shade(ramp: str, place: float) -> str:
    """Return the light colour at ``place`` in 0..1 of a ramp."""
    stops = RAMPS[ramp][0]
    x = min(max(place, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(x), len(stops) - 2)
    low, high = (rgb(stop) for stop in stops[i : i + 2])
    return "#" + "".join(f"{round(a + (x - i) * (b - a)):02x}" for a, b in zip(low, high))


def is_dark(colour: str) -> bool:
    """Return whether white is easier to read on a colour than ink."""
    r, g, b = rgb(colour)
    return 0.3 * r + 0.59 * g + 0.11 * b < 140


def rgb(colour: str) -> tuple[int, int, int]:
    """Return a colour #rrggbb as three numbers in 0..255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


# --- elements --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """An element of SVG with its attributes and what is inside: further elements, or text."""

    name: str
    attributes: Mapping[str, Any]
    inside: tuple[Element | str, ...] = ()

    def __str__(self) -> str:
        written = "".join(
            f' {key}="{escape(format_attribute(value))}"'
            for key, value in self.attributes.items()
            if value is not None
        )
        if not self.inside:
            return f"<{self.name}{written}/>"
        inside = "".join(str(x) if isinstance(x, (Element, Markup)) else escape(x) for x in self.inside)
        return f"<{self.name}{written}>{inside}</{self.name}>"

    @property
    def size(self) -> Point:
        """Width and height of the viewBox of a figure."""
        _, _, width, height = map(float, self.attributes["viewBox"].split())
        return width, height

    def placed(self, x: float, y: float, width: float, height: float) -> Element:
        """Return a figure scaled into a box of another figure."""
        box = dict(zip(("x", "y", "width", "height"), (f"{value:.1f}" for value in (x, y, width, height))))
        return Element(self.name, {**box, **self.attributes}, self.inside)


class Markup(str):
    """Text inside an element that is written as it is, such as a style sheet."""


@dataclass(frozen=True)
class Path:
    """Straight lines through points, one or several, each closed to an outline or open."""

    lines: tuple[tuple[Point, ...], ...]
    closed: bool = True

    def __str__(self) -> str:
        return "".join(path_data(line) + "Z" * self.closed for line in self.lines)


@dataclass(frozen=True)
class Placement:
    """A transform: to a place, and turned there by an angle in degrees."""

    x: float
    y: float
    angle: float | None = None

    def __str__(self) -> str:
        turn = "" if self.angle is None else f" rotate({self.angle:g})"
        return f"translate({self.x:g} {self.y:g}){turn}"


def element(name: str, *inside: Element | str, **attributes: Any) -> Element:
    """Make an element: ``class_`` stands for class, other underscores for hyphens, None for no attribute."""
    return Element(name, {_attribute_name(key): value for key, value in attributes.items()}, inside)


@cache
def _attribute_name(keyword: str) -> str:
    return keyword.rstrip("_").replace("_", "-")


def text_element(x: float, y: float, words: str, **attributes: Any) -> Element:
    """Make an element with words at a place."""
    return element("text", words, x=x, y=y, **attributes)


def group(*inside: Element | str, **attributes: Any) -> Element:
    """Make a group; it has an opening and a closing tag even if it is empty, so that a page can fill it."""
    return element("g", *(inside or ("",)), **attributes)


def shape(points: Iterable[Point], *, closed: bool = True, **attributes: Any) -> Element:
    """Make an outline through points, or with ``closed=False`` a line."""
    return element("path", d=Path((tuple(points),), closed), **attributes)


def figure(
    size: Point, *inside: Element | str, corner: Point = (0.0, 0.0), label: str = "", **attributes: Any
) -> Element:
    """Make the outermost element, which shows ``size`` from ``corner``; ``label`` describes it in words."""
    box = " ".join(format_attribute(float(x)) for x in (*corner, *size))
    named = {"role": "img", "aria_label": label} if label else {}
    return element("svg", *inside, xmlns="http://www.w3.org/2000/svg", viewBox=box, **named, **attributes)


def path_data(points: Iterable[Point]) -> str:
    """Return path data of a line through points."""
    return "".join(
        f"{'L' if i else 'M'}{format_attribute(x)} {format_attribute(y)}" for i, (x, y) in enumerate(points)
    )


def format_attribute(value: Any) -> str:
    """Return an attribute's value as text; floats have at most two digits behind the point."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))
    return str(value)
