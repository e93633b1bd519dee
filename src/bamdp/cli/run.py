"""Replicates: ``bamdp run``, several runs of each planner, and ``bamdp warmup``, which compiles ahead of time."""

from __future__ import annotations

import argparse
import math
import time
from functools import partial
from typing import Any

import bamdp
from bamdp.cli import console, options
from bamdp.registry import (
    DEFAULT_PLANNER,
    DEFAULT_PRIOR,
    PLANNERS,
    describe_planner,
    label,
    planner_name,
)
from bamdp.runs import Batch, check_size, run_setting, warm_up
from bamdp.seeding import seeds
from bamdp.settings import make_setting


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp run``."""
    parser.epilog = (
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2"
    )
    options.add(parser, "env")
    help = f"name, or name:key=value,... (default: {DEFAULT_PLANNER})"
    parser.add_argument("planners", metavar="PLANNER", nargs="*", help=help)
    options.add(parser, "--set", *options.AGENT, "--steps", "--runs", "--seed", "--jobs", "--progress")
    options.add(parser, "--bins", "--figure", "--json")


def run_command(arguments: argparse.Namespace) -> int:
    """Run the replicates, and print a table or JSON."""
    from bamdp.ceilings import optimal_total

    figure, runs = options.figure_path(arguments), arguments.runs
    env = bamdp.make_world(options.environment_text(arguments))
    settings = {
        planner: options.read_setting(arguments, env, arguments.steps, planner)
        for planner in arguments.planners or [env.usual_planner or DEFAULT_PLANNER]
    }
    for planner, setting in settings.items():
        check_size(setting, runs, arguments.jobs)
        console.announce(setting, env, planner, runs * setting.steps)
    batches = {}
    with console.compiling():
        for planner, setting in settings.items():
            warm_up(setting)  # before the bar
            with console.progress_bar(runs * setting.steps, planner, arguments.progress) as progress:
                batches[planner] = run_setting(setting, runs, arguments.jobs, progress)
        drawn = [seeds(arguments.seed, replicate)[0] for replicate in range(runs)]
        optimum = optimal_total(env, setting.steps, drawn) if isinstance(env, bamdp.Environment) else None
    if figure is not None:
        (first, *others), title = batches.values(), f"{', '.join(batches)} in {setting.env}"
        draw = partial(bamdp.plot.learning_curve, batches) if others else first.plot
        options.draw_figure(figure, partial(draw, title=title))
    if arguments.json:
        results = [_as_json(planner_name(name), batch, optimum) for name, batch in batches.items()]
        console.print_json(results if len(results) > 1 else results[0])
    else:
        _print_batches(batches, optimum)
    return 0


def _print_batches(batches: dict[str, Batch], optimum: float | None) -> None:
    """Print a row for each planner, and one for the optimum where the model is known."""
    (first, *_), priors = batches.values(), {name: _prior(batch) for name, batch in batches.items()}
    setting, n_runs = first.setting, len(first.runs)
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs (mean ± s.e.)"
    same = len(set(priors.values())) == 1
    title = f"{setting.env}, {setting.steps} steps, {runs}" + (f", prior {priors.popitem()[1]}" * same)
    with_episodes = any(len(batch.episode_returns) for batch in batches.values())
    rows = []
    for name, batch in batches.items():
        error = f" ± {batch.standard_error:.2f}" if math.isfinite(batch.standard_error) else ""
        row = {"planner": name} | ({} if same else {"prior": priors[name]})
        row["total reward"] = f"{batch.mean:.2f}{error}"
        if with_episodes:
            n = len(batch.episode_returns)
            row["episodes per run"] = f"{n / n_runs:.1f}"
            row["return"] = f"{batch.episode_returns.mean():.3f}" if n else "–"
            row["success"] = _percent(batch.success)
        if optimum is not None:
            row["share of optimum"] = _percent(_share_of_optimum(batch, optimum))
        rows.append({**row, "ms/step": f"{batch.ms_per_step:.3f}"})
    columns = list(rows[0])
    if optimum is not None:
        best = {"total reward": f"{optimum:.2f}", "share of optimum": "100.0 %"}
        rows.append({"planner": "optimum (known model)", **best})
    cells = [[row.get(column, "") for column in columns] for row in rows]
    console.print_table(columns, cells, title, numbers=columns[1 if same else 2 :])


def _prior(batch: Batch) -> str:
    return label(batch.setting.prior)


def _as_json(planner: str, batch: Batch, optimum: float | None) -> dict[str, Any]:
    """Return the JSON of a planner's runs."""
    setting, returns = batch.setting, batch.episode_returns
    late = [r for run in batch.runs for r in run.episode_returns[len(run.episode_returns) // 2 :].tolist()]
    return {
        "env": setting.env,
        "planner": planner,
        "parameters": describe_planner(setting.planner),
        "prior": _prior(batch),
        "rewards": label(setting.rewards),
        "runs": len(batch.runs),
        **{name: getattr(setting, name) for name in ("objective", "discount", "steps", "seed")},
        "total_reward": {
            "mean": batch.mean,
            "se": batch.standard_error,
            "values": batch.totals.tolist(),
        },
        "episodes": {
            "completed": [len(run.ends) for run in batch.runs],
            "mean_return": float(returns.mean()) if len(returns) else None,
            "mean_return_second_half": sum(late) / len(late) if late else None,
            "success": batch.success,
        },
        "optimum": optimum,
        "share_of_optimum": _share_of_optimum(batch, optimum),
        "ms_per_step": batch.ms_per_step,
        "seconds": batch.seconds,
        "reproducible": batch.reproducible,
        "version": bamdp.__version__,
    }


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _share_of_optimum(batch: Batch, optimum: float | None) -> float | None:
    return batch.mean / optimum if optimum is not None and optimum > 0.0 else None


def warmup_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp warmup``."""
    parser.add_argument("planners", metavar="PLANNER", nargs="*", help="default: all")
    options.add(parser, "--prior", default=DEFAULT_PRIOR)
    options.add(parser, "--rewards")


def warmup_command(arguments: argparse.Namespace) -> int:
    """Compile the planners for one kind of belief; compiled code does not depend on the environment's size."""
    rewards = arguments.rewards or "known"
    known = "double_loop" if rewards == "known" else "bandit"
    env = bamdp.make_env("maze_door" if "models" in arguments.prior else known)
    settings = {
        name: make_setting(env.name, name, prior=arguments.prior, rewards=rewards, steps=2, world=env)
        for name in arguments.planners or PLANNERS
    }
    for name, setting in settings.items():
        begin = time.perf_counter()
        try:
            warm_up(setting)
        except ValueError as error:  # a planner may refuse a belief
            if arguments.planners:
                raise
            console.note(f"{name}: left out, {error}")
            continue
        console.note(f"{name}: ready after {time.perf_counter() - begin:.1f} s")
    return 0
