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
from typing import Any

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel, primitive
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import action_values
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.beliefs.full import FullState
from bamdp.beliefs.mixture import MixtureState
from bamdp.beliefs.models import skip_row
from bamdp.beliefs.sparse import SparseState
from bamdp.beliefs.symmetric import SymmetricState
from bamdp.beliefs.values import FiniteRewards
from bamdp.planners.base import Candidate, Plan, Planner, Transition
from bamdp.planners.workspace import Workspace, new_workspace

MAX_ROUNDS = 100_000
EVERY_ROW, NO_ROW = -1, -2  # instead of the one row that a transition has changed
INDEPENDENT = (SymmetricState, FullState, SparseState)  # a transition changes its own row only


@generic
def bonus(B, T, R, row, index, mean, variance, begin, at, background):
    """What ``row`` is paid beyond its expected reward; NaN if the scratch from ``at`` on is too small.

    The mean row stands at ``begin:at`` (plus background).
    """


@inner
def refresh(T, R, space, B, rows, variance, extra, changed):
    """The mean model with bonuses into ``rows``: the row ``changed``, or EVERY_ROW, or NO_ROW.

    The bonuses are added to ``rows.reward`` and kept in ``extra`` [S*A]; ``variance`` is scratch as long as
    ``rows.prob``. Rows stand one after the other. Returns NO_ROOM if that is too short, else the used entries.
    """
    n_states, n_actions = space.allowed.shape
    end = rows.span[n_states * n_actions - 1, 1]
    if changed == NO_ROW:
        return end
    if changed != EVERY_ROW:
        if not space.allowed[changed // n_actions, changed % n_actions]:
            return end
        return _replace(T, R, B, rows, variance, extra, changed, end)
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if space.terminal[s] or not space.allowed[s, a]:
                skip_row(rows, row, at)
                extra[row] = 0.0
                continue
            end = _write(T, R, B, rows, variance, extra, row, at)
            if end == verbs.NO_ROOM:
                return end
            rows.span[row, 0] = at
            rows.span[row, 1] = end
            at = end
    return at


@primitive
def _write(T, R, B, rows, variance, extra, row, at):
    """A row's entries to ``at:end``, its background, reward and bonus to their places; returns the end."""
    end, background = verbs.mean_row(T, row, rows.index, rows.prob, at)
    if end == verbs.NO_ROOM:
        return end
    more = bonus(B, T, R, row, rows.index, rows.prob, variance, at, end, background)
    if np.isnan(more):
        return verbs.NO_ROOM
    expected = verbs.expected_reward(R, row, rows.index, rows.prob, at, end, background)
    rows.background[row] = background
    rows.reward[row] = expected + more
    extra[row] = more
    return end


@inner
def _replace(T, R, B, rows, variance, extra, row, used):
    """Write one row anew: behind all others first, then into its place, to which those after it are moved."""
    end = _write(T, R, B, rows, variance, extra, row, used)
    if end == verbs.NO_ROOM:
        return end
    size = end - used
    begin, stop = rows.span[row, 0], rows.span[row, 1]
    longer = size - (stop - begin)
    if longer > 0:  # the new entries themselves move along
        if end + longer > rows.index.shape[0]:
            return np.int64(verbs.NO_ROOM)
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
def solve_with_bonus(T, R, space, B, discount, tol, rows, solver, extra, changed, s, q):
    """Bring the model up to date, solve it, write Q(s, ·) to ``q`` [A] (NaN: no such action).

    Returns the greedy action, or NO_ROOM.
    """
    if refresh(T, R, space, B, rows, solver.sums, extra, changed) == verbs.NO_ROOM:
        return verbs.NO_ROOM
    solve(rows, space, discount, tol, MAX_ROUNDS, solver, False)
    return action_values(rows, space, discount, solver.values, s, q)


@known
@dataclass
class Memory:
    """The mean model of the last step with its values, and what has changed since."""

    space: Workspace
    discount: float
    extra: np.ndarray  # float64 [S*A]: the bonuses in rows.reward
    q: np.ndarray  # float64 [A]: action values of the last step
    changed: int = EVERY_ROW
    n_observed: int = 0  # transitions that the belief had when `changed` was set


class BonusPlanner(Planner):
    """A planner that is optimal for the mean model with a bonus; ``tol`` is the accuracy of its solution."""

    tol: float

    @abstractmethod
    def state(self, n_states: int) -> Any:
        """The parameters as a NamedTuple that :func:`bonus` is registered for."""

    def start(self, belief: Belief, discount: float) -> Memory:
        n_rows = belief.n_states * belief.n_actions
        space = new_workspace(belief)
        return Memory(
            space, discount, np.zeros(n_rows), np.zeros(belief.n_actions), EVERY_ROW, belief.n_observed
        )

    def act(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if belief.n_observed != memory.n_observed:  # it has learned behind the agent's back
            memory.changed = EVERY_ROW
        while True:
            space = memory.space
            action = belief.call(
                solve_with_bonus,
                belief.T,
                belief.R,
                belief.space,
                self.state(belief.n_states),
                memory.discount,
                self.tol,
                space.rows,
                space.solver,
                memory.extra,
                memory.changed,
                state,
                memory.q,
            )
            if action != verbs.NO_ROOM:
                break
            space.grow()
            memory.changed = EVERY_ROW
        memory.changed = NO_ROW
        memory.n_observed = belief.n_observed
        return int(action)

    def plan(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        first = state * belief.n_actions
        candidates = tuple(
            Candidate(a, float(q), spread=0.0) for a, q in enumerate(memory.q) if not np.isnan(q)
        )
        bonuses = {c.action: float(memory.extra[first + c.action]) for c in candidates}
        return Plan(action, float(memory.q[action]), candidates, details={"bonus": bonuses})

    def respace(self, memory: Memory, belief: Belief) -> None:
        memory.changed = EVERY_ROW

    def learn(self, memory: Memory, belief: Belief, seen: Transition) -> None:
        alone = (
            memory.changed == NO_ROW
            and not seen.terminated
            and belief.n_observed == memory.n_observed + 1
            and isinstance(belief.T, INDEPENDENT)
            and not (isinstance(belief.reward_model, FiniteRewards) and belief.reward_model.values is None)
        )
        memory.changed = seen.s * belief.n_actions + seen.a if alone else EVERY_ROW
        memory.n_observed = belief.n_observed


def require_counts(belief: Belief, name: str) -> None:
    """Refuse a belief that does not count transitions row by row."""
    waiting = [belief.T]
    while waiting:
        T = waiting.pop()
        if isinstance(T, MixtureState):
            waiting += T.parts
        elif type(T) not in verbs.concentration.table:
            raise ValueError(
                f"{name} needs a prior that counts transitions, such as Dirichlet, SparseDirichlet or a Mixture of "
                f"them; {belief.prior} has no counts: use VBRB, SBOSS or ThompsonSampling with it"
            )
