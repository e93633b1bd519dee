"""A planning tree as SVG, to be read from left to right: now, what may be chosen, what may come of it.

Circles are hyper-states and squares are choices, as in Figure 1 of the paper. A choice has the colour of its (first)
action; the fill of a hyper-state is its value; dots on a rollout are rewards, the larger the more. The maximising
branch is drawn strongly. At the right, on one axis, the returns behind each choice at the root: a dot a sample, the
tick their mean, the bar a standard deviation to either side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.planners.views.tree import CHOICE, HYPER_STATE, ROOT, Tree
from bamdp.studio import palette, svg
from bamdp.studio.svg import Point
from bamdp.studio.tree_layout import ROOT_ROWS, Layout, Shown, layout

WIDTH, STRIP, MARGIN, TOP = 900.0, 190.0, 26.0, 40.0
ROW = 15.0  # pixels, where there is room
MOST_HEIGHT, LEAST_HEIGHT = 560.0, 250.0
ROOM = 27.0  # pixels for a choice at the root and its label
DOTS = 12  # rewards that are marked on one rollout, at most


@dataclass(frozen=True)
class Axes:
    """From steps, rows and returns to pixels."""

    steps: float
    row: float
    low: float
    high: float

    def at(self, shown: Shown) -> Point:
        """Where a node is."""
        return self.x(shown.x), TOP + shown.y * self.row

    def x(self, steps: float) -> float:
        """Steps ahead."""
        return MARGIN + steps / self.steps * (WIDTH - STRIP - 2 * MARGIN - 34)

    def strip(self, value: float) -> float:
        """A return, in the strip at the right."""
        left = WIDTH - STRIP
        return left + 12 + (value - self.low) / (self.high - self.low) * (STRIP - 24)


def draw(
    tree: Tree, returns: Mapping[int, Sequence[float]], action_labels: Sequence[str]
) -> tuple[str, list[int]]:
    """The drawing, and the nodes in it; ``returns`` has the samples behind each choice at the root."""
    found = layout(tree)
    axes = _axes(tree, found, returns)
    place = {shown.node: shown for shown in found.nodes}
    height = TOP + found.rows * axes.row + 14
    edges: list[str] = []
    nodes: list[str] = []
    # what is chosen is drawn last, so that nothing lies over it
    for shown in sorted(found.nodes, key=lambda shown: bool(tree.chosen[shown.node])):
        if shown.node != ROOT:
            edges.append(_edge(tree, shown, place[int(tree.parent[shown.node])], axes))
        nodes.append(_node(tree, shown, axes, action_labels))
    drawing = svg.figure(
        (WIDTH, height),
        _ruler(axes, height),
        svg.group(*edges, class_="edges"),
        svg.group(*nodes, class_="nodes"),
        _strip(tree, [place[int(c)] for c in tree.children(ROOT)], axes, returns),
        label="The planning tree of this decision",
        class_="scene tree",
    )
    return drawing, [shown.node for shown in found.nodes]


def _axes(tree: Tree, found: Layout, returns: Mapping[int, Sequence[float]]) -> Axes:
    root = tree.children(ROOT)
    row = min(max(LEAST_HEIGHT / found.rows, ROW), MOST_HEIGHT / found.rows, 34.0)
    row = max(row, ROOM / ROOT_ROWS)
    spread = np.nan_to_num(tree.spread[root])
    numbers: list[float] = [*(tree.value[root] - spread), *(tree.value[root] + spread)]
    numbers += [r for samples in returns.values() for r in samples]
    kept = [x for x in numbers if math.isfinite(x)] or [0.0]
    low, high = min(kept), max(kept)
    pad = 0.05 * (high - low) or 0.5
    return Axes(found.steps, row, low - pad, high + pad)


def _ruler(axes: Axes, height: float) -> str:
    """Steps ahead, along the top."""
    ticks = [t for t in _round_ticks(0.0, axes.steps, 6) if t == int(t)]
    parts = []
    for t in ticks:
        x = axes.x(t)
        parts.append(svg.element("path", class_="grid", d=f"M{x:.1f} {TOP - 8}V{height - 8:.1f}"))
        parts.append(svg.text(x, TOP - 14, "now" if t == 0 else f"{t:g}", class_="tick"))
    parts.append(svg.text(axes.x(0) - 12, TOP - 28, "steps ahead", class_="tick unit"))
    return svg.group(*parts, class_="ruler")


def _edge(tree: Tree, shown: Shown, above: Shown, axes: Axes) -> str:
    node = shown.node
    start, end = axes.at(above), axes.at(shown)
    strong = " chosen" if tree.chosen[node] else ""
    colour = f"a{int(tree.action[node]) % palette.N_ACTIONS}"
    kind = "choose" if tree.kind[node] == CHOICE else "happen"
    parts = [svg.element("path", class_="line", d=svg.curve(start, end))]
    if tree.kind[node] == HYPER_STATE and int(tree.depth[node]) - int(tree.depth[above.node]) > 1:
        parts += _rewards(tree, node, start, end)
    share = tree.share[node]
    width = None
    if kind == "happen" and math.isfinite(share):
        width = round(0.7 + 2.2 * math.sqrt(min(float(share), 1.0)), 2)
    return svg.group(*parts, class_=f"edge {kind} {colour}{strong}", data_node=node, stroke_width=width)


def _rewards(tree: Tree, node: int, start: Point, end: Point) -> list[str]:
    """Dots where a rollout collects rewards."""
    begin, stop = int(tree.path_begin[node]), int(tree.path_begin[node + 1])
    gains = tree.path_reward[begin:stop]
    paid = np.flatnonzero(np.nan_to_num(gains) > 0.0)
    if not len(paid) or len(paid) > DOTS:
        return []
    most = float(np.nanmax(tree.path_reward))
    dots = []
    for k in paid.tolist():
        x, y = _on_curve(start, end, (k + 1) / (stop - begin))
        dots.append(
            svg.element("circle", class_="gain", cx=x, cy=y, r=1.2 + 1.6 * math.sqrt(float(gains[k]) / most))
        )
    return dots


def _on_curve(start: Point, end: Point, t: float) -> Point:
    """The point of :func:`svg.curve` at parameter t; x is not quite linear in t, which no one sees."""
    middle = (start[0] + end[0]) / 2
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return a * start[0] + (b + c) * middle + d * end[0], (a + b) * start[1] + (c + d) * end[1]


def _node(tree: Tree, shown: Shown, axes: Axes, action_labels: Sequence[str]) -> str:
    node = shown.node
    x, y = axes.at(shown)
    small = min(1.0, axes.row / 13)
    strong = " chosen" if tree.chosen[node] else ""
    parts = []
    if tree.kind[node] == CHOICE:
        side = 5.2 * (1.25 if tree.parent[node] == ROOT else max(small, 0.6))
        box = {"x": x - side, "y": y - side, "width": 2 * side, "height": 2 * side, "rx": 3.0}
        parts.append(svg.element("rect", class_="mark", **box))
        if tree.parent[node] == ROOT:
            parts.append(_choice_label(tree, node, x, y, side, action_labels))
        elif shown.hidden and not shown.open:
            parts.append(svg.text(x + side + 4, y, f"+{shown.hidden}", class_="more", dy="0.35em"))
        colour = f" a{int(tree.action[node]) % palette.N_ACTIONS}"
    else:
        radius = 8.0 if node == ROOT else max(2.4, 4.6 * small)
        parts.append(svg.element("circle", class_="mark", cx=x, cy=y, r=radius))
        if not shown.open and node != ROOT and axes.row >= 9 and math.isfinite(tree.value[node]):
            parts.append(
                svg.text(x + radius + 4, y, _leaf_label(tree, node, shown), class_="leaf", dy="0.35em")
            )
        colour = " root" if node == ROOT else f" v{_fifth(tree.value[node], axes)}"
    kind = "choice" if tree.kind[node] == CHOICE else "hyper"
    return svg.group(*parts, class_=f"node {kind}{colour}{strong}", data_node=node, tabindex=0)


def _choice_label(
    tree: Tree, node: int, x: float, y: float, side: float, action_labels: Sequence[str]
) -> str:
    name = action_labels[int(tree.action[node])]
    return svg.text(x, y - side - 4, f"{name} {_short(tree.value[node])}", class_="label")


def _leaf_label(tree: Tree, node: int, shown: Shown) -> str:
    """What was collected on the way in, or the value where a step is only one."""
    path = int(tree.path_begin[node + 1] - tree.path_begin[node])
    number = tree.reward[node] if path > 1 else tree.value[node]
    return _short(number) + (f"  +{shown.hidden}" if shown.hidden else "")


def _fifth(value: float, axes: Axes) -> int:
    """Which of the five colours of the value ramp."""
    place = (float(value) - axes.low) / (axes.high - axes.low) if math.isfinite(value) else 0.0
    return round(4 * min(max(place, 0.0), 1.0))


def _strip(tree: Tree, choices: list[Shown], axes: Axes, returns: Mapping[int, Sequence[float]]) -> str:
    """Returns of the choices at the root, each at its own height."""
    parts = [svg.text(WIDTH - STRIP / 2, TOP - 24, "returns, discounted", class_="tick unit")]
    bottom = TOP + max(choice.y for choice in choices) * axes.row + 16
    for value in _round_ticks(axes.low, axes.high, 5):
        x = axes.strip(value)
        parts.append(svg.element("path", class_="grid", d=f"M{x:.1f} {TOP - 4}V{bottom:.1f}"))
        parts.append(svg.text(x, TOP - 9, f"{value:g}", class_="tick"))
    for choice in choices:
        parts.append(_sample_row(tree, choice.node, axes.at(choice)[1], axes, returns.get(choice.node, ())))
    return svg.group(*parts, class_="strip")


def _sample_row(tree: Tree, node: int, y: float, axes: Axes, samples: Sequence[float]) -> str:
    mean, spread = float(tree.value[node]), float(tree.spread[node])
    strong = " chosen" if tree.chosen[node] else ""
    parts = []
    if math.isfinite(spread) and spread > 0.0:
        x0, x1 = axes.strip(mean - spread), axes.strip(mean + spread)
        parts.append(svg.element("path", class_="spread", d=f"M{x0:.1f} {y:.1f}H{x1:.1f}"))
    offsets: NDArray[np.float64] = 3.0 * np.sin(2.4 * np.arange(len(samples)))
    parts += [
        svg.element("circle", class_="sample", cx=axes.strip(r), cy=y + float(d), r=2.6)
        for r, d in zip(samples, offsets)
        if math.isfinite(r)
    ]
    if math.isfinite(mean):
        x = axes.strip(mean)
        parts.append(svg.element("path", class_="mean", d=f"M{x:.1f} {y - 8:.1f}V{y + 8:.1f}"))
    colour = f"a{int(tree.action[node]) % palette.N_ACTIONS}"
    return svg.group(*parts, class_=f"samples {colour}{strong}", data_node=node)


def _round_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers in an interval, about so many."""
    step = (high - low) / about
    if step <= 0.0 or not math.isfinite(step):
        return []
    size = 10.0 ** math.floor(math.log10(step))
    step = size * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * size >= step * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def _short(value: Any) -> str:
    number = float(value)
    return f"{number:.3g}" if math.isfinite(number) else "–"
