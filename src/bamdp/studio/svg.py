"""SVG as text: elements, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

Point = tuple[float, float]


def element(name: str, *inside: str, **attributes: Any) -> str:
    """One element: ``inside`` is markup, ``class_`` is class, other underscores are hyphens, None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>" if inside else f"<{name}{written}/>"


def text(x: float, y: float, words: str, **attributes: Any) -> str:
    """Words at a place."""
    return element("text", escape(words), x=x, y=y, **attributes)


def group(*inside: str, **attributes: Any) -> str:
    """A group, kept even if empty: something may be put into it later."""
    return element("g", *(inside or ("",)), **attributes)


def figure(size: Point, *inside: str, corner: Point = (0.0, 0.0), label: str = "", **attributes: Any) -> str:
    """The outermost element, with a viewBox: ``size`` from ``corner``."""
    box = " ".join(_text(float(x)) for x in (*corner, *size))
    named = {"role": "img", "aria_label": label} if label else {}
    return element("svg", *inside, xmlns="http://www.w3.org/2000/svg", viewBox=box, **named, **attributes)


def lines(points: Iterable[Point]) -> str:
    """Path data through points."""
    return "".join(f"{'L' if i else 'M'}{_text(x)} {_text(y)}" for i, (x, y) in enumerate(points))


def curve(start: Point, end: Point) -> str:
    """Path data of a flat S from left to right."""
    middle = (start[0] + end[0]) / 2
    return "M{} {}C{} {} {} {} {} {}".format(*map(_text, (*start, middle, start[1], middle, end[1], *end)))


def polygon(points: Sequence[Point], **attributes: Any) -> str:
    """A filled outline."""
    return element("path", d=lines(points) + "Z", **attributes)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))
    return str(value)
