"""``bamdp run``: one planner in one environment, several replicates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import bamdp
from bamdp._specs import split_pair
from bamdp.ceilings import optimal_total
from bamdp.cli import console
from bamdp.registry import describe_planner, describe_prior, make_planner, make_prior, make_rewards
from bamdp.runs import Batch, Setting, run_many


def do(given: argparse.Namespace) -> int:
    """The command."""
    env = bamdp.make_env(given.env)
    setting = Setting(
        env=given.env,
        planner=make_planner(given.planner, _settings(given.set)),
        prior=make_prior(given.prior, env),
        rewards=make_rewards(given.rewards, env),
        discount=given.discount,
        steps=env.horizon if given.steps is None else given.steps,
        seed=given.seed,
    )
    with console.compiling():
        batch = play(setting, given.runs, given.jobs, given.planner, given.progress)
        optimum = optimal_total(env, setting.steps)
    if given.json:
        console.print_json(as_json(given.planner, batch, optimum))
    else:
        title = (
            f"{env.name}, {setting.steps} steps, {runs_text(batch)}, prior {describe_prior(setting.prior)}"
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


def as_json(planner: str, batch: Batch, optimum: float) -> dict[str, Any]:
    """What --json prints."""
    setting = batch.setting
    return {
        "env": setting.env,
        "planner": planner.partition(":")[0].lower().replace("_", "-"),
        "parameters": describe_planner(setting.planner),
        "prior": describe_prior(setting.prior),
        "rewards": type(setting.rewards).__name__,
        "discount": setting.discount,
        "steps": setting.steps,
        "runs": len(batch.runs),
        "seed": setting.seed,
        "total_reward": {
            "mean": batch.mean,
            "se": _finite(batch.standard_error),
            "values": batch.totals.tolist(),
        },
        "optimum": optimum,
        "share_of_optimum": _share(batch, optimum),
        "ms_per_step": batch.ms_per_step,
        "seconds": batch.seconds,
        "reproducible": batch.reproducible,
        "version": bamdp.__version__,
    }


def print_batches(batches: dict[str, Batch], optimum: float, title: str) -> None:
    """A table with a row for each planner."""
    columns = ("planner", "total reward", "share of optimum", "ms/step")
    rows: list[Sequence[str]] = []
    for name, batch in batches.items():
        error = _finite(batch.standard_error)
        share = _share(batch, optimum)
        rows.append(
            (
                name,
                f"{batch.mean:.2f}" + ("" if error is None else f" ± {error:.2f}"),
                "–" if share is None else f"{100 * share:.1f} %",
                f"{batch.ms_per_step:.3f}",
            )
        )
    rows.append(("optimum (known model)", f"{optimum:.2f}", "100.0 %", ""))
    console.print_table(columns, rows, title, numbers=columns[1:])


def runs_text(batch: Batch) -> str:
    """How many runs the mean and standard error are over."""
    return "1 run" if len(batch.runs) == 1 else f"{len(batch.runs)} runs (mean ± s.e.)"


def _settings(written: Sequence[str]) -> dict[str, str]:
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


def _share(batch: Batch, optimum: float) -> float | None:
    return batch.mean / optimum if optimum > 0.0 else None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
