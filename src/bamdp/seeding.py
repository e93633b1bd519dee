"""Random seeds of runs, used by ``simulate``, ``run``, ``compare``, ``tune``, studies and the studio.

Replicate r of seed s uses two random streams spawned from ``SeedSequence(s)``: key (r, 0) for the environment and key
(r, 1) for the agent. They depend only on s and r. Replicate r is therefore the same run regardless of the number of
replicates, the process and the function or command that starts it, and planners with the same seed are compared on
common random numbers. Tuning runs use the keys (r, 0, 1) and (r, 1, 1), so the chosen configuration is evaluated on
independent streams.

A seed s alone denotes replicate 0, and a pair (s, r) denotes replicate r::

    agent = bamdp.Agent.for_env(env, "thompson", seed=(0, 3))
    bamdp.simulate(agent, env, seed=(0, 3))  # run_many(env, "thompson", seed=0).runs[3]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks

Seed = int | tuple[int, int] | np.random.SeedSequence | np.random.Generator | None
ENVIRONMENT, AGENT = 0, 1  # stream indices of a run
TUNING = 1  # last key of tuning streams


def stream_seed(seed: Seed, stream: int) -> Any:
    """Return the seed of one of a run's streams; SeedSequences and Generators are returned unchanged."""
    if seed is None or isinstance(seed, (np.random.SeedSequence, np.random.Generator)):
        return seed
    pair = seed if isinstance(seed, tuple) and len(seed) == 2 else (seed, 0)
    entropy, replicate = (_checks.integer(n, name, low=0) for n, name in zip(pair, ("seed", "replicate")))
    return np.random.SeedSequence(entropy, spawn_key=(replicate, stream))


def seeds(
    seed: int, replicate: int, *, tuning: bool = False
) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return the seeds of the environment and of the agent in one replicate.

    Examples
    --------
    >>> [stream.spawn_key for stream in seeds(0, 3)], [stream.spawn_key for stream in seeds(0, 3, tuning=True)]
    ([(3, 0), (3, 1)], [(3, 0, 1), (3, 1, 1)])
    """
    last = (TUNING,) * tuning
    environment, agent = (
        np.random.SeedSequence(seed, spawn_key=(replicate, stream, *last)) for stream in (ENVIRONMENT, AGENT)
    )
    return environment, agent
