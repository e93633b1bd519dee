"""Tables of the evaluation: a paper's matrix, processor times, all figures of an environment, paired comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bamdp.lab.comparisons import EXACT_RUNS, NARROW, Comparison, Group, groups
from bamdp.lab.results import EVALUATE, OPTIMUM_LABEL, TUNE, EpisodeSummary, Results, Sample, sample_labels
from bamdp.lab.statistics import (
    Estimate,
    normalised,
    normalised_totals,
    pooled_iqm,
    share_of_optimum,
    standard_error,
    summarise,
)
from bamdp.lab.tables.table import (
    NO_VALUE,
    ResultTable,
    TableCell,
    count_cell,
    decimals,
    decimals_of,
    interval_cell,
    mean_cell,
    number_cell,
    p_value_cell,
    significant,
    text_cell,
    value_interval_cell,
)

NEAR_BEST, UNDECIDED = " ≈", " ?"
TOO_FEW = "too few runs to tell"
RANDOM_LABEL = "random play"
FEW_RUNS = 10  # bootstrap intervals of fewer are noticeably too narrow
ABOUT_EQUAL, NOT_DECIDED = "about equal", "undecided"
NEAR_NOTE = (
    "≈ and ?: not distinguishable from it (paired sign-flip test on common replicates, Holm's correction over all "
    "pairs of an environment, 5%). ≈ about equal: the 95% interval of the difference is within "
    f"{100 * NARROW:g}% of the range from random play to the optimum. ? undecided: it is wider, and these runs could "
    "not have seen such a difference."
)
TEST_NOTE = (
    "Paired sign-flip test of the mean difference on common replicates, two-sided: all patterns of signs up to "
    f"{EXACT_RUNS} runs, {2**EXACT_RUNS} drawn ones or more beyond. p (Holm): corrected for all pairs of the "
    "environment. Intervals: bootstrap 95%, of each pair alone. About equal: that interval is within "
    f"{100 * NARROW:g}% of the range from random play to the optimum; undecided: it is wider."
)
SAME_TOTALS_NOTE = (
    "Every step pays the same, so all totals are the same and say nothing; planners are ordered by the mean return of "
    "their episodes."
)
INCOMPLETE_NOTE = "Fewer runs than their environment asks for, so not beside complete rows."


# Algorithms in environments


def matrix(results: Results) -> ResultTable:
    """Return the mean total rewards of algorithms × environments, the form of the paper's Table 1."""
    columns = groups(results)
    cells = [_reward_column(group) for group in columns]
    rows = [
        [
            text_cell(name),
            *(cells[j].get(name, _absent_cell(results, name, g)) for j, g in enumerate(columns)),
        ]
        for name in _row_labels(columns)
    ]
    rules: tuple[int, ...] = ()
    if any(group.ceilings for group in columns):
        rules = (len(rows),)
        rows += [
            _reference_row(OPTIMUM_LABEL, columns, "optimum"),
            _reference_row(RANDOM_LABEL, columns, "random"),
        ]
    return ResultTable(
        "rewards",
        "Total reward, mean ± standard error",
        ("algorithm", *(group.label for group in columns)),
        tuple(map(tuple, rows)),
        "l" + "r" * len(columns),
        (
            _length_note(columns),
            _marks_note(columns),
            *incomplete_notes(columns),
            *_blind_notes(columns),
            *_trouble_notes(columns),
        ),
        rules,
        results.warning,
    )


def times(results: Results) -> ResultTable:
    """Return the processor seconds of a run, the form of the paper's Table 2, and milliseconds per step."""
    columns = groups(results)
    return ResultTable(
        "times",
        "Processor seconds per run, mean ± standard error (milliseconds per step)",
        ("algorithm", *(group.label for group in columns)),
        tuple(
            (text_cell(name), *(_time_cell(group, name) for group in columns))
            for name in _row_labels(columns)
        ),
        "l" + "r" * len(columns),
        (
            "Planning and learning, one thread, compiling not counted.",
            *incomplete_notes(columns),
            *_trouble_notes(columns),
        ),
        warning=results.warning,
    )


def overall(results: Results) -> ResultTable | None:
    """Return normalised scores over all environments; None where there are not several with reference values."""
    columns = [group for group in groups(results) if _score_range(group) > 0.0]
    if len(columns) < 2:
        return None
    others = ", ".join(group.label for group in groups(results) if group not in columns)
    unknown = f"Not counted, as their optimum over that horizon is not known: {others}."
    everywhere = [name for name in _row_labels(columns) if all(_has_runs(group, name) for group in columns)]
    rows = [_overall_row(name, columns, everywhere) for name in _row_labels(columns)]
    rows.sort(key=lambda row: np.inf if row[1].value is None else -row[1].value)  # those without a score last
    return ResultTable(
        "overall",
        f"Normalised score over {len(columns)} environments: 0 random play, 1 optimum of the known model",
        ("algorithm", "IQM, 95% interval", "mean", "mean rank", "environments"),
        tuple(rows),
        "lrrrr",
        (
            "IQM: interquartile mean over the runs of all environments, each environment with the same weight; runs "
            "resampled within environments. With few environments, what it leaves out at both ends is mostly whole "
            "environments; the mean has them all.",
            "An algorithm without a figure is not in the table of every environment. Ranks are among the others.",
            *incomplete_notes(columns),
            *([unknown] if others else []),
        ),
        warning=results.warning,
    )


def _reward_column(group: Group) -> dict[str, TableCell]:
    n_decimals = decimals(summary.standard_error for summary in group.summaries.values())
    return {name: _reward_cell(group, name, n_decimals) for name in group.named}


def _reward_cell(group: Group, name: str, n_decimals: int) -> TableCell:
    summary, is_best = group.summaries[name], name == group.best
    if not summary.runs:
        failures = group.named[name].failures
        return text_cell(f"all {len(failures)} failed" if failures else "no runs yet")
    mark = ""
    if not is_best and not group.blind:  # too few runs tell nothing, which is not to say that all are equal
        mark = NEAR_BEST if name in group.near_best else UNDECIDED if name in group.undecided else ""
    is_best = is_best and group.returns is None
    return mean_cell(summary.mean.value, summary.standard_error, n_decimals, is_best, mark)


def _time_cell(group: Group, name: str) -> TableCell:
    sample = group.named.get(name)
    if sample is None or not sample.runs:
        return text_cell(NO_VALUE)
    seconds, ms = summarise(sample.cpu_seconds), float(sample.ms_per_step.mean())
    mean = significant(seconds.mean.value)
    error = "" if np.isnan(seconds.standard_error) else f" ± {seconds.standard_error:.{decimals_of(mean)}f}"
    numbers = (("seconds", seconds.mean.value), ("ms per step", ms))
    return TableCell(f"{mean}{error} ({significant(ms)})", numbers)


def _absent_cell(results: Results, name: str, group: Group) -> TableCell:
    """Return why there is no value: every configuration was excluded in tuning, or it was not run."""
    tuned = results.select(TUNE, group.environment, name)
    evaluated = results.select(EVALUATE, group.environment, name)
    excluded = tuned and not evaluated and all(s.excluded for s in tuned)
    return text_cell("excluded" if excluded else NO_VALUE)


def _reference_row(name: str, columns: Iterable[Group], field: str) -> list[TableCell]:
    values = [getattr(group.ceilings, field) if group.ceilings else np.nan for group in columns]
    return [text_cell(name), *(number_cell(value, f"{value:.2f}") for value in values)]


def _has_runs(group: Group, name: str) -> bool:
    return name in group.named and group.named[name].runs > 0


def _overall_row(name: str, columns: list[Group], everywhere: list[str]) -> tuple[TableCell, ...]:
    count = sum(_has_runs(group, name) for group in columns)
    covered = number_cell(count, f"{count} of {len(columns)}")
    nothing = text_cell(NO_VALUE)
    if name not in everywhere:
        return text_cell(name), nothing, nothing, nothing, covered
    scores = [normalised_totals(g.named[name].totals, g.ceilings) for g in columns if g.ceilings]
    mean = float(np.mean([part.mean() for part in scores]))
    ranks = [[n for n in group.ranked if n in everywhere].index(name) + 1 for group in columns]
    return (
        text_cell(name),
        value_interval_cell(pooled_iqm(scores), 3),
        number_cell(mean, f"{mean:.3f}"),
        number_cell(float(np.mean(ranks))),
        covered,
    )


def _row_labels(columns: Iterable[Group]) -> list[str]:
    """Return row labels in the order of appearance, configurations of one algorithm together."""
    order: dict[str, dict[str, None]] = {}
    for group in columns:
        for name, sample in group.named.items():
            order.setdefault(sample.algorithm, {})[name] = None
    return [name for variants in order.values() for name in variants]


def _score_range(group: Group) -> float:
    return group.ceilings.optimum - group.ceilings.random if group.ceilings else 0.0


# One environment


def summaries(results: Results, environment: str) -> tuple[ResultTable, ...]:
    """Return all figures of an environment, a table for each horizon; the algorithms by their means."""
    return tuple(_summary(results, group) for group in groups(results) if group.environment == environment)


def _summary(results: Results, group: Group) -> ResultTable:
    n_decimals = decimals(summary.standard_error for summary in group.summaries.values())
    rows = [_summary_row(group, name, n_decimals) for name in group.ranked]
    rules: tuple[int, ...] = ()
    if group.ceilings:
        rules = (len(rows),)
        rows += [
            _summary_reference_row(group, OPTIMUM_LABEL, group.ceilings.optimum, n_decimals),
            _summary_reference_row(group, RANDOM_LABEL, group.ceilings.random, n_decimals),
        ]
    few = any(1 < sample.runs < FEW_RUNS for sample in group.samples)
    scores = ("of optimum", "normalised") if group.ceilings else ()
    header = ("algorithm", "runs", "total reward", "95% interval", "IQM, 95% interval", *scores, "ms/step")
    return ResultTable(
        f"summary_{group.stem}",
        f"{group.label}: {group.horizon} steps",
        header,
        tuple(rows),
        "l" + "r" * (len(header) - 1),
        (
            *([_marks_note([group])] if group.returns is None else [SAME_TOTALS_NOTE]),
            *(["Normalised: 0 random play, 1 optimum."] if scores else []),
            *incomplete_notes([group]),
            *_blind_notes([group]),
            *([f"Bootstrap intervals of fewer than {FEW_RUNS} runs are too narrow."] if few else []),
            *_trouble_notes([group]),
        ),
        rules,
        results.warning,
    )


def _summary_row(group: Group, name: str, n_decimals: int) -> tuple[TableCell, ...]:
    sample, summary = group.named[name], group.summaries[name]
    runs = f"{sample.runs}" + (f" ({len(sample.failures)} failed)" if sample.failures else "")
    return (
        text_cell(name),
        number_cell(sample.runs, runs),
        _reward_cell(group, name, n_decimals),
        interval_cell(summary.mean, n_decimals),
        value_interval_cell(summary.iqm, n_decimals),
        *_score_cells(summary.mean, group),
        number_cell(sample.ms_per_step.mean() if sample.runs else np.nan),
    )


def _summary_reference_row(group: Group, name: str, value: float, n_decimals: int) -> tuple[TableCell, ...]:
    nothing = text_cell(NO_VALUE)
    total = number_cell(value, f"{value:.{n_decimals}f}")
    scores = _score_cells(Estimate(value, np.nan, np.nan), group)
    return (text_cell(name), nothing, total, nothing, nothing, *scores, nothing)


def _score_cells(total: Estimate, group: Group) -> tuple[TableCell, ...]:
    """Return a total as a share of the optimum, and normalised; nothing where the model is not known."""
    if not group.ceilings:
        return ()
    share, score = share_of_optimum(total, group.ceilings).value, normalised(total, group.ceilings).value
    return number_cell(share, f"{100 * share:.1f}%"), number_cell(score, f"{score:.3f}")


def episodes(results: Results, environment: str) -> tuple[ResultTable, ...]:
    """Return the episodes of an environment, a table for each horizon; none where no episode was recorded."""
    made = [_episodes(results, group) for group in groups(results) if group.environment == environment]
    return tuple(table for table in made if table is not None)


def _episodes(results: Results, group: Group) -> ResultTable | None:
    found = {name: group.named[name].episodes() for name in group.ranked}
    if all(one is None for one in found.values()):
        return None
    return ResultTable(
        f"episodes_{group.stem}",
        f"{group.label}: completed episodes",
        ("algorithm", "episodes per run", "mean return", "success"),
        tuple((text_cell(name), *_episode_cells(one)) for name, one in found.items()),
        "lrrr",
        (
            "Return: the undiscounted sum of an episode's rewards, mean over all episodes ± standard error over runs. "
            "Success: the share of episodes that ended, in time, with a positive reward.",
        ),
        warning=results.warning,
    )


def _episode_cells(found: EpisodeSummary | None) -> tuple[TableCell, ...]:
    if found is None:
        return (text_cell(NO_VALUE),) * 3
    success = np.nan if found.success is None else found.success
    error = standard_error(found.returns)
    return (
        number_cell(found.per_run, f"{found.per_run:.1f}"),
        mean_cell(found.mean_return, error, 3 if np.isnan(error) else decimals([error])),
        number_cell(success, f"{100 * success:.1f}%"),
    )


# Paired comparisons


def against_best(results: Results, environment: str) -> tuple[ResultTable, ...]:
    """Return the best algorithm less each of the others, a table for each horizon."""
    columns = [
        g
        for g in groups(results)
        if g.environment == environment and len(g.named) > 1 and g.best and g.returns is None
    ]
    return tuple(_against_best(results, group) for group in columns)


def all_pairs(results: Results) -> ResultTable:
    """Return every pair in every environment."""
    rows = [
        (text_cell(group.label), *_pair_row(pair, group))
        for group in groups(results)
        for pair in group.compared
    ]
    header = ("environment", "first", "second", "runs", "first − second", "p", "p (Holm)", "different")
    return ResultTable(
        "pairs",
        "All paired comparisons",
        header,
        tuple(rows),
        "lllrrrrl",
        (TEST_NOTE,),
        warning=results.warning,
    )


def _against_best(results: Results, group: Group) -> ResultTable:
    pairs = [
        _with_first(pair, group.best) for pair in group.compared if group.best in (pair.first, pair.second)
    ]
    rows = sorted((_pair_row(pair, group) for pair in pairs), key=lambda row: group.ranked.index(row[1].text))
    return ResultTable(
        f"compared_{group.stem}",
        f"{group.label}: {group.best} less each of the others",
        ("first", "second", "runs", "first − second", "p", "p (Holm)", "different"),
        tuple(rows),
        "llrrrrl",
        (TEST_NOTE,),
        warning=results.warning,
    )


def _with_first(pair: Comparison, first: str | None) -> Comparison:
    """Return the same comparison with ``first`` first."""
    if pair.first == first:
        return pair
    return replace(pair, first=pair.second, second=pair.first, difference=pair.gain(pair.second))


def _verdict(pair: Comparison, group: Group) -> str:
    if not pair.runs:
        return NO_VALUE
    if pair.distinguishable:
        return "yes"
    return TOO_FEW if group.blind else ABOUT_EQUAL if group.narrow(pair) else NOT_DECIDED


def _pair_row(pair: Comparison, group: Group) -> tuple[TableCell, ...]:
    n_decimals = decimals([(pair.difference.high - pair.difference.low) / 4])
    return (
        text_cell(pair.first),
        text_cell(pair.second),
        count_cell(pair.runs),
        value_interval_cell(pair.difference, n_decimals),
        p_value_cell(pair.p),
        p_value_cell(pair.adjusted),
        text_cell(_verdict(pair, group)),
    )


# Incomplete evaluations


def unfinished(results: Results) -> list[ResultTable]:
    """Return a table with a row for every cell, or configuration of one, that is not complete; none if all are.

    Cells without any runs have one row per algorithm.
    """
    rows: list[tuple[TableCell, ...]] = []
    not_begun: dict[tuple[str, str], list[str]] = {}
    evaluated = dict.fromkeys((s.environment, s.algorithm) for s in results.select(EVALUATE))
    for environment, algorithm in results.cells or evaluated:
        samples = results.select(EVALUATE, environment, algorithm)
        labelled = zip(sample_labels(samples), samples)
        rows += [_unfinished_row(name, sample) for name, sample in labelled if not sample.complete]
        if not samples:
            tuned = results.select(TUNE, environment, algorithm)
            why = "all excluded" if tuned and all(sample.excluded for sample in tuned) else "no runs"
            not_begun.setdefault((algorithm, why), []).append(environment)
    n_environments = len(dict.fromkeys(environment for environment, _ in results.cells or evaluated))
    for (algorithm, why), environments in not_begun.items():
        where = "all" if len(environments) == n_environments > 1 else ", ".join(environments)
        rows.append(tuple(map(text_cell, (where, algorithm, why, NO_VALUE, NO_VALUE))))
    if not rows:
        return []
    apart = replace(results, samples=tuple(s for s in results.select(EVALUATE) if not s.complete))
    return [
        ResultTable(
            "unfinished",
            "Too slow or unfinished here",
            ("environment", "algorithm", "runs", "total reward", "ms/step"),
            tuple(rows),
            "llrrr",
            (INCOMPLETE_NOTE, *_trouble_notes(groups(apart))),
            warning=results.warning,
        )
    ]


def _unfinished_row(name: str, sample: Sample) -> tuple[TableCell, ...]:
    error = standard_error(sample.totals)
    failed = f" ({len(sample.failures)} failed)" if sample.failures else ""
    return (
        text_cell(sample.environment),
        text_cell(name),
        number_cell(sample.runs, f"{sample.runs} of {max(sample.asked, 1)}{failed}"),
        mean_cell(float(sample.totals.mean()) if sample.runs else np.nan, error, decimals([error])),
        number_cell(float(sample.ms_per_step.mean()) if sample.runs else np.nan),
    )


# Notes under tables: how to read them, and what they cannot tell


def incomplete_notes(columns: Iterable[Group]) -> list[str]:
    """Return a note on environments whose rows are shown although none has all of its runs."""
    early = ", ".join(group.label for group in columns if any(not s.complete for s in group.samples))
    return [f"{early}: not all runs are there; means are of those that are."] if early else []


def _length_note(columns: Iterable[Group]) -> str:
    """Return how many runs there are, of how many steps."""
    runs = [sample.runs for group in columns for sample in group.samples if sample.runs]
    low, high = min(runs, default=0), max(runs, default=0)
    span = "none" if not runs else str(low) if low == high else f"{low} to {high}"
    steps = ", ".join(f"{group.label} {group.horizon}" for group in columns)
    return f"Runs per cell: {span}. Steps per run: {steps}."


def _marks_note(columns: Sequence[Group]) -> str:
    """Return what bold, ≈ and ? mean; the latter two are not used where no difference could be told."""
    return (
        "Bold: the highest mean." if all(g.blind for g in columns) else f"Bold: the highest mean. {NEAR_NOTE}"
    )


def _blind_notes(columns: Iterable[Group]) -> list[str]:
    """Return a note on environments with so few common runs that the test cannot tell anything apart."""
    blind = ", ".join(group.label for group in columns if group.blind)
    reason = (
        "too few common runs for any difference to pass the corrected test, so nothing is marked with ≈ or ?"
    )
    return [f"{blind}: {reason}."] if blind else []


def _trouble_notes(columns: Iterable[Group]) -> list[str]:
    """Return notes on runs that failed, and on configurations that are over a limit."""
    entries = [(group, name, sample) for group in columns for name, sample in group.named.items()]
    failed = [
        f"{group.label}, {name}: {len(s.failures)} of {s.runs + len(s.failures)} runs failed ({s.failures[0]})."
        for group, name, s in entries
        if s.failures and "failed" not in s.excluded  # which says the same
    ]
    return failed + [f"{group.label}, {name}: {s.excluded}." for group, name, s in entries if s.excluded]
