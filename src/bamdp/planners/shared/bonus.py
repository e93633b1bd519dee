"""The mean model with a bonus on its rewards, kept up to date row by row: what BEB and VBRB share.

With P̄ = E_β[P] and r̄ = E_β[r] and a bonus B_β(s, a) that a planner defines, at every step

    V(s) = max_a Q(s, a),        Q(s, a) = r̄(s, a) + B_β(s, a) + γ Σ_{s'} P̄(s' | s, a) V(s'),

and the action is argmax_a Q(s, a), the lowest of equals. The belief is not updated inside the plan: the bonus
stands for what looking ahead would find worth learning.

One transition changes one row where rows are independent, so that row alone is written anew and the model is
solved from the values of the step before (:func:`bamdp._kernels.solve.solve`), until the changes of one sweep
differ by at most ``tol``: the action loses at most γ/(1−γ)·tol in the model with the bonus.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel, primitive
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import action_values
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import skip_row
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Plan, Planner, Transition, exact_candidates
from bamdp.planners.shared.workspace import Workspace, workspace_for

EVERY_ROW, NO_ROW = -1, -2  # instead of the one row that a transition has changed


class BonusModel(NamedTuple):
    """The mean model with bonuses, as it is written into a workspace."""

    rule: Any  # the planner's parameters, for which :func:`bonus` is registered
    discount: float
    tol: float
    extra: np.ndarray  # float64 [S*A]: the bonuses in rows.reward; written to
    q: np.ndarray  # float64 [A]: action values of the last step; written to


@generic
def bonus(rule, belief, row, rows, variance, begin, end, at, background):
    """Return what ``row`` is paid beyond its expected reward; NaN if the scratch from ``at`` on is too small.

    The mean row stands at ``begin:end`` of ``rows`` (plus background); entries of ``rows`` and of ``variance`` from
    ``at`` on are scratch.
    """


@inner
def refresh_model(belief, rows, variance, model, changed):
    """Write the mean model with bonuses into ``rows``: the row ``changed``, or EVERY_ROW, or NO_ROW.

    The bonuses are added to ``rows.reward`` and kept in ``model.extra``; ``variance`` is scratch as long as
    ``rows.prob``. Rows stand one after the other. Returns NO_ROOM if that is too short, else the used entries.
    """
    space = belief.space
    n_states, n_actions = space.allowed.shape
    end = rows.span[n_states * n_actions - 1, 1]
    if changed == NO_ROW:
        return end
    if changed != EVERY_ROW:  # one row: all others stay as they are
        if not space.allowed[changed // n_actions, changed % n_actions]:
            return end
        return _replace_row(belief, rows, variance, model, changed, end)
    at = 0  # every row, one after the other
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if space.terminal[s] or not space.allowed[s, a]:
                skip_row(rows, row, at)
                model.extra[row] = 0.0
                continue
            end = _write_row(belief, rows, variance, model, row, at)
            if end == NO_ROOM:
                return end
            rows.span[row, 0] = at
            rows.span[row, 1] = end
            at = end
    return at


@primitive
def write_mean_row(rule, belief, rows, variance, row, at):
    """Write a row's entries to ``at:end`` and its background; return (end or NO_ROOM, expected reward, bonus)."""
    end, background = verbs.mean_row(belief.transitions, row, rows.index, rows.prob, at)
    if end == NO_ROOM:
        return np.int64(NO_ROOM), 0.0, 0.0
    more = bonus(rule, belief, row, rows, variance, at, end, end, background)
    if np.isnan(more):
        return np.int64(NO_ROOM), 0.0, 0.0
    expected = verbs.expected_reward(belief.rewards, row, rows.index, rows.prob, at, end, background)
    rows.background[row] = background
    return np.int64(end), expected, more


@primitive
def _write_row(belief, rows, variance, model, row, at):
    """Write a row's entries to ``at:end``, its background, reward and bonus to their places; return the end."""
    end, expected, more = write_mean_row(model.rule, belief, rows, variance, row, at)
    if end != NO_ROOM:
        rows.reward[row] = expected + more
        model.extra[row] = more
    return end


@inner
def _replace_row(belief, rows, variance, model, row, used):
    """Write one row anew: behind all others first, then into its place, to which those after it are moved."""
    end = _write_row(belief, rows, variance, model, row, used)
    if end == NO_ROOM:
        return end
    size = end - used
    begin, stop = rows.span[row, 0], rows.span[row, 1]
    longer = size - (stop - begin)
    if longer > 0:  # the new entries themselves move along
        if end + longer > rows.index.shape[0]:
            return np.int64(NO_ROOM)
        for i in range(end - 1, stop - 1, -1):
            rows.index[i + longer] = rows.index[i]
            rows.prob[i + longer] = rows.prob[i]
    elif longer < 0:
        for i in range(stop, end):
            rows.index[i + longer] = rows.index[i]
            rows.prob[i + longer] = rows.prob[i]
    for i in range(size):
        rows.index[begin + i] = rows.index[used + longer + i]
        rows.prob[begin + i] = rows.prob[used + longer + i]
    rows.span[row, 1] += longer
    if longer != 0:
        for later in range(row + 1, rows.span.shape[0]):
            rows.span[later, 0] += longer
            rows.span[later, 1] += longer
    return used + longer


@kernel
def solve_with_bonus(belief, workspace, model, changed, s):
    """Bring the model up to date, solve it, write Q(s, ·) to ``model.q`` (NaN: no such action).

    ``changed``, int64 [1], is the row that has changed, or EVERY_ROW, or NO_ROW; it is EVERY_ROW if there is no room.
    Returns the greedy action, or NO_ROOM.
    """
    rows, solver = workspace.rows, workspace.solver
    if refresh_model(belief, rows, solver.sums, model, changed[0]) == NO_ROOM:
        changed[0] = EVERY_ROW
        return NO_ROOM
    solve(rows, belief.space, model.discount, model.tol, solver, False)
    return action_values(rows, belief.space, model.discount, solver.values, s, model.q)


@dataclass
class BonusMemory:
    """The mean model of the last step with its values, and what has changed since."""

    workspace: Workspace
    model: BonusModel
    changed: np.ndarray  # int64 [1]: the row that has changed since the last step, EVERY_ROW or NO_ROW
    n_observed: int = 0  # transitions that the belief had when `changed` was set


class BonusPlanner(Planner):
    """A planner that is optimal for the mean model with a bonus; ``tol`` is the accuracy of its solution."""

    tol: float

    @abstractmethod
    def rule(self) -> Any:
        """Return the parameters as a NamedTuple that :func:`bonus` is registered for."""

    def start(self, belief: Belief, discount: float) -> BonusMemory:
        extra, q = np.zeros(belief.n_states * belief.n_actions), np.zeros(belief.n_actions)
        model = BonusModel(self.rule(), discount, float(self.tol), extra, q)
        return BonusMemory(workspace_for(belief), model, np.array([EVERY_ROW]), belief.n_observed)

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if belief.n_observed != memory.n_observed:  # it has learned behind the agent's back
            memory.changed[0] = EVERY_ROW
        action = belief.run(solve_with_bonus, memory.workspace, memory.model, memory.changed, state)
        memory.changed[0] = NO_ROW
        memory.n_observed = belief.n_observed
        return int(action)

    def plan(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        first = state * belief.n_actions
        candidates = exact_candidates(memory.model.q)
        bonuses = {c.action: float(memory.model.extra[first + c.action]) for c in candidates}
        return Plan(action, float(memory.model.q[action]), candidates, details={"bonus": bonuses})

    def set_discount(self, memory: BonusMemory, discount: float) -> None:
        memory.model = memory.model._replace(discount=discount)

    def on_space_changed(self, memory: BonusMemory, belief: Belief) -> None:
        memory.changed[0] = EVERY_ROW

    def learn(self, memory: BonusMemory, belief: Belief, seen: Transition) -> None:
        one_row = (
            memory.changed[0] == NO_ROW
            and not seen.terminated
            and belief.n_observed == memory.n_observed + 1
            and belief.independent_rows
        )
        memory.changed[0] = seen.s * belief.n_actions + seen.a if one_row else EVERY_ROW
        memory.n_observed = belief.n_observed


def require_counts(belief: Belief, name: str) -> None:
    """Refuse a belief that does not count transitions row by row."""
    if not belief.transitions.counts_transitions:
        raise ValueError(
            f"{name} needs a prior that counts transitions, such as Dirichlet, SparseDirichlet or a Mixture of "
            f"them; {belief.prior} has no counts: use VBRB, SBOSS or ThompsonSampling with it"
        )
