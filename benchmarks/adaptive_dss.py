"""AdaptiveDSS with one setting in all worlds, as docs/adaptive-dss.md shows it.

    python benchmarks/adaptive_dss.py score --runs 100 --envs chain river_swim   # totals and time per step
    python benchmarks/adaptive_dss.py budget --runs 40                           # totals against the budget
    python benchmarks/adaptive_dss.py horizon --runs 40                          # what a horizon changes
    python benchmarks/adaptive_dss.py worlds --runs 400                          # worlds drawn from the prior
    python benchmarks/adaptive_dss.py shares                                     # where the time goes
    python benchmarks/adaptive_dss.py figure                                     # the picture, from the data

Parameters, prior and discount are the planner's defaults, which were chosen on other runs (seed 77); those here have
SEED. Finished rows are appended to files in docs/data, and rows that a file has
are not run again.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bamdp
from bamdp.beliefs.belief import ModelRoom
from bamdp.beliefs.kernels import sample_model
from bamdp.envs.ceilings import ceilings

SEED = 918_273
PRIOR = bamdp.AdaptiveDSS.default_prior
DISCOUNT = bamdp.AdaptiveDSS.default_discount
STEPS = {"river_swim": 2000}
DATA = Path(__file__).resolve().parent.parent / "docs" / "data"
FIGURE = DATA.parent / "images" / "adaptive-dss-budget.png"
SCORED = ("chain", "double_loop", "river_swim", "grid5", "grid10", "maze")
BUDGETS = (16, 64, 256, 1024, 4096, 16384)
BUDGET_ENVS = ("chain", "double_loop", "river_swim")
RIVALS = ("beb:bonus=0.5", "thompson", "dss-pi")
RIVAL_PRIOR = "sparse:alpha=0.5,beta=4"
RIVAL_ENVS = ("chain", "double_loop", "river_swim", "grid5")
WORLD_STATES, WORLD_ACTIONS, WORLD_STEPS, WORLD_DISCOUNT = 10, 4, 250, 0.98
WORLD_PRIOR = "sparse:alpha=0.2,beta=2"
BONUSES = (0.1, 0.25, 0.5, 1.0, 2.5)
SHARE_ENVS = {"chain": 300, "double_loop": 300, "grid5": 300, "grid10": 1000, "maze": 3000}


# --- totals -------------------------------------------------------------------------------------------------


def measure(env: str, planner: str, prior: str, discount: float | str, runs: int) -> dict[str, Any]:
    """Return one row of a table of totals."""
    batch = bamdp.run_many(
        env, planner, prior=prior, discount=discount, runs=runs, steps=STEPS.get(env), seed=SEED, jobs=1
    )
    totals = np.array([run.total_reward for run in batch.runs])
    return {
        "env": env,
        "planner": planner,
        "prior": prior,
        "discount": discount,
        "runs": runs,
        "total": round(float(totals.mean()), 3),
        "error": round(standard_error(totals), 3),
        "ms_per_step": round(float(np.mean([run.ms_per_step for run in batch.runs])), 4),
    }


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def measure_all(
    path: Path,
    envs: Sequence[str],
    planners: Sequence[str],
    prior: str,
    discounts: Sequence[float | str],
    runs: int,
) -> None:
    """Measure what the file does not have yet."""
    done = {(row["env"], row["planner"], row["discount"], row["prior"]) for row in read(path)}
    for env in envs:
        for planner in planners:
            for discount in discounts:
                if (env, planner, str(discount), prior) not in done:
                    append(path, measure(env, planner, prior, discount, runs))


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file, none if there is none."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def append(path: Path, row: dict[str, Any]) -> None:
    """Show a row and append it to a file."""
    print(*(f"{key}={value}" for key, value in row.items()), flush=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


# --- worlds drawn from the prior ----------------------------------------------------------------------------


def discounted_returns(planner: str, worlds: range) -> NDArray[np.float64]:
    """Return what a planner earns in worlds drawn from its prior, where one state pays 1 and another 0.1."""
    prior = bamdp.make_prior(WORLD_PRIOR)
    rewards = np.zeros((WORLD_STATES, WORLD_ACTIONS))
    rewards[WORLD_STATES - 1], rewards[1] = 1.0, 0.1
    weights = WORLD_DISCOUNT ** np.arange(WORLD_STEPS)
    returns = []
    for world in worlds:
        mdp = prior.belief(WORLD_STATES, WORLD_ACTIONS, rewards=rewards).sample(SEED + world)
        env = bamdp.Environment("drawn", mdp, horizon=WORLD_STEPS)
        agent = bamdp.Agent.for_env(env, planner, prior=prior, discount=WORLD_DISCOUNT, seed=2 * SEED + world)
        run = bamdp.simulate(agent, env, WORLD_STEPS, seed=3 * SEED + world)
        returns.append(float(weights @ run.rewards))
    return np.array(returns)


def compare_worlds(path: Path, runs: int, planners: list[str]) -> None:
    """Choose the best bonus of BEB on some worlds, then pair planners with it on others."""
    tuning = range(runs, runs + runs // 2)
    tried = {bonus: discounted_returns(f"beb:bonus={bonus}", tuning) for bonus in BONUSES}
    best = max(tried, key=lambda bonus: tried[bonus].mean())
    for bonus, returns in tried.items():
        print(f"choosing: BEB({bonus}) {returns.mean():.3f} ± {standard_error(returns):.3f}", flush=True)
    base = discounted_returns(f"beb:bonus={best}", range(runs))
    for planner in planners:
        begin = time.process_time()
        returns = discounted_returns(planner, range(runs))
        seconds = time.process_time() - begin
        row = {
            "planner": planner,
            "worlds": runs,
            "mean": round(float(returns.mean()), 3),
            "best_bonus": best,
            "beb_mean": round(float(base.mean()), 3),
            "ahead": round(float((returns - base).mean()), 3),
            "error": round(standard_error(returns - base), 3),
            "ms_per_step": round(1e3 * seconds / runs / WORLD_STEPS, 4),
        }
        append(path, row)


# --- where the time goes ------------------------------------------------------------------------------------


def measure_shares(path: Path) -> None:
    """Tell where the time of a decision goes, with what has been learned after some steps of Thompson sampling.

    Drawing models is timed by itself. What solving takes is told by the difference between trials of four stages of
    eight steps and of one stage of 32, which solve the mean model three times less. What is left is following the
    candidates and evaluating policies in the models.
    """
    for env_name, steps in SHARE_ENVS.items():
        env = bamdp.make_env(env_name)
        learner = bamdp.Agent.for_env(env, "thompson", prior=PRIOR, discount=0.99, seed=SEED)
        bamdp.simulate(learner, env, steps, seed=SEED)
        deep, models = trial_seconds(learner, n_stages=4, n_steps=8)
        flat, _ = trial_seconds(learner, n_stages=1, n_steps=32)
        room, rng = ModelRoom(learner.belief), learner.rng.copy()
        drawing = seconds(partial(learner.belief.run, sample_model, room, rng=rng)) * models
        solving = (deep - flat) * 4 / 3
        row = {
            "env": env_name,
            "us_per_trial": round(1e6 * deep, 1),
            "solving": round(solving / deep, 2),
            "sampling": round(drawing / deep, 2),
            "following_and_evaluating": round(1.0 - (solving + drawing) / deep, 2),
        }
        append(path, row)


def trial_seconds(learner: bamdp.Agent, **stages: int) -> tuple[float, float]:
    """Return the time of a trial where candidates do not agree, and the number of models for each."""
    planner = bamdp.AdaptiveDSS(n_simulations=160, first_models=10_000, **stages)
    agent = bamdp.Agent.with_belief(planner, learner.belief, discount=0.99, seed=SEED)
    spent, trials, models = 0.0, 0, 0
    for state in range(learner.belief.n_states):
        agent.act(state)  # the values of candidates are near their solutions from here on
        spent += seconds(partial(agent.act, state), 1)
        numbers = agent.memory.race.number
        models, trials = models + int(numbers[0]), trials + int(numbers[1])
    return spent / max(trials, 1), models / max(trials, 1)


def seconds(call: Callable[[], Any], times: int = 100) -> float:
    """Return the processor time of a call, the mean of several after one more."""
    if times > 1:
        call()
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


# --- the picture --------------------------------------------------------------------------------------------


def draw(path: Path) -> None:
    """Draw totals against budgets, as shares of the largest total that is to be expected with the model known."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for env in BUDGET_ENVS:
        rows = [row for row in read(path) if row["env"] == env and row["prior"] == PRIOR]
        best = ceilings(bamdp.make_env(env), 0.95, steps=STEPS.get(env)).optimum
        budgets = [int(row["planner"].split("n_simulations=")[1]) for row in rows]
        totals = np.array([float(row["total"]) for row in rows]) / best
        errors = np.array([float(row["error"]) for row in rows]) / best
        axes.errorbar(budgets, totals, 2 * errors, marker="o", capsize=3, label=env)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("trials per decision at most")
    axes.set_ylabel("share of the best total")
    axes.set_title("AdaptiveDSS: more budget, mean and two standard errors")
    axes.legend()
    figure.savefig(FIGURE, dpi=120)


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("score", "budget", "horizon", "worlds", "shares", "figure"))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--envs", nargs="+")
    parser.add_argument("--planners", nargs="+", default=["adaptive-dss"])
    asked = parser.parse_args()
    if asked.what == "score":
        path = DATA / "adaptive_dss.csv"
        measure_all(path, asked.envs or SCORED, asked.planners, PRIOR, [DISCOUNT], asked.runs)
    elif asked.what == "budget":
        path = DATA / "adaptive-dss-budget.csv"
        planners = [f"adaptive-dss:n_simulations={budget}" for budget in BUDGETS]
        measure_all(path, asked.envs or BUDGET_ENVS, planners, PRIOR, [DISCOUNT], asked.runs)
    elif asked.what == "horizon":
        path = DATA / "adaptive-dss-horizon.csv"
        discounts = (0.99, "horizon")
        measure_all(path, asked.envs or RIVAL_ENVS, RIVALS, RIVAL_PRIOR, discounts, asked.runs)
    elif asked.what == "worlds":
        compare_worlds(DATA / "adaptive-dss-worlds.csv", asked.runs, asked.planners)
    elif asked.what == "shares":
        measure_shares(DATA / "adaptive-dss-shares.csv")
    else:
        draw(DATA / "adaptive-dss-budget.csv")


if __name__ == "__main__":
    main()
