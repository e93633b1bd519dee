"""What the commands of the laboratory share: the study and its store, running it, printing tables and JSON."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bamdp
from bamdp import _checks
from bamdp.cli import console
from bamdp.cli.waiting import tell_waiting_for_study

if TYPE_CHECKING:
    from bamdp.lab.results import Results, Sample
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study
    from bamdp.lab.tables import ResultTable

FOLDER = Path(".bamdp")  # of stores that belong to no study's file


def load_named_study(name: str, quick: bool = False) -> Study:
    """Load a study from its file, or one that ships with the package by its name."""
    from bamdp.lab.papers import STUDIES, paper_study
    from bamdp.lab.reading import load_study

    if not Path(name).exists() and not name.endswith(".toml"):
        return paper_study(_checks.one_of(name, "study", [*STUDIES, "PATH.toml"]), quick=quick)
    return load_study(name, quick=quick)


def study_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments of :func:`bamdp.experiments.environment_study` that come from options."""
    return {name: getattr(arguments, name) for name in ("steps", "rewards", "discount", "objective", "seed")}


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
    retry = arguments.retry_failed
    try:
        with console.compiling(), console.terminal_bar(study.title, arguments.progress) as (steps, more):
            if not arguments.cluster:
                run_study(
                    study, store, jobs=jobs, steps=steps, more=more, retry_failed=retry, tell=tell_damage
                )
                return
            from bamdp.lab.cluster import Cluster

            with Cluster(arguments.cluster, steps) as pool:
                run_study(
                    study, store, pool=pool, steps=steps, more=more, retry_failed=retry, tell=tell_damage
                )
    except KeyboardInterrupt:
        message = f"stopped; what is done is kept in {store.path}: resume with the same command"
        raise KeyboardInterrupt(message) from None


def tell_damage(line: str) -> None:
    """Print a line on what is damaged in a store on standard error."""
    console.note(f"note: {line}")


@contextmanager
def run_and_collect(study: Study, arguments: argparse.Namespace) -> Iterator[Results]:
    """Run what is missing of a study, and yield its results while the store is open."""
    from bamdp.lab.collect import collect_results
    from bamdp.lab.store import Store

    if arguments.jobs is not None:
        _checks.integer(arguments.jobs, "jobs")
    tell_waiting_for_study(study)
    path = store_path(study, arguments.store)
    if not path.exists():
        console.note(f"runs are kept in {path} (--store PATH for another file)")
    with Store(path) as store:
        run(study, store, arguments)
        with console.compiling():
            collected = collect_results(study, store)
        yield collected


def show(tables: Iterable[ResultTable]) -> None:
    """Print tables on standard output; a note under several of them is printed once."""
    from bamdp.lab.tables import to_rich, without_repeated_notes

    for number, table in enumerate(without_repeated_notes(tables)):
        if number:
            print()
        console.print_rich(to_rich(table, sys.stdout.isatty()))


def tell_notes(results: Results) -> None:
    """Print what a reader of the tables must know on standard error."""
    for line in results.remarks:
        console.note(f"note: {line}")


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
