"""``bamdp reproduce TARGET...``: tables and figures of the paper.

Targets that need the same study share it: it is run, or read from exported files, once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp import _checks
from bamdp.cli import console, studies

if TYPE_CHECKING:
    from bamdp.lab.papers import Target
    from bamdp.lab.results import Provenance, Results
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study

FIGURE3, PAGE = "figure3", "page"
FOLDER = Path("out/reproduction")  # of figures, where no other is named
FIGURES = ("png", "svg")
MANY = 5  # notes of one kind
TABLES = ("md", "csv", "tex")


def do(given: argparse.Namespace) -> int:
    """The command."""
    from bamdp.lab.papers import TARGETS, WAYS

    for name in given.targets:
        _checks.one_of(name, "target", [*TARGETS, FIGURE3, PAGE])
    _checks.one_of(given.way, "way to reproduce", WAYS)
    if FIGURE3 in given.targets:
        _deep_sea(given)
    wanted = {name: TARGETS[name] for name in given.targets if name in TARGETS}
    if wanted:
        _reproduce(wanted, given)
    if PAGE in given.targets:
        _page(given)
    return 0


def _page(given: argparse.Namespace) -> None:
    """The page on all of it, of exported files."""
    from bamdp.lab.papers.page import publish

    if not given.exports:
        raise ValueError("the page is made of exported files alone; say which: --from results/dss2020")
    if given.json or given.environments or given.algorithms:
        raise ValueError("the page is one whole; drop --json, --environments and --algorithms")
    if given.quick and given.output is None:
        raise ValueError(
            "quick runs are no results to publish; name a copy of the repository with --output to try it"
        )
    with console.compiling():
        written = publish(given.exports, given.output or ".", quick=given.quick)
    for path in written:
        console.note(f"written: {path}")


def _deep_sea(given: argparse.Namespace) -> None:
    from bamdp.cli import figure3
    from bamdp.figure3 import CONTESTANTS, CONTESTS

    if given.json:
        raise ValueError(
            f"{FIGURE3} has no JSON form: its runs are in runs.jsonl, in the folder that --output names"
        )
    if given.exports:
        raise ValueError(
            f"{FIGURE3} has no exports: it goes on from runs.jsonl, in the folder that --output names"
        )
    contests = given.environments or (figure3.QUICK_CONTESTS if given.quick else list(CONTESTS))
    contestants = given.algorithms or (figure3.QUICK_CONTESTANTS if given.quick else list(CONTESTANTS))
    folder = given.output or (figure3.QUICK_FOLDER if given.quick else figure3.FOLDER)
    runs = figure3.QUICK_RUNS if given.quick else figure3.RUNS
    figure3.make(folder, contests, contestants, runs, 1 if given.jobs is None else given.jobs)


def _reproduce(wanted: dict[str, Target], given: argparse.Namespace) -> None:
    from bamdp.lab.collect import provenance, results
    from bamdp.lab.papers import parts
    from bamdp.lab.papers.completeness import merged

    by_target = {
        name: parts(target.studies[given.way], given.quick, given.environments, given.algorithms)
        for name, target in wanted.items()
    }
    needed = {name: study for found in by_target.values() for name, study in found.items()}
    if given.environments and not given.algorithms:
        for name in dict.fromkeys(name for target in wanted.values() for name in target.studies[given.way]):
            if name not in needed:
                console.note(f"note: {name} chooses for all environments together, so it is left out")
    with _store(needed, given) as store:
        with console.compiling():
            found = {name: results(study, store) for name, study in needed.items()}
        sources = {name: provenance(study, store, [_command(given)]) for name, study in needed.items()}
        whole = {name: merged([found[study] for study in held]) for name, held in by_target.items()}
        if given.json:
            console.print_json(_json(wanted, whole, found))
        else:
            _show(wanted, whole)
        _write(wanted, whole, found, sources, given)


@contextmanager
def _store(needed: dict[str, Study], given: argparse.Namespace) -> Iterator[Store]:
    """A store in which all runs are that there can be: read from files, or made now."""
    from bamdp.lab.papers.exports import opened
    from bamdp.lab.store import Store

    if given.exports:
        if given.store or given.cluster or given.jobs is not None or given.retry_failed:
            raise ValueError("--from runs nothing; drop --store, --jobs, --cluster and --retry-failed")
        with opened(given.exports) as store:
            yield store
        return
    first = next(iter(needed.values()))
    with Store(studies.store_path(first, given.store)) as store:
        for study in needed.values():
            studies.run(study, store, given)
        yield store


def _show(wanted: dict[str, Target], whole: dict[str, Results]) -> None:
    tables = [table for name, target in wanted.items() for table in target.tables(whole[name])]
    studies.show(dict.fromkeys(tables))  # targets may have one in common
    for line in _few(list(dict.fromkeys(line for results in whole.values() for line in results.notes))):
        console.note(f"note: {line}")


def _few(notes: list[str]) -> list[str]:
    """Many unfinished cells in one line: a table lists them."""
    waiting = [line for line in notes if ": not complete, " in line]
    if len(waiting) <= MANY:
        return notes
    return [
        *(line for line in notes if line not in waiting),
        f"{len(waiting)} cells are not complete, see the table",
    ]


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
    from bamdp.lab.figures import save
    from bamdp.lab.report import write
    from bamdp.lab.tables import FORMATS

    folder = FOLDER if given.output is None else Path(given.output)
    for name, target in wanted.items():
        for picture in target.pictures(whole[name]):
            paths = save(picture.draw(), folder / picture.stem, FIGURES)
            console.note(f"{name}: {', '.join(map(str, paths))}")
        if given.output is None:
            continue
        for table in target.tables(whole[name]):
            for ending in TABLES:
                path = folder / name / f"{table.name}.{ending}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(FORMATS[ending](table), encoding="utf-8")
    if given.output is not None:
        for study, results in found.items():
            if results.samples:
                page = write(results, folder / study, provenance=sources[study])[0]
                console.note(f"report: {page}")


def _command(given: argparse.Namespace) -> str:
    """How to get it again."""
    options = [f"--as {given.way}", *(["--quick"] if given.quick else [])]
    return " ".join(["bamdp reproduce", *given.targets, *options])
