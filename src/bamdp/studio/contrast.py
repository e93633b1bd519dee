"""Figure 1 of the paper with numbers: a full tree against the tree of this decision, for the same simulated steps.

A full tree tries every action, and after it every possible next state: with A actions and B possible outcomes it has
(A·B)^d hyper-states d steps ahead, each one simulated step away from its parent. DSS spends the same steps on N
policies followed M times for K steps, (N·M)^h hyper-states after h stages, and so sees K·H steps ahead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp.beliefs.belief import Belief
from bamdp.planners import DSS
from bamdp.planners.base import Planner
from bamdp.planners.shared.tree_sizes import dss_calls
from bamdp.planners.views.tree import HYPER_STATE, ROOT, Tree
from bamdp.studio import svg

WIDTH, PANEL, LEFT = 420.0, 128.0, 16.0
MOST_LINES = 240
MANY_REWARDS = 1_000_000
DEEPEST = 4  # steps of the full tree whose counts are listed


@dataclass(frozen=True)
class Contrast:
    """Node counts of the two trees."""

    actions: int
    outcomes: int  # possible next states of an action here, times rewards where these are drawn
    budget: int  # simulated steps of this decision
    hyper_states: int  # of this decision's tree
    depth: int  # steps that it looks ahead
    reach: float  # steps that the full tree looks ahead for the same; not whole if the last layer is a part
    full: list[int]  # hyper-states of the full tree, by steps ahead

    def data(self) -> dict[str, Any]:
        """For JSON; counts beyond 2^53 as text."""
        return {
            **vars(self),
            "full": [f"{n:.3g}" if n > 1e15 else n for n in self.full],
            "words": self.words(),
        }

    def words(self) -> str:
        """In a sentence."""
        return (
            f"With the {self.budget:,} simulated steps of this decision, a full tree ({self.actions} actions, "
            f"{self.outcomes:,} possible outcomes each) sees {_steps(self.reach)} ahead; this one sees "
            f"{self.depth}, with {self.hyper_states:,} hyper-states."
        )


def _steps(reach: float) -> str:
    if reach >= 1:
        whole = math.floor(reach)
        return f"{whole} step{'s' if whole > 1 else ''}" + (
            " and a part of the next" if reach > whole else ""
        )
    return f"only {reach:.0%} of a single step"


def contrast(planner: Planner, tree: Tree, belief: Belief) -> Contrast:
    """Count."""
    state = int(tree.state[ROOT])
    actions = np.flatnonzero(belief.space.allowed[state])
    possible = max(int(np.count_nonzero(belief.predictive(state, int(a)) > 0.0)) for a in actions)
    if belief.rewards.n_outcomes is not None and belief.rewards.n_outcomes <= MANY_REWARDS:
        possible *= int(belief.rewards.n_outcomes)
    inner = tree.n_hyper_states
    budget, hyper_states = len(tree.path), inner
    if not tree.complete and isinstance(planner, DSS):
        whole = dss_calls(planner.n_policies, planner.n_samples, planner.n_steps, planner.n_stages)
        budget, hyper_states = whole.calls, whole.nodes + whole.leaves
    width = len(actions) * possible
    deepest = int(tree.depth.max())
    return Contrast(
        actions=len(actions),
        outcomes=possible,
        budget=max(budget, 1),
        hyper_states=hyper_states,
        depth=deepest,
        reach=full_reach(width, max(budget, 1)),
        full=[width**d for d in range(min(DEEPEST, max(deepest, 1)) + 1)],
    )


def full_reach(width: int, budget: int) -> float:
    """How deep a full tree with ``width`` hyper-states below each gets with ``budget`` simulated steps."""
    reach, layer = 0.0, width
    while budget >= layer and reach < 10_000:
        budget -= layer
        layer *= width
        reach += 1
    return reach + budget / layer


def draw(found: Contrast, tree: Tree) -> str:
    """Both trees over one axis of steps ahead."""
    most = max(found.depth, found.reach, 1.0)

    def x(steps: float) -> float:
        return LEFT + steps / most * (WIDTH - 2 * LEFT)

    top, bottom = 24.0, PANEL + 62.0
    axis = bottom + PANEL + 10
    ticks = [0.0, most] if most < 4 else [0.0, round(most / 2), most]
    ruler = [svg.text(x(t), axis + 14, "now" if t == 0 else f"{t:g}", class_="tick") for t in ticks]
    ruler.append(svg.element("path", class_="grid", d=f"M{x(0):.1f} {axis}H{x(most):.1f}"))
    ruler.append(svg.text(WIDTH / 2, axis + 28, "steps ahead", class_="tick unit"))
    return svg.figure(
        (WIDTH, axis + 36),
        svg.text(LEFT, 14, "full tree", class_="title"),
        svg.group(*_full(found, x, top), class_="full"),
        svg.text(LEFT, bottom - 10, "this decision's tree", class_="title"),
        svg.group(*_own(tree, x, bottom), class_="own"),
        *ruler,
        label=found.words(),
        class_="scene contrast",
    )


def _full(found: Contrast, x: Any, top: float) -> list[str]:
    """Layer upon layer, until the budget is spent."""
    width = found.actions * found.outcomes
    parents = [top + PANEL / 2]
    parts: list[str] = []
    for layer in range(math.ceil(found.reach)):
        share = min(found.reach - layer, 1.0)
        count = min(max(round(width ** (layer + 1) * share), 1), MOST_LINES)
        rows = [top + PANEL * (i + 0.5) / count for i in range(count)]
        for i, y in enumerate(rows):
            start = x(layer), parents[i * len(parents) // count]
            parts.append(svg.element("path", class_="line", d=svg.lines([start, (x(layer + 1), y)])))
        parents = rows
        if len(parents) >= MOST_LINES:
            break
    return [*parts, svg.element("circle", class_="now", cx=x(0), cy=top + PANEL / 2, r=4.5)]


def _own(tree: Tree, x: Any, top: float) -> list[str]:
    """Straight lines between hyper-states."""
    hyper = np.flatnonzero(tree.kind == HYPER_STATE)
    if len(hyper) > MOST_LINES:  # some of them, and what stands above
        hyper = hyper[np.linspace(0, len(hyper) - 1, MOST_LINES).astype(int)]
        while True:
            above = tree.parent[tree.parent[hyper[hyper != ROOT]]]
            more = np.union1d(hyper, above)
            if len(more) == len(hyper):
                break
            hyper = more
    height: dict[int, float] = {}
    for depth in np.unique(tree.depth[hyper]):
        layer = hyper[tree.depth[hyper] == depth]
        for i, node in enumerate(layer.tolist()):
            height[node] = top + PANEL * (i + 0.5) / len(layer)
    parts = []
    for node in hyper[hyper != ROOT].tolist():
        above = int(tree.parent[tree.parent[node]])
        start, end = (x(int(tree.depth[above])), height[above]), (x(int(tree.depth[node])), height[node])
        strong = " chosen" if tree.chosen[node] else ""
        parts.append(svg.element("path", class_=f"line{strong}", d=svg.lines([start, end])))
    parts.sort(key=lambda part: "chosen" in part)
    return [*parts, svg.element("circle", class_="now", cx=x(0), cy=top + PANEL / 2, r=4.5)]
