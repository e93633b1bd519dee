"""Why this action: a decision with its tree, as plain data for the page and for files.

Beside it stands Figure 1 of the paper with numbers: a full tree against the tree of this decision, for the same
simulated steps. A full tree tries every action, and after it every possible next state: with A actions and B possible
outcomes it has (A·B)^d hyper-states d steps ahead, each one simulated step away from its parent. DSS spends the same
steps on N policies followed M times for K steps, (N·M)^h hyper-states after h stages, and so sees K·H steps ahead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bamdp import _checks
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import Element, element, figure, group, shape, text_element
from bamdp.planners import DSS, FHTS
from bamdp.planners.base import Plan, Planner
from bamdp.planners.tree import CHOICE, HYPER_STATE, ROOT, Tree
from bamdp.studio.tree import draw_tree
from bamdp.studio.view import Appearance, rounded_number

if TYPE_CHECKING:
    from bamdp.studio.playback import Playback

MAX_CHANGES = 12  # of the belief on the way to a node that are listed
MAX_PATH_STEPS = 400  # of a path that is drawn
MAX_CHOICE_PATHS = 16  # of one choice
CONTRAST_WIDTH, PANEL_HEIGHT, PANEL_LEFT = 420.0, 128.0, 16.0  # pixels
MAX_PANEL_LINES = 240  # of one panel
MAX_REWARD_OUTCOMES = 1_000_000
MAX_LISTED_DEPTH = 4  # steps of the full tree whose counts are listed


class Decision:
    """The decision that is due at the present step of a run."""

    def __init__(self, run: Playback) -> None:
        self.t, self.state = run.t, run.state
        self.looks: Appearance = run.looks
        self.planner: Planner = run.setting.planner
        self.discount = run.agent.discount
        self.belief: Belief = run.agent.belief.copy()
        self.plan: Plan = run.agent.plan(run.state, tree=True)
        self.tree: Any = self.plan.tree  # None where the planner grows none

    def name(self, action: int) -> str:
        """Return the label of an action in the present state."""
        return self.looks.action_label(action, self.state)

    def data(self) -> dict[str, Any]:
        """Return everything but the details of single nodes, as plain data for JSON."""
        plan, tree = self.plan, self.tree
        data: dict[str, Any] = {
            "t": self.t,
            "action": plan.action,
            "sentence": self.sentence(),
            "candidates": self.candidates(),
            "policies": isinstance(self.planner, DSS),
            "tree": None,
            "contrast": None,
        }
        if tree is not None:
            drawing, shown = self.draw_tree()
            data["tree"] = {
                "svg": str(drawing),
                "narrow": str(self.draw_tree(narrow=True)[0]),  # for a phone
                "nodes": {node: self.brief(node) for node in shown},
                "kept": len(tree),
                "total": tree.total,
                "shown": len(shown),
            }
            if (counts := self.contrast()) is not None:
                data["contrast"] = {**counts.data(), "svg": str(draw_contrast(counts, tree))}
        return data

    def draw_tree(self, *, narrow: bool = False) -> tuple[Element, list[int]]:
        """Return the drawing of the decision's tree, and the nodes in it."""
        labels = [self.name(a) for a in range(self.belief.n_actions)]
        return draw_tree(self.tree, self._returns(), labels, narrow=narrow)

    def contrast(self) -> TreeContrast | None:
        """Count this tree, and a full one for the same simulated steps; None where there is no other tree."""
        tree, planner, belief = self.tree, self.planner, self.belief
        if tree is None or isinstance(planner, FHTS):  # whose tree is the full one
            return None
        actions = np.flatnonzero(belief.space.allowed[self.state])
        possible = max(int(np.count_nonzero(belief.predictive(self.state, int(a)) > 0.0)) for a in actions)
        if belief.rewards.n_outcomes is not None and belief.rewards.n_outcomes <= MAX_REWARD_OUTCOMES:
            possible *= int(belief.rewards.n_outcomes)
        budget, hyper_states = len(tree.path), tree.n_hyper_states
        if not tree.complete and isinstance(planner, DSS):
            b, H = planner.n_policies * planner.n_samples, planner.n_stages
            hyper_states = sum(b**h for h in range(H + 1))
            budget = planner.n_steps * (hyper_states - 1)
        width, budget, deepest = len(actions) * possible, max(budget, 1), int(tree.depth.max())
        reach = full_reach(width, budget)
        full = [width**d for d in range(min(MAX_LISTED_DEPTH, max(deepest, 1)) + 1)]
        return TreeContrast(len(actions), possible, budget, hyper_states, deepest, reach, full)

    def candidates(self) -> list[dict[str, Any]]:
        """Return the choices at the root as rows of a table."""
        plan, tree = self.plan, self.tree
        nodes = [] if tree is None else tree.children(ROOT).tolist()
        by_action = {int(tree.action[node]): node for node in nodes}
        one_each = len(nodes) == len(plan.candidates)
        lower = plan.details.get("lower")  # of each action, or of the whole state
        lower = lower if isinstance(lower, Mapping) else {}
        rows = []
        for i, c in enumerate(plan.candidates):
            node = nodes[i] if one_each else by_action.get(c.action)
            row = {
                "action": c.action,
                "label": self.name(c.action),
                "value": rounded_number(c.value),
                "spread": rounded_number(c.spread),
                "exact": c.exact,
                "count": c.count,
                "node": node,
                "chosen": c.action == plan.action if node is None else bool(tree.chosen[node]),
                "lower": rounded_number(lower.get(c.action, math.nan)),
            }
            rows.append(row)
        return rows

    def sentence(self) -> str:
        """Return the decision in words."""
        words = self._words()
        return words if self.plan.reproducible else f"{words} (A time budget decides how far it gets.)"

    def _words(self) -> str:
        plan, name = self.plan, self.name
        if plan.details.get("followed_from_last_plan"):
            return f"Next: {name(plan.action)}. The policy of the last plan is still followed, so nothing was searched."
        others = [c for c in plan.candidates if c.action != plan.action and math.isfinite(c.value)]
        best = max(others, key=lambda c: c.value, default=None)
        if not math.isfinite(plan.value):
            return f"Next: {name(plan.action)}. This planner puts no value on what it does."
        worth = f"{plan.value:.3g}"
        if isinstance(self.planner, DSS):
            p = self.planner
            length = f"{p.n_steps} steps" if p.n_stages == 1 else f"{p.n_stages} stages of {p.n_steps} steps"
            text = (
                f"Next: {name(plan.action)}. Of {_several(len(plan.candidates), 'policy', 'policies')} drawn from its "
                f"belief, the best returned {worth} on average over {_several(p.n_samples, 'rollout', 'rollouts')} of "
                f"{length}"
            )
            if best is None:
                return text + "; all of them begin with the same action."
            return text + f"; the best that begins otherwise, with {name(best.action)}, {best.value:.3g}."
        text = f"Next: {name(plan.action)}, worth {worth}"
        if best is None:
            return text + "."
        return text + f"; the next best action, {name(best.action)}, {best.value:.3g}."

    # --- nodes ----------------------------------------------------------------------------------------------

    def brief(self, node: int) -> dict[str, Any]:
        """Return what is shown when the pointer is over a node, and the paths to it over the world."""
        tree = self.tree
        choice = tree.kind[node] == CHOICE
        facts: dict[str, Any] = {
            "kind": "choice" if choice else "hyper-state",
            "action": int(tree.action[node]),
            "label": self.looks.action_label(int(tree.action[node]), int(tree.state[node])) if choice else "",
            "value": rounded_number(float(tree.value[node])),
            "count": int(tree.count[node]),
            "chosen": bool(tree.chosen[node]),
        }
        for name in ("reward", "share", "spread", "lower"):
            if math.isfinite(getattr(tree, name)[node]):
                facts[name] = rounded_number(float(getattr(tree, name)[node]))
        facts["title"] = self._title(node)
        facts["ways"] = self._paths(node)
        return facts

    def detail(self, node: int) -> dict[str, Any]:
        """Return what a click on a node adds: the simulated experience on the way, and what the belief learned."""
        tree = self.tree
        _checks.index(node, "node", len(tree))
        steps = [] if node == ROOT else tree.history(node)
        kept = [step for step in steps if math.isfinite(step.r)]
        posterior = self.belief.copy()
        for step in kept:
            if posterior.episodes.ends[step.s]:  # over a lifetime: the next episode begins
                posterior.begin(step.s2)
            else:
                posterior.observe(*step)
        pairs = list(dict.fromkeys((step.s, step.a) for step in kept))
        changes = sorted((self._change(posterior, s, a, kept) for s, a in pairs), key=lambda c: -c["moved"])
        return {
            **self.brief(node),
            "node": node,
            "steps": len(steps),
            "gained": rounded_number(math.fsum(self.discount**k * step.r for k, step in enumerate(kept))),
            "changes": changes[:MAX_CHANGES],
            "more_changes": max(len(changes) - MAX_CHANGES, 0),
            "choices": [
                {**self.brief(int(child)), "node": int(child)}
                for child in tree.children(node)[:MAX_CHANGES]
                if tree.kind[child] == CHOICE
            ],
        }

    def _change(self, posterior: Belief, s: int, a: int, steps: list[Any]) -> dict[str, Any]:
        """Return how the prediction for one state and action has changed."""
        before, after = self.belief.predictive(s, a), posterior.predictive(s, a)
        top = np.argsort(-np.maximum(before, after), kind="stable")[:3]
        return {
            "state": s,
            "label": self.looks.state_label(s),
            "action": a,
            "action_label": self.looks.action_label(a, s),
            "times": sum(1 for step in steps if (step.s, step.a) == (s, a)),
            "moved": round(float(np.abs(after - before).sum()) / 2, 4),
            "next": [[int(i), round(float(before[i]), 3), round(float(after[i]), 3)] for i in top],
        }

    def _title(self, node: int) -> str:
        tree = self.tree
        state = int(tree.state[node])
        where = f"state {self.looks.state_label(state)}"
        if tree.kind[node] == HYPER_STATE:
            steps = _several(int(tree.depth[node]), "step", "steps")
            return "now" if node == ROOT else f"{where}, {steps} ahead"
        name = self.looks.action_label(int(tree.action[node]), state)
        return f"a policy that begins with {name}" if tree.policy[node] >= 0 else f"{name} in {where}"

    def _paths(self, node: int) -> list[list[int]]:
        """Return paths of states over the world: to a hyper-state from the root, of a choice all that come of it."""
        tree = self.tree
        ends = tree.children(node)[:MAX_CHOICE_PATHS].tolist() if tree.kind[node] == CHOICE else [node]
        paths = [[self.state, *(step.s2 for step in tree.history(end))] for end in ends if end != ROOT]
        return [path[:MAX_PATH_STEPS] for path in paths]

    def _returns(self) -> dict[int, list[float]]:
        """Return the returns behind each choice at the root, where its children are samples."""
        tree, returns = self.tree, {}
        if int(tree.count[tree.children(ROOT)].sum()) == 0:  # exact: there are none
            return {}
        for choice in tree.children(ROOT).tolist():
            below = tree.children(choice)
            if len(below) == int(tree.count[choice]):  # one child per sample
                steps = self.planner.n_steps if isinstance(self.planner, DSS) else 1
                returns[choice] = (tree.reward[below] + self.discount**steps * tree.value[below]).tolist()
        return returns


def _several(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


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
        more = " and a part of the next" if reach > whole else ""
        return _several(whole, "step", "steps") + more
    return f"only {reach:.0%} of a single step"


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
        group(*_draw_full_tree(counts, x, top), _draw_now(x, top), class_="full"),
        text_element(PANEL_LEFT, bottom - 10, "this decision's tree", class_="title"),
        group(*_draw_own_tree(tree, x, bottom), _draw_now(x, bottom), class_="own"),
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
    return parts


def _draw_now(x: Any, top: float) -> Element:
    return element("circle", class_="now", cx=x(0), cy=top + PANEL_HEIGHT / 2, r=4.5)


def _draw_own_tree(tree: Tree, x: Any, top: float) -> list[Element]:
    """Draw straight lines between the hyper-states of the decision's tree."""
    hyper = np.flatnonzero(tree.kind == HYPER_STATE)
    if len(hyper) > MAX_PANEL_LINES:  # some of them, and what stands above
        hyper = hyper[np.linspace(0, len(hyper) - 1, MAX_PANEL_LINES).astype(int)]
        while not np.isin(above := tree.parent[tree.parent[hyper[hyper != ROOT]]], hyper).all():
            hyper = np.union1d(hyper, above)
    height: dict[int, float] = {}
    for depth in np.unique(tree.depth[hyper]):
        layer = hyper[tree.depth[hyper] == depth]
        for i, node in enumerate(layer.tolist()):
            height[node] = top + PANEL_HEIGHT * (i + 0.5) / len(layer)
    parts = []
    rest = hyper[hyper != ROOT]
    for node in rest[np.argsort(tree.chosen[rest], kind="stable")].tolist():  # what is chosen comes last
        above = int(tree.parent[tree.parent[node]])
        start, end = (x(int(tree.depth[above])), height[above]), (x(int(tree.depth[node])), height[node])
        strong = " chosen" if tree.chosen[node] else ""
        parts.append(shape([start, end], closed=False, class_=f"line{strong}"))
    return parts
