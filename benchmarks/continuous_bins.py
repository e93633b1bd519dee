"""What bins do to continuous systems: ``python benchmarks/continuous_bins.py [--steps 10000] [--csv file]``.

Pendulum and MountainCarContinuous become finite worlds by ``Discretize`` and ``DiscretizeActions``, and an agent with
the defaults for finite worlds plays them. Printed for each: the mean return of the first and of the last ten
episodes, and after how many real steps the task was first solved (an episode above -200; the flag reached).
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import gymnasium
import numpy as np
import pandas

import bamdp
from bamdp.gym import Discretize, DiscretizeActions

TASKS = {
    "Pendulum-v1": (-200.0, [(5, 5, 9), (9, 9, 15)]),
    "MountainCarContinuous-v0": (0.0, [(10, 10), (20, 20)]),
}
PLANNERS = ("thompson", "adaptive-dss")
LEVELS = 3
LAST = 10  # episodes


def play(name: str, bins: tuple[int, ...], planner: str, steps: int, seed: int) -> dict[str, object]:
    """Return one run as a row."""
    solved = TASKS[name][0]
    env = Discretize(DiscretizeActions(gymnasium.make(name), LEVELS), bins)
    run = bamdp.simulate(bamdp.Agent.for_env(env, planner, seed=seed), env, steps, seed=seed)
    above = np.flatnonzero(run.episode_returns > solved)
    return {
        "task": name,
        "bins": "x".join(map(str, bins)),
        "states": int(np.prod(bins)),
        "planner": planner,
        "seed": seed,
        "steps": steps,
        "first ten": float(run.episode_returns[:LAST].mean()),
        "last ten": float(run.episode_returns[-LAST:].mean()),
        "solved after": int(run.ends[above[0]]) + 1 if len(above) else None,
        "ms per step": run.ms_per_step,
    }


def main() -> None:
    """Play all, print each run as it comes, and write them to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows = []
    for planner, name in product(PLANNERS, TASKS):
        for bins, seed in product(TASKS[name][1], range(1000, 1000 + arguments.seeds)):
            rows.append(play(name, bins, planner, arguments.steps, seed))
            print(*rows[-1].values(), flush=True)
            if arguments.csv is not None:
                pandas.DataFrame(rows).to_csv(arguments.csv, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
