"""Study report: a self-contained offline page, with its tables and figures as separate files.

folder/
  index.html     everything, self-contained
  tables/        Markdown, LaTeX, CSV
  figures/       PNG

Maps and curves of the tuning reward show one or two parameters. If more parameters vary, each value is the mean over
all configurations that share it. The colour scale of a map spans at least a fifth of its largest mean, so that small
differences look small.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame

from bamdp.lab import tables
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.results import QUICK_WARNING, Results, recorded_runs, rewards
from bamdp.lab.space import varied_keys
from bamdp.lab.store import TUNE
from bamdp.lab.tables import Table
from bamdp.plot import style
from bamdp.plot.curves import learning_curve, returns
from bamdp.statistics import estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 8  # per figure
MOST_ROWS = 50  # configurations listed per algorithm
LEAST_SPAN = 0.2  # minimum span of a map's colour scale, as a fraction of the largest mean
Section = tuple[str, list[Table], list[tuple[str, Callable[..., object]]]]  # heading, tables, figures by name


def write_report(results: Results, folder: str | Path, source: str = "") -> Path:
    """Write the report of a study, complete or not, and return the page's path; ``source`` is the study's text."""
    from jinja2 import Environment as Templates
    from jinja2 import PackageLoader

    folder = Path(folder)
    sections = []
    for heading, listed, figures in _sections(results):
        for table in listed:
            table.write(folder / "tables" / _file_name(heading))
        paths = [_draw(draw, folder / "figures" / f"{_file_name(name)}.png") for name, draw in figures]
        images = [base64.b64encode(path.read_bytes()).decode() for path in paths]
        sections.append((heading, listed, images))
    page = Templates(loader=PackageLoader("bamdp.lab"), autoescape=True).get_template("report.html")
    path = folder / "index.html"
    text = page.render(
        results=results, sections=sections, facts=_facts(results), source=source, warning=QUICK_WARNING
    )
    path.write_text(text, encoding="utf-8")
    return path


def _sections(results: Results) -> Iterator[Section]:
    found = groups(results)
    if found:
        overview = [tables.matrix(results), tables.overall(results)]
        yield "Results", [table for table in overview if table is not None], []
    for group in found:
        listed = [tables.comparison(group), tables.statistics(group)]
        listed += [tables.pairs(group)] if len(group.values) > 1 else []
        yield group.environment, listed, [(f"learning {group.environment}", partial(draw_learning, group))]
    for (environment, algorithm), runs in results.select(TUNE).groupby(
        ["environment", "algorithm"], sort=False
    ):
        varied = varied_keys(runs.configuration)[:2]
        listed = [tables.tried(results, environment, algorithm, MOST_ROWS)]
        name = f"tuning {environment} {algorithm}"
        yield name, listed, [(name, partial(draw_parameters, runs, varied))] if runs.total.count() else []


def draw_learning(group: Group, ax: Axes | None = None, **options: Any) -> Axes:
    """Plot the learning curves of an environment's best algorithms, or their returns if all totals are equal."""
    runs = {
        name: group.runs[(group.runs.label == name) & (group.runs.failure == "")] for name in group.ranked
    }
    leading = {name: found for name, found in list(runs.items())[:MOST_LINES] if len(found)}
    options = {"title": group.environment, **options}
    if group.by_return:
        return returns({name: recorded_runs(found) for name, found in leading.items()}, ax=ax, **options)
    known = None if group.ceilings is None else group.ceilings.best_per_step(group.horizon)
    curves = {name: rewards(found) for name, found in leading.items()}
    return learning_curve(curves, ax=ax, **{"optimum": known, **options})


def draw_parameters(runs: DataFrame, names: Sequence[str], ax: Axes) -> None:
    """Plot the tuning reward over one or two parameters."""
    draw: Callable[..., None] = draw_map if len(names) == 2 else draw_curve
    draw(ax, runs, *names)


def draw_map(axes: Axes, runs: DataFrame, first: str, second: str) -> None:
    """Plot the mean total reward over two parameters, marking the selected configuration with a star."""
    totals = _with_parameters(runs, first, second)
    grid = totals.pivot_table(index=second, columns=first, values="total", sort=False, dropna=False)
    grid = grid.sort_index(key=_numbers).sort_index(axis=1, key=_numbers)
    means = grid.to_numpy(float)
    high = float(np.nanmax(means))
    low = min(float(np.nanmin(means)), high - LEAST_SPAN * abs(high))
    image = axes.imshow(means, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    axes.figure.colorbar(image, ax=axes, label="total reward")
    chosen = totals[totals.chosen].iloc[:1][[first, second]].to_numpy().tolist()
    for (i, j), mean in np.ndenumerate(means):
        star = " ★" if [[grid.columns[j], grid.index[i]]] == chosen else ""
        text = "" if np.isnan(mean) else f"{mean:.4g}{star}"
        axes.text(j, i, text, ha="center", va="center", color="black" if mean > (low + high) / 2 else "white")
    axes.set_xticks(range(len(grid.columns)), grid.columns)
    axes.set_yticks(range(len(grid.index)), grid.index)
    axes.set(xlabel=first, ylabel=second, title=_title(runs))
    axes.grid(False)


def draw_curve(axes: Axes, runs: DataFrame, name: str) -> None:
    """Plot the mean total reward over one parameter, with bootstrap 95% intervals."""
    totals = _with_parameters(runs, name)
    values = sorted(totals[name].unique(), key=lambda value: (isinstance(value, str), value))
    means = [estimate(np.mean, totals.loc[totals[name] == value, "total"]) for value in values]
    look: dict[str, Any] = style.look(0)
    axes.plot(range(len(values)), [mean.value for mean in means], **look)
    axes.vlines(range(len(values)), [m.low for m in means], [m.high for m in means], color=look["color"])
    axes.set_xticks(range(len(values)), values)
    axes.set(xlabel=name, ylabel="total reward", title=_title(runs))


def _with_parameters(runs: DataFrame, *names: str) -> DataFrame:
    """Return the runs with a column for each of these parameters, using a dash where one does not apply."""
    return runs.assign(**{name: [one.get(name, "–") for one in runs.configuration] for name in names})


def _numbers(values: Any) -> Any:
    """Return sort keys for values that may be text."""
    return [value if isinstance(value, (int, float)) else np.inf for value in values]


def _title(runs: DataFrame) -> str:
    return (
        f"{runs.algorithm.iloc[0]} in {runs.environment.iloc[0]}: {runs.replicate.nunique()} tuning runs each"
    )


def _draw(draw: Callable[..., object], path: Path) -> Path:
    with style.new_figure() as (figure, (axes,)):
        draw(ax=axes)
    return style.save_figure(figure, path)


def _facts(results: Results) -> dict[str, str]:
    """Return the versions and machines that produced the results."""
    runs = results.runs
    facts = {"bamdp": runs.version, "machine": runs.machine, "finished": runs.finished.str[:10]}
    shown = {name: "; ".join(sorted(values.unique())) for name, values in facts.items()}
    return {"runs": str(len(runs)), "with a time budget": str(int((~runs.reproducible).sum())), **shown}


def _file_name(words: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in words)
