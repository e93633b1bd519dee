"""What the commands of the laboratory share: finding the study and its store, running it, showing tables."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp import _checks
from bamdp.cli import console

if TYPE_CHECKING:
    from bamdp.lab.results import Results
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study
    from bamdp.lab.tables import ResultTable

FOLDER = Path(".bamdp")  # of stores that belong to no study's file


def load(name: str, quick: bool = False) -> Study:
    """A study's file, or one that ships, by its name."""
    from bamdp.lab.papers import STUDIES, paper_study
    from bamdp.lab.reading import load_study

    if not Path(name).exists() and not name.endswith(".toml"):
        return paper_study(_checks.one_of(name, "study", [*STUDIES, "PATH.toml"]), quick=quick)
    return load_study(name, quick=quick)


def store_path(study: Study, given: str | None) -> Path:
    """As given, or beside the study's file; for those that ship, in a folder of the working directory."""
    if given is not None:
        return Path(given)
    if study.path is None:
        return FOLDER / "runs.sqlite"
    if study.path.suffix != ".toml":  # by name
        return FOLDER / f"{study.path.parent.name}.sqlite"
    return study.path.with_suffix(".sqlite")


def run(study: Study, store: Store, given: argparse.Namespace) -> None:
    """Run what is missing, under a progress bar; Ctrl-C leaves what is done."""
    from bamdp.lab.runner import run_study

    if given.cluster and given.jobs is not None:
        raise ValueError(
            "--jobs and --cluster exclude each other: the cluster decides how many processes there are"
        )
    jobs = 1 if given.jobs is None else _checks.integer(given.jobs, "jobs")
    options: dict[str, Any] = {"retry_failed": given.retry_failed}
    try:
        with console.compiling(), console.growing_bar(study.title, given.progress) as (steps, more):
            if not given.cluster:
                run_study(study, store, jobs=jobs, steps=steps, more=more, **options)
                return
            from bamdp.lab.cluster import Cluster

            with Cluster(given.cluster, steps) as pool:
                run_study(study, store, pool=pool, steps=steps, more=more, **options)
    except KeyboardInterrupt:
        kept = f"stopped; what is done is kept in {store.path}: resume with the same command"
        raise KeyboardInterrupt(kept) from None


def show(tables: Iterable[ResultTable]) -> None:
    """On standard output; a note that stands under one already is not said again."""
    from bamdp.lab.tables import to_rich

    said: set[str] = set()
    for number, table in enumerate(tables):
        if number:
            print()
        fresh = tuple(note for note in table.notes if note not in said)
        console.print_rich(to_rich(dataclasses.replace(table, notes=fresh), sys.stdout.isatty()))
        said.update(fresh)


def tell_notes(results: Results) -> None:
    """What a reader of the tables must know."""

    for line in results.remarks:
        console.note(f"note: {line}")


def samples_json(results: Results) -> list[dict[str, Any]]:
    """Every sample with its numbers."""
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
            "failures": list(sample.failures),
            "chosen": sample.chosen,
            "excluded": sample.excluded or None,
        }
        for sample in results.samples
    ]


def table_json(table: ResultTable) -> dict[str, Any]:
    """A table as rows of cells: the text, and the numbers behind it."""
    return {
        "name": table.name,
        "title": table.title,
        "header": list(table.header),
        "rows": [[{"text": cell.text, **_numbers(cell.numbers)} for cell in row] for row in table.rows],
        "notes": list(table.notes),
        "warning": table.warning or None,
    }


def _numbers(numbers: Iterable[tuple[str, float]]) -> dict[str, float | None]:
    """What a cell shows, at full precision; JSON has no NaN."""
    return {what or "value": value if math.isfinite(value) else None for what, value in numbers}


def results_json(results: Results) -> dict[str, Any]:
    """All that there is, for other programs."""
    import bamdp

    return {
        "title": results.title,
        "quick": results.quick,
        "samples": samples_json(results),
        "ceilings": {label: dataclasses.asdict(found) for label, found in results.ceilings.items()},
        "notes": [*results.notes, *results.waiting.values()],
        "version": bamdp.__version__,
    }
