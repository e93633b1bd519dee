"""Paired comparisons of algorithms using common random numbers.

In replicate r, every algorithm faces the same random stream of the environment. Comparing two algorithms by the
differences d_r of their totals, rather than by the totals themselves, cancels the shared variation.

- **Test.** Sign flips (Fisher's randomisation test): if two algorithms are equally good, d_r and −d_r are equally
  likely. The p-value is the fraction of the 2^R sign patterns whose |Σ ± d_r| is at least the observed one. Up to R =
  14, all patterns are enumerated. Beyond that, 16 384 random patterns are used, including the observed one to keep the
  test valid. If many tests are corrected together, more patterns are drawn, so that the smallest possible p-value
  could still be significant (:func:`least_p`). Since p is at least 2^(1−R), five runs cannot be significant at the 5%
  level.
- **Correction.** Holm's method, applied to all pairs of algorithms in an environment: with probability at least 95%,
  no two equally good algorithms are declared different. All pairs are included because the best algorithm is
  identified from the same data.
- **Verdicts.** An algorithm is indistinguishable from the best if its corrected test against the best does not reject.
  With probability at least 95%, the truly best algorithm is the observed best or one of these. It is *about equal* (≈)
  if the interval of the difference lies within ±5% of the range from random play to the optimum. Otherwise it is
  *undecided* (?): there are too few runs to detect such a difference.
- **Size.** The mean difference with its bootstrap 95% interval, for this pair alone (uncorrected).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, Series

from bamdp.envs.ceilings import Ceilings
from bamdp.lab.results import Results
from bamdp.lab.store import EVALUATE
from bamdp.statistics import SEED, Estimate, Summary, estimate, summarise

EXACT_RUNS = 14  # enumerate all 2^R sign patterns up to here, then draw 2^14 or more
SIGNIFICANCE_LEVEL = 0.05
FINENESS = 4  # the smallest corrected p is at most the level divided by this
NARROW = 0.05  # fraction of the range; algorithms are about equal if the interval lies within it
BEST, ABOUT_EQUAL, UNDECIDED, WORSE, TOO_FEW = "best", "about equal", "undecided", "worse", "too few runs"


@dataclass(frozen=True)
class Comparison:
    """Comparison of two algorithms on the replicates completed by both."""

    first: str
    second: str
    runs: int  # number of common replicates
    difference: Estimate  # mean of first − second
    p: float  # two-sided; NaN without common replicates
    adjusted: float  # p after Holm's correction

    @property
    def distinguishable(self) -> bool:
        """True if the corrected test rejects at the 5% level."""
        return self.adjusted <= SIGNIFICANCE_LEVEL

    def seen_from(self, name: str) -> Comparison:
        """Return the comparison with the algorithm ``name`` first."""
        d = self.difference
        back = Estimate(-d.value, -d.high, -d.low)
        turned = replace(self, first=self.second, second=self.first, difference=back)
        return self if name == self.first else turned


def compare_all(values: Mapping[str, Series]) -> tuple[Comparison, ...]:
    """Compare all pairs of algorithms, corrected for multiple comparisons; ``values``: totals by algorithm and run."""
    pairs = list(combinations(values, 2))
    compared = []
    for first, second in pairs:
        d = (values[first] - values[second]).dropna().to_numpy()
        compared.append(
            Comparison(first, second, len(d), estimate(np.mean, d), sign_flip_p(d, len(pairs)), np.nan)
        )
    adjusted = holm([comparison.p for comparison in compared])
    return tuple(replace(one, adjusted=float(p)) for one, p in zip(compared, adjusted))


def sign_flip_p(values: ArrayLike, tests: int = 1) -> float:
    """Return the two-sided p-value of the hypothesis that values [R] are symmetric about zero.

    ``tests`` is the number of tests that will be corrected together.

    Examples
    --------
    >>> sign_flip_p([1.0, 2.0, 3.0, 4.0])  # only this pattern and its mirror image are as extreme: 2 of 16
    0.125
    >>> sign_flip_p([1.0, -1.0])
    1.0
    """
    # scipy.stats.permutation_test would draw other patterns beyond EXACT_RUNS and change published p-values
    d = np.asarray(values, float)
    if not len(d):
        return np.nan
    patterns = _n_patterns(tests)
    sums = np.abs(_signs(len(d), patterns) @ d)
    observed = np.abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding errors
    as_extreme = np.count_nonzero(sums >= observed)
    exact = 2 ** len(d) <= patterns
    return float(as_extreme / len(sums) if exact else (as_extreme + 1) / (len(sums) + 1))


def least_p(runs: int, tests: int = 1) -> float:
    """Return the smallest possible p-value for this number of runs and of jointly corrected tests.

    Examples
    --------
    >>> least_p(5), least_p(30) < 1e-4
    (0.0625, True)
    """
    return max(2.0 ** (1 - runs), 1.0 / (_n_patterns(tests) + 1))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Return Holm's adjusted p-values; NaN (no test) is preserved and not counted.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, float)
    adjusted = np.full(len(values), np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    scaled = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


@dataclass(frozen=True, eq=False)
class Group:
    """Comparable evaluations in one environment, and their statistics."""

    environment: str
    runs: DataFrame
    ceilings: Ceilings | None = None
    left_out: tuple[str, ...] = ()  # one line per algorithm with incomplete runs

    @property
    def horizon(self) -> int:
        """Number of steps in a run."""
        return int(self.runs.horizon.max())

    @cached_property
    def by_return(self) -> bool:
        """True if all totals are equal, as in CartPole, so that episode returns are compared instead."""
        done = self.runs[self.runs.failure == ""]
        return len(done) > 1 and done.total.nunique() == 1 and bool(done.mean_return.notna().all())

    @cached_property
    def values(self) -> dict[str, Series]:
        """Totals (or mean returns) of completed runs by label, indexed by replicate."""
        done = self.runs[self.runs.failure == ""].set_index("replicate")
        column = "mean_return" if self.by_return else "total"
        return {name: done.loc[done.label == name, column] for name in self.runs.label.unique()}

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Mean, standard error and IQM of each label's values."""
        return {name: summarise(values) for name, values in self.values.items()}

    @cached_property
    def compared(self) -> tuple[Comparison, ...]:
        """Comparisons of all pairs."""
        return compare_all(self.values)

    @cached_property
    def ranked(self) -> list[str]:
        """Labels by decreasing mean, followed by those without runs."""
        return sorted(
            self.values, key=lambda name: -np.nan_to_num(self.summaries[name].mean.value, nan=-np.inf)
        )

    @property
    def best(self) -> str:
        """Label with the highest mean."""
        return self.ranked[0]

    @cached_property
    def to_best(self) -> dict[str, Comparison]:
        """Comparison of every other algorithm with the best (algorithm − best), by label."""
        pairs = [pair for pair in self.compared if self.best in (pair.first, pair.second)]
        others = [pair.second if pair.first == self.best else pair.first for pair in pairs]
        return {name: pair.seen_from(name) for name, pair in zip(others, pairs)}

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """Verdict on each label: best, worse, about equal, undecided or too few runs; empty without common runs."""
        return {
            name: BEST if name == self.best else self._verdict(self.to_best[name]) for name in self.values
        }

    def _verdict(self, pair: Comparison) -> str:
        if not pair.runs:
            return ""
        if pair.distinguishable:
            return WORSE
        if self.blind:
            return TOO_FEW
        widest = max(abs(pair.difference.low), abs(pair.difference.high))
        return ABOUT_EQUAL if widest <= NARROW * self.scale else UNDECIDED

    @property
    def measure(self) -> str:
        """Name of the compared quantity."""
        return "mean return" if self.by_return else "total reward"

    @property
    def reference(self) -> Ceilings | None:
        """Reference values for the compared quantity, if known."""
        return None if self.by_return else self.ceilings

    @property
    def scale(self) -> float:
        """Range of totals from random play to the optimum or, if unknown, the magnitude of the best mean."""
        known = self.reference
        if known is not None and known.optimum > known.random:
            return known.optimum - known.random
        return abs(self.summaries[self.best].mean.value)

    @property
    def blind(self) -> bool:
        """True if there are too few common runs for any difference to be significant after correction."""
        common, tests = max((pair.runs for pair in self.compared), default=0), len(self.compared)
        return len(self.values) > 1 and least_p(common, tests) * tests > SIGNIFICANCE_LEVEL


@lru_cache(maxsize=4)
def groups(results: Results) -> tuple[Group, ...]:
    """Return each environment's completed evaluations, or all those available if none is complete."""
    found = []
    for environment in results.environments:
        runs = results.select(EVALUATE, environment)
        finished = runs[runs.failure == ""].groupby("label").size().reindex(runs.label).fillna(0).to_numpy()
        complete = finished >= runs.asked.clip(lower=1).to_numpy()
        chosen = complete if complete.any() else finished > 0
        rest = runs[~chosen].groupby("label", sort=False)
        lines = [_left_out(name, rows) for name, rows in rest]
        if chosen.any():
            known = results.ceilings.get(environment)
            found.append(Group(environment, runs[chosen], known, tuple(lines)))
    return tuple(found)


def _left_out(name: str, runs: DataFrame) -> str:
    failures = runs.failure[runs.failure != ""]
    why = f", {len(failures)} failed or were stopped: {failures.iloc[0]}" if len(failures) else ""
    return f"{name} is left out: {len(runs) - len(failures)} of {runs.asked.iloc[0]} runs{why}."


def _n_patterns(tests: int) -> int:
    """Return the number of sign patterns to evaluate, a power of two; it may exceed the number that exist."""
    return 2 ** max(EXACT_RUNS, math.ceil(math.log2(FINENESS * max(tests, 1) / SIGNIFICANCE_LEVEL)))


@lru_cache(maxsize=2)
def _signs(runs: int, patterns: int) -> NDArray[np.float64]:
    """Return sign patterns ±1 [patterns, R]: all of them if there are no more, otherwise a random sample."""
    if 2**runs <= patterns:
        return np.asarray(1.0 - 2.0 * (np.arange(2**runs)[:, None] >> np.arange(runs) & 1), float)
    return 1.0 - 2.0 * np.random.default_rng(SEED).integers(0, 2, (patterns, runs), np.int8)
