"""Simulated steps in a belief."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.beliefs.belief import Belief
from bamdp.planners.views.dss import roll_out


def check_start(belief: Belief, state: int) -> int:
    """A state in which simulated episodes can begin, of a belief in which they can be followed to their end."""
    if belief.episodes.again:
        raise ValueError("episodes are followed to their end only: make the belief with objective='episode'")
    if belief.space.terminal[_checks.index(state, "the first state", belief.n_states)]:
        raise ValueError(f"state {state} is terminal: nothing follows it; begin in another state")
    return int(state)


def push_step(belief: Belief, policy: NDArray[np.int32], s: int, rng: np.ndarray) -> tuple[int, float]:
    """(next state, reward) of one step of ``policy``, drawn from the belief and pushed on it."""
    path, gain = np.zeros(1, np.int64), np.zeros(1)
    roll_out(belief.arrays, 1, 0.0, policy, s, path, gain, rng)
    return int(path[0]), float(gain[0])
