"""The arrays of a belief: the bundle that kernels are given, and what is done to it outside of kernels.

A posterior over transitions or rewards is a NamedTuple of arrays. Kernels use it through the verbs of
:mod:`bamdp.beliefs.verbs`; Python makes its undo logs long enough (:func:`reserve`). What it can do is declared where
its class is defined, by :func:`transition_posterior` or :func:`reward_posterior`, so that planners need to know no
class.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bamdp._kernels.rows import Space

C = TypeVar("C", bound=type)


class BeliefArrays(NamedTuple):
    """A belief as kernels see it."""

    transitions: Any  # a posterior over transitions, with the verbs from ``draw`` to ``commit``
    rewards: Any  # a posterior over rewards, with the verbs from ``draw_reward`` on
    space: Space  # which states are terminal and which actions exist


def transition_posterior(**declared: Any) -> Callable[[C], C]:
    """Declare what a posterior over transitions can do.

    Parameters
    ----------
    independent_rows
        A transition from (s, a) changes no other row (default: False).
    changes
        Which rows a transition from (s, a) may change, apart from weights over alternatives that all rows share:
        ``"row"``, its own, ``"state"``, those of s, or ``"all"`` (default: ``"row"`` if rows are independent, else
        ``"all"``).
    pools
        A committed transition changes all rows, which share what is estimated from real transitions and taken as
        known in planning; ``changes`` and ``independent_rows`` then speak of pushed ones (default: False).
    counts_transitions
        It counts transitions: the verb ``concentration`` is defined (default: False).
    learned
        The fields that change as data come, and that a file keeps (default: all arrays and parts).

    What depends on the instance is defined in the class as a property of that name.
    """
    changes = "row" if declared.get("independent_rows", False) else "all"
    defaults = {
        "independent_rows": False,
        "changes": changes,
        "pools": False,
        "counts_transitions": False,
        "learned": None,
    }
    return _declare(defaults, declared)


def reward_posterior(**declared: Any) -> Callable[[C], C]:
    """Declare what a posterior over rewards can do.

    Parameters
    ----------
    certain
        Rewards are known, there is nothing to learn (default: False).
    by_next_state
        Rewards depend on the next state (default: True).
    independent_rows
        A pushed reward of (s, a) changes what is expected of no other row (default: True).
    pools
        A committed reward does: what all rows share is estimated from real rewards, and taken as known in planning
        (default: False).
    shares_weights
        Its weights over alternatives are those of the transitions: one cannot be drawn without the other
        (default: False).
    n_outcomes
        How many different rewards can follow a transition, for planners that enumerate them; None for infinitely
        many (default: None). Where it is a number, the verb ``outcome`` is defined.
    reward_range
        (lowest, highest) expected reward of any model (default: unbounded).
    learned
        The fields that change as data come, and that a file keeps (default: all arrays and parts).

    What depends on the instance is defined in the class as a property of that name.
    """
    defaults = {
        "certain": False,
        "by_next_state": True,
        "independent_rows": True,
        "pools": False,
        "shares_weights": False,
        "n_outcomes": None,
        "reward_range": (-math.inf, math.inf),
        "learned": None,
    }
    return _declare(defaults, declared)


def _declare(defaults: dict[str, Any], declared: dict[str, Any]) -> Callable[[C], C]:
    unknown = sorted(declared.keys() - defaults.keys())
    if unknown:
        raise TypeError(f"unknown declaration {unknown[0]!r} (known: {', '.join(defaults)})")

    def declare(cls: C) -> C:
        for name, value in {**defaults, **declared}.items():
            if name not in vars(cls):
                setattr(cls, name, value)
        return cls

    return declare


@singledispatch
def reserve(posterior: Any, depth: int) -> Any:
    """Return the same posterior with undo logs that are long enough for ``depth`` more pushes than they hold now.

    These are those of its parts (counts, cells, weights, other posteriors), or its own array ``log`` with its length
    ``top``; anything else is registered.
    """
    if type(posterior) is tuple:
        return tuple(reserve(part, depth) for part in posterior)
    named = zip(getattr(posterior, "_fields", ()), posterior if isinstance(posterior, tuple) else ())
    parts = {name: reserve(part, depth) for name, part in named if isinstance(part, tuple)}
    if hasattr(posterior, "log") and hasattr(posterior, "top"):
        parts["log"] = longer(posterior.log, depth + int(posterior.top[0]))
    if not parts:
        raise TypeError(f"{type(posterior).__name__} has no parts and no undo log; register reserve for it")
    return posterior._replace(**parts)


def longer(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array with at least ``size`` rows: itself, or a copy of at least twice its length, filled with 0."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


@singledispatch
def fix_zero_reward(rewards: Any, row: int) -> None:
    """Let a row of a reward posterior be known to pay nothing."""
    raise ValueError(
        f"{type(rewards).__name__} says what models pay, and does not say that beginning again pays nothing; with "
        "objective='lifetime' give a reward model or known rewards"
    )


@singledispatch
def shared_weights(transitions: Any) -> list[Any]:
    """Return the weights over alternatives that all rows of a posterior share; none, if its rows are independent."""
    return []


def same_arrays(old: Any, new: Any) -> Any:
    """Return ``old`` if ``new`` is made of the same arrays, so that Numba need not look at it again; else ``new``."""
    same = all(x is y if not isinstance(x, tuple) else same_arrays(x, y) is x for x, y in zip(old, new))
    return old if same else new


def n_bytes(value: Any) -> int:
    """Return what the arrays in nested NamedTuples take of memory, each counted once."""
    found: dict[int, np.ndarray] = {}

    def collect(part: Any) -> None:
        if isinstance(part, np.ndarray):
            found[id(part)] = part
        elif isinstance(part, tuple):
            for x in part:
                collect(x)

    collect(value)
    return sum(array.nbytes for array in found.values())
