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

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import kernel, primitive
from bamdp._parameters import whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import simulate_step, undo_steps
from bamdp.planners.base import Cost, Plan, Planner, candidates, estimate, greedy, n_branches
from bamdp.planners.views.tree import NO_NODE, TreeBuilder, mean_and_spread

# columns of float64 [levels, 4]: of the sample at hand its reward so far; sums of returns and of their squares; best Q
SAMPLE_RETURN, Q_SUM, Q_SQUARES, BEST_Q = range(4)


class SparseSamplingTree(NamedTuple):
    """The stack, one entry per level, and what is found at the root. All arrays are written to."""

    state: Annotated[np.ndarray, "int64 [D]"]  # s of the node
    trial: Annotated[np.ndarray, "int64 [D, 2]"]  # which action, which draw of it
    sums: Annotated[np.ndarray, "float64 [D, 4]"]  # the columns SAMPLE_RETURN .. BEST_Q
    value: Annotated[np.ndarray, "float64 [A]"]  # Q at the root, NaN where an action does not exist
    spread: Annotated[np.ndarray, "float64 [A]"]  # standard deviation of the C returns behind it


# Statistics of samples on the stack of a depth-first search, which DSS shares


@primitive
def add_sample(sums, h, q):
    """Take a return ``q`` into the sums of level ``h``."""
    sums[h, Q_SUM] += q
    sums[h, Q_SQUARES] += q * q


@primitive
def clear_samples(sums, h):
    """Begin the samples of another choice at level ``h``."""
    sums[h, Q_SUM] = 0.0
    sums[h, Q_SQUARES] = 0.0


@primitive
def sample_spread(sums, h, n):
    """Return the standard deviation of the ``n`` returns of a choice; NaN for a single one."""
    if n < 2:
        return np.nan
    mean = sums[h, Q_SUM] / n
    return np.sqrt(max(0.0, sums[h, Q_SQUARES] / n - mean * mean) * n / (n - 1))


@kernel
def sparse_search(belief, tree, width, discount, s, rng):
    """Sparse sampling from state ``s``; fills the root arrays of ``tree`` and leaves the belief as it was."""
    space = belief.space
    n_actions = space.allowed.shape[1]
    depth = tree.state.shape[0]
    for a in range(n_actions):
        tree.value[a] = np.nan
        tree.spread[a] = np.nan
    h = 0
    _enter(tree, space, 0, s)
    while True:
        row = tree.state[h] * n_actions + tree.trial[h, 0]
        s2, r = simulate_step(belief, row, rng)
        tree.sums[h, SAMPLE_RETURN] = r
        if h + 1 < depth and not space.terminal[s2]:
            h += 1
            _enter(tree, space, h, s2)
            continue
        value = 0.0
        while True:  # a draw of level h is complete; its action and its node may be, too
            undo_steps(belief, 1)
            q = tree.sums[h, SAMPLE_RETURN] + discount * value
            add_sample(tree.sums, h, q)
            tree.trial[h, 1] += 1
            if tree.trial[h, 1] < width:
                break
            _finish_action(tree, h, width)
            if _begin_action(tree, space, h, tree.trial[h, 0] + 1):
                break
            if h == 0:
                return
            value = tree.sums[h, BEST_Q]
            h -= 1


@primitive
def _enter(tree, space, h, s):
    """Begin a node at level ``h``."""
    tree.state[h] = s
    tree.sums[h, BEST_Q] = -np.inf
    _begin_action(tree, space, h, 0)


@primitive
def _begin_action(tree, space, h, a):
    """Turn to the first action from ``a`` on that exists; False if there is none."""
    n_actions = space.allowed.shape[1]
    while a < n_actions and not space.allowed[tree.state[h], a]:
        a += 1
    tree.trial[h, 0] = a
    tree.trial[h, 1] = 0
    clear_samples(tree.sums, h)
    return a < n_actions


@primitive
def _finish_action(tree, h, width):
    """Finish an action, all draws of which are in."""
    q = tree.sums[h, Q_SUM] / width
    tree.sums[h, BEST_Q] = max(tree.sums[h, BEST_Q], q)
    if h == 0:
        a = tree.trial[0, 0]
        tree.value[a] = q
        tree.spread[a] = sample_spread(tree.sums, 0, width)


@dataclass
class SparseSamplingMemory:
    """Room for the search."""

    tree: SparseSamplingTree
    discount: float


@dataclass(frozen=True)
class SparseSampling(Planner):
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

    def act(self, memory: SparseSamplingMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        belief.reserve(self.depth)
        belief.call(sparse_search, belief.arrays, memory.tree, self.width, memory.discount, state, rng)
        return greedy(memory.tree.value)

    def plan(self, memory: SparseSamplingMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        tree = memory.tree
        actions = np.flatnonzero(~np.isnan(tree.value))
        weighed = candidates(actions, tree.value[actions], tree.spread[actions], self.width)
        return Plan(action, float(tree.value[action]), weighed)

    def explain(self, memory: SparseSamplingMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        begin = rng.copy()
        plan = self.plan(memory, belief, state, rng)
        builder = TreeBuilder()
        root = builder.hyper_state(NO_NODE, state, count=1)
        _Walk(self, memory.discount, belief, begin, builder).value(state, 0, root)
        return replace(plan, tree=builder.finish(builder.at_root(plan.action)))


@dataclass
class _Walk:
    """The search again as a recursion: the same draws in the same order, now with every node noted."""

    planner: SparseSampling
    discount: float
    belief: Belief
    rng: np.ndarray
    builder: TreeBuilder

    def value(self, state: int, h: int, node: int) -> float:
        """V of the hyper-state that the belief is in now."""
        space, best = self.belief.space, 0.0
        if h < self.planner.depth and not space.terminal[state]:
            best = max(self._try(state, int(a), h, node) for a in np.flatnonzero(space.allowed[state]))
        self.builder.set(node, value=best)
        return best

    def _try(self, state: int, a: int, h: int, node: int) -> float:
        """Return Q(ω, a) from C draws."""
        width, arrays = self.planner.width, self.belief.arrays
        choice = self.builder.choice(node, a, count=width)
        returns = []
        for _ in range(width):
            s2, r = simulate_step(arrays, state * self.belief.n_actions + a, self.rng)
            child = self.builder.step(choice, int(s2), r, share=1.0 / width, count=1)
            returns.append(float(r) + self.discount * self.value(int(s2), h + 1, child))
            undo_steps(arrays, 1)
        mean, spread = mean_and_spread(returns)
        self.builder.set(choice, value=mean, spread=spread)
        return mean
