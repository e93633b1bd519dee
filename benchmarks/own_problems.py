"""Share of the attainable reward that planners earn, at their defaults, on problems that users bring along.

    python benchmarks/own_problems.py --runs 20 --seed 1 --out /tmp/tuning.csv          # tuning
    python benchmarks/own_problems.py --runs 100 --seed 20 --out docs/data/own-problems.csv

Each problem is a Gymnasium environment of which an agent is told the numbers of states and actions, nothing else:
``Agent.for_env(env, planner)``, rewards learned. The share of a run is (total - random) / (optimal - random), where
``optimal`` is the expected total of the optimal policy for these steps and ``random`` that of uniform actions. Runs
are paired: run r of every planner has the seed (seed, r).
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import bamdp
from bamdp.ceilings import expected_total

OWN = ("inventory", "machine", "queue", "pricing")
CLASSICS = ("chain", "double_loop", "grid5", "grid10", "river_swim")
PLANNERS = ("optimism", "adaptive-dss", "thompson", "bayes-greedy", "beb", "dss-pi", "q-learning")
REWARDS = {"": (1.0, 0.0), "+20": (1.0, 20.0), "-20": (1.0, -20.0), "x100": (100.0, 0.0)}
STEPS = 1000
FIELDS = ("problem", "variant", "planner", "prior", "seed", "run", "share", "total", "seconds")


class Tabular(gymnasium.Env[int, int]):
    """A problem as a user would write it: arrays of transitions [S, A, S] and rewards [S, A, S]."""

    def __init__(self, transitions: NDArray[np.float64], rewards: NDArray[np.float64], start: int) -> None:
        self.observation_space = gymnasium.spaces.Discrete(len(transitions))
        self.action_space = gymnasium.spaces.Discrete(transitions.shape[1])
        self.sums, self.rewards, self.start = transitions.cumsum(axis=2), rewards, start

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.start
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        sums = self.sums[self.state, action]
        before, self.state = (
            self.state,
            int(np.searchsorted(sums, self.np_random.random() * sums[-1], "right")),
        )
        return self.state, float(self.rewards[before, action, self.state]), False, False, {}


def problem(name: str, extra: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return the arrays of a problem of this library, or of a module with ``PROBLEMS``."""
    if extra is not None and name in extra.PROBLEMS:
        transitions, rewards, start = extra.PROBLEMS[name]()
        return transitions, rewards, start
    env = bamdp.make_env(name)
    transitions, rewards = env.mdp.dense(), np.asarray(env.rewards, float)
    rewards = rewards.reshape(*rewards.shape, *[1] * (3 - rewards.ndim))
    return transitions, np.broadcast_to(rewards, transitions.shape), int(env.start)


def limits(transitions: Any, rewards: Any, start: int) -> tuple[float, float]:
    """Return the expected totals of random play and of optimal play."""
    mdp = bamdp.FiniteMDP(transitions, (transitions * rewards).sum(axis=2))
    S, A = transitions.shape[:2]
    values = np.zeros(S)
    for _ in range(STEPS):
        values = (mdp.expected_rewards.reshape(S, A) + transitions @ values).mean(axis=1)
    return float(values[start]), expected_total(mdp, start, STEPS)


def one_run(env: Any, planner: str, seed: tuple[int, int], options: dict[str, Any]) -> bamdp.Run:
    """Return a run of an agent that is told nothing but ``options``."""
    agent = bamdp.Agent.for_env(env, planner, seed=seed, **options)
    return bamdp.simulate(agent, env, STEPS, seed=seed)


def measure(name: str, variant: str, planner: str, arguments: Any, extra: Any) -> list[dict[str, Any]]:
    """Return a row for each run of a planner on a problem."""
    options = {"prior": arguments.prior} if arguments.prior else {}
    if arguments.rewards:
        options["rewards"] = arguments.rewards
    if arguments.discount:
        options["discount"] = float(arguments.discount)
    rows = []
    if name in OWN or (extra is not None and name in extra.PROBLEMS):
        transitions, rewards, start = problem(name, extra)
        scale, shift = REWARDS[variant]
        rewards = scale * rewards + shift
        random, optimal = limits(transitions, rewards, start)
        env: Any = Tabular(transitions, rewards, start)
    else:
        env = bamdp.make_env(name)
        known = bamdp.ceilings.ceilings(env, 0.95, STEPS)
        random, optimal = known.random, known.optimum
        if variant == "learned":
            options["rewards"] = "hierarchical"
    for r in range(arguments.runs):
        begin = time.process_time()
        run = one_run(env, planner, (arguments.seed, r), options)
        share = (run.total_reward - random) / (optimal - random)
        seconds = time.process_time() - begin
        values = (
            name,
            variant,
            planner,
            arguments.prior or "",
            arguments.seed,
            r,
            share,
            run.total_reward,
            seconds,
        )
        rows.append(dict(zip(FIELDS, values)))
    return rows


def main() -> None:
    """Measure, and print a line for each cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--problems", nargs="+", default=[*OWN])
    parser.add_argument("--variants", nargs="+", default=[""])
    parser.add_argument("--planners", nargs="+", default=PLANNERS)
    parser.add_argument("--prior")
    parser.add_argument("--rewards")
    parser.add_argument("--discount")
    parser.add_argument("--module", type=Path, help="a Python file with PROBLEMS of one's own")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    extra = None
    if arguments.module:
        spec = importlib.util.spec_from_file_location("extra", arguments.module)
        extra = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(extra)
    for name in arguments.problems:
        for variant in arguments.variants:
            for planner in arguments.planners:
                rows = measure(name, variant, planner, arguments, extra)
                shares = np.array([row["share"] for row in rows])
                error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
                ms = 1000 * np.mean([row["seconds"] for row in rows[1:] or rows])
                print(
                    f"{name:12} {variant:5} {planner:40} {shares.mean():7.3f} ± {error:.3f}   {ms:.0f} ms a run",
                    flush=True,
                )
                if arguments.out:
                    new = not arguments.out.exists()
                    with arguments.out.open("a", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS)
                        if new:
                            writer.writeheader()
                        writer.writerows(rows)


if __name__ == "__main__":
    main()
