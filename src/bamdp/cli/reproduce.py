"""``bamdp reproduce TARGET...``: tables and figures of the paper."""

from __future__ import annotations

import argparse
from pathlib import Path

from bamdp import _checks
from bamdp.cli import console, studies

FIGURE3 = "figure3"


def do(given: argparse.Namespace) -> int:
    """The command."""
    from bamdp.lab.papers import TARGETS

    for name in given.targets:
        _checks.one_of(name, "target", [*TARGETS, FIGURE3])
    for name in given.targets:
        if name == FIGURE3:
            _deep_sea(given)
        else:
            _reproduce(name, given)
    return 0


def _deep_sea(given: argparse.Namespace) -> None:
    from bamdp.cli import figure3
    from bamdp.figure3 import CONTESTANTS, CONTESTS

    if given.json:
        raise ValueError(
            f"{FIGURE3} has no JSON form: its runs are in runs.jsonl, in the folder that --output names"
        )
    contests = given.environments or (figure3.QUICK_CONTESTS if given.quick else list(CONTESTS))
    contestants = given.algorithms or (figure3.QUICK_CONTESTANTS if given.quick else list(CONTESTANTS))
    folder = given.output or (figure3.QUICK_FOLDER if given.quick else figure3.FOLDER)
    runs = figure3.QUICK_RUNS if given.quick else figure3.RUNS
    figure3.make(folder, contests, contestants, runs, 1 if given.jobs is None else given.jobs)


def _reproduce(name: str, given: argparse.Namespace) -> None:
    from bamdp.lab.collect import provenance, results
    from bamdp.lab.papers import TARGETS, paper_study
    from bamdp.lab.store import Store

    target = TARGETS[name]
    way = _checks.one_of(given.way, f"way to reproduce {name}", target.studies)
    study = paper_study(target.studies[way], quick=given.quick).only(given.environments, given.algorithms)
    with Store(studies.store_path(study, given.store)) as store:
        studies.run(study, store, given)
        with console.compiling():
            found = results(study, store)
        if given.json:
            console.print_json(studies.results_json(found))
        else:
            studies.show(target.tables(found))
            studies.tell_notes(found)
        if given.output is not None:
            from bamdp.lab.report import write

            command = f"bamdp reproduce {name} --as {way}" + (" --quick" if given.quick else "")
            page = write(found, Path(given.output), provenance=provenance(study, store, [command]))[0]
            console.note(f"report: {page}")
