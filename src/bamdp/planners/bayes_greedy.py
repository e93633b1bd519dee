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
from bamdp._serial import saveable
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import mean_model
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Plan, Planner, action_candidates, greedy
from bamdp.planners.shared.workspace import Workspace, workspace_for


@kernel
def solve_mean(belief, workspace, discount, tol, s, q):
    """Solve the mean model; writes Q̄(s, ·) to ``q`` [A]. Returns NO_ROOM if the model does not fit."""
    rows, solver = workspace.rows, workspace.solver
    end = mean_model(belief, rows)
    if end != NO_ROOM:
        solve(rows, belief.space, discount, tol, solver, False)
        action_values(rows, belief.space, discount, solver.values, s, q)
    return end


@saveable
@dataclass
class BayesGreedyMemory:
    """The workspace's solver holds the values of the last step."""

    workspace: Workspace
    discount: float


@saveable
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

    def start(self, belief: Belief, discount: float) -> BayesGreedyMemory:
        return BayesGreedyMemory(workspace_for(belief), discount)

    def act(self, memory: BayesGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(self._values(memory, belief, state))

    def plan(self, memory: BayesGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        values = self._values(memory, belief, state)
        best = greedy(values)
        return Plan(best, float(values[best]), action_candidates(values))

    def _values(self, memory: BayesGreedyMemory, belief: Belief, state: int) -> np.ndarray:
        """Return Q̄(state, ·), float64 [A]."""
        q = np.empty(belief.n_actions)
        belief.run(solve_mean, memory.workspace, memory.discount, self.tol, state, q)
        return q
