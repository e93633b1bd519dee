"""Explanation of a decision and its tree, as plain data for the page and for files.

The explanation includes one sentence on Figure 1 of the paper: how far ahead a full tree would look for the same
number of simulated steps. With A actions and B possible outcomes, a full tree has (A·B)^d hyper-states at depth d,
each one simulated step away from its parent. DSS instead follows N policies M times for K steps in each of H stages,
and so looks K·H steps ahead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np

from bamdp import _checks
from bamdp.beliefs.belief import Belief
from bamdp.envs.drawing import markup
from bamdp.planners import DSS, FHTS
from bamdp.planners.tree import CHOICE, ROOT
from bamdp.studio.tree import draw_tree
from bamdp.studio.view import finite, short

if TYPE_CHECKING:
    from bamdp.studio.playback import Playback

MAX_CHANGES = 12  # belief changes listed per node
MAX_PATH_STEPS = 400  # drawn per path
MAX_CHOICE_PATHS = 16  # drawn per choice


class Decision:
    """The decision to be made at the current step of a run."""

    def __init__(self, run: Playback) -> None:
        self.t, self.state, self.env = run.t, run.state, run.env
        self.planner, self.discount = run.setting.planner, run.agent.discount
        self.belief = run.agent.belief.copy()
        self.plan = run.agent.plan(run.state, tree=True)
        self.tree: Any = self.plan.tree  # None if the planner builds no tree

    def name(self, action: int) -> str:
        """Return the label of an action in the current state."""
        return self.env.action_label(action, self.state)

    def data(self) -> dict[str, Any]:
        """Return everything except node details as plain data for JSON."""
        data: dict[str, Any] = {
            "t": self.t,
            "action": self.plan.action,
            "sentence": self.sentence(),
            "candidates": self.candidates(),
            "policies": isinstance(self.planner, DSS),
            "tree": None,
            "reach": self.reach(),
        }
        if self.tree is not None:
            drawing, shown = self.draw_tree()
            data["tree"] = {
                "svg": markup(drawing),
                "nodes": {node: self.brief(node) for node in shown},
                "caption": self.caption(len(shown)),
            }
        return data

    def draw_tree(self) -> tuple[Element, list[int]]:
        """Return the drawing of the decision's tree, and the nodes in it."""
        return draw_tree(self.tree, [self.name(a) for a in range(self.belief.n_actions)])

    def caption(self, shown: int) -> str:
        """Return a caption for the drawing of the tree."""
        total = max(len(self.tree), self.tree.total)
        some = f"{shown:,} of {total:,} nodes are drawn, the most likely first. " if shown < total else ""
        gains = " Green dots are rewards." if isinstance(self.planner, DSS) else ""
        return (
            f"{some}A square is a choice, in the colour of its action. A circle is a hyper-state: a state together with "
            f"what the agent would have learned on the way there.{gains}"
        )

    def reach(self) -> str | None:
        """Describe how far a full tree would look with the same simulated steps, or return None if not applicable."""
        tree, belief = self.tree, self.belief
        if (
            tree is None or isinstance(self.planner, FHTS) or not tree.complete
        ):  # FHTS already builds the full tree
            return None
        actions = np.flatnonzero(belief.space.allowed[self.state])
        possible = max(int(np.count_nonzero(belief.predictive(self.state, int(a)) > 0.0)) for a in actions)
        steps, deepest = max(len(tree.path), 1), int(tree.depth.max())
        return (
            f"A full tree ({len(actions)} actions, {possible:,} possible next states each) would see "
            f"{short(full_reach(len(actions) * possible, steps))} steps ahead with the {steps:,} simulated steps of "
            f"this decision; this tree sees {deepest}."
        )

    def candidates(self) -> list[dict[str, Any]]:
        """Return the choices at the root as table rows."""
        plan, tree = self.plan, self.tree
        nodes = [] if tree is None else tree.children(ROOT).tolist()
        by_action = {int(tree.action[node]): node for node in nodes}
        one_each = len(nodes) == len(plan.candidates)
        lower = plan.details.get("lower")  # per action, or for the whole state
        lower = lower if isinstance(lower, Mapping) else {}
        rows = []
        for i, c in enumerate(plan.candidates):
            node = nodes[i] if one_each else by_action.get(c.action)
            row = {
                "action": c.action,
                "label": self.name(c.action),
                "value": finite(c.value),
                "spread": finite(c.spread),
                "exact": c.exact,
                "count": c.count,
                "node": node,
                "chosen": c.action == plan.action if node is None else bool(tree.chosen[node]),
                "lower": finite(lower.get(c.action, math.nan)),
            }
            rows.append(row)
        return rows

    def sentence(self) -> str:
        """Describe the decision in words."""
        plan, begin = self.plan, f"Next: {self.name(self.plan.action)}"
        if plan.details.get("followed_from_last_plan"):
            return f"{begin}. The agent still follows the policy of its last plan, so it did not search."
        if not math.isfinite(plan.value):
            return f"{begin}. This planner assigns no values to actions."
        others = [c for c in plan.candidates if c.action != plan.action and math.isfinite(c.value)]
        best = max(others, key=lambda c: c.value, default=None)
        rival = (
            ""
            if best is None
            else f"; the best policy starting with {self.name(best.action)} earned {short(best.value)}"
        )
        late = "" if plan.reproducible else " (A time limit determines how far it searches.)"
        if isinstance(self.planner, DSS):
            p = self.planner
            length = f"{p.n_steps} steps" if p.n_stages == 1 else f"{p.n_stages} stages of {p.n_steps} steps"
            return (
                f"{begin}. Of {_several(len(plan.candidates), 'policy', 'policies')} drawn from the belief, the best "
                f"earned {short(plan.value)} on average over {_several(p.n_samples, 'rollout')} of {length}{rival}.{late}"
            )
        rival = (
            "" if best is None else f"; the next best action, {self.name(best.action)}, {short(best.value)}"
        )
        return f"{begin}, worth {short(plan.value)}{rival}.{late}"

    # --- nodes ----------------------------------------------------------------------------------------------

    def brief(self, node: int) -> dict[str, Any]:
        """Return the data shown when hovering over a node, including its paths through the environment."""
        tree = self.tree
        choice = tree.kind[node] == CHOICE
        numbers = {name: float(getattr(tree, name)[node]) for name in ("reward", "share", "spread", "lower")}
        return {
            "kind": "choice" if choice else "hyper-state",
            "action": int(tree.action[node]),
            "label": self.env.action_label(int(tree.action[node]), int(tree.state[node])) if choice else "",
            "value": finite(float(tree.value[node])),
            "count": int(tree.count[node]),
            "chosen": bool(tree.chosen[node]),
            **{name: finite(number) for name, number in numbers.items() if math.isfinite(number)},
            "title": self._title(node),
            "ways": self._paths(node),
        }

    def detail(self, node: int) -> dict[str, Any]:
        """Return the details of a clicked node: the simulated experience leading to it, and the resulting belief."""
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
        below = tree.children(node)[:MAX_CHANGES].tolist()
        return {
            **self.brief(node),
            "node": node,
            "steps": len(steps),
            "gained": finite(math.fsum(self.discount**k * step.r for k, step in enumerate(kept))),
            "changes": changes[:MAX_CHANGES],
            "more_changes": max(len(changes) - MAX_CHANGES, 0),
            "choices": [self.brief(child) for child in below if tree.kind[child] == CHOICE],
        }

    def _change(self, posterior: Belief, s: int, a: int, steps: list[Any]) -> dict[str, Any]:
        """Return the change in the prediction for one state-action pair."""
        before, after = self.belief.predictive(s, a), posterior.predictive(s, a)
        top = np.argsort(-np.maximum(before, after), kind="stable")[:3]
        return {
            "state": s,
            "label": self.env.state_label(s),
            "action": a,
            "action_label": self.env.action_label(a, s),
            "times": sum(1 for step in steps if (step.s, step.a) == (s, a)),
            "moved": round(float(np.abs(after - before).sum()) / 2, 4),
            "next": [[int(i), round(float(before[i]), 3), round(float(after[i]), 3)] for i in top],
        }

    def _title(self, node: int) -> str:
        tree = self.tree
        state = int(tree.state[node])
        where = f"state {self.env.state_label(state)}"
        if tree.kind[node] != CHOICE:
            return "now" if node == ROOT else f"{where}, {_several(int(tree.depth[node]), 'step')} ahead"
        name = self.env.action_label(int(tree.action[node]), state)
        return f"a policy that starts with {name}" if tree.policy[node] >= 0 else f"{name} in {where}"

    def _paths(self, node: int) -> list[list[int]]:
        """Return state paths: from the root to a hyper-state, or all paths that result from a choice."""
        tree = self.tree
        ends = tree.children(node)[:MAX_CHOICE_PATHS].tolist() if tree.kind[node] == CHOICE else [node]
        paths = [[self.state, *(step.s2 for step in tree.history(end))] for end in ends if end != ROOT]
        return [path[:MAX_PATH_STEPS] for path in paths]


def _several(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def full_reach(width: int, budget: int) -> float:
    """Return the depth of a full tree with ``budget`` simulated steps and ``width`` hyper-states below each node."""
    reach, layer = 0.0, width
    while budget >= layer and reach < 10_000:
        budget -= layer
        layer *= width
        reach += 1
    return reach + budget / layer
