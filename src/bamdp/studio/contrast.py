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
from bamdp.envs.drawing import Element, element, figure, group, shape, text_element
from bamdp.planners import DSS
from bamdp.planners.base import Planner
from bamdp.planners.shared.tree_sizes import dss_calls
from bamdp.planners.views.tree import HYPER_STATE, ROOT, Tree

CONTRAST_WIDTH, PANEL_HEIGHT, PANEL_LEFT = 420.0, 128.0, 16.0  # pixels
MAX_PANEL_LINES = 240  # of one panel
MAX_REWARD_OUTCOMES = 1_000_000
MAX_LISTED_DEPTH = 4  # steps of the full tree whose counts are listed


@dataclass(frozen=True)
class TreeContrast:
    """Node counts of the two trees."""

    actions: int
    outcomes: int  # possible next states of an action here, times rewards where these are drawn
    budget: int  # simulated steps of this decision
    hyper_states: int  # of this decision's tree
    depth: int  # steps that it looks ahead
    reach: float  # steps that the full tree looks ahead for the same; not whole if the last layer is a part
    full: list[int]  # hyper-states of the full tree, by steps ahead

    def data(self) -> dict[str, Any]:
        """Return it as plain data for JSON, with counts beyond 2^53 as text."""
        return {
            **vars(self),
            "full": [f"{n:.3g}" if n > 1e15 else n for n in self.full],
            "words": self.words(),
        }

    def words(self) -> str:
        """Return it as a sentence."""
        return (
            f"With the {self.budget:,} simulated steps of this decision, a full tree ({self.actions} actions, "
            f"{self.outcomes:,} possible outcomes each) sees {_steps_in_words(self.reach)} ahead; this one sees "
            f"{self.depth}, with {self.hyper_states:,} hyper-states."
        )


def _steps_in_words(reach: float) -> str:
    if reach >= 1:
        whole = math.floor(reach)
        return f"{whole} step{'s' if whole > 1 else ''}" + (
            " and a part of the next" if reach > whole else ""
        )
    return f"only {reach:.0%} of a single step"


def contrast_with_full_tree(planner: Planner, tree: Tree, belief: Belief) -> TreeContrast:
    """Count the nodes of a decision's tree, and of a full tree for the same simulated steps."""
    state = int(tree.state[ROOT])
    actions = np.flatnonzero(belief.space.allowed[state])
    possible = max(int(np.count_nonzero(belief.predictive(state, int(a)) > 0.0)) for a in actions)
    if belief.rewards.n_outcomes is not None and belief.rewards.n_outcomes <= MAX_REWARD_OUTCOMES:
        possible *= int(belief.rewards.n_outcomes)
    budget, hyper_states = len(tree.path), tree.n_hyper_states
    if not tree.complete and isinstance(planner, DSS):
        whole = dss_calls(planner.n_policies, planner.n_samples, planner.n_steps, planner.n_stages)
        budget, hyper_states = whole.calls, whole.nodes + whole.leaves
    width = len(actions) * possible
    deepest = int(tree.depth.max())
    return TreeContrast(
        actions=len(actions),
        outcomes=possible,
        budget=max(budget, 1),
        hyper_states=hyper_states,
        depth=deepest,
        reach=full_reach(width, max(budget, 1)),
        full=[width**d for d in range(min(MAX_LISTED_DEPTH, max(deepest, 1)) + 1)],
    )


def full_reach(width: int, budget: int) -> float:
    """Return how deep a full tree gets with ``budget`` simulated steps and ``width`` hyper-states below each."""
    reach, layer = 0.0, width
    while budget >= layer and reach < 10_000:
        budget -= layer
        layer *= width
        reach += 1
    return reach + budget / layer


def draw_contrast(counts: TreeContrast, tree: Tree) -> Element:
    """Draw both trees over one axis of steps ahead."""
    most = max(counts.depth, counts.reach, 1.0)

    def x(steps: float) -> float:
        return PANEL_LEFT + steps / most * (CONTRAST_WIDTH - 2 * PANEL_LEFT)

    top, bottom = 24.0, PANEL_HEIGHT + 62.0
    axis = bottom + PANEL_HEIGHT + 10
    ticks = [0.0, most] if most < 4 else [0.0, round(most / 2), most]
    ruler = [text_element(x(t), axis + 14, "now" if t == 0 else f"{t:g}", class_="tick") for t in ticks]
    ruler.append(element("path", class_="grid", d=f"M{x(0):.1f} {axis}H{x(most):.1f}"))
    ruler.append(text_element(CONTRAST_WIDTH / 2, axis + 28, "steps ahead", class_="tick unit"))
    return figure(
        (CONTRAST_WIDTH, axis + 36),
        text_element(PANEL_LEFT, 14, "full tree", class_="title"),
        group(*_draw_full_tree(counts, x, top), class_="full"),
        text_element(PANEL_LEFT, bottom - 10, "this decision's tree", class_="title"),
        group(*_draw_own_tree(tree, x, bottom), class_="own"),
        *ruler,
        label=counts.words(),
        class_="scene contrast",
    )


def _draw_full_tree(counts: TreeContrast, x: Any, top: float) -> list[Element]:
    """Draw layer upon layer, until the budget is spent."""
    width = counts.actions * counts.outcomes
    parents = [top + PANEL_HEIGHT / 2]
    parts: list[Element] = []
    for layer in range(math.ceil(counts.reach)):
        share = min(counts.reach - layer, 1.0)
        count = min(max(round(width ** (layer + 1) * share), 1), MAX_PANEL_LINES)
        rows = [top + PANEL_HEIGHT * (i + 0.5) / count for i in range(count)]
        for i, y in enumerate(rows):
            start = x(layer), parents[i * len(parents) // count]
            parts.append(shape([start, (x(layer + 1), y)], closed=False, class_="line"))
        parents = rows
        if len(parents) >= MAX_PANEL_LINES:
            break
    return [*parts, element("circle", class_="now", cx=x(0), cy=top + PANEL_HEIGHT / 2, r=4.5)]


def _draw_own_tree(tree: Tree, x: Any, top: float) -> list[Element]:
    """Draw straight lines between the hyper-states of the decision's tree."""
    hyper = np.flatnonzero(tree.kind == HYPER_STATE)
    if len(hyper) > MAX_PANEL_LINES:  # some of them, and what stands above
        hyper = hyper[np.linspace(0, len(hyper) - 1, MAX_PANEL_LINES).astype(int)]
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
            height[node] = top + PANEL_HEIGHT * (i + 0.5) / len(layer)
    parts = []
    for node in hyper[hyper != ROOT].tolist():
        above = int(tree.parent[tree.parent[node]])
        start, end = (x(int(tree.depth[above])), height[above]), (x(int(tree.depth[node])), height[node])
        strong = " chosen" if tree.chosen[node] else ""
        parts.append(shape([start, end], closed=False, class_=f"line{strong}"))
    parts.sort(key=lambda part: "chosen" in part.attributes["class"])
    return [*parts, element("circle", class_="now", cx=x(0), cy=top + PANEL_HEIGHT / 2, r=4.5)]
