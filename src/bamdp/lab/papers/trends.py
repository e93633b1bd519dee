"""Does more of it pay? The largest value of each sweep of the ablation against a smaller one that was fixed beforehand.

The reference is Appendix C's value, or the middle of a sweep that does not contain it: were it the best of the sweep,
luck would make the largest value look worse than it is. Both are taken from the study, not from what has been run so
far: a sweep without them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bamdp.lab.comparisons import LEVEL, differences, holm, sign_flip_p
from bamdp.lab.papers.sweeps import Point, base_configuration, has_base, points, value_of, values
from bamdp.lab.results import Results
from bamdp.lab.statistics import Estimate, estimate
from bamdp.lab.tables import Table
from bamdp.lab.tables.notes import warning
from bamdp.lab.tables.table import text, value_interval

RISES, FALLS, FLAT = "rises further", "falls", "no difference seen"
GROWING = ("N", "M", "K", "H", "N-flat")


@dataclass(frozen=True, eq=False)
class Trend:
    """The largest value of a sweep against its reference."""

    environment: str
    sweep: str
    values: str
    reference: str  # Appendix C's value, or the middle of a sweep without it
    largest: str
    difference: Estimate  # largest − reference, paired
    different: bool  # Holm's correction over all trends

    @property
    def word(self) -> str:
        """Rises further, falls, or no difference seen."""
        if not self.different:
            return FLAT
        return RISES if self.difference.value > 0 else FALLS


def trends(results: Results) -> list[Trend]:
    """Of all sweeps that grow, where there is a larger value than the reference's."""
    found = [pair for environment in results.environments for pair in _extremes(results, environment)]
    gaps = [differences(last.sample, reference.sample) for _, reference, last, _ in found]
    adjusted = holm([sign_flip_p(gap) for gap in gaps])
    return [
        Trend(
            environment,
            last.sweep,
            f"{planned[0]:g} … {planned[-1]:g}",
            reference.label,
            last.label,
            estimate(lambda x, axis: x.mean(axis), gap),
            bool(p <= LEVEL),
        )
        for (environment, reference, last, planned), gap, p in zip(found, gaps, adjusted)
    ]


def trend_tables(results: Results) -> list[Table]:
    """As a table, if there are any."""
    found = trends(results)
    return [_table(found, warning(results))] if found else []


def _table(found: Sequence[Trend], warned: str) -> Table:
    rows = tuple(
        (
            text(trend.environment),
            text(trend.sweep),
            text(trend.values),
            text(f"{trend.largest} less {trend.reference}"),
            value_interval(trend.difference, 2),
            text(trend.word),
        )
        for trend in found
    )
    return Table(
        "trends",
        "Does more of it pay? The largest value of each sweep less Appendix C's (or, of N-flat, the middle one)",
        ("environment", "sweep", "values", "compared", "difference of totals", "verdict"),
        rows,
        "lllrrl",
        (
            "Paired on common luck, bootstrap 95% interval. Verdict: sign flips, Holm's correction over all rows, 5%.",
        ),
        (),
        warned,
    )


def _extremes(results: Results, environment: str) -> Iterator[tuple[str, Point, Point, list[Any]]]:
    """Reference and largest value as the study has them; sweeps of which one has not been run are left out."""
    for sweep in GROWING:
        planned = values(sweep, environment)
        held = {p.value: p for p in points(results, environment) if p.sweep == sweep}
        if len(planned) < 2:
            continue
        home = value_of(sweep, base_configuration(environment))
        reference = home if has_base(sweep, environment) else planned[len(planned) // 2]
        if reference != planned[-1] and {reference, planned[-1]} <= set(held):
            yield environment, held[reference], held[planned[-1]], planned
