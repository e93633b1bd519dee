"""Measure what a step costs as the world grows: ``python benchmarks/bench_large.py [--sizes 10,32] [--planners a,b]``.

Grids of L by L cells with the prior ``local``, which knows the neighbours of every cell and nothing of what actions do;
known rewards, γ = 0.95. Each entry is the processor time of ``act`` and ``observe`` per step, the mean of the steps
after the first that fit into the time; the last column is the largest memory of the process in the largest world.
Every planner and size is measured in a process of its own. A planner whose step took longer than ``--most`` seconds is
not measured in larger worlds.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import bamdp
from bamdp.planners import PLANNERS
from bamdp.registry import make_planner, make_prior

SIZES = (10, 32, 100, 316, 1000)
PARAMETERS = {
    **dict.fromkeys(("dss-pi", "dss-rtdp", "dss-vi"), "n_policies=4,n_samples=2,n_steps=50"),
    "fhts": "horizon=2",
    "sparse-sampling": "width=2,depth=3",
    "bayesian-sparse-sampling": "n_trajectories=32,depth=10",
    "bamcp": "n_simulations=1000",
    "bauct": "n_simulations=1000",
}
SECONDS = 2.0  # for the steps of one entry
DISCOUNT = 0.95


def measure(name: str, size: int) -> dict[str, float]:
    """Return the milliseconds of a step, and the process's largest memory in megabytes before and after."""
    env = bamdp.make_env(f"grid:size={size}")
    before = largest_memory()
    agent = bamdp.Agent(
        make_planner(f"{name}:{PARAMETERS[name]}" if name in PARAMETERS else name),
        prior=make_prior("local", env),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=DISCOUNT,
        seed=0,
    )
    state, spent = env.reset(seed=0), []
    while len(spent) < 3 or (len(spent) < 200 and sum(spent[1:]) < SECONDS):
        begin = time.process_time()
        action = agent.act(state)
        next_state, reward, terminated = env.step(action)
        agent.observe(state, action, reward, next_state, terminated)
        spent.append(time.process_time() - begin)
        state = next_state
    rest = spent[1:]
    return {"ms": 1e3 * sum(rest) / len(rest), "before": before, "after": largest_memory()}


def largest_memory() -> float:
    """Return the largest memory that this process had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measured(name: str, size: int, most: float) -> dict[str, float] | None:
    """Measure in a process of its own; nothing if it failed or took too long."""
    words = [sys.executable, __file__, "--one", name, str(size)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=600 + 20 * most, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="cells to a side")
    parser.add_argument("--planners", default=",".join(PLANNERS), help="names of planners")
    parser.add_argument(
        "--most", type=float, default=5.0, help="seconds of a step, beyond which none larger is tried"
    )
    parser.add_argument("--one", nargs=2, metavar=("PLANNER", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, side = arguments.one
        print(json.dumps(measure(name, int(side))))
        return
    sizes = [int(size) for size in arguments.sizes.split(",")]
    print("| planner | " + " | ".join(f"{size * size} states" for size in sizes) + " | megabytes |")
    print("|---|" + "---|" * (len(sizes) + 1), flush=True)
    for name in arguments.planners.split(","):
        cells, seconds, memory = [], 0.0, math.nan
        for size in sizes:
            found = measured(name, size, arguments.most) if seconds <= arguments.most else None
            seconds = math.inf if found is None else found["ms"] / 1e3
            memory = memory if found is None else found["after"]
            cells.append("–" if found is None else f"{found['ms']:.3g}")
        print(f"| {name} | " + " | ".join(cells) + f" | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
