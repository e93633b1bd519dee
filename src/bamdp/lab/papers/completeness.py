"""What may stand in one column: only rows with as many runs as the environment asks for. The others have a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables import Cell, Table
from bamdp.lab.tables.notes import warning
from bamdp.lab.tables.table import MISSING, decimals, mean_error, number, text

UNFINISHED = "Too slow or unfinished here"


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
    )


def complete(results: Results) -> Results:
    """Without evaluations that have fewer runs than they should."""
    kept = tuple(s for s in results.samples if s.phase != EVALUATE or s.complete)
    return replace(results, samples=kept)


def unfinished(results: Results) -> list[Table]:
    """A row for every cell that is not in the table of the complete ones; no table if there is none."""
    rows: list[tuple[Cell, ...]] = []
    for environment, algorithm in results.cells:
        found = results.select(EVALUATE, environment, algorithm)
        rows += [_row(sample) for sample in found if not sample.complete]
        if not found:
            rows.append((text(environment), text(algorithm), text("no runs"), text(MISSING), text(MISSING)))
    if not rows:
        return []
    return [
        Table(
            "unfinished",
            UNFINISHED,
            ("environment", "algorithm", "runs", "total reward", "ms/step"),
            tuple(rows),
            "llrrr",
            ("Fewer runs than the others of their environment have, so not in the same table.",),
            (),
            warning(results),
        )
    ]


def _row(sample: Sample) -> tuple[Cell, ...]:
    error = standard_error(sample.totals)
    held = sample.runs > 0
    return (
        text(sample.environment),
        text(sample.algorithm),
        number(sample.runs, f"{sample.runs} of {sample.asked}"),
        mean_error(float(sample.totals.mean()), error, decimals([error])) if held else text(MISSING),
        number(float(sample.ms_per_step.mean())) if held else text(MISSING),
    )
