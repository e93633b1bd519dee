"""Compare the speed of BAMCP and BFS3 with Guez's C++ programs.

Run it as ``python benchmarks/bench_trees.py [--quick] [--json PATH]``.
Every figure is processor time of one thread, planning and learning, with the parameters, priors and discount (0.95)
of the C++ figures. Those are of that program built with ``-O3 -march=native -DNDEBUG`` (with its own flags it is up to
2.6 times slower) on the same kind of machine (two shared cores). Both sides are of whole runs, since the first steps of
a run, when little is known, are not typical; ``--quick`` has the first hundred steps only. BFS3's program runs sims/C
trajectories for each successor of the root, so "100 sims, C=10" is ``n_trajectories=10``, and it does not count the
root's action in the depth.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

from common import make_agent
from rich.console import Console
from rich.table import Table

import bamdp
from bamdp import BAMCP, BAUCT, BFS3, Planner

QUICK_STEPS = 100
# environment, depth, simulations per step, simulations per second of the C++ program (lazy sparse prior)
SIMULATIONS = (
    ("chain", 89, 100, 214_000),
    ("double_loop", 15, 100, 480_000),
    ("grid5", 50, 10_000, 74_000),
    ("grid10", 50, 10_000, 41_000),
    ("maze", 50, 1_000, 26_600),
    ("double_loop", 30, 2_000, 270_000),
    ("grid5", 30, 2_000, 111_000),
    ("grid10", 30, 2_000, 67_000),
    ("maze", 30, 2_000, 37_000),
)
# environment, C, trajectories per successor, depth, ms/step of the C++ program (flat prior)
TRAJECTORIES = (
    ("grid5", 10, 10, 51, 45.8),
    ("grid10", 5, 10, 51, 25.5),
)


def ms_per_step(env_name: str, planner: Planner, prior: str, quick: bool) -> float:
    """Return the processor milliseconds per step of a whole run, or of the best of three beginnings if quick."""
    env = bamdp.make_env(env_name)
    steps = QUICK_STEPS if quick else env.horizon
    best = float("inf")
    for seed in range(3 if quick else 1):
        agent = make_agent(env, planner, prior, seed)
        state = env.reset(seed=seed)
        begin = 0.0
        for t in range(steps + 1):
            if t == 1:  # the first step may have compiled
                begin = time.process_time()
            action = agent.act(state)
            next_state, reward, _ = env.step(action)
            agent.observe(state, action, reward, next_state)
            state = next_state
        best = min(best, 1e3 * (time.process_time() - begin) / steps)
    return best


def simulations(quick: bool) -> list[dict[str, Any]]:
    """Measure simulations per second of BAMCP and its relatives."""
    rows = []
    for env, depth, n, reference in SIMULATIONS:
        planner = BAMCP(n_simulations=n, depth=depth)
        rate = 1e3 * n / ms_per_step(env, planner, "sparse", quick)
        rows.append(
            {
                "planner": f"BAMCP, depth {depth}, {n}",
                "environment": env,
                "rate": rate,
                "cpp": reference,
                "ratio": rate / reference,
            }
        )
    if not quick:
        others = {
            "BAMCP, rows drawn": BAMCP(depth=50, root_sampling="rows"),
            "BAUCT": BAUCT(depth=50),
        }
        for name, other in others.items():
            rate = 1e3 * other.n_simulations / ms_per_step("grid5", other, "sparse", quick)
            rows.append({"planner": name, "environment": "grid5", "rate": rate, "cpp": None, "ratio": None})
    return rows


def trajectories(quick: bool) -> list[dict[str, Any]]:
    """Measure milliseconds per step of BFS3."""
    rows = []
    for env, C, n, depth, reference in TRAJECTORIES:
        planner = BFS3(n_successors=C, n_trajectories=n, depth=depth)
        ms = ms_per_step(env, planner, "flat", quick)
        rows.append({"environment": env, "ms": ms, "cpp": reference, "ratio": reference / ms})
    return rows


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table(
        "planner", "environment", "simulations/s", "C++", "times faster", title="UCT over histories"
    )
    for row in results["simulations"]:
        against = ("", "") if row["cpp"] is None else (f"{row['cpp']:,}", f"{row['ratio']:.1f}")
        table.add_row(row["planner"], row["environment"], f"{row['rate']:,.0f}", *against)
    Console().print(table)
    table = Table("environment", "ms/step", "C++", "times faster", title="BFS3")
    for row in results["trajectories"]:
        table.add_row(row["environment"], f"{row['ms']:.2f}", f"{row['cpp']:.2f}", f"{row['ratio']:.1f}")
    Console().print(table)
    Console().print(f"largest memory of this process: {results['peak_mb']:.0f} MB")


def main() -> None:
    """Measure, print the tables and, if a file is named, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first steps only, which are not typical")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "simulations": simulations(options.quick),
        "trajectories": trajectories(options.quick),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    show(results)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
