"""Commands for studies: ``bamdp lab new|run|status|report|export``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp.cli import console, options, studies

if TYPE_CHECKING:
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study

OF_STUDY = ("study", "--store", "--quick")


def lab_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``bamdp lab`` with their arguments."""
    parser.epilog = (
        "A study is a TOML file: `bamdp lab new study.toml` writes one to begin with. Or it is the name of one that "
        "ships, such as dss2020/published; an unknown name is answered with all of them."
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
    parsers["new"].add_argument(
        "file", metavar="FILE", nargs="?", default="study.toml", help="default: study.toml"
    )
    options.add_study_running(parsers["run"])
    parsers["report"].add_argument("--output", metavar="FOLDER", help="default: STUDY-report")
    parsers["export"].add_argument("--output", metavar="FILE", help="default: STUDY.csv")


def lab_command(arguments: argparse.Namespace) -> int:
    """Print the help if no subcommand is given."""
    arguments.parser.print_help()
    return 0


def write_template(arguments: argparse.Namespace) -> int:
    """Write a study template without overwriting an existing file."""
    from importlib.resources import files

    target = Path(arguments.file)
    if target.suffix != ".toml":
        raise ValueError(f"a study's file ends in .toml, got {arguments.file!r}")
    text = files("bamdp.lab").joinpath("templates/study.toml").read_text(encoding="utf-8")
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text.replace("STUDY.toml", shlex.quote(str(target))))
    except FileExistsError:
        raise ValueError(f"{target} is there already; name another file") from None
    console.note(f"wrote {target}; try it with: bamdp lab run {shlex.quote(str(target))} --quick")
    return 0


def run_missing(arguments: argparse.Namespace) -> int:
    """Execute the runs missing from the store; return 1 if any run failed."""
    from bamdp.lab.results import study_status

    with _open_study(arguments) as (study, store):
        studies.run(study, store, arguments)
        cells = study_status(study, store)
    counts = {name: sum(cell[name] for cell in cells) for name in ("done", "failed")}
    console.note(f"{counts['done']} runs are done, {counts['failed']} failed or were stopped: {store.path}")
    broken = [cell for cell in cells if cell["error"]]
    for cell in broken:
        console.remark(f"{cell['algorithm']} in {cell['environment']}: {cell['error']}")
    if broken:
        console.note("with --retry-failed the same command runs them again")
    return 1 if broken else 0


def print_status(arguments: argparse.Namespace) -> int:
    """Print the number of completed, missing and failed runs."""
    from bamdp.lab.results import study_status

    with _open_study(arguments, create=False) as (study, store):
        cells = study_status(study, store)
    if arguments.json:
        console.print_json({"title": study.title, "cells": cells})
        return 0
    names = ("environment", "algorithm", "done", "missing", "failed", "left", "chosen")
    for cell in cells:
        seconds = cell["cpu_seconds_left"]
        cell["left"] = "?" if seconds is None else console.duration(seconds) if seconds else ""
    rows = [[str(cell[name] or "–") for name in names] for cell in cells]
    console.print_table(names, rows, study.title, ("done", "missing", "failed", "left"))
    return 0


def report_study(arguments: argparse.Namespace) -> int:
    """Print the main table and write the report."""
    from bamdp.lab.comparisons import groups
    from bamdp.lab.report import write_report
    from bamdp.lab.results import collect_results
    from bamdp.lab.tables import matrix

    with _open_study(arguments, create=False) as (study, store):
        with console.compiling():
            results = collect_results(study, store)
        if results.runs.empty:
            quick = len(store) > 0 and not study.quick
            hint = (
                "add --quick for those of a quick run" if quick else f"run `bamdp lab run {arguments.study}`"
            )
            raise ValueError(f"{store.path} has no run of this study; {hint}")
        folder = _path_for(study, arguments.output, "-report")
        page = write_report(results, folder, study.source)
    studies.show([matrix(results)] if groups(results) else [], results)
    console.note(f"report: {page}")
    return 0


def export_study(arguments: argparse.Namespace) -> int:
    """Write a table with one row per run."""
    from bamdp.lab.results import collect_results, export_runs

    with _open_study(arguments, create=False) as (study, store):
        results = collect_results(study, store)
    path = _path_for(study, arguments.output, ".csv")
    export_runs(results, path)
    console.note(f"{len(results.runs)} runs: {path}")
    return 0


@contextmanager
def _open_study(arguments: argparse.Namespace, create: bool = True) -> Iterator[tuple[Study, Store]]:
    """Load the study and open its store, creating the store if necessary."""
    from bamdp.lab.reading import load_study
    from bamdp.lab.store import Store

    study = load_study(arguments.study, quick=arguments.quick)
    with Store(studies.store_path(study, arguments.store), create=create) as store:
        yield study, store


def _path_for(study: Study, path: str | None, ending: str) -> Path:
    """Return the given path, or by default one derived from the study's name and marked if the study is quick."""
    if path is not None:
        return Path(path)
    assert study.path is not None
    ending = f"-quick{ending}" if study.quick else ending
    stem = study.path.with_suffix("") if study.path.suffix == ".toml" else Path("-".join(study.path.parts))
    return stem.with_name(stem.name + ending)


COMMANDS: dict[str, tuple[Any, str, tuple[str, ...]]] = {  # name: (function, help text, shared arguments)
    "new": (write_template, "Write a commented study file to begin with.", ()),
    "run": (run_missing, "Run what a study needs and its store does not have yet.", OF_STUDY),
    "status": (
        print_status,
        "How many runs are done, missing and failed, and how long the rest will take.",
        (*OF_STUDY, "--json"),
    ),
    "report": (report_study, "Tables, figures and a page that opens offline.", OF_STUDY),
    "export": (export_study, "Write the runs as CSV, one row for each.", OF_STUDY),
}
