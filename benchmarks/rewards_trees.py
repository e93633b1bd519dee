"""Compare total rewards of BAMCP and BFS3 with those of Guez's C++ programs, for the same priors and parameters.

Run it as ``python benchmarks/rewards_trees.py [runs]``. "flat" is Dirichlet(1/S), "sparse" SparseDirichlet(0.2, 2);
γ = 0.95, rewards known. The reference is mean ± standard error as measured with the C++ programs; "z" is the difference
in standard errors of both. BFS3's "sims" are divided by C there (see bench_trees.py). BAMCP with the sparse prior has a
bimodal distribution of rewards in both programs, since it can stay in the small loop or in a part of the grid; compare
the medians, too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from common import compare_means, run_planner

from bamdp import BAMCP, BFS3, Planner

SHOWN = ("n_simulations", "n_successors", "n_trajectories", "depth")


@dataclass(frozen=True)
class Row:
    """One comparison with a reference."""

    env: str
    prior: str
    planner: Planner
    reference: float
    error: float
    share: float = 1.0  # of the requested runs: some are expensive


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
    """Run a planner and print one row of the table."""
    batch = run_planner(row.env, row.planner, row.prior, max(2, round(runs * row.share)))
    ms = np.mean([run.ms_per_step for run in batch.runs])
    size = ", ".join(f"{name}={value}" for name, value in row.planner.parameters().items() if name in SHOWN)
    print(
        f"{row.env:11} {row.prior:6} {type(row.planner).__name__:5} {size:50} {len(batch.runs):3} runs "
        f"{batch.mean:6.1f} ± {batch.standard_error:4.1f} (median {np.median(batch.totals):5.1f}), {ms:6.2f} ms/step"
        f"   C++ {row.reference:6.1f} ± {row.error:4.1f}   {compare_means(batch, row.reference, row.error)}",
        flush=True,
    )


if __name__ == "__main__":
    for each in ROWS:
        compare(each, int(sys.argv[1]) if len(sys.argv) > 1 else 50)
