"""The arrays of posteriors, seen from outside of kernels: to make room, to copy, to take a reward away."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np


@singledispatch
def with_room(state: Any, depth: int) -> Any:
    """The same posterior with room for ``depth`` more pushes than it now holds."""
    raise TypeError(f"{type(state).__name__} is no belief state")


@singledispatch
def pay_nothing(state: Any, row: int) -> None:
    """Let a row of a reward posterior be known to pay nothing."""
    raise ValueError(
        f"{type(state).__name__} says what models pay, and does not say that beginning again pays nothing; with "
        "objective='lifetime' give a reward model or known rewards"
    )


def kept(old: Any, new: Any) -> Any:
    """``old`` if ``new`` is made of the same arrays: Numba need not look at it again."""
    same = all(x is y if not isinstance(x, tuple) else kept(x, y) is x for x, y in zip(old, new))
    return old if same else new


def copy_state(state: Any, seen: dict[int, Any] | None = None) -> Any:
    """A deep copy of nested NamedTuples of arrays; an array that stands twice is copied once."""
    seen = {} if seen is None else seen
    if isinstance(state, np.ndarray):
        if id(state) not in seen:
            seen[id(state)] = state.copy()
        return seen[id(state)]
    if isinstance(state, tuple):
        parts = [copy_state(x, seen) for x in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state
