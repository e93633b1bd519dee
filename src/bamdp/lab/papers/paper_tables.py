"""The numbers that the paper prints, and ours beside them: total rewards (Table 1) and processor time (Table 2).

The test behind a verdict is Welch's, two-sided, at 5%, of the mean totals: the paper's mean and standard error of 100
runs against ours. It is not corrected for the number of entries: of 25 that do agree, one or two would be called
different.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    decimals_of,
    interval_cell,
    make_table,
    mean_cell,
    mean_error_cell,
    number_cell,
    rules_between,
    significant,
)
from bamdp.statistics import standard_error, summarise

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


def paper_entry(table: str, algorithm: str, environment: str) -> Any:
    """Return an entry of one of the paper's tables, or None if it has no such entry.

    In ``table1`` it is the mean and the standard error of a total reward, in ``table2`` the processor seconds per
    episode, in ``table2_above`` the lower bound on them where only that is printed.
    """
    return paper_numbers()[table].get(algorithm, {}).get(environment)


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
    entry = paper_entry("table1", sample.algorithm, sample.environment)
    if entry is None or not sample.runs:
        return None
    paper_mean, paper_error = entry
    difference, error = sample.mean_total - paper_mean, standard_error(sample.totals)
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
    seconds = paper_entry("table2", sample.algorithm, sample.environment)
    if seconds is None or not sample.runs or sample.horizon != paper_steps(sample.environment):
        return math.nan
    return float(1e3 * seconds / sample.horizon / sample.mean_ms)


def of_paper_length(results: Results) -> Iterator[Sample]:
    """Iterate over the evaluations whose runs have as many steps as the paper's."""
    for environment in results.environments:
        if results.horizon(environment) == paper_steps(environment):
            yield from (s for s in results.select(EVALUATE, environment) if s.runs)


def beside_table1(results: Results) -> list[ResultTable]:
    """Return a table of our total rewards beside the paper's Table 1; none without runs of the paper's length."""
    header = ("runs", "here", "95% interval", "paper", "difference", "in standard errors", "verdict")
    title = "Total reward, mean ± standard error, beside the paper's Table 1"
    rows = []
    for sample in _in_table1(results):
        mean, error = paper_entry("table1", sample.algorithm, sample.environment)
        verdict = paper_verdict(sample)
        assert verdict is not None
        row: list[Entry] = [
            sample.environment,
            sample.algorithm,
            sample.runs,
            mean_cell(sample.totals, 2),
            interval_cell(summarise(sample.totals).mean, 2),
            mean_error_cell(mean, error, 2),
            number_cell(verdict.difference, f"{verdict.difference:+.2f}"),
            number_cell(verdict.errors, f"{verdict.errors:+.1f}"),
            verdict.word,
        ]
        rows.append(row)
    return _beside(results, "beside_the_paper", title, header, rows, "llrrrrrrl", VERDICT_NOTE)


def beside_table2(results: Results) -> list[ResultTable]:
    """Return a table of our processor times beside the paper's Table 2; none without runs of the paper's length."""
    header = ("s/episode", "ms/step", "paper, s/episode", "paper, ms/step", "times faster")
    title = "Processor time beside the paper's Table 2"
    rows = []
    for sample in _in_table1(results):
        paper = paper_entry("table2", sample.algorithm, sample.environment)
        above = paper_entry("table2_above", sample.algorithm, sample.environment)
        seconds, ratio = sample.cpu_seconds, speedup(sample)
        row: list[Entry] = [
            sample.environment,
            sample.algorithm,
            mean_cell(seconds, decimals_of(significant(float(seconds.mean())))),
            sample.mean_ms,
            above and f"> {above:g}" if paper is None else number_cell(float(paper), f"{paper:g}"),
            None if paper is None else 1e3 * paper / sample.horizon,
            number_cell(ratio, f"{ratio:.1f}"),
        ]
        rows.append(row)
    return _beside(results, "times_beside_the_paper", title, header, rows, "llrrrrr", HARDWARE_NOTE)


def _in_table1(results: Results) -> list[Sample]:
    return [s for s in of_paper_length(results) if paper_entry("table1", s.algorithm, s.environment)]


def _beside(
    results: Results,
    name: str,
    title: str,
    header: Sequence[str],
    rows: list[list[Entry]],
    align: str,
    note: str,
) -> list[ResultTable]:
    """Return a table of the samples that the paper has, too; none if there is no such sample."""
    notes = (note, TUNED_NOTE if results.select(TUNE) else "")
    header = ("environment", "algorithm", *header)
    rules = rules_between([str(row[0]) for row in rows])  # between environments
    return [make_table(name, title, header, rows, notes, align, rules, results.warning)] if rows else []
