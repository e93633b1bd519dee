"""Rendering of drawings on Matplotlib axes: every SVG shape becomes a patch, styled by its classes."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import BoxStyle, PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Transform
from numpy.typing import NDArray

from bamdp.envs.drawing import LIGHT_COLOURS, view_box, with_colours
from bamdp.envs.picture import world_css

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGE_SIZE = 720  # maximum length of the longer side, in pixels
MAX_SCALE = 2.0  # pixels per unit of the drawing
MARGIN = 4.0  # units around the drawing
HALF_LETTER = 0.36  # half the height of a capital letter, relative to the font size
LETTER_STROKE = 0.5  # around letters, to make them slightly bolder


def as_image(drawing: Element) -> NDArray[np.uint8]:
    """Return a drawing as an image, uint8 [height, width, 3]."""
    _, _, width, height = view_box(drawing)
    scale = min(IMAGE_SIZE / max(width, height), MAX_SCALE) / 72  # inches per unit
    sides = ((width + 2 * MARGIN) * scale, (height + 2 * MARGIN) * scale)
    canvas = FigureCanvasAgg(Figure(sides, dpi=72, facecolor=LIGHT_COLOURS["paper"]))
    paint(canvas.figure.add_axes((0.0, 0.0, 1.0, 1.0)), drawing)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def paint(axes: Axes, drawing: Element) -> None:
    """Paint a drawing of rectangles, circles, straight lines and text on axes, in the drawing's coordinates."""
    left, top, width, height = view_box(drawing)
    axes.set(
        xlim=(left - MARGIN, left + width + MARGIN),
        ylim=(top + height + MARGIN, top - MARGIN),
        aspect="equal",
    )
    axes.set_axis_off()
    box = axes.get_window_extent()
    points = 72 / axes.figure.dpi * min(box.width / (width + 2 * MARGIN), box.height / (height + 2 * MARGIN))
    _paint(axes, drawing, Affine2D(), 1.0, points)


def _paint(axes: Axes, part: Element, place: Transform, opacity: float, points: float) -> None:
    """Paint an element and its descendants."""
    if part.get("visibility") == "hidden" or (part.tag == "text" and not part.text):
        return
    style = _style(part)
    opacity *= float(style.get("opacity", 1.0)) * float(part.get("opacity", 1.0))
    if moved := part.get("transform"):
        x, y, angle = map(float, re.findall(r"-?[\d.]+", moved))
        place = Affine2D().rotate_deg(angle).translate(x, y) + place
    if part.tag not in ("g", "svg"):
        fill, stroke, width = (style.get(key, "none") for key in ("fill", "stroke", "stroke-width"))
        if part.tag == "text":
            stroke, width = fill, str(LETTER_STROKE)
        patch = PathPatch(
            _outline(part, style),
            facecolor=fill,
            edgecolor=stroke,
            linewidth=points * float(width) if stroke != "none" else 0.0,
            alpha=opacity,
            transform=place + axes.transData,
            capstyle="round",
            joinstyle="round",
        )
        axes.add_artist(patch)
    for child in part:
        _paint(axes, child, place, opacity, points)


@cache
def _rules() -> list[tuple[frozenset[str], dict[str, str]]]:
    """Return the style sheet's rules as pairs of the required classes and the style."""
    found = re.findall(r"\.([\w.-]+)\{([^}]*)\}", with_colours(world_css()))
    return [(frozenset(classes.split(".")), _looks(looks)) for classes, looks in found]


def _style(part: Element) -> dict[str, str]:
    classes = set(part.get("class", "").split())
    fitting = [looks for needed, looks in _rules() if needed <= classes]
    return {key: value for looks in (*fitting, _looks(part.get("style", ""))) for key, value in looks.items()}


def _looks(text: str) -> dict[str, str]:
    return dict(re.findall(r"([\w-]+):([^;]+)", text))


def _outline(part: Element, style: dict[str, str]) -> Path:
    """Return the outline of a path, a circle, a rounded rectangle or text."""
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
    below = 0.0 if part.get("dy") is None else HALF_LETTER * size  # on the baseline, or centred if dy is set
    middle = Affine2D().translate(-words.get_extents().x1 / 2, -below)
    return words.transformed(middle.scale(1.0, -1.0).translate(x, y))


def _line(data: str) -> Path:
    points: Any = np.array(re.findall(r"-?[\d.]+", data), float).reshape(-1, 2)
    closed = data.endswith("Z")
    return Path(np.vstack([points, points[:1]]) if closed else points, closed=closed)
