"""Commands ``bamdp compare`` and ``bamdp tune``, and functions shared by all commands that run studies."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bamdp
from bamdp import _checks
from bamdp._parameters import parse_spec, read_value, split_assignment, split_commas
from bamdp.cli import console, options
from bamdp.envs.registry import make_world

if TYPE_CHECKING:
    from bamdp.lab.results import Results
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study
    from bamdp.lab.tables import Table

FOLDER = Path(".bamdp")  # for the stores of studies without a file
HIDDEN = ["trace", "machine"]  # columns omitted from JSON


def store_path(study: Study, path: str | None) -> Path:
    """Return the path of a study's store: ``path``, a file next to the study, or one in a local folder."""
    if path is not None:
        return Path(path)
    if study.path is not None and study.path.suffix == ".toml":
        return study.path.with_suffix(".sqlite")
    return FOLDER / "runs.sqlite"


def run(study: Study, store: Store, arguments: argparse.Namespace) -> None:
    """Execute the missing runs with a progress bar; completed runs survive Ctrl-C."""
    from bamdp.lab.runner import run_study

    if arguments.cluster and arguments.jobs is not None:
        raise ValueError(
            "--jobs and --cluster exclude each other: the cluster decides how many processes there are"
        )
    jobs = 1 if arguments.jobs is None else _checks.integer(arguments.jobs, "jobs")
    run_all = partial(run_study, study, store, retry_failed=arguments.retry_failed)
    try:
        with console.compiling(), console.terminal_bar(study.title, arguments.progress) as (steps, more):
            if not arguments.cluster:
                run_all(jobs=jobs, steps=steps, more=more)
                return
            from bamdp.lab.cluster import Cluster

            with Cluster(arguments.cluster, steps) as pool:
                run_all(pool=pool, steps=steps, more=more)
    except KeyboardInterrupt:
        message = f"stopped; completed runs are kept in {store.path}: resume with the same command"
        raise KeyboardInterrupt(message) from None


@contextmanager
def run_and_collect(study: Study, arguments: argparse.Namespace) -> Iterator[Results]:
    """Execute the missing runs of a study and yield its results."""
    from bamdp.lab.results import collect_results
    from bamdp.lab.store import Store

    for cell in study.cells:
        setting, world = cell.settings[-1], make_world(cell.environment.env)
        console.announce(setting, world, cell.algorithm, max(1, cell.runs) * setting.steps)
    path = store_path(study, arguments.store)
    if not path.exists():
        console.note(f"runs are kept in {path} (--store PATH for another file)")
    with Store(path) as store:
        run(study, store, arguments)
        with console.compiling():
            collected = collect_results(study, store)
    yield collected


def show(tables: Iterable[Table], *results: Results) -> None:
    """Print tables to standard output, and the studies' notes to standard error."""
    print("\n\n".join(map(str, tables)))
    for line in dict.fromkeys(line for found in results for line in found.notes):
        console.remark(line)


def results_json(results: Results, **more: Any) -> dict[str, Any]:
    """Return all results of a study."""
    return {
        "title": results.title,
        "quick": results.quick,
        "runs": results.runs.drop(columns=HIDDEN).to_dict("records"),
        "ceilings": {label: dataclasses.asdict(ceiling) for label, ceiling in results.ceilings.items()},
        "notes": results.notes,
        "version": bamdp.__version__,
        **more,
    }


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp compare``."""
    parser.epilog = "Example: bamdp compare grid5 dss-pi:n_steps=25 thompson bamcp --runs 30 --jobs 2"
    options.add(parser, "env", "--steps")
    parser.add_argument("planners", metavar="PLANNER", nargs="+", help="name or name:key=value,...")
    options.add(parser, "--set", *options.AGENT, "--seed", "--runs")
    options.add_study_running(parser)
    options.add(parser, "--store", "--bins", "--figure", "--json")
    parser.add_argument("--full", action="store_true", help="also print intervals, scores and every pair")


def compare_command(arguments: argparse.Namespace) -> int:
    """Run the comparison and print its table or JSON."""
    from bamdp.experiments import comparison, comparison_study

    figure = options.figure_path(arguments)
    study = comparison_study(
        options.environment_text(arguments),
        [options.planner_text(arguments, planner) for planner in arguments.planners],
        **options.values(arguments, "runs", "steps", *options.RUN_VALUES),
    )
    with run_and_collect(study, arguments) as results:
        found = comparison(results)
        if figure is not None:
            options.draw_figure(figure, found.plot)
        if arguments.json:
            console.print_json(results_json(results))
        else:
            show(found.tables(arguments.full), results)
    return 0


def tune_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp tune``."""
    parser.epilog = (
        "Example: bamdp tune grid10 dss-pi --grid n_policies=2,4 prior.beta=2,4,8 discount=.95,.99"
    )
    options.add(parser, "env", "--steps")
    options.add(parser, "planner", help="name or name:key=value,...")
    help = "values to choose from: of the planner's parameters, prior, prior.beta, discount"
    parser.add_argument("--grid", metavar="KEY=A,B", nargs="+", action="extend", default=[], help=help)
    help = "grid, all of it; or halving, which is successive halving (default: grid)"
    options.add_option(parser, "--method", str, "NAME", help, "grid")
    options.add(parser, "--runs", help="tuning runs, at most (default: %(default)s)")
    options.add_option(
        parser, "--configurations", int, "N", "draw N configurations of the grid (default: all)"
    )
    help = "runs of the chosen configuration, with other seeds (default: 0)"
    options.add_option(parser, "--evaluate", int, "N", help, 0)
    options.add(parser, "--set", *options.AGENT, "--seed")
    options.add_study_running(parser)
    options.add(parser, "--store", "--bins", "--figure", "--json")


def tune_command(arguments: argparse.Namespace) -> int:
    """Tune the planner and print all configurations, followed by the selected one, as text or JSON."""
    from bamdp.experiments import TuningResult, tuning_study

    figure = options.figure_path(arguments)
    written = dict(split_assignment(text, "--grid") for text in arguments.grid)
    study = tuning_study(
        options.environment_text(arguments),
        options.planner_text(arguments, arguments.planner),
        {key: list(map(read_value, split_commas(values))) for key, values in written.items()},
        tuning=options.values(arguments, "method", "runs", "configurations"),
        **options.values(arguments, "evaluate", "steps", *options.RUN_VALUES),
    )
    with run_and_collect(study, arguments) as results:
        found = TuningResult(study, results)
        chosen = found.chosen if results.runs.chosen.any() else None
        if figure is not None:
            options.draw_figure(figure, found.plot)
        if arguments.json:
            console.print_json(results_json(results, chosen=chosen))
            return 0
        show(found.tables(), results)
        if chosen is not None:
            console.note(f"chosen: {_run_command_line(arguments, chosen)}")
    return 0


def _run_command_line(arguments: argparse.Namespace, chosen: dict[str, Any]) -> str:
    """Return a command that runs the selected configuration."""
    from bamdp.lab.study import planner_parameters, prior_spec

    words = ["bamdp", "run", options.environment_text(arguments), parse_spec(arguments.planner).name]
    parameters = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words += ["--set", *parameters] if parameters else []
    words += ["--prior", str(prior_spec(chosen)), "--discount", str(chosen["discount"])]
    words += [] if arguments.steps is None else ["--steps", str(arguments.steps)]
    words += [] if arguments.rewards is None else ["--rewards", arguments.rewards]
    words += [] if arguments.objective == "episode" else ["--objective", arguments.objective]
    return shlex.join(words)
