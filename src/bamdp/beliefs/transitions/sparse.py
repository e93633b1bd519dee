"""Priors over sparse rows, computed exactly: the possible next states are few, and their number is learned.

**One support per row** (:class:`SparseDirichlet`): the hierarchical prior of Friedman & Singer (1999).

A row over S states has a support of unknown size k with P(k) ∝ k^-β (or a given ``p_k``). The support is uniform over
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
still uncertain, so the distribution of k is cached as well for n <= ``FEW_DRAWS`` (n = 0 in large models).

**One support per state** (:class:`SharedSupport`): all actions of a state share the same few next states.

In many environments, the actions of a state differ in the probabilities of the next states but not in which next states
are possible: the neighbours of a cell, or the next link of a chain and its beginning. Here each state has a support of
unknown size k, uniform over the sets of size k; on it, the rows of the A actions are independent, each Dirichlet(α).
The transitions of one action therefore show where the others may lead. P(k) ∝ max(k, 2)^-β: a single next state for
all actions is no more likely than two, since otherwise a few slips would soon suggest that actions make no difference.
After n_a draws of action a, with k₀ distinct next states over all actions, up to factors that do not depend on k,

    w_k = P(k) · k!/(k−k₀)! · Π_a Γ(kα)/Γ(kα+n_a)          for k ≥ k₀                   (posterior of k)
    ν(i | s, a) = (α + n_ai) E[1/(kα+n_a)]                  for i seen after any action of s
    ν(j | s, a) = E[(k−k₀)α/(kα+n_a)] / (S−k₀)              for each j unseen.

The posterior w of each state is stored and updated by Bayes' rule: a transition multiplies w_k by 1/(kα+n_a), and also
by (k−k₀) if its next state is new. The possible sizes are all numbers up to ``EXACT_SIZES``, then some up to S, about a
factor of √2 apart; each of these also represents the sizes between it and the previous one. Thus w has few entries
even if there are many states.

All rows of a state in a sampled model need the same support, in whatever order they are drawn. Therefore ``choose``
draws a number, and this number and the state determine the random stream that draws the state's support.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import bamdp.beliefs.transitions.counts as tally
from bamdp import _checks
from bamdp._kernels.dirichlet import posterior_row, power_method
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import below, branch, next_word, open_stream, uniform
from bamdp._parameters import parameter, real_number
from bamdp.beliefs.base import Prior, transition_posterior
from bamdp.beliefs.transitions.counts import COUNT, LOG_END, NEXT, NOT_SEEN, SIZE, START, TOTAL
from bamdp.beliefs.transitions.dirichlet import DirichletPosterior, as_symmetric

MEMO_BITS = 14
MEMO_STRIDE = 10007  # distance between the entries of (k₀, n) and (k₀ + 1, n)
FEW_DRAWS = 8  # up to this many draws of a row, the distribution of k is tabulated
TABLE_STATES = 4096  # largest number of states for these tables
LOST_IN_ROUNDING = 1e-18  # relative size of a term that rounding absorbs
INVERSE, LOG_TOTAL, NONE_UNSEEN, AGAIN_NEW, UNSEEN, CONCENTRATION = range(
    6
)  # columns of SparsePosterior.memo
EXACT_SIZES = 16  # every size up to this one is possible
CHOICE_BITS = 40  # size of the number that determines the supports of a sampled model
SMALLEST_WEIGHT = 1e-280  # keeps unlikely sizes possible


# --- one support per row ----------------------------------------------------------------------------------------------


@transition_posterior(independent_rows=True, counts_transitions=True, learned=("counts",))
class SparsePosterior(NamedTuple):
    """Arrays of the sparse posterior; the counts, caches and scratch fields are updated in place."""

    counts: tally.Counts
    alpha: float
    method: int  # power_method(alpha)
    base: np.ndarray  # float64 [S+1]: log P(k) + log k! + log Γ(kα); -inf at k = 0
    log_factorial: np.ndarray  # float64 [S+1]
    log_p: np.ndarray  # float64 [S+1]: log P(k)
    log_rest: np.ndarray  # float64 [S+1]: log P(size > k)
    memo_key: np.ndarray  # int64 [2^MEMO_BITS]: the (k₀, n) of each entry
    memo: (
        np.ndarray
    )  # float64 [2^MEMO_BITS, 6]: the columns above, E[1/N], log Σ m_k, P(k = k₀), U, 1 − C, 1/E[1/N]
    sizes: np.ndarray  # float64 [pairs (k₀, n <= FEW_DRAWS), S+1]: P(size <= k | k₀, n); [:, 0] = 1 if filled
    mark: np.ndarray  # int64 [S+1] scratch of tally.draw_new_outcomes
    n_states: int

    @property
    def movement(self) -> DirichletPosterior:
        """The rows as Dirichlet rows with α + n_i for every outcome, seen or not, for SBOSS.

        The exact standard deviations are unsuitable: once a row seems to have only one outcome, the chance of another
        makes them as large as 1 − p̄, so that no number of visits ever counts as movement.
        """
        return as_symmetric(self)

    def draw_slot(T, row, rng):
        counts = T.counts
        n_states = T.n_states
        place = np.uint64(row)
        n = counts.rows[place, TOTAL]
        if n == 0:
            return below(rng, n_states), NOT_SEEN
        k0, start = counts.rows[place, SIZE], counts.rows[place, START]
        entry = _look_up(T, k0, n)
        x = uniform(rng) * T.memo[entry, CONCENTRATION]
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
            if tally.find(counts, row, s2) == NOT_SEEN:
                return s2, NOT_SEEN

    def expectations(T, row):
        k0, n = T.counts.rows[row, SIZE], T.counts.rows[row, TOTAL]
        entry = _look_up(T, k0, n)
        inverse, again_new = T.memo[entry, INVERSE], T.memo[entry, AGAIN_NEW]
        second = (inverse - again_new) / (k0 * T.alpha + n + 1.0)
        n_unseen = max(T.n_states - k0, 1)
        return inverse, second, T.memo[entry, UNSEEN] / n_unseen, (T.alpha + 1.0) * again_new / n_unseen

    def sample_row(T, choice, row, index, prob, at, rng):
        counts = T.counts
        row = np.uint64(row)
        k0, start = counts.rows[row, SIZE], counts.rows[row, START]
        end = at + _draw_size(T, k0, counts.rows[row, TOTAL], rng)
        to, slot = np.uint64(at), np.uint64(start)
        for i in range(np.uint64(k0)):
            index[to + i] = counts.pool[slot + i, NEXT]
            prob[to + i] = T.alpha + counts.pool[slot + i, COUNT]
        if end > at + k0:
            tally.draw_new_outcomes(index, at, at + k0, end, T.mark, rng)
        if end == at + 1:
            prob[at] = 1.0
        else:
            posterior_row(prob, at, at + k0, end, T.alpha, T.method, rng)
        return end, 0.0


tally.register_count_verbs(SparsePosterior)
tally.register_row_verbs(SparsePosterior)


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
    top, total, inverse, fresh, unseen, before = -np.inf, 0.0, 0.0, 0.0, 0.0, -np.inf
    for k in range(max(k0, 1), state.base.shape[0]):
        if state.base[k] == -np.inf:
            continue
        log_m = _log_m(state, k, k0, n)
        if log_m > top:
            scale = math.exp(top - log_m)
            total *= scale
            inverse *= scale
            fresh *= scale
            unseen *= scale
            top = log_m
        m = math.exp(log_m - top)
        total += m
        inverse += m / (k * state.alpha + n)
        new = m * (k - k0) * state.alpha / (k * state.alpha + n)
        fresh += new
        unseen += new / (k * state.alpha + n + 1.0)
        log_f = log_m - state.log_p[k]
        if log_f < before and math.exp(log_f + state.log_rest[k] - top) <= LOST_IN_ROUNDING * fresh:
            break
        before = log_f
    memo = state.memo[entry]
    memo[INVERSE] = inverse / total
    memo[LOG_TOTAL] = top + math.log(total)
    memo[NONE_UNSEEN] = math.exp(_log_m(state, k0, k0, n) - memo[LOG_TOTAL]) if k0 > 0 else 0.0
    memo[AGAIN_NEW] = unseen / total
    memo[UNSEEN] = fresh / total
    # exact if nothing can be new
    memo[CONCENTRATION] = total / inverse if fresh > 0.0 else k0 * state.alpha + n


@inner
def _tabulate(state, k0, n, slot):
    """Fill ``sizes[slot]`` with the cumulative distribution of the size given (k₀, n)."""
    log_total = state.memo[_look_up(state, k0, n), LOG_TOTAL]
    total = 0.0
    for k in range(max(k0, 1), state.base.shape[0]):
        total += math.exp(_log_m(state, k, k0, n) - log_total)
        state.sizes[slot, k] = total
    for k in range(
        max(k0, 1), state.base.shape[0]
    ):  # end at 1; otherwise rounding would occasionally select k = S
        state.sizes[slot, k] /= total
    state.sizes[slot, 0] = 1.0


@primitive
def _draw_size(state, k0, n, rng):
    """Draw the size of the support from its posterior, in time proportional to the size."""
    u, last = uniform(rng), state.n_states
    entry = _look_up(state, k0, n)
    if u < state.memo[entry, NONE_UNSEEN]:
        return k0
    slot = n * (n - 1) // 2 + k0
    if slot < state.sizes.shape[0]:
        if state.sizes[slot, 0] != 1.0:
            _tabulate(state, k0, n, slot)
        k = min(k0 + 1, last)
        while k < last and u >= state.sizes[slot, k]:
            k += 1
        return k
    u -= state.memo[entry, NONE_UNSEEN]
    k = k0
    while u >= 0.0 and k < last:
        k += 1
        u -= math.exp(_log_m(state, k, k0, n) - state.memo[entry, LOG_TOTAL])
    return k


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
        rest = np.append(np.cumsum(p[:0:-1])[::-1], 0.0)
        with np.errstate(divide="ignore"):
            log_p, log_rest = np.log(p), np.log(rest)
        few = 1 + FEW_DRAWS * (FEW_DRAWS + 1) // 2
        return SparsePosterior(
            counts=tally.empty_counts(n_states * n_actions),
            alpha=float(self.alpha),
            method=int(power_method(float(self.alpha))),
            base=np.concatenate(
                [[-np.inf], log_p[1:] + _log_gamma(k[1:] + 1) + _log_gamma(k[1:] * self.alpha)]
            ),
            log_factorial=_log_gamma(k + 1),
            log_p=log_p,
            log_rest=log_rest,
            memo_key=np.full(1 << MEMO_BITS, -1, np.int64),
            memo=np.zeros((1 << MEMO_BITS, 6)),
            sizes=np.zeros((few if n_states <= TABLE_STATES else 1, n_states + 1)),
            mark=np.zeros(n_states + 1, np.int64),
            n_states=n_states,
        )


def _log_gamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log Γ of each entry, without the cost of importing SciPy's version."""
    return np.array([math.lgamma(value) for value in x.tolist()])


# --- one support per state --------------------------------------------------------------------------------------------


@transition_posterior(changes="state", counts_transitions=True, learned=("counts", "seen", "weight"))
class SharedPosterior(NamedTuple):
    """Arrays of the posterior; the counts, the weights and the scratch fields are updated in place."""

    counts: tally.Counts  # next states of each row
    seen: tally.Counts  # next states of each state, over all its actions
    alpha: float
    method: int  # power_method(alpha)
    size: np.ndarray  # float64 [J]: the possible sizes of a support
    weight: np.ndarray  # float64 [S, J]: w, the posterior of the size
    log: np.ndarray  # float64 [depth, J]: w of the pushed transition's state before the push
    top: np.ndarray  # int64 [1]: length of the log
    mark: np.ndarray  # int64 [S+1] scratch of tally.draw_new_outcomes
    stream: np.ndarray  # uint64 [4] scratch: the random state of a support
    n_states: int
    n_actions: int

    @property
    def movement(self) -> DirichletPosterior:
        """The rows as Dirichlet rows with α + n_i for every outcome, seen or not, for SBOSS.

        The exact standard deviations are unsuitable: once a row seems to have only one outcome, the chance of another
        makes them as large as 1 − p̄, so that no number of visits ever counts as movement.
        """
        return as_symmetric(self)

    def push(T, row, s2):
        s = row // T.n_actions
        slot = tally.find(T.seen, s, s2)
        _update(T, row, s, slot)
        if slot == NOT_SEEN:
            tally.push_new(T.seen, s, s2)
            tally.push_new(T.counts, row, s2)
        else:
            tally.push_slot(T.seen, s, slot)
            tally.push_count(T.counts, row, s2)

    def pop(T):
        tally.pop_count(T.counts)
        tally.pop_count(T.seen)
        s = T.seen.log[T.seen.top[LOG_END], 0]
        T.top[0] -= 1
        for j in range(T.size.shape[0]):
            T.weight[s, j] = T.log[T.top[0], j]

    def commit(T, row):
        tally.commit_count(T.counts, row)
        tally.commit_count(T.seen, row // T.n_actions)
        T.top[0] = 0

    def draw(T, row, rng):
        # Given k, this is an urn with the n_a observed draws and weight α for each member of the support.
        counts, s = T.counts, row // T.n_actions
        n, k0 = counts.rows[row, TOTAL], T.seen.rows[s, SIZE]
        if k0 == 0:
            return below(rng, T.n_states)
        k = max(_shared_draw_size(T, s, rng), k0)
        x = uniform(rng) * (k * T.alpha + n)
        if x < n:
            slot = counts.rows[row, START]
            x -= counts.pool[slot, COUNT]
            while x >= 0.0:
                slot += 1
                x -= counts.pool[slot, COUNT]
            return np.int64(counts.pool[slot, NEXT])
        place = np.int64((x - n) / T.alpha)
        if place < k0 or k0 == T.n_states:
            return np.int64(T.seen.pool[T.seen.rows[s, START] + min(place, k0 - 1), NEXT])
        while True:
            s2 = below(rng, T.n_states)
            if tally.find(T.seen, s, s2) == NOT_SEEN:
                return s2

    def expectations(T, row):
        k0, n = T.seen.rows[row // T.n_actions, SIZE], T.counts.rows[row, TOTAL]
        inverse, second, unseen, again_new = 0.0, 0.0, 0.0, 0.0
        for j in range(T.size.shape[0]):
            total = T.size[j] * T.alpha + n
            part = T.weight[row // T.n_actions, j] / total
            new = max(T.size[j] - k0, 0.0) * T.alpha * part
            inverse += part
            second += part / (total + 1.0)
            unseen += new
            again_new += new / (total + 1.0)
        n_unseen = max(T.n_states - k0, 1)
        return inverse, second, unseen / n_unseen, (T.alpha + 1.0) * again_new / n_unseen

    def listed(T, row):
        start = T.seen.rows[row // T.n_actions, START]
        return start, start + T.seen.rows[row // T.n_actions, SIZE]

    def listed_outcome(T, row, i):
        s2 = T.seen.pool[i, NEXT]
        slot = tally.find(T.counts, row, s2)
        return s2, T.alpha + (0.0 if slot == NOT_SEEN else float(T.counts.pool[slot, COUNT]))

    def choose(T, rng):
        return np.int64(next_word(rng) >> np.uint64(64 - CHOICE_BITS))

    def sample_row(T, choice, row, index, prob, at, rng):
        counts, seen, s = T.counts, T.seen, row // T.n_actions
        k0 = seen.rows[s, SIZE]
        open_stream(branch(np.uint64(choice), np.uint64(s)), T.stream)
        end = at + max(_shared_draw_size(T, s, T.stream), k0)
        start, mine = counts.rows[row, START], counts.rows[row, SIZE]
        for i in range(mine):
            index[at + i] = counts.pool[start + i, NEXT]
            prob[at + i] = T.alpha + counts.pool[start + i, COUNT]
        to = at + mine
        for slot in range(seen.rows[s, START], seen.rows[s, START] + k0):
            if tally.find(counts, row, seen.pool[slot, NEXT]) == NOT_SEEN:
                index[to] = seen.pool[slot, NEXT]
                to += 1
        if end > to:
            tally.draw_new_outcomes(index, at, to, end, T.mark, T.stream)
        if end == at + 1:
            prob[at] = 1.0
        else:
            posterior_row(prob, at, at + mine, end, T.alpha, T.method, rng)
        return np.int64(end), 0.0


@primitive
def _update(T, row, s, slot):
    """Apply Bayes' rule to the support size of ``s``, before the transition is counted."""
    n, k0 = T.counts.rows[row, TOTAL], T.seen.rows[s, SIZE]
    entry = T.top[0]
    T.top[0] = entry + 1
    total = 0.0
    for j in range(T.size.shape[0]):
        w = T.weight[s, j]
        T.log[entry, j] = w
        if slot == NOT_SEEN:
            w *= max(T.size[j] - k0, 0.0)
        w /= T.size[j] * T.alpha + n
        T.weight[s, j] = w
        total += w
    scale = 1.0 / total
    least = k0 + 1 if slot == NOT_SEEN else k0
    for j in range(T.size.shape[0]):
        T.weight[s, j] *= scale
        if T.size[j] >= least:
            T.weight[s, j] = max(T.weight[s, j], SMALLEST_WEIGHT)


@primitive
def _shared_draw_size(T, s, rng):
    """Draw the size of the support of a state from its posterior."""
    u = uniform(rng)
    last = T.size.shape[0] - 1
    for j in range(last):
        u -= T.weight[s, j]
        if u < 0.0:
            return np.int64(T.size[j])
    return np.int64(T.size[last])


tally.register_row_verbs(SharedPosterior)


@dataclass(frozen=True, kw_only=True)
class SharedSupport(Prior):
    """Rows on a learned support of few next states, shared by all actions of a state.

    Examples
    --------
    >>> belief = SharedSupport(alpha=0.5, beta=2.0).belief(9, 2)
    >>> belief.observe(0, 0, 0.0, 3)
    >>> belief.predictive(0, 1).round(3)[:4]  # the other action may well lead there, too
    array([0.054, 0.054, 0.054, 0.565])
    """

    alpha: float = real_number(
        0.5, low=0.0, high=1e6, open_low=True, help="concentration of an action on each of these next states"
    )
    beta: float = real_number(
        2.0, low=-1e6, high=1e6, help="P(a state has k of them) ∝ max(k, 2)^-beta: larger means fewer"
    )

    def posterior(self, n_states: int, n_actions: int) -> SharedPosterior:
        size, weight = _sizes(n_states, float(self.beta))
        return SharedPosterior(
            counts=tally.empty_counts(n_states * n_actions),
            seen=tally.empty_counts(n_states),
            alpha=float(self.alpha),
            method=int(power_method(float(self.alpha))),
            size=size,
            weight=np.tile(weight, (n_states, 1)),
            log=np.zeros((64, len(size))),
            top=np.zeros(1, np.int64),
            mark=np.zeros(n_states + 1, np.int64),
            stream=np.zeros(4, np.uint64),
            n_states=n_states,
            n_actions=n_actions,
        )


def _sizes(n_states: int, beta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the possible sizes of a support and their prior probabilities."""
    sizes = list(range(1, min(n_states, EXACT_SIZES) + 1))
    while sizes[-1] < n_states:
        sizes.append(min(n_states, round(sizes[-1] * math.sqrt(2.0))))
    log_p = -beta * np.log(np.maximum(np.arange(1.0, n_states + 1.0), 2.0))
    p = np.exp(log_p - log_p.max())
    weight = np.add.reduceat(p, [0, *sizes[:-1]])
    return np.array(sizes, float), np.maximum(weight / weight.sum(), SMALLEST_WEIGHT)
