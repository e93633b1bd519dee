"""Drawings as trees of SVG elements, their colours, and how Matplotlib paints them.

An element's ``fill`` and ``stroke`` name colours of the palette below, or are CSS colours. :func:`markup` writes a
drawing as SVG, and :func:`paint` paints it on Matplotlib axes. Each colour has one meaning in both themes: an action
has the same colour everywhere, and a quantity always uses the same ramp. The agent is coral, goals are green, flags
amber, walls slate; value is teal, visits indigo, entropy rose. Web pages receive the palette as CSS variables; files
and images use the light colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]

N_ACTION_COLOURS = 6  # further actions reuse them
IMAGE_SIZE = 720  # maximum length of an image's longer side, in pixels
MAX_SCALE = 2.0  # pixels per unit of the drawing
HALF_LETTER = 0.36  # half the height of a capital letter, relative to the font size

COLOURS = {  # in the light and the dark theme
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
    """Return the colours of both themes as CSS variables, and the rules of the classes ``fill0``, ``stroke0``, ..."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in THEMES)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"{action_css()}"
    )


def action_css() -> str:
    """Return the rules of the classes ``fill0``, ``stroke0``, ``back0`` and so on, which have the action's colour."""
    looks = {".scene .fill": "fill", ".scene .stroke": "stroke", ".back": "background"}
    return "".join(
        f"{selector}{i}{{{look}:var(--a{i});}}\n"
        for i in range(N_ACTION_COLOURS)
        for selector, look in looks.items()
    )


def with_colours(text: str) -> str:
    """Return a style sheet or SVG with light colours in place of variables, for programs without CSS variables."""
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT_COLOURS[match[1]], text)


def colour_of(action: int) -> int:
    """Return the colour index of an action, the suffix of its colour and its classes."""
    return action % N_ACTION_COLOURS


def shade(ramp: str, level: float) -> str:
    """Return the light colour of a ramp at ``level`` in 0..1."""
    stops = np.array([rgb(stop) for stop in RAMPS[ramp][0]])
    where = np.linspace(0.0, 1.0, len(stops))
    return "#" + "".join(f"{round(np.interp(level, where, channel)):02x}" for channel in stops.T)


def is_dark(colour: str) -> bool:
    """Return whether white text is easier to read on a colour than ink-coloured text."""
    return float(np.dot(rgb(colour), (0.3, 0.59, 0.11))) < 140


def rgb(colour: str) -> tuple[int, int, int]:
    """Return the three components, in 0..255, of a colour #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


# --- elements --------------------------------------------------------------------------------------------------


def element(name: str, *inside: Element | str, **attributes: Any) -> Element:
    """Create an element; ``class_`` means class, other underscores mean hyphens, and None omits an attribute."""
    given = {key.rstrip("_").replace("_", "-"): v for key, v in attributes.items() if v is not None}
    for key in given.keys() & {"fill", "stroke"}:
        given[key] = f"var(--{given[key]})" if given[key] in LIGHT_COLOURS else given[key]
    made = Element(name, {key: written(value) for key, value in given.items()})
    for part in inside:
        if isinstance(part, str):
            made.text = part
        else:
            made.append(part)
    return made


def text_element(x: float, y: float, words: str, **attributes: Any) -> Element:
    """Create a text element at a position."""
    return element("text", words, x=x, y=y, **attributes)


def group(*inside: Element, **attributes: Any) -> Element:
    """Create a group."""
    return element("g", *inside, **attributes)


def shape(points: Iterable[Point], *, closed: bool = True, **attributes: Any) -> Element:
    """Create an outline through points, or a line if ``closed=False``."""
    data = "".join(f"{'L' if i else 'M'}{written(x)} {written(y)}" for i, (x, y) in enumerate(points))
    return element("path", d=data + "Z" * closed, **attributes)


def figure(
    size: Point, *inside: Element, corner: Point = (0.0, 0.0), label: str = "", **attributes: Any
) -> Element:
    """Create the root element, showing an area of ``size`` from ``corner``; ``label`` is its description."""
    box = " ".join(written(float(x)) for x in (*corner, *size))
    named = {"role": "img", "aria_label": label} if label else {}
    return element("svg", *inside, xmlns="http://www.w3.org/2000/svg", viewBox=box, **named, **attributes)


def view_box(drawing: Element) -> tuple[float, ...]:
    """Return the left, top, width and height of a figure's view box."""
    return tuple(map(float, drawing.attrib["viewBox"].split()))


def placed(drawing: Element, x: float, y: float, width: float, height: float) -> Element:
    """Return a figure, scaled to fit a box of another figure."""
    drawing.attrib |= {"x": written(x), "y": written(y), "width": written(width), "height": written(height)}
    return drawing


def placement(x: float, y: float, angle: float = 0.0) -> str:
    """Return a transform that rotates by an angle in degrees and then moves to a position."""
    return f"translate({written(x)} {written(y)}) rotate({written(angle)})"


def written(value: Any) -> str:
    """Return an attribute's value as text; real numbers have at most two decimals."""
    return str(value) if isinstance(value, (str, int)) else f"{round(float(value), 2) + 0.0:.8g}"


def markup(drawing: Element) -> str:
    """Return a drawing as SVG."""
    return tostring(drawing, encoding="unicode")


# --- Matplotlib ------------------------------------------------------------------------------------------------


def as_image(drawing: Element) -> NDArray[np.uint8]:
    """Return a drawing as an image, uint8 [height, width, 3]."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = np.array(view_box(drawing)[2:])
    inches = size * min(IMAGE_SIZE / size.max(), MAX_SCALE) / 72
    canvas = FigureCanvasAgg(Figure(tuple(inches), dpi=72, facecolor=LIGHT_COLOURS["paper"]))
    paint(canvas.figure.add_axes((0.0, 0.0, 1.0, 1.0)), drawing)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def paint(axes: Axes, drawing: Element) -> None:
    """Paint a drawing of rectangles, circles, straight lines and text on axes, in the drawing's coordinates."""
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    left, top, width, height = view_box(drawing)
    axes.set(xlim=(left, left + width), ylim=(top + height, top), aspect="equal")
    axes.set_axis_off()
    box = axes.get_window_extent()
    points = 72 / axes.figure.dpi * min(box.width / width, box.height / height)

    def add(part: Element, place: Any, opacity: float) -> None:
        if part.get("visibility") == "hidden":
            return
        opacity *= float(part.get("opacity", 1.0))
        if moved := part.get("transform"):
            x, y, angle = map(float, re.findall(r"-?[\d.]+", moved))
            place = Affine2D().rotate_deg(angle).translate(x, y) + place
        outline = _outline(part)
        if outline is not None:
            fill, stroke = (with_colours(part.get(key, "none")) for key in ("fill", "stroke"))
            looks = {"facecolor": fill, "edgecolor": stroke, "alpha": opacity, "transform": place}
            pen = {"linewidth": points * float(part.get("stroke-width", 0.0)), "capstyle": "round"}
            axes.add_artist(PathPatch(outline, joinstyle="round", **looks, **pen))
        for child in part:
            add(child, place, opacity)

    add(drawing, axes.transData, 1.0)


def _outline(part: Element) -> Any:
    """Return the outline of a path, a circle, a rounded rectangle or centred text; groups have none."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    names = ("x", "y", "width", "height", "rx", "cx", "cy", "r", "font-size")
    x, y, width, height, rx, cx, cy, r, size = (float(part.get(name, 0.0)) for name in names)
    if part.tag == "circle":
        return Path.circle((cx, cy), r)
    if part.tag == "rect":
        return BoxStyle.Round(pad=0.0, rounding_size=rx)(x, y, width, height, 1.0)
    if part.tag == "text" and part.text:
        words = TextPath((0.0, 0.0), part.text, size, prop=FontProperties(weight="bold"))
        centred = Affine2D().translate(-words.get_extents().x1 / 2, -HALF_LETTER * size)
        return words.transformed(centred.scale(1.0, -1.0).translate(x, y))
    if part.tag == "path":
        data = part.attrib["d"]
        points = np.array(re.findall(r"-?[\d.]+", data), float).reshape(-1, 2)
        closed = data.endswith("Z")
        return Path(np.vstack([points, points[:1]]) if closed else points, closed=closed)
    return None
