"""BayesGreedy: act optimally for the posterior mean model (certainty equivalence).

With P̄ = E_β[P] and r̄ = E_β[r], at every step

    V̄(s) = max_a Q̄(s, a),        Q̄(s, a) = r̄(s, a) + γ Σ_{s'} P̄(s' | s, a) V̄(s')

and the action is argmax_a Q̄(s, a), the lowest of equals. Nothing is planned for the sake of learning, so it may
settle for ever on a wrong action; a prior that is optimistic is the only reason to explore. In a bandit it is
the myopic rule.

V̄ is solved by :func:`bamdp._kernels.solve.solve` from the values of the step before, until the changes of one
sweep differ by at most ``tol``; one more backup in the current state gives Q̄. The action then loses at most
γ/(1−γ)·tol in the mean model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import action_values
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.beliefs.models import mean_model
from bamdp.planners.base import Candidate, Plan, Planner, greedy
from bamdp.planners.workspace import Workspace, new_workspace

MAX_ROUNDS = 100_000


@kernel
def solve_mean(T, R, space, discount, tol, rows, solver, s, q):
    """Solve the mean model; writes Q̄(s, ·) to ``q`` [A]. Returns NO_ROOM if the model does not fit."""
    end = mean_model(T, R, space, rows)
    if end == verbs.NO_ROOM:
        return end
    solve(rows, space, discount, tol, MAX_ROUNDS, solver, False)
    action_values(rows, space, discount, solver.values, s, q)
    return end


@known
@dataclass
class Memory:
    """The workspace's solver holds the values of the last step."""

    space: Workspace
    discount: float


@known
@dataclass(frozen=True, kw_only=True)
class BayesGreedy(Planner):
    """Optimal for the posterior mean model, solved anew at every step.

    Parameters
    ----------
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(BayesGreedy(), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]], n_states=1,
    ...                     n_actions=2, discount=0.9, seed=0)
    >>> plan = agent.plan(0)
    >>> plan.action, round(plan.value, 2)
    (1, 10.0)
    """

    tol: float = 1e-4

    def __post_init__(self) -> None:
        _checks.real(self.tol, "tol", low=0.0, open_low=True)

    def start(self, belief: Belief, discount: float) -> Memory:
        return Memory(new_workspace(belief), discount)

    def act(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(self._values(memory, belief, state))

    def plan(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        values = self._values(memory, belief, state)
        candidates = tuple(
            Candidate(a, float(q), spread=0.0) for a, q in enumerate(values) if not np.isnan(q)
        )
        best = greedy(values)
        return Plan(best, float(values[best]), candidates)

    def _values(self, memory: Memory, belief: Belief, state: int) -> np.ndarray:
        """Q̄(state, ·), float64 [A]."""
        q = np.empty(belief.n_actions)
        while True:
            space = memory.space
            end = belief.call(
                solve_mean,
                belief.T,
                belief.R,
                belief.space,
                memory.discount,
                self.tol,
                space.rows,
                space.solver,
                state,
                q,
            )
            if end != verbs.NO_ROOM:
                return q
            space.grow()
