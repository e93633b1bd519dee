"""BOLT: Bayesian optimistic local transitions (Araya-López, Thomas & Buffet 2012).

For each pair separately, plan as if its next η observed transitions all led to its most valuable successor:

    Q(s, a) = max_{s*} Σ_{s'} P̃(s') [r(s, a, s') + γ max_{a'} Q(s', a')],
    P̃ = (c P̄(· | s, a) + η e_{s*}) / (c + η),        c = n₀(s, a) + n(s, a),

where P̄ is the posterior mean and e_{s*} the point mass on s*. Like a bonus, the optimism fades as the pair is tried.
Unlike a bonus, it is bounded by the value of the best successor and vanishes if no successor is better than expected.

**Prior count** n₀ and supported priors: as for BEB (:mod:`bamdp.planners.bonuses`). For Dirichlet rows, P̃ is exactly
the mean after η more observations. For the sparse prior and mixtures, the same formula is used with the harmonic mean
of c, whereas an exact update would also change the posterior over the size of the support. Only successors that are
possible under the posterior are considered: all states if the mean row has mass everywhere, otherwise the listed ones.

**Guarantee.** With η = H, the effective horizon, Q is an upper bound on the Bayes-optimal value, and with high
probability the planner is near-optimal in the Bayesian sense on all but polynomially many steps. Much smaller values of
η work better in practice: among values from 0.5 to 10 on chain, double_loop and grid5 under two priors, 0.5 and 1
performed best on average.

**Solution.** Choosing s* amounts to having S times as many actions, so BOLT runs policy iteration over these: solve
with the s* of every pair fixed, then switch each pair to a better s*, until no switch gains more than ``tol``. Inner
solutions are accurate to ``tol`` in value, so larger gains are real and choices cannot cycle. If rewards do not depend
on s' and every state is possible, s* is the highest-valued state for all pairs. The loss in the optimistic model is at
most 2·tol/(1−γ).

**Departures.** The objective is discounted instead of finite-horizon. Only transitions are treated optimistically:
learned rewards, which the original excludes, enter through their mean, so a bandit is played greedily.

Reference: Araya-López, Thomas & Buffet, "Near-optimal BRL using optimistic local transitions" (ICML 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, kernel, primitive, zeros
from bamdp._kernels.rows import action_values, is_listed
from bamdp._kernels.solve import reward_scale, solve
from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, mean_into, skip_row
from bamdp.planners.base import KernelPlanner, Plan, exact_candidates
from bamdp.planners.bonuses import require_counts
from bamdp.planners.shared.workspace import Workspace, workspace_for


class BOLTParams(NamedTuple):
    """Parameters that stay fixed between steps."""

    eta: float
    by_next_state: bool  # rewards are R(s, a, s')
    discount: float
    tol: float


class Hopes(NamedTuple):
    """Optimistic successor of each pair."""

    target: Annotated[np.ndarray, "int32 [R]"]  # s* of each of the R = S·A rows
    weight: Annotated[np.ndarray, "float64 [R]"]  # η / (c + η)
    expected: Annotated[np.ndarray, "float64 [R]"]  # r̄(s, a) without optimism
    one: Annotated[np.ndarray, "int32 [1]"]  # scratch: a row with one outcome
    certain: Annotated[np.ndarray, "float64 [1]"]  # its probability


@primitive
def _reward_of(R, row, s2, hopes):
    """Return r(s, a, s2)."""
    hopes.one[0] = s2
    return verbs.expected_reward(R, row, hopes.one, hopes.certain, 0, 1, 0.0)


@primitive
def _aim(R, row, rows, hopes, s2):
    """Set the optimistic successor of a row to ``s2``: its last entry and its reward."""
    weight = hopes.weight[row]
    hopes.target[row] = s2
    rows.index[rows.span[row, 1] - 1] = s2
    reward = (1.0 - weight) * hopes.expected[row]
    rows.reward[row] = reward + weight * _reward_of(R, row, s2, hopes)


@inner
def hopeful_model(belief, eta, rows, hopes):
    """Write the mean model, with the optimistic successor as the last entry of each row."""
    T, R, space = belief.transitions, belief.rewards, belief.space
    n_states, n_actions = space.allowed.shape
    at = 0
    for row in range(n_states * n_actions):
        if space.terminal[row // n_actions] or not space.allowed[row // n_actions, row % n_actions]:
            skip_row(rows, row, at)
            continue
        check_space(belief, rows, at + 1, 1)
        end = mean_into(belief, rows, row, at)
        # the mean row shifted towards the optimistic successor, its last entry
        weight = eta / (verbs.concentration(T, row) + eta)
        hopes.weight[row] = weight
        hopes.expected[row] = rows.reward[row]
        for i in range(at, end):
            rows.prob[i] *= 1.0 - weight
        rows.prob[end] = weight
        rows.background[row] *= 1.0 - weight
        rows.span[row, 1] = end + 1
        s2 = hopes.target[row]
        if rows.background[row] == 0.0 and not is_listed(rows.index, at, end, s2):
            s2 = rows.index[at]  # the previous optimistic successor has become impossible
        _aim(R, row, rows, hopes, s2)
        at = end + 1


@inner
def hope_again(belief, params, tol, rows, values, hopes):
    """Switch pairs to their best successor if that gains more than ``tol``; return the number of switches."""
    R, by_next, discount = belief.rewards, params.by_next_state, params.discount
    n_states, n_actions = belief.space.allowed.shape
    highest = 0
    for s2 in range(n_states):
        if values[s2] > values[highest]:
            highest = s2
    changes = 0
    for row in range(n_states * n_actions):
        begin, last = rows.span[row, 0], rows.span[row, 1] - 1
        if last < begin:
            continue
        # the best possible next state for this pair
        old = hopes.target[row]
        now = discount * values[old] + (_reward_of(R, row, old, hopes) if by_next else 0.0)
        best, choice = now, np.int64(old)
        everywhere = rows.background[row] > 0.0
        if everywhere and not by_next:
            if discount * values[highest] > best:
                best, choice = discount * values[highest], np.int64(highest)
        else:
            for i in range(n_states if everywhere else last - begin):
                s2 = np.int64(i) if everywhere else np.int64(rows.index[begin + i])
                value = discount * values[s2] + (_reward_of(R, row, s2, hopes) if by_next else 0.0)
                if value > best and (everywhere or rows.prob[begin + i] > 0.0):
                    best, choice = value, s2
        if hopes.weight[row] * (best - now) > tol:
            _aim(R, row, rows, hopes, choice)
            changes += 1
    return changes


@kernel
def solve_hopeful(belief, workspace, params, hopes, s, q):
    """Solve the optimistic model, write Q(s, ·) to ``q`` [A] (NaN: no such action) and return the action."""
    rows, solver, discount = workspace.rows, workspace.solver, params.discount
    hopeful_model(belief, params.eta, rows, hopes)
    tol = params.tol * (1.0 - discount)
    solve(rows, belief.space, discount, tol, solver, False)
    gain = params.tol * reward_scale(rows, belief.space)
    while hope_again(belief, params, gain, rows, solver.values, hopes) > 0:
        solve(rows, belief.space, discount, tol, solver, False)
    return np.int64(action_values(rows, belief.space, discount, solver.values, s, q))


@dataclass
class BOLTMemory:
    """Values and optimistic successors from the last step."""

    workspace: Workspace
    params: BOLTParams
    hopes: Hopes
    q: np.ndarray  # float64 [A]: action values of the last step


@dataclass(frozen=True, kw_only=True)
class BOLT(KernelPlanner):
    """Bayesian optimistic local transitions.

    Examples
    --------
    >>> BOLT(eta=2.0)
    BOLT(eta=2.0, tol=0.0001)
    """

    result_version: ClassVar[int] = 3

    eta: float = real_number(1.0, low=0.0, help="η, observations of its best successor given to each pair.")
    tol: float = positive_number(1e-4, help="Accuracy: the optimistic model loses at most 2·tol/(1−γ).")

    def start(self, belief: Belief, discount: float) -> BOLTMemory:
        require_counts(belief, "BOLT")
        hopes = zeros(Hopes, R=belief.n_states * belief.n_actions, certain=np.ones(1))
        by_next_state = bool(belief.rewards.by_next_state)
        params = BOLTParams(float(self.eta), by_next_state, discount, float(self.tol))
        return BOLTMemory(workspace_for(belief), params, hopes, np.zeros(belief.n_actions))

    def act(self, memory: BOLTMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return int(belief.run(solve_hopeful, memory.workspace, memory.params, memory.hopes, state, memory.q))

    def plan(self, memory: BOLTMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        candidates = exact_candidates(memory.q)
        row = {c.action: state * belief.n_actions + c.action for c in candidates}
        target, weight = memory.hopes.target, memory.hopes.weight
        hopes = {a: {"state": int(target[i]), "weight": float(weight[i])} for a, i in row.items()}
        return Plan(action, float(memory.q[action]), candidates, details={"hopes": hopes})
