"""Tables of the evaluation: a paper's matrix, processor times, all figures of an environment, paired comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bamdp.lab.comparisons import EXACT_RUNS, NARROW, Comparison, Group, groups, groups_in
from bamdp.lab.results import EVALUATE, OPTIMUM_LABEL, TUNE, EpisodeSummary, Results, Sample, sample_labels
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    TableCell,
    decimals,
    decimals_of,
    interval_cell,
    make_table,
    mean_cell,
    mean_error_cell,
    number_cell,
    p_value_cell,
    significant,
    value_interval_cell,
)
from bamdp.statistics import pooled_iqm, rescaled, standard_error

NEAR_BEST, UNDECIDED = " ≈", " ?"
TOO_FEW = "too few runs to tell"
REFERENCES = {
    OPTIMUM_LABEL: "optimum",
    "random play": "random",
}  # rows below the algorithms, and whose ceilings
PAIR_HEADER = ("first", "second", "runs", "first − second", "p", "p (Holm)", "different")
PAIR_ALIGN = "llrrrrl"
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
EPISODES_NOTE = (
    "Return: the undiscounted sum of an episode's rewards, mean over all episodes ± standard error over runs. "
    "Success: the share of episodes that ended, in time, with a positive reward."
)
BLIND_NOTE = (
    "too few common runs for any difference to pass the corrected test, so nothing is marked with ≈ or ?."
)
INCOMPLETE_NOTE = "Fewer runs than their environment asks for, so not beside complete rows."


# Algorithms in environments


def matrix(results: Results) -> ResultTable:
    """Return the mean total rewards of algorithms × environments, the form of the paper's Table 1."""
    columns = groups(results)
    shown = [_shown_decimals(group) for group in columns]
    labels = _row_labels(columns)
    rows: list[list[Entry]] = [
        [name, *(_reward_cell(results, group, name, n) for group, n in zip(columns, shown))]
        for name in labels
    ]
    if any(group.ceilings for group in columns):
        for label, field in REFERENCES.items():
            values = [getattr(group.ceilings, field, np.nan) for group in columns]
            rows.append([label, *(number_cell(value, f"{value:.2f}") for value in values)])
    return make_table(
        "rewards",
        "Total reward, mean ± standard error",
        ("algorithm", *(group.label for group in columns)),
        rows,
        (
            _length_note(columns),
            _marks_note(columns),
            incomplete_note(columns),
            _blind_note(columns),
            *_trouble_notes(columns),
        ),
        rules=[len(labels)] if len(rows) > len(labels) else (),
        warning=results.warning,
    )


def processor_times(results: Results) -> ResultTable:
    """Return the processor seconds of a run, the form of the paper's Table 2, and milliseconds per step."""
    columns = groups(results)
    return make_table(
        "times",
        "Processor seconds per run, mean ± standard error (milliseconds per step)",
        ("algorithm", *(group.label for group in columns)),
        [(name, *(_time_cell(group, name) for group in columns)) for name in _row_labels(columns)],
        (
            "Planning and learning, one thread, compiling not counted.",
            incomplete_note(columns),
            *_trouble_notes(columns),
        ),
        warning=results.warning,
    )


def overall(results: Results) -> ResultTable | None:
    """Return normalised scores over all environments; None where there are not several with reference values."""
    columns = [g for g in groups(results) if g.ceilings and g.ceilings.optimum > g.ceilings.random]
    if len(columns) < 2:
        return None
    others = ", ".join(group.label for group in groups(results) if group not in columns)
    everywhere = [name for name in _row_labels(columns) if all(_has_runs(group, name) for group in columns)]
    table = make_table(
        "overall",
        f"Normalised score over {len(columns)} environments: 0 random play, 1 optimum of the known model",
        ("algorithm", "IQM, 95% interval", "mean", "mean rank", "environments"),
        [_overall_row(name, columns, everywhere) for name in _row_labels(columns)],
        (
            "IQM: interquartile mean over the runs of all environments, each environment with the same weight; runs "
            "resampled within environments. With few environments, what it leaves out at both ends is mostly whole "
            "environments; the mean has them all.",
            "An algorithm without a figure is not in the table of every environment. Ranks are among the others.",
            incomplete_note(columns),
            f"Not counted, as their optimum over that horizon is not known: {others}." if others else "",
        ),
        warning=results.warning,
    )
    # those without a score last
    return table.sorted_by(lambda row: np.inf if row[1].value is None else -row[1].value)


def _shown_decimals(group: Group) -> int:
    return decimals(summary.standard_error for summary in group.summaries.values())


def _reward_cell(results: Results, group: Group, name: str, shown: int) -> Entry:
    """Return the mean total, or why there is none: all runs failed, none was begun, or tuning excluded it."""
    if name not in group.named:
        return "excluded" if _all_excluded(results, group.environment, name) else None
    summary = group.summaries[name]
    if not summary.runs:
        failures = group.named[name].failures
        return f"all {len(failures)} failed" if failures else "no runs yet"
    mark = ""
    if (
        name != group.best and not group.blind
    ):  # too few runs tell nothing, which is not to say that all are equal
        mark = NEAR_BEST if name in group.near_best else UNDECIDED if name in group.undecided else ""
    is_best = name == group.best and group.returns is None
    return mean_error_cell(summary.mean.value, summary.standard_error, shown, is_best, mark)


def _time_cell(group: Group, name: str) -> Entry:
    if not _has_runs(group, name):
        return None
    sample = group.named[name]
    seconds = float(sample.cpu_seconds.mean())
    words = mean_cell(sample.cpu_seconds, decimals_of(significant(seconds))).text
    numbers = (("seconds", seconds), ("ms per step", sample.mean_ms))
    return TableCell(f"{words} ({significant(sample.mean_ms)})", numbers)


def _all_excluded(results: Results, environment: str, algorithm: str) -> bool:
    """Return whether nothing was evaluated because every configuration was excluded in tuning."""
    tuned = results.select(TUNE, environment, algorithm)
    evaluated = results.select(EVALUATE, environment, algorithm)
    return bool(tuned) and not evaluated and all(sample.excluded for sample in tuned)


def _has_runs(group: Group, name: str) -> bool:
    return name in group.named and group.named[name].runs > 0


def _overall_row(name: str, columns: list[Group], everywhere: list[str]) -> tuple[Entry, ...]:
    count = sum(_has_runs(group, name) for group in columns)
    covered = number_cell(count, f"{count} of {len(columns)}")
    if name not in everywhere:
        return name, None, None, None, covered
    known = [(g.named[name].totals, g.ceilings) for g in columns if g.ceilings]
    scores = [rescaled(totals, ceilings.random, ceilings.optimum) for totals, ceilings in known]
    mean = float(np.mean([part.mean() for part in scores]))
    ranks = [[n for n in group.ranked if n in everywhere].index(name) + 1 for group in columns]
    iqm = value_interval_cell(pooled_iqm(scores), 3)
    return name, iqm, number_cell(mean, f"{mean:.3f}"), float(np.mean(ranks)), covered


def _row_labels(columns: Iterable[Group]) -> list[str]:
    """Return row labels in the order of appearance, configurations of one algorithm together."""
    order: dict[str, dict[str, None]] = {}
    for group in columns:
        for name, sample in group.named.items():
            order.setdefault(sample.algorithm, {})[name] = None
    return [name for variants in order.values() for name in variants]


# One environment


def summaries(results: Results, environment: str) -> list[ResultTable]:
    """Return all figures of an environment, a table for each horizon; the algorithms by their means."""
    return [_summary(results, group) for group in groups_in(results, environment)]


def _summary(results: Results, group: Group) -> ResultTable:
    shown, ranked = _shown_decimals(group), group.ranked
    rows = [_summary_row(results, group, name, shown) for name in ranked]
    for label, field in REFERENCES.items() if group.ceilings else ():
        value = getattr(group.ceilings, field)
        scores = _score_cells(value, group)
        rows.append((label, None, number_cell(value, f"{value:.{shown}f}"), None, None, *scores, None))
    few = any(1 < sample.runs < FEW_RUNS for sample in group.samples)
    scored = ("of optimum", "normalised") if group.ceilings else ()
    return make_table(
        f"summary_{group.stem}",
        f"{group.label}: {group.horizon} steps",
        ("algorithm", "runs", "total reward", "95% interval", "IQM, 95% interval", *scored, "ms/step"),
        rows,
        (
            _marks_note([group]) if group.returns is None else SAME_TOTALS_NOTE,
            "Normalised: 0 random play, 1 optimum." if scored else "",
            incomplete_note([group]),
            _blind_note([group]),
            f"Bootstrap intervals of fewer than {FEW_RUNS} runs are too narrow." if few else "",
            *_trouble_notes([group]),
        ),
        rules=[len(ranked)] if group.ceilings else (),
        warning=results.warning,
    )


def _summary_row(results: Results, group: Group, name: str, shown: int) -> tuple[Entry, ...]:
    sample, summary = group.named[name], group.summaries[name]
    return (
        name,
        number_cell(sample.runs, f"{sample.runs}{_failed(sample)}"),
        _reward_cell(results, group, name, shown),
        interval_cell(summary.mean, shown),
        value_interval_cell(summary.iqm, shown),
        *_score_cells(summary.mean.value, group),
        sample.mean_ms,
    )


def _failed(sample: Sample) -> str:
    return f" ({len(sample.failures)} failed)" if sample.failures else ""


def _score_cells(total: float, group: Group) -> tuple[TableCell, ...]:
    """Return a total as a share of the optimum, and normalised; nothing where the model is not known."""
    if not group.ceilings:
        return ()
    optimum, random = group.ceilings.optimum, group.ceilings.random
    share, score = float(rescaled(total, 0.0, optimum)), float(rescaled(total, random, optimum))
    return number_cell(share, f"{100 * share:.1f}%"), number_cell(score, f"{score:.3f}")


def episodes(results: Results, environment: str) -> list[ResultTable]:
    """Return the episodes of an environment, a table for each horizon; none where no episode was recorded."""
    made = []
    for group in groups_in(results, environment):
        found = {name: group.named[name].episodes() for name in group.ranked}
        if any(found.values()):
            made.append(
                make_table(
                    f"episodes_{group.stem}",
                    f"{group.label}: completed episodes",
                    ("algorithm", "episodes per run", "mean return", "success"),
                    [(name, *_episode_cells(one)) for name, one in found.items()],
                    [EPISODES_NOTE],
                    warning=results.warning,
                )
            )
    return made


def _episode_cells(found: EpisodeSummary | None) -> tuple[Entry, ...]:
    if found is None:
        return (None,) * 3
    success = np.nan if found.success is None else found.success
    error = standard_error(found.returns)
    return (
        number_cell(found.per_run, f"{found.per_run:.1f}"),
        mean_error_cell(found.mean_return, error, 3 if np.isnan(error) else decimals([error])),
        number_cell(success, f"{100 * success:.1f}%"),
    )


# Paired comparisons


def against_best(results: Results, environment: str) -> list[ResultTable]:
    """Return the best algorithm less each of the others, a table for each horizon."""
    made = []
    for group in groups_in(results, environment):
        best = group.best
        if best is not None and len(group.named) > 1 and group.returns is None:
            pairs = [_with_first(pair, best) for pair in group.compared if best in (pair.first, pair.second)]
            of_rival = {pair.second: pair for pair in pairs}
            rows = [_pair_row(of_rival[name], group) for name in group.ranked if name in of_rival]
            title = f"{group.label}: {best} less each of the others"
            name = f"compared_{group.stem}"
            made.append(
                make_table(name, title, PAIR_HEADER, rows, [TEST_NOTE], PAIR_ALIGN, warning=results.warning)
            )
    return made


def all_pairs(results: Results) -> ResultTable:
    """Return every pair in every environment."""
    rows = [(group.label, *_pair_row(pair, group)) for group in groups(results) for pair in group.compared]
    header, align = ("environment", *PAIR_HEADER), f"l{PAIR_ALIGN}"
    title = "All paired comparisons"
    return make_table("pairs", title, header, rows, [TEST_NOTE], align, warning=results.warning)


def _with_first(pair: Comparison, first: str) -> Comparison:
    """Return the same comparison with ``first`` first."""
    if pair.first == first:
        return pair
    return replace(pair, first=pair.second, second=pair.first, difference=pair.gain(pair.second))


def _verdict(pair: Comparison, group: Group) -> str | None:
    if not pair.runs:
        return None
    if pair.distinguishable:
        return "yes"
    return TOO_FEW if group.blind else ABOUT_EQUAL if group.narrow(pair) else NOT_DECIDED


def _pair_row(pair: Comparison, group: Group) -> tuple[Entry, ...]:
    shown = decimals([(pair.difference.high - pair.difference.low) / 4])
    difference = value_interval_cell(pair.difference, shown)
    p_values = p_value_cell(pair.p), p_value_cell(pair.adjusted)
    return pair.first, pair.second, pair.runs, difference, *p_values, _verdict(pair, group)


# Incomplete evaluations


def unfinished(results: Results) -> list[ResultTable]:
    """Return a table with a row for every cell, or configuration of one, that is not complete; none if all are.

    Cells without any runs have one row per algorithm.
    """
    rows: list[tuple[Entry, ...]] = []
    not_begun: dict[tuple[str, str], list[str]] = {}
    cells = results.cells or tuple(
        dict.fromkeys((s.environment, s.algorithm) for s in results.select(EVALUATE))
    )
    for environment, algorithm in cells:
        samples = results.select(EVALUATE, environment, algorithm)
        for name, sample in zip(sample_labels(samples), samples):
            if not sample.complete:
                runs = f"{sample.runs} of {max(sample.asked, 1)}{_failed(sample)}"
                reward = mean_cell(sample.totals)
                rows.append((environment, name, number_cell(sample.runs, runs), reward, sample.mean_ms))
        if not samples:
            why = "all excluded" if _all_excluded(results, environment, algorithm) else "no runs"
            not_begun.setdefault((algorithm, why), []).append(environment)
    n_environments = len({environment for environment, _ in cells})
    for (algorithm, why), environments in not_begun.items():
        where = "all" if len(environments) == n_environments > 1 else ", ".join(environments)
        rows.append((where, algorithm, why, None, None))
    if not rows:
        return []
    apart = replace(results, samples=tuple(s for s in results.select(EVALUATE) if not s.complete))
    return [
        make_table(
            "unfinished",
            "Too slow or unfinished here",
            ("environment", "algorithm", "runs", "total reward", "ms/step"),
            rows,
            (INCOMPLETE_NOTE, *_trouble_notes(groups(apart))),
            "llrrr",
            warning=results.warning,
        )
    ]


# Notes under tables: how to read them, and what they cannot tell


def incomplete_note(columns: Iterable[Group]) -> str:
    """Return a note on environments whose rows are shown although none has all of its runs; empty if none are."""
    early = ", ".join(group.label for group in columns if any(not s.complete for s in group.samples))
    return f"{early}: not all runs are there; means are of those that are." if early else ""


def _length_note(columns: Iterable[Group]) -> str:
    """Return how many runs there are, of how many steps."""
    runs = [sample.runs for group in columns for sample in group.samples if sample.runs]
    low, high = min(runs, default=0), max(runs, default=0)
    span = "none" if not runs else str(low) if low == high else f"{low} to {high}"
    steps = ", ".join(f"{group.label} {group.horizon}" for group in columns)
    return f"Runs per cell: {span}. Steps per run: {steps}."


def _marks_note(columns: Sequence[Group]) -> str:
    """Return what bold, ≈ and ? mean; the latter two are not used where no difference could be told."""
    return "Bold: the highest mean." + ("" if all(g.blind for g in columns) else f" {NEAR_NOTE}")


def _blind_note(columns: Iterable[Group]) -> str:
    """Return a note on environments with so few common runs that the test cannot tell anything apart."""
    blind = ", ".join(group.label for group in columns if group.blind)
    return f"{blind}: {BLIND_NOTE}" if blind else ""


def _trouble_notes(columns: Iterable[Group]) -> list[str]:
    """Return notes on runs that failed, and on configurations that are over a limit."""
    entries = [(group, name, sample) for group in columns for name, sample in group.named.items()]
    failed = [
        f"{group.label}, {name}: {len(s.failures)} of {s.runs + len(s.failures)} runs failed ({s.failures[0]})."
        for group, name, s in entries
        if s.failures and "failed" not in s.excluded  # which says the same
    ]
    return failed + [f"{group.label}, {name}: {s.excluded}." for group, name, s in entries if s.excluded]
