"""Dirichlet rows with prior counts of their own: :class:`~bamdp.beliefs.Dirichlet` of an array ``[S, A, S]``.

Outcomes with prior count 0 are impossible; memory is that of the array's non-zero entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bamdp._kernels.dirichlet import dirichlet
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import uniform
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import transition_posterior, with_room
from bamdp.beliefs.transitions.counts import NOT_SEEN


@transition_posterior(independent_rows=True, counts_transitions=True)
class FullState(NamedTuple):
    """Posterior of Dirichlet rows with their own prior counts; ``count``, ``total``, ``log``, ``top`` change."""

    start: np.ndarray  # int64 [S*A + 1]: where each row's possible outcomes stand
    index: np.ndarray  # type: ignore[assignment]  # int32 [nonzeros], rising within a row
    alpha: np.ndarray  # float64 [nonzeros]: prior counts
    alpha_sum: np.ndarray  # float64 [S*A]
    count: np.ndarray  # type: ignore[assignment]  # int64 [nonzeros]: observed
    total: np.ndarray  # int64 [S*A]
    log: np.ndarray  # int64 [depth, 2]: row, entry
    top: np.ndarray  # int64 [1]


@primitive
def _find(state, row, s2):
    """Return the entry of outcome ``s2``, or NOT_SEEN where it is impossible."""
    low, high = state.start[row], state.start[row + 1]
    while low < high:
        middle = (low + high) // 2
        if state.index[middle] < s2:
            low = middle + 1
        else:
            high = middle
    if low < state.start[row + 1] and state.index[low] == s2:
        return low
    return NOT_SEEN


@primitive
def _draw_entry(state, row, rng):
    x = uniform(rng) * (state.alpha_sum[row] + state.total[row])
    entry = state.start[row]
    while entry < state.start[row + 1] - 1:
        x -= state.alpha[entry] + state.count[entry]
        if x < 0.0:
            break
        entry += 1
    return entry


@primitive
def _push_entry(state, row, entry):
    state.log[state.top[0], 0] = row
    state.log[state.top[0], 1] = entry
    state.top[0] += 1
    state.count[entry] += 1
    state.total[row] += 1


@verbs.draw.register(FullState)
def _draw(T, row, rng):
    return np.int64(T.index[_draw_entry(T, row, rng)])


@verbs.advance.register(FullState)
def _advance(T, row, rng):
    entry = _draw_entry(T, row, rng)
    _push_entry(T, row, entry)
    return np.int64(T.index[entry])


@verbs.push.register(FullState)
def _push(T, row, s2):
    _push_entry(T, row, _find(T, row, s2))


@verbs.pop.register(FullState)
def _pop(T):
    T.top[0] -= 1
    T.count[T.log[T.top[0], 1]] -= 1
    T.total[T.log[T.top[0], 0]] -= 1


@verbs.probability.register(FullState)
def _probability(T, row, s2):
    entry = _find(T, row, s2)
    if entry == NOT_SEEN:
        return 0.0
    return (T.alpha[entry] + T.count[entry]) / (T.alpha_sum[row] + T.total[row])


@verbs.log_probability.register(FullState)
def _log_probability(T, row, s2):
    p = verbs.probability(T, row, s2)
    return math.log(p) if p > 0.0 else -np.inf


@verbs.choose.register(FullState)
def _choose(T, rng):
    return 0


@verbs.sample_row.register(FullState)
def _sample_row(T, choice, row, index, prob, at, rng):
    begin = T.start[row]
    size = T.start[row + 1] - begin
    if at + size > index.shape[0]:
        return verbs.NO_ROOM, 0.0
    smallest = np.inf
    for i in range(size):
        index[at + i] = T.index[begin + i]
        prob[at + i] = T.alpha[begin + i] + T.count[begin + i]
        smallest = min(smallest, prob[at + i])
    dirichlet(prob, at, at + size, smallest, rng)
    return at + size, 0.0


@verbs.mean_row.register(FullState)
def _mean_row(T, row, index, prob, at):
    begin = T.start[row]
    size = T.start[row + 1] - begin
    if at + size > index.shape[0]:
        return verbs.NO_ROOM, 0.0
    scale = 1.0 / (T.alpha_sum[row] + T.total[row])
    for i in range(size):
        index[at + i] = T.index[begin + i]
        prob[at + i] = scale * (T.alpha[begin + i] + T.count[begin + i])
    return at + size, 0.0


@verbs.moments_row.register(FullState)
def _moments_row(T, row, index, mean, variance, at):
    begin = T.start[row]
    size = T.start[row + 1] - begin
    if at + size > index.shape[0]:
        return verbs.NO_ROOM, 0.0, 0.0
    total = verbs.concentration(T, row)
    for i in range(size):
        p = (T.alpha[begin + i] + T.count[begin + i]) / total
        index[at + i] = T.index[begin + i]
        mean[at + i] = p
        variance[at + i] = max(0.0, p * (1.0 - p)) / (total + 1.0)
    return at + size, 0.0, 0.0


@verbs.concentration.register(FullState)
def _concentration(T, row):
    return T.alpha_sum[row] + T.total[row]


@verbs.commit.register(FullState)
def _commit(T, row):
    T.top[0] = 0


@with_room.register(FullState)
def _with_room(T: FullState, depth: int) -> FullState:
    depth += int(T.top[0])
    if depth <= len(T.log):
        return T
    log = np.zeros((max(depth, 2 * len(T.log)), 2), np.int64)
    log[: len(T.log)] = T.log
    return T._replace(log=log)
