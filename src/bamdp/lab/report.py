"""Study report: a self-contained offline page, with its tables and figures as separate files.

folder/
  index.html     everything, self-contained
  tables/        Markdown, LaTeX, CSV
  figures/       PNG
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pandas import DataFrame

from bamdp.lab import tables
from bamdp.lab.comparisons import Group, groups
from bamdp.lab.figures import draw_curve, draw_map
from bamdp.lab.results import QUICK_WARNING, Results, recorded_runs, rewards
from bamdp.lab.study import varied_keys
from bamdp.lab.tables import Table
from bamdp.lab.units import TUNE
from bamdp.plot.curves import learning_curve, returns
from bamdp.plot.style import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 8  # per figure
MOST_ROWS = 50  # configurations listed per algorithm
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


def _draw(draw: Callable[..., object], path: Path) -> Path:
    with new_figure() as (figure, (axes,)):
        draw(ax=axes)
    return save_figure(figure, path)


def _facts(results: Results) -> dict[str, str]:
    """Return the versions and machines that produced the results."""
    runs = results.runs
    facts = {"bamdp": runs.version, "machine": runs.machine, "finished": runs.finished.str[:10]}
    shown = {name: "; ".join(sorted(values.unique())) for name, values in facts.items()}
    return {"runs": str(len(runs)), "with a time budget": str(int((~runs.reproducible).sum())), **shown}


def _file_name(words: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in words)
