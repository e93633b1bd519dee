"""Sparse sampling (Kearns, Mansour & Ng 1999, 2002) in the tree of beliefs.

At a hyper-state ω = (s, β) with d steps to go,

    V_0(ω)    = 0,        V_d(ω) = 0 in terminal states
    Q_d(ω, a) = 1/C Σ_{c=1..C} [ r_c + γ V_{d-1}(ω_c) ]         s_c ~ ν(· | ω, a),  r_c ~ τ(· | ω, a, s_c)
    V_d(ω)    = max_a Q_d(ω, a)

with ω_c = (s_c, β updated with s, a, r_c, s_c): the exact recursion of :mod:`bamdp.planners.fhts` with each expectation
replaced by an average of C = ``width`` draws. Its cost, (A·C)^depth draws, does not depend on the number of states.
Kearns, Mansour and Ng show that for any ε there are C and depth, both independent of S, for which the chosen action is
within ε of optimal (the number of draws in their bound is far beyond what is practical). Because the expectation of a
maximum is at least the maximum of the expectations, the values are biased upwards; the bias vanishes as C grows.

Departures from the original: the generative model is the predictive of the belief, updated along each branch (as
discussed by Duff 2002 and Wang et al. 2005), and rewards are sampled rather than known.

The search is that of :mod:`bamdp.planners.dss` with the A actions in place of N policies, C draws in place of M samples
and one-step stages.

References: Kearns, Mansour & Ng, "A sparse sampling algorithm for near-optimal planning in large Markov
decision processes", Machine Learning 49 (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bamdp._kernels.jit import zeros
from bamdp._parameters import whole_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Cost, Plan, candidates, estimate, greedy, n_branches
from bamdp.planners.dss import AT_ROOT, DSSMemory, DSSParams, DSSTree, search
from bamdp.planners.shared.workspace import NO_MODELS
from bamdp.planners.tree import TreePlanner, TreeRecord, new_record


@dataclass(frozen=True)
class SparseSampling(TreePlanner):
    """Sparse sampling in the tree of beliefs.

    Parameters
    ----------
    width
        C, the number of next states drawn per action.
    depth
        Lookahead in steps. The cost is (A·width)^depth simulated steps.

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

    def start(self, belief: Belief, discount: float) -> DSSMemory:
        A, C, D = belief.n_actions, self.width, self.depth
        params = DSSParams(None, None, discount, n_policies=A, n_samples=C, n_steps=1)
        return DSSMemory(NO_MODELS, params, zeros(DSSTree, L=D + 1, H=D, N=A, S=0, W=0))

    def plan(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        tree = memory.tree
        tree.level[0] = AT_ROOT
        tree.value[:] = np.nan
        belief.run(search, NO_MODELS, memory.params, tree, memory.record, state, rng, depth=self.depth)
        action, actions = greedy(tree.value), np.flatnonzero(~np.isnan(tree.value))
        weighed = candidates(actions, tree.value[actions], tree.spread[actions], self.width)
        return Plan(action, float(tree.value[action]), weighed)

    def record(self, belief: Belief) -> TreeRecord:
        A, C = belief.n_actions, self.width
        return new_record(1 + n_branches(A * C, self.depth) * (1 + 1 / C), A, self.depth + 1)
