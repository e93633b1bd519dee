"""Drawings as images, painted by Pillow.

Each shape is painted through a mask of its own that is drawn larger and scaled down, which smooths its edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bamdp.envs.drawing import LIGHT_COLOURS, Element, Path, Placement, Point, rgb

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

    def __init__(self, image: Image.Image, scale: float, styles: Styles) -> None:
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
