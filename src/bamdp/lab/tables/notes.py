"""What is said under tables: how to read them, and what they cannot tell."""

from __future__ import annotations

from collections.abc import Iterable

from bamdp.lab.groups import Group
from bamdp.lab.results import Results, Sample

QUICK = "Quick run: few runs and short horizons, to see that it works. These numbers are not results."
MARKS = (
    "Bold: the highest mean. ≈: not distinguishable from it (paired sign-flip test on common replicates, "
    "Holm's correction over all pairs of an environment, 5%)."
)
MANY = 5  # cells that are named one by one
FEW_RUNS = 10  # bootstrap intervals of fewer are noticeably too narrow


def warning(results: Results) -> str:
    """What must stand above anything made of these results."""
    return QUICK if results.quick else ""


def remarks(results: Results) -> list[str]:
    """The study's notes, and what is missing: cell by cell, or in one line if they are many."""
    waiting = list(results.waiting.values())
    if len(waiting) > MANY:
        waiting = [f"{len(waiting)} cells are not complete, see the table."]
    return [*results.notes, *waiting]


def length_note(columns: Iterable[Group]) -> str:
    """How many runs, of how many steps."""
    runs = [sample.runs for group in columns for sample in group.samples if sample.runs]
    steps = ", ".join(f"{group.label} {group.horizon}" for group in columns)
    return f"Runs a cell: {_span(runs)}. Steps a run: {steps}."


def blind_notes(columns: Iterable[Group]) -> list[str]:
    """Where so few runs are common that the test cannot tell anything apart."""
    blind = ", ".join(group.label for group in columns if group.blind)
    return [f"{blind}: too few common runs for any difference to pass the corrected test."] if blind else []


def so_far_notes(columns: Iterable[Group]) -> list[str]:
    """Where rows are shown although they have not all their runs, since none of the environment has."""
    early = ", ".join(group.label for group in columns if any(not s.complete for s in group.samples))
    return [f"{early}: not all runs are there; means are of those that are."] if early else []


def narrow_notes(group: Group) -> list[str]:
    """Where intervals promise too much."""
    few = any(1 < sample.runs < FEW_RUNS for sample in group.samples)
    return [f"Bootstrap intervals of fewer than {FEW_RUNS} runs are too narrow."] if few else []


def trouble_notes(columns: Iterable[Group]) -> list[str]:
    """Runs that failed, and configurations that are over a limit."""
    found = [(group, name, sample) for group in columns for name, sample in group.named.items()]
    notes = [
        f"{group.label}, {name}: {_failed(s)} ({s.failures[0]})."
        for group, name, s in found
        if s.failures and "failed" not in s.excluded  # which says the same
    ]
    return notes + [f"{group.label}, {name}: {s.excluded}." for group, name, s in found if s.excluded]


def _failed(sample: Sample) -> str:
    return f"{len(sample.failures)} of {sample.runs + len(sample.failures)} runs failed"


def _span(counts: list[int]) -> str:
    if not counts:
        return "none"
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
