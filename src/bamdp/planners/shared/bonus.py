"""The mean model with reward bonuses, updated row by row; shared by BayesGreedy, BEB and VBRB.

Let P̄ = E_β[P], r̄ = E_β[r], and let B_β(s, a) be the planner's bonus (0 for BayesGreedy). At every step

    V(s) = max_a Q(s, a),        Q(s, a) = r̄(s, a) + B_β(s, a) + γ Σ_{s'} P̄(s' | s, a) V(s'),

and the action is argmax_a Q(s, a), with ties going to the lowest action. The belief is not updated during planning: the
bonus stands in for the value of information.

If rows are independent, a transition changes a single row. Only that row is rewritten, and the model is solved starting
from the values of the previous step (:func:`bamdp._kernels.solve.solve`), until the span of the updates in one sweep is
at most ``tol``. The action then loses at most γ/(1−γ)·tol in the model with the bonus.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel
from bamdp._kernels.rows import action_values
from bamdp._kernels.solve import solve
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, skip_row
from bamdp.planners.base import KernelPlanner, Plan, Transition, exact_candidates
from bamdp.planners.shared.workspace import Workspace, workspace_for

EVERY_ROW, NO_ROW = -1, -2  # used instead of the index of the changed row
TOL_HELP = "Accuracy of the solution, as in :class:`~bamdp.generators.PI`."


class BonusParams(NamedTuple):
    """Parameters of the bonus and of the solution."""

    rule: Any  # the bonus's parameters, for which :func:`bonus` is registered
    discount: float
    tol: float


@generic
def bonus(rule, belief, row, rows, variance, begin, end, background):
    """Return the bonus of ``row``, which is added to its expected reward.

    The mean row is stored at ``begin:end`` of ``rows`` (plus background). From ``end`` on, ``rows`` and ``variance``
    have scratch space for one row.
    """


@inner
def write_mean_row(rule, belief, rows, variance, extra, row, at):
    """Write a pair's mean row and expected reward at ``at`` and its bonus to ``extra``; return the row's end."""
    end, background = verbs.mean_row(belief.transitions, row, rows.index, rows.prob, at)
    rows.span[row, 0] = at
    rows.span[row, 1] = end
    rows.background[row] = background
    rows.reward[row] = verbs.expected_reward(belief.rewards, row, rows.index, rows.prob, at, end, background)
    extra[row] = bonus(rule, belief, row, rows, variance, at, end, background)
    return end


@inner
def write_mean_model(rule, belief, rows, variance, extra):
    """Write all mean rows contiguously and the bonuses to ``extra`` only; return the number of used entries."""
    space = belief.space
    n_states, n_actions = space.allowed.shape
    at = np.int64(0)
    for row in range(n_states * n_actions):
        if space.terminal[row // n_actions] or not space.allowed[row // n_actions, row % n_actions]:
            skip_row(rows, row, at)
            extra[row] = 0.0
            continue
        check_space(belief, rows, at, 2)  # a row and the scratch for its bonus
        at = np.int64(write_mean_row(rule, belief, rows, variance, extra, row, at))
    return at


@inner
def rewrite_mean_row(rule, belief, rows, variance, extra, row):
    """Rewrite one row of a model in place; return False if it does not fit."""
    used = rows.span[rows.span.shape[0] - 1, 1]
    begin, end = rows.span[row, 0], rows.span[row, 1]
    check_space(belief, rows, used, 2)
    size = write_mean_row(rule, belief, rows, variance, extra, row, used) - used
    rows.span[row, 0] = begin
    rows.span[row, 1] = end
    for i in range(min(size, end - begin)):
        rows.index[begin + i] = rows.index[used + i]
        rows.prob[begin + i] = rows.prob[used + i]
    return size == end - begin


@kernel
def solve_with_bonus(belief, workspace, params, extra, changed, s, q):
    """Update and solve the model in ``workspace``; write Q(s, ·) to ``q`` (NaN: no such action).

    ``changed`` is the changed row, EVERY_ROW or NO_ROW; ``extra``, float64 [S*A], holds the bonuses included in the
    rewards. Returns the greedy action.
    """
    rows, solver, rule = workspace.rows, workspace.solver, params.rule
    every = changed == EVERY_ROW
    if changed >= 0 and not every:
        every = not rewrite_mean_row(rule, belief, rows, solver.sums, extra, changed)
        rows.reward[changed] += extra[changed]
    if every:
        write_mean_model(rule, belief, rows, solver.sums, extra)
        for row in range(extra.shape[0]):
            rows.reward[row] += extra[row]
    solve(rows, belief.space, params.discount, params.tol, solver, False)
    return np.int64(action_values(rows, belief.space, params.discount, solver.values, s, q))


@dataclass
class BonusMemory:
    """The mean model of the last step, its values, and a record of changes since then."""

    workspace: Workspace
    params: BonusParams
    extra: np.ndarray  # float64 [S*A]: bonuses
    q: np.ndarray  # float64 [A]: action values of the last step
    visits: np.ndarray  # int64 [S, A]: real steps
    changed: int = EVERY_ROW  # the row changed since the last step, EVERY_ROW or NO_ROW
    n_observed: int = 0  # number of transitions in the belief when `changed` was set


class BonusPlanner(KernelPlanner):
    """A planner that acts optimally in the mean model with a bonus; ``tol`` is the accuracy of the solution."""

    keeps: ClassVar[tuple[str, ...]] = ("workspace.solver.values", "visits")
    tol: float

    @abstractmethod
    def rule(self) -> Any:
        """Return the parameters as a NamedTuple for which :func:`bonus` is registered."""

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        S, A = belief.n_states, belief.n_actions
        params = BonusParams(self.rule(), discount, float(self.tol))
        visits = np.zeros((S, A), np.int64)
        return BonusMemory(workspace_for(belief), params, np.zeros(S * A), np.zeros(A), visits)

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if belief.n_observed != memory.n_observed:  # the belief was also updated elsewhere
            memory.changed = EVERY_ROW
        given = memory.params, memory.extra, memory.changed, state, memory.q
        action = belief.run(solve_with_bonus, memory.workspace, *given)
        memory.changed, memory.n_observed = NO_ROW, belief.n_observed
        return int(action)

    def plan(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        candidates = exact_candidates(memory.q)
        extra = memory.extra.reshape(belief.n_states, -1)[state]
        details = {"bonus": {c.action: float(extra[c.action]) for c in candidates}}
        return Plan(action, float(memory.q[action]), candidates, details=details)

    def on_space_changed(self, memory: BonusMemory, belief: Belief) -> None:
        memory.changed = EVERY_ROW

    def learn(self, memory: BonusMemory, belief: Belief, seen: Transition) -> None:
        memory.visits[seen.s, seen.a] += 1
        one_row = (
            memory.changed == NO_ROW
            and not seen.terminated
            and belief.n_observed == memory.n_observed + 1
            and belief.independent_rows
        )
        memory.changed = seen.s * belief.n_actions + seen.a if one_row else EVERY_ROW
        memory.n_observed = belief.n_observed


def require_counts(belief: Belief, name: str) -> None:
    """Raise an error if the belief does not count transitions row by row."""
    if not belief.transitions.counts_transitions:
        raise ValueError(
            f"{name} needs a prior that counts transitions, such as Dirichlet, SparseDirichlet or a Mixture of "
            f"them; {belief.prior} has no counts: use VBRB, SBOSS or ThompsonSampling with it"
        )
