"""Studies on the command line: ``bamdp compare``, ``bamdp tune``, and what all commands that run studies share.

That is the study and its store, running it, and printing tables and JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bamdp
from bamdp import _checks
from bamdp._specs import parse_spec, split_commas
from bamdp.cli import console, options
from bamdp.envs.registry import make_world

if TYPE_CHECKING:
    from bamdp.lab.results import Results, Sample
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study
    from bamdp.lab.tables.table import ResultTable

FOLDER = Path(".bamdp")  # of stores that belong to no study's file


def load_named_study(name: str, quick: bool = False) -> Study:
    """Load a study from its file, or one that ships with the package by its name."""
    from bamdp.lab.reading import STUDIES, load_study, paper_study

    if not Path(name).exists() and not name.endswith(".toml"):
        return paper_study(_checks.one_of(name, "study", [*STUDIES, "PATH.toml"]), quick=quick)
    return load_study(name, quick=quick)


def store_path(study: Study, path: str | None) -> Path:
    """Return where a study's runs are kept: ``path``, or else beside its file.

    Studies that ship with the package have their store in a folder of the working directory.
    """
    if path is not None:
        return Path(path)
    if study.path is None:
        return FOLDER / "runs.sqlite"
    if study.path.suffix != ".toml":  # one that ships
        return FOLDER / f"{study.path.parent.name}.sqlite"
    return study.path.with_suffix(".sqlite")


def run(study: Study, store: Store, arguments: argparse.Namespace) -> None:
    """Run what is missing, under a progress bar; Ctrl-C leaves what is done."""
    from bamdp.lab.runner import run_study

    if arguments.cluster and arguments.jobs is not None:
        raise ValueError(
            "--jobs and --cluster exclude each other: the cluster decides how many processes there are"
        )
    jobs = 1 if arguments.jobs is None else _checks.integer(arguments.jobs, "jobs")
    run_all = partial(run_study, study, store, retry_failed=arguments.retry_failed, tell=console.remark)
    try:
        with console.compiling(), console.terminal_bar(study.title, arguments.progress) as (steps, more):
            if not arguments.cluster:
                run_all(jobs=jobs, steps=steps, more=more)
                return
            from bamdp.lab.cluster import Cluster

            with Cluster(arguments.cluster, steps) as pool:
                run_all(pool=pool, steps=steps, more=more)
    except KeyboardInterrupt:
        message = f"stopped; what is done is kept in {store.path}: resume with the same command"
        raise KeyboardInterrupt(message) from None


@contextmanager
def run_and_collect(study: Study, arguments: argparse.Namespace) -> Iterator[Results]:
    """Run what is missing of a study, and yield its results while the store is open."""
    from bamdp.lab.collect import collect_results
    from bamdp.lab.store import Store

    if arguments.jobs is not None:
        _checks.integer(arguments.jobs, "jobs")
    for cell in study.cells:
        setting, world = cell.setting(cell.configurations[-1]), make_world(cell.environment.env)
        console.announce(setting, world, cell.algorithm, max(1, cell.runs) * setting.steps)
    path = store_path(study, arguments.store)
    if not path.exists():
        console.note(f"runs are kept in {path} (--store PATH for another file)")
    with Store(path) as store:
        run(study, store, arguments)
        with console.compiling():
            collected = collect_results(study, store)
        yield collected


def show(tables: Iterable[ResultTable], *results: Results) -> None:
    """Print tables on standard output, and what a reader of them must know on standard error; each note once."""
    from bamdp.lab.tables.table import to_rich, without_repeated_notes

    for number, table in enumerate(without_repeated_notes(tables)):
        if number:
            print()
        console.print_rich(to_rich(table, sys.stdout.isatty()))
    for line in dict.fromkeys(line for found in results for line in found.remarks):
        console.remark(line)


def _episodes_json(sample: Sample) -> dict[str, Any] | None:
    found = sample.episodes()
    if found is None:
        return None
    return {"per_run": found.per_run, "mean_return": found.mean_return, "success": found.success}


def samples_json(results: Results) -> list[dict[str, Any]]:
    """Return every sample with its numbers."""
    arrays = ("replicates", "totals", "ms_per_step", "cpu_seconds")
    return [
        {
            "environment": sample.environment,
            "algorithm": sample.algorithm,
            "phase": sample.phase,
            "configuration": dict(sample.configuration),
            "steps": sample.horizon,
            "runs": sample.runs,
            **{name: getattr(sample, name).tolist() for name in arrays},
            "episodes": _episodes_json(sample),
            "failures": list(sample.failures),
            "chosen": sample.chosen,
            "excluded": sample.excluded or None,
        }
        for sample in results.samples
    ]


def table_json(table: ResultTable) -> dict[str, Any]:
    """Return a table as rows of cells: the text, and the numbers behind it."""
    return {
        "name": table.name,
        "title": table.title,
        "header": list(table.header),
        "rows": [[{"text": cell.text, **_numbers_json(cell.numbers)} for cell in row] for row in table.rows],
        "notes": list(table.notes),
        "warning": table.warning or None,
    }


def _numbers_json(numbers: Iterable[tuple[str, float]]) -> dict[str, float | None]:
    """Return the numbers of a cell at full precision; JSON has no NaN."""
    return {what or "value": value if math.isfinite(value) else None for what, value in numbers}


def results_json(results: Results) -> dict[str, Any]:
    """Return all results of a study."""
    return {
        "title": results.title,
        "quick": results.quick,
        "samples": samples_json(results),
        "ceilings": {label: dataclasses.asdict(ceiling) for label, ceiling in results.ceilings.items()},
        "notes": [*results.notes, *results.waiting.values()],
        "version": bamdp.__version__,
    }


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp compare``."""
    parser.epilog = "Example: bamdp compare grid5 dss-pi:n_steps=25 thompson bamcp --runs 30 --jobs 2"
    options.add(parser, "env", "--steps")
    parser.add_argument("planners", metavar="PLANNER", nargs="+", help="name or name:key=value,...")
    options.add(parser, "--set", *options.AGENT, "--seed", "--runs")
    options.add_study_running(parser)
    options.add(parser, "--store", "--bins", "--figure", "--json")


def compare_command(arguments: argparse.Namespace) -> int:
    """Run the comparison, and print tables or JSON."""
    from bamdp.experiments import ComparisonResult, comparison_study

    figure = options.figure_path(arguments)
    study = comparison_study(
        options.environment_text(arguments),
        [options.planner_text(arguments, planner) for planner in arguments.planners],
        **options.values(arguments, "runs", "steps", *options.RUN_VALUES),
    )
    with run_and_collect(study, arguments) as results:
        if figure is not None:
            options.draw_figure(figure, ComparisonResult(study, results).plot)
        if arguments.json:
            console.print_json(results_json(results))
            return 0
        show(ComparisonResult(study, results).tables, results)
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
    options.add_option(parser, "--configurations", int, "N", "draw so many of the grid (default: all)")
    help = "halving: processor seconds; what needs more than two even shares of it for a run is excluded"
    options.add_option(parser, "--budget", float, "S", help)
    options.add_option(parser, "--screening", int, "T", "halving: steps of a run before the last round")
    help = "runs of the chosen configuration, with other seeds (default: 0)"
    options.add_option(parser, "--evaluate", int, "N", help, 0)
    options.add(parser, "--set", *options.AGENT, "--seed")
    options.add_study_running(parser)
    options.add(parser, "--store", "--bins", "--figure", "--json")


def tune_command(arguments: argparse.Namespace) -> int:
    """Tune, and print the configurations and the chosen one, or JSON."""
    from bamdp.experiments import TuningResult, tuning_study

    written = options.read_assignments(arguments.grid, "--grid", "key=value,value", "n_steps=25,50")
    study = tuning_study(
        options.environment_text(arguments),
        options.planner_text(arguments, arguments.planner),
        {key: split_commas(values) for key, values in written.items()},
        tuning=options.values(arguments, "method", "runs", "configurations", "budget", "screening"),
        **options.values(arguments, "evaluate", "steps", *options.RUN_VALUES),
    )
    figure = options.figure_path(arguments)
    with run_and_collect(study, arguments) as results:
        if figure is not None:
            options.draw_figure(figure, TuningResult(study, results).plot)
        chosen = next((dict(sample.configuration) for sample in results.samples if sample.chosen), None)
        if arguments.json:
            console.print_json({**results_json(results), "chosen": chosen})
            return 0
        show(TuningResult(study, results).tables, results)
        if chosen is not None:
            console.note(f"chosen: {_run_command_line(arguments, chosen)}")
    return 0


def _run_command_line(arguments: argparse.Namespace, chosen: dict[str, Any]) -> str:
    """Return the command that runs the chosen configuration."""
    from bamdp.lab.study import planner_parameters, prior_spec

    words = ["bamdp", "run", options.environment_text(arguments), parse_spec(arguments.planner).name]
    parameters = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words += ["--set", *parameters] if parameters else []
    words += ["--prior", str(prior_spec(chosen)), "--discount", str(chosen["discount"])]
    words += [] if arguments.steps is None else ["--steps", str(arguments.steps)]
    words += [] if arguments.rewards is None else ["--rewards", arguments.rewards]
    words += [] if arguments.objective == "episode" else ["--objective", arguments.objective]
    return shlex.join(words)
