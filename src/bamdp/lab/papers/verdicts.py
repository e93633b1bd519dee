"""Tables of the page that say whether something holds: targets, and what a choice of one's own is worth."""

from __future__ import annotations

import numpy as np

from bamdp.lab.papers.beside import of_the_papers_length, speedup
from bamdp.lab.papers.evidence import Evidence, sample_of
from bamdp.lab.results import Sample
from bamdp.lab.statistics import standard_error, summarise
from bamdp.lab.tables import ResultTable, TableCell
from bamdp.lab.tables.table import NO_VALUE, decimals, number_cell, text_cell, value_interval_cell

TARGETS = {
    "chain": 370.0,
    "double_loop": 387.0,
    "grid5": 79.0,
    "grid10": 55.0,
    "maze": 1200.0,
}  # total reward
SPEEDUP = 10.0  # times the paper's, a step
DSS = ("dss-pi", "dss-rtdp")


def reward_targets(evidence: Evidence) -> ResultTable:
    """Whether the better of the two tuned forms of DSS reaches what was aimed at."""
    rows = []
    for environment, aim in TARGETS.items():
        held = [sample_of(evidence.fair, environment, name) for name in DSS]
        run = [sample for sample in held if sample is not None]
        best = max(run, key=lambda sample: float(sample.totals.mean()), default=None)
        cells = [_reward(sample, sample is best) for sample in held]
        word = "not run yet" if best is None else _met(best, aim)
        rows.append((text_cell(environment), number_cell(aim, f"≥ {aim:g}"), *cells, text_cell(word)))
    return ResultTable(
        "reward_targets",
        "Total reward of DSS, tuned by the protocol alone, mean [95% interval]",
        ("environment", "target", *DSS, "verdict"),
        tuple(rows),
        "lrrrl",
        (
            "The verdict is by the mean of the better of the two forms, in bold; both were tuned alike. Narrowly: the "
            "interval reaches to the other side.",
        ),
    )


def _met(sample: Sample, aim: float) -> str:
    mean = summarise(sample.totals).mean
    word = "met" if mean.value >= aim else "missed"
    return f"{word}, narrowly" if mean.low < aim <= mean.high else word


def speed_targets(evidence: Evidence) -> ResultTable:
    """How many times faster than the paper's Table 2 a step is, with the paper's parameters."""
    held = () if evidence.published is None else tuple(of_the_papers_length(evidence.published))
    rows = []
    for name in DSS:
        found = {s.environment: speedup(s) for s in held if s.algorithm == name}
        least = min(found.values(), default=np.nan)
        complete = set(found) == set(TARGETS)
        word = "met" if least >= SPEEDUP else "missed" if least < SPEEDUP else NO_VALUE
        ratios = [number_cell(found.get(e, np.nan), f"{found.get(e, np.nan):.1f}") for e in TARGETS]
        rows.append(
            (text_cell(name), *ratios, text_cell(word if complete or word == "missed" else "not run yet"))
        )
    return ResultTable(
        "speed_targets",
        f"Times faster a step than the paper's Table 2, at Appendix C's parameters (target: {SPEEDUP:g} everywhere)",
        ("algorithm", *TARGETS, "verdict"),
        tuple(rows),
        "l" + "r" * len(TARGETS) + "l",
    )


def choice_gains(evidence: Evidence) -> ResultTable | None:
    """What each algorithm gains by choosing prior, discount and parameters instead of Appendix C's."""
    published, fair = evidence.published, evidence.fair
    if published is None or fair is None:
        return None
    names = [name for name in published.algorithms if name in fair.algorithms]
    rows = [(text_cell(name), *(_gain(evidence, e, name) for e in TARGETS)) for name in names]
    return ResultTable(
        "choice_gains",
        "Mean total reward with Appendix C's parameters → with what the protocol chose",
        ("algorithm", *TARGETS),
        tuple(rows),
        "l" + "r" * len(TARGETS),
        ("SBOSS and BFS3 have the flat prior on the left, as their published rows have.",),
    )


def _reward(sample: Sample | None, bold: bool) -> TableCell:
    if sample is None:
        return text_cell(NO_VALUE)
    return value_interval_cell(summarise(sample.totals).mean, decimals([standard_error(sample.totals)]), bold)


def _gain(evidence: Evidence, environment: str, algorithm: str) -> TableCell:
    before, after = (sample_of(r, environment, algorithm) for r in (evidence.published, evidence.fair))
    if before is None or after is None:
        return text_cell(NO_VALUE)
    shown = decimals([standard_error(before.totals), standard_error(after.totals)])
    first, second = float(before.totals.mean()), float(after.totals.mean())
    return number_cell(second - first, f"{first:.{shown}f} → {second:.{shown}f}")
