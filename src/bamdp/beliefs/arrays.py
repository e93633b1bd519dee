"""The arrays of a belief, as passed to kernels, and the operations on them outside kernels.

A posterior over transitions or rewards is a NamedTuple of arrays. Kernels use it through the verbs of
:mod:`bamdp.beliefs.verbs`; Python code extends its undo logs (:func:`reserve`). The decorators
:func:`transition_posterior` and :func:`reward_posterior` declare on each class what the posterior can do, so that
planners need not know concrete classes.
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
    """The arrays of a belief that kernels receive."""

    transitions: Any  # posterior over transitions, with the verbs from ``draw`` to ``commit``
    rewards: Any  # posterior over rewards, with the verbs from ``draw_reward`` on
    space: Space  # terminal states and existing actions


def transition_posterior(**declared: Any) -> Callable[[C], C]:
    """Declare what a posterior over transitions can do.

    Parameters
    ----------
    independent_rows
        A transition from (s, a) changes no other row (default: False).
    changes
        Which rows a transition from (s, a) may change, apart from weights over alternatives that all rows share:
        ``"row"`` (its own), ``"state"`` (those of s) or ``"all"`` (default: ``"row"`` if rows are independent, else
        ``"all"``).
    pools
        A committed transition changes all rows: they share parameters that are estimated from real transitions and
        treated as known during planning. ``changes`` and ``independent_rows`` then refer to pushed transitions
        (default: False).
    counts_transitions
        The posterior counts transitions, so that the verb ``concentration`` is defined (default: False).
    learned
        The fields that change with the data and are saved to files (default: all arrays and parts).

    If a value depends on the instance, define it in the class as a property of that name.
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
        Rewards are known, so there is nothing to learn (default: False).
    by_next_state
        Rewards depend on the next state (default: True).
    independent_rows
        A pushed reward of (s, a) leaves the expected rewards of all other rows unchanged (default: True).
    pools
        A committed reward changes the expected rewards of all rows: they share parameters that are estimated from real
        rewards and treated as known during planning (default: False).
    shares_weights
        The posterior uses the transition posterior's weights over alternatives, so that rewards and transitions must
        be drawn together (default: False).
    n_outcomes
        The number of different rewards that can follow a transition, for planners that enumerate them; None if there
        are infinitely many (default: None). If it is a number, the verb ``outcome`` is defined.
    reward_range
        (lowest, highest) expected reward of any model (default: unbounded).
    learned
        The fields that change with the data and are saved to files (default: all arrays and parts).

    If a value depends on the instance, define it in the class as a property of that name.
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
    """Return the posterior with undo logs that have space for ``depth`` more pushes.

    The default extends the logs of all parts (counts, cells, weights, other posteriors) and the posterior's own array
    ``log``, whose length is ``top``. Register an implementation for any other layout.
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
    """Mark the reward of a row as known to be 0."""
    raise ValueError(
        f"{type(rewards).__name__} says what models pay, and does not say that beginning again pays nothing; with "
        "objective='lifetime' give a reward model or known rewards"
    )


@singledispatch
def shared_weights(transitions: Any) -> list[Any]:
    """Return the weights over alternatives that all rows share; an empty list if rows are independent."""
    return []


def same_arrays(old: Any, new: Any) -> Any:
    """Return ``old`` if ``new`` consists of the same arrays, so that Numba need not inspect it again; else ``new``."""
    same = all(x is y if not isinstance(x, tuple) else same_arrays(x, y) is x for x, y in zip(old, new))
    return old if same else new


def n_bytes(value: Any) -> int:
    """Return the memory used by the arrays in nested NamedTuples, in bytes; each array counts once."""
    found: dict[int, np.ndarray] = {}

    def collect(part: Any) -> None:
        if isinstance(part, np.ndarray):
            found[id(part)] = part
        elif isinstance(part, tuple):
            for x in part:
                collect(x)

    collect(value)
    return sum(array.nbytes for array in found.values())
