"""``bamdp lab new|run|status|report|check|export|import``: whole studies."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bamdp.cli import console, options, studies

if TYPE_CHECKING:
    from bamdp.lab.collect import CellStatus
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study

OF_STUDY = ("study", "--store")
EXPORT_ENDINGS = {"runs": ".runs.xz", "csv": ".csv", "parquet": ".parquet"}  # by format


def lab_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the laboratory with their arguments."""
    parser.epilog = (
        "A study is a TOML file: `bamdp lab new study.toml` writes one to begin with. Or it is the name of one that "
        "ships, such as dss2020/published; a name that is unknown is answered with all of them."
    )
    commands = parser.add_subparsers(
        dest="lab_command", metavar="COMMAND", title="commands", parser_class=type(parser)
    )
    parsers = {}
    for name, (run_command, help, names) in COMMANDS.items():
        command = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        command.set_defaults(run_command=run_command, parser=command)
        options.add(command, *names)
        parsers[name] = command
    default = "study.toml"
    parsers["new"].add_argument(
        "file", metavar="FILE", nargs="?", default=default, help=f"default: {default}"
    )
    options.add_study_running(parsers["run"])
    parsers["report"].add_argument("--output", metavar="FOLDER", help="default: STUDY-report")
    export = parsers["export"]
    help = "default: runs, which import reads"
    export.add_argument("--format", choices=EXPORT_ENDINGS, default="runs", help=help)
    export.add_argument("--output", metavar="PATH", help="default: beside the study")
    help = "without the rewards of tuning runs step by step: much smaller"
    export.add_argument("--thin", action="store_true", help=help)
    parsers["import"].add_argument("file", metavar="FILE", nargs="?", help="default: STUDY.runs.xz")


def lab_command(arguments: argparse.Namespace) -> int:
    """Print the help, where no command of the laboratory is named."""
    arguments.parser.print_help()
    return 0


def write_template(arguments: argparse.Namespace) -> int:
    """Write the template of a study; a file that is there already stays as it is."""
    from importlib.resources import files

    target = Path(arguments.file)
    if target.suffix != ".toml":
        raise ValueError(f"a study's file ends in .toml, got {arguments.file!r}")
    text = files("bamdp.lab").joinpath("templates/study.toml").read_text(encoding="utf-8")
    text = text.replace("STUDY.toml", shlex.quote(str(target)))
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{target} is there already; name another file") from None
    console.note(f"wrote {target}; try it with: bamdp lab run {shlex.quote(str(target))} --quick")
    return 0


def run_missing(arguments: argparse.Namespace) -> int:
    """Run what is missing in the store; the status is 1 if runs have failed."""
    from bamdp.lab.collect import study_status

    with _open_study(arguments) as (study, store):
        studies.run(study, store, arguments)
        cells = study_status(study, store)
    done, failed = sum(cell.done for cell in cells), sum(cell.failed for cell in cells)
    console.note(f"{done} runs are done, {failed} failed or were stopped; they are in {store.path}")
    for cell in cells:
        if cell.chosen.startswith("none"):
            console.remark(f"{cell.cell.label}: every configuration is excluded, see `bamdp lab report`")
    broken = [cell for cell in cells if cell.errors]
    for cell in broken:
        count = "a run" if len(cell.errors) == 1 else f"{len(cell.errors)} runs"
        console.remark(f"{cell.cell.label}: {count} failed: {cell.errors[0]}")
    if broken:
        console.note("with --retry-failed the same command runs them again")
    return 1 if broken else 0


def print_status(arguments: argparse.Namespace) -> int:
    """Print what is done, running, missing and failed."""
    from bamdp.lab.collect import study_status

    with _open_study(arguments, create=False) as (study, store):
        cells = study_status(study, store)
    for cell in cells:
        for line in cell.damaged:
            console.remark(line)
    if arguments.json:
        counts = ("done", "running", "missing", "failed", "damaged", "complete", "undecided")
        rows_json = [
            {
                "environment": cell.cell.environment.label,
                "algorithm": cell.cell.algorithm,
                **{name: getattr(cell, name) for name in counts},
                "cpu_seconds_left": cell.seconds,
                "chosen": cell.chosen,
            }
            for cell in cells
        ]
        console.print_json({"title": study.title, "cells": rows_json})
        return 0
    rows = [
        (
            cell.cell.environment.label,
            cell.cell.algorithm,
            *(str(count) if count else "–" for count in (cell.done, cell.running)),
            f"{cell.missing or '–'}{more}",
            str(cell.failed or "–"),
            _time_left(cell, more),
            cell.chosen,
        )
        for cell in cells
        for more in ["+" if cell.undecided else ""]
    ]
    columns = ("environment", "algorithm", "done", "running", "missing", "failed", "left", "chosen")
    console.print_table(columns, rows, study.title, numbers=columns[2:7])
    # the time that is left, of cells that have some run by which to judge it
    known = [cell.seconds for cell in cells if cell.seconds is not None and not cell.complete]
    unknown = sum(cell.seconds is None and not cell.complete for cell in cells)
    if known or unknown:
        others = f", and that of {unknown} cells in which nothing is done yet" if unknown else ""
        more = " or more: tuning decides on the way what it needs" if any(c.undecided for c in cells) else ""
        console.note(
            f"left: about {_duration(sum(known))} of processor time{others}{more}; divide by the number of processes"
        )
    return 0


def report_study(arguments: argparse.Namespace) -> int:
    """Write tables, figures and a page."""
    from bamdp.lab import report
    from bamdp.lab.collect import collect_provenance, collect_results
    from bamdp.lab.results import EVALUATE, comparable_results
    from bamdp.lab.tables.evaluation import matrix, unfinished

    quick = " --quick" if arguments.quick else ""
    commands = [f"bamdp lab run {arguments.study}{quick}", f"bamdp lab report {arguments.study}{quick}"]
    with _open_study(arguments, create=False) as (study, store):
        with console.compiling():
            collected = collect_results(study, store)
        if not collected.samples:
            raise ValueError(
                f"{store.path} has no run of this study yet; `bamdp lab run {arguments.study}` makes them"
            )
        folder = _path_for(study, arguments.output, "-report")
        provenance = collect_provenance(study, store, commands)
        page = report.write_report(collected, folder, provenance=provenance)[0]
    evaluated = [matrix(comparable_results(collected))] if collected.select(EVALUATE) else []
    studies.show([*evaluated, *unfinished(collected)], collected)
    console.note(f"report: {page}")
    return 0


def check_study(arguments: argparse.Namespace) -> int:
    """Check the store, and name the runs that are damaged; the status is 1 if something is."""
    from bamdp.lab.choosing import LEFT_OUT, damage_lines, damaged_units
    from bamdp.lab.store import Damage

    with _open_study(arguments, create=False) as (study, store):
        damage = store.check()
        units = damaged_units(study, damage.runs)
        count = len(store.all_records())
    for line in damage_lines(units, LEFT_OUT):
        console.remark(line)
    strange = len(damage.runs - {unit.id for _, unit in units})
    others = {
        "identities of runs, which this study does not know": strange,
        "descriptions of settings, which the next run of each restores": len(damage.settings),
        "descriptions of machines, which are unknown from now on": damage.machines,
        "decisions of tuning, which are made again from the runs": damage.decisions,
        "faults of indices, which `bamdp lab run` makes anew": len(damage.indices),
    }
    for what, number in others.items():
        if number:
            console.remark(f"damaged in the store: {number} {what}")
    console.note(
        f"{store.path}: {count} runs are sound" + ("" if damage == Damage() else ", others are damaged")
    )
    return 0 if damage == Damage() else 1


def export_study(arguments: argparse.Namespace) -> int:
    """Write the runs to a portable file, or a table for other programs."""
    from bamdp.lab import exports
    from bamdp.lab.choosing import LEFT_OUT, damage_lines, damaged_units

    writers: dict[str, Callable[..., int]] = {
        "runs": exports.export_runs,
        "csv": exports.write_csv,
        "parquet": exports.write_parquet,
    }
    if arguments.thin and arguments.format != "runs":
        raise ValueError(f"--thin is for --format runs; {arguments.format} has all that there is")
    options = {"thin": True} if arguments.thin else {}
    with _open_study(arguments, create=False) as (study, store):
        path = _path_for(study, arguments.output, EXPORT_ENDINGS[arguments.format])
        count = writers[arguments.format](study, store, path, **options)
        for line in damage_lines(damaged_units(study, store.damaged), LEFT_OUT):
            console.remark(line)
    console.note(f"{count} runs: {path} ({path.stat().st_size / 1e3:.0f} kB)")
    return 0


def import_study(arguments: argparse.Namespace) -> int:
    """Take the runs of a portable file into the store."""
    from bamdp.lab.exports import count_shared_settings, import_runs

    with _open_study(arguments) as (study, store):
        taken = import_runs(store, _path_for(study, arguments.file, EXPORT_ENDINGS["runs"]))
    console.note(f"{taken.new} new runs, {taken.known} were there already")
    if taken.settings and not count_shared_settings(study, taken.settings):
        console.note(
            f"warning: none of them is of {arguments.study}, so it will not use them; are they of another study, or "
            "has this one been changed?"
        )
    if taken.other:
        console.remark(f"{taken.other} were there with other rewards (another machine?); those were kept")
    return 0


@contextmanager
def _open_study(arguments: argparse.Namespace, create: bool = True) -> Iterator[tuple[Study, Store]]:
    """Load the study that is named, and open its store, which is made if need be."""
    from bamdp.lab.store import Store

    study = studies.load_named_study(arguments.study, getattr(arguments, "quick", False))
    with Store(studies.store_path(study, arguments.store), create=create) as store:
        yield study, store


def _path_for(study: Study, path: str | None, ending: str) -> Path:
    """Return the path that is named, or else one that is named after the study.

    That is beside the study's file, or in the working directory for one that ships with the package. A quick study
    has names of its own.
    """
    if path is not None:
        return Path(path)
    assert study.path is not None
    ending = f"-quick{ending}" if study.quick else ending
    if study.path.suffix == ".toml":
        return study.path.with_name(study.path.stem + ending)
    return Path("-".join(study.path.parts) + ending)


def _time_left(cell: CellStatus, more: str) -> str:
    if cell.complete:
        return "done" if cell.done else "failed"
    return "?" if cell.seconds is None else _duration(cell.seconds) + more


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


COMMANDS = {  # the function, the help, and the arguments that other commands have as well
    "new": (
        write_template,
        "Write a study's file to begin with, with comments on everything that can stand in it.",
        (),
    ),
    "run": (run_missing, "Run what a study needs and its store does not have yet.", (*OF_STUDY, "--quick")),
    "status": (
        print_status,
        "What is done, running, missing and failed, and how long the rest will take.",
        (*OF_STUDY, "--quick", "--json"),
    ),
    "report": (report_study, "Tables, figures and a page that opens offline.", (*OF_STUDY, "--quick")),
    "check": (check_study, "Check every page of the store and every run in it.", (*OF_STUDY, "--quick")),
    "export": (export_study, "Write the runs to a portable file, CSV or Parquet.", (*OF_STUDY, "--quick")),
    "import": (import_study, "Take in the runs that export has written.", OF_STUDY),
}
