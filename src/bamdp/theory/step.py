"""A simulated step in a belief."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamdp.beliefs.base import Belief
from bamdp.planners.dss_python import roll_out


def push_step(belief: Belief, policy: NDArray[np.int32], s: int, rng: np.ndarray) -> tuple[int, float]:
    """(next state, reward) of one step of ``policy``, drawn from the belief and pushed on it."""
    path, gain = np.zeros(1, np.int64), np.zeros(1)
    roll_out(belief.T, belief.R, belief.space, 1, 0.0, policy, s, path, gain, rng)
    return int(path[0]), float(gain[0])
