"""What may stand in one column: only rows with as many runs as the environment asks for. The others have a table.

An environment in which no row is complete yet has its rows so far, all marked, so that a running study can be looked
at (:func:`comparable`); what is published has complete rows only (:func:`complete`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from bamdp.lab.groups import groups
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, names
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables import Cell, Table
from bamdp.lab.tables.notes import trouble_notes, warning
from bamdp.lab.tables.table import MISSING, decimals, mean_error, number, text

APART = "Fewer runs than their environment asks for, so not beside complete rows."


def merged(parts: Sequence[Results]) -> Results:
    """Several studies of the same environments as one."""
    if not parts:
        raise ValueError("there is nothing to merge")
    lengths: dict[str, int] = {}
    for part in parts:
        for label, steps in part.horizons.items():
            if lengths.setdefault(label, steps) != steps:
                raise ValueError(f"studies with different steps in {label} cannot stand in one table")
    return Results(
        parts[0].title,
        tuple(chain.from_iterable(part.samples for part in parts)),
        {label: known for part in parts for label, known in part.ceilings.items()},
        any(part.quick for part in parts),
        tuple(dict.fromkeys(chain.from_iterable(part.notes for part in parts))),
        lengths,
        tuple(chain.from_iterable(part.cells for part in parts)),
        {cell: line for part in parts for cell, line in part.waiting.items()},
    )


def complete(results: Results) -> Results:
    """Without evaluations that have fewer runs than they should."""
    kept = tuple(s for s in results.samples if s.phase != EVALUATE or s.complete)
    return replace(results, samples=kept)


def comparable(results: Results) -> Results:
    """The complete evaluations of each environment, or all of its evaluations so far if none is complete."""
    settled = {s.environment for s in results.select(EVALUATE) if s.complete}
    kept = (s for s in results.samples if s.phase != EVALUATE or s.complete or s.environment not in settled)
    return replace(results, samples=tuple(kept))


def unfinished(results: Results) -> list[Table]:
    """A row for every cell that is not complete, or configuration of one; no table if there is none."""
    rows: list[tuple[Cell, ...]] = []
    for environment, algorithm in results.cells or _own_cells(results):
        found = results.select(EVALUATE, environment, algorithm)
        rows += [_row(name, sample) for name, sample in zip(names(found), found) if not sample.complete]
        if not found:
            words = _why(results, environment, algorithm)
            rows.append((text(environment), text(algorithm), text(words), text(MISSING), text(MISSING)))
    if not rows:
        return []
    apart = replace(results, samples=tuple(s for s in results.select(EVALUATE) if not s.complete))
    return [
        Table(
            "unfinished",
            "Too slow or unfinished here",
            ("environment", "algorithm", "runs", "total reward", "ms/step"),
            tuple(rows),
            "llrrr",
            (APART, *trouble_notes(groups(apart))),
            (),
            warning(results),
        )
    ]


def _own_cells(results: Results) -> tuple[tuple[str, str], ...]:
    """Of results that do not say which cells their study has."""
    return tuple(dict.fromkeys((s.environment, s.algorithm) for s in results.select(EVALUATE)))


def _why(results: Results, environment: str, algorithm: str) -> str:
    tuned = results.select(TUNE, environment, algorithm)
    return "all excluded" if tuned and all(sample.excluded for sample in tuned) else "no runs"


def _row(name: str, sample: Sample) -> tuple[Cell, ...]:
    error = standard_error(sample.totals)
    held = sample.runs > 0
    failed = f" ({len(sample.failures)} failed)" if sample.failures else ""
    return (
        text(sample.environment),
        text(name),
        number(sample.runs, f"{sample.runs} of {max(sample.asked, 1)}{failed}"),
        mean_error(float(sample.totals.mean()), error, decimals([error])) if held else text(MISSING),
        number(float(sample.ms_per_step.mean())) if held else text(MISSING),
    )
