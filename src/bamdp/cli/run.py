"""Replicates: ``bamdp run`` (one planner), ``bamdp demo`` (three of them) and ``bamdp warmup`` (compiling ahead)."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import bamdp
from bamdp.cli import console, options
from bamdp.cli.waiting import tell_waiting
from bamdp.registry import (
    DEFAULT_PLANNER,
    PLANNERS,
    describe_planner,
    describe_prior,
    describe_rewards,
    planner_name,
)
from bamdp.runs import Batch, check_size, run_setting, seeds, warm_up
from bamdp.settings import Setting, make_setting

PAPER = "n_policies=2,n_samples=2,n_steps=25,n_stages=1"  # Appendix C, Grid5
DEMO_PLANNERS = {
    "DSS-PI": f"dss-pi:{PAPER}",
    "DSS-RTDP": f"dss-rtdp:{PAPER},generator.depth=15",
    "Thompson sampling": "thompson",
}
DEMO_PRIOR = "sparse:alpha=0.2,beta=6"


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp run``."""
    parser.epilog = (
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2"
    )
    options.add(parser, "env")
    options.add(parser, "planner", default=DEFAULT_PLANNER)
    options.add(parser, "--set")
    options.add_agent_of_planner(parser)
    options.add(parser, "--steps", "--runs", "--seed", "--jobs", "--progress", "--bins", "--figure", "--json")


def run_command(arguments: argparse.Namespace) -> int:
    """Run the replicates, and print a table or JSON."""
    from bamdp.ceilings import optimal_total

    figure = options.figure_path(arguments)
    env = bamdp.make_world(options.environment_text(arguments))
    setting = options.read_setting(arguments, env, arguments.steps)
    check_size(setting, arguments.runs, arguments.jobs)
    tell_waiting(setting, env, arguments.planner, arguments.runs)
    with console.compiling():
        batch = run_with_progress(setting, arguments, arguments.planner)
        drawn = [seeds(setting.seed, replicate)[0] for replicate in range(arguments.runs)]
        optimum = optimal_total(env, setting.steps, drawn) if isinstance(env, bamdp.Environment) else None
    if figure is not None:
        options.draw_figure(figure, partial(batch.plot, title=f"{arguments.planner} in {setting.env}"))
    if arguments.json:
        console.print_json(_as_json(planner_name(arguments.planner), batch, optimum))
    else:
        print_batches({arguments.planner: batch}, optimum)
    return 0


def run_with_progress(setting: Setting, arguments: argparse.Namespace, label: str) -> Batch:
    """Run replicates under a progress bar with a label; compiling comes before it."""
    check_size(setting, arguments.runs, arguments.jobs)
    warm_up(setting)
    with console.progress_bar(arguments.runs * setting.steps, label, arguments.progress) as progress:
        return run_setting(setting, arguments.runs, arguments.jobs, progress)


def print_batches(batches: Mapping[str, Batch], optimum: float | None, more: str = "") -> None:
    """Print a table with a row for each planner, and one for the optimum where the model is known.

    All batches have one environment, prior and number of runs, which the title names; ``more`` is added to it.
    """
    first = next(iter(batches.values()))
    setting, n_runs = first.setting, len(first.runs)
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs (mean ± s.e.)"
    title = f"{setting.env}, {setting.steps} steps, {runs}, prior {describe_prior(setting.prior)}{more}"
    with_episodes = any(len(batch.episode_returns) for batch in batches.values())
    rows = []
    for name, batch in batches.items():
        error = f" ± {batch.standard_error:.2f}" if math.isfinite(batch.standard_error) else ""
        row = {"planner": name, "total reward": f"{batch.mean:.2f}{error}"}
        if with_episodes:
            n = len(batch.episode_returns)
            row["episodes per run"] = f"{n / len(batch.runs):.1f}"
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
    console.print_table(columns, cells, title, numbers=columns[1:])


def _as_json(planner: str, batch: Batch, optimum: float | None) -> dict[str, Any]:
    """Return what --json prints."""
    setting, error = batch.setting, batch.standard_error
    return {
        "env": setting.env,
        "planner": planner,
        "parameters": describe_planner(setting.planner),
        "prior": describe_prior(setting.prior),
        "rewards": describe_rewards(setting.rewards),
        "runs": len(batch.runs),
        **{name: getattr(setting, name) for name in ("objective", "discount", "steps", "seed")},
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


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp demo``."""
    options.add(parser, "--runs", default=50)
    options.add(parser, "--seed")
    options.add(parser, "--jobs", default=min(2, os.cpu_count() or 1))
    options.add(parser, "--progress")
    help = "of the picture (default: %(default)s)"
    options.add_option(parser, "--output", str, "PATH", help, "learning-curve.png")


def demo_command(arguments: argparse.Namespace) -> int:
    """Run the three planners, print the table and draw the learning curves."""
    from bamdp.ceilings import optimal_total
    from bamdp.lab import figures

    output = console.check_picture_path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    env = bamdp.make_env("grid5")
    batches = {}
    with console.compiling():
        for name, planner in DEMO_PLANNERS.items():
            setting = make_setting(env.name, planner, prior=DEMO_PRIOR, seed=arguments.seed, world=env)
            batches[name] = run_with_progress(setting, arguments, f"{name:<18}")
        optimum, best = optimal_total(env, env.horizon), bamdp.gain(env.mdp).gain
    print_batches(batches, optimum, f", discount {setting.discount}")
    figure = figures.reward_figure(
        {name: np.array([run.rewards for run in batch.runs]) for name, batch in batches.items()},
        window=100,
        optimum=best,
        title="Learning to cross a slippery 5 × 5 grid",
        note=f"mean of {arguments.runs} runs, 95% band",
    )
    figures.save_figure(figure, output.with_suffix(""), [output.suffix[1:]])
    console.note(f"learning curve: {output}")
    return 0


def warmup_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp warmup``."""
    parser.add_argument("planners", metavar="PLANNER", nargs="*", help="default: all")
    options.add(parser, "--prior", "--rewards")


def warmup_command(arguments: argparse.Namespace) -> int:
    """Compile the planners for the kind of belief that is asked for."""
    rewards = arguments.rewards or "known"
    # small environments will do: what is compiled does not depend on the size
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
    if not arguments.planners:
        from bamdp.ceilings import ceilings

        ceilings(env, 0.95, steps=2)
        console.note("solve: ready")
    return 0
