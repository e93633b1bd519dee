"""Total rewards of BAMCP and BFS3 against what Guez's C++ programs earn with the same priors and parameters.

Run it as ``python benchmarks/rewards_trees.py [runs]``. "flat" is Dirichlet(1/S), "sparse" SparseDirichlet(0.2, 2);
γ = 0.95, rewards known. The reference is mean ± standard error as measured on the C++ programs; "z" is the difference
in standard errors of both. BFS3's "sims" are divided by C there (see bench_trees.py). BAMCP on the sparse prior is
bimodal, in both programs: it can lock onto the small loop, or onto a part of the grid, so look at the median, too.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

import bamdp
from bamdp.planners.bamcp import BAMCP
from bamdp.planners.base import Planner
from bamdp.planners.bfs3 import BFS3
from bamdp.runs import run_many
from bamdp.settings import Setting


@dataclass(frozen=True)
class Row:
    """One comparison."""

    env: str
    prior: str
    planner: Planner
    reference: float
    error: float
    share: float = 1.0  # of the runs asked for: some are dear


ROWS = (
    Row("double_loop", "sparse", BAMCP(n_simulations=100, depth=15), 287.6, 11.8),
    Row("double_loop", "flat", BAMCP(n_simulations=100, depth=15), 345.4, 1.7),
    Row("double_loop", "flat", BAMCP(n_simulations=1000, depth=50), 384.6, 3.8, 0.4),
    Row("chain", "sparse", BAMCP(n_simulations=100), 267.9, 7.2),
    Row("double_loop", "flat", BFS3(n_successors=10, n_trajectories=10, depth=16), 368.8, 1.8),
    Row("grid5", "flat", BFS3(n_successors=10, n_trajectories=10, depth=51), 48.5, 3.5, 0.2),
    Row("grid10", "flat", BFS3(n_successors=5, n_trajectories=10, depth=51), 8.5, 0.5, 0.2),
    Row("grid5", "sparse", BAMCP(n_simulations=10_000, depth=50), 64.1, 6.9, 0.2),
    Row("grid10", "sparse", BAMCP(n_simulations=10_000, depth=50), 36.0, 7.0, 0.2),
)


def compare(row: Row, runs: int) -> None:
    """Live through the runs and print a line."""
    world = bamdp.make_env(row.env)
    flat, sparse = bamdp.Dirichlet(alpha=1.0 / world.n_states), bamdp.SparseDirichlet(alpha=0.2, beta=2.0)
    setting = Setting(
        env=row.env,
        planner=row.planner,
        prior=flat if row.prior == "flat" else sparse,
        rewards=bamdp.KnownRewards(world.rewards),
        discount=0.95,
        steps=world.horizon,
    )
    batch = run_many(setting, max(2, round(runs * row.share)))
    z = (batch.mean - row.reference) / math.hypot(batch.standard_error, row.error)
    ms = np.mean([run.ms_per_step for run in batch.runs])
    size = ", ".join(f"{name}={value}" for name, value in row.planner.parameters().items() if name in SHOWN)
    print(
        f"{row.env:11} {row.prior:6} {type(row.planner).__name__:5} {size:50} {len(batch.runs):3} runs "
        f"{batch.mean:6.1f} ± {batch.standard_error:4.1f} (median {np.median(batch.totals):5.1f}), {ms:6.2f} ms/step"
        f"   C++ {row.reference:6.1f} ± {row.error:4.1f}   z {z:+.1f} {'ok' if z > -3.0 else 'WORSE'}",
        flush=True,
    )


SHOWN = ("n_simulations", "n_successors", "n_trajectories", "depth")


if __name__ == "__main__":
    for each in ROWS:
        compare(each, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
