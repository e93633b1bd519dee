"""Make the tables and figures of the page on evidence from exported runs.

    python tools/evidence_page.py            # writes docs/evidence.md, its figure and the table of README.md

The pages have marks, <!-- begin: NAME --> and <!-- end: NAME -->; what is between them is made here, the sentences are
written by people. A study of which nothing has been exported yet has a line in place of its tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reproduction_page import _folded, _join, fill, run_counts, source_of
from searches import over_searches, pooled, searches, without_draw
from time_study import ALL_IN, BUDGETS, LONGER, PAPER_LIMIT, TIMES, time_study, times_in
from time_study import NAME as TIME

from bamdp.lab.collect import collect_results
from bamdp.lab.exports import export_name, open_exports
from bamdp.lab.figures import looks, save_figure
from bamdp.lab.figures import style as figure_style
from bamdp.lab.figures.curves import log_time_axis
from bamdp.lab.papers import paper_study
from bamdp.lab.papers.deep_sea import COUNT_NOTE, total_bad_episodes
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.study import Study
from bamdp.lab.tables.evaluation import against_best, matrix, overall, unfinished
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    decimals,
    make_table,
    mean_cell,
    mean_error_cell,
    to_markdown,
    value_interval_cell,
)
from bamdp.lab.tables.tuning import choices
from bamdp.statistics import estimate, rescaled, standard_error

PAGES, IMAGES = ("docs/evidence.md", "README.md"), "docs/images"
FAMILIES, SECOND, SINGLE, FIRST = "bbrl2016/families", "dss2020/fair2", "dss2020/single2", "dss2020/fair"
SEAS = "dss2020/deep-sea"
STUDIES = (FAMILIES, FIRST, SECOND, SINGLE, SEAS, TIME)
FILE_OF = {SINGLE: SECOND}  # whose runs are all among those of the other study
PRIORS = ("law", "flat", "wrong")
FAMILY_DISCOUNT = 0.95
FAMILY_NOTE = (
    "Bold: the highest mean. Differences are paired, on the same worlds, with the bootstrap 95% interval; behind the "
    "first: of the algorithm with the highest mean among those with the correct prior, less this one with it."
)
STAGES = (1, 2, 3)
TIME_FIGURE = "reward-within-time"


@dataclass(frozen=True, eq=False)
class Found:
    """A study and what has been run of it."""

    study: Study
    results: Results


@contextmanager
def read_studies(folder: Path, names: Sequence[str]) -> Iterator[tuple[dict[str, Found], str]]:
    """Read the studies that have an exported file in ``folder/PAPER``, for the duration of a ``with`` block.

    Yields what was found, and with which versions and on which machines it was run.
    """
    files = {name: FILE_OF.get(name, name) for name in names}
    paths = {file: folder / file.partition("/")[0] / export_name(file) for file in files.values()}
    with open_exports([path for path in paths.values() if path.exists()]) as exports:
        found: dict[str, Found] = {}
        for name, file in files.items():
            if not paths[file].exists():
                continue
            study = (
                time_study([found[source].results for source in (FIRST, SECOND)])
                if name == TIME
                else paper_study(name)
            )
            found[name] = Found(study, collect_results(study, exports.store_of(file)))
        yield found, source_of(exports.together)


# Families of worlds


def discounted_returns(sample: Sample) -> NDArray[np.float64]:
    """Return the discounted return of each run."""
    rewards = sample.traces()
    return np.asarray(rewards @ FAMILY_DISCOUNT ** np.arange(rewards.shape[1]), float)


def family_tables(found: Found, what: str) -> list[ResultTable]:
    """Return a table for each family: algorithms with each prior, and what a wrong one costs; of totals or returns."""
    return [_family_table(found.results, family, what) for family in found.results.environments]


def _family_table(results: Results, family: str, what: str) -> ResultTable:
    values = {
        sample.algorithm: sample.totals if what == "total" else discounted_returns(sample)
        for sample in results.select(EVALUATE, family)
        if sample.complete
    }
    bases = dict.fromkeys(name.rpartition("-")[0] if name.endswith(PRIORS) else name for name in values)
    means = {name: float(v.mean()) for name, v in values.items()}
    best = max(means, key=means.__getitem__, default=None)
    first = max((n for n in means if n.endswith(PRIORS[0])), key=means.__getitem__, default=None)
    shown = decimals([standard_error(v) for v in values.values()])
    title = "total reward" if what == "total" else "return discounted by 0.95"
    header = (
        "algorithm",
        "correct prior",
        "flat",
        "wrong",
        "behind the first",
        "correct − flat",
        "correct − wrong",
    )
    table = make_table(
        f"family_{family}_{what}",
        f"{family}: {title} in 250 steps, mean ± standard error over {_worlds(values)} worlds",
        header,
        [_family_row(base, values, best, first, shown) for base in bases],
    )
    return table.sorted_by(lambda row: -max(cell.value for cell in row[1:4] if cell.value is not None))


def _worlds(values: Mapping[str, NDArray[np.float64]]) -> str:
    sizes = sorted({len(v) for v in values.values()})
    return " to ".join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else "no"


def _family_row(
    base: str, values: Mapping[str, NDArray[np.float64]], best: str | None, first: str | None, shown: int
) -> tuple[Entry, ...]:
    names = [f"{base}-{prior}" for prior in PRIORS]
    if not any(name in values for name in names):  # one without a prior
        cells: list[Entry] = [mean_cell(values[base], shown, base == best), None, None]
        return base, *cells, _gain_cell(values, first, base, shown), None, None
    cells = [mean_cell(values.get(name, ()), shown, name == best) for name in names]
    gains = [_gain_cell(values, names[0], name, shown) for name in names[1:]]
    return base, *cells, _gain_cell(values, first, names[0], shown), *gains


def _gain_cell(
    values: Mapping[str, NDArray[np.float64]], first: str | None, second: str, shown: int
) -> Entry:
    if first == second or first not in values or second not in values:
        return None
    return value_interval_cell(estimate(np.mean, values[first] - values[second]), shown)


# The second edition


def search_table(found: Found) -> ResultTable:
    """Return what each algorithm earns over its searches, and how much of its space they saw."""
    rows = []
    for environment in found.results.environments:
        for algorithm, done in searches(found.results, environment).items():
            rows.append(_search_row(found, environment, algorithm, done))
    note = (
        "Total reward over all searches, with a 95% interval that counts how searches differ (Student's; see "
        "statistics). Means: of each search alone. Seen: configurations that were tried in all searches together, of "
        "all in the space; too slow: those of them that were stopped."
    )
    header = ("environment", "algorithm", "searches", "total, 95% interval", "means", "seen", "too slow")
    return make_table("searches", "What the searches found", header, rows, [note], "llrrlrr")


def _search_row(found: Found, environment: str, algorithm: str, done: Sequence[Sample]) -> tuple[Entry, ...]:
    cells = [
        cell
        for cell in found.study.cells
        if cell.environment.label == environment and without_draw(cell.algorithm) == algorithm
    ]
    distinct = {repr(one) for cell in cells for one in cell.configurations}
    slow = {
        repr(sample.configuration)
        for sample in found.results.select(TUNE, environment)
        if without_draw(sample.algorithm) == algorithm and sample.excluded
    }
    shown = decimals([standard_error(sample.totals) for sample in done])
    means = ", ".join(f"{sample.mean_total:.{shown}f}" for sample in done)
    seen = f"{len(distinct)} of {cells[0].space_size}"
    total = value_interval_cell(over_searches(done), shown)
    return environment, algorithm, len(done), total, means, seen, len(slow)


def stage_table(found: Found) -> ResultTable:
    """Return how many configurations of DSS were too slow, by their number of stages."""
    rows = []
    for environment in found.results.environments:
        for algorithm in ("dss-pi", "dss-rtdp"):
            tried: dict[str, Sample] = {}
            for sample in found.results.select(TUNE, environment):
                if without_draw(sample.algorithm) == algorithm and (sample.runs or sample.excluded):
                    tried[repr(sample.configuration)] = sample
            if tried:
                rows.append((environment, algorithm, *(_stopped(tried.values(), n) for n in STAGES)))
    header = ("environment", "algorithm", *(f"H = {n}" for n in STAGES))
    return make_table("stages", "Configurations of DSS that were too slow, of those tried", header, rows)


def _stopped(tried: Iterable[Sample], n_stages: int) -> str:
    of_depth = [sample for sample in tried if sample.configuration["n_stages"] == n_stages]
    return f"{sum(bool(sample.excluded) for sample in of_depth)} of {len(of_depth)}"


# Deep sea with the same chances


def sea_table(found: Found) -> ResultTable:
    """Return the bad episodes of every algorithm in both seas, the fewest in the deterministic one first."""
    results = found.results
    bad = {
        (s.environment, s.algorithm): total_bad_episodes(s, SEAS)
        for s in results.select(EVALUATE)
        if s.complete
    }
    rows = []
    for algorithm in dict.fromkeys(name for _, name in bad):
        cells: list[Entry] = []
        for environment in results.environments:
            here = {name: values for (where, name), values in bad.items() if where == environment}
            cells += _sea_cells(here, algorithm)
        rows.append((algorithm, *cells))
    header = (
        "algorithm",
        *(word for name in results.environments for word in (name, "more than the fewest")),
    )
    note = "More than the fewest: paired, on the same replicates, with the bootstrap 95% interval."
    title = "Bad episodes of 1000, mean ± standard error"
    table = make_table("seas", title, header, rows, [COUNT_NOTE, note])
    return table.sorted_by(lambda row: math.inf if row[1].value is None else row[1].value)


def _sea_cells(bad: Mapping[str, NDArray[np.float64]], algorithm: str) -> list[Entry]:
    if algorithm not in bad:
        return [None, None]
    fewest = min(bad, key=lambda name: float(bad[name].mean()))
    more = None if algorithm == fewest else estimate(np.mean, bad[algorithm] - bad[fewest])
    return [mean_cell(bad[algorithm], 1), more and value_interval_cell(more, 1)]


# Reward within a time

Scores = Mapping[str, Mapping[str, NDArray[np.float64]]]


def within_time(found: Found) -> Scores:
    """Return, by environment and algorithm, the score of what was chosen within each time: [time, (mean, error)]."""
    asked = {(cell.environment.label, cell.algorithm): cell.runs for cell in found.study.cells}
    words = [*TIMES, *LONGER]
    scores: dict[str, dict[str, NDArray[np.float64]]] = {}
    for sample in found.results.select(EVALUATE):
        known = found.results.ceilings[sample.environment]
        if sample.runs < asked[sample.environment, sample.algorithm]:
            continue
        algorithm, _, word = sample.algorithm.rpartition("-")
        rows = scores.setdefault(sample.environment, {})
        row = rows.setdefault(algorithm, np.full((len(words), 2), np.nan))
        values = rescaled(sample.totals, known.random, known.optimum)
        row[words.index(word)] = values.mean(), standard_error(values)
    return scores


def time_table(scores: Scores) -> ResultTable:
    """Return the mean score within each time up to 100 ms, over the environments that have all of them."""
    algorithms = dict.fromkeys(name for by_algorithm in scores.values() for name in by_algorithm)
    times = {word: ms for word, ms in times_in(ALL_IN[0]).items() if word != PAPER_LIMIT}
    nothing = np.full((len(times), 2), np.nan)
    rows = []
    for algorithm in algorithms:
        table = np.array([scores.get(where, {}).get(algorithm, nothing)[: len(times)] for where in ALL_IN])
        means = table[:, :, 0].mean(axis=0)
        errors = np.sqrt((table[:, :, 1] ** 2).sum(axis=0)) / len(ALL_IN)
        rows.append((algorithm, *map(_score_cell, np.column_stack([means, errors]))))
    note = (
        f"Mean over {', '.join(ALL_IN)} of the normalised score (0 random play, 1 optimum) ± standard error. For "
        "each time, the configuration that tuning found best among those that took at most so long per step, run on "
        "other random numbers: 20 runs, 10 of what takes more than 1 ms, 4 at 100 ms, where algorithms have their "
        "choice for 10 ms with more of their budget. Empty where some environment has none that quick."
    )
    title = "What one gets within a time per step"
    table = make_table("within_time", title, ("algorithm", *map(_time_word, times.values())), rows, [note])
    return table.sorted_by(lambda row: -max((c.value for c in row[1:] if c.value is not None), default=-1.0))


def longer_table(found: Found, scores: Scores) -> ResultTable:
    """Return what algorithms that can use more time make of it, world by world."""
    used = {(s.environment, s.algorithm): float(s.ms_per_step.mean()) for s in found.results.select(EVALUATE)}
    words = [*TIMES, *LONGER]
    rows = []
    for environment in ALL_IN:
        shown = [word for word in LONGER if environment in LONGER[word]]
        for algorithm in BUDGETS:
            score = scores.get(environment, {}).get(algorithm)
            if score is None:
                continue
            cells = [_score_cell(score[words.index(word)]) for word in ("10ms", *LONGER)]
            last = used.get((environment, f"{algorithm}-{shown[-1]}"))
            rows.append((environment, algorithm, *cells, None if last is None else f"{last:.3g}"))
    header = (
        "environment",
        "algorithm",
        "10 ms",
        "100 ms",
        "the paper's limit",
        "ms per step taken in the last",
    )
    note = (
        "Normalised score ± standard error. The paper's limit is 250 ms in chain and double_loop; in grid5 it is 1 s, "
        "which was not run."
    )
    return make_table(
        "longer_times", "More time per step, for algorithms that can use it", header, rows, [note], "llrrrr"
    )


def _score_cell(score: NDArray[np.float64]) -> Entry:
    """Return a mean with its error; None where it was not run."""
    return None if math.isnan(score[0]) else mean_error_cell(score[0], score[1], 3)


def _time_word(ms: float) -> str:
    return f"{1000 * ms:g} µs" if ms < 1.0 else f"{ms:g} ms"


def draw_times(scores: Scores, folder: Path) -> list[Path]:
    """Draw the score against the time per step, with standard errors, a panel for each environment."""
    algorithms = dict.fromkeys(name for by_algorithm in scores.values() for name in by_algorithm)
    by_algorithm = looks(algorithms)
    with figure_style.new_figure(len(scores), (4.0, 2.8)) as (figure, panels):
        for axes, (environment, rows) in zip(panels, scores.items()):
            for algorithm, row in rows.items():
                look, times = by_algorithm[algorithm], list(times_in(environment).values())
                axes.errorbar(
                    times, row[:, 0], row[:, 1], color=look.colour, linestyle=look.line, marker=look.marker,
                    markersize=3.5, linewidth=1.2, elinewidth=0.7, label=algorithm,
                )  # fmt: skip
            log_time_axis(axes)
            axes.set(xlabel="at most so many ms per step", ylabel="normalised score", ylim=(-0.02, 1.02))
            figure_style.add_title(axes, environment)
        figure_style.add_legend_below(figure, panels)
    return save_figure(figure, folder / TIME_FIGURE, ["png"])


# The page


def page_parts(found: Mapping[str, Found], source: str) -> dict[str, str]:
    """Return the generated parts of the page as Markdown, by name."""
    here = {name: one.results for name, one in found.items() if name != FIRST}  # that is on another page
    makers = {
        "families": (FAMILIES, _families_part),
        "second": (SECOND, _second_part),
        "readme": (SECOND, _readme_part),
        "single": (SINGLE, _single_part),
        "seas": (SEAS, _seas_part),
        "time": (TIME, _time_part),
    }
    parts = {
        part: make(found[study]) if study in found else f"*Nothing of `{study}` has been exported yet.*"
        for part, (study, make) in makers.items()
    }
    return {"state": to_markdown(run_counts(here, source)), **parts}


def _families_part(found: Found) -> str:
    return _join(
        *(to_markdown(table) for table in family_tables(found, "return")),
        f"- {FAMILY_NOTE}",
        _folded("Total rewards", family_tables(found, "total")),
        *map(to_markdown, unfinished(found.results)),
    )


def _whole(found: Found) -> Results:
    """Return the results of the algorithms whose searches are all complete, each search with its runs."""
    return pooled(found.results, 1 + max(cell.draw for cell in found.study.cells))


def _readme_part(found: Found) -> str:
    whole = _whole(found)
    return _join(to_markdown(matrix(whole)) if whole.samples else "", _time_figure("docs/"))


def _second_part(found: Found) -> str:
    whole = _whole(found)
    score = overall(whole) if whole.samples else None
    left = unfinished(found.results)
    return _join(
        to_markdown(matrix(whole)) if whole.samples else "",
        to_markdown(score) if score else "",
        _folded("Differences to the best algorithm of each environment", _differences(whole)),
        _folded("What each search found, and how much of the space it saw", [search_table(found)]),
        _folded("How many stages there was time for", [stage_table(found)]),
        _folded("What is not finished", left) if left else "",
    )


def _differences(results: Results) -> list[ResultTable]:
    return [table for name in results.environments for table in against_best(results, name)]


def _single_part(found: Found) -> str:
    results = found.results
    first = results.environments[0]  # the choice is the same in all
    chosen = choices(replace(results, samples=tuple(s for s in results.samples if s.environment == first)))
    complete = replace(results, samples=tuple(s for s in results.samples if s.complete))
    return _join(
        to_markdown(matrix(results)),
        _folded("Differences to the best algorithm of each environment", _differences(complete)),
        _folded(f"What was chosen for all, with its total in {first}", [chosen]),
        *map(to_markdown, unfinished(results)),
    )


def _seas_part(found: Found) -> str:
    return _join(
        to_markdown(sea_table(found)),
        _folded("What was chosen", [choices(found.results)]),
        *map(to_markdown, unfinished(found.results)),
    )


def _time_part(found: Found) -> str:
    scores = within_time(found)
    return _join(_time_figure(""), to_markdown(time_table(scores)), to_markdown(longer_table(found, scores)))


def _time_figure(folder: str) -> str:
    return f"![Normalised score against processor time per step]({folder}images/{TIME_FIGURE}.png)"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", default="results", metavar="FOLDER", help="exported runs")
    parser.add_argument("--root", default=".", metavar="FOLDER", help="of the repository (default: here)")
    arguments = parser.parse_args(argv)
    root = Path(arguments.root)
    try:
        pages = {path: (root / path).read_text(encoding="utf-8") for path in PAGES}
        with read_studies(Path(arguments.folder), STUDIES) as (found, source):
            parts = page_parts(found, source)
            filled = {path: fill(page, parts) for path, page in pages.items()}
            figures = draw_times(within_time(found[TIME]), root / IMAGES) if TIME in found else []
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path, page in filled.items():
        (root / path).write_text(page, encoding="utf-8")
    for written in (*filled, *figures):
        print(f"written: {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
