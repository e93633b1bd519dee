"""Optimism scaled by the belief: each pair is valued at the expected best backup over a few sampled models.

DSS draws models from the belief β and follows the best of their policies, so it tries a pair (s, a) if the pair might
turn out to be valuable. The optimism planner approximates this without sampling. With V̄ the values of the posterior
mean model, r̄ its rewards and Ȳ(s') = r̄(s, a, s') + γ V̄(s'), the backup of a pair in a model μ = (P, r) ~ β

    Σ_s' P(s' | s, a) (r(s, a, s') + γ V̄(s'))      has the mean Q̄(s, a) and the standard deviation

    u(s, a) = √( Var[Σ p̄ r] + Var[P Ȳ] ),
    Var[P Ȳ] = (Σ_s' p̄ Ȳ² − (Σ_s' p̄ Ȳ)²) · Σ_s' Var[p] / (1 − Σ_s' p̄²),

and the expected maximum of N draws is about Q̄ + k u, with k = 0.56 for two draws, 0.85 for three, 1.03 for four. The
agent acts optimally in the mean model with k u(s, a) added to the reward of every pair (``optimism`` is k):

    Q(s, a) = r̄(s, a) + k u(s, a) + γ Σ_s' p̄(s' | s, a) max_a' Q(s', a').

Var[P Ȳ] is exact for Dirichlet rows, where Σ Var[p] / (1 − Σ p̄²) = 1/(n₀ + n + 1). Other rows are approximated by the
covariance of a Dirichlet distribution with the same total variance. If rewards are learned for each next state, the
product of both uncertainties, Σ Var[p] Var[r], is neglected, and any mass that a row spreads over all states is
assumed to pay the row's mean reward.

**Units.** u scales with the rewards: multiplying all rewards by a constant multiplies Q by it, and without terminal
states adding c to all rewards adds c/(1 − γ) to Q. The agent does not explore what it already knows, however rarely it
was tried (structured priors), nor what makes no difference: Var[P Ȳ] = 0 if all next states pay and are worth the same.
As V̄ becomes more differentiated, uncertain paths to better states become attractive even from far away, because
planning takes u into account.

**Discount.** The default is 0.97, even if the number of steps is known. Optimism accumulates over the effective horizon
1/(1 − γ), although the errors of different pairs cancel, so a longer horizon leads to more exploration than pays off
within a thousand steps.

**Relatives.** VBRB (:mod:`bamdp.planners.bonuses`) uses bonuses based on the variances of individual probabilities,
which must be scaled to the rewards by hand. BOSS draws N models and uses the best of them for each pair. With k = 0 the
planner is Bayes-greedy.

References: Grover, Basu & Dimitrakakis (AISTATS 2020); Sorg, Singh & Lewis (UAI 2010); Asmuth, Li, Littman, Nouri &
Wingate, "A Bayesian sampling approach to exploration in reinforcement learning" (UAI 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, kernel
from bamdp._kernels.rows import action_values
from bamdp._kernels.solve import solve
from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, mean_model
from bamdp.planners.base import KernelPlanner, Plan, exact_candidates
from bamdp.planners.bayes_greedy import TOL_HELP
from bamdp.planners.shared.workspace import Workspace, workspace_for

CERTAIN = 1e-12  # 1 − Σ p² of a row with one outcome, up to rounding


@inner
def outcome_variance(belief, rows, row, discount, values, variance):
    """Return Var[P Ȳ] of a row of the mean model, using scratch for one row after the end of the model."""
    begin, end, n_states = rows.span[row, 0], rows.span[row, 1], values.shape[0]
    at = rows.span[rows.span.shape[0] - 1, 1]
    each = rows.background[row] / n_states
    first, second, alike = 0.0, 0.0, each * each * (n_states - (end - begin))
    reward, origin = rows.reward[row], values[0]  # avoids loss of precision with large offsets
    for i in range(begin, end):
        p, of_next = rows.prob[i], discount * (values[rows.index[i]] - origin)
        rows.index[at], rows.prob[at] = rows.index[i], 1.0
        y = (
            verbs.expected_reward(belief.rewards, row, rows.index, rows.prob, at, at + 1, 0.0)
            - reward
            + of_next
        )
        first += p * y
        second += p * y * y
        alike += (p + each) * (p + each)
    if each > 0.0:
        for t in range(n_states):
            y = discount * (values[t] - origin)
            first += each * y
            second += each * y * y
    if alike >= 1.0 - CERTAIN:
        return 0.0
    stop, _, rest = verbs.moments_row(belief.transitions, row, rows.index, rows.prob, variance, at)
    total = (n_states - (stop - at)) * rest
    for i in range(at, stop):
        total += variance[i]
    return max(0.0, second - first * first) * total / (1.0 - alike)


@inner
def write_uncertainty(belief, workspace, discount, uncertainty):
    """Write u for every pair, given the mean model in ``workspace`` and its values."""
    rows, solver, space = workspace.rows, workspace.solver, belief.space
    check_space(belief, rows, rows.span[rows.span.shape[0] - 1, 1], 1)
    n_actions = space.allowed.shape[1]
    for row in range(uncertainty.shape[0]):
        s = row // n_actions
        uncertainty[row] = 0.0
        if space.terminal[s] or not space.allowed[s, row % n_actions]:
            continue
        of_next = outcome_variance(belief, rows, row, discount, solver.values, solver.sums)
        begin, end, background = rows.span[row, 0], rows.span[row, 1], rows.background[row]
        of_reward = verbs.reward_variance(belief.rewards, row, rows.index, rows.prob, begin, end, background)
        uncertainty[row] = math.sqrt(of_reward + of_next)


@kernel
def decide(belief, workspace, discount, optimism, tol, values, uncertainty, s, q):
    """Write Q(s, ·) to ``q`` (NaN: no such action) and return the best action.

    ``values``, float64 [2, S], holds V̄ and max Q of the last decision and is overwritten with those of this one.
    """
    rows, solver = workspace.rows, workspace.solver
    mean_model(belief, rows)
    for i in range(2):
        for t in range(values.shape[1]):
            solver.values[t] = values[i, t]
        solve(rows, belief.space, discount, tol, solver, False)
        for t in range(values.shape[1]):
            values[i, t] = solver.values[t]
        if i == 0:
            write_uncertainty(belief, workspace, discount, uncertainty)
            for row in range(uncertainty.shape[0]):
                rows.reward[row] += optimism * uncertainty[row]
    return np.int64(action_values(rows, belief.space, discount, solver.values, s, q))


@dataclass
class OptimismMemory:
    """State kept between decisions."""

    workspace: Workspace
    discount: float
    values: np.ndarray  # float64 [2, S]: V̄ and max Q, warm starts for the next decision
    uncertainty: np.ndarray  # float64 [S*A]: u
    q: np.ndarray  # float64 [A]


@dataclass(frozen=True, kw_only=True)
class Optimism(KernelPlanner):
    """Optimal planning in the mean model, with bonuses proportional to the belief's uncertainty about each backup.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent.for_env("inventory", Optimism(optimism=0.5), rewards="hierarchical", seed=0)
    >>> run = bamdp.simulate(agent, "inventory", steps=500, seed=0)
    >>> plan = agent.plan(0)
    >>> bool(plan.details["uncertainty"][plan.action] < max(plan.details["uncertainty"].values()))
    True
    """

    result_version: ClassVar[int] = 3
    default_prior: ClassVar[str] = "hierarchical"
    default_discount: ClassVar[float | str] = 0.97
    keeps: ClassVar[tuple[str, ...]] = ("values",)

    optimism: float = real_number(
        1.0,
        low=0.0,
        help="k, posterior standard deviations of its value by which a pair is taken for better.",
    )
    tol: float = positive_number(1e-4, help=TOL_HELP)

    def start(self, belief: Belief, discount: float) -> OptimismMemory:
        S, A = belief.n_states, belief.n_actions
        return OptimismMemory(workspace_for(belief), discount, np.zeros((2, S)), np.zeros(S * A), np.zeros(A))

    def act(self, memory: OptimismMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        given = memory.discount, float(self.optimism), float(self.tol)
        arrays = memory.values, memory.uncertainty, state, memory.q
        return int(belief.run(decide, memory.workspace, *given, *arrays))

    def plan(self, memory: OptimismMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        weighed = exact_candidates(memory.q)
        u = memory.uncertainty.reshape(belief.n_states, -1)[state]
        details = {"uncertainty": {c.action: float(u[c.action]) for c in weighed}}
        return Plan(action, float(memory.q[action]), weighed, details=details)
