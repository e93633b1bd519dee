"""Bad episodes in bsuite's deep sea, counted from the rewards of exported runs.

As in bsuite, an episode is *bad* if the agent steps left anywhere on the diagonal, the only way to the treasure. The
rewards reveal which actions were taken on the diagonal. In a stochastic sea, a step to the right may fail without
affecting the reward. Such failures are reconstructed by redrawing the environment's random numbers from its stream.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from exports import Export, rewards
from numpy.typing import NDArray
from scipy.special import ndtri

from bamdp.lab.store import EVALUATE


def bad_episodes(
    rewards: NDArray[np.float64], size: int, seed: np.random.SeedSequence | None = None
) -> NDArray[np.bool_]:
    """Return which complete episodes of a run with rewards [T] were bad; ``seed`` is required for a stochastic sea."""
    count = len(rewards) // size
    by_row = rewards[: count * size].reshape(count, size)
    failed, noise = np.zeros((count, size), bool), np.zeros(count)
    if seed is not None:
        # every step uses two uniform numbers: one for the transition, one for the reward noise
        uniforms = np.random.default_rng(seed).random((count, size, 2))
        failed = uniforms[:, :, 0] < 1.0 / size
        noise = ndtri(np.maximum(uniforms[:, -1, 1], 2.0**-54))
    # on the diagonal, stepping right costs a small amount and, in the last row, reaches the treasure
    went_right = by_row < 0.0
    went_right[:, -1] = by_row[:, -1] - noise > 0.5
    on_diagonal = np.ones((count, size), bool)
    on_diagonal[:, 1:] = np.logical_and.accumulate((went_right & ~failed)[:, :-1], axis=1)
    return np.asarray((on_diagonal & ~went_right).any(axis=1), bool)


@lru_cache(maxsize=128)
def sea_curves(results: Export, environment: str, algorithm: str) -> NDArray[np.int64] | None:
    """Return the cumulative number of bad episodes [R, E], or None if there are no runs."""
    runs = results.select(EVALUATE, environment, algorithm)
    runs = runs[runs.failure == ""]
    if not len(runs):
        return None
    size = int(environment.split("-")[1]) if "-" in environment else 10
    bad = []
    for replicate, found in zip(runs.replicate, rewards(runs)):
        seed = results.stream(environment, int(replicate)) if environment.startswith("stochastic") else None
        bad.append(bad_episodes(found, size, seed))
    return np.cumsum(bad, axis=1, dtype=np.int64)


def sea_totals(results: Export, environment: str, algorithm: str) -> NDArray[np.int64] | None:
    """Return the number of bad episodes in each run, or None if there are no runs."""
    curves = sea_curves(results, environment, algorithm)
    return None if curves is None else curves[:, -1]
