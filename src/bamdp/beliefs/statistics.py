"""The sufficient statistics of a belief as named arrays, and a belief restored from them.

A file keeps of a belief what was learned and nothing that follows from the prior: counts of transitions, cells of
rewards, weights of alternatives, and what is known of episodes and actions. :func:`restore` writes them into a belief
that the prior has just made. Compiled code indexes without bounds checks, so whatever is restored is checked here
first: dtype, shape, ranges, and sums that must agree; arrays that fail are refused by one ValueError that names them.

A posterior names the fields that it learns when it is declared (``learned``, see :mod:`bamdp.beliefs.arrays`): arrays
of finite numbers that keep their shape, or parts (other posteriors, counts, cells, weights). What else must hold is
registered here with :func:`restored`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.beliefs.arrays import longer, pay_nothing
from bamdp.beliefs.episodes import BEGIN_AGAIN
from bamdp.beliefs.rewards.bernoulli import N_TRIALS, N_WINS, BetaState
from bamdp.beliefs.rewards.cells import AFTER, LOGGED, NEXT_STATE, NO_CELL, USED, Cells
from bamdp.beliefs.rewards.finite import ValuesState
from bamdp.beliefs.rewards.hierarchical import NOISE, SPREAD, SQUARES, C, HierarchicalState, N
from bamdp.beliefs.rewards.normal import N_SEEN, RATE, NormalState
from bamdp.beliefs.transitions.counts import (
    COUNT,
    LOG_END,
    NEXT,
    POOL_END,
    ROOM,
    SIZE,
    START,
    TOTAL,
    WIDEST,
    Counts,
)
from bamdp.beliefs.transitions.hierarchical import HierarchicalState as HierarchicalRows
from bamdp.beliefs.transitions.hierarchical import update
from bamdp.beliefs.transitions.mixture import Weights
from bamdp.beliefs.transitions.shared import SharedState

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief

Arrays = dict[str, NDArray[Any]]
ROUNDING = 1e-9  # by which sums of probabilities may be off
LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Saved:
    """Named arrays that are not trusted, seen from the part called ``name``."""

    arrays: Mapping[str, NDArray[Any]]
    name: str
    n_states: int

    def part(self, name: str) -> Saved:
        """Return the same arrays, seen from a part of this part."""
        return Saved(self.arrays, f"{self.name}.{name}", self.n_states)

    def require(self, condition: Any) -> None:
        """Refuse the array of this part unless the condition, or every entry of it, holds."""
        if not np.all(condition):
            raise ValueError(f"the statistics {self.name!r} are invalid, or those of another belief")

    def array(self, like: NDArray[Any], *, rows: bool = False, infinite: bool = False) -> NDArray[Any]:
        """Return a copy of the array of this part, of the dtype and shape of ``like``.

        With ``rows`` the first axis may have any length. Whole numbers are not negative, or not below the least of
        ``like``; real ones are finite unless they may be ``infinite``.
        """
        if self.name not in self.arrays:
            raise ValueError(f"there are no statistics {self.name!r}")
        array = np.array(self.arrays[self.name])
        axes = slice(1, None) if rows else slice(None)
        self.require(array.dtype == like.dtype and array.ndim == like.ndim)
        self.require(array.shape[axes] == like.shape[axes])
        self.require(
            array >= like.min(initial=0)
            if array.dtype.kind == "i"
            else ~np.isnan(array)
            if infinite
            else np.isfinite(array)
        )
        return array


# --- posteriors -----------------------------------------------------------------------------------------------


@singledispatch
def statistics(posterior: Any, name: str) -> Arrays:
    """Return what a posterior, or a part of one, has learned; ``name`` begins the names of the arrays."""
    found: Arrays = {}
    for field, value in _learned(posterior):
        own = f"{name}.{field}"
        found |= {own: value.copy()} if isinstance(value, np.ndarray) else statistics(value, own)
    return found


@singledispatch
def restored(fresh: Any, saved: Saved) -> Any:
    """Return a posterior before data with what ``saved`` has learned; arrays are written in place where they fit."""
    parts = {}
    for field, value in _learned(fresh):
        if isinstance(value, np.ndarray):
            value[...] = saved.part(field).array(value)
        else:
            parts[field] = restored(value, saved.part(field))
    return fresh._replace(**parts) if hasattr(fresh, "_replace") else tuple(parts.values())


def _learned(posterior: Any) -> list[tuple[str, Any]]:
    """Return the names and values of the fields that are learned: those declared, else all arrays and parts."""
    if not isinstance(posterior, tuple):
        raise TypeError(f"{type(posterior).__name__} is not a posterior")
    fields = getattr(posterior, "_fields", tuple(map(str, range(len(posterior)))))
    learned = getattr(posterior, "learned", None)
    return [
        (name, value)
        for name, value in zip(fields, posterior)
        if (isinstance(value, (np.ndarray, tuple)) if learned is None else name in learned)
    ]


@statistics.register
def _count_statistics(counts: Counts, name: str) -> Arrays:
    """Triples (row, next state, count), int64 [n, 3]."""
    start, size = counts.rows[:, START], counts.rows[:, SIZE]
    begin = np.cumsum(size) - size
    row = np.repeat(np.arange(len(size)), size)
    slot = np.repeat(start - begin, size) + np.arange(len(row))
    triples = np.column_stack([row, counts.pool[slot, NEXT], counts.pool[slot, COUNT]])
    return {name: triples[triples[:, 2] > 0]}


@restored.register
def _restored_counts(fresh: Counts, saved: Saved) -> Counts:
    triples = saved.array(np.zeros((0, 3), np.int64), rows=True)
    row, state, count = triples.T
    rows, n = fresh.rows, saved.n_states
    saved.require((np.diff(row) >= 0).all() and (row < len(rows)) & (state < n))
    saved.require((count > 0) & (count <= LARGEST_COUNT))
    key = row * n + state
    saved.require(len(np.unique(key)) == len(key))
    rows[:, TOTAL] = np.bincount(row, count, len(rows))
    if fresh.top[POOL_END] > 0:  # all possible outcomes are listed, rising within a row
        listed = np.repeat(np.arange(len(rows)), rows[:, SIZE]) * n + fresh.pool[:, NEXT]
        slot = np.minimum(np.searchsorted(listed, key), len(listed) - 1)
        saved.require(listed[slot] == key)
        fresh.pool[slot, COUNT] = count
        return fresh
    size = np.bincount(row, minlength=len(rows))
    rows[:, START], rows[:, SIZE], rows[:, ROOM] = np.cumsum(size) - size, size, size
    pool = longer(fresh.pool, len(row))
    pool[: len(row), NEXT], pool[: len(row), COUNT] = state, count
    fresh.top[[POOL_END, LOG_END, WIDEST]] = len(row), 0, size.max(initial=0)
    return fresh._replace(pool=pool)


@restored.register
def _restored_shared(fresh: SharedState, saved: Saved) -> SharedState:
    parts = {name: restored(getattr(fresh, name), saved.part(name)) for name in ("counts", "seen")}
    row, state, count = statistics(parts["counts"], "counts")["counts"].T
    s, seen_state, seen = statistics(parts["seen"], "seen")["seen"].T
    together = np.unique(row // fresh.n_actions * saved.n_states + state, return_inverse=True)
    pair = s * saved.n_states + seen_state
    order = np.argsort(pair)
    saved.part("seen").require(
        np.array_equal(together[0], pair[order])
        and np.array_equal(np.bincount(together[1], count), seen[order])
    )
    weight = saved.part("weight").array(fresh.weight)
    possible = fresh.size >= parts["seen"].rows[:, [SIZE]]
    saved.part("weight").require((weight > 0.0) == possible)
    saved.part("weight").require(np.abs(weight.sum(axis=1) - 1.0) < ROUNDING)
    fresh.weight[...] = weight
    return fresh._replace(**parts)


@restored.register
def _restored_rows(fresh: HierarchicalRows, saved: Saved) -> HierarchicalRows:
    counts = restored(fresh.counts, saved.part("counts"))
    for name in ("weight", "log_c", "place", "mass"):
        getattr(fresh, name)[...] = saved.part(name).array(getattr(fresh, name))
    saved.part("weight").require(fresh.weight >= 1.0)
    saved.part("place").require(fresh.place < [[2 * saved.n_states - 1], [saved.n_states]])
    saved.part("mass").require((fresh.mass >= 0.0).all() and (np.diff(fresh.mass) <= 0.0).all())
    for a in range(fresh.n_actions):
        update(fresh, a)
    return fresh._replace(counts=counts)


@statistics.register
def _weight_statistics(weights: Weights, name: str) -> Arrays:
    """Logarithms of the weights and the weights themselves, float64 [2, L]."""
    return {name: np.array([weights.log, weights.now])}


@restored.register
def _restored_weights(fresh: Weights, saved: Saved) -> Weights:
    log, now = saved.array(np.zeros((2, len(fresh.now))), infinite=True)
    saved.require((log < ROUNDING) & (now >= 0.0) & (np.abs(np.exp(log) - now) < ROUNDING))
    saved.require(abs(now.sum() - 1.0) < ROUNDING * len(now))
    fresh.log[...], fresh.now[...] = log, now
    return fresh


@statistics.register
def _cell_statistics(cells: Cells, name: str) -> Arrays:
    """(row, next state or 0, statistics) of each cell in the order in which they were made, float64 [n, 2 + W]."""
    used = int(cells.top[USED])
    row = np.zeros(used)
    for first in np.flatnonzero(cells.head >= 0).tolist():
        cell = cells.head[first]
        while cell != NO_CELL:
            row[cell] = first
            cell = cells.link[cell, AFTER]
    return {name: np.column_stack([row, cells.link[:used, NEXT_STATE], cells.stats[:used]])}


@restored.register
def _restored_cells(fresh: Cells, saved: Saved) -> Cells:
    table = saved.array(np.zeros((0, 2 + fresh.stats.shape[1])), rows=True)
    place = table[:, :2].astype(np.int64)
    highest = [len(fresh.head), saved.n_states if fresh.next_step else 1]
    saved.require((place == table[:, :2]) & (place >= 0) & (place < highest))
    saved.require(len(np.unique(place @ [saved.n_states, 1])) == len(place))
    used = len(table)
    stats, link = longer(fresh.stats, used), longer(fresh.link, used)
    stats[:used] = table[:, 2:]
    for cell, (row, state) in enumerate(place.tolist()):
        link[cell] = state, fresh.head[row]
        fresh.head[row] = cell
    fresh.top[[USED, LOGGED]] = used, 0
    return fresh._replace(stats=stats, link=link)


def _used_cells(fresh: Any, saved: Saved) -> tuple[Cells, NDArray[np.float64]]:
    cells = restored(fresh.cells, saved.part("cells"))
    return cells, cells.stats[: cells.top[USED]]


@restored.register
def _restored_beta(fresh: BetaState, saved: Saved) -> BetaState:
    cells, stats = _used_cells(fresh, saved)
    saved.require((stats[:, N_WINS] >= 0.0) & (stats[:, N_WINS] <= stats[:, N_TRIALS]))
    return fresh._replace(cells=cells)


@restored.register
def _restored_normal(fresh: NormalState, saved: Saved) -> NormalState:
    cells, stats = _used_cells(fresh, saved)
    saved.require((stats[:, N_SEEN] >= 0.0) & (stats[:, RATE] > 0.0))
    return fresh._replace(cells=cells)


@restored.register
def _restored_hierarchical(fresh: HierarchicalState, saved: Saved) -> HierarchicalState:
    cells, stats = _used_cells(fresh, saved)
    pooled = saved.part("pooled").array(fresh.pooled)
    saved.require((stats[:, N_SEEN] >= 1.0) & (stats[:, SQUARES] >= 0.0))
    saved.part("pooled").require((pooled[SPREAD] > 0.0) & (pooled[NOISE] > 0.0) & (pooled[C] == len(stats)))
    saved.part("pooled").require(pooled[N] == stats[:, N_SEEN].sum())
    fresh.pooled[...] = pooled
    return fresh._replace(cells=cells)


@restored.register
def _restored_values(fresh: ValuesState, saved: Saved) -> ValuesState:
    cells, stats = _used_cells(fresh, saved)
    known, values = saved.part("known").array(fresh.known), saved.part("values").array(fresh.values)
    K, size = int(known[0]), len(values) - 1
    saved.require(size >= K and len(np.unique(values[:K])) == K)
    saved.require(not fresh.values_given or (np.array_equal(values, fresh.values) and size == K))
    saved.require((stats >= 0.0).all() and (stats[:, K : size + 1] == 0.0).all())
    saved.require(stats[:, : size + 1].sum(axis=1) == stats[:, size + 1])
    fresh.known[...], fresh.values[...] = known, values
    return fresh._replace(cells=cells)


# --- beliefs --------------------------------------------------------------------------------------------------


def belief_statistics(belief: Belief) -> Arrays:
    """Return the statistics of both posteriors, of episodes and of actions."""
    episodes = belief.episodes
    return {
        **statistics(belief.transitions, "transitions"),
        **statistics(belief.rewards, "rewards"),
        **{f"episodes.{name}": getattr(episodes, name).copy() for name in ("ends", "starts", "acted")},
        "allowed": belief.space.allowed.copy(),
        "log_evidence": np.array(belief.log_evidence),
        "n_observed": np.array(belief.n_observed),
    }


def restore(belief: Belief, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give a belief before data the statistics of another one, after they have been checked."""
    episodes, space = belief.episodes, belief.space

    def take(name: str, like: Any) -> NDArray[Any]:
        return Saved(arrays, name, belief.n_states).array(np.asarray(like))

    ends, starts, acted = (
        take(f"episodes.{name}", getattr(episodes, name)) for name in ("ends", "starts", "acted")
    )
    allowed = take("allowed", space.allowed)
    Saved(arrays, "allowed", belief.n_states).require(allowed.any(axis=1) | ends)
    belief.prior.space(
        belief.n_states, belief.n_actions, ends, allowed | ends[:, None]
    )  # may know nothing of some
    log_evidence, n_observed = float(take("log_evidence", 0.0)), int(take("n_observed", 0))
    transitions = restored(belief.transitions, Saved(arrays, "transitions", belief.n_states))
    rewards = restored(belief.rewards, Saved(arrays, "rewards", belief.n_states))
    belief.arrays = belief.arrays._replace(transitions=transitions, rewards=rewards)
    belief.log_evidence, belief.n_observed = log_evidence, n_observed
    episodes.ends[:], episodes.starts[:], episodes.acted[:] = ends, starts, acted
    space.allowed[:] = allowed
    if episodes.again:
        for state in np.flatnonzero(ends).tolist():
            space.terminal[state], space.allowed[state] = False, np.arange(belief.n_actions) == BEGIN_AGAIN
            pay_nothing(rewards, state * belief.n_actions + BEGIN_AGAIN)
    else:
        space.terminal[:] = ends
    belief.n_changes += 1
