"""Paired comparisons: everyone against the best of an environment, and all pairs."""

from __future__ import annotations

from dataclasses import replace

from bamdp.lab.comparisons import EXACT_RUNS, Comparison
from bamdp.lab.groups import Group, groups
from bamdp.lab.results import Results
from bamdp.lab.tables.notes import warning
from bamdp.lab.tables.table import MISSING, Cell, Table, decimals, number, p_value, text, value_interval

TEST = (
    "Paired sign-flip test of the mean difference on common replicates, two-sided: all patterns of signs up to "
    f"{EXACT_RUNS} runs, {2**EXACT_RUNS} drawn ones or more beyond. p (Holm): corrected for all pairs of the "
    "environment. Intervals: bootstrap 95%, of each pair alone."
)


def against_best(results: Results, environment: str) -> tuple[Table, ...]:
    """The best algorithm less each of the others, a table for each horizon."""
    found = [g for g in groups(results) if g.environment == environment and len(g.named) > 1 and g.best]
    return tuple(_against_best(results, group) for group in found)


def all_pairs(results: Results) -> Table:
    """Every pair in every environment."""
    rows = [(text(group.label), *_row(pair)) for group in groups(results) for pair in group.compared]
    header = ("environment", "first", "second", "runs", "first − second", "p", "p (Holm)", "different")
    return Table(
        "pairs", "All paired comparisons", header, tuple(rows), "lllrrrrl", (TEST,), (), warning(results)
    )


def _against_best(results: Results, group: Group) -> Table:
    pairs = [_turned(pair, group.best) for pair in group.compared if group.best in (pair.first, pair.second)]
    rows = sorted((_row(pair) for pair in pairs), key=lambda row: group.ranked.index(row[1].text))
    return Table(
        f"compared_{group.stem}",
        f"{group.label}: {group.best} less each of the others",
        ("first", "second", "runs", "first − second", "p", "p (Holm)", "different"),
        tuple(rows),
        "llrrrrl",
        (TEST,),
        (),
        warning(results),
    )


def _turned(pair: Comparison, first: str | None) -> Comparison:
    """The same with ``first`` first."""
    if pair.first == first:
        return pair
    return replace(pair, first=pair.second, second=pair.first, difference=pair.gain(pair.second))


def _row(pair: Comparison) -> tuple[Cell, ...]:
    shown = decimals([(pair.difference.high - pair.difference.low) / 4])
    return (
        text(pair.first),
        text(pair.second),
        number(pair.runs, str(pair.runs)),
        value_interval(pair.difference, shown),
        p_value(pair.p),
        p_value(pair.adjusted),
        text(("yes" if pair.distinguishable else "no") if pair.runs else MISSING),
    )
