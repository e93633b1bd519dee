"""The mean model with a bonus on its rewards, kept up to date row by row: what BayesGreedy, BEB and VBRB share.

With P̄ = E_β[P] and r̄ = E_β[r] and a bonus B_β(s, a) that a planner defines (0 for BayesGreedy), at every step

    V(s) = max_a Q(s, a),        Q(s, a) = r̄(s, a) + B_β(s, a) + γ Σ_{s'} P̄(s' | s, a) V(s'),

and the action is argmax_a Q(s, a), the lowest of equals. The belief is not updated inside the plan: the bonus
stands for what looking ahead would find worth learning.

One transition changes one row where rows are independent, so only that row is written again and the model is
solved from the values of the step before (:func:`bamdp._kernels.solve.solve`), until the changes of one sweep
differ by at most ``tol``: the action loses at most γ/(1−γ)·tol in the model with the bonus.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import action_values
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, skip_row
from bamdp.planners.base import KernelPlanner, Plan, Transition, exact_candidates
from bamdp.planners.shared.workspace import Workspace, workspace_for

EVERY_ROW, NO_ROW = -1, -2  # instead of the one row that a transition has changed
TOL_HELP = "Accuracy of the solution, as in :class:`~bamdp.generators.PI`."


class BonusParams(NamedTuple):
    """The bonus and how the model is solved."""

    rule: Any  # the bonus's parameters, for which :func:`bonus` is registered
    discount: float
    tol: float


@generic
def bonus(rule, belief, row, rows, variance, begin, end, background):
    """Return what ``row`` is paid beyond its expected reward.

    The mean row stands at ``begin:end`` of ``rows`` (plus background). From ``end`` on, entries of ``rows`` and of
    ``variance`` are scratch that a row fits into.
    """


@inner
def write_mean_row(rule, belief, rows, variance, extra, row, at):
    """Write the mean row of a pair at ``at``, with its expected reward, and its bonus to ``extra``; return its end."""
    end, background = verbs.mean_row(belief.transitions, row, rows.index, rows.prob, at)
    rows.span[row, 0] = at
    rows.span[row, 1] = end
    rows.background[row] = background
    rows.reward[row] = verbs.expected_reward(belief.rewards, row, rows.index, rows.prob, at, end, background)
    extra[row] = bonus(rule, belief, row, rows, variance, at, end, background)
    return end


@inner
def write_mean_model(rule, belief, rows, variance, extra):
    """Write all mean rows one after the other, bonuses to ``extra`` alone; return the used entries."""
    space = belief.space
    n_states, n_actions = space.allowed.shape
    at = np.int64(0)
    for row in range(n_states * n_actions):
        if space.terminal[row // n_actions] or not space.allowed[row // n_actions, row % n_actions]:
            skip_row(rows, row, at)
            extra[row] = 0.0
            continue
        check_space(belief, rows, at, 2)  # a row and the scratch of its bonus
        at = np.int64(write_mean_row(rule, belief, rows, variance, extra, row, at))
    return at


@inner
def rewrite_mean_row(rule, belief, rows, variance, extra, row):
    """Write one row of a model again in its place; return False if it does not fit there."""
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
    """Bring the model in ``workspace`` up to date and solve it; write Q(s, ·) to ``q`` (NaN: no such action).

    ``changed`` is the row that has changed, or EVERY_ROW, or NO_ROW; ``extra``, float64 [S*A], are the bonuses that
    are included in the rewards. Returns the greedy action.
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
    """The mean model of the last step with its values, and what has changed since."""

    workspace: Workspace
    params: BonusParams
    extra: np.ndarray  # float64 [S*A]: bonuses
    q: np.ndarray  # float64 [A]: action values of the last step
    visits: np.ndarray  # int64 [S, A]: real steps
    changed: int = EVERY_ROW  # the row that has changed since the last step, EVERY_ROW or NO_ROW
    n_observed: int = 0  # transitions that the belief had when `changed` was set


class BonusPlanner(KernelPlanner):
    """A planner that is optimal for the mean model with a bonus; ``tol`` is the accuracy of its solution."""

    keeps: ClassVar[tuple[str, ...]] = ("workspace.solver.values", "visits")
    tol: float

    @abstractmethod
    def rule(self) -> Any:
        """Return the parameters as a NamedTuple that :func:`bonus` is registered for."""

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        S, A = belief.n_states, belief.n_actions
        params = BonusParams(self.rule(), discount, float(self.tol))
        visits = np.zeros((S, A), np.int64)
        return BonusMemory(workspace_for(belief), params, np.zeros(S * A), np.zeros(A), visits)

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if belief.n_observed != memory.n_observed:  # it has learned from elsewhere
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
    """Refuse a belief that does not count transitions row by row."""
    if not belief.transitions.counts_transitions:
        raise ValueError(
            f"{name} needs a prior that counts transitions, such as Dirichlet, SparseDirichlet or a Mixture of "
            f"them; {belief.prior} has no counts: use VBRB, SBOSS or ThompsonSampling with it"
        )
