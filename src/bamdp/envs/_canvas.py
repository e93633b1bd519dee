"""A small painter of antialiased shapes on a NumPy array, so that drawing a world needs no plotting library.

Every shape is a signed distance field d(x, y), negative inside, evaluated on the few pixels around the shape
only. A pixel is covered by clip(1/2 - d, 0, 1), which is what antialiases the edges. Coordinates are pixels,
x to the right and y down; the centre of the pixel in the corner is at (1/2, 1/2). Colours are triples in
0..255.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Colour = tuple[float, float, float]
Point = tuple[float, float]
Array = NDArray[np.float64]


def _arc(x: float, y: float, rx: float, ry: float, first: float, last: float) -> list[Point]:
    """Points on an ellipse between two angles in degrees, clockwise from the right since y is down."""
    turn = np.radians(np.linspace(first, last, max(4, int(abs(last - first) / 15))))
    return list(zip((x + rx * np.cos(turn)).tolist(), (y + ry * np.sin(turn)).tolist()))


_SIX = [_arc(0.3, 0.69, 0.29, 0.31, 0, 360), _arc(0.62, 0.69, 0.61, 0.69, 180, 257)]
# Glyphs as pen strokes in a box of width 0.6 and height 1, y down: digits and what numbers need.
_GLYPHS: dict[str, list[list[Point]]] = {
    "0": [_arc(0.3, 0.5, 0.29, 0.5, 0, 360)],
    "1": [[(0.1, 0.2), (0.36, 0.0), (0.36, 1.0)]],
    "2": [[*_arc(0.29, 0.29, 0.27, 0.29, 190, 396), (0.0, 1.0), (0.6, 1.0)]],
    "3": [[*_arc(0.28, 0.24, 0.25, 0.24, 205, 450), *_arc(0.28, 0.74, 0.3, 0.26, -90, 160)]],
    "4": [[(0.46, 1.0), (0.46, 0.0), (0.0, 0.7), (0.62, 0.7)]],
    "5": [[(0.54, 0.0), (0.1, 0.0), (0.06, 0.44), *_arc(0.28, 0.68, 0.31, 0.32, -130, 150)]],
    "6": _SIX,
    "7": [[(0.0, 0.0), (0.6, 0.0), (0.22, 1.0)]],
    "8": [_arc(0.3, 0.24, 0.25, 0.24, 0, 360), _arc(0.3, 0.74, 0.29, 0.26, 0, 360)],
    "9": [[(0.6 - x, 1.0 - y) for x, y in path] for path in _SIX],
    "-": [[(0.08, 0.55), (0.52, 0.55)]],
    ".": [[(0.1, 0.97), (0.1, 0.98)]],
}
_ADVANCE = {".": 0.42, "-": 0.8}  # the width of a glyph with its gap; 0.86 for the others


class Canvas:
    """An image under the brush.

    Parameters
    ----------
    width, height : int
        The size in pixels.
    background : triple of float
        The colour to begin with.

    Examples
    --------
    >>> canvas = Canvas(40, 30, (255, 255, 255))
    >>> canvas.disk(20, 15, 8, (200, 30, 30))
    >>> image = canvas.image()
    >>> image.shape, image[15, 20].tolist(), image[0, 0].tolist()
    ((30, 40, 3), [200, 30, 30], [255, 255, 255])
    """

    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width, self.height = width, height
        self._pixels = np.empty((height, width, 3))
        self._pixels[:] = background

    def image(self) -> NDArray[np.uint8]:
        """The picture so far, uint8 [height, width, 3]."""
        return np.clip(np.rint(self._pixels), 0, 255).astype(np.uint8)

    def disk(self, x: float, y: float, radius: float, colour: Colour, *, alpha: float = 1.0) -> None:
        """A filled circle."""
        box = (x - radius, y - radius, x + radius, y + radius)
        self._paint(box, lambda px, py: np.hypot(px - x, py - y) - radius, colour, alpha)

    def ring(
        self, x: float, y: float, radius: float, width: float, colour: Colour, *, alpha: float = 1.0
    ) -> None:
        """A circle drawn with a pen."""
        reach = radius + width / 2
        box = (x - reach, y - reach, x + reach, y + reach)
        self._paint(box, lambda px, py: np.abs(np.hypot(px - x, py - y) - radius) - width / 2, colour, alpha)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: Colour,
        *,
        radius: float = 0.0,
        alpha: float = 1.0,
    ) -> None:
        """A filled rectangle with its upper left corner at (x, y) and rounded corners."""
        cx, cy = x + width / 2, y + height / 2

        def distance(px: Array, py: Array) -> Array:
            dx = np.abs(px - cx) - width / 2 + radius
            dy = np.abs(py - cy) - height / 2 + radius
            outside = np.hypot(np.maximum(dx, 0), np.maximum(dy, 0))
            return outside + np.minimum(np.maximum(dx, dy), 0) - radius

        self._paint((x, y, x + width, y + height), distance, colour, alpha)

    def stroke(self, points: Sequence[Point], width: float, colour: Colour, *, alpha: float = 1.0) -> None:
        """A line through the points, with round ends and joints."""
        self._paint(
            _bounds(points, width / 2), lambda px, py: _to_path(px, py, points) - width / 2, colour, alpha
        )

    def polygon(
        self, points: Sequence[Point], colour: Colour, *, alpha: float = 1.0, rounding: float = 0.0
    ) -> None:
        """A filled polygon, by the even-odd rule; ``rounding`` swells it and rounds its corners."""
        box = _bounds(points, rounding)
        self._paint(box, lambda px, py: _to_polygon(px, py, points) - rounding, colour, alpha)

    def text(
        self, x: float, y: float, string: str, size: float, colour: Colour, *, alpha: float = 1.0
    ) -> None:
        """Digits, points and minus signs, centred on (x, y), ``size`` pixels high; others are blanks."""
        total = sum(_ADVANCE.get(c, 0.86) for c in string) - 0.26 if string else 0.0
        left, top, pen = x - total * size / 2, y - size / 2, max(1.0, 0.13 * size)
        for character in string:
            for path in _GLYPHS.get(character, []):
                self.stroke([(left + u * size, top + v * size) for u, v in path], pen, colour, alpha=alpha)
            left += _ADVANCE.get(character, 0.86) * size

    def arrow(
        self,
        points: Sequence[Point],
        width: float,
        colour: Colour,
        *,
        head: float | None = None,
        alpha: float = 1.0,
    ) -> None:
        """A line through the points that ends in an arrow head of length ``head`` at the last of them."""
        head = 3.2 * width if head is None else head
        (x0, y0), (x1, y1) = points[-2], points[-1]
        length = max(float(np.hypot(x1 - x0, y1 - y0)), 1e-9)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        neck = (x1 - 0.8 * head * ux, y1 - 0.8 * head * uy)
        body = list(points[:-1])
        while body and np.hypot(body[-1][0] - x1, body[-1][1] - y1) < 0.8 * head:
            body.pop()
        shape = [
            (x1, y1),
            (x1 - head * ux - 0.5 * head * uy, y1 - head * uy + 0.5 * head * ux),
            (x1 - head * ux + 0.5 * head * uy, y1 - head * uy - 0.5 * head * ux),
        ]
        line = [*body, neck] if body else [neck, neck]

        def distance(px: Array, py: Array) -> Array:
            return np.minimum(_to_path(px, py, line) - width / 2, _to_polygon(px, py, shape))

        self._paint(_bounds([*line, *shape], width / 2), distance, colour, alpha)

    def _paint(
        self,
        box: tuple[float, float, float, float],
        distance: Callable[[Array, Array], Array],
        colour: Colour,
        alpha: float,
    ) -> None:
        """Blend ``colour`` into the pixels of ``box`` where ``distance`` is negative."""
        x0, y0 = max(int(np.floor(box[0])) - 1, 0), max(int(np.floor(box[1])) - 1, 0)
        x1, y1 = min(int(np.ceil(box[2])) + 1, self.width), min(int(np.ceil(box[3])) + 1, self.height)
        if x0 >= x1 or y0 >= y1:
            return
        px = np.arange(x0, x1, dtype=np.float64)[None, :] + 0.5
        py = np.arange(y0, y1, dtype=np.float64)[:, None] + 0.5
        cover = alpha * np.clip(0.5 - distance(px, py), 0.0, 1.0)[..., None]
        patch = self._pixels[y0:y1, x0:x1]
        patch += cover * (np.asarray(colour, float) - patch)


def _bounds(points: Sequence[Point], margin: float) -> tuple[float, float, float, float]:
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin


def _to_path(px: Array, py: Array, points: Sequence[Point]) -> Array:
    """The distance from every pixel to the nearest of the segments between consecutive points."""
    best = np.full(np.broadcast(px, py).shape, np.inf)
    for (x0, y0), (x1, y1) in pairwise(points):
        dx, dy = x1 - x0, y1 - y0
        square = dx * dx + dy * dy
        t = np.clip(((px - x0) * dx + (py - y0) * dy) / square, 0.0, 1.0) if square > 0 else 0.0
        np.minimum(best, np.hypot(px - x0 - t * dx, py - y0 - t * dy), out=best)
    return best


def _to_polygon(px: Array, py: Array, points: Sequence[Point]) -> Array:
    """The distance to the outline of a polygon, negative inside by the even-odd rule."""
    closed = [*points, points[0]]
    inside = np.zeros(np.broadcast(px, py).shape, bool)
    for (x0, y0), (x1, y1) in pairwise(closed):
        if y0 != y1:
            inside ^= ((py < y0) != (py < y1)) & (px < x0 + (py - y0) * (x1 - x0) / (y1 - y0))
    edge = _to_path(px, py, closed)
    return np.where(inside, -edge, edge)
