"""Tables of the page that say whether something holds: targets, what a choice of prior is worth, plateaus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bamdp.lab.comparisons import LEVEL, differences, holm, sign_flip_p
from bamdp.lab.papers.beside import of_the_papers_length, speedup
from bamdp.lab.papers.evidence import Evidence, sample_of
from bamdp.lab.papers.sweeps import Point, points
from bamdp.lab.results import Results
from bamdp.lab.statistics import Estimate, estimate, standard_error, summarise
from bamdp.lab.tables import Cell, Table
from bamdp.lab.tables.table import MISSING, decimals, mean_error, number, text, value_interval

TARGETS = {
    "chain": 370.0,
    "double_loop": 387.0,
    "grid5": 79.0,
    "grid10": 55.0,
    "maze": 1200.0,
}  # total reward
SPEEDUP = 10.0  # times the paper's, a step
DSS = ("dss-pi", "dss-rtdp")
RISES, FALLS, FLAT = "rises further", "falls", "no difference seen"
GROWING = ("N", "M", "K", "H", "N-flat")


def reward_targets(evidence: Evidence) -> Table:
    """Whether the better of the two tuned forms of DSS reaches what was aimed at."""
    rows = []
    for environment, aim in TARGETS.items():
        held = {name: sample_of(evidence.fair, environment, name) for name in DSS}
        means = {name: float(s.totals.mean()) for name, s in held.items() if s is not None}
        best = max(means, key=means.__getitem__, default=None)
        cells = [_reward(s, name == best) for name, s in held.items()]
        word = "not run yet" if best is None else "met" if means[best] >= aim else "missed"
        rows.append((text(environment), number(aim, f"≥ {aim:g}"), *cells, text(word)))
    return Table(
        "reward_targets",
        "Total reward of DSS, tuned by the protocol alone, mean [95% interval]",
        ("environment", "target", *DSS, "verdict"),
        tuple(rows),
        "lrrrl",
        ("The verdict is by the mean of the better of the two forms, in bold; both were tuned alike.",),
    )


def speed_targets(evidence: Evidence) -> Table:
    """How many times faster than the paper's Table 2 a step is, with the paper's parameters."""
    held = () if evidence.published is None else tuple(of_the_papers_length(evidence.published))
    rows = []
    for name in DSS:
        found = {s.environment: speedup(s) for s in held if s.algorithm == name}
        least = min(found.values(), default=np.nan)
        complete = set(found) == set(TARGETS)
        word = "met" if least >= SPEEDUP else "missed" if least < SPEEDUP else MISSING
        ratios = [number(found.get(e, np.nan), f"{found.get(e, np.nan):.1f}") for e in TARGETS]
        rows.append((text(name), *ratios, text(word if complete or word == "missed" else "not run yet")))
    return Table(
        "speed_targets",
        f"Times faster a step than the paper's Table 2, at Appendix C's parameters (target: {SPEEDUP:g} everywhere)",
        ("algorithm", *TARGETS, "verdict"),
        tuple(rows),
        "l" + "r" * len(TARGETS) + "l",
    )


def choice_gains(evidence: Evidence) -> Table | None:
    """What each algorithm gains by choosing prior, discount and parameters instead of Appendix C's."""
    published, fair = evidence.published, evidence.fair
    if published is None or fair is None:
        return None
    names = [name for name in published.algorithms if name in fair.algorithms]
    rows = [(text(name), *(_gain(evidence, e, name) for e in TARGETS)) for name in names]
    return Table(
        "choice_gains",
        "Mean total reward with Appendix C's parameters → with what the protocol chose",
        ("algorithm", *TARGETS),
        tuple(rows),
        "l" + "r" * len(TARGETS),
        ("SBOSS and BFS3 have the flat prior on the left, as their published rows have.",),
    )


@dataclass(frozen=True, eq=False)
class Trend:
    """What the largest value of a sweep does against a smaller one that was fixed beforehand."""

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
            f"{held[0].label} … {held[-1].label}",
            reference.label,
            last.label,
            estimate(lambda x, axis: x.mean(axis), gap),
            bool(p <= LEVEL),
        )
        for (environment, reference, last, held), gap, p in zip(found, gaps, adjusted)
    ]


def trend_table(found: Sequence[Trend]) -> Table:
    """As a table."""
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
    )


def _extremes(results: Results, environment: str) -> Iterator[tuple[str, Point, Point, list[Point]]]:
    for sweep in GROWING:
        held = [p for p in points(results, environment) if p.sweep == sweep]
        if len(held) < 2:
            continue
        reference = next((p for p in held if p.base), held[len(held) // 2])
        if reference is not held[-1]:
            yield environment, reference, held[-1], held


def _reward(sample: object, bold: bool) -> Cell:
    totals = getattr(sample, "totals", None)
    if totals is None:
        return text(MISSING)
    return value_interval(summarise(totals).mean, decimals([standard_error(totals)]), bold)


def _gain(evidence: Evidence, environment: str, algorithm: str) -> Cell:
    before, after = (sample_of(r, environment, algorithm) for r in (evidence.published, evidence.fair))
    if before is None or after is None:
        return text(MISSING)
    shown = decimals([standard_error(before.totals), standard_error(after.totals)])
    first, second = float(before.totals.mean()), float(after.totals.mean())
    difference = mean_error(second - first, float("nan"), shown).numbers
    return Cell(f"{first:.{shown}f} → {second:.{shown}f}", difference)
