"""Make the tables and figures of the page on evidence from exported runs.

    python tools/evidence_page.py            # writes docs/evidence.md and its figures

The page has marks, <!-- begin: NAME --> and <!-- end: NAME -->; what is between them is made here, the sentences are
written by people. A study of which nothing has been exported yet has a line in place of its tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reproduction_page import _folded, _join, fill
from searches import best_within, over_searches, pooled, searches, without_draw

from bamdp.ceilings import ceilings
from bamdp.envs import Environment
from bamdp.lab.collect import collect_results
from bamdp.lab.exports import export_name, open_exports
from bamdp.lab.figures import looks, save_figure
from bamdp.lab.figures import style as figure_style
from bamdp.lab.figures.curves import log_time_axis
from bamdp.lab.papers import paper_study
from bamdp.lab.papers.deep_sea import COUNT_NOTE, total_bad_episodes
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample
from bamdp.lab.statistics import estimate, rescaled, standard_error
from bamdp.lab.study import Study, cached_world
from bamdp.lab.tables.evaluation import matrix, overall, unfinished
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    decimals,
    make_table,
    mean_cell,
    number_cell,
    to_markdown,
    value_interval_cell,
)

PAGE, IMAGES = "docs/evidence.md", "docs/images"
FAMILIES, SECOND, SINGLE, FIRST = "bbrl2016/families", "dss2020/fair2", "dss2020/single2", "dss2020/fair"
SEAS = "dss2020/deep-sea"
STUDIES = (FAMILIES, FIRST, SECOND, SINGLE, SEAS)
PRIORS = ("law", "flat", "wrong")
FAMILY_DISCOUNT = 0.95
TIMES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # ms per step
VOID = {FIRST: ("dss-rtdp",)}  # runs of a generator that was wrong
TIME_FIGURE = "reward-within-time"


@dataclass(frozen=True, eq=False)
class Found:
    """A study and what has been run of it."""

    study: Study
    results: Results


@contextmanager
def read_studies(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Found]]:
    """Read the studies that have an exported file in ``folder/PAPER``, for the duration of a ``with`` block."""
    paths = {name: folder / name.partition("/")[0] / export_name(name) for name in names}
    there = {name: path for name, path in paths.items() if path.exists()}
    with open_exports(list(there.values())) as exports:
        found = {}
        for name in there:
            study = paper_study(name)
            found[name] = Found(study, collect_results(study, exports.store_of(name)))
        yield found


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
    shown = decimals([standard_error(v) for v in values.values()])
    title = "total reward" if what == "total" else "return discounted by 0.95"
    note = "Bold: the highest mean. Differences are paired: the same worlds, with the bootstrap 95% interval."
    header = ("algorithm", "correct prior", "flat", "wrong", "correct − flat", "correct − wrong")
    table = make_table(
        f"family_{family}_{what}",
        f"{family}: {title} in 250 steps, mean ± standard error over {_worlds(values)} worlds",
        header,
        [_family_row(base, values, best, shown) for base in bases],
        [note],
    )
    return table.sorted_by(lambda row: -max(cell.value for cell in row[1:4] if cell.value is not None))


def _worlds(values: Mapping[str, NDArray[np.float64]]) -> str:
    sizes = sorted({len(v) for v in values.values()})
    return " to ".join(str(n) for n in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else "no"


def _family_row(
    base: str, values: Mapping[str, NDArray[np.float64]], best: str | None, shown: int
) -> tuple[Entry, ...]:
    names = [f"{base}-{prior}" for prior in PRIORS]
    if not any(name in values for name in names):  # one without a prior
        return base, mean_cell(values[base], shown, base == best), *4 * [None]
    cells = [mean_cell(values.get(name, ()), shown, name == best) for name in names]
    gains = [_gain_cell(values, names[0], name, shown) for name in names[1:]]
    return base, *cells, *gains


def _gain_cell(values: Mapping[str, NDArray[np.float64]], first: str, second: str, shown: int) -> Entry:
    if first not in values or second not in values:
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


# Deep sea with the same chances


def sea_table(found: Found) -> ResultTable:
    """Return the bad episodes of every algorithm in both seas, the fewest in the deterministic one first."""
    results = found.results
    samples = {(s.environment, s.algorithm): s for s in results.select(EVALUATE) if s.complete}
    rows = []
    for algorithm in dict.fromkeys(name for _, name in samples):
        cells: list[Entry] = []
        for environment in results.environments:
            sample = samples.get((environment, algorithm))
            cells += [None, None] if sample is None else _sea_cells(sample)
        rows.append((algorithm, *cells))
    header = ("algorithm", *(word for name in results.environments for word in (name, "chosen")))
    title = "Bad episodes of 1000, mean ± standard error"
    table = make_table("seas", title, header, rows, [COUNT_NOTE], "l" + "rl" * len(results.environments))
    return table.sorted_by(lambda row: math.inf if row[1].value is None else row[1].value)


def _sea_cells(sample: Sample) -> list[Entry]:
    chosen = ", ".join(f"{name}={value}" for name, value in sample.configuration.items())
    return [mean_cell(total_bad_episodes(sample, SEAS), 1), chosen]


# Reward within a time


def within_time(found: Mapping[str, Found]) -> dict[str, dict[str, list[float]]]:
    """Return, by environment and algorithm, the normalised score of the best configuration within each time."""
    tried: dict[str, dict[str, list[Sample]]] = {}
    horizons: dict[str, int] = {}
    for name in (FIRST, SECOND):
        for environment in found[name].results.environments if name in found else ():
            runs = [s for s in found[name].results.select(TUNE, environment) if s.runs]
            horizon = min((s.horizon for s in runs), default=0)  # which all configurations have runs of
            if horizons.setdefault(environment, horizon) != horizon:
                continue
            for sample in runs:
                algorithm = without_draw(sample.algorithm)
                if sample.horizon == horizon and algorithm not in VOID.get(name, ()):
                    tried.setdefault(environment, {}).setdefault(algorithm, []).append(sample)
    environments = {env.label: env.env for one in found.values() for env in one.study.environments}
    return {
        label: {
            algorithm: _normalised(
                [best_within(samples, ms) for ms in TIMES], environments[label], horizons[label]
            )
            for algorithm, samples in by_algorithm.items()
        }
        for label, by_algorithm in tried.items()
    }


def _normalised(values: Sequence[float], env: str, horizon: int) -> list[float]:
    world = cached_world(env)
    assert isinstance(world, Environment)
    known = ceilings(world, FAMILY_DISCOUNT, horizon)
    return rescaled(values, known.random, known.optimum).tolist()


def time_table(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> ResultTable:
    """Return the mean of the best score within each time, over the environments in which all algorithms were tried."""
    algorithms = dict.fromkeys(name for by_algorithm in scores.values() for name in by_algorithm)
    common = [environment for environment, tried in scores.items() if len(tried) == len(algorithms)]
    columns = [i for i, ms in enumerate(TIMES) if ms in (0.01, 0.1, 1.0, 10.0, 100.0)]
    rows = []
    for algorithm in algorithms:
        table = np.array([scores[environment][algorithm] for environment in common])[:, columns]
        whole = np.isfinite(table).all(axis=0)
        means = [float(table[:, i].mean()) if whole[i] else math.nan for i in range(len(columns))]
        rows.append((algorithm, *(number_cell(mean, f"{mean:.3f}") for mean in means)))
    header = ("algorithm", *(_time_word(TIMES[i]) for i in columns))
    note = (
        f"Mean over {', '.join(common)} of the normalised score (0 random play, 1 optimum) of the best configuration "
        "that needs at most so long per step, chosen on one half of the tuning runs and scored on the other. Empty "
        "where some environment has no configuration that quick."
    )
    title = f"What one gets within a time per step, over {len(common)} environments"
    table = make_table("within_time", title, header, rows, [note])
    return table.sorted_by(lambda row: -max((c.value for c in row[1:] if c.value is not None), default=-1.0))


def _time_word(ms: float) -> str:
    return f"{1000 * ms:g} µs" if ms < 1.0 else f"{ms:g} ms"


def draw_times(scores: Mapping[str, Mapping[str, Sequence[float]]], folder: Path) -> list[Path]:
    """Draw the best score against the time per step, a panel for each environment."""
    algorithms = dict.fromkeys(name for by_algorithm in scores.values() for name in by_algorithm)
    by_algorithm = looks(algorithms)
    with figure_style.new_figure(len(scores), (4.0, 2.8)) as (figure, panels):
        for axes, (environment, rows) in zip(panels, scores.items()):
            for algorithm, values in rows.items():
                look = by_algorithm[algorithm]
                axes.plot(
                    TIMES, values, color=look.colour, linestyle=look.line, marker=look.marker, markersize=3.5,
                    linewidth=1.2, label=algorithm,
                )  # fmt: skip
            log_time_axis(axes)
            axes.set(xlabel="at most so many ms per step", ylabel="normalised score", ylim=(-0.02, 1.02))
            figure_style.add_title(axes, environment)
        figure_style.add_legend_below(figure, panels)
    return save_figure(figure, folder / TIME_FIGURE, ["png"])


# The page


def page_parts(
    found: Mapping[str, Found], scores: Mapping[str, Mapping[str, Sequence[float]]]
) -> dict[str, str]:
    """Return the generated parts of the page as Markdown, by name."""
    parts = {}
    families = found.get(FAMILIES)
    parts["families"] = _missing(FAMILIES) if families is None else _join(
        *(to_markdown(table) for table in family_tables(families, "return")),
        _folded("Total rewards", family_tables(families, "total")),
        *map(to_markdown, unfinished(families.results)),
    )  # fmt: skip
    second = found.get(SECOND)
    if second is None:
        parts["second"] = _missing(SECOND)
    else:
        n = 1 + max(cell.draw for cell in second.study.cells)
        whole = pooled(second.results, n)
        score = overall(whole) if whole.samples else None
        parts["second"] = _join(
            to_markdown(matrix(whole)) if whole.samples else "",
            to_markdown(score) if score else "",
            to_markdown(search_table(second)),
            _folded("What is not finished", unfinished(second.results)),
        )
    single = found.get(SINGLE)
    parts["single"] = _missing(SINGLE) if single is None else _join(
        to_markdown(matrix(single.results)), *map(to_markdown, unfinished(single.results))
    )  # fmt: skip
    seas = found.get(SEAS)
    parts["seas"] = _missing(SEAS) if seas is None else _join(
        to_markdown(sea_table(seas)), *map(to_markdown, unfinished(seas.results))
    )  # fmt: skip
    figure = (
        f"![Best normalised score against processor time per step]({Path(IMAGES).name}/{TIME_FIGURE}.png)"
    )
    parts["time"] = _join(figure, to_markdown(time_table(scores))) if scores else _missing(FIRST)
    return parts


def _missing(name: str) -> str:
    return f"*Nothing of `{name}` has been exported yet.*"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", default="results", metavar="FOLDER", help="exported runs")
    parser.add_argument("--root", default=".", metavar="FOLDER", help="of the repository (default: here)")
    arguments = parser.parse_args(argv)
    root = Path(arguments.root)
    try:
        page = (root / PAGE).read_text(encoding="utf-8")
        with read_studies(Path(arguments.folder), STUDIES) as found:
            scores = within_time(found)
            filled = fill(page, page_parts(found, scores))
            figures = draw_times(scores, root / IMAGES) if scores else []
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    (root / PAGE).write_text(filled, encoding="utf-8")
    for written in (PAGE, *figures):
        print(f"written: {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
