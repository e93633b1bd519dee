"""``bamdp lab run|status|report|export|import``: whole studies."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bamdp.cli import console, studies

if TYPE_CHECKING:
    from bamdp.lab.collect import CellStatus


def run(given: argparse.Namespace) -> int:
    """Run what is missing."""
    from bamdp.lab.collect import study_status
    from bamdp.lab.store import Store

    study = studies.load(given.study, given.quick)
    with Store(studies.store_path(study, given.store)) as store:
        studies.run(study, store, given)
        found = study_status(study, store)
        done, failed = sum(cell.done for cell in found), sum(cell.failed for cell in found)
        console.note(f"{done} runs are done, {failed} failed or were stopped; they are in {store.path}")
        excluded = [cell.cell.label for cell in found if cell.chosen.startswith("none")]
        for label in excluded:
            console.note(f"note: {label}: every configuration is excluded, see `bamdp lab report`")
        broken = [cell for cell in found if cell.errors]
        for cell in broken:
            count = "a run" if len(cell.errors) == 1 else f"{len(cell.errors)} runs"
            console.note(f"note: {cell.cell.label}: {count} failed: {cell.errors[0]}")
        if broken:
            console.note("with --retry-failed the same command runs them again")
    return 1 if broken else 0


def status(given: argparse.Namespace) -> int:
    """What is done, running, missing, failed."""
    from bamdp.lab.collect import study_status
    from bamdp.lab.store import Store

    study = studies.load(given.study, given.quick)
    with Store(studies.store_path(study, given.store), create=False) as store:
        found = study_status(study, store)
    if given.json:
        cells = [
            {
                "environment": cell.cell.environment.label,
                "algorithm": cell.cell.algorithm,
                "done": cell.done,
                "running": cell.running,
                "missing": cell.missing,
                "failed": cell.failed,
                "complete": cell.complete,
                "undecided": cell.undecided,
                "cpu_seconds_left": cell.seconds,
                "chosen": cell.chosen,
            }
            for cell in found
        ]
        console.print_json({"title": study.title, "cells": cells})
        return 0
    rows = [
        (
            cell.cell.environment.label,
            cell.cell.algorithm,
            *(str(count) if count else "–" for count in (cell.done, cell.running)),
            f"{cell.missing or '–'}{more}",
            str(cell.failed or "–"),
            _left(cell, more),
            cell.chosen,
        )
        for cell in found
        for more in ["+" if cell.undecided else ""]
    ]
    columns = ("environment", "algorithm", "done", "running", "missing", "failed", "left", "chosen")
    console.print_table(columns, rows, study.title, numbers=columns[2:7])
    known = [cell.seconds for cell in found if cell.seconds is not None and not cell.complete]
    dark = sum(cell.seconds is None and not cell.complete for cell in found)
    if known or dark:
        unknown = f", and that of {dark} cells in which nothing is done yet" if dark else ""
        more = " or more: tuning decides on the way what it needs" if any(c.undecided for c in found) else ""
        console.note(
            f"left: about {_time(sum(known))} of processor time{unknown}{more}; divide by the number of processes"
        )
    return 0


def report(given: argparse.Namespace) -> int:
    """Tables, figures and a page."""
    from bamdp.lab import tables
    from bamdp.lab.collect import collect_provenance, collect_results
    from bamdp.lab.report import write_report
    from bamdp.lab.results import EVALUATE, comparable_results
    from bamdp.lab.store import Store
    from bamdp.lab.tables import unfinished

    study = studies.load(given.study, given.quick)
    folder = _beside(study.path, "-report", given.quick) if given.output is None else Path(given.output)
    quick = " --quick" if given.quick else ""
    commands = [f"bamdp lab run {given.study}{quick}", f"bamdp lab report {given.study}{quick}"]
    with Store(studies.store_path(study, given.store), create=False) as store:
        with console.compiling():
            found = collect_results(study, store)
        if not found.samples:
            raise ValueError(
                f"{store.path} has no run of this study yet; `bamdp lab run {given.study}` makes them"
            )
        page = write_report(found, folder, provenance=collect_provenance(study, store, commands))[0]
    evaluated = [tables.matrix(comparable_results(found))] if found.select(EVALUATE) else []
    studies.show([*evaluated, *unfinished(found)])
    studies.tell_notes(found)
    console.note(f"report: {page}")
    return 0


def export(given: argparse.Namespace) -> int:
    """A portable file, or a table for other programs."""
    from bamdp.lab import exports
    from bamdp.lab.store import Store

    writers: dict[str, Callable[..., int]] = {
        "runs": exports.export_runs,
        "csv": exports.write_csv,
        "parquet": exports.write_parquet,
    }
    endings = {"runs": ".runs.xz", "csv": ".csv", "parquet": ".parquet"}
    study = studies.load(given.study, given.quick)
    ending = endings[given.format]
    path = _beside(study.path, ending, given.quick) if given.output is None else Path(given.output)
    if given.thin and given.format != "runs":
        raise ValueError(f"--thin is for --format runs; {given.format} has all that there is")
    options = {"thin": True} if given.thin else {}
    with Store(studies.store_path(study, given.store), create=False) as store:
        count = writers[given.format](study, store, path, **options)
    console.note(f"{count} runs: {path} ({path.stat().st_size / 1e3:.0f} kB)")
    return 0


def import_(given: argparse.Namespace) -> int:
    """The runs of a portable file."""
    from bamdp.lab.exports import count_shared_settings, import_runs
    from bamdp.lab.store import Store

    study = studies.load(given.study)
    path = _beside(study.path, ".runs.xz", quick=False) if given.file is None else Path(given.file)
    with Store(studies.store_path(study, given.store)) as store:
        found = import_runs(store, path)
    console.note(f"{found.new} new runs, {found.known} were there already")
    if found.settings and not count_shared_settings(study, found.settings):
        console.note(
            f"warning: none of them is of {given.study}, so it will not use them; are they of another study, or has "
            "this one been changed?"
        )
    if found.other:
        console.note(f"note: {found.other} were there with other rewards (another machine?); those were kept")
    return 0


def _beside(path: Path | None, ending: str, quick: bool) -> Path:
    """Of a study's file: a name in its folder; of one that ships, in the working directory; a quick one's own."""
    assert path is not None
    ending = f"-quick{ending}" if quick else ending
    if path.suffix == ".toml":
        return path.with_name(path.stem + ending)
    return Path("-".join(path.parts) + ending)


def _left(cell: CellStatus, more: str) -> str:
    if cell.complete:
        return "done" if cell.done else "failed"
    return "?" if cell.seconds is None else _time(cell.seconds) + more


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
