"""``bamdp run``: one planner in one environment, several replicates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import bamdp
from bamdp.cli import console, options
from bamdp.cli.waiting import tell_waiting
from bamdp.registry import (
    DEFAULT_PLANNER,
    describe_planner,
    describe_prior,
    describe_rewards,
    planner_name,
)
from bamdp.runs import Batch, check_size, run_setting, seeds, warm_up
from bamdp.settings import Setting, make_setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = (
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2"
    )
    options.add_env(parser, gym=True)
    options.add_planner(parser, default=DEFAULT_PLANNER)
    options.add_set(parser)
    options.add_agent(parser, of_planner=True)
    options.add_steps(parser)
    options.add_runs(parser)
    options.add_seed(parser)
    options.add_jobs(parser)
    options.add_bins(parser)
    options.add_figure(parser)
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the replicates, and print a table or JSON."""
    from bamdp.ceilings import optimal_total

    figure = options.figure_path(arguments)
    text = options.environment_text(arguments)
    env = bamdp.make_world(text)
    setting = make_setting(
        text,
        arguments.planner,
        steps=arguments.steps,
        world=env,
        **options.setting_arguments(arguments),
    )
    check_size(setting, arguments.runs, arguments.jobs)
    tell_waiting(setting, env, arguments.planner, arguments.runs)
    with console.compiling():
        batch = run_with_progress(
            setting, arguments.runs, arguments.jobs, arguments.planner, arguments.progress
        )
        drawn = [seeds(setting.seed, replicate)[0] for replicate in range(arguments.runs)]
        optimum = optimal_total(env, setting.steps, drawn) if isinstance(env, bamdp.Environment) else None
    if figure is not None:
        options.draw_figure(figure, partial(batch.plot, title=f"{arguments.planner} in {setting.env}"))
    if arguments.json:
        console.print_json(_as_json(planner_name(arguments.planner), batch, optimum))
    else:
        print_batches({arguments.planner: batch}, optimum)
    return 0


def run_with_progress(setting: Setting, runs: int, jobs: int, label: str, shown: bool | None) -> Batch:
    """Run replicates under a progress bar with a label; compiling comes before it."""
    check_size(setting, runs, jobs)
    warm_up(setting)
    with console.progress_bar(runs * setting.steps, label, shown) as progress:
        return run_setting(setting, runs, jobs, progress)


def print_batches(batches: Mapping[str, Batch], optimum: float | None, more: str = "") -> None:
    """Print a table with a row for each planner, and one for the optimum where the model is known.

    All batches have one environment, prior and number of runs, which the title names; ``more`` is added to it.
    """
    first = next(iter(batches.values()))
    setting, n_runs = first.setting, len(first.runs)
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs (mean ± s.e.)"
    title = f"{setting.env}, {setting.steps} steps, {runs}, prior {describe_prior(setting.prior)}{more}"
    with_episodes = any(len(batch.episode_returns) for batch in batches.values())
    columns = ["planner", "total reward"]
    columns += ["episodes per run", "return", "success"] if with_episodes else []
    columns += ["share of optimum"] if optimum is not None else []
    columns.append("ms/step")
    rows: list[Sequence[str]] = []
    for name, batch in batches.items():
        error = batch.standard_error
        row = [name, f"{batch.mean:.2f}" + (f" ± {error:.2f}" if math.isfinite(error) else "")]
        if with_episodes:
            n = len(batch.episode_returns)
            mean = f"{batch.episode_returns.mean():.3f}" if n else "–"
            row += [f"{n / len(batch.runs):.1f}", mean, _percent(batch.success)]
        row += [_percent(_share_of_optimum(batch, optimum))] if optimum is not None else []
        rows.append((*row, f"{batch.ms_per_step:.3f}"))
    if optimum is not None:
        last = {
            "planner": "optimum (known model)",
            "total reward": f"{optimum:.2f}",
            "share of optimum": "100.0 %",
        }
        rows.append([last.get(column, "") for column in columns])
    console.print_table(columns, rows, title, numbers=columns[1:])


def _as_json(planner: str, batch: Batch, optimum: float | None) -> dict[str, Any]:
    """Return what --json prints."""
    setting, error = batch.setting, batch.standard_error
    return {
        "env": setting.env,
        "planner": planner,
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
            "se": error if math.isfinite(error) else None,
            "values": batch.totals.tolist(),
        },
        "episodes": _episodes_json(batch),
        "optimum": optimum,
        "share_of_optimum": _share_of_optimum(batch, optimum),
        "ms_per_step": batch.ms_per_step,
        "seconds": batch.seconds,
        "reproducible": batch.reproducible,
        "version": bamdp.__version__,
    }


def _episodes_json(batch: Batch) -> dict[str, Any]:
    returns = batch.episode_returns
    late = np.concatenate([run.episode_returns[len(run.episode_returns) // 2 :] for run in batch.runs])
    return {
        "completed": [len(run.ends) for run in batch.runs],
        "mean_return": float(returns.mean()) if len(returns) else None,
        "mean_return_second_half": float(late.mean()) if len(late) else None,
        "success": batch.success,
    }


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _share_of_optimum(batch: Batch, optimum: float | None) -> float | None:
    return batch.mean / optimum if optimum is not None and optimum > 0.0 else None
