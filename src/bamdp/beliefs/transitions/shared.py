"""A sparse prior with one support per state, computed exactly: all actions of a state share the same few next states.

In many environments, the actions of a state differ in the probabilities of the next states but not in which next states
are possible: the neighbours of a cell, or the next link of a chain and its beginning. Here each state has a support of
unknown size k, uniform among the sets of size k; on it, the rows of the A actions are independent, each Dirichlet(α).
The transitions of one action therefore show where the others may lead. P(k) ∝ max(k, 2)^-β: a single next state for
all actions is no more likely than two, since otherwise a few slips would soon suggest that actions make no difference.
After n_a draws of action a, with k₀ distinct next states over all actions, up to factors that do not depend on k,

    w_k = P(k) · k!/(k−k₀)! · Π_a Γ(kα)/Γ(kα+n_a)          for k ≥ k₀                   (posterior of k)
    ν(i | s, a) = (α + n_ai) E[1/(kα+n_a)]                  for i seen after any action of s
    ν(j | s, a) = E[(k−k₀)α/(kα+n_a)] / (S−k₀)              for each j unseen.

The posterior w of each state is stored and updated by Bayes' rule: a transition multiplies w_k by 1/(kα+n_a), and also
by (k−k₀) if its next state is new. The possible sizes are all numbers up to ``EXACT_SIZES``, then some up to S, about a
factor of √2 apart; each of these represents the sizes since the previous one. Thus w has few entries even if there are
many states.

All rows of a state in a sampled model need the same support, in whatever order they are drawn. Therefore ``choose``
draws a number, and this number and the state determine the random stream that draws the state's support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.dirichlet import posterior_row, power_method
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, branch, next_word, open_stream, uniform
from bamdp._parameters import real_number
from bamdp.beliefs.arrays import longer, reserve, transition_posterior
from bamdp.beliefs.base import Prior
from bamdp.beliefs.statistics import ROUNDING, is_valid, statistics
from bamdp.beliefs.transitions.counts import (
    COUNT,
    LOG_END,
    NEXT,
    NOT_SEEN,
    SIZE,
    START,
    TOTAL,
    Counts,
    commit_count,
    draw_new_outcomes,
    empty_counts,
    find,
    pop_count,
    push_count,
    push_new,
    push_slot,
    reserve_counts,
)
from bamdp.beliefs.transitions.dirichlet import DirichletPosterior, as_symmetric

EXACT_SIZES = 16  # every size up to this one is possible
CHOICE_BITS = 40  # size of the number that determines the supports of a sampled model
SMALLEST_WEIGHT = 1e-280  # keeps unlikely sizes possible


@transition_posterior(changes="state", counts_transitions=True, learned=("counts", "seen", "weight"))
class SharedPosterior(NamedTuple):
    """Arrays of the posterior; the counts, the weights and the scratch fields are updated in place."""

    counts: Counts  # next states of each row
    seen: Counts  # next states of each state, over all its actions
    alpha: float
    method: int  # power_method(alpha)
    size: np.ndarray  # float64 [J]: the possible sizes of a support
    weight: np.ndarray  # float64 [S, J]: w, the posterior of the size
    old: np.ndarray  # float64 [depth, J]: w of the pushed transition's state before the push
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes
    stream: np.ndarray  # uint64 [4] scratch: the random state of a support
    n_states: int
    n_actions: int


@primitive
def _update(T, row, s, slot):
    """Apply Bayes' rule to the support size of ``s``, before the transition is counted."""
    n, k0 = T.counts.rows[row, TOTAL], T.seen.rows[s, SIZE]
    entry = T.seen.top[LOG_END]
    total = 0.0
    for j in range(T.size.shape[0]):
        w = T.weight[s, j]
        T.old[entry, j] = w
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


@verbs.push.register(SharedPosterior)
def _push(T, row, s2):
    s = row // T.n_actions
    slot = find(T.seen, s, s2)
    _update(T, row, s, slot)
    if slot == NOT_SEEN:
        push_new(T.seen, s, s2)
        push_new(T.counts, row, s2)
    else:
        push_slot(T.seen, s, slot)
        push_count(T.counts, row, s2)


@verbs.pop.register(SharedPosterior)
def _pop(T):
    pop_count(T.counts)
    pop_count(T.seen)
    entry = T.seen.top[LOG_END]
    s = T.seen.log[entry, 0]
    for j in range(T.size.shape[0]):
        T.weight[s, j] = T.old[entry, j]


@verbs.commit.register(SharedPosterior)
def _commit(T, row):
    commit_count(T.counts, row)
    commit_count(T.seen, row // T.n_actions)


@reserve.register(SharedPosterior)
def _reserve(T: SharedPosterior, depth: int) -> SharedPosterior:
    counts, seen = reserve_counts(T.counts, depth), reserve_counts(T.seen, depth)
    return T._replace(counts=counts, seen=seen, old=longer(T.old, len(seen.log)))


@primitive
def _draw_size(T, s, rng):
    """Draw the size of the support of a state from its posterior."""
    u = uniform(rng)
    last = T.size.shape[0] - 1
    for j in range(last):
        u -= T.weight[s, j]
        if u < 0.0:
            return np.int64(T.size[j])
    return np.int64(T.size[last])


@verbs.draw.register(SharedPosterior)
def _draw(T, row, rng):
    # Given k, this is an urn with the n_a observed draws and weight α for each member of the support.
    counts, s = T.counts, row // T.n_actions
    n, k0 = counts.rows[row, TOTAL], T.seen.rows[s, SIZE]
    if k0 == 0:
        return below(rng, T.n_states)
    k = max(_draw_size(T, s, rng), k0)
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
        if find(T.seen, s, s2) == NOT_SEEN:
            return s2


@primitive
def _expectations(T, row, s):
    """Return E[1/(kα+n)], the factor of seen states, and E[(k−k₀)α/(kα+n)], the mass of all unseen states."""
    n, k0 = T.counts.rows[row, TOTAL], T.seen.rows[s, SIZE]
    inverse, unseen = 0.0, 0.0
    for j in range(T.size.shape[0]):
        part = T.weight[s, j] / (T.size[j] * T.alpha + n)
        inverse += part
        unseen += max(T.size[j] - k0, 0.0) * T.alpha * part
    return inverse, unseen


@primitive
def _count_of(T, row, s2):
    """Return how often a row has led to ``s2``."""
    slot = find(T.counts, row, s2)
    return 0 if slot == NOT_SEEN else np.int64(T.counts.pool[slot, COUNT])


@verbs.probability.register(SharedPosterior)
def _probability(T, row, s2):
    s = row // T.n_actions
    k0 = T.seen.rows[s, SIZE]
    inverse, unseen = _expectations(T, row, s)
    if find(T.seen, s, s2) == NOT_SEEN:
        return unseen / (T.n_states - k0)
    return (T.alpha + _count_of(T, row, s2)) * inverse


@verbs.choose.register(SharedPosterior)
def _choose(T, rng):
    return np.int64(next_word(rng) >> np.uint64(64 - CHOICE_BITS))


@verbs.sample_row.register(SharedPosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    counts, seen, s = T.counts, T.seen, row // T.n_actions
    k0 = seen.rows[s, SIZE]
    open_stream(branch(np.uint64(choice), np.uint64(s)), T.stream)
    end = at + max(_draw_size(T, s, T.stream), k0)
    start, mine = counts.rows[row, START], counts.rows[row, SIZE]
    for i in range(mine):
        index[at + i] = counts.pool[start + i, NEXT]
        prob[at + i] = T.alpha + counts.pool[start + i, COUNT]
    to = at + mine
    for slot in range(seen.rows[s, START], seen.rows[s, START] + k0):
        if find(counts, row, seen.pool[slot, NEXT]) == NOT_SEEN:
            index[to] = seen.pool[slot, NEXT]
            to += 1
    if end > to:
        draw_new_outcomes(index, at, to, end, T.mark, T.stream)
    if end == at + 1:
        prob[at] = 1.0
    else:
        posterior_row(prob, at, at + mine, end, T.alpha, T.method, rng)
    return np.int64(end), 0.0


@verbs.mean_row.register(SharedPosterior)
def _mean_row(T, row, index, prob, at):
    s = row // T.n_actions
    k0, start = T.seen.rows[s, SIZE], T.seen.rows[s, START]
    end = at + k0
    if k0 == 0:
        return np.int64(end), 1.0
    inverse, unseen = _expectations(T, row, s)
    # A known member of the support is at least as likely as any other state; max guards against rounding.
    each = unseen / (T.n_states - k0) if k0 < T.n_states else 0.0
    for i in range(k0):
        s2 = T.seen.pool[start + i, NEXT]
        index[at + i] = s2
        prob[at + i] = max((T.alpha + _count_of(T, row, s2)) * inverse - each, 0.0)
    return np.int64(end), each * T.n_states


@verbs.moments_row.register(SharedPosterior)
def _moments_row(T, row, index, mean, variance, at):
    s = row // T.n_actions
    n, k0, start = T.counts.rows[row, TOTAL], T.seen.rows[s, SIZE], T.seen.rows[s, START]
    first, second, unseen, unseen_square = 0.0, 0.0, 0.0, 0.0
    for j in range(T.size.shape[0]):
        total = T.size[j] * T.alpha + n
        others = max(T.size[j] - k0, 0.0) * T.alpha
        part = T.weight[s, j] / total
        first += part
        second += part / (total + 1.0)
        unseen += others * part
        unseen_square += others * (T.alpha + 1.0) * part / (total + 1.0)
    for i in range(k0):
        s2 = T.seen.pool[start + i, NEXT]
        weight = T.alpha + _count_of(T, row, s2)
        index[at + i] = s2
        mean[at + i] = weight * first
        variance[at + i] = max(0.0, weight * (weight + 1.0) * second - (weight * first) ** 2)
    if k0 == T.n_states:
        return np.int64(at + k0), 0.0, 0.0
    p = unseen / (T.n_states - k0)
    return np.int64(at + k0), p, max(0.0, unseen_square / (T.n_states - k0) - p * p)


@verbs.concentration.register(SharedPosterior)
def _concentration(T, row):
    return 1.0 / _expectations(T, row, row // T.n_actions)[0]


@is_valid.register
def _is_valid(T: SharedPosterior) -> Any:
    row, state, count = statistics(T.counts, "counts")["counts"].T
    s, seen_state, seen = statistics(T.seen, "seen")["seen"].T
    pairs, where = np.unique(row // T.n_actions * T.n_states + state, return_inverse=True)
    order = np.argsort(s * T.n_states + seen_state)
    return (
        np.array_equal(pairs, (s * T.n_states + seen_state)[order])
        and np.array_equal(np.bincount(where, count), seen[order])
        and np.array_equal(T.weight > 0.0, T.size >= T.seen.rows[:, [SIZE]])
        and np.abs(T.weight.sum(axis=1) - 1.0) < ROUNDING
    )


@dataclass(frozen=True, kw_only=True)
class SharedSupport(Prior):
    """Rows on a learned support of few next states, which all actions of a state share.

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
            counts=empty_counts(n_states * n_actions),
            seen=(seen := empty_counts(n_states)),
            alpha=float(self.alpha),
            method=int(power_method(float(self.alpha))),
            size=size,
            weight=np.tile(weight, (n_states, 1)),
            old=np.zeros((len(seen.log), len(size))),
            mark=np.zeros(n_states + 1, np.int64),
            stream=np.zeros(4, np.uint64),
            n_states=n_states,
            n_actions=n_actions,
        )

    def movement_posterior(self, transitions: Any) -> DirichletPosterior:
        """Return the rows as Dirichlet rows with α + n_i for every outcome, as SparseDirichlet does."""
        return as_symmetric(transitions)


def _sizes(n_states: int, beta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the possible sizes of a support and their prior probabilities."""
    sizes = list(range(1, min(n_states, EXACT_SIZES) + 1))
    while sizes[-1] < n_states:
        sizes.append(min(n_states, round(sizes[-1] * math.sqrt(2.0))))
    log_p = -beta * np.log(np.maximum(np.arange(1.0, n_states + 1.0), 2.0))
    p = np.exp(log_p - log_p.max())
    weight = np.add.reduceat(p, [0, *sizes[:-1]])
    return np.array(sizes, float), np.maximum(weight / weight.sum(), SMALLEST_WEIGHT)
