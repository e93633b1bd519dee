"""A planning tree as a drawing, to be read from left to right: now, what may be chosen, what may come of it.

**What is drawn.** A tree may have a hundred thousand nodes; some fifty rows can be read. Nodes are opened one by one,
the weightiest first, until the rows are used up. The weight of the root is 1; what may come of a choice shares its
weight by probability (or share of the samples); of the choices at a hyper-state the best has the whole weight and the
others half of it, or their part of the simulations where these differ. All choices at the root are always shown; where
rollouts branch again, each has so few of them that there is room for what comes then. Time runs to the right: a
hyper-state's x is its number of steps ahead. Rows run down, in the order of the tree.

**How it looks.** Circles are hyper-states and squares are choices, as in Figure 1 of the paper. A choice has the colour
of its (first) action; the fill of a hyper-state is its value; dots on a rollout are rewards, the larger the more. The
maximising branch is drawn strongly. At the right, on one axis, the returns behind each choice at the root: a dot per
sample, a tick at their mean, and a bar of a standard deviation to either side.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.drawing import (
    Element,
    Point,
    action_class,
    element,
    figure,
    format_attribute,
    group,
    text_element,
)
from bamdp.planners.views.tree import CHOICE, HYPER_STATE, ROOT, Tree

# what is drawn
TREE_ROWS = 46  # that are filled, about
MAX_ROLLOUTS = 16  # of one choice that are drawn
MAX_OUTCOMES = 6  # the same where each is a single step
ROOT_CHOICE_ROWS = 3.0  # that a choice at the root takes at least: its label stands above it
MAX_LEVELS = 10  # hyper-states on a branch, where each step is one
OTHER_CHOICE_WEIGHT = 0.5  # of a choice that is not the best, relative to the best

# how it looks, in pixels
TREE_WIDTH, STRIP_WIDTH = 900.0, 190.0
NARROW_WIDTH, NARROW_STRIP = 400.0, 96.0  # on a phone
TREE_MARGIN, TREE_TOP = 26.0, 40.0
ROW_HEIGHT = 15.0  # where there is room
MAX_TREE_HEIGHT, MIN_TREE_HEIGHT = 560.0, 250.0
ROOT_CHOICE_HEIGHT = 27.0  # for a choice at the root and its label
STRIP_TICKS = 4  # of the axis of returns, about
MAX_REWARD_DOTS = 12  # on one rollout

Children = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True)
class PlacedNode:
    """A node that is drawn: ``x`` in steps ahead (choices lie between), ``y`` in rows."""

    node: int
    x: float
    y: float
    hidden: int  # children that are not drawn
    open: bool  # whether any is


@dataclass(frozen=True)
class TreeLayout:
    """The drawn nodes, in the order of the tree, parents first."""

    nodes: list[PlacedNode]
    rows: float
    steps: float  # the largest x


def layout_tree(tree: Tree, rows: int = TREE_ROWS) -> TreeLayout:
    """Choose the nodes that are drawn, about ``rows`` rows of them, and place them."""
    children = _children(tree)
    stage = int(np.diff(tree.path_begin).max())  # steps between two choices
    shown = _select(tree, children, rows, MAX_OUTCOMES if stage == 1 else MAX_ROLLOUTS)
    y: dict[int, float] = {}
    free = above = 0.0  # rows that are taken, and those above the present choice at the root
    stack: list[tuple[int, bool]] = [(ROOT, False)]
    while stack:  # children before parents, top to bottom
        node, done = stack.pop()
        below = shown[node]
        if not below:
            gap = 1.0 if tree.kind[node] == HYPER_STATE else 1.35
            y[node] = free + gap / 2
            free += gap
        elif done:
            y[node] = (y[below[0]] + y[below[-1]]) / 2
        else:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(below)]
        if node != ROOT and tree.parent[node] == ROOT and (done or not below):
            # some air between the choices at the root
            free = above = max(free + 0.5, above + ROOT_CHOICE_ROWS)
    nodes = [
        PlacedNode(
            node,
            _steps_ahead(tree, node, stage),
            y[node],
            len(children(node)) - len(shown[node]),
            bool(shown[node]),
        )
        for node in sorted(shown)
    ]
    return TreeLayout(nodes, free, max(1.0, max(shown.x for shown in nodes)))


def _children(tree: Tree) -> Children:
    """Return a function from a node to its children that is quick for many nodes."""
    order = np.argsort(tree.parent[1:], kind="stable") + 1
    bounds = np.searchsorted(tree.parent[order], np.arange(len(tree) + 1))
    return lambda node: order[bounds[node] : bounds[node + 1]]


def _select(tree: Tree, children: Children, rows: int, most: int) -> dict[int, list[int]]:
    """Return the drawn children of every drawn node."""
    shown: dict[int, list[int]] = {ROOT: children(ROOT).tolist()}
    shown.update({child: [] for child in shown[ROOT]})
    waiting: list[tuple[float, int, float, int]] = []  # -weight, node, weight, level
    for child, weight in _weights(tree, ROOT, children(ROOT), 1.0):
        heapq.heappush(waiting, (-weight, child, weight, 0))
    used = len(shown[ROOT])
    rollouts = most == MAX_ROLLOUTS
    first = max(2, rows // (2 * used)) if rollouts and _branches_again(tree) else most
    while waiting and used < rows:
        _, node, weight, level = heapq.heappop(waiting)
        below = _likeliest(tree, node, children(node), most if level else min(first, most))
        if not len(below) or level >= 2 * MAX_LEVELS or used + len(below) - 1 > rows + most:
            continue
        used += len(below) - 1
        shown[node] = below.tolist()
        for child, part in _weights(tree, node, below, weight):
            shown[child] = []
            heapq.heappush(waiting, (-part, child, part, level + 1))
    return shown


def _branches_again(tree: Tree) -> bool:
    """Return whether there are choices elsewhere than at the root."""
    return bool(((tree.kind[1:] == CHOICE) & (tree.parent[1:] != ROOT)).any())


def _likeliest(tree: Tree, node: int, below: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the children that are drawn, in the order of the tree: the likeliest outcomes of a choice."""
    if tree.kind[node] == HYPER_STATE or len(below) <= most:
        return below
    order = np.argsort(-tree.share[below], kind="stable")
    return np.sort(below[order[:most]])


def _weights(tree: Tree, node: int, below: NDArray[np.int64], weight: float) -> list[tuple[int, float]]:
    """Return the children with their parts of a node's weight."""
    if tree.kind[node] == CHOICE:
        parts = tree.share[below]
    elif len(set(tree.count[below].tolist())) > 1:
        parts = tree.count[below] / max(int(tree.count[below].sum()), 1)
    else:
        best = below[np.argmax(np.where(np.isnan(tree.value[below]), -np.inf, tree.value[below]))]
        parts = np.where(below == best, 1.0, OTHER_CHOICE_WEIGHT)
    return [(int(child), weight * float(part)) for child, part in zip(below, np.nan_to_num(parts))]


def _steps_ahead(tree: Tree, node: int, stage: int) -> float:
    """Return the x of a node: a choice lies between two hyper-states."""
    if tree.kind[node] == HYPER_STATE:
        return float(tree.depth[node])
    return float(tree.depth[node]) + (0.42 if stage == 1 else 0.16 * stage)


# --- the drawing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeAxes:
    """Maps steps, rows and returns to pixels."""

    steps: float
    row: float
    low: float
    high: float
    width: float = TREE_WIDTH
    strip_width: float = STRIP_WIDTH

    def at(self, shown: PlacedNode) -> Point:
        """Return where a node is drawn."""
        return self.x(shown.x), TREE_TOP + shown.y * self.row

    def x(self, steps: float) -> float:
        """Return the x of a number of steps ahead."""
        return TREE_MARGIN + steps / self.steps * (self.width - self.strip_width - 2 * TREE_MARGIN - 34)

    def strip(self, value: float) -> float:
        """Return the x of a return in the strip at the right."""
        left = self.width - self.strip_width
        return left + 12 + (value - self.low) / (self.high - self.low) * (self.strip_width - 24)


def draw_tree(
    tree: Tree, returns: Mapping[int, Sequence[float]], action_labels: Sequence[str], *, narrow: bool = False
) -> tuple[Element, list[int]]:
    """Return the drawing and the nodes in it; ``returns`` has the samples behind each choice at the root."""
    placed = layout_tree(tree)
    axes = _axes(tree, placed, returns)
    if narrow:
        axes = replace(axes, width=NARROW_WIDTH, strip_width=NARROW_STRIP)
    place = {shown.node: shown for shown in placed.nodes}
    height = TREE_TOP + placed.rows * axes.row + 14
    edges: list[Element] = []
    nodes: list[Element] = []
    # what is chosen is drawn last, so that nothing lies over it
    for shown in sorted(placed.nodes, key=lambda shown: bool(tree.chosen[shown.node])):
        if shown.node != ROOT:
            edges.append(_edge(tree, shown, place[int(tree.parent[shown.node])], axes))
        nodes.append(_node(tree, shown, axes, action_labels))
    drawing = figure(
        (axes.width, height),
        _ruler(axes, height),
        group(*edges, class_="edges"),
        group(*nodes, class_="nodes"),
        _strip(tree, [place[int(c)] for c in tree.children(ROOT)], axes, returns),
        label="The planning tree of this decision",
        class_="scene tree",
    )
    return drawing, [shown.node for shown in placed.nodes]


def _axes(tree: Tree, placed: TreeLayout, returns: Mapping[int, Sequence[float]]) -> TreeAxes:
    root = tree.children(ROOT)
    row = min(max(MIN_TREE_HEIGHT / placed.rows, ROW_HEIGHT), MAX_TREE_HEIGHT / placed.rows, 34.0)
    row = max(row, ROOT_CHOICE_HEIGHT / ROOT_CHOICE_ROWS)
    spread = np.nan_to_num(tree.spread[root])
    numbers: list[float] = [*(tree.value[root] - spread), *(tree.value[root] + spread)]
    numbers += [r for samples in returns.values() for r in samples]
    kept = [x for x in numbers if math.isfinite(x)] or [0.0]
    low, high = min(kept), max(kept)
    pad = 0.05 * (high - low) or 0.5
    half = 0.5 * _tick_step(high - low + 2 * pad, STRIP_TICKS)  # all dots are inside an axis with round ends
    return TreeAxes(
        placed.steps, row, half * math.floor((low - pad) / half), half * math.ceil((high + pad) / half)
    )


def _ruler(axes: TreeAxes, height: float) -> Element:
    """Draw the steps ahead along the top."""
    about = 6 if axes.width == TREE_WIDTH else 3
    ticks = [t for t in _round_ticks(0.0, axes.steps, about) if t == int(t)]
    parts = []
    for t in ticks:
        x = axes.x(t)
        parts.append(element("path", class_="grid", d=f"M{x:.1f} {TREE_TOP - 8}V{height - 8:.1f}"))
        parts.append(text_element(x, TREE_TOP - 14, "now" if t == 0 else f"{t:g}", class_="tick"))
    parts.append(text_element(axes.x(0) - 12, TREE_TOP - 28, "steps ahead", class_="tick unit"))
    return group(*parts, class_="ruler")


def _edge(tree: Tree, shown: PlacedNode, above: PlacedNode, axes: TreeAxes) -> Element:
    node = shown.node
    start, end = axes.at(above), axes.at(shown)
    strong = " chosen" if tree.chosen[node] else ""
    colour = action_class(int(tree.action[node]))
    kind = "choose" if tree.kind[node] == CHOICE else "happen"
    parts = [element("path", class_="line", d=_curve_data(start, end))]
    if tree.kind[node] == HYPER_STATE and int(tree.depth[node]) - int(tree.depth[above.node]) > 1:
        parts += _rewards(tree, node, start, end)
    share = tree.share[node]
    width = None
    if kind == "happen" and math.isfinite(share):
        width = round(0.7 + 2.2 * math.sqrt(min(float(share), 1.0)), 2)
    return group(*parts, class_=f"edge {kind} {colour}{strong}", data_node=node, stroke_width=width)


def _rewards(tree: Tree, node: int, start: Point, end: Point) -> list[Element]:
    """Draw dots where a rollout collects rewards."""
    begin, stop = int(tree.path_begin[node]), int(tree.path_begin[node + 1])
    gains = tree.path_reward[begin:stop]
    paid = np.flatnonzero(np.nan_to_num(gains) > 0.0)
    if not len(paid) or len(paid) > MAX_REWARD_DOTS:
        return []
    most = float(np.nanmax(tree.path_reward))
    dots = []
    for k in paid.tolist():
        x, y = _on_curve(start, end, (k + 1) / (stop - begin))
        dots.append(
            element("circle", class_="gain", cx=x, cy=y, r=1.2 + 1.6 * math.sqrt(float(gains[k]) / most))
        )
    return dots


def _curve_data(start: Point, end: Point) -> str:
    """Return path data of a flat S from left to right."""
    middle = (start[0] + end[0]) / 2
    numbers = (*start, middle, start[1], middle, end[1], *end)
    return "M{} {}C{} {} {} {} {} {}".format(*(format_attribute(float(x)) for x in numbers))


def _on_curve(start: Point, end: Point, t: float) -> Point:
    """Return the point of the curve at parameter t; x is not quite linear in t, which no one sees."""
    middle = (start[0] + end[0]) / 2
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return a * start[0] + (b + c) * middle + d * end[0], (a + b) * start[1] + (c + d) * end[1]


def _node(tree: Tree, shown: PlacedNode, axes: TreeAxes, action_labels: Sequence[str]) -> Element:
    node = shown.node
    x, y = axes.at(shown)
    small = min(1.0, axes.row / 13)
    strong = " chosen" if tree.chosen[node] else ""
    parts = []
    if tree.kind[node] == CHOICE:
        side = 5.2 * (1.25 if tree.parent[node] == ROOT else max(small, 0.6))
        box = {"x": x - side, "y": y - side, "width": 2 * side, "height": 2 * side, "rx": 3.0}
        parts.append(element("rect", class_="mark", **box))
        if tree.parent[node] == ROOT:
            parts.append(_choice_label(tree, node, x, y, side, action_labels))
        elif shown.hidden and not shown.open:
            parts.append(text_element(x + side + 4, y, f"+{shown.hidden}", class_="more", dy="0.35em"))
        colour = f" {action_class(int(tree.action[node]))}"
    else:
        radius = 8.0 if node == ROOT else max(2.4, 4.6 * small)
        parts.append(element("circle", class_="mark", cx=x, cy=y, r=radius))
        if not shown.open and node != ROOT and axes.row >= 9 and math.isfinite(tree.value[node]):
            parts.append(
                text_element(x + radius + 4, y, _leaf_label(tree, node, shown), class_="leaf", dy="0.35em")
            )
        colour = " root" if node == ROOT else f" v{_fifth(tree.value[node], axes)}"
    kind = "choice" if tree.kind[node] == CHOICE else "hyper"
    return group(*parts, class_=f"node {kind}{colour}{strong}", data_node=node, tabindex=0)


def _choice_label(
    tree: Tree, node: int, x: float, y: float, side: float, action_labels: Sequence[str]
) -> Element:
    name = action_labels[int(tree.action[node])]
    return text_element(x, y - side - 4, f"{name} {_short(tree.value[node])}", class_="label")


def _leaf_label(tree: Tree, node: int, shown: PlacedNode) -> str:
    """Return what was collected on the way to a leaf, or its value where the way is a single step."""
    path = int(tree.path_begin[node + 1] - tree.path_begin[node])
    number = tree.reward[node] if path > 1 else tree.value[node]
    return _short(number) + (f"  +{shown.hidden}" if shown.hidden else "")


def _fifth(value: float, axes: TreeAxes) -> int:
    """Return the number of one of the five colours of the value ramp."""
    place = (float(value) - axes.low) / (axes.high - axes.low) if math.isfinite(value) else 0.0
    return round(4 * min(max(place, 0.0), 1.0))


def _strip(
    tree: Tree, choices: list[PlacedNode], axes: TreeAxes, returns: Mapping[int, Sequence[float]]
) -> Element:
    """Draw the returns of the choices at the root, each at the height of its choice."""
    parts = [
        text_element(
            axes.width - axes.strip_width / 2,
            TREE_TOP - 24,
            "returns, discounted" if axes.width == TREE_WIDTH else "returns",
            class_="tick unit",
        ),
        element(
            "path", class_="grid", d=f"M{axes.strip(axes.low):.1f} {TREE_TOP - 4}H{axes.strip(axes.high):.1f}"
        ),
    ]
    bottom = TREE_TOP + max(choice.y for choice in choices) * axes.row + 16
    ticks = _round_ticks(axes.low, axes.high, STRIP_TICKS)
    for value in ticks if axes.width == TREE_WIDTH else ticks[:: max(len(ticks) - 1, 1)]:
        x = axes.strip(value)
        parts.append(element("path", class_="grid", d=f"M{x:.1f} {TREE_TOP - 4}V{bottom:.1f}"))
        parts.append(text_element(x, TREE_TOP - 9, f"{value:g}", class_="tick"))
    for choice in choices:
        parts.append(_sample_row(tree, choice.node, axes.at(choice)[1], axes, returns.get(choice.node, ())))
    return group(*parts, class_="strip")


def _sample_row(tree: Tree, node: int, y: float, axes: TreeAxes, samples: Sequence[float]) -> Element:
    mean, spread = float(tree.value[node]), float(tree.spread[node])
    strong = " chosen" if tree.chosen[node] else ""
    parts = []
    if math.isfinite(spread) and spread > 0.0:
        x0, x1 = axes.strip(mean - spread), axes.strip(mean + spread)
        parts.append(element("path", class_="spread", d=f"M{x0:.1f} {y:.1f}H{x1:.1f}"))
    offsets: NDArray[np.float64] = 3.0 * np.sin(2.4 * np.arange(len(samples)))
    parts += [
        element("circle", class_="sample", cx=axes.strip(r), cy=y + float(d), r=2.6)
        for r, d in zip(samples, offsets)
        if math.isfinite(r)
    ]
    if math.isfinite(mean):
        x = axes.strip(mean)
        parts.append(element("path", class_="mean", d=f"M{x:.1f} {y - 8:.1f}V{y + 8:.1f}"))
    colour = action_class(int(tree.action[node]))
    return group(*parts, class_=f"samples {colour}{strong}", data_node=node)


def _round_ticks(low: float, high: float, about: int) -> list[float]:
    """Return round numbers in an interval, about so many."""
    step = _tick_step(high - low, about)
    if step <= 0.0:
        return []
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def _tick_step(span: float, about: int) -> float:
    """Return the round distance of about so many ticks over a span; 0 where there is none."""
    step = span / about
    if step <= 0.0 or not math.isfinite(step):
        return 0.0
    size = 10.0 ** math.floor(math.log10(step))
    return float(size * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * size >= step * 0.999))


def _short(value: Any) -> str:
    number = float(value)
    return f"{number:.3g}" if math.isfinite(number) else "–"
