"""QLearning: values learned from real steps only, without a model. Random: the baseline without any learning.

After a transition (s, a, r, s'), the n-th visit to the pair, the update is

    Q(s, a) ← Q(s, a) + η_n (r + γ max_{a'} Q(s', a') − Q(s, a)),      η_n = η / n^power,

without the next-state term if s' is terminal. Actions are ε-greedy with ε(s) = ε / (1 + decay · n(s)) after n(s)
decisions in s, as in :class:`~bamdp.planners.bayes_greedy.EpsilonGreedy`; ties are broken at random.

**Guarantee.** If every pair is visited infinitely often and 1/2 < power <= 1, then Q → Q* with probability one (Watkins
& Dayan 1992); a power near 1 is slow, since with 1/n the influence of early bootstrapped values decays only as n^−(1−γ)
(Even-Dar & Mansour 2003). The default is a constant rate (power 0), which tracks Q* up to noise and learns faster
within the thousand steps of our tables.

**Departures.** None from Watkins. The belief is used only to determine which actions exist and which states are
terminal, although the agent still updates it.

**Defaults.** η = 0.2 and ε = 0.1 as in most baselines, decay = 0.05, and initial values of 0. Optimistic initial values
(``initial`` = r_max/(1−γ)) explore every pair systematically, but on a grid they are so high that a thousand steps are
not enough to bring them down.

Reference: C. J. C. H. Watkins, Learning from Delayed Rewards (1989).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._parameters import real_number
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import (
    KernelPlanner,
    Plan,
    Transition,
    best_of,
    candidates,
    exploring_action,
    random_action,
)


@dataclass
class QLearningMemory:
    """The learned values and visit counts."""

    q: np.ndarray  # float64 [S, A]
    visits: np.ndarray  # int64 [S, A]
    discount: float


@dataclass(frozen=True, kw_only=True)
class QLearning(KernelPlanner):
    """Watkins's Q-learning with ε-greedy exploration.

    Parameters
    ----------
    learning_rate
        η, in (0, 1].
    power
        Decay of the learning rate: η / n^power at the n-th visit to a pair. 0 means a constant rate; values converge
        for powers in (1/2, 1].
    epsilon
        Probability of a uniformly random action, in [0, 1].
    decay
        Decay of ε: ε / (1 + decay · n) after n decisions in a state. 0 means constant ε.
    initial
        Initial value of every Q.

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(QLearning(learning_rate=0.5), prior=bamdp.Dirichlet(), n_states=2, n_actions=1,
    ...                     discount=0.9, seed=0)
    >>> agent.observe(0, 0, 1.0, 1)
    >>> agent.plan(0).value
    0.5
    """

    uses_prior: ClassVar[bool] = False
    one_discount: ClassVar[str] = "its values are learned under one discount"

    keeps: ClassVar[tuple[str, ...]] = ("q", "visits")

    learning_rate: float = real_number(0.2, low=0.0, high=1.0, open_low=True)
    power: float = real_number(0.0, low=0.0, high=1.0)
    epsilon: float = real_number(0.1, low=0.0, high=1.0)
    decay: float = real_number(0.05, low=0.0)
    initial: float = real_number(0.0)

    def start(self, belief: Belief, discount: float) -> QLearningMemory:
        shape = (belief.n_states, belief.n_actions)
        return QLearningMemory(np.full(shape, float(self.initial)), np.zeros(shape, np.int64), discount)

    def act(self, memory: QLearningMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        allowed = belief.space.allowed[state]
        action = exploring_action(allowed, self._epsilon(memory, state), rng)
        if action is not None:
            return action
        actions = allowed.nonzero()[0]
        return best_of(actions, memory.q[state, actions], rng)

    def plan(self, memory: QLearningMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        q, visits = memory.q[state], memory.visits[state]
        actions = np.flatnonzero(belief.space.allowed[state])
        details = {"epsilon": self._epsilon(memory, state), "greedy": bool(q[action] == q[actions].max())}
        weighed = candidates(actions, q[actions], counts=visits[actions])
        return Plan(action, float(q[action]), weighed, details=details)

    def learn(self, memory: QLearningMemory, belief: Belief, seen: Transition) -> None:
        s, a, r, s2, _ = seen
        memory.visits[s, a] += 1
        rate = self.learning_rate / memory.visits[s, a] ** self.power
        after = 0.0
        if not belief.space.terminal[s2]:
            after = memory.q[s2][belief.space.allowed[s2]].max()
        memory.q[s, a] += rate * (r + memory.discount * after - memory.q[s, a])

    def _epsilon(self, memory: QLearningMemory, state: int) -> float:
        return float(self.epsilon / (1.0 + self.decay * memory.visits[state].sum()))


@dataclass(frozen=True)
class Random(KernelPlanner):
    """Uniformly random actions. Plans have no values (NaN).

    Examples
    --------
    >>> import bamdp
    >>> agent = bamdp.Agent(Random(), prior=bamdp.Dirichlet(), n_states=2, n_actions=3, discount=0.9, seed=0)
    >>> 0 <= agent.act(0) < 3
    True
    """

    uses_prior: ClassVar[bool] = False

    def act(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> int:
        return random_action(belief.space.allowed[state], rng)

    def plan(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        actions = np.flatnonzero(belief.space.allowed[state])
        return Plan(action, float("nan"), candidates(actions, float("nan")))
