"""The rollout policy of BAMCP and BAUCT: ε-greedy for a table that Q-learning keeps, ties broken at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Space
from bamdp._serial import saveable


@saveable
class RolloutLearner(NamedTuple):
    """The Q-learner behind the rollouts and its policy; both are written to."""

    q: np.ndarray  # float64 [S, A]
    below: np.ndarray  # float64 [S, A - 1]: probability that the rollout policy takes one of the actions 0..a
    epsilon: float
    rate: float


@primitive
def rollout_action(learner, s, rng):
    """ε-greedy. Comparing with every bound, not only up to the first above, leaves no branch to mispredict."""
    u = uniform(rng)
    a = 0
    for b in range(learner.below.shape[1]):
        a += np.int64(u >= learner.below[s, b])
    return a


@primitive
def learn_transition(learner, space, discount, s, a, r, s2):
    """Take one step of Q-learning, and set the rollout policy in ``s`` after it."""
    future = 0.0
    if not space.terminal[s2]:
        future = -np.inf
        for b in range(learner.q.shape[1]):
            if space.allowed[s2, b]:
                future = max(future, learner.q[s2, b])
    learner.q[s, a] += learner.rate * (r + discount * future - learner.q[s, a])
    set_policy(learner, space, s)


@primitive
def set_policy(learner, space, s):
    """Make the policy in ``s`` ε-greedy for Q; greedy actions share evenly."""
    best, n_greedy, n_allowed, last = -np.inf, 0, 0, 0
    for b in range(learner.q.shape[1]):
        if space.allowed[s, b]:
            n_allowed += 1
            last = b
            if learner.q[s, b] > best:
                best, n_greedy = learner.q[s, b], 0
            if learner.q[s, b] == best:
                n_greedy += 1
    total = 0.0
    for b in range(last):
        if space.allowed[s, b]:
            total += learner.epsilon / n_allowed
            if learner.q[s, b] == best:
                total += (1.0 - learner.epsilon) / n_greedy
        learner.below[s, b] = total
    for b in range(last, learner.below.shape[1]):
        learner.below[s, b] = 1.0


@kernel
def set_policies(learner, space):
    """Set the policy in every state."""
    for s in range(learner.q.shape[0]):
        set_policy(learner, space, s)


def new_rollout_learner(space: Space, epsilon: float, rate: float) -> RolloutLearner:
    """Q is 0: all allowed actions are greedy."""
    n_states, n_actions = space.allowed.shape
    learner = RolloutLearner(
        np.zeros((n_states, n_actions)), np.ones((n_states, n_actions - 1)), epsilon, rate
    )
    set_policies(learner, space)
    return learner
