"""Which random numbers a run uses: one rule for ``simulate``, ``run``, ``compare``, ``tune``, studies and the studio.

Replicate r of seed s has two random streams, spawned from ``SeedSequence(s)``: the environment's with the key (r, 0)
and the agent's with the key (r, 1). They depend on nothing else. So replicate r is the same run however many others
there are, whichever process runs it and whichever function or command asks for it, and two planners with one seed
are compared on common random numbers. Tuning runs have the keys (r, 0, 1) and (r, 1, 1): a chosen
configuration is evaluated on streams that it was not chosen on.

A seed s stands for its replicate 0, and the pair (s, r) for replicate r::

    agent = bamdp.Agent.for_env(env, "thompson", seed=(0, 3))
    bamdp.simulate(agent, env, seed=(0, 3))  # run_many(env, "thompson", seed=0).runs[3]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks

Seed = int | tuple[int, int] | np.random.SeedSequence | np.random.Generator | None
ENVIRONMENT, AGENT = 0, 1  # the streams of a run
TUNING = 1  # the last key of tuning's streams


def stream_seed(seed: Seed, stream: int) -> Any:
    """Return the seed of one of a run's streams; SeedSequences and Generators are taken as they are."""
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
