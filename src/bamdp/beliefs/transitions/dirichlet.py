"""Independent Dirichlet rows: symmetric over all S states, or with prior counts for listed outcomes.

After n draws, ν(i) = (α_i + n_i) / (Σ α + n). The pool of the counts stores the outcomes of each row: those seen so far
or, if prior counts are listed (an array ``[S, A, S]``), all possible outcomes from the start.

A *symmetric* row has the same α for every state. With probability n/(Sα+n) the next outcome repeats a past one;
otherwise it is uniform over all states, and it is drawn this way, too. A posterior row is a Dirichlet over the seen
outcomes and the lump of unseen mass, and a symmetric Dirichlet divides the lump. If α is small, the lump is divided
stick by stick in size-biased order (stick j takes a Beta(1+α, (u−j)α) share among u unseen outcomes, with labels
uniform without replacement; this is the exact distribution) until less than 1e-12 of the row is left, which becomes
background. A row of the flat prior α = 1/S then costs about 30 draws instead of S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bamdp.beliefs.transitions.counts as tally
from bamdp import _checks
from bamdp._kernels.dirichlet import (
    MOST_FACTORS,
    compiled_power_method,
    dirichlet,
    posterior_row,
    posterior_row_by_gs,
)
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, exponential, uniform
from bamdp._parameters import NUMBER, parameter
from bamdp.beliefs.base import Prior, longer, reserve, transition_posterior
from bamdp.beliefs.transitions.counts import CAPACITY, COUNT, NEXT, POOL_END, SIZE, START, TOTAL
from bamdp.mdp.model import FiniteMDP

REST = 1e-12  # share of a row that may stay unresolved as background
STICKS_PAY = 25.0  # sticks are cheaper than one gamma draw per outcome if u > STICKS_PAY (uα + 1)
LARGEST_ALPHA = 1e100


@transition_posterior(independent_rows=True, counts_transitions=True, learned=("counts",))
class DirichletPosterior(NamedTuple):
    """Posterior of Dirichlet rows; the counts and the scratch arrays are updated in place."""

    counts: tally.Counts
    alpha: np.ndarray  # float64 [S*A]: prior count of every state, 0 if prior counts are listed
    listed: np.ndarray  # float64 [nonzeros]: prior count for each slot of the pool; empty if not listed
    total: np.ndarray  # float64 [S*A]: sum of a row's prior counts
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes
    n_states: int

    def draw_slot(T, row, rng):
        counts = T.counts
        n = counts.rows[row, TOTAL]
        x = uniform(rng) * (T.total[row] + n)
        if T.listed.shape[0] == 0 and x >= n:
            s2 = below(rng, T.n_states)
            return s2, tally.find(counts, row, s2)
        slot = counts.rows[row, START]
        last = slot + counts.rows[row, SIZE] - 1
        while slot < last:
            x -= _own_count(T, slot)
            if x < 0.0:
                break
            slot += 1
        return np.int64(counts.pool[slot, NEXT]), slot

    def expectations(T, row):
        alpha, total = T.alpha[row], T.total[row] + T.counts.rows[row, TOTAL]
        inverse = 1.0 / total
        second = inverse / (total + 1.0)
        return inverse, second, alpha * inverse, alpha * (alpha + 1.0) * second

    def listed_outcome(T, row, i):
        return T.counts.pool[i, NEXT], T.alpha[row] + _own_count(T, i)

    def sample_row(T, choice, row, index, prob, at, rng):
        n_states, alpha = T.n_states, T.alpha[row]
        k0, start = T.counts.rows[row, SIZE], T.counts.rows[row, START]
        smallest = np.inf
        for i in range(k0):
            index[at + i] = T.counts.pool[start + i, NEXT]
            prob[at + i] = alpha + _own_count(T, start + i)
            smallest = min(smallest, prob[at + i])
        seen_end, unseen = at + k0, n_states - k0
        if n_states == 1:
            index[at], prob[at] = 0, 1.0
            return at + 1, 0.0
        if T.listed.shape[0] > 0 or unseen == 0:
            dirichlet(prob, at, seen_end, smallest, rng)
            return seen_end, 0.0
        if unseen > STICKS_PAY * (unseen * alpha + 1.0):
            prob[seen_end] = unseen * alpha
            dirichlet(prob, at, seen_end + 1, unseen * alpha, rng)
            return break_sticks(T, index, prob, at, seen_end, prob[seen_end], alpha, rng)
        tick = T.mark[n_states] + 1
        T.mark[n_states] = tick
        for i in range(at, seen_end):
            T.mark[index[i]] = tick
        end = seen_end
        for s2 in range(n_states):  # branch-free: if s2 was seen, the next state overwrites its entry
            index[end] = s2
            end += np.int64(T.mark[s2] != tick)
        method = compiled_power_method(alpha)
        if method > MOST_FACTORS:
            posterior_row_by_gs(prob, at, seen_end, end, method, rng)
        else:
            posterior_row(prob, at, seen_end, end, alpha, method, rng)
        return end, 0.0


tally.register_count_verbs(DirichletPosterior)
tally.register_row_verbs(DirichletPosterior)
NO_LIST = np.zeros(0)


def as_symmetric(T: Any) -> DirichletPosterior:
    """Return the rows of a posterior with ``counts`` as Dirichlet rows with α + n_i for every outcome."""
    alpha = np.full(len(T.counts.rows), T.alpha)
    return DirichletPosterior(T.counts, alpha, NO_LIST, alpha * T.n_states, T.mark, T.n_states)


@reserve.register(DirichletPosterior)
def _reserve(T: DirichletPosterior, depth: int) -> DirichletPosterior:
    if len(T.listed):  # no outcome is ever new
        log = longer(T.counts.log, depth + int(T.counts.top[tally.LOG_END]))
        return T._replace(counts=T.counts._replace(log=log))
    return T._replace(counts=reserve(T.counts, depth))


@primitive
def _own_count(T, slot):
    """Return the count of the outcome in a slot beyond α: its observations plus its listed prior count."""
    return T.counts.pool[slot, COUNT] + (T.listed[slot] if T.listed.shape[0] > 0 else 0.0)


@primitive
def _kept(rng, alpha, inverse):
    """Draw 1 − x for x ~ Beta(1+α, b): accept x ~ Beta(1, b) with probability x^α, nearly 1. inverse = 1/b."""
    while True:
        kept = math.exp(-exponential(rng) * inverse)
        u = uniform(rng)
        # x^α > 1/2 for x > 3e-8, as α < 1/25
        if (u < 0.5 and kept < 1.0 - 3e-8) or u < (1.0 - kept) ** alpha:
            return kept


@primitive
def break_sticks(T, index, prob, at, seen_end, rest, alpha, rng):
    """Divide the unseen mass ``rest`` in size-biased order; return (end, remaining background)."""
    left = T.n_states - (seen_end - at)
    end = seen_end
    while rest > REST:
        kept = 0.0 if left == 1 else _kept(rng, alpha, 1.0 / ((left - 1) * alpha))
        prob[end] = rest * (1.0 - kept)
        rest *= kept
        left -= 1
        end += 1
    tally.draw_new_outcomes(index, at, seen_end, end, T.mark, rng)
    return end, rest


# --- the prior ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PriorCounts:
    """Sparse prior counts, stored row after row."""

    start: np.ndarray  # int64 [S*A + 1]: start of each row
    index: np.ndarray  # int32 [nonzeros]: next states, increasing within a row
    alpha: np.ndarray  # float64 [nonzeros], positive
    n_states: int

    def __repr__(self) -> str:
        return f"<{len(self.alpha)} prior counts of {len(self.start) - 1} rows>"


def _prior_counts(alpha: Any) -> PriorCounts:
    """Validate an array [S, A, S] or a SciPy sparse array [S*A, S] and return it as prior counts."""
    from scipy.sparse import csr_array

    if isinstance(alpha, np.ndarray):
        alpha = alpha.reshape(-1, alpha.shape[-1])
    table = csr_array(alpha, dtype=float, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    bad = np.flatnonzero(~((table.data > 0.0) & (table.data <= LARGEST_ALPHA)))
    if len(bad):
        row = int(np.searchsorted(table.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"alpha of row {row}, state {table.indices[bad[0]]} must be at least 0 and at most {LARGEST_ALPHA:g}, "
            f"got {table.data[bad[0]]}"
        )
    empty = np.flatnonzero(np.diff(table.indptr) == 0)
    if len(empty):
        raise ValueError(f"alpha of row {empty[0]} is all zero; some next state must be possible")
    start, index = table.indptr.astype(np.int64), table.indices.astype(np.int32, copy=False)
    return PriorCounts(start, index, table.data, int(table.shape[1]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Dirichlet(Prior):
    """Independent Dirichlet rows.

    The classic flat prior is ``Dirichlet(alpha=1 / S)``.

    Examples
    --------
    >>> belief = Dirichlet(alpha=0.5).belief(2, 1)
    >>> belief.observe(0, 0, 1.0, 1)
    >>> belief.predictive(0, 0)
    array([0.25, 0.75])
    """

    alpha: Any = parameter(  # noqa: RUF009
        1.0,
        lambda value, name: None,  # checked below
        help="prior count of every next state: one number; an array [S, A], one for each row; an array [S, A, S], in "
        'which 0 means "impossible"; or the same as a SciPy sparse array [S*A, S]',
        kind=NUMBER,
    )

    def __post_init__(self) -> None:
        alpha: Any = self.alpha
        if hasattr(alpha, "tocsr"):
            alpha = _prior_counts(alpha)
        elif isinstance(alpha, str) or not hasattr(alpha, "__len__"):
            if not isinstance(alpha, PriorCounts):
                alpha = _checks.real(alpha, "alpha", low=0.0, high=LARGEST_ALPHA, open_low=True)
        else:
            alpha = _checks.numbers(alpha, "alpha")
            if alpha.ndim not in (2, 3):
                raise ValueError(f"alpha must be a number, [S, A] or [S, A, S], got {alpha.ndim} dimensions")
            bad = np.argwhere(~((alpha > 0.0) & (alpha <= LARGEST_ALPHA)))
            if alpha.ndim == 2 and len(bad):
                s, a = bad[0].tolist()
                raise ValueError(
                    f"alpha[{s}, {a}] must be above 0 and at most {LARGEST_ALPHA:g}, got {alpha[s, a]}"
                )
            alpha = _prior_counts(alpha) if alpha.ndim == 3 else alpha
        object.__setattr__(self, "alpha", alpha)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dirichlet) or type(self.alpha) is not type(other.alpha):
            return False
        return all(np.array_equal(x, y) for x, y in zip(self._parts(), other._parts()))

    def __hash__(self) -> int:
        return hash(tuple((part.shape, part.tobytes()) for part in self._parts()))

    def _parts(self) -> list[np.ndarray]:
        parts = vars(self.alpha).values() if isinstance(self.alpha, PriorCounts) else [self.alpha]
        return [np.asarray(x) for x in parts]

    @staticmethod
    def local(mdp: FiniteMDP, alpha: float = 1.0) -> Dirichlet:
        """Return a prior that knows the neighbours of every state, but not the effects of actions.

        Every action may lead to any state that some action reaches from the same state in ``mdp``, with prior count
        ``alpha``.

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
        entries = np.diff(mdp.rows.span, axis=1).reshape(S, A).sum(axis=1)
        alone = np.flatnonzero(entries == 0).astype(np.int32)  # a terminal state may lead to itself
        source = np.append(np.repeat(np.arange(S, dtype=np.int32), entries), alone)
        target = np.append(mdp.rows.index, alone)
        near = csr_array((np.ones(len(source), bool), (source, target)), shape=(S, S))
        near = near[np.repeat(np.arange(S), A)]
        counts = PriorCounts(near.indptr, near.indices, np.full(near.nnz, alpha), S)
        return Dirichlet(alpha=counts)

    def posterior(self, n_states: int, n_actions: int) -> DirichletPosterior:
        n_rows, listed = n_states * n_actions, isinstance(self.alpha, PriorCounts)
        shape = (len(self.alpha.start) - 1, self.alpha.n_states) if listed else np.shape(self.alpha)
        if shape not in ([(n_rows, n_states)] if listed else [(), (n_states, n_actions)]):
            fits = "does not fit [S*A, S]" if listed else "does not fit [S, A]"
            raise ValueError(f"alpha has shape {list(shape)}, which {fits} for S={n_states}, A={n_actions}")
        counts, mark = tally.empty_counts(n_rows), np.zeros(n_states + 1, np.int64)
        if not listed:
            alpha = np.array(np.broadcast_to(self.alpha, (n_states, n_actions)), float).ravel()
            return DirichletPosterior(counts, alpha, NO_LIST, n_states * alpha, mark, n_states)
        start, prior = self.alpha.start, self.alpha.alpha
        counts.rows[:, START] = start[:-1]
        counts.rows[:, SIZE] = counts.rows[:, CAPACITY] = np.diff(start)
        counts = counts._replace(pool=np.stack([self.alpha.index, np.zeros_like(self.alpha.index)], axis=1))
        counts.top[POOL_END] = len(prior)
        total = np.add.reduceat(prior, start[:-1])
        return DirichletPosterior(counts, np.zeros(n_rows), prior, total, mark, n_states)
