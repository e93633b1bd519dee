"""Commands ``bamdp run``, which runs each planner several times, and ``bamdp warmup``, which compiles ahead of time."""

from __future__ import annotations

import argparse
import math
import time
from functools import partial
from typing import Any

import bamdp
from bamdp.cli import console, options
from bamdp.registry import DEFAULT_PLANNER, DEFAULT_PRIOR, PLANNERS, describe_planner, label
from bamdp.runs import Batch, make_setting, run_setting, warm_up
from bamdp.seeding import seeds


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp run``."""
    parser.epilog = (
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2"
    )
    options.add(parser, "env", "planners", "--set", *options.AGENT)
    options.add(parser, "--steps", "--runs", "--seed", "--jobs", "--progress")
    options.add(parser, "--bins", "--figure", "--json")


def run_command(arguments: argparse.Namespace) -> int:
    """Run the replicates and print a table or JSON."""
    from bamdp.envs.ceilings import optimal_total

    figure, runs = options.figure_path(arguments), arguments.runs
    env = bamdp.make_world(options.environment_text(arguments))
    settings = {
        planner: options.read_setting(arguments, env, arguments.steps, planner)
        for planner in arguments.planners or [env.usual_planner or DEFAULT_PLANNER]
    }
    for planner, setting in settings.items():
        console.announce(setting, env, planner, runs * setting.steps)
    batches = {}
    with console.compiling():
        for planner, setting in settings.items():
            with console.progress_bar(runs * setting.steps, planner, arguments.progress) as progress:
                batches[planner] = run_setting(setting, runs, arguments.jobs, progress)
        drawn = [seeds(arguments.seed, replicate)[0] for replicate in range(runs)]
        optimum = optimal_total(env, setting.steps, drawn) if isinstance(env, bamdp.Environment) else None
    if figure is not None:
        (first, *others), title = batches.values(), f"{', '.join(batches)} in {setting.env}"
        draw = partial(bamdp.plot.learning_curve, batches) if others else first.plot
        options.draw_figure(figure, partial(draw, title=title))
    if arguments.json:
        results = [_as_json(name, batch, optimum) for name, batch in batches.items()]
        console.print_json(results if len(results) > 1 else results[0])
    else:
        _print_batches(list(batches.values()), optimum)
    return 0


def _print_batches(batches: list[Batch], optimum: float | None) -> None:
    """Print one row per planner, and one for the optimum if the model is known."""
    setting, n_runs = batches[0].setting, len(batches[0].runs)
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs (mean ± s.e.)"
    rows = [_row(batch, optimum) for batch in batches]
    used = [name for name in rows[0] if any(row[name] != "–" for row in rows)]
    if optimum is not None:
        best = {"total reward": f"{optimum:.2f}", "share of optimum": "100.0 %"}
        rows.append({"planner": "optimum (known model)", **best})
    cells = [[row.get(column, "") for column in used] for row in rows]
    console.print_table(used, cells, f"{setting.env}, {setting.steps} steps, {runs}", numbers=used[3:])
    if len({(batch.setting.prior, batch.setting.discount) for batch in batches}) > 1:
        console.remark("each planner has its own prior and discount; --prior and --discount name one for all")


def _row(batch: Batch, optimum: float | None) -> dict[str, str]:
    """Return a planner's table cells by column."""
    setting, returns = batch.setting, batch.episode_returns
    error = f" ± {batch.standard_error:.2f}" if math.isfinite(batch.standard_error) else ""
    return {
        "planner": label(setting.planner),
        "prior": label(setting.prior) if getattr(setting.planner, "uses_prior", True) else "not used",
        "discount": str(setting.discount),
        "total reward": f"{batch.mean:.2f}{error}",
        "episodes per run": f"{len(returns) / len(batch.runs):.1f}" if len(returns) else "–",
        "return": f"{returns.mean():.3f}" if len(returns) else "–",
        "success": _percent(batch.success),
        "share of optimum": _percent(_share_of_optimum(batch, optimum)),
        "ms/step": f"{batch.ms_per_step:.3f}",
    }


def _as_json(planner: str, batch: Batch, optimum: float | None) -> dict[str, Any]:
    """Return a planner's runs as JSON."""
    setting, returns = batch.setting, batch.episode_returns
    return {
        "env": setting.env,
        "planner": planner,
        "parameters": describe_planner(setting.planner),
        "prior": label(setting.prior),
        "rewards": label(setting.rewards),
        "runs": len(batch.runs),
        **{name: getattr(setting, name) for name in ("objective", "discount", "steps", "seed")},
        "total_reward": {"mean": batch.mean, "se": batch.standard_error, "values": batch.totals.tolist()},
        "episodes": {
            "completed": [len(run.ends) for run in batch.runs],
            "mean_return": float(returns.mean()) if len(returns) else None,
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
    parser.add_argument("planners", metavar="PLANNER", nargs="*", default=list(PLANNERS), help="default: all")
    options.add(parser, "--prior", default=DEFAULT_PRIOR)
    options.add(parser, "--rewards", default="known")


def warmup_command(arguments: argparse.Namespace) -> int:
    """Compile the planners for one kind of belief; compiled code is independent of the environment's size."""
    env = "double_loop" if arguments.rewards == "known" else "bandit"
    for name in arguments.planners:
        begin = time.perf_counter()
        try:
            warm_up(make_setting(env, name, prior=arguments.prior, rewards=arguments.rewards, steps=2))
            console.note(f"{name}: ready after {time.perf_counter() - begin:.1f} s")
        except ValueError as error:  # a planner may refuse a belief
            if len(arguments.planners) < len(PLANNERS):
                raise
            console.note(f"{name}: left out, {error}")
    return 0
