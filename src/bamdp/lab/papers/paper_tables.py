"""The numbers that the paper prints, and ours beside them: total rewards (Table 1) and processor time (Table 2).

The test behind a verdict is Welch's, two-sided, at 5%, of the mean totals: the paper's mean and standard error of 100
runs against ours. It is not corrected for the number of entries: of 25 that do agree, one or two would be called
different.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.statistics import standard_error, summarise
from bamdp.lab.tables.table import (
    NO_VALUE,
    ResultTable,
    TableCell,
    decimals_of,
    interval_cell,
    mean_cell,
    number_cell,
    rules_between,
    significant,
    text_cell,
)

TableRow = tuple[TableCell, ...]

PAPER_RUNS = 100  # behind each of the paper's means
SIGNIFICANCE = 0.05
AGREES, BETTER, WORSE, NO_VERDICT = "agrees", "better", "worse", "–"
VERDICT_NOTE = (
    "Difference, and the same over the root of both squared standard errors. Verdict: Welch's test at 5%, two-sided, "
    "not corrected for the number of rows."
)
HARDWARE_NOTE = (
    "Processor time of planning and learning, one thread, without compiling. The machines differ; the paper does "
    "not say on which its times were taken."
)
TUNED_NOTE = "The configurations are those that were chosen here, not the paper's."


@cache
def paper_numbers() -> Mapping[str, Any]:
    """Return the paper's steps, Table 1 and Table 2, and where the curves of its Figure 3 end."""
    source = files(__package__).joinpath("dss2020/paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(source)


def paper_reward(algorithm: str, environment: str) -> tuple[float, float] | None:
    """Return mean and standard error of a total reward in Table 1, or None if it has no such entry."""
    entry = paper_numbers()["table1"].get(algorithm, {}).get(environment)
    return None if entry is None else (float(entry[0]), float(entry[1]))


def paper_seconds(algorithm: str, environment: str) -> float | None:
    """Return the processor seconds per episode in Table 2, or None if it has no such number."""
    entry = paper_numbers()["table2"].get(algorithm, {}).get(environment)
    return None if entry is None else float(entry)


def paper_seconds_above(algorithm: str, environment: str) -> float | None:
    """Return the lower bound on the processor seconds where Table 2 prints only that, else None."""
    entry = paper_numbers()["table2_above"].get(algorithm, {}).get(environment)
    return None if entry is None else float(entry)


def paper_steps(environment: str) -> int | None:
    """Return the number of steps of the paper's runs in an environment, or None if it has no such environment."""
    return paper_numbers()["steps"].get(environment)


@dataclass(frozen=True)
class Verdict:
    """Our mean total reward against the paper's."""

    difference: float
    errors: float  # the difference in standard errors; NaN without any
    p: float
    word: str  # agrees, better, worse; a dash if there are too few runs for a test


def paper_verdict(sample: Sample) -> Verdict | None:
    """Compare a sample with the paper's entry in Table 1; None if the paper has none.

    Examples
    --------
    >>> from bamdp.lab.results import Sample
    >>> import numpy as np
    >>> totals = np.array([378.0, 392.0, 385.0])
    >>> ours = Sample("double_loop", "dss-pi", "evaluate", {}, 1000, np.arange(3), totals, totals, totals, lambda: None)
    >>> paper_verdict(ours).word
    'agrees'
    """
    entry = paper_reward(sample.algorithm, sample.environment)
    if entry is None or not sample.runs:
        return None
    paper_mean, paper_error = entry
    difference, error = float(sample.totals.mean()) - paper_mean, standard_error(sample.totals)
    both = math.hypot(error, paper_error)
    if not both > 0.0:
        return Verdict(difference, math.nan, math.nan, NO_VERDICT)
    p = _welch(difference, error, sample.runs, paper_error)
    word = AGREES if p > SIGNIFICANCE else BETTER if difference > 0 else WORSE
    return Verdict(difference, difference / both, p, word)


def _welch(difference: float, error: float, runs: int, paper_error: float) -> float:
    """Return the p-value of Welch's test, with the Welch-Satterthwaite degrees of freedom."""
    from scipy import stats

    variance = error**2 + paper_error**2
    freedom = variance**2 / (error**4 / (runs - 1) + paper_error**4 / (PAPER_RUNS - 1))
    return float(2.0 * stats.t.sf(abs(difference) / math.sqrt(variance), freedom))


def speedup(sample: Sample) -> float:
    """Return the paper's time per step over ours; NaN if the paper has none, or if the runs have another length."""
    seconds = paper_seconds(sample.algorithm, sample.environment)
    if seconds is None or not sample.runs or sample.horizon != paper_steps(sample.environment):
        return float("nan")
    return 1e3 * seconds / sample.horizon / float(sample.ms_per_step.mean())


def of_paper_length(results: Results) -> Iterator[Sample]:
    """Iterate over the evaluations whose runs have as many steps as the paper's."""
    for environment in results.environments:
        if results.horizon(environment) == paper_steps(environment):
            yield from (s for s in results.select(EVALUATE, environment) if s.runs)


def beside_table1(results: Results) -> list[ResultTable]:
    """Return a table of our total rewards beside the paper's Table 1; none without runs of the paper's length."""
    header = (
        "environment",
        "algorithm",
        "runs",
        "here",
        "95% interval",
        "paper",
        "difference",
        "in standard errors",
        "verdict",
    )
    title = "Total reward, mean ± standard error, beside the paper's Table 1"
    return _beside(results, _reward_row, "beside_the_paper", title, header, "llrrrrrrl", VERDICT_NOTE)


def beside_table2(results: Results) -> list[ResultTable]:
    """Return a table of our processor times beside the paper's Table 2; none without runs of the paper's length."""
    header = (
        "environment",
        "algorithm",
        "s/episode",
        "ms/step",
        "paper, s/episode",
        "paper, ms/step",
        "times faster",
    )
    title = "Processor time beside the paper's Table 2"
    return _beside(results, _time_row, "times_beside_the_paper", title, header, "llrrrrr", HARDWARE_NOTE)


def _beside(
    results: Results,
    make_row: Callable[[Sample], TableRow | None],
    name: str,
    title: str,
    header: tuple[str, ...],
    align: str,
    note: str,
) -> list[ResultTable]:
    """Return a table with a row for each sample that the paper has, too; none if there is no such sample."""
    rows = tuple(row for sample in of_paper_length(results) if (row := make_row(sample)) is not None)
    notes = (note, TUNED_NOTE) if results.select(TUNE) else (note,)
    rules = rules_between([row[0].text for row in rows])  # between environments
    return [ResultTable(name, title, header, rows, align, notes, rules, results.warning)] if rows else []


def _reward_row(sample: Sample) -> TableRow | None:
    entry, verdict = paper_reward(sample.algorithm, sample.environment), paper_verdict(sample)
    if entry is None or verdict is None:
        return None
    return (
        text_cell(sample.environment),
        text_cell(sample.algorithm),
        number_cell(sample.runs, str(sample.runs)),
        mean_cell(float(sample.totals.mean()), standard_error(sample.totals), 2),
        interval_cell(summarise(sample.totals).mean, 2),
        mean_cell(*entry, 2),
        number_cell(verdict.difference, f"{verdict.difference:+.2f}"),
        number_cell(verdict.errors, f"{verdict.errors:+.1f}"),
        text_cell(verdict.word),
    )


def _time_row(sample: Sample) -> TableRow | None:
    if paper_reward(sample.algorithm, sample.environment) is None:
        return None
    paper = paper_seconds(sample.algorithm, sample.environment)
    above = paper_seconds_above(sample.algorithm, sample.environment)
    seconds, error = float(sample.cpu_seconds.mean()), standard_error(sample.cpu_seconds)
    ratio = speedup(sample)
    return (
        text_cell(sample.environment),
        text_cell(sample.algorithm),
        mean_cell(seconds, error, decimals_of(significant(seconds))),
        number_cell(float(sample.ms_per_step.mean())),
        text_cell(NO_VALUE if above is None else f"> {above:g}")
        if paper is None
        else number_cell(paper, f"{paper:g}"),
        text_cell(NO_VALUE) if paper is None else number_cell(1e3 * paper / sample.horizon),
        number_cell(ratio, f"{ratio:.1f}") if np.isfinite(ratio) else text_cell(NO_VALUE),
    )
