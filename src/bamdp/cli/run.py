"""Commands that run planners in one environment: ``bamdp run``, ``compare``, ``tune`` and ``warmup``."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import bamdp
from bamdp._parameters import parse_spec, read_value, split_assignment, split_commas
from bamdp.cli import console
from bamdp.cli.arguments import RUN_VALUES, environment_text, picture_path, planner_text, values
from bamdp.cli.studies import run_and_collect
from bamdp.registry import DEFAULT_PLANNER, PLANNERS
from bamdp.runs import make_setting, run_setting, warm_up

if TYPE_CHECKING:
    from bamdp.lab.results import Results


def run(arguments: argparse.Namespace) -> int:
    """Run the replicates of every planner, and print a table or JSON."""
    from bamdp.experiments import named_planners
    from bamdp.lab.results import batch_results

    picture_path(arguments.figure)
    text, runs = environment_text(arguments), arguments.runs
    env = bamdp.make_world(text)
    planners = arguments.planners or [env.usual_planner or DEFAULT_PLANNER]
    given: dict[str, Any] = {"steps": arguments.steps, "world": env, **values(arguments, *RUN_VALUES)}
    settings = {
        name: make_setting(text, planner, **given)
        for name, planner in named_planners(planner_text(arguments, one) for one in planners).items()
    }
    jobs, batches = 1 if arguments.jobs is None else arguments.jobs, {}
    for name, setting in settings.items():
        console.announce(setting, env, name, runs * setting.steps)
    for name, setting in settings.items():
        with console.working(name, arguments) as (steps, more):
            more(runs * setting.steps)
            batches[name] = run_setting(setting, runs, jobs, steps)
    return show_comparison(arguments, batch_results(batches))


def compare(arguments: argparse.Namespace) -> int:
    """Run what is missing from the store, and print a table or JSON."""
    from bamdp.experiments import comparison_study

    text = environment_text(arguments)
    if bamdp.make_world(text).system is not None:
        if arguments.store or arguments.cluster or arguments.retry_failed:
            raise ValueError("continuous runs are not stored; omit --store, --cluster and --retry-failed")
        return run(arguments)
    picture_path(arguments.figure)
    planners = [planner_text(arguments, planner) for planner in arguments.planners]
    study = comparison_study(text, planners, **values(arguments, "runs", "steps", *RUN_VALUES))
    return show_comparison(arguments, run_and_collect(study, arguments))


def show_comparison(arguments: argparse.Namespace, results: Results) -> int:
    """Print the comparison of planners in one environment as a table or JSON, and plot it on request."""
    from bamdp.experiments import comparison

    found, figure = comparison(results), picture_path(arguments.figure)
    if arguments.json:
        console.print_json(results_json(results))
    else:
        console.show(found.tables(arguments.full), results)
    if figure is not None:
        console.draw_figure(figure, found.plot)
    return 0


def results_json(results: Results, **more: Any) -> dict[str, Any]:
    """Return all results of a study."""
    return {
        "title": results.title,
        "quick": results.quick,
        "runs": results.runs.drop(columns=["trace", "machine"]).to_dict("records"),
        "ceilings": {label: dataclasses.asdict(ceiling) for label, ceiling in results.ceilings.items()},
        "notes": results.notes,
        "version": bamdp.__version__,
        **more,
    }


def tune(arguments: argparse.Namespace) -> int:
    """Tune the planner and print all configurations, followed by the chosen one, as text or JSON."""
    from bamdp.experiments import TuningResult, tuning_study

    figure, planner = picture_path(arguments.figure), arguments.planner or DEFAULT_PLANNER
    written = dict(split_assignment(text, "--grid") for text in arguments.grid)
    study = tuning_study(
        environment_text(arguments),
        planner_text(arguments, planner),
        {key: list(map(read_value, split_commas(texts))) for key, texts in written.items()},
        tuning=values(arguments, "method", "runs", "configurations"),
        **values(arguments, "evaluate", "steps", *RUN_VALUES),
    )
    results = run_and_collect(study, arguments)
    found = TuningResult(study, results)
    chosen = found.chosen if results.runs.chosen.any() else None
    if arguments.json:
        console.print_json(results_json(results, chosen=chosen))
    else:
        console.show(found.tables(), results)
    if figure is not None:
        console.draw_figure(figure, found.plot)
    if chosen is not None:
        console.note(f"chosen: {_run_command_line(arguments, planner, chosen)}")
    return 0


def _run_command_line(arguments: argparse.Namespace, planner: str, chosen: dict[str, Any]) -> str:
    """Return a command that runs the chosen configuration."""
    from bamdp.lab.space import planner_parameters, prior_spec

    words = ["bamdp", "run", environment_text(arguments), parse_spec(planner).name]
    parameters = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words += ["--set", *parameters] if parameters else []
    words += ["--prior", str(prior_spec(chosen)), "--discount", str(chosen["discount"])]
    for name in ("steps", "rewards", "objective"):
        value = getattr(arguments, name)
        words += [] if value in (None, "episode") else [f"--{name}", str(value)]
    return shlex.join(words)


def warmup(arguments: argparse.Namespace) -> int:
    """Compile the planners for one kind of belief; compiled code is independent of the environment's size."""
    env = "double_loop" if arguments.rewards in (None, "known") else "bandit"
    make = partial(make_setting, env, prior=arguments.prior, rewards=arguments.rewards, steps=2)
    for name in [planner_text(arguments, one) for one in arguments.planners or PLANNERS]:
        begin = time.perf_counter()
        try:
            warm_up(make(name))
            console.note(f"{name}: compiled in {time.perf_counter() - begin:.1f} s")
        except ValueError as error:  # a planner may refuse a belief
            if arguments.planners:
                raise
            console.note(f"{name}: skipped, {error}")
    return 0
