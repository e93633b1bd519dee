"""``bamdp reproduce TARGET...``: the tables and figures of the DSS paper, run again.

The studies ship with the package, in ``bamdp/lab/dss2020``, beside the numbers that the paper prints. The pages on
reproduction and evidence are made from more studies, by ``paper/pages.py`` of the repository.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp import _checks
from bamdp.cli import console, options, studies

if TYPE_CHECKING:
    from bamdp.lab.results import Results
    from bamdp.lab.study import Study
    from bamdp.lab.tables import Table

TARGETS = {  # the study; with --as fair, table1, table2 and figure2 are of dss2020/fair
    "table1": "dss2020/published",
    "table2": "dss2020/published",
    "figure2": "dss2020/published",
    "figure3": "dss2020/figure3",
    "ablation": "dss2020/ablation",
}
WAYS = ("published", "fair")
FIGURE_FOLDER = Path("out/reproduction")


def reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp reproduce``."""
    parser.epilog = "Example: bamdp reproduce table1 table2 figure2 --quick --jobs 2"
    parser.add_argument("targets", metavar="TARGET", nargs="+", help=", ".join(TARGETS))
    help = "published (Appendix C's parameters) or fair (every algorithm tuned alike; default: published)"
    parser.add_argument("--as", dest="way", metavar="WAY", default=WAYS[0], help=help)
    parser.add_argument("--environments", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    help = "folder of reports and figures (default: figures in out/reproduction, no reports)"
    parser.add_argument("--output", metavar="FOLDER", help=help)
    options.add(parser, "--quick")
    options.add_study_running(parser)
    options.add(parser, "--store", "--json")


def reproduce_command(arguments: argparse.Namespace) -> int:
    """Run the studies of the targets, each once, and print and draw what was asked for."""
    from bamdp.lab.report import write_report

    _checks.one_of(arguments.way, "way to reproduce", WAYS)
    names = {_checks.one_of(one, "target", TARGETS): TARGETS[one] for one in arguments.targets}
    if arguments.way == "fair":
        names = {one: name.replace("published", "fair") for one, name in names.items()}
    by_study, folder = {}, Path(arguments.output or FIGURE_FOLDER)
    for name in dict.fromkeys(names.values()):
        study = _part(name, arguments)
        with studies.run_and_collect(study, arguments) as by_study[name]:
            if arguments.output is not None:
                page = write_report(by_study[name], folder / name, study.source)
                console.note(f"report: {page}")
    tables = {target: list(_tables(target, by_study[name])) for target, name in names.items()}
    if arguments.json:
        shown = {
            target: [table.frame.to_dict("records") for table in made] for target, made in tables.items()
        }
        console.print_json({"quick": arguments.quick, "targets": shown})
        return 0
    studies.show([table for made in tables.values() for table in made], *by_study.values())
    for target in [target for target in names if target.startswith("figure")]:
        console.note(f"{target}: {_draw(by_study[names[target]], folder / f'{target}.png')}")
    return 0


def _part(name: str, arguments: argparse.Namespace) -> Study:
    """Return the part of a study with the environments and algorithms that were named."""
    from bamdp.lab.reading import load_study

    study = load_study(name, quick=arguments.quick)
    environments, algorithms = arguments.environments, arguments.algorithms
    for one in environments or ():
        _checks.one_of(one, "environment of the study", [env.label for env in study.environments])
    for one in algorithms or ():
        _checks.one_of(one, "algorithm of the study", dict.fromkeys(cell.algorithm for cell in study.cells))
    cells = [
        cell
        for cell in study.cells
        if (environments is None or cell.environment.label in environments)
        and (algorithms is None or cell.algorithm in algorithms)
    ]
    return dataclasses.replace(study, cells=tuple(cells))


def _tables(target: str, results: Results) -> Iterator[Table]:
    from bamdp.lab import comparisons, tables

    if target in ("table2", "ablation"):
        yield from map(tables.comparison, comparisons.groups(results))
    elif target != "figure2":
        yield tables.matrix(results)
    if target in ("table1", "table2") and not results.quick:
        yield beside_the_paper(results)


def paper_numbers() -> dict[str, Any]:
    """Return the numbers that the paper prints."""
    return tomllib.loads(files("bamdp.lab").joinpath("dss2020/paper.toml").read_text(encoding="utf-8"))


def beside_the_paper(results: Results) -> Table:
    """Return total rewards and times beside the paper's Tables 1 and 2.

    The verdict is of Welch's test of the mean totals at 5%, two-sided, with the paper's standard error of 100 runs.
    """
    from pandas import DataFrame
    from scipy import stats

    from bamdp.lab.comparisons import groups
    from bamdp.lab.tables import Table, mean_text

    paper, rows = paper_numbers(), []
    for group in groups(results):
        for name, found in group.summaries.items():
            mean, error = paper["table1"].get(name, {}).get(group.environment, (math.nan, math.nan))
            if math.isnan(mean) or group.horizon != paper["steps"].get(group.environment):
                continue
            ours, our_error = found.mean.value, found.standard_error
            p = stats.ttest_ind_from_stats(
                ours, our_error * math.sqrt(found.runs), found.runs, mean, 10.0 * error, 100, equal_var=False
            ).pvalue
            word = "agrees" if p > 0.05 else "better" if ours > mean else "worse"
            seconds = paper["table2"].get(name, {}).get(group.environment, math.nan)
            ms = group.runs[group.runs.label == name].ms_per_step.mean()
            rows.append(
                {
                    "environment": group.environment,
                    "algorithm": name,
                    "runs": found.runs,
                    "here": mean_text(ours, our_error, 2),
                    "paper": mean_text(mean, error, 2),
                    "verdict": word,
                    "ms/step": ms,
                    "paper, ms/step": 1e3 * seconds / group.horizon,
                }
            )
    note = "Verdict: Welch's test of the means, 5%, two-sided, not corrected for the number of rows. Machines differ."
    columns = ["environment", "algorithm", "runs", "here", "paper", "verdict", "ms/step", "paper, ms/step"]
    return Table(
        "beside_the_paper", "Beside the paper's Tables 1 and 2", DataFrame(rows, columns=columns), [note]
    )


def _draw(results: Results, path: Path) -> Path:
    """Draw the learning curves of all environments, a panel for each."""
    from bamdp.lab.comparisons import groups
    from bamdp.lab.report import draw_learning
    from bamdp.plot.style import new_figure, save_figure

    found = groups(results)
    columns = min(2, len(found))
    with new_figure(-(-len(found) // columns), columns, (4.2, 3.0)) as (figure, panels):
        for axes, group in zip(panels, found):
            draw_learning(group, axes)
        for axes in panels[len(found) :]:
            axes.set_axis_off()
    return save_figure(figure, path)
