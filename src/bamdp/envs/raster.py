"""Drawings as images, painted by Pillow.

Each shape is painted through a mask of its own that is drawn larger and scaled down, which smooths its edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bamdp.envs.drawing import LIGHT, Element, Path, Placement, Point, rgb

IMAGE_SIZE = 720  # pixels of the longer side, at most
MAX_SCALE = 2.0
IMAGE_MARGIN = 8  # pixels
OVERSAMPLING = 4  # pixels of a mask for one of the image, to each side

Styles = Mapping[str, Mapping[str, Any]]


def rasterize(drawing: Element, styles: Styles) -> NDArray[np.uint8]:
    """Paint a figure as an image, uint8 [height, width, 3].

    Parameters
    ----------
    drawing
        A figure of rectangles, circles, straight paths, texts and groups of them.
    styles
        By CSS selectors (classes, and classes inside classes), the looks: ``fill``, ``stroke``, ``stroke-width``,
        ``opacity`` and ``font-size``. Of several that fit, the last one has the say.
    """
    left, top, width, height = map(float, drawing.attributes["viewBox"].split())
    scale = min(IMAGE_SIZE / max(width, height), MAX_SCALE)
    size = math.ceil(width * scale) + 2 * IMAGE_MARGIN, math.ceil(height * scale) + 2 * IMAGE_MARGIN
    image = Image.new("RGB", size, LIGHT["paper"])
    origin = IMAGE_MARGIN / scale - left, IMAGE_MARGIN / scale - top
    painter = _Painter(image, scale, styles)
    for part in drawing.inside:
        painter.paint(part, _Context(origin, 0.0, 1.0, frozenset()))
    return np.asarray(image)


@dataclass(frozen=True)
class _Context:
    """What an element inherits: where its origin is, how it is turned, its opacity, and the classes around it."""

    origin: Point
    angle: float
    opacity: float
    classes: frozenset[str]

    def moved(self, by: Placement | None) -> _Context:
        if by is None:
            return self
        return _Context(self.at(by.x, by.y), self.angle + (by.angle or 0.0), self.opacity, self.classes)

    def at(self, x: float, y: float) -> Point:
        turn = math.radians(self.angle)
        return (
            self.origin[0] + x * math.cos(turn) - y * math.sin(turn),
            self.origin[1] + x * math.sin(turn) + y * math.cos(turn),
        )


class _Painter:
    """Paints elements on an image whose pixels are ``scale`` to a unit of the drawing."""

    def __init__(self, image: Image.Image, scale: float, styles: Styles) -> None:
        self.image, self.scale = image, scale
        self.styles = [
            ([frozenset(part.split(".")[1:]) for part in selector.split()], style)
            for selector, style in styles.items()
        ]
        self._found: dict[tuple[frozenset[str], frozenset[str]], dict[str, Any]] = {}

    def paint(self, part: Element | str, context: _Context) -> None:
        """Paint an element and all that is inside."""
        if isinstance(part, str) or part.attributes.get("visibility") == "hidden":
            return
        attributes = part.attributes
        classes = frozenset((attributes.get("class") or "").split())
        style = self._style(classes, context.classes, attributes.get("style"))
        opacity = context.opacity * float(style.get("opacity", 1.0)) * float(attributes.get("opacity") or 1.0)
        inner = _Context(context.origin, context.angle, opacity, context.classes | classes)
        inner = inner.moved(attributes.get("transform"))
        if part.name == "g":
            for child in part.inside:
                self.paint(child, inner)
        elif part.name == "text":
            self._text(part, style, inner)
        else:
            self._shape(part, style, inner)

    def _style(self, own: frozenset[str], around: frozenset[str], inline: str | None) -> dict[str, Any]:
        """Return the looks of an element with its own classes inside others; ``inline`` is its style attribute."""
        style = self._found.get((own, around))
        if style is None:
            style = self._found[own, around] = {}
            for (*outer, last), declared in self.styles:
                if last <= own and all(classes <= around for classes in outer):
                    style |= declared
        return style | dict(pair.split(":") for pair in inline.split(";")) if inline else style

    def _shape(self, part: Element, style: Mapping[str, Any], context: _Context) -> None:
        fill, stroke = (_colour(style.get(name)) for name in ("fill", "stroke"))
        width = float(style.get("stroke-width", 1.0))
        draw, points = _OUTLINES[part.name](part.attributes, context)
        if fill is not None:
            self._mask(points, 0.0, fill, context.opacity, lambda canvas: draw(canvas, 0.0, True))
        if stroke is not None:
            self._mask(points, width, stroke, context.opacity, lambda canvas: draw(canvas, width, False))

    def _mask(
        self,
        points: list[Point],
        margin: float,
        colour: tuple[int, int, int],
        opacity: float,
        draw: Callable[[_Canvas], None],
    ) -> None:
        """Paint ``colour`` where ``draw`` draws on a mask around ``points``."""
        xs, ys = ([p[i] * self.scale for p in points] for i in (0, 1))
        pad = margin * self.scale + 1
        left, top = math.floor(min(xs) - pad), math.floor(min(ys) - pad)
        size = math.ceil(max(xs) + pad) - left, math.ceil(max(ys) + pad) - top
        mask = Image.new("L", (size[0] * OVERSAMPLING, size[1] * OVERSAMPLING))
        draw(_Canvas(ImageDraw.Draw(mask), self.scale * OVERSAMPLING, (left / self.scale, top / self.scale)))
        mask = mask.reduce(OVERSAMPLING)
        if opacity < 1.0:
            mask = mask.point(lambda value: value * opacity)
        self.image.paste(colour, (left, top, left + size[0], top + size[1]), mask)

    def _text(self, part: Element, style: Mapping[str, Any], context: _Context) -> None:
        words = "".join(str(word) for word in part.inside)
        x, y = context.at(float(part.attributes["x"]), float(part.attributes["y"]))
        centred = part.attributes.get("dy") is not None  # else on the baseline
        size = float(str(style.get("font-size", 12)).removesuffix("px")) * self.scale
        colour = _colour(style.get("fill")) or rgb(LIGHT["ink"])
        ImageDraw.Draw(self.image).text(
            (x * self.scale, y * self.scale),
            words,
            fill=colour,
            font=_font(round(size)),
            anchor="mm" if centred else "ms",
            stroke_width=size / 50,
        )


@lru_cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size=max(size, 4))


def _colour(value: Any) -> tuple[int, int, int] | None:
    return None if value in (None, "none") else rgb(LIGHT.get(value, value))


class _Canvas:
    """A mask under the brush, in the drawing's units."""

    def __init__(self, draw: ImageDraw.ImageDraw, scale: float, corner: Point) -> None:
        self.draw, self.scale, self.corner = draw, scale, corner

    def to_pixels(self, x: float, y: float) -> Point:
        return (x - self.corner[0]) * self.scale, (y - self.corner[1]) * self.scale

    def circle(self, centre: Point, radius: float, width: float, filled: bool) -> None:
        x, y = self.to_pixels(*centre)
        outer = (radius + width / 2) * self.scale
        box = (x - outer, y - outer, x + outer, y + outer)
        if filled:
            self.draw.ellipse(box, fill=255)
        else:
            self.draw.ellipse(box, outline=255, width=round(width * self.scale))

    def box(self, corners: tuple[Point, Point], radius: float, width: float, filled: bool) -> None:
        (x0, y0), (x1, y1) = (self.to_pixels(*corner) for corner in corners)
        if x1 - x0 < 1 or y1 - y0 < 1:
            return
        edge, radius = width / 2 * self.scale, min(radius * self.scale, (x1 - x0) / 2, (y1 - y0) / 2)
        box = (x0 - edge, y0 - edge, x1 + edge - 1, y1 + edge - 1)
        if filled:
            self.draw.rounded_rectangle(box, radius, fill=255)
        else:
            self.draw.rounded_rectangle(box, radius, outline=255, width=round(width * self.scale))

    def path(self, lines: list[list[Point]], closed: bool, width: float, filled: bool) -> None:
        for line in lines:
            points = [self.to_pixels(*point) for point in line]
            if filled and closed:
                self.draw.polygon(points, fill=255)
            elif not filled:
                points += points[:1] * closed
                self.draw.line(points, fill=255, width=round(width * self.scale), joint="curve")
                for x, y in points:  # round joints and ends
                    half = width * self.scale / 2
                    self.draw.ellipse((x - half, y - half, x + half, y + half), fill=255)


_Draw = Callable[[_Canvas, float, bool], None]


def _circle_outline(attributes: Mapping[str, Any], context: _Context) -> tuple[_Draw, list[Point]]:
    x, y = context.at(float(attributes.get("cx", 0.0)), float(attributes.get("cy", 0.0)))
    r = float(attributes["r"])
    draw = lambda canvas, width, filled: canvas.circle((x, y), r, width, filled)
    return draw, [(x - r, y - r), (x + r, y + r)]


def _rect_outline(attributes: Mapping[str, Any], context: _Context) -> tuple[_Draw, list[Point]]:
    x, y, width, height = (float(attributes[name]) for name in ("x", "y", "width", "height"))
    corners = context.at(x, y), context.at(x + width, y + height)
    radius = float(attributes.get("rx", 0.0))
    return lambda canvas, pen, filled: canvas.box(corners, radius, pen, filled), list(corners)


def _path_outline(attributes: Mapping[str, Any], context: _Context) -> tuple[_Draw, list[Point]]:
    path: Path = attributes["d"]
    lines = [[context.at(*point) for point in line] for line in path.lines]
    draw = lambda canvas, width, filled: canvas.path(lines, path.closed, width, filled)
    return draw, [point for line in lines for point in line]


_OUTLINES: dict[str, Callable[[Mapping[str, Any], _Context], tuple[_Draw, list[Point]]]] = {
    "circle": _circle_outline,
    "rect": _rect_outline,
    "path": _path_outline,
}
