"""Does more of it pay, and up to where? Both halves of each sweep of the ablation, around a value fixed beforehand.

That value is Appendix C's, or the middle of a sweep that does not contain it: were it the best of the sweep, luck
would make the others look worse than they are. A sweep that rises up to it and not beyond has its plateau there.
Both ends are taken from the study, not from what has been run so far: a half without them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bamdp.lab.comparisons import SIGNIFICANCE_LEVEL, differences, holm, sign_flip_p
from bamdp.lab.papers.sweeps import Point, base_configuration, has_base, points, value_of, values
from bamdp.lab.results import Results
from bamdp.lab.statistics import Estimate, estimate
from bamdp.lab.tables import ResultTable
from bamdp.lab.tables.table import text_cell, value_interval_cell

RISES, FALLS, FLAT = "rises", "falls", "no difference seen"
PERHAPS_RISES, PERHAPS_FALLS = "perhaps rises", "perhaps falls"
UP_TO, BEYOND = "up to", "beyond"
GROWING = ("N", "M", "K", "H", "N-one-stage", "M-one-stage")


@dataclass(frozen=True, eq=False)
class Trend:
    """One half of a sweep: from its smallest value up to the reference, or from there to its largest."""

    environment: str
    sweep: str
    half: str
    low: str
    high: str
    difference: Estimate  # high − low, paired
    different: bool  # Holm's correction over all trends

    @property
    def word(self) -> str:
        """Rises or falls, perhaps so if only the interval says it, or no difference seen."""
        if self.different:
            return RISES if self.difference.value > 0 else FALLS
        if self.difference.low <= 0 <= self.difference.high:
            return FLAT
        return PERHAPS_RISES if self.difference.low > 0 else PERHAPS_FALLS


def trends(results: Results) -> list[Trend]:
    """Of all sweeps that grow, where there is a smaller or a larger value than the reference."""
    found = [half for environment in results.environments for half in _halves(results, environment)]
    gaps = [differences(high.sample, low.sample) for _, low, high in found]
    adjusted = holm([sign_flip_p(gap, len(gaps)) for gap in gaps])
    return [
        Trend(
            low.sample.environment,
            low.sweep,
            half,
            low.label,
            high.label,
            estimate(np.mean, gap),
            bool(p <= SIGNIFICANCE_LEVEL),
        )
        for (half, low, high), gap, p in zip(found, gaps, adjusted)
    ]


def trend_tables(results: Results) -> list[ResultTable]:
    """As a table, if there are any."""
    found = trends(results)
    return [_table(found, results.warning)] if found else []


def _table(found: Sequence[Trend], warned: str) -> ResultTable:
    rows = tuple(
        (
            text_cell(trend.environment),
            text_cell(trend.sweep),
            text_cell(trend.half),
            text_cell(f"{trend.high} less {trend.low}"),
            value_interval_cell(trend.difference, 2),
            text_cell(trend.word),
        )
        for trend in found
    )
    return ResultTable(
        "trends",
        "Does more of it pay, up to Appendix C's value (of N-one-stage and M-one-stage: the middle one), and beyond?",
        ("environment", "sweep", "range", "compared", "difference of totals", "verdict"),
        rows,
        "lllrrl",
        (
            "Paired on common luck, bootstrap 95% interval. Verdict: sign flips, Holm's correction over all rows, 5%; "
            "perhaps: the interval alone, which is not corrected for the number of rows, is on one side of 0.",
        ),
        (),
        warned,
    )


def _halves(results: Results, environment: str) -> Iterator[tuple[str, Point, Point]]:
    """Which half, its lower end and its upper end; of those whose ends have been run."""
    for sweep in GROWING:
        planned = values(sweep, environment)
        if len(planned) < 2:
            continue
        held = {point.value: point for point in points(results, environment) if point.sweep == sweep}
        home = value_of(sweep, base_configuration(environment))
        middle = home if has_base(sweep, environment) else planned[len(planned) // 2]
        for half, low, high in ((UP_TO, planned[0], middle), (BEYOND, middle, planned[-1])):
            if low != high and {low, high} <= set(held):
                yield half, held[low], held[high]
