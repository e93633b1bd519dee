"""The numbers that the paper prints, and how ours stand to them.

The test behind a verdict is Welch's, two-sided, at 5%, of the mean totals: the paper's mean and standard error of 100
runs against ours. It is not corrected for the number of entries: of 25 that do agree, one or two would be called
different.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from bamdp.lab.results import Sample
from bamdp.lab.statistics import standard_error

RUNS = 100  # behind each of the paper's means
LEVEL = 0.05
AGREES, BETTER, WORSE, UNKNOWN = "agrees", "better", "worse", "–"


@cache
def paper() -> Mapping[str, Any]:
    """Steps, Table 1 and Table 2."""
    text = files(__package__).joinpath("dss2020/paper.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def reward(algorithm: str, environment: str) -> tuple[float, float] | None:
    """Mean and standard error in Table 1."""
    found = paper()["table1"].get(algorithm, {}).get(environment)
    return None if found is None else (float(found[0]), float(found[1]))


def seconds(algorithm: str, environment: str) -> float | None:
    """Processor seconds of an episode in Table 2."""
    found = paper()["table2"].get(algorithm, {}).get(environment)
    return None if found is None else float(found)


def seconds_above(algorithm: str, environment: str) -> float | None:
    """What they are more than, where Table 2 says no more."""
    found = paper()["table2_above"].get(algorithm, {}).get(environment)
    return None if found is None else float(found)


def steps(environment: str) -> int | None:
    """Of an episode."""
    return paper()["steps"].get(environment)


@dataclass(frozen=True)
class Verdict:
    """Ours against the paper's."""

    difference: float
    errors: float  # the difference in standard errors; NaN where there are none
    p: float
    word: str  # agrees, better, worse; a dash where it cannot be told


def verdict(sample: Sample) -> Verdict | None:
    """Of a sample against the paper's entry; None if the paper has none.

    Examples
    --------
    >>> from bamdp.lab.results import Sample
    >>> import numpy as np
    >>> totals = np.array([378.0, 392.0, 385.0])
    >>> mine = Sample("double_loop", "dss-pi", "evaluate", {}, 1000, np.arange(3), totals, totals, totals, lambda: None)
    >>> verdict(mine).word
    'agrees'
    """
    printed = reward(sample.algorithm, sample.environment)
    if printed is None or not sample.runs:
        return None
    mean, error = printed
    own, spread = float(sample.totals.mean()), standard_error(sample.totals)
    both = math.hypot(spread, error)
    if not both > 0.0:
        return Verdict(own - mean, math.nan, math.nan, UNKNOWN)
    p = _welch(own - mean, spread, sample.runs, error)
    word = AGREES if p > LEVEL else BETTER if own > mean else WORSE
    return Verdict(own - mean, (own - mean) / both, p, word)


def _welch(difference: float, spread: float, runs: int, error: float) -> float:
    """p-value, with Welch and Satterthwaite's degrees of freedom."""
    from scipy import stats

    variance = spread**2 + error**2
    freedom = variance**2 / (spread**4 / (runs - 1) + error**4 / (RUNS - 1))
    return float(2.0 * stats.t.sf(abs(difference) / math.sqrt(variance), freedom))
