"""Symmetric Dirichlet rows over all S states, as :class:`~bamdp.beliefs.Dirichlet` has them for a number or one a row.

After n draws, ν(i) = (α + n_i) / (Sα + n): with probability n/(Sα+n) a past outcome again, else any state uniformly,
which is also how it is drawn. A posterior row is a Dirichlet on the seen outcomes and the lump of unseen mass, and the
lump is divided by a symmetric Dirichlet. When α is small the lump is divided stick by stick in size-biased order
(stick j takes a Beta(1+α, (u−j)α) share among u unseen outcomes, labels uniform without replacement: the exact law),
until less than 1e-12 of the row is left, which becomes background: a row of the flat prior α = 1/S then costs some 30
draws, not S.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.dirichlet import (
    MOST_FACTORS,
    dirichlet,
    posterior_row,
    posterior_row_by_gs,
    small_shapes,
)
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, exponential, uniform
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import transition_posterior
from bamdp.beliefs.transitions.counts import (
    COUNT,
    NEXT,
    NOT_SEEN,
    SIZE,
    START,
    TOTAL,
    Counts,
    draw_new_outcomes,
    draw_slot,
    find,
    register_count_verbs,
)

REST = 1e-12  # share of a row that may stay unresolved as background
STICKS_PAY = 25.0  # sticks are cheaper than one gamma an outcome when u > STICKS_PAY (uα + 1)


@transition_posterior(independent_rows=True, counts_transitions=True, learned=("counts",))
class SymmetricState(NamedTuple):
    """Posterior of symmetric Dirichlet rows; the counts and the scratch are written to."""

    counts: Counts
    alpha: np.ndarray  # float64 [S*A]
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes
    n_states: int


register_count_verbs(SymmetricState)


def as_symmetric(T: Any) -> SymmetricState:
    """Return the rows of a posterior with ``counts`` as if they were Dirichlet with α + n_i for every outcome."""
    return SymmetricState(T.counts, _constant(T.alpha, len(T.counts.rows)), T.mark, T.n_states)


@lru_cache(maxsize=16)
def _constant(value: float, n_rows: int) -> NDArray[np.float64]:
    return np.full(n_rows, value)


@draw_slot.register(SymmetricState)
def _draw_slot(T, row, rng):
    counts = T.counts
    n = counts.rows[row, TOTAL]
    x = uniform(rng) * (T.n_states * T.alpha[row] + n)
    if x >= n:
        s2 = below(rng, T.n_states)
        return s2, find(counts, row, s2)
    slot = counts.rows[row, START]
    last = slot + counts.rows[row, SIZE] - 1
    while slot < last:
        x -= counts.pool[slot, COUNT]
        if x < 0.0:
            break
        slot += 1
    return np.int64(counts.pool[slot, NEXT]), slot


@verbs.probability.register(SymmetricState)
def _probability(T, row, s2):
    slot = find(T.counts, row, s2)
    seen = 0.0 if slot == NOT_SEEN else np.float64(T.counts.pool[slot, COUNT])
    return (T.alpha[row] + seen) / (T.n_states * T.alpha[row] + T.counts.rows[row, TOTAL])


@verbs.sample_row.register(SymmetricState)
def _sample_row(T, choice, row, index, prob, at, rng):
    counts = T.counts
    n_states = T.n_states
    alpha = T.alpha[row]
    k0, start = counts.rows[row, SIZE], counts.rows[row, START]
    unseen = n_states - k0
    by_sticks = unseen > STICKS_PAY * (unseen * alpha + 1.0)
    if at + k0 + 1 + (0 if by_sticks else unseen) > index.shape[0]:
        return verbs.NO_ROOM, 0.0
    for i in range(k0):
        index[at + i] = counts.pool[start + i, NEXT]
        prob[at + i] = alpha + counts.pool[start + i, COUNT]
    seen_end = at + k0
    if n_states == 1:
        index[at] = 0
        prob[at] = 1.0
        return at + 1, 0.0
    if by_sticks:
        prob[seen_end] = unseen * alpha
        dirichlet(prob, at, seen_end + 1, unseen * alpha, rng)
        return _break_sticks(T, index, prob, at, seen_end, prob[seen_end], alpha, rng)
    tick = T.mark[n_states] + 1
    T.mark[n_states] = tick
    for i in range(at, seen_end):
        T.mark[index[i]] = tick
    end = seen_end
    for s2 in range(n_states):  # without a branch: the place is written again by the next where s2 was seen
        index[end] = s2
        end += np.int64(T.mark[s2] != tick)
    way = small_shapes(alpha)
    if way > MOST_FACTORS:
        posterior_row_by_gs(prob, at, seen_end, end, way, rng)
    else:
        posterior_row(prob, at, seen_end, end, alpha, way, rng)
    return end, 0.0


@primitive
def _kept(rng, alpha, inverse):
    """Draw 1 − x with x ~ Beta(1+α, b), inverse = 1/b: x ~ Beta(1, b), accepted with probability x^α, nearly 1."""
    while True:
        kept = math.exp(-exponential(rng) * inverse)
        u = uniform(rng)
        # x^α > 1/2 for x > 3e-8, as α < 1/25
        if (u < 0.5 and kept < 1.0 - 3e-8) or u < (1.0 - kept) ** alpha:
            return kept


@primitive
def _break_sticks(state, index, prob, at, seen_end, rest, alpha, rng):
    """Divide the unseen mass ``rest`` in size-biased order; returns (end, what is left as background)."""
    left = state.n_states - (seen_end - at)
    end = seen_end
    while rest > REST:
        if end == index.shape[0]:
            return verbs.NO_ROOM, 0.0
        kept = 0.0 if left == 1 else _kept(rng, alpha, 1.0 / ((left - 1) * alpha))
        prob[end] = rest * (1.0 - kept)
        rest *= kept
        left -= 1
        end += 1
    draw_new_outcomes(index, at, seen_end, end, state.mark, rng)
    return end, rest


@verbs.mean_row.register(SymmetricState)
def _mean_row(T, row, index, prob, at):
    counts = T.counts
    prior = T.n_states * T.alpha[row]
    k0, start = counts.rows[row, SIZE], counts.rows[row, START]
    if at + k0 > index.shape[0]:
        return verbs.NO_ROOM, 0.0
    scale = 1.0 / (prior + counts.rows[row, TOTAL])
    for i in range(k0):
        index[at + i] = counts.pool[start + i, NEXT]
        prob[at + i] = scale * counts.pool[start + i, COUNT]
    return at + k0, prior * scale


@verbs.moments_row.register(SymmetricState)
def _moments_row(T, row, index, mean, variance, at):
    counts = T.counts
    total = verbs.concentration(T, row)
    k0, start = counts.rows[row, SIZE], counts.rows[row, START]
    if at + k0 > index.shape[0]:
        return verbs.NO_ROOM, 0.0, 0.0
    for i in range(k0):
        p = (T.alpha[row] + counts.pool[start + i, COUNT]) / total
        index[at + i] = counts.pool[start + i, NEXT]
        mean[at + i] = p
        variance[at + i] = p * (1.0 - p) / (total + 1.0)
    p = T.alpha[row] / total
    return at + k0, p, p * (1.0 - p) / (total + 1.0)


@verbs.concentration.register(SymmetricState)
def _concentration(T, row):
    return T.n_states * T.alpha[row] + T.counts.rows[row, TOTAL]
