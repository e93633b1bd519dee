"""What the evaluation came to: a paper's matrix, processor times, all figures of an environment, all environments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bamdp.lab.groups import Group, groups
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.statistics import (
    Summary,
    normalised,
    normalised_totals,
    pooled_iqm,
    share_of_optimum,
    summarise,
)
from bamdp.lab.tables.notes import (
    MARKS,
    blind_notes,
    length_note,
    narrow_notes,
    so_far_notes,
    trouble_notes,
    warning,
)
from bamdp.lab.tables.table import (
    MISSING,
    Cell,
    Table,
    decimals,
    decimals_of,
    interval,
    mean_error,
    number,
    significant,
    text,
    value_interval,
)

NEAR = " ≈"
OPTIMUM, RANDOM = "optimum, model known", "random play"


def matrix(results: Results) -> Table:
    """Mean total rewards of algorithms × environments, the form of the paper's Table 1."""
    columns = groups(results)
    cells = [_reward_column(group) for group in columns]
    rows = [[text(name), *(column.get(name, _absent(results, name, g)) for column, g in zip(cells, columns))]
            for name in _rows(columns)]  # fmt: skip
    rules: tuple[int, ...] = ()
    if any(group.ceilings for group in columns):
        rules = (len(rows),)
        rows += [_ceiling_row(OPTIMUM, columns, "optimum"), _ceiling_row(RANDOM, columns, "random")]
    return Table(
        "rewards",
        "Total reward, mean ± standard error",
        ("algorithm", *(group.label for group in columns)),
        tuple(map(tuple, rows)),
        "l" + "r" * len(columns),
        (
            length_note(columns),
            MARKS,
            *so_far_notes(columns),
            *blind_notes(columns),
            *trouble_notes(columns),
        ),
        rules,
        warning(results),
    )


def times(results: Results) -> Table:
    """Processor seconds of a run, the form of the paper's Table 2, and milliseconds of a step."""
    columns = groups(results)
    return Table(
        "times",
        "Processor seconds of a run, mean ± standard error (milliseconds of a step)",
        ("algorithm", *(group.label for group in columns)),
        tuple((text(name), *(_time_cell(group, name) for group in columns)) for name in _rows(columns)),
        "l" + "r" * len(columns),
        (
            "Planning and learning, one thread, compiling not counted.",
            *so_far_notes(columns),
            *trouble_notes(columns),
        ),
        (),
        warning(results),
    )


def summaries(results: Results, environment: str) -> tuple[Table, ...]:
    """All figures of an environment, a table for each horizon; the algorithms by their means."""
    return tuple(_summary(results, group) for group in groups(results) if group.environment == environment)


def overall(results: Results) -> Table | None:
    """Normalised scores over all environments together; None where there are not several with known ceilings."""
    columns = [group for group in groups(results) if _spread(group) > 0.0]
    others = [group.label for group in groups(results) if group not in columns]
    if len(columns) < 2:
        return None
    everywhere = [name for name in _rows(columns) if all(_ran(group, name) for group in columns)]
    rows = sorted((_overall_row(name, columns, everywhere) for name in _rows(columns)), key=_by_score)
    return Table(
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
            *so_far_notes(columns),
            *(
                [f"Not counted, as their optimum over that horizon is not known: {', '.join(others)}."]
                if others
                else []
            ),
        ),
        (),
        warning(results),
    )


def _summary(results: Results, group: Group) -> Table:
    shown = decimals(found.standard_error for found in group.summaries.values())
    rows = [_summary_row(group, name, shown) for name in group.ranked]
    rules: tuple[int, ...] = ()
    if group.ceilings:
        rules = (len(rows),)
        rows += [
            _reference_row(group, OPTIMUM, group.ceilings.optimum, shown),
            _reference_row(group, RANDOM, group.ceilings.random, shown),
        ]
    header = (
        "algorithm",
        "runs",
        "total reward",
        "95% interval",
        "IQM, 95% interval",
        "of optimum",
        "normalised",
    )
    return Table(
        f"summary_{group.stem}",
        f"{group.label}: {group.horizon} steps",
        (*header, "ms/step"),
        tuple(rows),
        "lrrrrrrr",
        (
            MARKS,
            "Normalised: 0 random play, 1 optimum.",
            *so_far_notes([group]),
            *blind_notes([group]),
            *narrow_notes(group),
            *trouble_notes([group]),
        ),
        rules,
        warning(results),
    )


def _summary_row(group: Group, name: str, shown: int) -> tuple[Cell, ...]:
    sample, found = group.named[name], group.summaries[name]
    share, score = (
        share_of_optimum(found.mean, group.ceilings).value,
        normalised(found.mean, group.ceilings).value,
    )
    runs = f"{sample.runs}" + (f" ({len(sample.failures)} failed)" if sample.failures else "")
    return (
        text(name),
        number(sample.runs, runs),
        _reward_cell(group, name, shown),
        interval(found.mean, shown),
        value_interval(found.iqm, shown),
        number(share, f"{100 * share:.1f}%"),
        number(score, f"{score:.3f}"),
        number(sample.ms_per_step.mean() if sample.runs else np.nan),
    )


def _reference_row(group: Group, name: str, value: float, shown: int) -> tuple[Cell, ...]:
    nothing = text(MISSING)
    found = summarise([value]).mean
    share, score = share_of_optimum(found, group.ceilings).value, normalised(found, group.ceilings).value
    total = number(value, f"{value:.{shown}f}")
    scores = (number(share, f"{100 * share:.1f}%"), number(score, f"{score:.3f}"))
    return (text(name), nothing, total, nothing, nothing, *scores, nothing)


def _reward_column(group: Group) -> dict[str, Cell]:
    shown = decimals(found.standard_error for found in group.summaries.values())
    return {name: _reward_cell(group, name, shown) for name in group.named}


def _reward_cell(group: Group, name: str, shown: int) -> Cell:
    found, top = group.summaries[name], name == group.best
    if not found.runs:
        return text(
            f"all {len(group.named[name].failures)} failed" if group.named[name].failures else "no runs yet"
        )
    mark = NEAR if name in group.near_best and not top else ""
    return mean_error(found.mean.value, found.standard_error, shown, top, mark)


def _time_cell(group: Group, name: str) -> Cell:
    sample = group.named.get(name)
    if sample is None or not sample.runs:
        return text(MISSING)
    found = summarise(sample.cpu_seconds)
    words = _time_words(found, sample)
    return Cell(words, (("seconds", found.mean.value), ("ms per step", float(sample.ms_per_step.mean()))))


def _time_words(found: Summary, sample: Sample) -> str:
    shown = significant(found.mean.value)
    error = "" if np.isnan(found.standard_error) else f" ± {found.standard_error:.{decimals_of(shown)}f}"
    return f"{shown}{error} ({significant(float(sample.ms_per_step.mean()))})"


def _absent(results: Results, name: str, group: Group) -> Cell:
    """Why there is nothing: every configuration was excluded in tuning, or it was not run."""
    tuned = results.select(TUNE, group.environment, name)
    evaluated = results.select(EVALUATE, group.environment, name)
    return text("excluded" if tuned and not evaluated and all(s.excluded for s in tuned) else MISSING)


def _ceiling_row(name: str, columns: Iterable[Group], field: str) -> list[Cell]:
    values = [getattr(group.ceilings, field) if group.ceilings else np.nan for group in columns]
    return [text(name), *(number(value, f"{value:.2f}") for value in values)]


def _ran(group: Group, name: str) -> bool:
    return name in group.named and group.named[name].runs > 0


def _overall_row(name: str, columns: list[Group], everywhere: list[str]) -> tuple[Cell, ...]:
    held = sum(_ran(group, name) for group in columns)
    covered = number(held, f"{held} of {len(columns)}")
    if name not in everywhere:
        return text(name), text(MISSING), text(MISSING), text(MISSING), covered
    scores = [normalised_totals(g.named[name].totals, g.ceilings) for g in columns if g.ceilings]
    mean = float(np.mean([part.mean() for part in scores]))
    ranks = [[n for n in group.ranked if n in everywhere].index(name) + 1 for group in columns]
    rank = float(np.mean(ranks))
    return (
        text(name),
        value_interval(pooled_iqm(scores), 3),
        number(mean, f"{mean:.3f}"),
        number(rank),
        covered,
    )


def _by_score(row: tuple[Cell, ...]) -> float:
    """The highest first, those without a score last."""
    score = row[1].value
    return np.inf if score is None else -score


def _rows(columns: Iterable[Group]) -> list[str]:
    """Row labels in the order of appearance, configurations of one algorithm together."""
    order: dict[str, dict[str, None]] = {}
    for group in columns:
        for name, sample in group.named.items():
            order.setdefault(sample.algorithm, {})[name] = None
    return [name for variants in order.values() for name in variants]


def _spread(group: Group) -> float:
    return group.ceilings.optimum - group.ceilings.random if group.ceilings else 0.0
