"""``bamdp reproduce figure3``: the deep-sea comparison, a table, a picture and the records of all runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bamdp import _checks
from bamdp.cli import console
from bamdp.figure3 import (
    CONTESTANTS,
    CONTESTS,
    PAPER,
    Record,
    collect,
    draw,
    read_records,
    records_of,
    summary,
)

FOLDER, RUNS = "results/figure3", 10
QUICK_FOLDER, QUICK_RUNS = "out/figure3-quick", 2
QUICK_CONTESTS = ["episode-10"]
QUICK_CONTESTANTS = ["dss-sparse", "psrl-sparse", "rmax", "dss-flat"]


def make(folder: str, contests: Sequence[str], contestants: Sequence[str], runs: int, jobs: int) -> None:
    """Run what is asked for and the folder does not have; print and draw all that it then has."""
    _checks.integer(runs, "runs")
    _checks.integer(jobs, "jobs")
    for name in contests:
        _checks.one_of(name, "contest", CONTESTS)
    for name in contestants:
        _checks.one_of(name, "contestant", CONTESTANTS)
    target = Path(folder)
    with console.compiling():
        found = collect(target / "runs.jsonl", contests, contestants, runs, jobs, _tell)
    if not found:
        raise ValueError("none of these contestants competes in these contests")
    kept = read_records(target / "runs.jsonl")
    records = [
        r for name in CONTESTS for who in CONTESTS[name].contestants for r in records_of(kept, name, who)
    ]
    _print(records)
    draw(records, target / "figure3.png")
    console.note(f"figure: {target / 'figure3.png'}")


def _tell(record: Record) -> None:
    console.note(
        f"{record.contest:<14} {record.contestant:<12} run {record.replicate}: {len(record.bad)} bad episodes, "
        f"{record.seconds:.1f} s"
    )


def _print(records: Sequence[Record]) -> None:
    rows = []
    for line in summary(records):
        paper = PAPER.get((line.contest, line.contestant))
        rows.append(
            [
                line.contest,
                CONTESTANTS[line.contestant].label,
                f"{line.mean:.1f}" + ("" if math.isnan(line.half_width) else f" ± {line.half_width:.1f}"),
                f"{line.low}–{line.high}",
                str(line.runs),
                "" if paper is None else str(paper),
                f"{line.seconds:.1f}",
            ]
        )
    columns = ("contest", "agent", "bad episodes", "range", "runs", "paper", "CPU s")
    title = "Total bad episodes, mean ± half-width of the 95% interval"
    console.print_table(columns, rows, title, numbers=columns[2:])
