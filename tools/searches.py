"""What several searches of one algorithm say together.

**Several searches** (``draws`` of a study). Search d = 1 .. D chooses among configurations of its own and is evaluated
on R replicates of its own, so its mean m_d varies with what the search happened to draw and with the runs, and the m_d
are independent. With s² the variance of runs within a search and B that of the m_d, the mean of the m_d has variance

    max(B, s²/R) / D,

since B is s²/R in expectation where all searches find equally good configurations, and larger where they do not. Its
interval is Student's, with D − 1 degrees of freedom where B is what counts, and D(R − 1) where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bamdp.lab.reading import DRAW_MARK
from bamdp.lab.results import EVALUATE, Results, Sample, samples_by_algorithm
from bamdp.statistics import CONFIDENCE_LEVEL, Estimate


def without_draw(label: str) -> str:
    """Return the algorithm's own label, whichever draw of its configurations this is.

    Examples
    --------
    >>> without_draw("dss-pi#2"), without_draw("thompson")
    ('dss-pi', 'thompson')
    """
    return label.partition(DRAW_MARK)[0]


def searches(results: Results, environment: str) -> dict[str, list[Sample]]:
    """Return the evaluations of each algorithm in an environment, one for each of its searches that is complete."""
    complete = [s for s in results.select(EVALUATE, environment) if s.complete]
    renamed = [replace(sample, algorithm=without_draw(sample.algorithm)) for sample in complete]
    return samples_by_algorithm(renamed)


def over_searches(found: Sequence[Sample]) -> Estimate:
    """Return the mean total over an algorithm's searches, with an interval that counts how they differ.

    Examples
    --------
    >>> from bamdp.lab.results import Sample
    >>> def search(first, totals):
    ...     numbers, values = np.arange(first, first + len(totals)), np.array(totals)
    ...     return Sample("chain", "dss-pi", "evaluate", {}, 9, numbers, values, values, values, lambda: None)
    >>> over_searches([search(0, [1.0, 3.0]), search(2, [2.0, 2.0])]).value
    2.0
    """
    from scipy import stats

    means = np.array([sample.totals.mean() for sample in found])
    if len(found) < 2:
        return Estimate(float(means.mean()) if len(means) else math.nan, math.nan, math.nan)
    noise = float(np.mean([sample.totals.var(ddof=1) / sample.runs for sample in found]))
    between = float(means.var(ddof=1))
    freedom = len(found) - 1 if between > noise else sum(sample.runs - 1 for sample in found)
    error = math.sqrt(max(between, noise) / len(found))
    half = float(stats.t.ppf(0.5 + CONFIDENCE_LEVEL / 2, freedom)) * error
    mean = float(means.mean())
    return Estimate(mean, mean - half, mean + half)


def pooled(results: Results, n_searches: int) -> Results:
    """Return the results with all searches of an algorithm as one sample, where it has so many."""
    kept: list[Sample] = []
    for environment in results.environments:
        for found in searches(results, environment).values():
            if len(found) == n_searches:
                kept.append(_joined(found))
    return replace(results, samples=tuple(kept), waiting={}, cells=())


def _joined(found: Sequence[Sample]) -> Sample:
    first = found[0]
    same = {
        key: value
        for key, value in first.configuration.items()
        if all(one.configuration.get(key) == value for one in found)
    }
    return replace(
        first,
        configuration=same,
        replicates=np.concatenate([one.replicates for one in found]),
        totals=np.concatenate([one.totals for one in found]),
        ms_per_step=np.concatenate([one.ms_per_step for one in found]),
        cpu_seconds=np.concatenate([one.cpu_seconds for one in found]),
        traces=lambda: np.concatenate([one.traces() for one in found]),
        failures=tuple(failure for one in found for failure in one.failures),
        asked=sum(one.asked for one in found),
    )
