"""Images of drawings, which Matplotlib's Agg paints: shapes with smooth edges, strokes, opacity and words."""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import BoxStyle
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Transform
from numpy.typing import NDArray

from bamdp.envs.drawing import element, view_box

IMAGE_SIZE = 720  # pixels of the longer side of a drawing, at most
IMAGE_MARGIN = 8  # pixels
MAX_SCALE = 2.0  # pixels for a unit of the drawing
HALF_LETTER = 0.36  # of the size of a font: half the height of a capital letter
LETTER_STROKE = 0.5  # around letters, which makes them a little bolder

Style = dict[str, str]


def rasterize(drawing: Element, style_sheet: str, back: str) -> NDArray[np.uint8]:
    """Paint a figure as an image, uint8 [height, width, 3].

    Parameters
    ----------
    drawing
        A figure of rectangles, circles, paths of straight lines, texts and groups of them.
    style_sheet
        Rules for classes, such as ``.world .wall{fill:#414a5b;}``, of which the last word counts; of several that fit,
        later ones override earlier ones.
    back
        The colour behind it.
    """
    left, top, width, height = view_box(drawing)
    scale = min(IMAGE_SIZE / max(width, height), MAX_SCALE)
    wide, high = (math.ceil(side * scale) + 2 * IMAGE_MARGIN for side in (width, height))
    painter = _Painter(RendererAgg(wide, high, dpi=72), scale, style_sheet)  # with these, a point is a pixel
    upright = Affine2D().scale(1.0, -1.0).translate(0.0, high)  # y is up on the canvas
    painter.paint(element("rect", x=0, y=0, width=wide, height=high, style=f"fill:{back}"), upright)
    middle = Affine2D().translate(-left, -top).scale(scale).translate(IMAGE_MARGIN, IMAGE_MARGIN)
    painter.paint(drawing, middle + upright)
    return np.asarray(painter.canvas.buffer_rgba())[:, :, :3].copy()


class _Painter:
    """Paints elements on a canvas with ``scale`` pixels for a unit of the drawing."""

    def __init__(self, canvas: RendererAgg, scale: float, style_sheet: str) -> None:
        self.canvas, self.scale = canvas, scale
        rules = re.findall(r"\.([\w.-]+)\{([^}]*)\}", style_sheet)
        self.rules = [(frozenset(classes.split(".")), _read(looks)) for classes, looks in rules]

    def paint(self, part: Element, transform: Transform, opacity: float = 1.0) -> None:
        """Paint an element and all that is inside."""
        if part.get("visibility") == "hidden" or (part.tag == "text" and not part.text):
            return
        style = self._style(part)
        opacity *= float(style.get("opacity", 1.0)) * float(part.get("opacity", 1.0))
        if place := part.get("transform"):
            x, y, angle = map(float, re.findall(r"-?[\d.]+", place))
            transform = Affine2D().rotate_deg(angle).translate(x, y) + transform
        if part.tag not in ("g", "svg"):
            self._paint_shape(part, style, transform, opacity)
        for child in part:
            self.paint(child, transform, opacity)

    def _style(self, part: Element) -> Style:
        classes = set(part.get("class", "").split())
        fitting = [looks for needed, looks in self.rules if needed <= classes]
        return {
            key: value for looks in (*fitting, _read(part.get("style", ""))) for key, value in looks.items()
        }

    def _paint_shape(self, part: Element, style: Style, transform: Transform, opacity: float) -> None:
        if part.tag == "text":
            style = {**style, "stroke": style["fill"], "stroke-width": str(LETTER_STROKE)}
        stroke = style.get("stroke", "none")
        pen = self.canvas.new_gc()
        pen.set_linewidth(self.scale * float(style.get("stroke-width", 1.0)) if stroke != "none" else 0.0)
        pen.set_foreground(stroke)
        pen.set_capstyle("round")
        pen.set_joinstyle("round")
        pen.set_alpha(opacity)
        pen.set_snap(False)
        fill = style.get("fill", "none")
        self.canvas.draw_path(pen, _outline(part, style), transform, None if fill == "none" else to_rgb(fill))


def _read(looks: str) -> Style:
    return dict(re.findall(r"([\w-]+):([^;]+)", looks))


def _outline(part: Element, style: Style) -> Path:
    """Return the outline of a path, a circle, a rectangle with round corners, or words."""
    if part.tag == "path":
        return Path.make_compound_path(*map(_line, part.attrib["d"].split("M")[1:]))
    names = ("x", "y", "width", "height", "rx", "cx", "cy", "r")
    x, y, width, height, rx, cx, cy, r = (float(part.get(name, 0.0)) for name in names)
    if part.tag == "circle":
        return Path.circle((cx, cy), r)
    if part.tag == "rect":
        return BoxStyle.Round(pad=0.0, rounding_size=rx)(x, y, width, height, 1.0)
    size = float(style.get("font-size", "12px").removesuffix("px"))
    words = TextPath((0.0, 0.0), part.text or "", size)
    below = 0.0 if part.get("dy") is None else HALF_LETTER * size  # on the baseline, or with dy centred
    middle = Affine2D().translate(-words.get_extents().x1 / 2, -below)
    return words.transformed(middle.scale(1.0, -1.0).translate(x, y))


def _line(data: str) -> Path:
    points: Any = np.array(re.findall(r"-?[\d.]+", data), float).reshape(-1, 2)
    closed = data.endswith("Z")
    return Path(np.vstack([points, points[:1]]) if closed else points, closed=closed)
