"""BayesGreedy: act optimally for the posterior mean model (certainty equivalence). EpsilonGreedy explores beside it.

With P̄ = E_β[P] and r̄ = E_β[r], at every step

    V̄(s) = max_a Q̄(s, a),        Q̄(s, a) = r̄(s, a) + γ Σ_{s'} P̄(s' | s, a) V̄(s')

and the action is argmax_a Q̄(s, a), the lowest of equals. Nothing is planned for the sake of learning, so it may
settle for ever on a wrong action; a prior that is optimistic is the only reason to explore. In a bandit it is
the myopic rule.

V̄ is solved by :func:`bamdp._kernels.solve.solve` from the values of the step before, until the changes of one
sweep differ by at most ``tol``; one more backup in the current state gives Q̄. The action then loses at most
γ/(1−γ)·tol in the mean model.

**EpsilonGreedy** does the same, but now and then anything at all. With n(s) earlier decisions in state s,

    ε(s) = ε / (1 + decay · n(s)),

and the action is uniform among those that exist with probability ε(s), else that of BayesGreedy. The greedy action can
be drawn by the uniform choice too.

**Guarantee.** With ``decay`` > 0, Σ_n ε/(1 + decay·n) diverges while ε(s) goes to 0: greedy in the limit with
infinite exploration (GLIE; Singh, Jaakkola, Littman & Szepesvári 2000). In a communicating world every pair is
then tried for ever, the posterior mean converges to the truth and play to optimal play. How long that takes is
another matter: undirected exploration can need time exponential in the number of states, where planning for
information needs polynomial time. That gap is what this baseline is for. With ``decay`` = 0 a share of about ε
of the steps stays random for ever.

**Departures.** ε-greedy is older than any one paper (Watkins 1989 has it for Q-learning); greedy on the mean
model makes it a Bayesian's. The mean model is solved only in the steps that use it, from the values of the last
solution; ``plan`` shows its values in the other steps too, computed on a copy.

The defaults, ε = 0.1 and decay = 0.05, halve ε in a state after 20 decisions there.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import action_values
from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import mean_model
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.base import Plan, Planner, Transition, candidates, exact_candidates, greedy
from bamdp.planners.random_play import GREEDY, exploring_action
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


@dataclass
class BayesGreedyMemory:
    """The workspace's solver holds the values of the last step."""

    workspace: Workspace
    discount: float


def mean_values(memory: BayesGreedyMemory, belief: Belief, state: int, tol: float) -> np.ndarray:
    """Return Q̄(state, ·), float64 [A]."""
    q = np.empty(belief.n_actions)
    belief.run(solve_mean, memory.workspace, memory.discount, tol, state, q)
    return q


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

    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> BayesGreedyMemory:
        return BayesGreedyMemory(workspace_for(belief), discount)

    def act(self, memory: BayesGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return greedy(mean_values(memory, belief, state, self.tol))

    def plan(self, memory: BayesGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        values = mean_values(memory, belief, state, self.tol)
        best = greedy(values)
        return Plan(best, float(values[best]), exact_candidates(values))


@dataclass
class EpsilonGreedyMemory:
    """The solver's memory of the greedy rule, and what was decided so far."""

    greedy: BayesGreedyMemory
    visits: np.ndarray  # int64 [S, A]


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(Planner):
    """Optimal for the posterior mean model, with ε-greedy exploration.

    Parameters
    ----------
    epsilon
        Probability of a uniformly random action, in [0, 1].
    decay
        How fast it falls: after n decisions in a state it is ε / (1 + decay · n) there; 0 keeps it.
    tol
        Accuracy of the solution, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(EpsilonGreedy(epsilon=0.0), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]],
    ...                     n_states=1, n_actions=2, discount=0.9, seed=0)
    >>> agent.act(0)
    1
    """

    keeps: ClassVar[tuple[str, ...]] = ("visits",)

    epsilon: float = real_number(0.1, low=0.0, high=1.0)
    decay: float = real_number(0.05, low=0.0)
    tol: float = positive_number(1e-4)

    def start(self, belief: Belief, discount: float) -> EpsilonGreedyMemory:
        visits = np.zeros((belief.n_states, belief.n_actions), np.int64)
        return EpsilonGreedyMemory(BayesGreedyMemory(workspace_for(belief), discount), visits)

    def set_discount(self, memory: EpsilonGreedyMemory, discount: float) -> None:
        memory.greedy.discount = discount

    def act(self, memory: EpsilonGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        chosen = exploring_action(belief.space.allowed, state, self._epsilon(memory, state), rng)
        if chosen != GREEDY:
            return int(chosen)
        return greedy(mean_values(memory.greedy, belief, state, self.tol))

    def plan(self, memory: EpsilonGreedyMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        epsilon = self._epsilon(memory, state)
        chosen = exploring_action(belief.space.allowed, state, epsilon, rng)
        exploring = chosen != GREEDY
        greedy_memory = copy.deepcopy(memory.greedy) if exploring else memory.greedy
        values = mean_values(greedy_memory, belief, state, self.tol)
        usual = greedy(values)
        action = int(chosen) if exploring else usual
        actions = np.flatnonzero(~np.isnan(values))
        weighed = candidates(actions, values[actions], counts=memory.visits[state, actions])
        details = {"epsilon": epsilon, "explored": exploring, "greedy_action": usual}
        return Plan(action, float(values[action]), weighed, details=details)

    def learn(self, memory: EpsilonGreedyMemory, belief: Belief, seen: Transition) -> None:
        memory.visits[seen.s, seen.a] += 1

    def _epsilon(self, memory: EpsilonGreedyMemory, state: int) -> float:
        return float(self.epsilon / (1.0 + self.decay * memory.visits[state].sum()))
