"""``bamdp run``: one planner in one environment, several replicates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import bamdp
from bamdp._specs import split_pair
from bamdp.ceilings import optimal_total
from bamdp.cli import console
from bamdp.registry import (
    describe_planner,
    describe_prior,
    describe_rewards,
    make_planner,
    make_prior,
    make_rewards,
)
from bamdp.runs import Batch, Setting, run_many


def do(given: argparse.Namespace) -> int:
    """The command."""
    env = bamdp.make_world(given.env)
    setting = Setting(
        env=given.env,
        planner=make_planner(given.planner, read_settings(given.set)),
        prior=make_prior(given.prior, env),
        rewards=make_rewards(given.rewards, env),
        discount=given.discount,
        steps=env.horizon if given.steps is None else given.steps,
        seed=given.seed,
        objective=given.objective,
    )
    with console.compiling():
        batch = play(setting, given.runs, given.jobs, given.planner, given.progress)
        optimum = optimal_total(env, setting.steps) if isinstance(env, bamdp.Environment) else None
    if given.json:
        console.print_json(as_json(given.planner, batch, optimum))
    else:
        title = (
            f"{setting.env}, {setting.steps} steps, {runs_text(batch)}, prior {describe_prior(setting.prior)}"
        )
        print_batches({given.planner: batch}, optimum, title)
    return 0


def play(setting: Setting, runs: int, jobs: int, label: str, wanted: bool | None) -> Batch:
    """Run the replicates under a progress bar; compiling comes before it."""
    from bamdp import _checks
    from bamdp.runs import warm_up

    _checks.integer(runs, "runs")
    _checks.integer(jobs, "jobs")
    warm_up(setting)
    with console.progress_bar(runs * setting.steps, label, wanted) as progress:
        return run_many(setting, runs, jobs, progress)


def as_json(planner: str, batch: Batch, optimum: float | None) -> dict[str, Any]:
    """What --json prints."""
    setting = batch.setting
    return {
        "env": setting.env,
        "planner": planner.partition(":")[0].lower().replace("_", "-"),
        "parameters": describe_planner(setting.planner),
        "prior": describe_prior(setting.prior),
        "rewards": describe_rewards(setting.rewards),
        "objective": setting.objective,
        "discount": setting.discount,
        "steps": setting.steps,
        "runs": len(batch.runs),
        "seed": setting.seed,
        "total_reward": {
            "mean": batch.mean,
            "se": _finite(batch.standard_error),
            "values": batch.totals.tolist(),
        },
        "episodes": _episodes(batch),
        "optimum": optimum,
        "share_of_optimum": _share(batch, optimum),
        "ms_per_step": batch.ms_per_step,
        "seconds": batch.seconds,
        "reproducible": batch.reproducible,
        "version": bamdp.__version__,
    }


def print_batches(batches: dict[str, Batch], optimum: float | None, title: str) -> None:
    """A table with a row for each planner."""
    with_episodes = any(len(batch.episode_returns) for batch in batches.values())
    columns = ["planner", "total reward"]
    columns += ["episodes a run", "return", "success"] if with_episodes else []
    columns += ["share of optimum"] if optimum is not None else []
    columns.append("ms/step")
    rows: list[Sequence[str]] = []
    for name, batch in batches.items():
        error = _finite(batch.standard_error)
        row = [name, f"{batch.mean:.2f}" + ("" if error is None else f" ± {error:.2f}")]
        if with_episodes:
            n = len(batch.episode_returns)
            mean = f"{batch.episode_returns.mean():.3f}" if n else "–"
            row += [f"{n / len(batch.runs):.1f}", mean, _percent(batch.success)]
        row += [_percent(_share(batch, optimum))] if optimum is not None else []
        rows.append((*row, f"{batch.ms_per_step:.3f}"))
    if optimum is not None:
        last = {
            "planner": "optimum (known model)",
            "total reward": f"{optimum:.2f}",
            "share of optimum": "100.0 %",
        }
        rows.append([last.get(column, "") for column in columns])
    console.print_table(columns, rows, title, numbers=columns[1:])


def runs_text(batch: Batch) -> str:
    """How many runs the mean and standard error are over."""
    return "1 run" if len(batch.runs) == 1 else f"{len(batch.runs)} runs (mean ± s.e.)"


def read_settings(written: Sequence[str]) -> dict[str, str]:
    """What --set says."""
    settings: dict[str, str] = {}
    for part in written:
        try:
            key, value = split_pair(part, part)
        except ValueError:
            raise ValueError(
                f"--set {part!r} is not key=value; write for instance --set n_steps=100"
            ) from None
        if key in settings:
            raise ValueError(f"--set gives {key} twice; drop one")
        settings[key] = value
    return settings


def _episodes(batch: Batch) -> dict[str, Any]:
    returns = batch.episode_returns
    half = [run.episode_returns[len(run.episode_returns) // 2 :] for run in batch.runs]
    late = np.concatenate(half)
    return {
        "completed": [len(run.ends) for run in batch.runs],
        "mean_return": float(returns.mean()) if len(returns) else None,
        "mean_return_second_half": float(late.mean()) if len(late) else None,
        "success": batch.success,
    }


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _share(batch: Batch, optimum: float | None) -> float | None:
    return batch.mean / optimum if optimum is not None and optimum > 0.0 else None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
