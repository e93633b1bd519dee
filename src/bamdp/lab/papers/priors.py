"""What each prior was worth to DSS in tuning: the part of the page on why the published rows differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bamdp.lab.papers import printed
from bamdp.lab.papers.verdicts import DSS
from bamdp.lab.results import TUNE, Results, Sample
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables import ResultTable, TableCell
from bamdp.lab.tables.table import NO_VALUE, decimals, mean_cell, number_cell, text_cell


def prior_table(results: Results) -> ResultTable | None:
    """Both forms of DSS with every prior, averaged over all else that was tried; None before any tuning."""
    pairs = [(environment, algorithm) for environment in results.environments for algorithm in DSS]
    tried = [held for pair in pairs if (held := _of_one_length(results.select(TUNE, *pair)))]
    if not tried:
        return None
    priors = sorted({_prior(sample) for held in tried for sample in held})
    return ResultTable(
        "priors",
        "DSS with each prior, mean total reward over all configurations with it that tuning tried",
        ("environment", "algorithm", "steps", *(name for _, name in priors), "paper"),
        tuple(_row(held, priors) for held in tried),
        "llr" + "r" * (len(priors) + 1),
        (
            "Each configuration counts once, with the mean of its tuning runs; ± is the standard error over "
            "configurations. Bold: the highest mean of the row.",
        ),
        warning=results.warning,
    )


def _of_one_length(samples: Sequence[Sample]) -> list[Sample]:
    """Those of the shortest runs, which all configurations begin with."""
    held = [sample for sample in samples if sample.runs]
    shortest = min((sample.horizon for sample in held), default=0)
    return [sample for sample in held if sample.horizon == shortest]


def _prior(sample: Sample) -> tuple[float, str]:
    """Its sparsity, to order by, and its name; the flat one comes first."""
    name, beta = sample.configuration["prior"], sample.configuration.get("prior.beta")
    return (-math.inf, name) if beta is None else (beta, f"{name}, β = {beta:g}")


def _row(held: Sequence[Sample], priors: Sequence[tuple[float, str]]) -> tuple[TableCell, ...]:
    means = [np.array([s.totals.mean() for s in held if _prior(s) == prior]) for prior in priors]
    errors = [standard_error(found) for found in means]
    shown = decimals(errors)
    best = max(found.mean() for found in means if len(found))
    cells = [
        mean_cell(float(found.mean()), error, shown, bool(found.mean() == best))
        if len(found)
        else text_cell(NO_VALUE)
        for found, error in zip(means, errors)
    ]
    first = held[0]
    steps = number_cell(first.horizon, str(first.horizon))
    return text_cell(first.environment), text_cell(first.algorithm), steps, *cells, _papers(first)


def _papers(sample: Sample) -> TableCell:
    """Table 1's mean, if its runs were as long."""
    found = printed.reward(sample.algorithm, sample.environment)
    if found is None or printed.steps(sample.environment) != sample.horizon:
        return text_cell(NO_VALUE)
    return number_cell(found[0], f"{found[0]:g}")
