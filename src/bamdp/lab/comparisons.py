"""Is one algorithm better than another? Paired comparisons with common random numbers, in groups of samples.

Replicate r of every algorithm has the same random stream of the environment, so the differences d_r of two
algorithms' totals are compared, not the totals: what both share cancels.

- **Test.** Sign flips (Fisher's randomisation test): if the two are alike, d_r and −d_r are equally likely. The p-value
  is the share of the 2^R patterns of signs whose |Σ ± d_r| is at least the observed one: all of them up to R = 14,
  beyond it 16 384 random patterns with the observed one among them, which keeps the test valid, and more where so many
  tests are corrected together that the least possible p could not pass (:func:`least_p`). No p is below 2^(1−R): five
  runs cannot be significant at 5%.
- **Correction.** Holm's, over all pairs of algorithms in an environment: with probability at least 95% no two that are
  alike are called different. All pairs, because which one is best is read off the same data.
- **Marks.** *Not distinguishable from the best*: the corrected test against the one with the highest mean does not
  reject. With probability at least 95% the truly best algorithm is among these. That may be because they are alike or
  because the runs could not have seen a difference, so there are two marks: *about equal* (≈) if the interval of the
  difference lies within ±5% of the range from random play to the optimum, else *undecided* (?).
- **Size.** The mean difference with its bootstrap 95% interval, of this pair alone (not corrected).

A :class:`Group` is the samples that may stand beside each other: one environment, one phase, one horizon. Every table
column and every figure shows one group, so that runs of different length are never mixed; its statistics are
computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.ceilings import Ceilings
from bamdp.lab.results import EVALUATE, Results, Sample, sample_labels, steady_returns
from bamdp.statistics import SEED, Estimate, FloatArray, Summary, estimate, summarise

EXACT_RUNS = 14  # all 2^R patterns of signs up to here, as many random ones beyond
SIGNIFICANCE_LEVEL = 0.05
FINENESS = 4  # the least p of random patterns, corrected, is at least so many times below the level
NARROW = 0.05  # of the range of totals: an interval of a difference within it means that two are about equal
MAX_FIGURE_LINES = 8  # lines in one figure


@dataclass(frozen=True)
class Comparison:
    """Two algorithms on the replicates that both have finished."""

    first: str
    second: str
    runs: int  # common replicates
    difference: Estimate  # mean of first − second
    p: float  # two-sided; NaN without common replicates
    adjusted: float  # the same after Holm's correction

    @property
    def distinguishable(self) -> bool:
        """Whether the corrected test rejects at 5%."""
        return self.adjusted <= SIGNIFICANCE_LEVEL

    def gain(self, name: str) -> Estimate:
        """Return the mean difference from the side of ``name``, one of the two: its own less the other's."""
        d = self.difference
        return d if name == self.first else Estimate(-d.value, -d.high, -d.low)


def compare_samples(samples: Sequence[Sample]) -> tuple[Comparison, ...]:
    """Compare all pairs of samples of one environment and one horizon, corrected together."""
    if len({(sample.environment, sample.phase, sample.horizon) for sample in samples}) > 1:
        raise ValueError("only runs of one environment, phase and horizon can be compared")
    labelled = dict(zip(sample_labels(samples), samples))
    pairs = list(combinations(labelled, 2))
    compared = [_compare_pair(a, b, labelled, len(pairs)) for a, b in pairs]
    adjusted = holm([comparison.p for comparison in compared])
    return tuple(replace(one, adjusted=float(p)) for one, p in zip(compared, adjusted))


def differences(first: Sample, second: Sample) -> FloatArray:
    """Return the totals of the first less those of the second on common replicates, in their order."""
    _, i, j = np.intersect1d(first.replicates, second.replicates, return_indices=True)
    return np.asarray(first.totals[i] - second.totals[j], float)


def sign_flip_p(values: ArrayLike, tests: int = 1) -> float:
    """Return the two-sided p-value of the hypothesis that values [R] are symmetric about zero.

    ``tests`` is the number of those that will be corrected together.

    Examples
    --------
    >>> sign_flip_p([1.0, 2.0, 3.0, 4.0])  # only this pattern and its mirror image are as extreme: 2 of 16
    0.125
    >>> sign_flip_p([1.0, -1.0])
    1.0
    """
    # not scipy.stats.permutation_test: beyond EXACT_RUNS it draws other patterns, which changes published p-values
    d = np.asarray(values, float)
    if not len(d):
        return np.nan
    patterns = _n_patterns(tests)
    sums = np.abs(_signs(len(d), patterns) @ d)
    observed = np.abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding
    as_extreme = np.count_nonzero(sums >= observed)
    exact = 2 ** len(d) <= patterns
    return float(as_extreme / len(sums) if exact else (as_extreme + 1) / (len(sums) + 1))


def least_p(runs: int, tests: int = 1) -> float:
    """Return the lowest p-value that so many runs can have, if so many tests are corrected together.

    Examples
    --------
    >>> least_p(5), least_p(30) < 1e-4
    (0.0625, True)
    """
    return max(2.0 ** (1 - runs), 1.0 / (_n_patterns(tests) + 1))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Return Holm's adjusted p-values; NaN (nothing was tested) stays so and is not counted.

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
    """Comparable samples and their statistics."""

    environment: str
    horizon: int
    samples: tuple[Sample, ...]
    ceilings: Ceilings | None
    alone: bool  # whether the environment has this one horizon only

    @property
    def label(self) -> str:
        """The environment, with the steps where it has several horizons."""
        return self.environment if self.alone else f"{self.environment}, T={self.horizon}"

    @property
    def stem(self) -> str:
        """The label as part of a file's name."""
        return file_stem(self.label.replace(", ", "_").replace("=", ""))

    @cached_property
    def named(self) -> dict[str, Sample]:
        """The samples by labels that tell them apart."""
        return dict(zip(sample_labels(self.samples), self.samples))

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Mean, standard error and IQM of each sample's totals."""
        return {name: summarise(sample.totals) for name, sample in self.named.items()}

    @cached_property
    def compared(self) -> tuple[Comparison, ...]:
        """The comparisons of all pairs."""
        return compare_samples(self.samples)

    @cached_property
    def best(self) -> str | None:
        """The label with the highest mean; None if none has finished a run."""
        means = {name: sample.mean_total for name, sample in self.named.items() if sample.runs}
        return max(means, key=means.__getitem__) if means else None

    @cached_property
    def near_best(self) -> frozenset[str]:
        """The best, and those that are about equal to it: a difference that mattered would have been seen."""
        about_equal = frozenset(self._not_told_apart) - self.undecided
        return about_equal if self.best is None else about_equal | {self.best}

    @cached_property
    def undecided(self) -> frozenset[str]:
        """Those that cannot be told from the best, although they may well be worse: too few runs, or too noisy ones."""
        return frozenset(name for name, pair in self._not_told_apart.items() if not self.narrow(pair))

    @cached_property
    def _not_told_apart(self) -> dict[str, Comparison]:
        """The comparisons of others with the best that do not distinguish them, by the label of the other."""
        return {
            pair.second if pair.first == self.best else pair.first: pair
            for pair in self.compared
            if self.best in (pair.first, pair.second) and pair.runs and not pair.distinguishable
        }

    @property
    def scale(self) -> float:
        """The range of totals from random play to the optimum; where that is not known, the size of the best mean."""
        if self.ceilings is not None and self.ceilings.optimum > self.ceilings.random:
            return self.ceilings.optimum - self.ceilings.random
        return 0.0 if self.best is None else abs(self.summaries[self.best].mean.value)

    def narrow(self, pair: Comparison) -> bool:
        """Return whether the interval of a difference is so narrow, and so near 0, that the two are about equal."""
        return max(abs(pair.difference.low), abs(pair.difference.high)) <= NARROW * self.scale

    @cached_property
    def returns(self) -> dict[str, FloatArray] | None:
        """The mean returns of runs by label, where every step pays the same, so that totals say nothing; else None."""
        totals = (total for sample in self.samples for total in sample.totals.tolist())
        found = steady_returns(totals, lambda: [sample.episodes() for sample in self.samples])
        return None if found is None else dict(zip(self.named, found))

    @property
    def ranked(self) -> list[str]:
        """Labels by mean (of :attr:`returns`, if there are any), the highest first; those without a run last."""
        if self.returns is not None:
            means = {name: float(values.mean()) for name, values in self.returns.items()}
        else:
            means = {name: summary.mean.value for name, summary in self.summaries.items()}
        return sorted(self.named, key=lambda name: (not self.named[name].runs, -means[name]))

    @property
    def leading(self) -> dict[str, Sample]:
        """The samples that a figure shows: all with runs, or if they are many the best of each algorithm."""
        with_runs = [name for name in self.ranked if self.named[name].runs]
        if len(with_runs) <= MAX_FIGURE_LINES:
            return {name: sample for name, sample in self.named.items() if sample.runs}
        best_of: dict[str, str] = {}
        for name in with_runs:
            best_of.setdefault(self.named[name].algorithm, name)
        return {name: sample for name, sample in self.named.items() if name in best_of.values()}

    @property
    def blind(self) -> bool:
        """Whether so few runs are common to any two that no difference could pass the corrected test."""
        common, tests = max((pair.runs for pair in self.compared), default=0), len(self.compared)
        return len(self.named) > 1 and least_p(common, tests) * tests > SIGNIFICANCE_LEVEL


@lru_cache(maxsize=4)
def groups(results: Results) -> tuple[Group, ...]:
    """Return the groups of the evaluation, by environment in the study's order, the longest horizon first."""
    listed = []
    for environment in results.environments:
        samples = results.select(EVALUATE, environment)
        horizons = sorted({sample.horizon for sample in samples}, reverse=True)
        for horizon in horizons:
            members = tuple(sample for sample in samples if sample.horizon == horizon)
            known = results.ceilings_of(members[0])
            listed.append(Group(environment, horizon, members, known, len(horizons) == 1))
    return tuple(listed)


def groups_in(results: Results, environment: str) -> list[Group]:
    """Return the groups of one environment."""
    return [group for group in groups(results) if group.environment == environment]


def file_stem(words: str) -> str:
    """Return words as a part of a file's name, on any system.

    Examples
    --------
    >>> file_stem("file:my model.npz")
    'file_my_model_npz'
    """
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in words)


def _compare_pair(first: str, second: str, samples: Mapping[str, Sample], tests: int) -> Comparison:
    d = differences(samples[first], samples[second])
    return Comparison(first, second, len(d), estimate(np.mean, d), sign_flip_p(d, tests), np.nan)


def _n_patterns(tests: int) -> int:
    """Return the number of patterns to look at, a power of two; all are, if there are no more."""
    return 2 ** max(EXACT_RUNS, math.ceil(math.log2(FINENESS * tests / SIGNIFICANCE_LEVEL)))


@lru_cache(maxsize=2)
def _signs(runs: int, patterns: int) -> NDArray[np.float64]:
    """Return patterns of ±1, [patterns, R]: all, or so many random ones."""
    if 2**runs <= patterns:
        return np.asarray(1.0 - 2.0 * (np.arange(2**runs)[:, None] >> np.arange(runs) & 1), float)
    return 1.0 - 2.0 * np.random.default_rng(SEED).integers(0, 2, (patterns, runs), np.int8)
