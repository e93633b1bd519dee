"""Measure the speed of planning and solving: ``python benchmarks/bench.py [--quick] [--json out.json]``.

Every figure is processor time of one thread. Machines differ and are shared, so each run also times a fixed
calibration loop (see ``calibration``): compare ``ms × CALIBRATION / calibration`` between runs, and trust
ratios within one run most. The figures of other programs were measured on one kind of machine (two
shared cores); see ``PROTOTYPE``, ``AUTHORS_CPP`` and ``PAPER_TABLE_2``.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import make_agent
from rich.console import Console
from rich.table import Table

import bamdp
from bamdp._kernels.jit import kernel
from bamdp._kernels.random import new_rng, uniform

# Seconds of `calibration()` in the run from which the README's figures come.
CALIBRATION = 0.084

# The paper's Sparser-PI parameters (N, M, K, H), Appendix C.
PAPER = {
    "chain": (4, 4, 5, 2),
    "double_loop": (4, 4, 18, 2),
    "grid5": (2, 2, 25, 1),
    "grid10": (2, 2, 100, 2),
    "maze": (4, 2, 100, 1),
}
# ms/step of other programs: a prototype of this library; the authors' C++ program changed to run the same algorithm
# (exact policy iteration) on the same kind of machine; Table 2 of the paper divided by the steps of an episode.
# Of the authors' program neither the compiler flags nor the length of the timed runs was recorded, and its prior is
# flat but in grid10 (grid5 with the sparse one: 9.7), while ours is sparse: ratios to it are rough, see
# docs/performance.md.
PROTOTYPE = {"chain": 0.145, "double_loop": 0.19, "grid5": 0.050, "grid10": 1.2, "maze": 1.35}
AUTHORS_CPP = {"chain": 21.5, "double_loop": 35.0, "grid5": 11.1, "grid10": 252.0}
PAPER_TABLE_2 = {"chain": 2.72, "double_loop": 1.70, "grid5": 5.73, "grid10": 71.1, "maze": 76.6}


@kernel
def _calibration_loop(rng, values, rounds):
    total = 0.0
    for _ in range(rounds):
        for i in range(values.shape[0]):
            total += uniform(rng) * values[(i * 31) % values.shape[0]]
            values[i] = 0.5 * values[i] + 0.5 * total / (1.0 + abs(total))
    return total


def calibration() -> float:
    """Return the seconds of a fixed loop of random draws, scattered reads and arithmetic: the best of five."""
    rng, values = new_rng(0), np.ones(1000)
    _calibration_loop(rng, values, 1)
    return min(cpu(lambda: _calibration_loop(rng, values, 40_000)) for _ in range(5))


def cpu(work: Callable[[], Any]) -> float:
    """Return the processor seconds of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def dss_agent(env: bamdp.Environment, size: tuple[int, int, int, int], seed: int) -> bamdp.Agent:
    """Return the agent of the speed table: sparse prior α=0.2 β=2, γ=0.95, tolerance 1e-4."""
    N, M, K, H = size
    planner = bamdp.DSS(n_policies=N, n_samples=M, n_steps=K, n_stages=H, generator=bamdp.PI(tol=1e-4))
    return make_agent(env, planner, "sparse", seed)


def timed_run(
    env: bamdp.Environment, agent: bamdp.Agent, steps: int, seed: int
) -> tuple[float, float, float]:
    """Return the mean milliseconds per step of planning and of learning, and the total reward of a run."""
    planned = learned = total = 0.0
    state = env.reset(seed=seed)
    agent.plan(state)  # compile, or load from the cache
    for _ in range(steps):
        begin = time.thread_time()
        action = agent.act(state)
        planned += time.thread_time() - begin
        next_state, reward, terminated = env.step(action)
        begin = time.thread_time()
        agent.observe(state, action, reward, next_state, terminated)
        learned += time.thread_time() - begin
        total += reward
        state = next_state
    return 1e3 * planned / steps, 1e3 * learned / steps, total


def planning(quick: bool) -> list[dict[str, Any]]:
    """Measure the mean planning time per step, the best of three runs, in each of the paper's environments."""
    rows = []
    for name, size in PAPER.items():
        env = bamdp.make_env(name)
        steps = min(env.horizon, 300 if quick else 2000)
        runs = [timed_run(env, dss_agent(env, size, seed), steps, seed) for seed in range(3)]
        times, learning, totals = zip(*runs)
        ms = min(times)
        rows.append(
            {
                "environment": name,
                "size": size,
                "steps": steps,
                "ms_per_step": ms,
                "mean_ms_per_step": float(np.mean(times)),
                "learning_ms_per_step": min(learning),
                "reward": float(np.mean(totals)),
                "prototype": PROTOTYPE[name] / ms,
                "authors_cpp": AUTHORS_CPP[name] / ms if name in AUTHORS_CPP else None,
                "paper": PAPER_TABLE_2[name] / ms,
            }
        )
    return rows


def growth(quick: bool) -> list[dict[str, Any]]:
    """Measure the time per step against the number of states, with fixed parameters."""
    rows = []
    for side in (5, 10, 20) if quick else (5, 10, 15, 20, 30, 40, 50):
        env = bamdp.make_env("grid", size=side)
        agent = dss_agent(env, (2, 2, 50, 1), 0)
        run = bamdp.simulate(agent, env, 30 if quick else 200, seed=0)
        rows.append(
            {
                "side": side,
                "states": env.n_states,
                "ms_per_step": run.ms_per_step,
                "us_per_state": 1e3 * run.ms_per_step / env.n_states,
            }
        )
    return rows


def solving() -> list[dict[str, Any]]:
    """Measure the public solvers on known models."""
    rows = []
    for name, discount in (("grid10", 0.95), ("maze", 0.95), ("maze", 0.99)):
        mdp = bamdp.make_env(name).mdp
        for solver in (bamdp.policy_iteration, bamdp.value_iteration):
            solver(mdp, discount)
            ms = 1e3 * min(cpu(lambda: solver(mdp, discount)) for _ in range(5))  # noqa: B023
            rows.append({"model": name, "discount": discount, "solver": solver.__name__, "ms": ms})
    return rows


START = """
import time, bamdp
imported = time.process_time()
env = bamdp.make_env("grid5")
agent = bamdp.Agent(bamdp.DSS(), prior=bamdp.SparseDirichlet(), rewards=env.rewards, n_states=25, n_actions=4,
                    discount=0.95, seed=0)
agent.act(0)
print(imported, time.process_time())
"""


def starting() -> dict[str, float]:
    """Measure processor seconds of a new process: import, and first plan with an empty and a filled cache."""
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for _ in range(2):
            out = subprocess.run(
                [sys.executable, "-c", START],
                env={"NUMBA_CACHE_DIR": folder, "PATH": ""},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            times.append([float(x) for x in out.split()])
    return {"import": times[1][0], "cold_first_plan": times[0][1], "warm_first_plan": times[1][1]}


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console()
    console.print(
        f"calibration {result['calibration']:.4f} s, {result['calibration'] / CALIBRATION:.2f} times the published "
        f"{CALIBRATION} s"
    )
    table = Table(title="DSS-PI, planning per step (times faster than ...)")
    for column in (
        "environment",
        "N, M, K, H",
        "ms/step",
        "learning",
        "prototype",
        "authors' C++",
        "paper's Table 2",
    ):
        table.add_column(column, justify="right")
    for row in result["planning"]:
        learning = f"{row['learning_ms_per_step']:.3f}"
        times = [f"{row[k]:.1f}×" if row[k] else "–" for k in ("prototype", "authors_cpp", "paper")]
        table.add_row(row["environment"], str(row["size"]), f"{row['ms_per_step']:.3f}", learning, *times)
    console.print(table)
    table = Table(title="Time per step against the number of states (2, 2, 50, 1)")
    for column in ("grid", "states", "ms/step", "µs/step/state"):
        table.add_column(column, justify="right")
    for row in result["growth"]:
        side = f"{row['side']}×{row['side']}"
        table.add_row(side, str(row["states"]), f"{row['ms_per_step']:.3f}", f"{row['us_per_state']:.2f}")
    console.print(table)
    table = Table(title="Solving known models")
    for column in ("model", "discount", "solver", "ms"):
        table.add_column(column, justify="right")
    for row in result["solving"]:
        table.add_row(row["model"], str(row["discount"]), row["solver"], f"{row['ms']:.3f}")
    console.print(table)
    start = result["starting"]
    console.print(
        f"a new process: import {start['import']:.2f} s, to the first plan {start['warm_first_plan']:.2f} s "
        f"(with an empty compile cache {start['cold_first_plan']:.1f} s)"
    )


def main() -> None:
    """Measure, print the tables and, if a file is named, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    result = {
        "version": bamdp.__version__,
        "machine": f"{platform.machine()} {platform.python_version()}",
        "calibration": calibration(),
        "planning": planning(options.quick),
        "growth": growth(options.quick),
        "solving": solving(),
        "starting": starting(),
    }
    show(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
