"""Result tables: a DataFrame of numbers and text with a title and explanatory notes.

HTML, LaTeX and CSV are written by pandas. Displayed numbers have four significant digits.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from bamdp.lab.comparisons import ABOUT_EQUAL, BEST, UNDECIDED, Group, compare_all, groups
from bamdp.lab.results import QUICK_WARNING, Results
from bamdp.lab.space import parameter_text, parameters_text, varied_keys
from bamdp.lab.store import TUNE
from bamdp.statistics import Estimate, pooled_iqm, rescaled, standard_error

NO_VALUE = "–"
TEXT_WIDTH = 120  # of notes in a terminal
OPTIMUM, RANDOM = "optimum, model known", "random play"
MARKS = {BEST: " *", ABOUT_EQUAL: " ≈", UNDECIDED: " ?"}
MARKS_NOTE = (
    "*: the highest mean. ≈ and ?: not distinguishable from it (paired sign-flip test, Holm's correction, 5%). ≈ about "
    "equal: the 95% interval of the difference is within 5% of the range from random play to the "
    "optimum; ? undecided: it is wider."
)
PAIRS_NOTE = (
    "Paired sign-flip tests on common replicates, Holm's correction over all pairs; the bootstrap 95% intervals are of "
    "each pair alone."
)
OVERALL_NOTE = (
    "IQM: interquartile mean over the runs of all environments, each environment with the same weight; runs are "
    "resampled within environments. Algorithms that are missing in an environment are left out."
)


@dataclass(frozen=True, eq=False)
class Table:
    """Table of results; empty notes are omitted."""

    name: str  # stem of the file names
    title: str
    frame: DataFrame
    notes: Sequence[str] = ()

    @property
    def texts(self) -> DataFrame:
        """Entries as displayed."""
        return self.frame.map(text_of)

    def __str__(self) -> str:
        """Return plain text for a terminal."""
        columns = []
        for name, texts in self.texts.items():
            cells = [str(name), *texts]
            align = "<" if self._has_words(name) else ">"
            columns.append([f"{cell:{align}{max(map(len, cells))}}" for cell in cells])
        head, *rows = [" " + "   ".join(cells).rstrip() for cells in zip(*columns)]
        rule = " " + "─" * (sum(len(cells[0]) + 3 for cells in columns) - 3)
        notes = [textwrap.fill(note, TEXT_WIDTH, break_on_hyphens=False) for note in self.notes if note]
        return "\n".join([self.title, "", head, rule, *rows, *([""] if notes else []), *notes])

    def to_html(self) -> str:
        """Return the table as an HTML fragment."""
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in filter(None, self.notes))
        return f"<h3>{html.escape(self.title)}</h3>\n{self.texts.to_html(index=False, border=0)}\n{notes}\n"

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        rule = [":---" if self._has_words(name) else "---:" for name in self.frame]
        rows = [list(self.frame), rule, *self.texts.to_numpy().tolist()]
        lines = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
        notes = [f"- {note}" for note in filter(None, self.notes)]
        return "\n".join([f"**{self.title}**", "", *lines, "", *notes]).rstrip() + "\n"

    def write(self, folder: Path) -> None:
        """Write the table as Markdown, LaTeX and CSV (at full precision)."""
        folder.mkdir(parents=True, exist_ok=True)
        latex = self.texts.to_latex(index=False, escape=True)
        path = folder / self.name
        path.with_suffix(".md").write_text(self.to_markdown(), encoding="utf-8")
        path.with_suffix(".tex").write_text(latex, encoding="utf-8")
        self.frame.to_csv(path.with_suffix(".csv"), index=False)

    def _has_words(self, name: Any) -> bool:
        """Return whether a column contains text, which is left-aligned."""
        return all(text == NO_VALUE or not any(c.isdigit() for c in text[:2]) for text in self.texts[name])


# Numbers as text


def text_of(value: Any) -> str:
    """Return an entry as displayed.

    Examples
    --------
    >>> [text_of(value) for value in (1312.4, 0.0123456, 7, math.nan, "a")]
    ['1312', '0.01235', '7', '–', 'a']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NO_VALUE
    return significant(value) if isinstance(value, float) else str(value)


def significant(value: float, digits: int = 4) -> str:
    """Return a number as text, with ``digits`` significant digits and no exponent."""
    if value == 0.0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def decimals(errors: Iterable[float]) -> int:
    """Return the decimals that show two digits of the median standard error, at most 4; the default is 2.

    Examples
    --------
    >>> decimals([0.5, 4.7, 21.0]), decimals([0.0034]), decimals([])
    (1, 4, 2)
    """
    known = sorted(error for error in errors if error > 0.0)
    return min(4, max(0, 1 - math.floor(math.log10(known[len(known) // 2])))) if known else 2


def mean_text(mean: float, error: float, shown: int) -> str:
    """Return mean ± standard error, or the mean alone for a single run."""
    if math.isnan(mean):
        return NO_VALUE
    return f"{mean:z.{shown}f}" + ("" if math.isnan(error) else f" ± {error:.{shown}f}")


def interval_text(value: Estimate, shown: int | None = None) -> str:
    """Return a value with its interval in brackets, or the value alone if there is no interval."""
    if math.isnan(value.value):
        return NO_VALUE
    shown = decimals([(value.high - value.low) / 4]) if shown is None else shown
    ends = "" if math.isnan(value.low) else f" [{value.low:z.{shown}f} to {value.high:z.{shown}f}]"
    return f"{value.value:z.{shown}f}{ends}"


# One environment


def comparison(group: Group) -> Table:
    """Return one row per algorithm, best first: total reward, difference from the best, time per step."""
    runs = group.runs.groupby("label")
    first, ms = runs.first(), runs.ms_per_step.mean()
    unlike = [name for name in ("prior", "discount") if len({*first[name]} - {NO_VALUE}) > 1]
    rows = [
        {
            "planner": name,
            **{key: first.at[name, key] for key in unlike},
            group.measure: _mean_of(group, name),
            **({"difference to the best": _gap_of(group, name)} if len(group.values) > 1 else {}),
            "ms/step": ms[name],
        }
        for name in group.ranked
    ]
    if known := group.reference:
        for label, value in ((OPTIMUM, known.optimum), (RANDOM, known.random)):
            rows.append({"planner": label, group.measure: f"{value:.{_decimals_of(group)}f}"})
    counts = sorted({found.runs for found in group.summaries.values()})
    span = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    title = f"{group.environment}: {span} runs of {group.horizon} steps, {group.measure} ± standard error"
    differ = (
        f"Planners differ in {' and '.join(unlike)}; specify them to use the same for all." if unlike else ""
    )
    return Table("comparison", title, DataFrame(rows), [*_notes(group), differ])


def statistics(group: Group) -> Table:
    """Return the means, interquartile means, scores and episodes of each algorithm in an environment, best first."""
    known, shown = group.reference, _decimals_of(group)
    optimum, random = (known.optimum, known.random) if known else (np.nan, np.nan)
    rows = []
    for name in group.ranked:
        found, runs = group.summaries[name], group.runs[group.runs.label == name]
        rows.append(
            {
                "planner": name,
                "runs": found.runs,
                "mean": interval_text(found.mean, shown),
                "interquartile mean": interval_text(found.iqm, shown),
                "of optimum": float(rescaled(found.mean.value, 0.0, optimum)),
                "normalised": float(rescaled(found.mean.value, random, optimum)),
                "episodes": runs.episodes.mean() or np.nan,
                "mean return": runs.mean_return.mean(),
                "success": runs.success.mean(),
                "verdict": group.verdicts[name],
            }
        )
    frame = DataFrame(rows).dropna(axis="columns", how="all")
    notes = {
        "normalised": "Normalised: 0 random play, 1 optimum.",
        "success": "Success: share of episodes that ended with a positive reward.",
    }
    title = f"{group.environment}: statistics, bootstrap 95% intervals"
    return Table("statistics", title, frame, [" ".join(notes[name] for name in frame if name in notes)])


def pairs(group: Group) -> Table:
    """Compare all pairs of algorithms in an environment."""
    rows = [
        {
            "first": pair.first,
            "second": pair.second,
            "runs": pair.runs,
            "first − second": interval_text(pair.difference),
            "p": pair.p,
            "p (Holm)": pair.adjusted,
            "different": "yes" if pair.distinguishable else "no",
        }
        for pair in group.compared
    ]
    return Table("pairs", f"{group.environment}: all pairs", DataFrame(rows), [PAIRS_NOTE])


def _decimals_of(group: Group) -> int:
    return decimals(summary.standard_error for summary in group.summaries.values())


def _mean_of(group: Group, name: str) -> str:
    found = group.summaries[name]
    return mean_text(found.mean.value, found.standard_error, _decimals_of(group))


def _gap_of(group: Group, name: str) -> str:
    pair = group.to_best.get(name)
    return BEST if pair is None else interval_text(pair.difference, _decimals_of(group))


def _notes(group: Group) -> list[str]:
    """Return the notes needed to interpret the comparison in an environment."""
    alike = ", ".join(name for name in group.ranked if group.verdicts[name] in (ABOUT_EQUAL, UNDECIDED))
    return [
        f"Not distinguishable from the best (paired sign-flip test, Holm, 5%): {alike}." if alike else "",
        "Too few common runs for any difference to be significant." * group.blind,
        "All totals are equal, so planners are compared by the mean return of episodes." * group.by_return,
        *troubles(group),
    ]


def troubles(group: Group) -> list[str]:
    """Return one line per algorithm that is left out, has failed runs or exceeds the limit."""
    lines = list(group.left_out)
    for name, runs in group.runs.groupby("label", sort=False):
        bad = runs[runs.failure != ""]
        failed = f"{len(bad)} of {len(runs)} runs failed ({bad.failure.iloc[0]})" if len(bad) else ""
        if why := runs.excluded.iloc[0] or failed:
            lines.append(f"{name}: {why}.")
    return [f"{group.environment}: {line}" for line in lines]


# Algorithms × environments


def matrix(results: Results) -> Table:
    """Return the mean total reward of each algorithm in each environment, as in the DSS paper's Table 1."""
    columns = groups(results)
    frame = DataFrame({"algorithm": [*_labels(columns), OPTIMUM, RANDOM]})
    for group in columns:
        known = group.ceilings
        shown = {OPTIMUM: known.optimum, RANDOM: known.random} if known is not None else {}
        frame[group.environment] = [
            _mean_of(group, name) + MARKS.get(group.verdicts[name], "")
            if name in group.values
            else shown.get(name)
            for name in frame.algorithm
        ]
    incomplete = [
        g.environment for g in columns if (g.runs.groupby("label").size() < g.runs.asked.max()).any()
    ]
    missing = f"Not all runs are done in {', '.join(incomplete)}." if incomplete else ""
    notes = [QUICK_WARNING * results.quick, MARKS_NOTE, missing, *(t for g in columns for t in troubles(g))]
    return Table("rewards", "Total reward, mean ± standard error", frame, notes)


def overall(results: Results) -> Table | None:
    """Return normalised scores over all environments, or None if fewer than two have reference values."""
    columns = [g for g in groups(results) if g.ceilings and g.ceilings.optimum > g.ceilings.random]
    names = [name for name in _labels(columns) if all(len(g.values.get(name, ())) for g in columns)]
    if len(columns) < 2 or not names:
        return None
    rows = []
    for name in names:
        parts = [rescaled(g.values[name], g.ceilings.random, g.ceilings.optimum) for g in columns]  # type: ignore[union-attr]
        found, mean = pooled_iqm(parts), float(np.mean([part.mean() for part in parts]))
        rows.append({"algorithm": name, "IQM, 95% interval": interval_text(found, 3), "mean": mean})
    frame = DataFrame(rows).sort_values("IQM, 95% interval", ascending=False)
    title = f"Normalised score over {len(columns)} environments: 0 random play, 1 optimum of the known model"
    return Table("overall", title, frame, [OVERALL_NOTE])


def _labels(columns: Iterable[Group]) -> list[str]:
    """Return labels in order of appearance, keeping configurations of the same algorithm together."""
    order: dict[str, dict[str, None]] = {}
    for group in columns:
        for label, algorithm in zip(group.runs.label, group.runs.algorithm):
            order.setdefault(algorithm, {})[label] = None
    return [name for variants in order.values() for name in variants]


# Tuning


def tried_frame(runs: DataFrame) -> DataFrame:
    """Return one row per tested configuration: the selected one first, then by mean."""
    found = runs.groupby(runs.configuration.map(repr), sort=False)
    frame = found[["configuration", "chosen", "excluded"]].first()
    frame["runs"] = found.total.count()
    frame["mean"] = found.total.mean()
    frame["standard error"] = found.total.agg(lambda totals: standard_error(totals.dropna()))
    frame["mean return"] = found.mean_return.mean()
    frame["ms/step"] = found.ms_per_step.mean()
    return frame.sort_values(["chosen", "runs", "mean", "mean return"], ascending=False, kind="stable")


def tried(results: Results, environment: str, algorithm: str, most: int = 20) -> Table:
    """List the tested configurations, and compare the selected one with the runner-up."""
    runs = results.select(TUNE, environment, algorithm)
    found = tried_frame(runs)
    varied, shown = varied_keys(found.configuration), decimals(found["standard error"])
    frame = DataFrame({key: [parameter_text(one.get(key)) for one in found.configuration] for key in varied})
    frame["runs"] = found.runs.to_numpy()
    frame["total reward"] = [
        mean_text(mean, error, shown) for mean, error in zip(found["mean"], found["standard error"])
    ]
    if runs.total.nunique() == 1:
        frame["mean return"] = found["mean return"].to_numpy()
    frame["ms/step"] = found["ms/step"].to_numpy()
    frame[""] = ["chosen" if chosen else why for chosen, why in zip(found.chosen, found.excluded)]
    same = {key: value for key, value in found.configuration.iloc[0].items() if key not in varied}
    notes = [
        QUICK_WARNING * results.quick,
        f"{len(frame) - most} more are not shown." * (len(frame) > most),
        next_best(runs, found),
        f"The same in all: {parameters_text(same)}." * bool(same),
    ]
    title = (
        f"{environment}, {algorithm}: {len(frame)} configurations, total reward in tuning ± standard error"
    )
    return Table(f"tuning_{environment}_{algorithm}", title, frame.head(most), notes)


def next_best(runs: DataFrame, found: DataFrame) -> str:
    """Describe in words whether the selected configuration is distinguishable from the runner-up on common runs."""
    usable = found[found.excluded == ""]
    if len(usable) < 2 or not usable.chosen.iloc[0]:
        return ""
    by_name = runs.set_index("replicate").groupby(runs.configuration.map(repr).to_numpy())
    totals = by_name.mean_return if runs.total.nunique() == 1 else by_name.total
    (pair,) = compare_all({name: totals.get_group(name) for name in usable.index[:2]})
    other, varied = usable.configuration.iloc[1], varied_keys(found.configuration)
    words = parameters_text({key: other[key] for key in varied if key in other})
    verdict = "is" if pair.distinguishable else "is not"
    return (
        f"The best {verdict} distinguishable from the next ({words}): difference {interval_text(pair.difference)} over "
        f"{pair.runs} common runs, sign-flip p = {pair.p:.3f}."
    )
