"""Our numbers beside those that the paper prints."""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files

from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables import Cell, Table
from bamdp.lab.tables.table import mean_error, number, text


def beside_table1(results: Results) -> list[Table]:
    """A row for each entry of Table 1; only runs of the paper's length can stand beside it."""
    paper = tomllib.loads(files(__package__).joinpath("dss2020/paper.toml").read_text(encoding="utf-8"))
    rows: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    for environment in results.environments:
        if results.horizon(environment) != paper["steps"].get(environment):
            continue
        rules.append(len(rows))
        for sample in results.select(EVALUATE, environment):
            printed = paper["table1"].get(sample.algorithm, {}).get(environment)
            if printed is not None and sample.runs:
                rows.append(_row(sample, *printed))
    if not rows:
        return []
    return [
        Table(
            "beside_the_paper",
            "Total reward, mean ± standard error, beside the paper's Table 1",
            ("environment", "algorithm", "here", "paper", "difference", "in standard errors"),
            tuple(rows),
            "llrrrr",
            ("The last column is the difference over the root of both squared standard errors.",),
            tuple(rule for rule in rules if 0 < rule < len(rows)),
        )
    ]


def _row(sample: Sample, mean: float, error: float) -> tuple[Cell, ...]:
    mine, spread = float(sample.totals.mean()), standard_error(sample.totals)
    difference, both = mine - mean, math.hypot(spread, error)
    return (
        text(sample.environment),
        text(sample.algorithm),
        mean_error(mine, spread, 2),
        mean_error(mean, error, 2),
        number(difference, f"{difference:+.2f}"),
        number(difference / both, f"{difference / both:+.1f}") if both > 0 else text("–"),
    )
