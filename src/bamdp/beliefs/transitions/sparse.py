"""The sparse (hierarchical) Dirichlet prior of Friedman & Singer (1999), computed exactly for each row.

A row over S states has a support of unknown size k with P(k) ∝ k^-β (or a given ``p_k``). The support is uniform among
the sets of size k, and its probabilities are Dirichlet(α). After n draws with k₀ distinct outcomes, up to factors that
do not depend on k,

    m_k = P(k) · k!/(k−k₀)! · Γ(kα)/Γ(kα+n)            for k ≥ k₀                      (posterior of k)
    C   = Σ_k m_k (k₀α+n)/(kα+n) / Σ_k m_k             (probability that the next outcome was seen before)
    ν(seen i) = C (α+n_i)/(k₀α+n),      ν(unseen) = (1−C)/(S−k₀) each.

Second moments need one more number, U = E[(k−k₀)α / ((kα+n)(kα+n+1))]. Since D = E[1/((kα+n)(kα+n+1))] equals
(C/(k₀α+n) − U) / (k₀α+n+1),

    E[p_i²] = (α+n_i)(α+n_i+1) D  for i seen,      E[p_j²] = (α+1) U/(S−k₀)  for j unseen.

To draw a row, draw k from m_k, then k−k₀ new outcomes uniformly without replacement, and then the probabilities from a
Dirichlet with α+n_i for seen and α for new outcomes. C and log Σ m_k depend only on (k₀, n), so both are cached in a
direct-mapped table of fixed size; a collision only costs a recomputation. The support of a row with few observations is
still uncertain, so the distribution of k is cached as well for n <= ``FEW_DRAWS``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.dirichlet import posterior_row, power_method
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import below, uniform
from bamdp._parameters import parameter, real_number
from bamdp.beliefs.arrays import transition_posterior
from bamdp.beliefs.base import Prior
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
    empty_counts,
    find,
    register_count_verbs,
)
from bamdp.beliefs.transitions.dirichlet import DirichletPosterior, as_symmetric

MEMO_BITS = 14
MEMO_STRIDE = 10007  # distance between the entries of (k₀, n) and (k₀ + 1, n)
FEW_DRAWS = 8  # up to this many draws of a row, the distribution of k is tabulated
TABLE_STATES = 4096  # largest number of states for these tables
LOST_IN_ROUNDING = 1e-18  # relative size of a term that rounding absorbs


@transition_posterior(independent_rows=True, counts_transitions=True, learned=("counts",))
class SparsePosterior(NamedTuple):
    """Arrays of the sparse posterior; the counts, caches and scratch fields are updated in place."""

    counts: Counts
    alpha: float
    method: int  # power_method(alpha)
    base: np.ndarray  # float64 [S+1]: log P(k) + log k! + log Γ(kα); -inf at k = 0
    log_factorial: np.ndarray  # float64 [S+1]
    log_p: np.ndarray  # float64 [S+1]: log P(k)
    log_rest: np.ndarray  # float64 [S+1]: log P(size > k)
    prior_cdf: np.ndarray  # float64 [S+1]: P(size <= k)
    memo_key: np.ndarray  # int64 [2^MEMO_BITS]: the (k₀, n) of each entry
    memo: np.ndarray  # float64 [2^MEMO_BITS, 6]: C, log Σ m_k, P(k = k₀), U, 1 - C, (k₀α+n)/C
    sizes: np.ndarray  # float64 [pairs (k₀, n <= FEW_DRAWS), S+1]: P(size <= k | k₀, n); [:, 0] = 1 if filled
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes
    n_states: int


register_count_verbs(SparsePosterior)


@primitive
def _log_m(state, k, k0, n):
    """Return log m_k."""
    return state.base[k] - state.log_factorial[k - k0] - math.lgamma(k * state.alpha + n)


@primitive
def _look_up(state, k0, n):
    """Return the index of the memo entry of (k₀, n); compute the entry if it is missing."""
    key = (k0 << 40) | n
    entry = np.uint64(n + k0 * MEMO_STRIDE) & np.uint64(state.memo_key.shape[0] - 1)
    if state.memo_key[entry] != key:
        _compute(state, k0, n, entry)
        state.memo_key[entry] = key
    return entry


@inner
def _compute(state, k0, n, entry):
    """Fill a memo entry in one pass over k, with sums scaled by the largest term so far.

    The likelihood f_k = m_k / P(k) has a single peak, because k · d log f_k / dk = Σ_{i<k₀} k/(k−i) − Σ_{j<n} k/(k+j/α)
    decreases with k. Past the peak, the terms after k sum to at most P(size > k) f_k, so the pass stops once this is
    negligible relative to the smallest of the sums so far.
    """
    seen_mass = k0 * state.alpha + n
    top, total, again, fresh, unseen, before = -np.inf, 0.0, 0.0, 0.0, 0.0, -np.inf
    for k in range(max(k0, 1), state.base.shape[0]):
        if state.base[k] == -np.inf:
            continue
        log_m = _log_m(state, k, k0, n)
        if log_m > top:
            scale = math.exp(top - log_m)
            total *= scale
            again *= scale
            fresh *= scale
            unseen *= scale
            top = log_m
        m = math.exp(log_m - top)
        total += m
        again += m * seen_mass / (k * state.alpha + n)
        new = m * (k - k0) * state.alpha / (k * state.alpha + n)
        fresh += new
        unseen += new / (k * state.alpha + n + 1.0)
        log_f = log_m - state.log_p[k]
        if log_f < before and math.exp(log_f + state.log_rest[k] - top) <= LOST_IN_ROUNDING * fresh:
            break
        before = log_f
    log_total = top + math.log(total) if total > 0.0 else -np.inf
    state.memo[entry, 0] = again / total if total > 0.0 else 0.0
    state.memo[entry, 1] = log_total
    state.memo[entry, 2] = math.exp(_log_m(state, k0, k0, n) - log_total) if total > 0.0 and k0 > 0 else 0.0
    state.memo[entry, 3] = unseen / total if total > 0.0 else 0.0
    state.memo[entry, 4] = fresh / total if total > 0.0 else 0.0
    state.memo[entry, 5] = seen_mass / state.memo[entry, 0] if again > 0.0 else np.inf  # exact if C = 1


@draw_slot.register(SparsePosterior)
def _draw_slot(T, row, rng):
    counts = T.counts
    n_states = T.n_states
    place = np.uint64(row)
    n = counts.rows[place, TOTAL]
    if n == 0:
        return below(rng, n_states), NOT_SEEN
    k0, start = counts.rows[place, SIZE], counts.rows[place, START]
    entry = _look_up(T, k0, n)
    x = uniform(rng) * T.memo[entry, 5]
    if x < k0 * T.alpha + n or k0 == n_states:
        slot, last = np.uint64(start), np.uint64(start + k0 - 1)
        while slot < last:
            x -= T.alpha + counts.pool[slot, COUNT]
            if x < 0.0:
                break
            slot += np.uint64(1)
        return np.int64(counts.pool[slot, NEXT]), np.int64(slot)
    while True:
        s2 = below(rng, n_states)
        if find(counts, row, s2) == NOT_SEEN:
            return s2, NOT_SEEN


@verbs.probability.register(SparsePosterior)
def _probability(T, row, s2):
    n_states = T.n_states
    k0, n = T.counts.rows[row, SIZE], T.counts.rows[row, TOTAL]
    if n == 0:
        return 1.0 / n_states
    entry = _look_up(T, k0, n)
    slot = find(T.counts, row, s2)
    if slot == NOT_SEEN:
        return T.memo[entry, 4] / (n_states - k0)
    return T.memo[entry, 0] * (T.alpha + T.counts.pool[slot, COUNT]) / (k0 * T.alpha + n)


@primitive
def _bisect(cdf, low, u):
    """Return the first k > low with u < cdf[k], or the last k if there is none, searching by doubling steps."""
    last = cdf.shape[0] - 1
    step = 1
    high = low + 1 if low < last else last
    while high < last and u >= cdf[high]:
        low = high
        step *= 2
        high = low + step if low + step < last else last
    while high - low > 1:
        middle = (low + high) // 2
        if u >= cdf[middle]:
            low = middle
        else:
            high = middle
    return high


@inner
def _tabulate(state, k0, n, slot):
    """Fill ``sizes[slot]`` with the cumulative distribution of the size given (k₀, n)."""
    log_total = state.memo[_look_up(state, k0, n), 1]
    total = 0.0
    for k in range(k0, state.base.shape[0]):
        total += math.exp(_log_m(state, k, k0, n) - log_total)
        state.sizes[slot, k] = total
    for k in range(k0, state.base.shape[0]):  # end at 1; otherwise rounding would occasionally select k = S
        state.sizes[slot, k] /= total
    state.sizes[slot, 0] = 1.0


@primitive
def _draw_size(state, k0, n, rng):
    """Draw the size of the support from its posterior."""
    u = uniform(rng)
    if n == 0:
        return _bisect(state.prior_cdf, 0, u)
    entry = _look_up(state, k0, n)
    if u < state.memo[entry, 2]:
        return k0
    if n <= FEW_DRAWS and state.sizes.shape[0] > 0:
        slot = n * (n - 1) // 2 + k0 - 1
        if state.sizes[slot, 0] != 1.0:
            _tabulate(state, k0, n, slot)
        return _bisect(state.sizes[slot], k0, u)
    last = state.n_states
    u -= state.memo[entry, 2]
    k = k0
    while u >= 0.0 and k < last:
        k += 1
        u -= math.exp(_log_m(state, k, k0, n) - state.memo[entry, 1])
    return k


@verbs.sample_row.register(SparsePosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    counts = T.counts
    row = np.uint64(row)
    k0, start = counts.rows[row, SIZE], counts.rows[row, START]
    end = at + _draw_size(T, k0, counts.rows[row, TOTAL], rng)
    to, slot = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(k0)):
        index[to + i] = counts.pool[slot + i, NEXT]
        prob[to + i] = T.alpha + counts.pool[slot + i, COUNT]
    if end > at + k0:
        draw_new_outcomes(index, at, at + k0, end, T.mark, rng)
    if end == at + 1:
        prob[at] = 1.0
    else:
        posterior_row(prob, at, at + k0, end, T.alpha, T.method, rng)
    return end, 0.0


@verbs.mean_row.register(SparsePosterior)
def _mean_row(T, row, index, prob, at):
    counts = T.counts
    n_states = T.n_states
    k0, n, start = counts.rows[row, SIZE], counts.rows[row, TOTAL], counts.rows[row, START]
    end = at + k0
    if n == 0:
        return end, 1.0
    entry = _look_up(T, k0, n)
    unseen = T.memo[entry, 4] / (n_states - k0) if k0 < n_states else 0.0
    scale = T.memo[entry, 0] / (k0 * T.alpha + n)
    for i in range(k0):  # a seen outcome is at least as likely as an unseen one; max guards against rounding
        index[at + i] = counts.pool[start + i, NEXT]
        prob[at + i] = max(scale * (T.alpha + counts.pool[start + i, COUNT]) - unseen, 0.0)
    return end, unseen * n_states


@verbs.moments_row.register(SparsePosterior)
def _moments_row(T, row, index, mean, variance, at):
    counts = T.counts
    n_states = T.n_states
    k0, n, start = counts.rows[row, SIZE], counts.rows[row, TOTAL], counts.rows[row, START]
    entry = _look_up(T, k0, n)
    again, U = T.memo[entry, 0], T.memo[entry, 3]
    seen = k0 * T.alpha + n
    first = again / seen if n > 0 else 0.0
    second = (first - U) / (seen + 1.0)
    for i in range(k0):
        weight = T.alpha + counts.pool[start + i, COUNT]
        index[at + i] = counts.pool[start + i, NEXT]
        mean[at + i] = weight * first
        variance[at + i] = max(0.0, weight * (weight + 1.0) * second - (weight * first) ** 2)
    if k0 == n_states:
        return at + k0, 0.0, 0.0
    p = T.memo[entry, 4] / (n_states - k0)
    return at + k0, p, max(0.0, (T.alpha + 1.0) * U / (n_states - k0) - p * p)


@verbs.concentration.register(SparsePosterior)
def _concentration(T, row):
    k0, n = T.counts.rows[row, SIZE], T.counts.rows[row, TOTAL]
    if n > 0:
        return T.memo[_look_up(T, k0, n), 5]
    inverse = 0.0  # E[1/(kα)]
    for k in range(1, T.base.shape[0]):
        inverse += (T.prior_cdf[k] - T.prior_cdf[k - 1]) / (k * T.alpha)
    return 1.0 / inverse


@dataclass(frozen=True, kw_only=True)
class SparseDirichlet(Prior):
    """Rows with few possible outcomes, whose number is learned (Friedman & Singer 1999).

    Examples
    --------
    >>> belief = SparseDirichlet(alpha=0.2, beta=2.0).belief(9, 2)
    >>> belief.observe(0, 0, 0.0, 3)
    >>> round(float(belief.predictive(0, 0)[3]), 6)
    0.909971
    """

    alpha: float = real_number(
        0.2, low=0.0, high=1e6, open_low=True, help="concentration on each outcome of the support"
    )
    beta: float = real_number(
        2.0,
        low=-1e6,
        high=1e6,
        help="P(support has k outcomes) ∝ k^-beta: larger means closer to deterministic",
    )
    p_k: tuple[float, ...] | None = parameter(
        None,
        lambda value, name: None,  # checked below
        help="instead of beta: weights of the sizes 1, 2, ... (at most S of them; need not sum to one)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p_k is not None:
            if isinstance(self.p_k, str) or not isinstance(self.p_k, Iterable):
                raise TypeError(f"p_k must be a list of weights of the sizes 1, 2, ..., got {self.p_k!r}")
            weights = tuple(_checks.real(p, "every entry of p_k", low=0.0) for p in self.p_k)
            if sum(weights) <= 0.0:
                raise ValueError("p_k must have a positive entry")
            object.__setattr__(self, "p_k", weights)

    def posterior(self, n_states: int, n_actions: int) -> SparsePosterior:
        if self.p_k is not None and len(self.p_k) > n_states:
            raise ValueError(f"p_k names {len(self.p_k)} sizes, but there are only {n_states} states")
        k = np.arange(n_states + 1, dtype=float)
        log_p = np.full(n_states + 1, -np.inf)
        if self.p_k is None:
            log_p[1:] = -self.beta * np.log(k[1:])
        else:
            with np.errstate(divide="ignore"):
                log_p[1 : len(self.p_k) + 1] = np.log(self.p_k)
        log_p -= log_p.max()
        p = np.exp(log_p)
        p /= p.sum()
        rest, cdf = np.append(np.cumsum(p[:0:-1])[::-1], 0.0), np.cumsum(p)
        with np.errstate(divide="ignore"):
            log_p, log_rest = np.log(p), np.log(rest)
        return SparsePosterior(
            counts=empty_counts(n_states * n_actions),
            alpha=float(self.alpha),
            method=int(power_method(float(self.alpha))),
            base=np.concatenate(
                [[-np.inf], log_p[1:] + _log_gamma(k[1:] + 1) + _log_gamma(k[1:] * self.alpha)]
            ),
            log_factorial=_log_gamma(k + 1),
            log_p=log_p,
            log_rest=log_rest,
            prior_cdf=cdf / cdf[-1],
            memo_key=np.full(1 << MEMO_BITS, -1, np.int64),
            memo=np.zeros((1 << MEMO_BITS, 6)),
            sizes=np.zeros(
                (FEW_DRAWS * (FEW_DRAWS + 1) // 2 if n_states <= TABLE_STATES else 0, n_states + 1)
            ),
            mark=np.zeros(n_states + 1, np.int64),
            n_states=n_states,
        )

    def movement_posterior(self, transitions: Any) -> DirichletPosterior:
        """Return the rows as Dirichlet rows with α + n_i for every outcome, seen or not.

        The standard deviations of the sparse posterior itself are unsuitable: once a row seems to have one outcome,
        the chance of another makes them as large as 1 − p̄, so that no number of visits ever counts as movement.
        """
        return as_symmetric(transitions)


def _log_gamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log Γ of each entry, without the cost of importing SciPy's version."""
    return np.array([math.lgamma(value) for value in x.tolist()])
