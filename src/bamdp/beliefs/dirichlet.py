"""Independent Dirichlet rows: symmetric over all S states, or with a full array of prior counts.

**Symmetric** (α a number, or one for each row). After n draws, ν(i) = (α + n_i) / (Sα + n): with probability
n/(Sα+n) a past outcome again, else any state uniformly, which is also how it is drawn. A posterior row is a
Dirichlet on the seen outcomes and the lump of unseen mass, and the lump is divided by a symmetric Dirichlet.
When α is small the lump is divided stick by stick in size-biased order (stick j takes a Beta(1+α, (u−j)α)
share among u unseen outcomes, labels uniform without replacement: the exact law), until less than 1e-12 of
the row is left, which becomes background: a row of the flat prior α = 1/S then costs some 30 draws, not S.

**Full** (α an array ``[S, A, S]``). Outcomes with prior count 0 are impossible; memory is that of the array's
non-zero entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.dirichlet import (
    MOST_FACTORS,
    dirichlet,
    posterior_row,
    posterior_row_by_gs,
    small_shapes,
)
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, exponential, uniform
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Prior, with_room
from bamdp.beliefs.counts import (
    COUNT,
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
    push_slot,
    with_count_room,
)

LARGEST_ALPHA = 1e100
REST = 1e-12  # share of a row that may stay unresolved as background
STICKS_PAY = 25.0  # sticks are cheaper than one gamma an outcome when u > STICKS_PAY (uα + 1)


@known
class SymmetricState(NamedTuple):
    """Posterior of symmetric Dirichlet rows; the counts and the scratch are written to."""

    counts: Counts
    alpha: np.ndarray  # float64 [S*A]
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes


@primitive
def _draw_slot(state, row, rng):
    """A next state from the predictive and its slot, or NOT_SEEN if it must still be searched."""
    counts = state.counts
    n_states = state.mark.shape[0] - 1
    n = counts.rows[row, TOTAL]
    x = uniform(rng) * (n_states * state.alpha[row] + n)
    if x >= n:
        return below(rng, n_states), NOT_SEEN
    slot = counts.rows[row, START]
    last = slot + counts.rows[row, SIZE] - 1
    while slot < last:
        x -= counts.pool[slot, COUNT]
        if x < 0.0:
            break
        slot += 1
    return np.int64(counts.pool[slot, NEXT]), slot


@verbs.draw.register(SymmetricState)
def _draw(T, row, rng):
    return _draw_slot(T, row, rng)[0]


@verbs.advance.register(SymmetricState)
def _advance(T, row, rng):
    s2, slot = _draw_slot(T, row, rng)
    if slot == NOT_SEEN:
        push_count(T.counts, row, s2)
    else:
        push_slot(T.counts, row, slot)
    return s2


@verbs.push.register(SymmetricState)
def _push(T, row, s2):
    push_count(T.counts, row, s2)


@verbs.pop.register(SymmetricState)
def _pop(T):
    pop_count(T.counts)


@verbs.probability.register(SymmetricState)
def _probability(T, row, s2):
    slot = find(T.counts, row, s2)
    seen = 0.0 if slot == NOT_SEEN else np.float64(T.counts.pool[slot, COUNT])
    return (T.alpha[row] + seen) / ((T.mark.shape[0] - 1) * T.alpha[row] + T.counts.rows[row, TOTAL])


@verbs.log_probability.register(SymmetricState)
def _log_probability(T, row, s2):
    return math.log(verbs.probability(T, row, s2))


@verbs.choose.register(SymmetricState)
def _choose(T, rng):
    return 0


@verbs.sample_row.register(SymmetricState)
def _sample_row(T, choice, row, index, prob, at, rng):
    counts = T.counts
    n_states = T.mark.shape[0] - 1
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
    """1 − x with x ~ Beta(1+α, b), inverse = 1/b: x ~ Beta(1, b), accepted with probability x^α, nearly 1 here."""
    while True:
        kept = math.exp(-exponential(rng) * inverse)
        u = uniform(rng)
        if (u < 0.5 and kept < 1.0 - 3e-8) or u < (
            1.0 - kept
        ) ** alpha:  # x^α > 1/2 for x > 3e-8, as α < 1/25
            return kept


@primitive
def _break_sticks(state, index, prob, at, seen_end, rest, alpha, rng):
    """Divide the unseen mass ``rest`` in size-biased order; returns (end, what is left as background)."""
    left = state.mark.shape[0] - 1 - (seen_end - at)
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
    prior = (T.mark.shape[0] - 1) * T.alpha[row]
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
    return (T.mark.shape[0] - 1) * T.alpha[row] + T.counts.rows[row, TOTAL]


@verbs.commit.register(SymmetricState)
def _commit(T, row):
    commit_count(T.counts, row)


@with_room.register(SymmetricState)
def _with_room(T: SymmetricState, depth: int) -> SymmetricState:
    return T._replace(counts=with_count_room(T.counts, depth))


@known
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
def _find_full(state, row, s2):
    """The entry of outcome ``s2``, or NOT_SEEN where it is impossible."""
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
def _draw_full(state, row, rng):
    x = uniform(rng) * (state.alpha_sum[row] + state.total[row])
    entry = state.start[row]
    while entry < state.start[row + 1] - 1:
        x -= state.alpha[entry] + state.count[entry]
        if x < 0.0:
            break
        entry += 1
    return entry


@primitive
def _push_full(state, row, entry):
    state.log[state.top[0], 0] = row
    state.log[state.top[0], 1] = entry
    state.top[0] += 1
    state.count[entry] += 1
    state.total[row] += 1


@verbs.draw.register(FullState)
def _full_draw(T, row, rng):
    return np.int64(T.index[_draw_full(T, row, rng)])


@verbs.advance.register(FullState)
def _full_advance(T, row, rng):
    entry = _draw_full(T, row, rng)
    _push_full(T, row, entry)
    return np.int64(T.index[entry])


@verbs.push.register(FullState)
def _full_push(T, row, s2):
    _push_full(T, row, _find_full(T, row, s2))


@verbs.pop.register(FullState)
def _full_pop(T):
    T.top[0] -= 1
    T.count[T.log[T.top[0], 1]] -= 1
    T.total[T.log[T.top[0], 0]] -= 1


@verbs.probability.register(FullState)
def _full_probability(T, row, s2):
    entry = _find_full(T, row, s2)
    if entry == NOT_SEEN:
        return 0.0
    return (T.alpha[entry] + T.count[entry]) / (T.alpha_sum[row] + T.total[row])


@verbs.log_probability.register(FullState)
def _full_log_probability(T, row, s2):
    p = verbs.probability(T, row, s2)
    return math.log(p) if p > 0.0 else -np.inf


@verbs.choose.register(FullState)
def _full_choose(T, rng):
    return 0


@verbs.sample_row.register(FullState)
def _full_sample_row(T, choice, row, index, prob, at, rng):
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
def _full_mean_row(T, row, index, prob, at):
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
def _full_moments_row(T, row, index, mean, variance, at):
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
def _full_concentration(T, row):
    return T.alpha_sum[row] + T.total[row]


@verbs.commit.register(FullState)
def _full_commit(T, row):
    T.top[0] = 0


@with_room.register(FullState)
def _full_with_room(T: FullState, depth: int) -> FullState:
    depth += int(T.top[0])
    if depth <= len(T.log):
        return T
    log = np.zeros((max(depth, 2 * len(T.log)), 2), np.int64)
    log[: len(T.log)] = T.log
    return T._replace(log=log)


@known
@dataclass(frozen=True, kw_only=True, eq=False)
class Dirichlet(Prior):
    """Independent Dirichlet rows.

    Parameters
    ----------
    alpha
        Prior count of every next state: one number; an array ``[S, A]``, one for each row; or an array
        ``[S, A, S]``, where 0 means "impossible". The classic flat prior is ``Dirichlet(alpha=1 / S)``.

    Examples
    --------
    >>> belief = Dirichlet(alpha=0.5).belief(2, 1)
    >>> belief.observe(0, 0, 1.0, 1)
    >>> belief.predictive(0, 0)
    array([0.25, 0.75])
    """

    alpha: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str) or not hasattr(self.alpha, "__len__"):
            alpha = _checks.real(self.alpha, "alpha", low=0.0, high=LARGEST_ALPHA, open_low=True)
            object.__setattr__(self, "alpha", alpha)
            return
        array = _checks.numbers(self.alpha, "alpha")
        if array.ndim not in (2, 3):
            raise ValueError(f"alpha must be a number, [S, A] or [S, A, S], got {array.ndim} dimensions")
        bounds = "above 0" if array.ndim == 2 else "at least 0"
        enough = array > 0.0 if array.ndim == 2 else array >= 0.0
        bad = np.argwhere(~(enough & (array <= LARGEST_ALPHA)))
        if len(bad):
            where = tuple(bad[0].tolist())
            raise ValueError(
                f"alpha{list(where)} must be {bounds} and at most {LARGEST_ALPHA:g}, got {array[where]}"
            )
        if array.ndim == 3:
            empty = np.argwhere(array.sum(axis=2) == 0.0)
            if len(empty):
                s, a = empty[0].tolist()
                raise ValueError(
                    f"alpha of state {s}, action {a} is all zero; some next state must be possible"
                )
        array.setflags(write=False)
        object.__setattr__(self, "alpha", array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dirichlet) and np.array_equal(self.alpha, other.alpha)

    def __hash__(self) -> int:
        return hash((np.shape(self.alpha), np.asarray(self.alpha).tobytes()))

    def state(self, n_states: int, n_actions: int) -> SymmetricState | FullState:
        n_rows = n_states * n_actions
        shape = np.shape(self.alpha)
        if shape not in ((), (n_states, n_actions), (n_states, n_actions, n_states)):
            raise ValueError(
                f"alpha has shape {list(shape)}, which fits neither [S, A] nor [S, A, S] for "
                f"S={n_states}, A={n_actions}"
            )
        if len(shape) < 3:
            return SymmetricState(
                counts=empty_counts(n_rows),
                alpha=np.array(np.broadcast_to(self.alpha, (n_states, n_actions)), float).ravel(),
                mark=np.zeros(n_states + 1, np.int64),
            )
        prior = np.asarray(self.alpha).reshape(n_rows, n_states)
        row, index = np.nonzero(prior)
        return FullState(
            start=np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int64),
            index=index.astype(np.int32),
            alpha=prior[row, index],
            alpha_sum=prior.sum(axis=1),
            count=np.zeros(len(index), np.int64),
            total=np.zeros(n_rows, np.int64),
            log=np.zeros((64, 2), np.int64),
            top=np.zeros(1, np.int64),
        )
