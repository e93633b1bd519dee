"""What a belief does with one row: learn a transition, tell what to expect."""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp.beliefs import verbs


@kernel
def observe(T, R, row, s2, r):
    """Learn one transition; returns the log predictive probability, -inf (nothing changed) if it is 0."""
    log_p = verbs.log_probability(T, row, s2)
    if not log_p > -np.inf:
        return -np.inf
    verbs.push(T, row, s2)
    log_q = verbs.log_reward_probability(R, row, s2, r)
    if not log_q > -np.inf:
        verbs.pop(T)
        return -np.inf
    verbs.push_reward(R, row, s2, r)
    verbs.commit(T, row)
    verbs.commit_reward(R, row)
    return log_p + log_q


@kernel
def observe_many(T, R, row, s2, r):
    """Learn transitions in order; returns how many were, before one of probability 0, and their log probability."""
    total = 0.0
    for i in range(row.shape[0]):
        log_p = observe(T, R, row[i], s2[i], r[i])
        if log_p == -np.inf:
            return i, total
        total += log_p
    return row.shape[0], total


@kernel
def mean_row(T, R, row, index, prob):
    """The predictive of a row into ``index`` and ``prob``; returns (end, background, expected reward)."""
    end, background = verbs.mean_row(T, row, index, prob, 0)
    if end == verbs.NO_ROOM:
        return end, 0.0, 0.0
    return end, background, verbs.expected_reward(R, row, index, prob, 0, end, background)
