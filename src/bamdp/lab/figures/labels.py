"""Names beside lines and points, so that nobody needs to look up a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float, float, float]  # left, right, bottom, top, in the axes' data

SIZE = 8.0  # of letters, in points
LINE = 0.155  # inches that a line of text takes
PLACES = [
    (dx, dy) for dy in (5, -13, 16, -24, 28, -36) for dx in (8, -8)
]  # beside a point, in points; the best first


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]], height: float) -> None:
    """Write (label, y, colour) at the right edge, beside their lines, moved apart where they would overlap.

    ``height`` is the panel's in inches, for the room that a line of text takes.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    held = sorted((float(to_axes.transform((x, y))[1]), label, colour) for label, y, colour in ends)
    across: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    for (place, label, colour), at in zip(held, spread([place for place, *_ in held], LINE / height)):
        axes.plot([1.0, 1.015], [place, at], color=colour, linewidth=0.7, **across)
        axes.text(1.022, at, label, color=colour, fontsize=SIZE, va="center", **across)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places in [0, 1], moved so that neighbours are at least ``gap`` apart and all stay inside.

    Among all such places these have the least sum of squared moves: without the gaps, neighbours in the wrong order
    are pooled into their mean (isotonic regression). Where there is no room for all, they run over both ends alike.

    Examples
    --------
    >>> [round(y, 3) for y in spread([0.5, 0.5, 0.9], gap=0.1)]
    [0.45, 0.55, 0.9]
    >>> [round(y, 3) for y in spread([0.95, 1.0], gap=0.1)]
    [0.9, 1.0]
    """
    offsets = gap * np.arange(len(places))
    wanted, room = np.asarray(places) - offsets, 1.0 - gap * (len(places) - 1)
    if room >= 0.0:
        wanted = np.clip(wanted, 0.0, room)
    pools: list[tuple[float, int]] = []  # (mean, how many)
    for value in wanted:
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append(((a * n + b * m) / (n + m), n + m))
    found = np.repeat([mean for mean, _ in pools], [count for _, count in pools]) + offsets
    return [float(y) for y in found]


def name_points(
    figure: Figure, axes: Axes, named: Sequence[tuple[str, float, float, str]], obstacles: Sequence[Box] = ()
) -> None:
    """Write (label, x, y, colour) beside their points, where the least of obstacles and other names is in the way."""
    figure.draw_without_rendering()  # limits and sizes are final only then
    taken = [_pixels(axes, box) for box in obstacles]
    for label, x, y, colour in named:
        look: dict[str, Any] = {"color": colour, "fontsize": SIZE, "zorder": 5}
        text = axes.annotate(label, (x, y), xytext=PLACES[0], textcoords="offset points", **look)
        boxes = [_placed(text, place).get_window_extent() for place in PLACES]
        costs = [_covered(box, taken) + box.width * box.height - _covered(box, [axes.bbox]) for box in boxes]
        best = int(np.argmin(np.round(costs)))
        _placed(text, PLACES[best])
        taken.append(boxes[best])


def _pixels(axes: Axes, box: Box) -> Any:
    """A box of the data in pixels, and a little around it."""
    from matplotlib.transforms import Bbox

    left, right, bottom, top = box
    return Bbox(axes.transData.transform([(left, bottom), (right, top)])).padded(4.0)


def _placed(text: Any, place: tuple[int, int]) -> Any:
    text.xyann = place
    text.set_horizontalalignment("left" if place[0] > 0 else "right")
    return text


def _covered(box: Any, others: Sequence[Any]) -> float:
    """The area that a box shares with others."""
    shared = [box.intersection(box, other) for other in others]
    return float(sum(part.width * part.height for part in shared if part is not None))
