"""Our numbers beside those that the paper prints: rewards (Table 1) and processor time (Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bamdp.lab.papers import printed
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.statistics import standard_error, summarise
from bamdp.lab.tables import ResultTable, TableCell
from bamdp.lab.tables.table import (
    NO_VALUE,
    decimals_of,
    interval_cell,
    mean_cell,
    number_cell,
    significant,
    text_cell,
)

Row = tuple[TableCell, ...]

VERDICTS = (
    "Difference, and the same over the root of both squared standard errors. Verdict: Welch's test at 5%, two-sided, "
    "not corrected for the number of rows."
)
HARDWARE = (
    "Processor time of planning and learning, one thread, compiling not counted. The machines differ; the paper does "
    "not say on which its times were taken."
)


def beside_table1(results: Results) -> list[ResultTable]:
    """A row for each entry of Table 1; only runs of the paper's length can stand beside it."""
    rows, rules = _by_environment(results, _reward_row)
    if not rows:
        return []
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
    return [
        ResultTable(
            "beside_the_paper",
            "Total reward, mean ± standard error, beside the paper's Table 1",
            header,
            rows,
            "llrrrrrrl",
            (VERDICTS, *_tuned(results)),
            rules,
            results.warning,
        )
    ]


def beside_table2(results: Results) -> list[ResultTable]:
    """Processor time of an episode and of a step, and how many times faster; runs of the paper's length only."""
    rows, rules = _by_environment(results, _time_row)
    if not rows:
        return []
    header = (
        "environment",
        "algorithm",
        "s/episode",
        "ms/step",
        "paper, s/episode",
        "paper, ms/step",
        "times faster",
    )
    return [
        ResultTable(
            "times_beside_the_paper",
            "Processor time beside the paper's Table 2",
            header,
            rows,
            "llrrrrr",
            (HARDWARE, *_tuned(results)),
            rules,
            results.warning,
        )
    ]


def _tuned(results: Results) -> list[str]:
    chosen = "The configurations are those that were chosen here, not the paper's."
    return [chosen] if results.select(TUNE) else []


def speedup(sample: Sample) -> float:
    """The paper's time of a step over ours; NaN where the paper has none, or the runs are of another length."""
    paper = printed.seconds(sample.algorithm, sample.environment)
    if paper is None or not sample.runs or sample.horizon != printed.steps(sample.environment):
        return float("nan")
    return 1e3 * paper / sample.horizon / float(sample.ms_per_step.mean())


def of_the_papers_length(results: Results) -> Iterator[Sample]:
    """Evaluations that finished runs over as many steps as the paper's."""
    for environment in results.environments:
        if results.horizon(environment) == printed.steps(environment):
            yield from (s for s in results.select(EVALUATE, environment) if s.runs)


def _by_environment(
    results: Results, row: Callable[[Sample], Row | None]
) -> tuple[tuple[Row, ...], tuple[int, ...]]:
    """Rows of samples that the paper has, too, and where a line stands between environments."""
    rows: list[Row] = []
    rules: list[int] = []
    last = None
    for sample in of_the_papers_length(results):
        cells = row(sample)
        if cells is not None:
            if last is not None and sample.environment != last:
                rules.append(len(rows))
            last = sample.environment
            rows.append(cells)
    return tuple(rows), tuple(rules)


def _reward_row(sample: Sample) -> Row | None:
    entry = printed.reward(sample.algorithm, sample.environment)
    found = printed.verdict(sample)
    if entry is None or found is None:
        return None
    return (
        text_cell(sample.environment),
        text_cell(sample.algorithm),
        number_cell(sample.runs, str(sample.runs)),
        mean_cell(float(sample.totals.mean()), standard_error(sample.totals), 2),
        interval_cell(summarise(sample.totals).mean, 2),
        mean_cell(*entry, 2),
        number_cell(found.difference, f"{found.difference:+.2f}"),
        number_cell(found.errors, f"{found.errors:+.1f}"),
        text_cell(found.word),
    )


def _time_row(sample: Sample) -> Row | None:
    paper = printed.seconds(sample.algorithm, sample.environment)
    if printed.reward(sample.algorithm, sample.environment) is None:
        return None
    above = printed.seconds_above(sample.algorithm, sample.environment)
    own = float(sample.cpu_seconds.mean())
    spread, shown = standard_error(sample.cpu_seconds), significant(own)
    ratio = speedup(sample)
    return (
        text_cell(sample.environment),
        text_cell(sample.algorithm),
        mean_cell(own, spread, decimals_of(shown)),
        number_cell(float(sample.ms_per_step.mean())),
        text_cell(NO_VALUE if above is None else f"> {above:g}")
        if paper is None
        else number_cell(paper, f"{paper:g}"),
        text_cell(NO_VALUE) if paper is None else number_cell(1e3 * paper / sample.horizon),
        number_cell(ratio, f"{ratio:.1f}") if np.isfinite(ratio) else text_cell(NO_VALUE),
    )
