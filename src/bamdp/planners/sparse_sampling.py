"""Sparse sampling (Kearns, Mansour & Ng 1999, 2002) in the tree of beliefs.

At a hyper-state ω = (s, β) with d steps to go,

    V_0(ω)    = 0,        V_d(ω) = 0 in terminal states
    Q_d(ω, a) = 1/C Σ_{c=1..C} [ r_c + γ V_{d-1}(ω_c) ]         s_c ~ ν(· | ω, a),  r_c ~ τ(· | ω, a, s_c)
    V_d(ω)    = max_a Q_d(ω, a)

with ω_c = (s_c, β updated with s, a, r_c, s_c): the exact recursion of :mod:`bamdp.planners.fhts` with each
expectation replaced by an average of C = ``width`` draws. Its cost, (A·C)^depth draws, does not depend on the
number of states. Kearns, Mansour and Ng show that for any ε there are C and depth, both independent of S,
with which the chosen action is within ε of optimal (their bound asks for far more draws than anyone can pay).
Since a maximum of averages is on average no less than the maximum of the expectations, the values are biased
upwards; the bias goes to zero as C grows.

Departures from the original: the generative model is the predictive of the belief, updated on the way down
(as Duff 2002 and Wang et al. 2005 discuss); rewards are drawn, not known.

The tree is walked with an explicit stack, and the belief is pushed and popped along one branch.

References: Kearns, Mansour & Ng, "A sparse sampling algorithm for near-optimal planning in large Markov
decision processes", Machine Learning 49 (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._parameters import whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import simulate_step, undo_steps
from bamdp.planners.base import Cost, Plan, candidates, estimate, greedy, n_branches
from bamdp.planners.shared.samples import (
    BEST_Q,
    Q_SUM,
    SAMPLE_RETURN,
    add_sample,
    clear_samples,
    sample_spread,
)
from bamdp.planners.tree import (
    CHOICE,
    CHOICE_HERE,
    HYPER_STATE,
    NO_NODE,
    NODE_HERE,
    TreePlanner,
    TreeRecord,
    add_node,
    add_outcome,
    add_step,
    new_record,
    set_value,
)


class SparseSamplingTree(NamedTuple):
    """The stack, one entry per level, and what is found at the root. All arrays are written to."""

    state: Annotated[np.ndarray, "int64 [D]"]  # s of the node
    trial: Annotated[np.ndarray, "int64 [D, 2]"]  # which action, which draw of it
    sums: Annotated[np.ndarray, "float64 [D, 5]"]  # see :mod:`bamdp.planners.shared.samples`
    value: Annotated[np.ndarray, "float64 [A]"]  # Q at the root, NaN where an action does not exist
    spread: Annotated[np.ndarray, "float64 [A]"]  # standard deviation of the C returns behind it


@kernel
def sparse_search(belief, tree, record, width, discount, s, rng):
    """Sparse sampling from state ``s``; fills the root arrays of ``tree`` and leaves the belief as it was.

    The tree is written to ``record``, a TreeRecord or None.
    """
    space = belief.space
    n_actions = space.allowed.shape[1]
    depth = tree.state.shape[0]
    for a in range(n_actions):
        tree.value[a] = np.nan
        tree.spread[a] = np.nan
    h = 0
    if record is not None:
        add_node(record, HYPER_STATE, NO_NODE, s, NO_NODE, 1)
    _enter(tree, space, record, 0, s, width)
    while True:
        row = tree.state[h] * n_actions + tree.trial[h, 0]
        s2, r = simulate_step(belief, row, rng)
        tree.sums[h, SAMPLE_RETURN] = r
        if record is not None:
            node = add_outcome(record, record.branch[h, CHOICE_HERE], 1.0 / width)
            add_step(record, node, s2, r, 1.0)
            record.branch[h + 1, NODE_HERE] = node
        if h + 1 < depth and not space.terminal[s2]:
            h += 1
            _enter(tree, space, record, h, s2, width)
            continue
        value = 0.0
        while True:  # a draw of level h is complete; its action and its node may be, too
            undo_steps(belief, 1)
            if record is not None:
                set_value(record, record.branch[h + 1, NODE_HERE], value, np.nan)
            q = tree.sums[h, SAMPLE_RETURN] + discount * value
            add_sample(tree.sums, h, q)
            tree.trial[h, 1] += 1
            if tree.trial[h, 1] < width:
                break
            _finish_action(tree, record, h, width)
            if _begin_action(tree, space, record, h, tree.trial[h, 0] + 1, width):
                break
            value = tree.sums[h, BEST_Q]
            if h == 0:
                if record is not None:
                    set_value(record, 0, value, np.nan)
                return
            h -= 1


@primitive
def _enter(tree, space, record, h, s, width):
    """Begin a node at level ``h``."""
    tree.state[h] = s
    tree.sums[h, BEST_Q] = -np.inf
    _begin_action(tree, space, record, h, 0, width)


@primitive
def _begin_action(tree, space, record, h, a, width):
    """Turn to the first action from ``a`` on that exists; False if there is none."""
    n_actions = space.allowed.shape[1]
    while a < n_actions and not space.allowed[tree.state[h], a]:
        a += 1
    tree.trial[h, 0] = a
    tree.trial[h, 1] = 0
    clear_samples(tree.sums, h)
    if record is not None:
        branch = record.branch
        if a < n_actions:
            branch[h, CHOICE_HERE] = add_node(record, CHOICE, branch[h, NODE_HERE], tree.state[h], a, width)
    return a < n_actions


@primitive
def _finish_action(tree, record, h, width):
    """Finish an action, all draws of which are in."""
    q = tree.sums[h, Q_SUM] / width
    spread = sample_spread(tree.sums, h, width)
    tree.sums[h, BEST_Q] = max(tree.sums[h, BEST_Q], q)
    if h == 0:
        a = tree.trial[0, 0]
        tree.value[a] = q
        tree.spread[a] = spread
    if record is not None:
        set_value(record, record.branch[h, CHOICE_HERE], q, spread)


@dataclass
class SparseSamplingMemory:
    """Room for the search."""

    tree: SparseSamplingTree
    discount: float


@dataclass(frozen=True)
class SparseSampling(TreePlanner):
    """Sparse sampling in the tree of beliefs.

    Parameters
    ----------
    width
        C, next states drawn for each action.
    depth
        Steps to look ahead. The cost is (A·width)^depth simulated steps.

    Examples
    --------
    >>> import bamdp
    >>> env = bamdp.make_env("chain")
    >>> agent = bamdp.Agent(SparseSampling(width=3, depth=3), prior=bamdp.Dirichlet(), rewards=env.rewards,
    ...                     n_states=env.n_states, n_actions=env.n_actions, discount=0.95, seed=0)
    >>> len(agent.plan(0).candidates)
    2
    """

    width: int = whole_number(4)
    depth: int = whole_number(3)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        calls = n_branches(n_actions * self.width, self.depth)
        return estimate(n_states, n_actions, models=0.0, steps=calls, bytes=64.0 * self.depth)

    def start(self, belief: Belief, discount: float) -> SparseSamplingMemory:
        return SparseSamplingMemory(zeros(SparseSamplingTree, D=self.depth, A=belief.n_actions), discount)

    def plan(
        self,
        memory: SparseSamplingMemory,
        belief: Belief,
        state: int,
        rng: np.ndarray,
        record: TreeRecord | None = None,
    ) -> Plan:
        belief.reserve(self.depth)
        tree, width = memory.tree, self.width
        belief.call(sparse_search, belief.arrays, tree, record, width, memory.discount, state, rng)
        action, actions = greedy(tree.value), np.flatnonzero(~np.isnan(tree.value))
        weighed = candidates(actions, tree.value[actions], tree.spread[actions], width)
        return Plan(action, float(tree.value[action]), weighed)

    def record(self, belief: Belief) -> TreeRecord:
        A, C = belief.n_actions, self.width
        return new_record(1 + n_branches(A * C, self.depth) * (1 + 1 / C), A, self.depth + 1)
