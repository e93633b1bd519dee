"""Drawings as trees of SVG elements, and their colours.

:func:`markup` writes a drawing as SVG, and :mod:`bamdp.envs.image` renders it. A style sheet maps the classes of its
elements to colours of the palette below.

Each colour has one meaning in both themes: an action has the same colour everywhere, and a quantity always uses the
same ramp. The agent is coral, goals are green, flags amber, walls slate; value is teal, visits indigo, entropy rose.
Web pages receive the palette as CSS variables; files and images use the light colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, tostring

Point = tuple[float, float]

N_ACTION_COLOURS = 6  # further actions reuse them

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
    """Return the colours of both themes as CSS variables, selected by ``data-theme`` or the system preference."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in THEMES)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
    )


def action_css() -> str:
    """Return CSS rules for the classes ``fill0``, ``stroke0``, ``back0`` and so on, which have the action's colour."""
    return "".join(
        f"{selector}{i}{{{look}:var(--a{i});}}\n"
        for i in range(N_ACTION_COLOURS)
        for selector, look in (
            (".scene .fill", "fill"),
            (".scene .stroke", "stroke"),
            (".back", "background"),
        )
    )


def with_colours(style_sheet: str) -> str:
    """Return a style sheet with light colours in place of variables, for programs without CSS variables."""
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT_COLOURS[match[1]], style_sheet)


def colour_of(action: int) -> int:
    """Return the colour index of an action, the suffix of its classes."""
    return action % N_ACTION_COLOURS


def shade(ramp: str, place: float) -> str:
    """Return the light colour of a ramp at ``place`` in 0..1."""
    stops = RAMPS[ramp][0]
    x = min(max(place, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(x), len(stops) - 2)
    low, high = (rgb(stop) for stop in stops[i : i + 2])
    return "#" + "".join(f"{round(a + (x - i) * (b - a)):02x}" for a, b in zip(low, high))


def is_dark(colour: str) -> bool:
    """Return whether white text is easier to read on a colour than ink."""
    r, g, b = rgb(colour)
    return 0.3 * r + 0.59 * g + 0.11 * b < 140


def rgb(colour: str) -> tuple[int, int, int]:
    """Return the three components, in 0..255, of a colour #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


# --- elements --------------------------------------------------------------------------------------------------


def element(name: str, *inside: Element | str, **attributes: Any) -> Element:
    """Create an element; ``class_`` means class, other underscores mean hyphens, and None omits an attribute."""
    given = {key: value for key, value in attributes.items() if value is not None}
    made = Element(name, {key.rstrip("_").replace("_", "-"): written(value) for key, value in given.items()})
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
    return element("path", d=path_data(points) + "Z" * closed, **attributes)


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


def path_data(points: Iterable[Point]) -> str:
    """Return the path data of a line through points."""
    return "".join(f"{'L' if i else 'M'}{written(x)} {written(y)}" for i, (x, y) in enumerate(points))


def written(value: Any) -> str:
    """Return an attribute's value as text; real numbers have at most two decimals."""
    return str(value) if isinstance(value, (str, int)) else f"{round(float(value), 2) + 0.0:.8g}"


def markup(drawing: Element) -> str:
    """Return a drawing as SVG."""
    return tostring(drawing, encoding="unicode")
