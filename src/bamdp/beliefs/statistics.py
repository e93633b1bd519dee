"""Conversion of a belief to named arrays of sufficient statistics, and back.

A file stores what a belief has learned and nothing that follows from the prior: transition counts, reward cells,
weights of alternatives, and the episode ends, starts and actions seen so far. :func:`restore` writes them into a belief
that the prior has just created. Compiled code indexes without bounds checks, so the dtypes, shapes, ranges and sums of
all arrays are checked first; an invalid array raises a ValueError that names it.

The declaration of a posterior names the fields that it learns (``learned``, see :mod:`bamdp.beliefs.arrays`): arrays of
finite numbers with a fixed shape, or parts (other posteriors, counts, cells, weights). Register further conditions
with :func:`is_valid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.beliefs.arrays import fix_zero_reward
from bamdp.beliefs.episodes import BEGIN_AGAIN

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief

Arrays = dict[str, NDArray[Any]]
ROUNDING = 1e-9  # tolerance for sums of probabilities


@dataclass(frozen=True)
class Saved:
    """Named arrays from an untrusted file, scoped to the part called ``name``."""

    arrays: Mapping[str, NDArray[Any]]
    name: str
    n_states: int

    def part(self, name: str) -> Saved:
        """Return a view of the same arrays, scoped to a part."""
        return Saved(self.arrays, f"{self.name}.{name}", self.n_states)

    def require(self, condition: Any) -> None:
        """Raise a ValueError that names this part unless the condition holds everywhere."""
        if not np.all(condition):
            raise ValueError(f"the statistics {self.name!r} are invalid, or those of another belief")

    def array(self, like: NDArray[Any], *, rows: bool = False, infinite: bool = False) -> NDArray[Any]:
        """Return a copy of this part's array, which must have the dtype and shape of ``like``.

        With ``rows``, the first axis may have any length. Integers must be non-negative, or at least the minimum of
        ``like`` if that is negative. Real numbers must be finite, or only not NaN if ``infinite``.
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
    """Return what a posterior, or a part of one, has learned, as arrays whose names start with ``name``."""
    found: Arrays = {}
    for field, value in _learned(posterior):
        own = f"{name}.{field}"
        found |= {own: value.copy()} if isinstance(value, np.ndarray) else statistics(value, own)
    return found


@singledispatch
def restored(fresh: Any, saved: Saved) -> Any:
    """Return the new posterior ``fresh`` with the statistics of ``saved``, written in place where they fit."""
    parts = {}
    for field, value in _learned(fresh):
        if isinstance(value, np.ndarray):
            value[...] = saved.part(field).array(value)
        else:
            parts[field] = restored(value, saved.part(field))
    posterior = fresh._replace(**parts) if hasattr(fresh, "_replace") else tuple(parts.values())
    saved.require(is_valid(posterior))
    return posterior


@singledispatch
def is_valid(posterior: Any) -> Any:
    """Return whether a restored posterior, or each entry of it, is valid; recompute the fields derived from others."""
    return True


def _learned(posterior: Any) -> list[tuple[str, Any]]:
    """Return the names and values of the learned fields: those declared, or else all arrays and parts."""
    if not isinstance(posterior, tuple):
        raise TypeError(f"{type(posterior).__name__} is not a posterior")
    fields = getattr(posterior, "_fields", tuple(map(str, range(len(posterior)))))
    learned = getattr(posterior, "learned", None)
    return [
        (name, value)
        for name, value in zip(fields, posterior)
        if (isinstance(value, (np.ndarray, tuple)) if learned is None else name in learned)
    ]


# --- beliefs --------------------------------------------------------------------------------------------------


def belief_statistics(belief: Belief) -> Arrays:
    """Return the statistics of both posteriors, the episodes and the actions."""
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
    """Check the statistics of another belief and load them into a new one."""
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
    )  # raises if the prior has no model of a row
    log_evidence, n_observed = float(take("log_evidence", 0.0)), int(take("n_observed", 0))
    transitions = restored(belief.transitions, Saved(arrays, "transitions", belief.n_states))
    rewards = restored(belief.rewards, Saved(arrays, "rewards", belief.n_states))
    belief.arrays = belief.arrays._replace(transitions=transitions, rewards=rewards)
    belief.log_evidence, belief.n_observed = log_evidence, n_observed
    episodes.ends[:], episodes.starts[:], episodes.acted[:] = ends, starts, acted
    space.allowed[:] = allowed
    if episodes.restarts:
        for state in np.flatnonzero(ends).tolist():
            space.terminal[state], space.allowed[state] = False, np.arange(belief.n_actions) == BEGIN_AGAIN
            fix_zero_reward(rewards, state * belief.n_actions + BEGIN_AGAIN)
    else:
        space.terminal[:] = ends
    belief.n_changes += 1
