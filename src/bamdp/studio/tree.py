"""Drawing of a planning tree from left to right: the current state, the choices, and their possible outcomes.

**Selection.** A tree may have a hundred thousand nodes, but only about fifty rows are readable. Nodes are therefore
expanded one at a time in order of decreasing weight, until the rows are used up. The root has weight 1. The outcomes
of a choice divide its weight according to their probabilities. At a hyper-state, the best choice receives the full
weight and every other choice half of it. All choices at the root are shown. Time runs to the right: the x coordinate
of a hyper-state is its number of steps ahead.

**Appearance.** As in Figure 1 of the paper, circles are hyper-states and squares are choices. The colour of a choice
is that of its (first) action, and the fill of a hyper-state indicates its value. Dots on a rollout mark rewards, with
larger dots for larger rewards. The maximising branch is emphasised.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from bamdp.envs.drawing import Point, colour_of, element, figure, group, text_element, written
from bamdp.planners.tree import CHOICE, ROOT, Tree
from bamdp.studio.view import short

TREE_ROWS = 46  # approximate number of rows
MAX_CHILDREN = 8  # drawn per choice
MAX_LEVELS = 20  # levels per branch
OTHER_CHOICE_WEIGHT = 0.5  # of a suboptimal choice, relative to the best
MAX_REWARD_DOTS = 12  # per rollout
WIDTH, MARGIN, TOP, LABEL_WIDTH = 900.0, 26.0, 30.0, 60.0  # pixels
MIN_HEIGHT, MAX_HEIGHT, MAX_ROW = 250.0, 560.0, 34.0
ROOT_ROW = 2.6  # minimum rows per choice at the root, whose label is above it


class PlacedNode(NamedTuple):
    """Drawn node: ``x`` in steps ahead (choices lie in between), ``y`` in rows."""

    node: int
    x: float
    y: float
    hidden: int  # number of children not drawn
    open: bool  # whether any child is drawn


def layout_tree(tree: Tree) -> list[PlacedNode]:
    """Select and place the nodes to draw, parents first."""
    shown = _select(tree)
    y: dict[int, float] = {}
    free = 0.0  # next free row

    def place(node: int) -> None:
        nonlocal free
        begin = free
        for child in shown[node]:
            place(child)
        if shown[node]:
            y[node] = (y[shown[node][0]] + y[shown[node][-1]]) / 2
        else:
            y[node] = free + 0.5
            free += 1.0
        if tree.parent[node] == ROOT:  # extra space between the choices at the root
            free = max(free + 0.5, begin + ROOT_ROW)

    place(ROOT)
    stage = int(np.diff(tree.path_begin).max())  # steps between two choices
    x = tree.depth + np.where(tree.kind == CHOICE, 0.42 if stage == 1 else 0.16 * stage, 0.0)
    n_children = np.bincount(tree.parent[1:], minlength=len(tree)).tolist()
    return [
        PlacedNode(node, float(x[node]), y[node], n_children[node] - len(below), bool(below))
        for node, below in sorted(shown.items())
    ]


def _select(tree: Tree) -> dict[int, list[int]]:
    """Return the drawn children of every drawn node."""
    shown: dict[int, list[int]] = {ROOT: []}
    waiting: list[tuple[float, int, int]] = [(-1.0, ROOT, 0)]  # -weight, node, level
    used = 0
    while waiting and used < TREE_ROWS:
        weight, node, level = heapq.heappop(waiting)
        below = tree.children(node)
        if tree.kind[node] == CHOICE and len(below) > MAX_CHILDREN:
            below = np.sort(below[np.argsort(-tree.share[below], kind="stable")[:MAX_CHILDREN]])
        if not len(below) or level > MAX_LEVELS:
            continue
        used += len(below) - (level > 0)
        shown[node] = below.tolist()
        for child, part in zip(shown[node], _parts(tree, node, below).tolist()):
            shown[child] = []
            heapq.heappush(waiting, (weight * part, child, level + 1))
    return shown


def _parts(tree: Tree, node: int, below: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the fraction of a node's weight assigned to each child."""
    if tree.kind[node] == CHOICE:
        return np.nan_to_num(tree.share[below])
    best = np.argmax(np.where(np.isnan(tree.value[below]), -np.inf, tree.value[below]))
    return np.where(np.arange(len(below)) == best, 1.0, OTHER_CHOICE_WEIGHT)


# --- the drawing -----------------------------------------------------------------------------------------------


def draw_tree(tree: Tree, action_labels: Sequence[str]) -> tuple[Element, list[int]]:
    """Return the drawing and its nodes."""
    painter = _TreePainter(tree, action_labels)
    return painter.draw(), [shown.node for shown in painter.nodes]


class _TreePainter:
    """Painter that maps steps and rows to pixels and draws each part of the tree."""

    def __init__(self, tree: Tree, action_labels: Sequence[str]) -> None:
        self.tree, self.action_labels = tree, action_labels
        self.nodes = layout_tree(tree)
        rows = max(shown.y for shown in self.nodes) + 1.0
        self.steps = max(1.0, *(shown.x for shown in self.nodes))
        self.row = min(max(MIN_HEIGHT / rows, 15.0), MAX_HEIGHT / rows, MAX_ROW)
        self.height = TOP + rows * self.row + 14
        values = tree.value[[shown.node for shown in self.nodes]]
        self.low, self.high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)

    def at(self, shown: PlacedNode) -> Point:
        """Return the position of a node."""
        return self.x(shown.x), TOP + shown.y * self.row

    def x(self, steps: float) -> float:
        """Return the x coordinate for a number of steps ahead."""
        return MARGIN + steps / self.steps * (WIDTH - 2 * MARGIN - LABEL_WIDTH)

    def draw(self) -> Element:
        """Draw the tree, with the chosen branch last so that it stays on top."""
        place = {shown.node: shown for shown in self.nodes}
        order = sorted(self.nodes, key=lambda shown: bool(self.tree.chosen[shown.node]))
        edges = [self._edge(one, place[int(self.tree.parent[one.node])]) for one in order if one.node != ROOT]
        parts = self._ruler(), group(*edges, class_="edges"), group(*map(self._node, order), class_="nodes")
        label = "The planning tree of this decision"
        return figure((WIDTH, self.height), *parts, label=label, class_="scene tree")

    def _ruler(self) -> Element:
        """Draw the scale of steps ahead along the top."""
        step = next(m * 10**k for k in range(9) for m in (1, 2, 5) if m * 10**k * 6 >= self.steps)
        parts = []
        for t in range(0, int(self.steps) + 1, step):
            x = self.x(t)
            words = "now" if t == 0 else f"{t} steps ahead" if t == step else str(t)
            parts.append(
                element("path", class_="grid", d=f"M{written(x)} {TOP - 8}V{written(self.height - 8)}")
            )
            parts.append(text_element(x, TOP - 14, words, class_="tick"))
        return group(*parts, class_="ruler")

    def _edge(self, shown: PlacedNode, above: PlacedNode) -> Element:
        tree, node = self.tree, shown.node
        start, end = self.at(above), self.at(shown)
        choice, share = tree.kind[node] == CHOICE, float(tree.share[node])
        bold = None if choice or not math.isfinite(share) else 0.7 + 2.2 * math.sqrt(min(share, 1.0))
        dots = [] if choice else self._rewards(node, start, end)
        kind = f"edge {'choose' if choice else 'happen'} stroke{colour_of(int(tree.action[node]))}"
        classes = f"{kind}{' chosen' if tree.chosen[node] else ''}"
        line = element("path", class_="line", d=_curve_data(start, end))
        return group(line, *dots, class_=classes, data_node=node, stroke_width=bold)

    def _rewards(self, node: int, start: Point, end: Point) -> list[Element]:
        """Draw a dot at each reward collected during a rollout."""
        begin, stop = self.tree.path_begin[node : node + 2].tolist()
        gains = np.nan_to_num(self.tree.path_reward[begin:stop])
        paid = np.flatnonzero(gains > 0.0).tolist()
        if stop - begin == 1 or len(paid) > MAX_REWARD_DOTS:
            return []
        most = float(np.nanmax(self.tree.path_reward))
        dots = []
        for k in paid:
            x, y = _on_curve(start, end, (k + 1) / (stop - begin))
            dots.append(
                element("circle", class_="gain", cx=x, cy=y, r=1.2 + 1.6 * math.sqrt(gains[k] / most))
            )
        return dots

    def _node(self, shown: PlacedNode) -> Element:
        tree, node = self.tree, shown.node
        x, y = self.at(shown)
        small, value = min(1.0, self.row / 13), float(tree.value[node])
        more = f"+{shown.hidden}" if shown.hidden and not shown.open else ""
        if tree.kind[node] == CHOICE:
            at_root = tree.parent[node] == ROOT
            side = 6.5 if at_root else 5.2 * max(small, 0.6)
            box = {"x": x - side, "y": y - side, "width": 2 * side, "height": 2 * side, "rx": 3.0}
            parts = [element("rect", class_=f"mark fill{colour_of(int(tree.action[node]))}", **box)]
            if at_root:
                words = f"{self.action_labels[int(tree.action[node])]} {short(value)}"
                parts.append(text_element(x, y - side - 4, words, class_="label"))
            elif more:
                parts.append(text_element(x + side + 4, y, more, class_="leaf", dy="0.35em"))
        else:
            radius = 8.0 if node == ROOT else max(2.4, 4.6 * small)
            fill = "root" if node == ROOT else self._value_class(value)
            parts = [element("circle", class_=f"mark {fill}", cx=x, cy=y, r=radius)]
            if not shown.open and self.row >= 9 and math.isfinite(value):
                # reward collected along the path, or the value if the path is a single step
                number = tree.reward[node] if len(tree.path_of(node)) > 1 else value
                words = f"{short(float(number))} {more}".strip()
                parts.append(text_element(x + radius + 4, y, words, class_="leaf", dy="0.35em"))
        classes = f"node {'choice' if tree.kind[node] == CHOICE else 'hyper'}{' chosen' if tree.chosen[node] else ''}"
        return group(*parts, class_=classes, data_node=node, tabindex=0)

    def _value_class(self, value: float) -> str:
        """Return the CSS class of one of the five value colours."""
        level = (value - self.low) / (self.high - self.low or 1.0) if math.isfinite(value) else 0.0
        return f"v{round(4 * min(max(level, 0.0), 1.0))}"


def _curve_data(start: Point, end: Point) -> str:
    """Return the path data for a flat S-curve from left to right."""
    middle = (start[0] + end[0]) / 2
    return "M{} {}C{} {} {} {} {} {}".format(*map(written, (*start, middle, start[1], middle, end[1], *end)))


def _on_curve(start: Point, end: Point, t: float) -> Point:
    """Return the point on the curve at parameter t; x is only approximately linear in t."""
    middle = (start[0] + end[0]) / 2
    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    return a * start[0] + (b + c) * middle + d * end[0], (a + b) * start[1] + (c + d) * end[1]
