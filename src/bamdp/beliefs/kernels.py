"""Kernels on beliefs: learn a transition, simulate and undo one, and compute rows and models.

``belief`` is a :class:`~bamdp.beliefs.base.BeliefArrays`; ``row`` is ``s * n_actions + a``.
"""

from __future__ import annotations

import math

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, kernel, primitive
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Rows
from bamdp.beliefs.base import Weights

NO_SPACE = "a sampled model is larger than its buffer"

# --- one step ------------------------------------------------------------------------------------------------


@kernel
def observe(belief, row, s2, r):
    """Learn one transition; return its log predictive probability, or -inf, without learning, if it is impossible."""
    log_p = verbs.log_probability(belief.transitions, row, s2)
    if not log_p > -np.inf:
        return -np.inf
    verbs.push(belief.transitions, row, s2)
    # the reward distribution may depend on the transition just pushed
    log_q = verbs.log_reward_probability(belief.rewards, row, s2, r)
    if not log_q > -np.inf:
        verbs.pop(belief.transitions)
        return -np.inf
    verbs.push_reward(belief.rewards, row, s2, r)
    verbs.commit(belief.transitions, row)
    verbs.commit_reward(belief.rewards, row)
    return log_p + log_q


@primitive
def simulate_step(belief, row, rng):
    """Draw a transition and its reward from the predictive distribution and push both; return (next state, reward)."""
    s2 = verbs.advance(belief.transitions, row, rng)
    r = verbs.draw_reward(belief.rewards, row, s2, rng)
    verbs.push_reward(belief.rewards, row, s2, r)
    return s2, r


@primitive
def push_step(belief, row, s2, r):
    """Push a given transition and its reward."""
    verbs.push(belief.transitions, row, s2)
    verbs.push_reward(belief.rewards, row, s2, r)


@primitive
def undo_steps(belief, n):
    """Undo the last ``n`` pushed steps."""
    for _ in range(n):
        verbs.pop_reward(belief.rewards)
        verbs.pop(belief.transitions)


# --- rows and models -----------------------------------------------------------------------------------------


def empty_rows(n_rows: int, capacity: int) -> Rows:
    """Return a buffer of ``n_rows`` empty rows with ``capacity`` entries."""
    return Rows(
        span=np.full((n_rows, 2), -1, np.int64),
        index=np.empty(capacity, np.int32),
        prob=np.empty(capacity),
        background=np.zeros(n_rows),
        reward=np.zeros(n_rows),
    )


@primitive
def check_space(belief, rows, at, n_rows):
    """Raise MemoryError unless any ``n_rows`` rows fit at ``at``; :meth:`Belief.run` turns it into a clear message."""
    most = n_rows * verbs.most_entries(belief.transitions, belief.space.terminal.shape[0])
    if at + most > rows.index.shape[0]:
        raise MemoryError(NO_SPACE)


@kernel
def predictive_row(belief, row, index, prob):
    """Write a row's predictive distribution to ``index`` and ``prob``; return (end, background, expected reward)."""
    end, background = verbs.mean_row(belief.transitions, row, index, prob, 0)
    return end, background, verbs.expected_reward(belief.rewards, row, index, prob, 0, end, background)


@kernel  # not inner: compiled separately, it makes a DSS step 20% faster on small models
def sample_model(belief, rows, rng):
    """Draw a whole model from the posterior into ``rows``; return the number of entries used."""
    return sample_rows(belief, verbs.choose(belief.transitions, rng), rows, rng)


@primitive
def sample_rows(belief, choice, rows, rng):
    """Draw the rows of a model given the ``choice`` that they share; return the number of entries used."""
    n_states, n_actions = belief.space.allowed.shape
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if belief.space.terminal[s] or not belief.space.allowed[s, a]:
                skip_row(rows, row, at)
            else:
                check_space(belief, rows, at, 1)
                at = sample_into(belief, choice, row, rows, row, at, rng)
    return at


@primitive
def sample_into(belief, choice, pair, rows, row, at, rng):
    """Draw the row of ``pair`` and its expected reward into ``row`` of ``rows``, starting at ``at``; return its end.

    Check first that the row fits (:func:`check_space`).
    """
    index, prob = rows.index, rows.prob
    end, background = verbs.sample_row(belief.transitions, choice, pair, index, prob, at, rng)
    reward = verbs.sample_reward(belief.rewards, choice, pair, index, prob, at, end, background, rng)
    _finish_row(rows, row, at, end, background, reward)
    return end


@inner
def mean_model(belief, rows):
    """Write the posterior mean model to ``rows``; return the number of entries used."""
    n_states, n_actions = belief.space.allowed.shape
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if belief.space.terminal[s] or not belief.space.allowed[s, a]:
                skip_row(rows, row, at)
                continue
            check_space(belief, rows, at, 1)
            at = mean_into(belief, rows, row, at)
    return at


@primitive
def mean_into(belief, rows, row, at):
    """Write a pair's mean row and expected reward to ``rows``, starting at ``at``; return the row's end."""
    index, prob = rows.index, rows.prob
    end, background = verbs.mean_row(belief.transitions, row, index, prob, at)
    reward = verbs.expected_reward(belief.rewards, row, index, prob, at, end, background)
    _finish_row(rows, row, at, end, background, reward)
    return end


@primitive
def _finish_row(rows, row, at, end, background, reward):
    rows.span[row, 0] = at
    rows.span[row, 1] = end
    rows.background[row] = background
    rows.reward[row] = reward


@primitive
def skip_row(rows, row, at):
    """Write an empty row, for a terminal state or a missing action."""
    _finish_row(rows, row, at, at, 0.0, 0.0)


# --- weights over alternatives --------------------------------------------------------------------------------


def new_weights(weights: np.ndarray) -> Weights:
    """Return normalised weights from non-negative numbers, at least one of them positive."""
    share = weights / weights.sum()
    with np.errstate(divide="ignore"):
        return Weights(np.log(share), share, np.zeros((16, 2, len(share))), np.zeros(1, np.int64))


@primitive
def draw_weighted(weights, rng):
    """Draw an index with probability equal to its weight."""
    x = uniform(rng)
    last = weights.p.shape[0] - 1
    for m in range(last):
        x -= weights.p[m]
        if x < 0.0:
            return m
    while last > 0 and weights.p[last] == 0.0:  # rounding must not select weight 0
        last -= 1
    return last


@primitive
def save_weights(weights):
    """Log the weights before they are changed."""
    at = weights.top[0]
    for m in range(weights.log_p.shape[0]):
        weights.log[at, 0, m] = weights.log_p[m]
        weights.log[at, 1, m] = weights.p[m]
    weights.top[0] = at + 1


@primitive
def normalise_weights(weights):
    """Shift the logarithms so that the weights sum to one, and recompute the weights."""
    highest = -np.inf
    for m in range(weights.log_p.shape[0]):
        highest = max(highest, weights.log_p[m])
    total = 0.0
    for m in range(weights.log_p.shape[0]):
        total += math.exp(weights.log_p[m] - highest)
    shift = highest + math.log(total)
    for m in range(weights.log_p.shape[0]):
        weights.log_p[m] -= shift
        weights.p[m] = math.exp(weights.log_p[m])


@primitive
def restore_weights(weights):
    """Undo the last change."""
    at = weights.top[0] - 1
    weights.top[0] = at
    for m in range(weights.log_p.shape[0]):
        weights.log_p[m] = weights.log[at, 0, m]
        weights.p[m] = weights.log[at, 1, m]
