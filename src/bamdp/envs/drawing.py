"""Drawings as trees of elements, the colours in them, and images of them.

An :class:`Element` is an element of SVG: ``str`` writes it as markup, and :func:`rasterize` paints it as an image, by
Pillow: each shape through a mask of its own that is drawn larger and scaled down, which smooths its edges. Its looks
are in its classes, which a style sheet gives colours from the palette below.

The palette has one meaning for each colour, in light and dark: an action has one colour wherever it is seen, a quantity
one ramp. The agent is coral, goals are green, flags amber, walls slate; value is teal, visits indigo, entropy rose. Web
pages get it as CSS variables; files and images get the light colours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]

N_ACTION_COLOURS = 6  # further actions begin again

LIGHT_COLOURS = {
    "paper": "#f6f4ee",
    "card": "#ffffff",
    "sunken": "#f1eee6",
    "ink": "#252c38",
    "muted": "#616977",
    "line": "#dedacf",
    "faint": "#ece8de",
    "cell": "#ffffff",
    "wall": "#414a5b",
    "agent": "#e0523f",
    "goal": "#2f8f60",
    "flag": "#d98f14",
    "wood": "#9b6a42",
    "accent": "#1d627c",
    "on-accent": "#ffffff",
    "danger": "#b3261e",
    "a0": "#c9741f",
    "a1": "#2e70a8",
    "a2": "#7a58a0",
    "a3": "#2f8a72",
    "a4": "#be556e",
    "a5": "#7a7a36",
}
DARK_COLOURS = {
    "paper": "#12161d",
    "card": "#1a202a",
    "sunken": "#141922",
    "ink": "#e9ebef",
    "muted": "#a0a9b8",
    "line": "#313a48",
    "faint": "#262e3a",
    "cell": "#222a36",
    "wall": "#0b0e13",
    "agent": "#ff7a66",
    "goal": "#4cbf86",
    "flag": "#f2b24a",
    "wood": "#b98558",
    "accent": "#6fc3d8",
    "on-accent": "#0d1a20",
    "danger": "#ff9a90",
    "a0": "#f0a04b",
    "a1": "#69aee6",
    "a2": "#b596dd",
    "a3": "#5cc4a8",
    "a4": "#ee8aa2",
    "a5": "#bdbd6a",
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
THEMES = (LIGHT_COLOURS, DARK_COLOURS)
for _name, _ramps in RAMPS.items():
    for _theme, _stops in zip(THEMES, _ramps):
        _theme.update({f"{_name}-{i}": stop for i, stop in enumerate(_stops)})


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


# --- images ---------------------------------------------------------------------------------------------------

IMAGE_SIZE = 720  # pixels of the longer side of a drawing, at most
IMAGE_MARGIN = 8  # pixels
MAX_SCALE = 2.0  # pixels for a unit of the drawing
OVERSAMPLING = 4  # pixels of a mask for one of the image, to each side

Styles = Mapping[str, Mapping[str, Any]]


def rasterize(drawing: Element, styles: Styles) -> NDArray[np.uint8]:
    """Paint a figure as an image, uint8 [height, width, 3].

    Parameters
    ----------
    drawing
        A figure of rectangles, circles, paths of straight lines, texts and groups of them.
    styles
        By CSS selectors (classes, and classes inside classes), the looks: ``fill``, ``stroke``, ``stroke-width``,
        ``opacity`` and ``font-size``. Where several fit, later ones override earlier ones.
    """
    from PIL import Image  # here and below: Pillow is needed for images only

    left, top, width, height = map(float, drawing.attributes["viewBox"].split())
    scale = min(IMAGE_SIZE / max(width, height), MAX_SCALE)
    size = math.ceil(width * scale) + 2 * IMAGE_MARGIN, math.ceil(height * scale) + 2 * IMAGE_MARGIN
    image = Image.new("RGB", size, LIGHT_COLOURS["paper"])
    painter = _Painter(image, scale, styles)
    origin = IMAGE_MARGIN / scale - left, IMAGE_MARGIN / scale - top
    for part in drawing.inside:
        painter.paint(part, _Surroundings(origin))
    return np.asarray(image)


@dataclass(frozen=True)
class _Surroundings:
    """What an element inherits: where its origin is, how it is turned, its opacity, and the classes around it."""

    origin: Point
    angle: float = 0.0  # degrees
    opacity: float = 1.0
    classes: frozenset[str] = frozenset()

    def at(self, x: float, y: float) -> Point:
        """Return a point in the coordinates of the figure."""
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        return self.origin[0] + x * cos - y * sin, self.origin[1] + x * sin + y * cos


class _Painter:
    """Paints elements on an image with ``scale`` pixels for a unit of the drawing."""

    def __init__(self, image: Any, scale: float, styles: Styles) -> None:
        self.image, self.scale = image, scale
        self.styles = [
            ([frozenset(part.split(".")[1:]) for part in selector.split()], style)
            for selector, style in styles.items()
        ]
        self._resolved: dict[tuple[frozenset[str], frozenset[str]], dict[str, Any]] = {}

    def paint(self, part: Element | str, around: _Surroundings) -> None:
        """Paint an element and all that is inside."""
        if isinstance(part, str) or part.attributes.get("visibility") == "hidden":
            return
        attributes = part.attributes
        classes = frozenset((attributes.get("class") or "").split())
        style = self._style(classes, around.classes) | _inline_style(attributes.get("style"))
        opacity = around.opacity * float(style.get("opacity", 1.0)) * float(attributes.get("opacity") or 1.0)
        inner = replace(around, opacity=opacity, classes=around.classes | classes)
        placement: Placement | None = attributes.get("transform")
        if placement is not None:
            origin, angle = inner.at(placement.x, placement.y), inner.angle + (placement.angle or 0.0)
            inner = replace(inner, origin=origin, angle=angle)
        if part.name == "g":
            for child in part.inside:
                self.paint(child, inner)
        elif part.name == "text":
            self._paint_text(part, style, inner)
        else:
            self._paint_shape(part, style, inner)

    def _style(self, classes: frozenset[str], around: frozenset[str]) -> dict[str, Any]:
        """Return the looks of an element with some classes, inside elements with others."""
        key = classes, around
        if key not in self._resolved:
            self._resolved[key] = {}
            for (*outer, last), looks in self.styles:
                if last <= classes and all(part <= around for part in outer):
                    self._resolved[key] |= looks
        return self._resolved[key]

    def _paint_shape(self, part: Element, style: Mapping[str, Any], around: _Surroundings) -> None:
        path = _outline(part)
        lines = [[around.at(*point) for point in line] for line in path.lines]
        fill, stroke = (_colour(style.get(name)) for name in ("fill", "stroke"))
        if fill is not None and path.closed:
            self._paint_mask(lines, fill, around.opacity)
        if stroke is not None:
            width = float(style.get("stroke-width", 1.0))
            self._paint_mask(lines, stroke, around.opacity, width, path.closed)

    def _paint_mask(
        self,
        lines: list[list[Point]],
        colour: tuple[int, int, int],
        opacity: float,
        width: float = 0.0,
        closed: bool = True,
    ) -> None:
        """Paint the inside of lines, or with a width the lines themselves, closed or open."""
        from PIL import Image, ImageDraw

        # the part of the image that is touched
        pad = width * self.scale / 2 + 1
        xs, ys = ([point[i] * self.scale for line in lines for point in line] for i in (0, 1))
        left, top = math.floor(min(xs) - pad), math.floor(min(ys) - pad)
        right, bottom = math.ceil(max(xs) + pad), math.ceil(max(ys) + pad)
        # a mask of it, drawn larger
        mask = Image.new("L", ((right - left) * OVERSAMPLING, (bottom - top) * OVERSAMPLING))
        draw = ImageDraw.Draw(mask)
        for line in lines:
            points = [
                ((x * self.scale - left) * OVERSAMPLING, (y * self.scale - top) * OVERSAMPLING)
                for x, y in line
            ]
            if not width:
                draw.polygon(points, fill=255)
                continue
            pen = width * self.scale * OVERSAMPLING
            draw.line(points + points[:2] * closed, fill=255, width=round(pen), joint="curve")
            for x, y in () if closed else (points[0], points[-1]):  # round ends
                draw.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), fill=255)
        mask = mask.reduce(OVERSAMPLING)
        if opacity < 1.0:
            mask = mask.point(lambda value: value * opacity)
        self.image.paste(colour, (left, top, right, bottom), mask)

    def _paint_text(self, part: Element, style: Mapping[str, Any], around: _Surroundings) -> None:
        from PIL import ImageDraw

        x, y = around.at(float(part.attributes["x"]), float(part.attributes["y"]))
        size = float(str(style.get("font-size", 12)).removesuffix("px")) * self.scale
        ImageDraw.Draw(self.image).text(
            (x * self.scale, y * self.scale),
            "".join(map(str, part.inside)),
            fill=_colour(style.get("fill", "ink")),
            font=_font(max(round(size), 4)),
            anchor="ms" if part.attributes.get("dy") is None else "mm",  # on the baseline, or centred
            stroke_width=size / 50,
        )


@lru_cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)


def _colour(value: Any) -> tuple[int, int, int] | None:
    return None if value in (None, "none") else rgb(LIGHT_COLOURS.get(value, value))


def _inline_style(text: str | None) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split(";")) if text else {}


def _outline(part: Element) -> Path:
    """Return the outline of a circle, a rectangle with round corners, or a path."""
    attributes = part.attributes
    if part.name == "path":
        return attributes["d"]
    if part.name == "circle":
        centre = float(attributes.get("cx", 0.0)), float(attributes.get("cy", 0.0))
        return Path((tuple(_arc(centre, float(attributes["r"]), 0, 360)),))
    x, y, width, height = (float(attributes[name]) for name in ("x", "y", "width", "height"))
    r = min(float(attributes.get("rx", 0.0)), width / 2, height / 2)
    corners = (
        ((x + width - r, y + height - r), 0),
        ((x + r, y + height - r), 90),
        ((x + r, y + r), 180),
        ((x + width - r, y + r), 270),
    )
    return Path((tuple(point for centre, turn in corners for point in _arc(centre, r, turn, turn + 90)),))


def _arc(centre: Point, radius: float, first: int, last: int) -> list[Point]:
    """Return points on a circle between two angles in degrees, clockwise from the right since y is down."""
    angles = [math.radians(angle) for angle in range(first, last + 1, 9 if radius else 90)]
    return [(centre[0] + radius * math.cos(a), centre[1] + radius * math.sin(a)) for a in angles]
