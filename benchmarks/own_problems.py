"""Share of the attainable reward that planners earn, at their defaults, on problems that users bring along.

    python benchmarks/own_problems.py --runs 20 --seed 1 --out /tmp/tuning.csv          # tuning
    python benchmarks/own_problems.py --runs 100 --seed 57113 --out docs/data/own-problems.csv
    python benchmarks/own_problems.py --compare docs/data/own-problems.csv              # paired differences

Each problem is a Gymnasium environment of which an agent is told the numbers of states and actions, nothing else:
``Agent.for_env(env, planner)``, rewards learned. The share of a run is (total - random) / (optimal - random), where
``optimal`` is the expected total of the optimal policy for these steps and ``random`` that of uniform actions. Runs
are paired: run r of every planner has the seed (seed, r). The variants +20, -20 and x100 change the unit of rewards;
in ``rule`` the agent has the environment's disturbance prior and learns the rewards, in ``rule+rewards`` it knows them.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import bamdp
from bamdp.envs.ceilings import ceilings, expected_total

OWN = ("inventory", "machine", "queue", "pricing")
CLASSICS = ("chain", "double_loop", "grid5", "grid10", "maze", "river_swim")
PLANNERS = ("optimism", "adaptive-dss", "thompson", "bayes-greedy", "beb", "dss-pi", "q-learning")
REWARDS = {"": (1.0, 0.0), "+20": (1.0, 20.0), "-20": (1.0, -20.0), "x100": (100.0, 0.0)}
STEPS = 1000  # in the classics, their usual horizon
FIELDS = ("problem", "variant", "planner", "seed", "run", "share")


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


def measure(name: str, variant: str, planner: str, arguments: Any, extra: Any) -> list[dict[str, Any]]:
    """Return a row for each run of a planner on a problem."""
    given = {"prior": arguments.prior, "rewards": arguments.rewards, "discount": arguments.discount}
    options: dict[str, Any] = {key: value for key, value in given.items() if value}
    steps = STEPS
    if name in CLASSICS:
        env: Any = bamdp.make_env(name)
        steps = env.horizon
        known = ceilings(env, 0.95, steps)
        random, optimal = known.random, known.optimum
    else:
        transitions, rewards, start = problem(name, extra)
        scale, shift = REWARDS.get(variant, (1.0, 0.0))
        rewards = scale * rewards + shift
        random, optimal = limits(transitions, rewards, start)
        env = Tabular(transitions, rewards, start)
    if variant.startswith("rule"):
        env = bamdp.make_env(name)
        options |= {"prior": "disturbance", "rewards": "hierarchical" if variant == "rule" else "known"}
    rows = []
    for r in range(arguments.runs):
        seed = arguments.seed, r
        agent = bamdp.Agent.for_env(env, planner, seed=seed, **options)
        total = bamdp.simulate(agent, env, steps, seed=seed).total_reward
        share = round((total - random) / (optimal - random), 4)
        rows.append(dict(zip(FIELDS, (name, variant, planner, *seed, share))))
    return rows


def compare(table: pd.DataFrame) -> pd.DataFrame:
    """Return the other planners' shares minus optimism's, paired by run, with simultaneous 95% intervals."""
    table = table.assign(variant=table.variant.fillna(""))
    shares = table.pivot(index=["problem", "variant", "run"], columns="planner", values="share")
    less = shares.drop(columns="optimism").sub(shares.optimism, axis=0)
    found = (
        less.groupby(level=["problem", "variant"]).agg(["mean", "sem", "count"]).stack(0, future_stack=True)
    )
    found = found[found["count"] > 1]
    width = found["sem"] * stats.t.ppf(1.0 - 0.025 / len(found), found["count"] - 1)  # Bonferroni
    return found.assign(low=found["mean"] - width, high=found["mean"] + width).round(3)


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
    parser.add_argument("--discount", type=float)
    parser.add_argument("--module", type=Path, help="a Python file with PROBLEMS of one's own")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, help="print paired differences from the runs in a file")
    arguments = parser.parse_args()
    if arguments.compare:
        print(compare(pd.read_csv(arguments.compare)).to_string())
        return
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
                print(f"{name:12} {variant:12} {planner:40} {shares.mean():7.3f} ± {error:.3f}", flush=True)
                if arguments.out:
                    new = not arguments.out.exists()
                    with arguments.out.open("a", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS)
                        if new:
                            writer.writeheader()
                        writer.writerows(rows)


if __name__ == "__main__":
    main()
