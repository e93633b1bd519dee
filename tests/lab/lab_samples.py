"""Made-up results that look like a real study's, without running one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from bamdp.ceilings import Ceilings
from bamdp.lab.results import Results, Sample

CEILINGS = {
    "chain": Ceilings(
        value=6.67, gain=0.4096, optimum=408.35, discounted=407.96, random=131.1, discount=0.95
    ),
    "grid5": Ceilings(value=1.44, gain=0.09253, optimum=92.1, discounted=92.1, random=9.1, discount=0.95),
    "maze_door": Ceilings(value=0.5, gain=None, optimum=60.0, discounted=58.0, random=4.0, discount=0.95),
}
HORIZONS = {"chain": 1000, "grid5": 1000, "maze_door": 600}
SKILL = {  # speed of learning, final level as a share of the way from random to optimal, ms/step
    "dss-pi": (60.0, 0.97, 0.4),
    "dss-rtdp": (75.0, 0.965, 0.25),
    "bamcp": (150.0, 0.90, 9.0),
    "thompson": (110.0, 0.95, 0.03),
    "sboss": (300.0, 0.80, 0.13),
}


def sample(totals, environment="chain", algorithm="a", replicates=None, horizon=1000, **other):
    """A sample whose rewards are spread evenly over the steps."""
    totals = np.asarray(totals, float)
    count = len(totals)
    given = {
        "phase": "evaluate",
        "configuration": {},
        "ms_per_step": np.full(count, 1.0),
        "cpu_seconds": np.full(count, horizon / 1000),
        "traces": lambda: np.repeat(totals[:, None] / horizon, horizon, axis=1),
        **other,
    }
    numbers = np.arange(count) if replicates is None else np.asarray(replicates)
    return Sample(environment, algorithm, horizon=horizon, replicates=numbers, totals=totals, **given)


def learner(environment, algorithm, runs=20, horizon=None, shift=0.0, **other):
    """A sample with rewards that grow as an agent learns; replicates of one number have common random numbers."""
    T = horizon or HORIZONS[environment]
    ceiling, (pace, level, ms) = CEILINGS[environment], SKILL[algorithm]
    optimal, dull = ceiling.optimum / HORIZONS[environment], ceiling.random / HORIZONS[environment]
    mean = dull + (level + shift) * (optimal - dull) * (1.0 - np.exp(-np.arange(T) / pace))
    own = np.random.default_rng([sum(map(ord, environment + algorithm)), int(1000 * (1 + shift))])
    rows = []
    for r in range(runs):
        shared_rng = np.random.default_rng([sum(map(ord, environment)), r])
        uniform = shared_rng.random(T)
        skill = 1.0 + 0.06 * shared_rng.normal() + 0.03 * own.normal()
        rows.append((uniform < mean * skill).astype(float))
    rewards = np.array(rows)
    return sample(
        rewards.sum(axis=1),
        environment,
        algorithm,
        horizon=T,
        ms_per_step=ms * own.lognormal(0.0, 0.1, runs),
        cpu_seconds=ms * T / 1000 * np.ones(runs),
        traces=lambda: rewards,
        **other,
    )


def tuning(environment, algorithm, chosen=(8, 50)):
    """A grid of three parameters; one configuration is too slow."""
    grid = product((2, 4, 8), (25, 50, 100), (2.0, 6.0))
    return [
        learner(
            environment,
            algorithm,
            runs=6,
            shift=-0.25 + 0.03 * np.log2(n) + 0.001 * k - 0.00001 * k**2 + 0.02 * beta,
            phase="tune",
            configuration={"n_policies": n, "n_steps": k, "prior": "sparse", "prior.beta": beta},
            chosen=(n, k) == chosen and beta == 6.0,
            excluded="1312 ms/step, over the limit of 1000" if (n, k, beta) == (8, 100, 2.0) else "",
        )
        for n, k, beta in grid
    ]


def study(quick=False):
    """Five algorithms in three environments, one that failed, one that is missing, a tuning grid."""
    samples = [s for env in ("chain", "grid5") for name in ("dss-pi", "dss-rtdp") for s in tuning(env, name)]
    chosen = {"n_policies": 8, "n_steps": 50, "prior": "sparse", "prior.beta": 6.0, "discount": 0.95}
    for env, algorithm in product(HORIZONS, SKILL):
        if (env, algorithm) != ("maze_door", "sboss"):
            settings = chosen if algorithm.startswith("dss") else {"prior": "sparse", "discount": 0.95}
            samples.append(learner(env, algorithm, configuration=settings, chosen=True))
    failed = next(s for s in samples if (s.environment, s.algorithm) == ("grid5", "bamcp"))
    samples[samples.index(failed)] = _without(failed, 3, "MemoryError: the tree <node> is full & cannot grow")
    samples.append(
        sample(
            [],
            "maze_door",
            "sboss",
            horizon=600,
            failures=tuple(f"run {r}: ValueError: no such row" for r in range(20)),
        )
    )
    return Results("Bayes-adaptive planners, made up", tuple(samples), CEILINGS, quick, ("A made-up study.",))


def _without(whole, lost, error):
    kept = slice(lost, None)
    rewards = whole.traces()[kept]
    return replace(
        whole,
        replicates=whole.replicates[kept],
        totals=whole.totals[kept],
        ms_per_step=whole.ms_per_step[kept],
        cpu_seconds=whole.cpu_seconds[kept],
        traces=lambda: rewards,
        failures=tuple(f"run {r}: {error}" for r in range(lost)),
    )
