"""Continuous systems with one configuration for all, as docs/continuous-evidence.md shows them.

    python benchmarks/continuous.py                          # everything that is missing, the main rows first
    python benchmarks/continuous.py --tasks pendulum gain --planners thompson dss --seeds 20

Rows are appended to docs/data/continuous.csv, and rows that it has are not run again. All planners have their defaults,
and rewards, ends and angles are known except in pendulum-learned; a variant changes what its name says. Seeds begin at
SEED (gain: GAIN_SEED), and no choice was made by any of them.

- pendulum: real steps until the greedy policy (the posterior mean, no longer learning) earns more than −200 on average
  over five episodes of 200 steps, asked every fifth step; what two episodes earned while learning. The five starts are
  those of resets 0 to 4 for all runs: other draws can ask for too much (from one, a model with errors
  below 0.002 earned −274).
- cart-pole (TIP's, 25 steps): the same with −12, asked after every episode.
- mountain-car: real steps until the goal is first reached, with the true sparse reward.
- sparse-pendulum: real steps until a step first pays more than a half.
- gain: the loss against the exact Bayes-optimal policy in the scalar system with unknown gain, T = 4. By the
  performance-difference lemma it is the sum over steps of what the action loses in expectation, without the noise of
  the runs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium

from bamdp.continuous import ContinuousAgent, LinearGaussian, greedy_returns, known
from bamdp.continuous.tasks import GainSolution

SEED, GAIN_SEED = 310_000, 320_000
STEPS = 400
DATA = Path(__file__).resolve().parent.parent / "docs" / "data" / "continuous.csv"
TASKS = {
    "pendulum": ("Pendulum-v1", -200.0),
    "pendulum-learned": ("Pendulum-v1", -200.0),
    "cart-pole": ("bamdp/TipCartPole-v0", -12.0),
    "mountain-car": ("MountainCarContinuous-v0", None),
    "sparse-pendulum": ("bamdp/SparsePendulum-v0", None),
    "gain": ("bamdp/UnknownGain-v0", None),
}
GAIN_SEEDS = 5  # times as many seeds: its runs have four steps
CHEAP, DEAR = (
    ("mountain-car", "sparse-pendulum"),
    ("cart-pole", "pendulum"),
)  # the greedy policy is asked often in these
DSS_CHANGES = ("leaf=0.34", "common=False", "n_steps=2", "n_stages=2")
PLAN = [
    *[("gain", planner, "") for planner in ("dss", "thompson", "mean", "open-loop")],
    *[(task, planner, "") for task in (*CHEAP, *DEAR) for planner in ("thompson", "mean", "open-loop")],
    *[("gain", f"dss:{change}", change) for change in DSS_CHANGES],
    *[(task, "dss", "") for task in ("sparse-pendulum", "pendulum")],
    ("pendulum-learned", "thompson", ""),
    *[(task, "dss", "") for task in ("mountain-car", "cart-pole")],
    *[("mountain-car", "thompson", change) for change in ("refit=False", "frequencies=32")],
    *[(task, "thompson", change) for task in DEAR for change in ("refit=False", "frequencies=32")],
    *[("sparse-pendulum", f"dss:{change}", change) for change in DSS_CHANGES[:3]],
]


def measure(task: str, planner: str, variant: str, seed: int) -> dict[str, Any]:
    """Return one row: one agent in one task."""
    name, above = TASKS[task]
    env = gymnasium.make(name)
    row = {"task": task, "planner": planner.partition(":")[0], "variant": variant, "seed": seed}
    if task == "gain":
        return row | gain_loss(env, planner, seed)
    facts = {} if task == "pendulum-learned" else known(env)
    prior = f"random-features:{variant}" if ":" not in planner and variant else "random-features"
    agent = ContinuousAgent.for_env(env, planner, prior=prior, seed=seed, **facts)
    tests = [gymnasium.make(name) for _ in range(5)]
    every = 25 if task == "cart-pole" else 5

    def solved(t: int, reward: float, terminated: bool) -> bool:
        if above is None:
            return terminated if task == "mountain-car" else reward > 0.5
        if t % every or t < 5:
            return False
        return bool(greedy_returns(agent, tests, range(5), above=above).mean() > above)

    long = task == "pendulum" and planner in ("thompson", "mean")  # for the return of the second episode
    return row | learn(env, agent, seed, solved, STEPS if long else 0)


def learn(
    env: Any, agent: ContinuousAgent, seed: int, solved: Callable[..., bool], at_least: int
) -> dict[str, Any]:
    """Let an agent learn until the task is solved, or for STEPS steps, and no shorter than ``at_least`` steps."""
    observation, _ = env.reset(seed=seed)
    agent.begin(observation)
    returns, total, when, seconds = [], 0.0, 0, 0.0
    for t in range(1, STEPS + 1):
        begin = time.thread_time()
        action = agent.act(observation)
        after, reward, terminated, truncated, _ = env.step(action)
        agent.observe(observation, action, reward, after, terminated)
        seconds += (time.thread_time() - begin) * (t > 1)  # kernels may be compiled in the first
        observation, total = after, total + reward
        if not when and solved(t, reward, terminated):
            when = t
        if terminated or truncated:
            returns.append(total)
            total = 0.0
            observation, _ = env.reset()
            agent.begin(observation)
        if when and t >= at_least:
            break
    shown = " ".join(f"{value:.1f}" for value in returns)
    ms = round(1e3 * seconds / max(t - 1, 1), 2)
    return {"solved": int(when > 0), "steps": when or STEPS, "returns": shown, "loss": "", "ms": ms}


def gain_loss(env: Any, planner: str, seed: int) -> dict[str, Any]:
    """Return the expected loss of the actions of one run against the Bayes-optimal policy."""
    prior = LinearGaussian(state=0.0, bias=0.0, noise=1.0)
    agent = ContinuousAgent.for_env(env, planner, prior=prior, horizon=4, seed=seed, **known(env))
    observation, _ = env.reset(seed=seed)
    agent.begin(observation)
    mean, variance, loss, total, seconds = 0.0, 1.0, 0.0, 0.0, 0.0
    for left in (4, 3, 2, 1):
        begin = time.thread_time()
        action = agent.act(observation)
        seconds += time.thread_time() - begin
        x, u = float(observation[0]), float(action[0])
        loss += action_loss(x, u, mean, variance, left)
        after, reward, *_ = env.step(action)
        agent.observe(observation, action, reward, after)
        mean, variance = (float(part) for part in SOLUTION.learn(x, u, float(after[0]), mean, variance))
        observation, total = after, total + reward
    ms = round(1e3 * seconds / 4, 2)
    return {"solved": 1, "steps": 4, "returns": f"{total:.3f}", "loss": round(loss, 5), "ms": ms}


def action_loss(x: float, u: float, mean: float, variance: float, left: int) -> float:
    """Return Q(x, β, u) − V(x, β) with ``left`` steps to go."""
    cost = SOLUTION.action_cost(x, u, mean, variance, left)
    return cost - float(SOLUTION.cost(x, mean, variance, left))


SOLUTION = GainSolution()


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS], default=[*TASKS])
    parser.add_argument("--planners", nargs="+", default=["thompson", "mean", "dss", "open-loop"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--csv", type=Path, default=DATA)
    arguments = parser.parse_args()
    done = set()
    if arguments.csv.exists():
        with arguments.csv.open() as file:
            done = {
                (row["task"], row["planner"], row["variant"], int(row["seed"]))
                for row in csv.DictReader(file)
            }
    for task, planner, variant in PLAN:
        if task not in arguments.tasks or planner.partition(":")[0] not in arguments.planners:
            continue
        for i in range(arguments.seeds * (GAIN_SEEDS if task == "gain" else 1)):
            seed = i + (GAIN_SEED if task == "gain" else SEED)
            if (task, planner.partition(":")[0], variant, seed) in done:
                continue
            row = measure(task, planner, variant, seed)
            print(*row.values(), flush=True)
            new = not arguments.csv.exists()
            with arguments.csv.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                if new:
                    writer.writeheader()
                writer.writerow(row)


if __name__ == "__main__":
    main()
