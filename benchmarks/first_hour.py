"""Measure how long the first decision takes: ``python benchmarks/first_hour.py [--planners ...] [--json out.json]``.

Each figure is the time of one new Python process from its start to its first decision and the update after it, in
chain, import included. *Cold* starts from an empty cache; *warm* repeats the same process. *Second planner* adds
``--second`` to a cache that the row's planner has filled with the same prior, and *other prior* runs the row's planner
with ``--other`` in the cache that ``--prior`` has filled: both are seconds in addition to the warm time. Wall-clock
seconds; run it on an idle machine, on which two cores suffice.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import bamdp

FIRST_DECISION = """
import sys, bamdp
planner, prior, rewards = sys.argv[1:]
env = bamdp.make_env("chain")
agent = bamdp.Agent.for_env(env, planner, prior=prior or None, rewards=rewards or None, seed=0)
bamdp.simulate(agent, env, 2, seed=0)
"""


def seconds(cache: str, planner: str, prior: str, rewards: str) -> float:
    """Return the wall-clock seconds of a new process that decides and learns twice."""
    env = {**os.environ, "NUMBA_CACHE_DIR": cache}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's second start reads compiled modules
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_DECISION, planner, prior, rewards], env=env, check=True)
    return time.perf_counter() - begin


def measure(planner: str, prior: str, rewards: str, second: str, other: str) -> dict[str, float]:
    """Return the row of one planner: cold, warm, and what a second planner and another prior add."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (seconds(cache, planner, prior, rewards) for _ in range(2))
        second_planner = seconds(cache, second, prior, rewards) - warm
        other_prior = seconds(cache, planner, other, rewards) - warm
    return {"cold": cold, "warm": warm, "second planner": second_planner, "other prior": other_prior}


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--planners", nargs="*", default=[info.name for info in bamdp.list_planners()])
    parser.add_argument("--prior", default="sparse", help="the prior of all rows")
    parser.add_argument("--rewards", default="", help="the reward model; by default the environment's")
    parser.add_argument("--second", default="thompson", help="the second planner")
    parser.add_argument("--other", default="flat", help="the other prior")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = Table(
        "planner", "cold", "warm", "second planner", "other prior", title="seconds to the first decision"
    )
    rows = {}
    for planner in options.planners:
        second = options.second if planner != options.second else "beb"
        row = measure(planner, options.prior, options.rewards, second, options.other)
        rows[planner] = row
        table.add_row(planner, *(f"{value:.1f}" for value in row.values()))
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
