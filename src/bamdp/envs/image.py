"""Images of drawings, which Matplotlib's Agg paints: shapes with smooth edges, strokes, opacity and words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import BoxStyle
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Transform
from numpy.typing import NDArray

from bamdp.envs.drawing import LIGHT_COLOURS, Element, Path, Placement, element

IMAGE_SIZE = 720  # pixels of the longer side of a drawing, at most
IMAGE_MARGIN = 8  # pixels
MAX_SCALE = 2.0  # pixels for a unit of the drawing
HALF_LETTER = 0.36  # of the size of a font: half the height of a capital letter
LETTER_STROKE = 0.5  # around letters, which makes them a little bolder

Classes = frozenset[str]
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
    wide, high = (math.ceil(side * scale) + 2 * IMAGE_MARGIN for side in (width, height))
    painter = _Painter(RendererAgg(wide, high, dpi=72), scale, styles)  # with these, a point is a pixel
    upright = Affine2D().scale(1.0, -1.0).translate(0.0, high)  # y is up on the canvas
    painter.paint(element("rect", x=0, y=0, width=wide, height=high, style="fill:paper"), upright)
    placed = Affine2D().translate(-left, -top).scale(scale).translate(IMAGE_MARGIN, IMAGE_MARGIN)
    painter.paint(drawing, placed + upright)
    return np.asarray(painter.canvas.buffer_rgba())[:, :, :3].copy()


def read_styles(sheet: str) -> Styles:
    """Return the looks by selector of a style sheet that has plain rules, with its colours written out."""
    return {
        selector.strip(): _inline_style(looks)
        for selector, looks in re.findall(r"([^{}]+)\{([^}]*)\}", sheet)
    }


class _Painter:
    """Paints elements on a canvas with ``scale`` pixels for a unit of the drawing."""

    def __init__(self, canvas: RendererAgg, scale: float, styles: Styles) -> None:
        self.canvas, self.scale = canvas, scale
        self.styles = [
            ([frozenset(part.split(".")[1:]) for part in selector.split()], style)
            for selector, style in styles.items()
        ]
        self._resolved: dict[tuple[Classes, Classes], dict[str, Any]] = {}

    def paint(
        self,
        part: Element | str,
        transform: Transform,
        opacity: float = 1.0,
        around: Classes = frozenset(),
    ) -> None:
        """Paint an element and all that is inside, by what surrounds it: the way to pixels, opacity and classes."""
        if isinstance(part, str) or part.attributes.get("visibility") == "hidden":
            return
        attributes = part.attributes
        classes = frozenset((attributes.get("class") or "").split())
        style = self._style(classes, around) | _inline_style(attributes.get("style"))
        opacity *= float(style.get("opacity", 1.0)) * float(attributes.get("opacity") or 1.0)
        placement: Placement | None = attributes.get("transform")
        if placement is not None:
            turned = Affine2D().rotate_deg(placement.angle or 0.0)
            transform = turned.translate(placement.x, placement.y) + transform
        if part.name not in ("g", "svg"):
            self._paint_shape(part, style, transform, opacity)
            return
        for child in part.inside:
            self.paint(child, transform, opacity, around | classes)

    def _style(self, classes: Classes, around: Classes) -> dict[str, Any]:
        """Return the looks of an element with some classes, inside elements with others."""
        key = classes, around
        if key not in self._resolved:
            self._resolved[key] = {}
            for (*outer, last), looks in self.styles:
                if last <= classes and all(part <= around for part in outer):
                    self._resolved[key] |= looks
        return self._resolved[key]

    def _paint_shape(
        self, part: Element, style: Mapping[str, Any], transform: Transform, opacity: float
    ) -> None:
        if part.name == "text":
            fill = style.get("fill", "ink")
            style = {**style, "fill": fill, "stroke": fill, "stroke-width": LETTER_STROKE}
        stroke = _colour(style.get("stroke"))
        pen = self.canvas.new_gc()
        pen.set_linewidth(self.scale * float(style.get("stroke-width", 1.0)) if stroke else 0.0)
        pen.set_foreground(stroke or "none")
        pen.set_capstyle("round")
        pen.set_joinstyle("round")
        pen.set_alpha(opacity)
        pen.set_snap(False)
        self.canvas.draw_path(pen, _outline(part, style), transform, _colour(style.get("fill")))


def _colour(value: Any) -> tuple[float, float, float] | None:
    return None if value in (None, "none") else to_rgb(LIGHT_COLOURS.get(value, value))


def _inline_style(text: str | None) -> dict[str, str]:
    return dict(re.findall(r"([\w-]+):([^;]+)", text)) if text else {}


def _outline(part: Element, style: Mapping[str, Any]) -> Outline:
    """Return the outline of a circle, a rectangle with round corners, words, or a path."""
    if part.name == "path":
        path: Path = part.attributes["d"]
        lines = [[*line, line[0]] if path.closed else line for line in path.lines]
        return Outline.make_compound_path(*(Outline(line, closed=path.closed) for line in lines))
    x, y, width, height, rx, cx, cy, r = (
        float(part.attributes.get(name, 0.0)) for name in ("x", "y", "width", "height", "rx", "cx", "cy", "r")
    )
    if part.name == "circle":
        return Outline.circle((cx, cy), r)
    if part.name == "rect":
        return BoxStyle.Round(pad=0.0, rounding_size=rx)(x, y, width, height, 1.0)
    size = float(str(style.get("font-size", 12)).removesuffix("px"))
    words = TextPath((0.0, 0.0), "".join(map(str, part.inside)), size)
    # on the baseline, or with dy centred
    below = 0.0 if part.attributes.get("dy") is None else HALF_LETTER * size
    middle = Affine2D().translate(-words.get_extents().x1 / 2, -below)
    return words.transformed(middle.scale(1.0, -1.0).translate(x, y))
