"""The ablation: what each parameter of DSS does around Appendix C's values, and what it costs.

A sweep is an algorithm's label in ``dss2020/ablation``; the *base* is Appendix C's configuration in an environment,
which most sweeps contain. Every configuration is compared to the base on common luck, by the sign-flip test of
:mod:`bamdp.lab.comparisons`, with Holm's correction over all configurations of the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from bamdp.lab.comparisons import SIGNIFICANCE_LEVEL, differences, file_stem, holm, sign_flip_p
from bamdp.lab.papers.library import paper_study
from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.statistics import Estimate, estimate, standard_error
from bamdp.lab.study import Study
from bamdp.lab.tables import ResultTable, TableCell
from bamdp.lab.tables.table import (
    NO_VALUE,
    decimals,
    mean_cell,
    number_cell,
    parameters_text,
    text_cell,
    value_interval_cell,
)

KEYS = {"N": "n_policies", "M": "n_samples", "K": "n_steps", "H": "n_stages", "N-one-stage": "n_policies",
        "M-one-stage": "n_samples", "leaf": "leaf", "prior": "prior", "beta": "prior.beta",
        "gamma": "discount"}  # fmt: skip
SHAPE = {"N": "n_policies", "M": "n_samples", "K": "n_steps", "H": "n_stages"}
DEFAULT = {"leaf": "zero"}  # what published leaves to the planner
TEST = (
    "Bold: Appendix C's configuration. Difference to it on common replicates, with the bootstrap 95% interval of that "
    "pair. Different: "
    "paired sign-flip test, Holm's correction over all configurations of the environment, 5%."
)


@dataclass(frozen=True, eq=False)
class Point:
    """One configuration of a sweep."""

    sweep: str
    sample: Sample
    value: Any  # of the parameter that the sweep changes; the whole shape for trades
    base: bool  # whether it is Appendix C's
    less_base: Estimate  # mean difference; NaN without common runs
    different: bool

    @property
    def mean(self) -> float:
        """Total reward."""
        return float(self.sample.totals.mean())

    @property
    def ms(self) -> float:
        """Processor time of a step."""
        return float(self.sample.ms_per_step.mean())

    @property
    def label(self) -> str:
        """The value in a few letters."""
        return f"{self.value:g}" if isinstance(self.value, int | float) else str(self.value)


@lru_cache(maxsize=8)
def points(results: Results, environment: str) -> tuple[Point, ...]:
    """The complete configurations of an environment, sweep by sweep, each in the order of its values."""
    samples = [s for s in results.select(EVALUATE, environment) if s.complete and s.runs]
    home = base_configuration(environment)
    base = next((s for s in samples if full(s.configuration) == home), None)
    own = {repr(full(s.configuration)): s for s in samples}  # sweeps share runs, which are tested once
    away = {key: s for key, s in own.items() if base is not None and full(s.configuration) != home}
    gaps = {key: differences(s, base) for key, s in away.items() if base is not None}
    adjusted = dict(zip(gaps, holm([sign_flip_p(gap, len(gaps)) for gap in gaps.values()])))
    found = []
    for sample in samples:
        key = repr(full(sample.configuration))
        gap = estimate(np.mean, gaps[key]) if key in gaps else Estimate(np.nan, np.nan, np.nan)
        found.append(
            Point(
                sample.algorithm,
                sample,
                value_of(sample.algorithm, sample.configuration),
                full(sample.configuration) == home,
                gap,
                bool(key in gaps and adjusted[key] <= SIGNIFICANCE_LEVEL),
            )
        )
    return tuple(found)


@cache
def base_configuration(environment: str) -> Mapping[str, Any]:
    """Appendix C's of DSS-PI."""
    cell = next(
        cell
        for cell in paper_study("dss2020/published").cells
        if cell.algorithm == "dss-pi" and cell.environment.label == environment
    )
    return full(cell.configurations[0])


def value_of(sweep: str, configuration: Mapping[str, Any]) -> Any:
    """What a sweep's configuration is called: the value of its parameter, or N, M, K, H."""
    whole = full(configuration)
    if sweep in KEYS:
        return whole.get(KEYS[sweep])
    return "(" + ",".join(str(whole[key]) for key in SHAPE.values()) + ")"


def values(sweep: str, environment: str) -> list[Any]:
    """All that the study asks for, in increasing order; none where it has no such sweep."""
    return sorted(value_of(sweep, configuration) for configuration in _planned(sweep, environment))


def has_base(sweep: str, environment: str) -> bool:
    """Whether the study's sweep contains Appendix C's configuration."""
    home = base_configuration(environment)
    return any(full(configuration) == home for configuration in _planned(sweep, environment))


@cache
def _planned(sweep: str, environment: str) -> tuple[Mapping[str, Any], ...]:
    cells = _ablation().cells
    found = (c.configurations for c in cells if (c.algorithm, c.environment.label) == (sweep, environment))
    return next(found, ())


@cache
def _ablation() -> Study:
    return paper_study("dss2020/ablation")


def ablation_tables(results: Results) -> list[ResultTable]:
    """A table for each environment."""
    return [_table(results, environment) for environment in results.environments]


def _table(results: Results, environment: str) -> ResultTable:
    held = points(results, environment)
    shown = decimals(standard_error(point.sample.totals) for point in held)
    rules = [i for i in range(1, len(held)) if held[i].sweep != held[i - 1].sweep]
    return ResultTable(
        f"ablation_{file_stem(environment)}",
        f"{environment}, {results.horizon(environment)} steps: DSS-PI around Appendix C's values",
        ("sweep", "value", "runs", "total reward", "ms/step", "difference to Appendix C", "different"),
        tuple(_row(point, shown) for point in held),
        "llrrrrl",
        (f"Appendix C: {parameters_text(base_configuration(environment))}.", TEST),
        tuple(rules),
        results.warning,
    )


def _row(point: Point, shown: int) -> tuple[TableCell, ...]:
    sample = point.sample
    word = ("better" if point.less_base.value > 0 else "worse") if point.different else ""
    return (
        text_cell(point.sweep),
        text_cell(point.label),
        number_cell(sample.runs, str(sample.runs)),
        mean_cell(point.mean, standard_error(sample.totals), shown, point.base),
        number_cell(point.ms),
        text_cell("Appendix C" if point.base else NO_VALUE)
        if np.isnan(point.less_base.value)
        else value_interval_cell(point.less_base, shown),
        text_cell(word),
    )


def full(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """With what sweeps leave to the planner, so that equal ones are equal."""
    return dict(sorted({**DEFAULT, **configuration}.items()))
