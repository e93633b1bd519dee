"""Independent Dirichlet rows: symmetric over all S states, or with a full or sparse array of prior counts.

The posterior of the former is :class:`~bamdp.beliefs.transitions.symmetric.SymmetricState`, that of an array
``[S, A, S]`` is :class:`FullState`: outcomes with prior count 0 are impossible; memory is that of the array's non-zero
entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.dirichlet import dirichlet
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import uniform
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import longer, transition_posterior, with_room
from bamdp.beliefs.base import Prior
from bamdp.beliefs.transitions.counts import NOT_SEEN, empty_counts
from bamdp.beliefs.transitions.symmetric import SymmetricState
from bamdp.mdp.build import row_entries
from bamdp.mdp.model import FiniteMDP

LARGEST_ALPHA = 1e100


# --- rows with prior counts of their own ----------------------------------------------------------------------


@transition_posterior(independent_rows=True, counts_transitions=True, learned=("count",))
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
    return T._replace(log=longer(T.log, depth + int(T.top[0])))


# --- the prior ------------------------------------------------------------------------------------------------


class PriorCounts(NamedTuple):
    """Sparse prior counts, the rows one after the other."""

    start: np.ndarray  # int64 [S*A + 1]: where a row begins
    index: np.ndarray  # type: ignore[assignment]  # int32 [nonzeros]: next states, rising within a row
    alpha: np.ndarray  # float64 [nonzeros], above 0
    n_states: int

    def __repr__(self) -> str:
        return f"<{len(self.alpha)} prior counts of {len(self.start) - 1} rows>"


def _sparse_counts(alpha: Any) -> PriorCounts:
    """Return the prior counts of a SciPy sparse array [S*A, S], or of what was made of one, checked."""
    from scipy.sparse import csr_array

    if isinstance(alpha, PriorCounts):
        alpha = csr_array(
            (alpha.alpha, alpha.index, alpha.start), shape=(len(alpha.start) - 1, int(alpha.n_states))
        )
    table = csr_array(alpha, dtype=float, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    bad = np.flatnonzero(~((table.data > 0.0) & (table.data <= LARGEST_ALPHA)))
    if len(bad):
        row = int(np.searchsorted(table.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"alpha[{row}, {table.indices[bad[0]]}] must be at least 0 and at most {LARGEST_ALPHA:g}, "
            f"got {table.data[bad[0]]}"
        )
    empty = np.flatnonzero(np.diff(table.indptr) == 0)
    if len(empty):
        raise ValueError(f"alpha of row {empty[0]} is all zero; some next state must be possible")
    counts = PriorCounts(
        table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, int(table.shape[1])
    )
    for array in counts[:3]:
        array.setflags(write=False)
    return counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Dirichlet(Prior):
    """Independent Dirichlet rows.

    Parameters
    ----------
    alpha
        Prior count of every next state: one number; an array ``[S, A]``, one for each row; or an array
        ``[S, A, S]``, where 0 means "impossible", or the same as a SciPy sparse array ``[S*A, S]``, whose memory is
        that of what is possible. The classic flat prior is ``Dirichlet(alpha=1 / S)``.

    Examples
    --------
    >>> belief = Dirichlet(alpha=0.5).belief(2, 1)
    >>> belief.observe(0, 0, 1.0, 1)
    >>> belief.predictive(0, 0)
    array([0.25, 0.75])
    """

    alpha: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, PriorCounts) or hasattr(self.alpha, "tocsr"):
            object.__setattr__(self, "alpha", _sparse_counts(self.alpha))
            return
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
        if not isinstance(other, Dirichlet) or type(self.alpha) is not type(other.alpha):
            return False
        return all(np.array_equal(x, y) for x, y in zip(self._parts(), other._parts()))

    def __hash__(self) -> int:
        return hash(tuple((part.shape, part.tobytes()) for part in self._parts()))

    def _parts(self) -> list[np.ndarray]:
        return [np.asarray(x) for x in (self.alpha if isinstance(self.alpha, PriorCounts) else [self.alpha])]

    @staticmethod
    def local(mdp: FiniteMDP, alpha: float = 1.0) -> Dirichlet:
        """Return a prior that knows the neighbours of every state, and nothing of what actions do.

        From a state, every action may lead wherever some action leads in ``mdp``, with the prior count ``alpha``.

        Examples
        --------
        >>> import bamdp
        >>> belief = Dirichlet.local(bamdp.make_env("grid:size=1000").mdp).belief(10**6, 4)
        >>> belief.predictive(0, 0)[[0, 1, 1000]].round(2)
        array([0.33, 0.33, 0.33])
        """
        from scipy.sparse import csr_array

        alpha = _checks.real(alpha, "alpha", low=0.0, high=LARGEST_ALPHA, open_low=True)
        if mdp.rows.background.any():
            raise ValueError(
                "there are no neighbours in a world that may go anywhere; use Dirichlet(alpha=1 / S)"
            )
        S, A = mdp.n_states, mdp.n_actions
        row, state, prob = row_entries(mdp.rows)
        row, state = row[prob > 0.0], state[prob > 0.0]
        alone = np.flatnonzero(np.bincount(row // A, minlength=S) == 0)  # a terminal state may lead to itself
        places = np.append(row // A, alone), np.append(state, alone)
        near = csr_array((np.ones(len(places[0])), places), shape=(S, S))
        near.data[:] = alpha
        return Dirichlet(alpha=near[np.repeat(np.arange(S), A)])

    def state(self, n_states: int, n_actions: int) -> SymmetricState | FullState:
        n_rows, sparse = n_states * n_actions, isinstance(self.alpha, PriorCounts)
        shape = (len(self.alpha.start) - 1, self.alpha.n_states) if sparse else np.shape(self.alpha)
        full = (n_states, n_actions, n_states)
        if shape not in ([(n_rows, n_states)] if sparse else [(), full[:2], full]):
            fits = "does not fit [S*A, S]" if sparse else "fits neither [S, A] nor [S, A, S]"
            raise ValueError(f"alpha has shape {list(shape)}, which {fits} for S={n_states}, A={n_actions}")
        if sparse:
            start, index, alpha = (array.copy() for array in self.alpha[:3])
            sums = np.add.reduceat(alpha, start[:-1])
        elif len(shape) < 3:
            return SymmetricState(
                counts=empty_counts(n_rows),
                alpha=np.array(np.broadcast_to(self.alpha, (n_states, n_actions)), float).ravel(),
                mark=np.zeros(n_states + 1, np.int64),
                n_states=n_states,
            )
        else:
            table = np.asarray(self.alpha).reshape(n_rows, n_states)
            row, index = np.nonzero(table)
            start, alpha = np.searchsorted(row, np.arange(n_rows + 1)), table[row, index]
            sums = table.sum(axis=1)
        return FullState(
            start=start.astype(np.int64),
            index=index.astype(np.int32),
            alpha=alpha,
            alpha_sum=sums,
            count=np.zeros(len(index), np.int64),
            total=np.zeros(n_rows, np.int64),
            log=np.zeros((64, 2), np.int64),
            top=np.zeros(1, np.int64),
        )
