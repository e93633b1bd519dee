"""``bamdp reproduce TARGET...``: tables and figures of the paper.

Targets that need the same study share it: it is run, or read from exported files, once. Whatever is wrong with the
arguments is reported before anything is run.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bamdp import _checks
from bamdp.cli import console, options, studies

if TYPE_CHECKING:
    from bamdp.lab.papers import StudyParts, Target
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study

FIGURE_FOLDER = Path("out/reproduction")  # unless --output names another
IMAGE_FORMATS = ("png", "svg")
RUNNING_OPTIONS = {
    "store": "--store",
    "jobs": "--jobs",
    "cluster": "--cluster",
    "retry_failed": "--retry-failed",
}
CHOOSING_OPTIONS = {
    "way": "--as",
    "environments": "--environments",
    "algorithms": "--algorithms",
    "exports": "--from",
}


def reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp reproduce``."""
    parser.epilog = "Example: bamdp reproduce table1 table2 figure2 --quick --jobs 2"
    help = "table1, table2, figure2, figure3, ablation"
    parser.add_argument("targets", metavar="TARGET", nargs="+", help=help)
    help = "published (Appendix C's parameters) or fair (every algorithm tuned alike; default: published)"
    parser.add_argument("--as", dest="way", metavar="WAY", help=help)
    parser.add_argument("--environments", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    help = "also write tables, figures and reports (figures without it: out/reproduction)"
    parser.add_argument("--output", metavar="FOLDER", help=help)
    help = "of exported files or folders with them, such as results/dss2020; nothing is run"
    parser.add_argument("--from", dest="exports", nargs="+", metavar="PATH", help=help)
    options.add(parser, "--quick")
    options.add_study_running(parser)
    options.add(parser, "--store", "--json")


def reproduce_command(arguments: argparse.Namespace) -> int:
    """Run or read the studies that the targets need, and show and write what was asked for."""
    from bamdp.lab.collect import collect_provenance, collect_results
    from bamdp.lab.figures import save_figure
    from bamdp.lab.report import TABLE_FORMATS, write_report
    from bamdp.lab.results import merge_results
    from bamdp.lab.tables.table import write_table

    targets = _targets(arguments)
    by_target = _parts_of(targets, arguments)
    needed = {name: study for parts in by_target.values() for name, study in parts.studies.items()}
    for name in dict.fromkeys(name for parts in by_target.values() for name in parts.left_out):
        console.remark(f"{name} chooses for all environments together, so it is left out")
    with _stores(needed, arguments) as stores:
        with console.compiling():
            by_study = {name: collect_results(study, stores[name]) for name, study in needed.items()}
        merged = {
            name: merge_results([by_study[study] for study in parts.studies])
            for name, parts in by_target.items()
        }
        tables = {name: list(target.tables(merged[name])) for name, target in targets.items()}
        if arguments.json:
            console.print_json(
                {
                    "quick": any(results.quick for results in by_study.values()),
                    "targets": {name: [studies.table_json(t) for t in made] for name, made in tables.items()},
                    "studies": {name: studies.results_json(results) for name, results in by_study.items()},
                }
            )
        else:  # targets may have a table in common, which is printed once
            studies.show(dict.fromkeys(t for made in tables.values() for t in made), *merged.values())
        folder = FIGURE_FOLDER if arguments.output is None else Path(arguments.output)
        for name, target in targets.items():
            for picture in target.pictures(merged[name]):
                paths = save_figure(picture.draw(), folder / picture.stem, IMAGE_FORMATS)
                console.note(f"{name}: {', '.join(map(str, paths))}")
        if arguments.output is not None:
            for name, made in tables.items():
                for table in made:
                    write_table(table, folder / name, TABLE_FORMATS)
            for name, results in by_study.items():
                if results.samples:
                    source = collect_provenance(needed[name], stores[name], [_command_line(arguments)])
                    page = write_report(results, folder / name, provenance=source)[0]
                    console.note(f"report: {page}")
    return 0


def _targets(arguments: argparse.Namespace) -> dict[str, Target]:
    """Return the targets by name; a misspelt name, or an option that would be ignored, is an error."""
    from bamdp.lab.papers import TARGETS, WAYS

    for name in arguments.targets:
        _checks.one_of(name, "target", TARGETS)
    if arguments.way is not None:
        _checks.one_of(arguments.way, "way to reproduce", WAYS)
    ignored = [
        flag for name, flag in RUNNING_OPTIONS.items() if getattr(arguments, name) not in (None, False)
    ]
    if arguments.exports and ignored:
        raise ValueError(f"--from runs nothing; drop {', '.join(ignored)}")
    return {name: TARGETS[name] for name in arguments.targets}


def _parts_of(targets: dict[str, Target], arguments: argparse.Namespace) -> dict[str, StudyParts]:
    """Return the parts of studies that each target needs; an error names the target that lacks what is asked for."""
    from bamdp.lab.papers import PUBLISHED, study_parts

    by_target = {}
    for name, target in targets.items():
        names = target.studies[arguments.way or PUBLISHED]
        try:
            by_target[name] = study_parts(
                names, arguments.quick, arguments.environments, arguments.algorithms
            )
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return by_target


@contextmanager
def _stores(needed: dict[str, Study], arguments: argparse.Namespace) -> Iterator[dict[str, Store]]:
    """Open a store for each study: with the runs of exported files, or with those that are there or made now."""
    from bamdp.lab.exports import open_exports
    from bamdp.lab.store import Store

    if arguments.exports:
        with open_exports(arguments.exports) as exports:
            yield {name: exports.store_of(name) for name in needed}
        return
    first = next(iter(needed.values()))
    with Store(studies.store_path(first, arguments.store)) as store:
        for study in needed.values():
            studies.run(study, store, arguments)
        yield dict.fromkeys(needed, store)


def _command_line(arguments: argparse.Namespace) -> str:
    """Return the command line that makes the same again."""
    words = ["bamdp", "reproduce", *arguments.targets, *(["--quick"] if arguments.quick else [])]
    for name, flag in CHOOSING_OPTIONS.items():
        value = getattr(arguments, name)
        if value is not None:
            words += [flag, *([value] if isinstance(value, str) else value)]
    return shlex.join(words)
