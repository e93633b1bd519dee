"""``bamdp reproduce TARGET...``: tables and figures of the paper.

Targets that need the same study share it: it is run, or read from exported files, once.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp.cli import console, studies
from bamdp.cli.reproduce_checks import FIGURE3, FLAGS, PAGE, check, parts_of

if TYPE_CHECKING:
    from bamdp.lab.papers import Target
    from bamdp.lab.papers.library import Parts
    from bamdp.lab.results import Provenance, Results
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study

FOLDER = Path("out/reproduction")  # of figures, where no other is named
FIGURES = ("png", "svg")
TABLES = ("md", "csv", "tex")


def do(given: argparse.Namespace) -> int:
    """The command."""
    wanted = check(given)
    by_target = parts_of(wanted, given)
    if FIGURE3 in given.targets:
        _deep_sea(given)
    if wanted:
        _reproduce(wanted, by_target, given)
    if PAGE in given.targets:
        _page(given)
    return 0


def _page(given: argparse.Namespace) -> None:
    """The page on all of it, of exported files."""
    from bamdp.lab.papers.page import publish

    with console.compiling():
        written = publish(given.exports, given.output or ".", quick=given.quick)
    for path in written:
        console.note(f"written: {path}")


def _deep_sea(given: argparse.Namespace) -> None:
    from bamdp.cli import figure3
    from bamdp.figure3 import CONTESTANTS, CONTESTS

    contests = given.environments or (figure3.QUICK_CONTESTS if given.quick else list(CONTESTS))
    contestants = given.algorithms or (figure3.QUICK_CONTESTANTS if given.quick else list(CONTESTANTS))
    folder = given.output or (figure3.QUICK_FOLDER if given.quick else figure3.FOLDER)
    runs = figure3.QUICK_RUNS if given.quick else figure3.RUNS
    figure3.make(folder, contests, contestants, runs, 1 if given.jobs is None else given.jobs)


def _reproduce(wanted: dict[str, Target], by_target: dict[str, Parts], given: argparse.Namespace) -> None:
    from bamdp.lab.collect import collect_provenance, collect_results
    from bamdp.lab.results import merge_results

    needed = {name: study for found in by_target.values() for name, study in found.studies.items()}
    for name in dict.fromkeys(name for found in by_target.values() for name in found.left_out):
        console.note(f"note: {name} chooses for all environments together, so it is left out")
    with _stores(needed, given) as stores:
        with console.compiling():
            found = {name: collect_results(study, stores[name]) for name, study in needed.items()}
        sources = {
            name: collect_provenance(study, stores[name], [_command(given)]) for name, study in needed.items()
        }
        whole = {
            name: merge_results([found[study] for study in held.studies]) for name, held in by_target.items()
        }
        if given.json:
            console.print_json(_json(wanted, whole, found))
        else:
            _show(wanted, whole)
        _write(wanted, whole, found, sources, given)


@contextmanager
def _stores(needed: dict[str, Study], given: argparse.Namespace) -> Iterator[dict[str, Store]]:
    """For each study a store in which all runs are that there can be: read from files, or made now."""
    from bamdp.lab.papers.exports import opened
    from bamdp.lab.store import Store

    if given.exports:
        with opened(given.exports) as exports:
            yield {name: exports.of(name) for name in needed}
        return
    first = next(iter(needed.values()))
    with Store(studies.store_path(first, given.store)) as store:
        for study in needed.values():
            studies.run(study, store, given)
        yield dict.fromkeys(needed, store)


def _show(wanted: dict[str, Target], whole: dict[str, Results]) -> None:

    tables = [table for name, target in wanted.items() for table in target.tables(whole[name])]
    studies.show(dict.fromkeys(tables))  # targets may have one in common
    for line in dict.fromkeys(line for results in whole.values() for line in results.remarks):
        console.note(f"note: {line}")


def _json(wanted: dict[str, Target], whole: dict[str, Results], found: dict[str, Results]) -> dict[str, Any]:
    """Tables of each target, and of each study all that there is."""
    return {
        "quick": any(results.quick for results in found.values()),
        "targets": {
            name: [studies.table_json(table) for table in target.tables(whole[name])]
            for name, target in wanted.items()
        },
        "studies": {name: studies.results_json(results) for name, results in found.items()},
    }


def _write(
    wanted: dict[str, Target],
    whole: dict[str, Results],
    found: dict[str, Results],
    sources: dict[str, Provenance],
    given: argparse.Namespace,
) -> None:
    """Figures, and with --output all tables and a report of each study."""
    from bamdp.lab.figures import save_figure
    from bamdp.lab.report import write_report
    from bamdp.lab.tables import TABLE_WRITERS

    folder = FOLDER if given.output is None else Path(given.output)
    for name, target in wanted.items():
        for picture in target.pictures(whole[name]):
            paths = save_figure(picture.draw(), folder / picture.stem, FIGURES)
            console.note(f"{name}: {', '.join(map(str, paths))}")
        if given.output is None:
            continue
        for table in target.tables(whole[name]):
            for ending in TABLES:
                path = folder / name / f"{table.name}.{ending}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(TABLE_WRITERS[ending](table), encoding="utf-8")
    if given.output is not None:
        for study, results in found.items():
            if results.samples:
                page = write_report(results, folder / study, provenance=sources[study])[0]
                console.note(f"report: {page}")


def _command(given: argparse.Namespace) -> str:
    """How to get it again."""
    words = ["bamdp", "reproduce", *given.targets, *(["--quick"] if given.quick else [])]
    for name in ("way", "environments", "algorithms", "exports"):
        value = getattr(given, name)
        if value is not None:
            words += [FLAGS[name], *([value] if isinstance(value, str) else value)]
    return shlex.join(words)
