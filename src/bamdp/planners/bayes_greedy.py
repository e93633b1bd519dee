"""BayesGreedy: act optimally for the posterior mean model (certainty equivalence). EpsilonGreedy adds exploration.

Let P̄ = E_β[P] and r̄ = E_β[r]. At every step

    V̄(s) = max_a Q̄(s, a),        Q̄(s, a) = r̄(s, a) + γ Σ_{s'} P̄(s' | s, a) V̄(s')

and the action is argmax_a Q̄(s, a), with ties going to the lowest action. The planner ignores the value of information,
so it may settle on a suboptimal action; it explores only if the prior is optimistic. In a bandit it is the myopic rule.

See :mod:`bamdp.planners.shared.bonus`, with a bonus of 0, for how the model is maintained and solved.

**EpsilonGreedy** does the same but sometimes acts at random. With n(s) earlier decisions in state s,

    ε(s) = ε / (1 + decay · n(s)),

with probability ε(s) the action is drawn uniformly from the available actions (including the greedy one); otherwise it
is that of BayesGreedy.

**Guarantee.** With ``decay`` > 0, Σ_n ε/(1 + decay·n) diverges while ε(s) goes to 0: greedy in the limit with infinite
exploration (GLIE; Singh, Jaakkola, Littman & Szepesvári 2000). In a communicating MDP every pair is then tried
infinitely often, the posterior mean converges to the true model and behaviour becomes optimal. Convergence can be slow:
undirected exploration can take time exponential in the number of states, whereas planning for information takes
polynomial time. This baseline serves to show that gap. With ``decay`` = 0, about a fraction ε of the steps remains
random.

**Departures.** ε-greedy exploration has no single source (Watkins 1989 uses it for Q-learning); here the greedy action
is that of the posterior mean model. The defaults, ε = 0.1 and decay = 0.05, halve ε in a state after 20 decisions
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bamdp._parameters import positive_number, real_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import Plan, candidates
from bamdp.planners.random_play import GREEDY, exploring_action
from bamdp.planners.shared.bonus import TOL_HELP, BonusMemory, BonusPlanner, bonus


class NoBonus(NamedTuple):
    """A bonus of 0."""

    unused: int = 0


@bonus.register(NoBonus)
def _bonus(rule, belief, row, rows, variance, begin, end, background):
    return 0.0


@dataclass(frozen=True, kw_only=True)
class BayesGreedy(BonusPlanner):
    """Certainty-equivalent planning with the posterior mean model, solved at every step.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(BayesGreedy(), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]], n_states=1,
    ...                     n_actions=2, discount=0.9, seed=0)
    >>> plan = agent.plan(0)
    >>> plan.action, round(plan.value, 2)
    (1, 10.0)
    """

    tol: float = positive_number(1e-4, help=TOL_HELP)

    def rule(self) -> NoBonus:
        return NoBonus()


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(BayesGreedy):
    """Certainty-equivalent planning with ε-greedy exploration.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(EpsilonGreedy(epsilon=0.0), prior=bamdp.Dirichlet(), rewards=[[0.0, 1.0]],
    ...                     n_states=1, n_actions=2, discount=0.9, seed=0)
    >>> agent.act(0)
    1
    """

    epsilon: float = real_number(
        0.1, low=0.0, high=1.0, help="Probability of a uniformly random action, in [0, 1]."
    )
    decay: float = real_number(
        0.05,
        low=0.0,
        help="How fast it falls: after n decisions in a state it is ε / (1 + decay · n) there; 0 keeps it.",
    )

    def act(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        explored = exploring_action(belief.space.allowed, state, self._epsilon(memory, state), rng)
        usual = super().act(memory, belief, state, rng)
        return usual if explored == GREEDY else int(explored)

    def plan(self, memory: BonusMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        epsilon, before = self._epsilon(memory, state), rng.copy()
        action = self.act(memory, belief, state, rng)
        explored = exploring_action(belief.space.allowed, state, epsilon, before) != GREEDY
        actions = np.flatnonzero(~np.isnan(memory.q))
        weighed = candidates(actions, memory.q[actions], counts=memory.visits[state, actions])
        details = {"epsilon": epsilon, "explored": explored, "greedy_action": int(np.nanargmax(memory.q))}
        return Plan(action, float(memory.q[action]), weighed, details=details)

    def _epsilon(self, memory: BonusMemory, state: int) -> float:
        return float(self.epsilon / (1.0 + self.decay * memory.visits[state].sum()))
