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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
from bamdp.planners.tree import CHOICE, HYPER_STATE, ROOT, Tree

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


class PlacedNode(NamedTuple):
    """A node that is drawn: ``x`` in steps ahead (choices lie between), ``y`` in rows."""

    node: int
    x: float
    y: float
    hidden: int  # children that are not drawn
    open: bool  # whether any is


class TreeLayout(NamedTuple):
    """The drawn nodes, in the order of the tree, parents first."""

    nodes: list[PlacedNode]
    rows: float
    steps: float  # the largest x


def layout_tree(tree: Tree, rows: int = TREE_ROWS) -> TreeLayout:
    """Choose the nodes that are drawn, about ``rows`` rows of them, and place them."""
    stage = int(np.diff(tree.path_begin).max())  # steps between two choices
    shown = _select(tree, rows, MAX_OUTCOMES if stage == 1 else MAX_ROLLOUTS)
    y: dict[int, float] = {}
    free = above = 0.0  # rows that are taken, and those above the present choice at the root

    def place(node: int) -> None:
        nonlocal free, above
        below = shown[node]
        for child in below:
            place(child)
        if below:
            y[node] = (y[below[0]] + y[below[-1]]) / 2
        else:
            gap = 1.0 if tree.kind[node] == HYPER_STATE else 1.35
            y[node] = free + gap / 2
            free += gap
        if node != ROOT and tree.parent[node] == ROOT:
            # some air between the choices at the root
            free = above = max(free + 0.5, above + ROOT_CHOICE_ROWS)

    place(ROOT)
    x = tree.depth + np.where(tree.kind == CHOICE, 0.42 if stage == 1 else 0.16 * stage, 0.0)
    n_children = np.bincount(tree.parent[1:], minlength=len(tree)).tolist()
    nodes = [
        PlacedNode(node, float(x[node]), y[node], n_children[node] - len(below), bool(below))
        for node, below in sorted(shown.items())
    ]
    return TreeLayout(nodes, free, max(1.0, max(shown.x for shown in nodes)))


def _select(tree: Tree, rows: int, most: int) -> dict[int, list[int]]:
    """Return the drawn children of every drawn node."""
    shown: dict[int, list[int]] = {}
    waiting: list[tuple[float, int, int]] = []  # -weight, node, level

    def show(node: int, below: NDArray[np.int64], weight: float, level: int) -> None:
        shown[node] = below.tolist()
        for child, part in zip(shown[node], _parts(tree, node, below).tolist()):
            shown[child] = []
            heapq.heappush(waiting, (-weight * part, child, level))

    show(ROOT, tree.children(ROOT), 1.0, 0)
    used = len(shown[ROOT])
    branches_again = ((tree.kind[1:] == CHOICE) & (tree.parent[1:] != ROOT)).any()
    first = max(2, rows // (2 * used)) if most == MAX_ROLLOUTS and branches_again else most
    while waiting and used < rows:
        weight, node, level = heapq.heappop(waiting)
        below = _likeliest(tree, node, most if level else min(first, most))
        if len(below) and level < 2 * MAX_LEVELS and used + len(below) - 1 <= rows + most:
            used += len(below) - 1
            show(node, below, -weight, level + 1)
    return shown


def _likeliest(tree: Tree, node: int, most: int) -> NDArray[np.int64]:
    """Return the children that are drawn, in the order of the tree: the likeliest outcomes of a choice."""
    below = tree.children(node)
    if tree.kind[node] == HYPER_STATE or len(below) <= most:
        return below
    order = np.argsort(-tree.share[below], kind="stable")
    return np.sort(below[order[:most]])


def _parts(tree: Tree, node: int, below: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the parts of a node's weight that its children have."""
    if tree.kind[node] == CHOICE:
        parts = tree.share[below]
    elif len(set(tree.count[below].tolist())) > 1:
        parts = tree.count[below] / max(int(tree.count[below].sum()), 1)
    else:
        best = below[np.argmax(np.where(np.isnan(tree.value[below]), -np.inf, tree.value[below]))]
        parts = np.where(below == best, 1.0, OTHER_CHOICE_WEIGHT)
    return np.nan_to_num(parts)


# --- the drawing -----------------------------------------------------------------------------------------------


def draw_tree(
    tree: Tree, returns: Mapping[int, Sequence[float]], action_labels: Sequence[str], *, narrow: bool = False
) -> tuple[Element, list[int]]:
    """Return the drawing and the nodes in it; ``returns`` has the samples behind each choice at the root."""
    painter = _TreePainter(tree, returns, action_labels, narrow)
    return painter.draw(), [shown.node for shown in painter.layout.nodes]


class _TreePainter:
    """Draws a tree: maps steps, rows and returns to pixels, and draws each part there."""

    def __init__(
        self,
        tree: Tree,
        returns: Mapping[int, Sequence[float]],
        action_labels: Sequence[str],
        narrow: bool,
    ) -> None:
        self.tree, self.returns, self.action_labels, self.narrow = tree, returns, action_labels, narrow
        self.width, self.strip_width = (NARROW_WIDTH, NARROW_STRIP) if narrow else (TREE_WIDTH, STRIP_WIDTH)
        self.layout = layout_tree(tree)
        rows = self.layout.rows
        row = min(max(MIN_TREE_HEIGHT / rows, ROW_HEIGHT), MAX_TREE_HEIGHT / rows, 34.0)
        self.row = max(row, ROOT_CHOICE_HEIGHT / ROOT_CHOICE_ROWS)
        self.height = TREE_TOP + rows * self.row + 14
        self.low, self.high = self._ends_of_returns()

    def _ends_of_returns(self) -> tuple[float, float]:
        """Return the ends of the axis of returns: round ones, with all dots inside."""
        root = self.tree.children(ROOT)
        spread = np.nan_to_num(self.tree.spread[root])
        numbers: list[float] = [*(self.tree.value[root] - spread), *(self.tree.value[root] + spread)]
        numbers += [r for samples in self.returns.values() for r in samples]
        kept = [x for x in numbers if math.isfinite(x)] or [0.0]
        low, high = min(kept), max(kept)
        pad = 0.05 * (high - low) or 0.5
        half = 0.5 * _tick_step(high - low + 2 * pad, STRIP_TICKS)
        return half * math.floor((low - pad) / half), half * math.ceil((high + pad) / half)

    def at(self, shown: PlacedNode) -> Point:
        """Return where a node is drawn."""
        return self.x(shown.x), TREE_TOP + shown.y * self.row

    def x(self, steps: float) -> float:
        """Return the x of a number of steps ahead."""
        room = self.width - self.strip_width - 2 * TREE_MARGIN - 34
        return TREE_MARGIN + steps / self.layout.steps * room

    def strip(self, value: float) -> float:
        """Return the x of a return in the strip at the right."""
        left = self.width - self.strip_width
        return left + 12 + (value - self.low) / (self.high - self.low) * (self.strip_width - 24)

    def draw(self) -> Element:
        """Draw everything; what is chosen is drawn last, so that nothing lies over it."""
        place = {shown.node: shown for shown in self.layout.nodes}
        order = sorted(self.layout.nodes, key=lambda shown: bool(self.tree.chosen[shown.node]))
        edges = [
            self._edge(shown, place[int(self.tree.parent[shown.node])])
            for shown in order
            if shown.node != ROOT
        ]
        return figure(
            (self.width, self.height),
            self._ruler(),
            group(*edges, class_="edges"),
            group(*map(self._node, order), class_="nodes"),
            self._strip([place[int(choice)] for choice in self.tree.children(ROOT)]),
            label="The planning tree of this decision",
            class_="scene tree",
        )

    def _ruler(self) -> Element:
        """Draw the steps ahead along the top."""
        parts = []
        for t in _round_ticks(0.0, self.layout.steps, 3 if self.narrow else 6):
            if t == int(t):
                x = self.x(t)
                parts.append(
                    element("path", class_="grid", d=f"M{x:.1f} {TREE_TOP - 8}V{self.height - 8:.1f}")
                )
                parts.append(text_element(x, TREE_TOP - 14, "now" if t == 0 else f"{t:g}", class_="tick"))
        parts.append(text_element(self.x(0) - 12, TREE_TOP - 28, "steps ahead", class_="tick unit"))
        return group(*parts, class_="ruler")

    def _classes(self, kind: str, node: int, colour: str = "") -> str:
        """Return the classes of a part: its kind, the colour of its action or another, and whether it is chosen."""
        colour = colour or action_class(int(self.tree.action[node]))
        return f"{kind} {colour}{' chosen' if self.tree.chosen[node] else ''}"

    def _edge(self, shown: PlacedNode, above: PlacedNode) -> Element:
        tree, node = self.tree, shown.node
        start, end = self.at(above), self.at(shown)
        parts = [element("path", class_="line", d=_curve_data(start, end))]
        if tree.kind[node] == CHOICE:
            return group(*parts, class_=self._classes("edge choose", node), data_node=node)
        if int(tree.depth[node]) - int(tree.depth[above.node]) > 1:
            parts += self._rewards(node, start, end)
        share = tree.share[node]
        width = round(0.7 + 2.2 * math.sqrt(min(float(share), 1.0)), 2) if math.isfinite(share) else None
        return group(*parts, class_=self._classes("edge happen", node), data_node=node, stroke_width=width)

    def _rewards(self, node: int, start: Point, end: Point) -> list[Element]:
        """Draw dots where a rollout collects rewards."""
        begin, stop = self.tree.path_begin[node : node + 2].tolist()
        gains = self.tree.path_reward[begin:stop]
        paid = np.flatnonzero(np.nan_to_num(gains) > 0.0)
        if not len(paid) or len(paid) > MAX_REWARD_DOTS:
            return []
        most = float(np.nanmax(self.tree.path_reward))
        dots = []
        for k in paid.tolist():
            x, y = _on_curve(start, end, (k + 1) / (stop - begin))
            radius = 1.2 + 1.6 * math.sqrt(float(gains[k]) / most)
            dots.append(element("circle", class_="gain", cx=x, cy=y, r=radius))
        return dots

    def _node(self, shown: PlacedNode) -> Element:
        tree, node = self.tree, shown.node
        x, y = self.at(shown)
        small = min(1.0, self.row / 13)
        if tree.kind[node] == CHOICE:
            at_root = tree.parent[node] == ROOT
            side = 5.2 * (1.25 if at_root else max(small, 0.6))
            box = {"x": x - side, "y": y - side, "width": 2 * side, "height": 2 * side, "rx": 3.0}
            parts = [element("rect", class_="mark", **box)]
            if at_root:
                words = f"{self.action_labels[int(tree.action[node])]} {_short(tree.value[node])}"
                parts.append(text_element(x, y - side - 4, words, class_="label"))
            elif shown.hidden and not shown.open:
                parts.append(text_element(x + side + 4, y, f"+{shown.hidden}", class_="more", dy="0.35em"))
            classes = self._classes("node choice", node)
        else:
            radius = 8.0 if node == ROOT else max(2.4, 4.6 * small)
            parts = [element("circle", class_="mark", cx=x, cy=y, r=radius)]
            if not shown.open and node != ROOT and self.row >= 9 and math.isfinite(tree.value[node]):
                words = self._leaf_label(shown)
                parts.append(text_element(x + radius + 4, y, words, class_="leaf", dy="0.35em"))
            classes = self._classes("node hyper", node, "root" if node == ROOT else self._value_class(node))
        return group(*parts, class_=classes, data_node=node, tabindex=0)

    def _leaf_label(self, shown: PlacedNode) -> str:
        """Return what was collected on the way to a leaf, or its value where the way is a single step."""
        far = len(self.tree.path_of(shown.node)) > 1
        number = (self.tree.reward if far else self.tree.value)[shown.node]
        return _short(number) + (f"  +{shown.hidden}" if shown.hidden else "")

    def _value_class(self, node: int) -> str:
        """Return the class of one of the five colours of the value ramp."""
        value = float(self.tree.value[node])
        place = (value - self.low) / (self.high - self.low) if math.isfinite(value) else 0.0
        return f"v{round(4 * min(max(place, 0.0), 1.0))}"

    def _strip(self, choices: list[PlacedNode]) -> Element:
        """Draw the returns of the choices at the root, each at the height of its choice."""
        title = "returns" if self.narrow else "returns, discounted"
        axis = f"M{self.strip(self.low):.1f} {TREE_TOP - 4}H{self.strip(self.high):.1f}"
        parts = [
            text_element(self.width - self.strip_width / 2, TREE_TOP - 24, title, class_="tick unit"),
            element("path", class_="grid", d=axis),
        ]
        bottom = TREE_TOP + max(choice.y for choice in choices) * self.row + 16
        ticks = _round_ticks(self.low, self.high, STRIP_TICKS)
        for value in ticks[:: max(len(ticks) - 1, 1)] if self.narrow else ticks:
            x = self.strip(value)
            parts.append(element("path", class_="grid", d=f"M{x:.1f} {TREE_TOP - 4}V{bottom:.1f}"))
            parts.append(text_element(x, TREE_TOP - 9, f"{value:g}", class_="tick"))
        parts += [self._sample_row(choice.node, self.at(choice)[1]) for choice in choices]
        return group(*parts, class_="strip")

    def _sample_row(self, node: int, y: float) -> Element:
        mean, spread = float(self.tree.value[node]), float(self.tree.spread[node])
        parts = []
        if math.isfinite(spread) and spread > 0.0:
            x0, x1 = self.strip(mean - spread), self.strip(mean + spread)
            parts.append(element("path", class_="spread", d=f"M{x0:.1f} {y:.1f}H{x1:.1f}"))
        for i, sample in enumerate(self.returns.get(node, ())):
            if math.isfinite(sample):
                lift = y + 3.0 * math.sin(2.4 * i)
                parts.append(element("circle", class_="sample", cx=self.strip(sample), cy=lift, r=2.6))
        if math.isfinite(mean):
            parts.append(element("path", class_="mean", d=f"M{self.strip(mean):.1f} {y - 8:.1f}V{y + 8:.1f}"))
        return group(*parts, class_=self._classes("samples", node), data_node=node)


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
