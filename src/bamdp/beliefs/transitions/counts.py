"""Transition counts with an undo log, which grow with the data: O(S·A + distinct transitions) memory.

The distinct successors of each row are contiguous in one pool. A full row moves to the end of the pool with twice the
capacity; during planning, undoing the push also undoes the move. Code that runs in every simulated step uses unsigned
indices, which avoid Numba's test for negative ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import generic, inner, primitive
from bamdp._kernels.random import below
from bamdp.beliefs.base import longer, posterior_part, register_methods, reserve

START, SIZE, CAPACITY, TOTAL = 0, 1, 2, 3  # columns of Counts.rows
NEXT, COUNT = 0, 1  # columns of Counts.pool
POOL_END, LOG_END, WIDEST = 0, 1, 2  # entries of Counts.top
NOT_SEEN = -1
STAYED = -2  # in the log: the row did not move
SEARCHED_OUTCOMES = 8  # a row with up to this many outcomes is searched; beyond that, outcomes are marked


@posterior_part(learned=("rows", "pool", "top"))
class Counts(NamedTuple):
    """Arrays of the counts. Push and pop write to all of them."""

    rows: np.ndarray  # int64 [S*A, 4]: start in the pool, distinct outcomes, capacity, total count
    pool: np.ndarray  # int32 [capacity, 2]: next state, count
    log: np.ndarray  # int64 [depth, 4]: row, slot (NOT_SEEN: a new outcome), old start (STAYED), old capacity
    top: np.ndarray  # int64 [3]: end of the pool, length of the log, size of the widest row so far


def empty_counts(n_rows: int) -> Counts:
    """Return counts before any transition."""
    return Counts(
        rows=np.zeros((n_rows, 4), np.int64),
        pool=np.zeros((256, 2), np.int32),
        log=np.zeros((64, 4), np.int64),
        top=np.zeros(3, np.int64),
    )


@reserve.register(Counts)
def reserve_counts(counts: Counts, depth: int) -> Counts:
    """Return the counts with space for ``depth`` more pushes; the same object if there is enough space."""
    end = int(counts.top[POOL_END])
    # At most `depth` rows can move, each with at most `widest` outcomes and all within the pool. As capacities
    # double, the places that a row of m outcomes occupies in turn during d more pushes sum to 4 (m + d + 1).
    need = end + 4 * (min(depth * int(counts.top[WIDEST]), end) + 2 * depth)
    log = longer(counts.log, depth + int(counts.top[LOG_END]))
    return counts._replace(pool=longer(counts.pool, need), log=log)


@primitive
def find(counts, row, s2):
    """Return the slot of outcome ``s2`` in a row, or NOT_SEEN."""
    start = counts.rows[row, START]
    for slot in range(start, start + counts.rows[row, SIZE]):
        if counts.pool[slot, NEXT] == s2:
            return slot
    return NOT_SEEN


@primitive
def push_slot(counts, row, slot):
    """Increment the count of the outcome in ``slot``."""
    entry = np.uint64(counts.top[LOG_END])
    counts.log[entry, 0] = row
    counts.log[entry, 1] = slot
    counts.top[LOG_END] += 1
    counts.pool[np.uint64(slot), COUNT] += 1
    counts.rows[np.uint64(row), TOTAL] += 1


@primitive
def push_new(counts, row, s2):
    """Append the new outcome ``s2`` with count 1."""
    start, size, capacity = counts.rows[row, START], counts.rows[row, SIZE], counts.rows[row, CAPACITY]
    entry = counts.top[LOG_END]
    counts.log[entry, 0] = row
    counts.log[entry, 1] = NOT_SEEN
    counts.log[entry, 2] = STAYED
    if size == capacity:
        counts.log[entry, 2] = start
        counts.log[entry, 3] = capacity
        end = counts.top[POOL_END]
        for i in range(size):
            counts.pool[end + i, NEXT] = counts.pool[start + i, NEXT]
            counts.pool[end + i, COUNT] = counts.pool[start + i, COUNT]
        start = end
        capacity = max(4, 2 * size)
        counts.rows[row, START] = start
        counts.rows[row, CAPACITY] = capacity
        counts.top[POOL_END] = end + capacity
    counts.pool[start + size, NEXT] = s2
    counts.pool[start + size, COUNT] = 1
    counts.rows[row, SIZE] = size + 1
    counts.rows[row, TOTAL] += 1
    counts.top[LOG_END] = entry + 1


@primitive
def push_count(counts, row, s2):
    """Count the transition ``row`` → ``s2``."""
    slot = find(counts, row, s2)
    if slot == NOT_SEEN:
        push_new(counts, row, s2)
    else:
        push_slot(counts, row, slot)


@primitive
def pop_count(counts):
    """Undo the last push."""
    counts.top[LOG_END] -= 1
    entry = np.uint64(counts.top[LOG_END])
    row, slot = np.uint64(counts.log[entry, 0]), counts.log[entry, 1]
    counts.rows[row, TOTAL] -= 1
    if slot != NOT_SEEN:
        counts.pool[np.uint64(slot), COUNT] -= 1
        return
    counts.rows[row, SIZE] -= 1
    if counts.log[entry, 2] != STAYED:
        counts.top[POOL_END] = counts.rows[row, START]
        counts.rows[row, START] = counts.log[entry, 2]
        counts.rows[row, CAPACITY] = counts.log[entry, 3]


@primitive
def commit_count(counts, row):
    """Make the transitions pushed on ``row`` final: they were really observed."""
    counts.top[LOG_END] = 0
    counts.top[WIDEST] = max(counts.top[WIDEST], counts.rows[row, SIZE])


@inner
def draw_new_outcomes(index, begin, at, end, mark, rng):
    """Fill ``index[at:end]`` with distinct states drawn uniformly from those not in ``index[begin:at]``.

    ``mark``, int64 [S+1], is scratch: ``mark[s]`` is the number of the last call that used ``s``, and ``mark[S]``
    counts calls.
    """
    n_states = mark.shape[0] - 1
    if end - begin <= SEARCHED_OUTCOMES:
        for i in range(at, end):
            fresh = False
            while not fresh:
                s2 = below(rng, n_states)
                fresh = True
                for j in range(begin, i):
                    if index[j] == s2:
                        fresh = False
            index[i] = s2
        return
    tick = mark[n_states] + 1
    mark[n_states] = tick
    for i in range(begin, at):
        mark[index[i]] = tick
    for i in range(at, end):
        s2 = below(rng, n_states)
        while mark[s2] == tick:
            s2 = below(rng, n_states)
        mark[s2] = tick
        index[i] = s2


# --- verbs of posteriors with a field ``counts`` -------------------------------------------------------------------


@generic
def draw_slot(T, row, rng):
    """Draw a next state from the predictive distribution; return it and its slot, NOT_SEEN for a new outcome."""


def draw(T, row, rng):
    return draw_slot(T, row, rng)[0]


def advance(T, row, rng):
    s2, slot = draw_slot(T, row, rng)
    if slot == NOT_SEEN:
        push_new(T.counts, row, s2)
    else:
        push_slot(T.counts, row, slot)
    return s2


def push(T, row, s2):
    push_count(T.counts, row, s2)


def pop(T):
    pop_count(T.counts)


def commit(T, row):
    commit_count(T.counts, row)


def register_count_verbs(posterior: type) -> None:
    """Register draw and advance (both based on ``draw_slot``), push, pop and commit for a posterior with ``counts``."""
    register_methods(posterior, vars(verbs), draw, advance, push, pop, commit)


# --- rows of posteriors with counts -----------------------------------------------------------------------------------
#
# A row has k possible outcomes, each with prior count α, where k may be unknown. After n transitions, N = kα + n is its
# total count. The outcomes known to be possible are listed; the others are all equally likely.


@generic
def expectations(T, row):
    """Return E[1/N], E[1/(N(N+1))], and E[p] and E[p²] for each outcome that is not listed."""


@generic
def listed(T, row):
    """Return the range (begin, end) of a row's listed outcomes."""


@generic
def listed_outcome(T, row, i):
    """Return the next state and the posterior count α + n_i of a listed outcome."""


@listed.register(object)
def _slots(T, row):
    return T.counts.rows[row, START], T.counts.rows[row, START] + T.counts.rows[row, SIZE]


@listed_outcome.register(object)
def _in_slot(T, row, i):
    return T.counts.pool[i, NEXT], T.alpha + T.counts.pool[i, COUNT]


def probability(T, row, s2):
    inverse, _, unlisted, _ = expectations(T, row)
    begin, end = listed(T, row)
    for i in range(begin, end):
        state, weight = listed_outcome(T, row, i)
        if state == s2:
            return weight * inverse
    return unlisted


def mean_row(T, row, index, prob, at):
    inverse, _, unlisted, _ = expectations(T, row)
    begin, end = listed(T, row)
    for i in range(
        begin, end
    ):  # a listed outcome is at least as likely as others; max guards against rounding
        index[at + i - begin], weight = listed_outcome(T, row, i)
        prob[at + i - begin] = max(weight * inverse - unlisted, 0.0)
    return np.int64(at + end - begin), unlisted * T.n_states


def moments_row(T, row, index, mean, variance, at):
    inverse, second, unlisted, unlisted_square = expectations(T, row)
    begin, end = listed(T, row)
    for i in range(begin, end):
        to = at + i - begin
        index[to], weight = listed_outcome(T, row, i)
        mean[to] = weight * inverse
        variance[to] = max(0.0, weight * (weight + 1.0) * second - mean[to] * mean[to])
    return np.int64(at + end - begin), unlisted, max(0.0, unlisted_square - unlisted * unlisted)


def concentration(T, row):
    return 1.0 / expectations(T, row)[0]


def register_row_verbs(posterior: type) -> None:
    """Register a posterior's methods and the verbs that follow from ``expectations`` and the listed outcomes."""
    derived = probability, mean_row, moments_row, concentration
    register_methods(posterior, {**globals(), **vars(verbs)}, *derived)
