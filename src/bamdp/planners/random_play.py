"""Random: choose every allowed action with equal probability, the minimal baseline for any planner.

This module also contains the other rules for choosing among the actions of a state: ε-greedy choice, and the best
action with ties broken at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below, uniform
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import KernelPlanner, Plan, candidates

GREEDY = -1  # returned by exploring_action to select the greedy action


@kernel
def random_action(allowed, s, rng):
    """Draw an action uniformly from those that exist in state ``s``; ``allowed`` is [S, A]."""
    n = 0
    for a in range(allowed.shape[1]):
        n += allowed[s, a]
    left = below(rng, n)
    for a in range(allowed.shape[1]):
        if allowed[s, a]:
            if left == 0:
                return a
            left -= 1
    return -1


@kernel
def exploring_action(allowed, s, epsilon, rng):
    """Return a uniformly random action of state ``s`` with probability ``epsilon``, else GREEDY."""
    if uniform(rng) < epsilon:
        return random_action(allowed, s, rng)
    return GREEDY


@kernel
def best_action_of(scores, allowed, s, rng):
    """Return the existing action in ``s`` with the highest score, breaking ties at random.

    ``scores`` is [A], ``allowed`` [S, A]. Random numbers are used only for ties.
    """
    best = -np.inf
    n, action = 0, -1
    for a in range(scores.shape[0]):
        if allowed[s, a] and scores[a] >= best:
            n = n + 1 if scores[a] == best else 1
            best = scores[a]
            action = a
    if n == 1:
        return action
    left = below(rng, n)
    for a in range(scores.shape[0]):
        if allowed[s, a] and scores[a] == best:
            if left == 0:
                return a
            left -= 1
    return action


@primitive
def any_best(scores, rng):
    """Return the index of the highest score, breaking ties at random; NaN and −∞ are never chosen.

    ``scores`` is [A]. One random number is used for each score that equals the running maximum.
    """
    best, place, ties = -np.inf, 0, 1
    for i in range(scores.shape[0]):
        if scores[i] > best:
            best, place, ties = scores[i], i, 1
        elif scores[i] == best and best > -np.inf:
            ties += 1
            if below(rng, ties) == 0:
                place = i
    return place


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

    def start(self, belief: Belief, discount: float) -> None:
        return None

    def act(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> int:
        return int(random_action(belief.space.allowed, state, rng))

    def plan(self, memory: None, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        actions = np.flatnonzero(belief.space.allowed[state])
        return Plan(action, float("nan"), candidates(actions, float("nan")))
