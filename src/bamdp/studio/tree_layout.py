"""Which part of a planning tree is drawn, and where.

A tree may have a hundred thousand nodes; some fifty rows can be read. Nodes are opened one by one, the weightiest
first, until the rows are used up. The weight of the root is 1; what may come of a choice shares its weight by
probability (or share of the samples); of the choices at a hyper-state the best has the whole weight and the others half
of it, or their part of the simulations where these differ. All choices at the root are always shown; where rollouts
branch again, each has so few of them that there is room for what comes then.

Time runs to the right: a hyper-state's x is its number of steps ahead. Rows run down, in the order of the tree.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bamdp.planners.views.tree import CHOICE, HYPER_STATE, ROOT, Tree

ROWS = 46  # that are filled, about
MOST_CHILDREN = 16  # of one choice that are drawn, where they are rollouts
MOST_NEXT = 6  # the same where they are single steps
ROOT_ROWS = 3.0  # that a choice at the root takes at least: its label stands above it
MOST_LEVELS = 10  # hyper-states on a branch, where each step is one
Children = Callable[[int], NDArray[np.int64]]
OTHER = 0.5  # weight of a choice that is not the best, relative to the best


@dataclass(frozen=True)
class Shown:
    """A node that is drawn: ``x`` in steps ahead (choices lie between), ``y`` in rows."""

    node: int
    x: float
    y: float
    hidden: int  # children that are not drawn
    open: bool  # whether any is


@dataclass(frozen=True)
class Layout:
    """The drawn nodes, in the order of the tree, parents first."""

    nodes: list[Shown]
    rows: float
    steps: float  # the largest x


def layout(tree: Tree, rows: int = ROWS) -> Layout:
    """Choose and place."""
    children = _children(tree)
    stage = int(np.diff(tree.path_begin).max())  # steps between two choices
    shown = _select(tree, children, rows, MOST_NEXT if stage == 1 else MOST_CHILDREN)
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
            free = above = max(free + 0.5, above + ROOT_ROWS)  # some air between the choices at the root
    nodes = [
        Shown(node, _x(tree, node, stage), y[node], len(children(node)) - len(shown[node]), bool(shown[node]))
        for node in sorted(shown)
    ]
    return Layout(nodes, free, max(1.0, max(shown.x for shown in nodes)))


def _children(tree: Tree) -> Children:
    """A function from a node to its children, quick for many nodes."""
    order = np.argsort(tree.parent[1:], kind="stable") + 1
    bounds = np.searchsorted(tree.parent[order], np.arange(len(tree) + 1))
    return lambda node: order[bounds[node] : bounds[node + 1]]


def _select(tree: Tree, children: Children, rows: int, most: int) -> dict[int, list[int]]:
    """The drawn children of every drawn node."""
    shown: dict[int, list[int]] = {ROOT: children(ROOT).tolist()}
    shown.update({child: [] for child in shown[ROOT]})
    waiting: list[tuple[float, int, float, int]] = []  # -weight, node, weight, level
    for child, weight in _weights(tree, ROOT, children(ROOT), 1.0):
        heapq.heappush(waiting, (-weight, child, weight, 0))
    used = len(shown[ROOT])
    rollouts = most == MOST_CHILDREN
    first = max(2, rows // (2 * used)) if rollouts and _branches_again(tree) else most
    while waiting and used < rows:
        _, node, weight, level = heapq.heappop(waiting)
        below = _first(tree, node, children(node), most if level else min(first, most))
        if not len(below) or level >= 2 * MOST_LEVELS or used + len(below) - 1 > rows + most:
            continue
        used += len(below) - 1
        shown[node] = below.tolist()
        for child, part in _weights(tree, node, below, weight):
            shown[child] = []
            heapq.heappush(waiting, (-part, child, part, level + 1))
    return shown


def _branches_again(tree: Tree) -> bool:
    """Whether there are choices elsewhere than at the root."""
    return bool(((tree.kind[1:] == CHOICE) & (tree.parent[1:] != ROOT)).any())


def _first(tree: Tree, node: int, below: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The children that are drawn, in the order of the tree: the likeliest outcomes of a choice."""
    if tree.kind[node] == HYPER_STATE or len(below) <= most:
        return below
    order = np.argsort(-tree.share[below], kind="stable")
    return np.sort(below[order[:most]])


def _weights(tree: Tree, node: int, below: NDArray[np.int64], weight: float) -> list[tuple[int, float]]:
    if tree.kind[node] == CHOICE:
        parts = tree.share[below]
    elif len(set(tree.count[below].tolist())) > 1:
        parts = tree.count[below] / max(int(tree.count[below].sum()), 1)
    else:
        best = below[np.argmax(np.where(np.isnan(tree.value[below]), -np.inf, tree.value[below]))]
        parts = np.where(below == best, 1.0, OTHER)
    return [(int(child), weight * float(part)) for child, part in zip(below, np.nan_to_num(parts))]


def _x(tree: Tree, node: int, stage: int) -> float:
    if tree.kind[node] == HYPER_STATE:
        return float(tree.depth[node])
    return float(tree.depth[node]) + (0.42 if stage == 1 else 0.16 * stage)
