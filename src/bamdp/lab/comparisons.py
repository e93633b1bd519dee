"""Is one algorithm better than another? Paired comparisons on common luck.

Replicate r of every algorithm meets the same stream of the environment's luck, so the differences d_r of two
algorithms' totals are compared, not the totals: what both share cancels.

- **Test.** Sign flips (Fisher's randomisation test): if the two are alike, d_r and −d_r are equally likely. The p-value
  is the share of the 2^R patterns of signs whose |Σ ± d_r| is at least the one seen: all of them up to R = 14, beyond
  it 16 384 drawn patterns with the one seen among them, which keeps the test valid, and more where so many tests are
  corrected together that the least possible p could not pass (:func:`least_p`). No p is below 2^(1−R): five runs cannot
  convince anybody at 5%.
- **Correction.** Holm's, over all pairs of algorithms in an environment: with probability at least 95% no two that are
  alike are called different. All pairs, because which one is best is read off the same data.
- **Marks.** *Not distinguishable from the best*: the corrected test against the one with the highest mean does not
  reject. With probability at least 95% the truly best algorithm is among these.
- **Size.** The mean difference with its bootstrap 95% interval, of this pair alone (not corrected).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.lab.results import Sample, names
from bamdp.lab.statistics import SEED, Array, Estimate, estimate

EXACT_RUNS = 14  # all 2^R patterns of signs up to here, as many drawn ones beyond
LEVEL = 0.05
FINENESS = 4  # the least p of drawn patterns, corrected, is at least so many times below LEVEL


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
        """At 5%, corrected."""
        return self.adjusted <= LEVEL

    def gain(self, name: str) -> Estimate:
        """The mean difference as ``name``, one of the two, sees it: its own less the other's."""
        d = self.difference
        return d if name == self.first else Estimate(-d.value, -d.high, -d.low)


def compare(samples: Sequence[Sample]) -> tuple[Comparison, ...]:
    """All pairs of samples of one environment and one horizon, corrected together."""
    if len({(sample.environment, sample.phase, sample.horizon) for sample in samples}) > 1:
        raise ValueError("only runs of one environment, phase and horizon can be compared")
    labelled = dict(zip(names(samples), samples))
    pairs = list(combinations(labelled, 2))
    found = [_pair(a, b, labelled, len(pairs)) for a, b in pairs]
    adjusted = holm([comparison.p for comparison in found])
    return tuple(replace(one, adjusted=float(p)) for one, p in zip(found, adjusted))


def best(samples: Sequence[Sample]) -> str | None:
    """The label of the one with the highest mean; None if none has finished a run."""
    means = {name: s.totals.mean() for name, s in zip(names(samples), samples) if s.runs}
    return max(means, key=means.__getitem__) if means else None


def not_distinguishable(samples: Sequence[Sample], compared: Sequence[Comparison]) -> frozenset[str]:
    """Labels of the best and of those that :func:`compare` could not tell from it."""
    winner = best(samples)
    if winner is None:
        return frozenset()
    rivals = [c for c in compared if winner in (c.first, c.second) and not c.distinguishable and c.runs]
    return frozenset({winner}.union(*({c.first, c.second} for c in rivals)))


def differences(first: Sample, second: Sample) -> Array:
    """Totals of the first less those of the second on common replicates, in their order."""
    _, i, j = np.intersect1d(first.replicates, second.replicates, return_indices=True)
    return np.asarray(first.totals[i] - second.totals[j], float)


def sign_flip_p(values: ArrayLike, tests: int = 1) -> float:
    """Two-sided p-value of the hypothesis that values [R] are symmetric about zero.

    ``tests`` is the number of those that will be corrected together.

    Examples
    --------
    >>> sign_flip_p([1.0, 2.0, 3.0, 4.0])  # only this pattern and its mirror image are as extreme: 2 of 16
    0.125
    >>> sign_flip_p([1.0, -1.0])
    1.0
    """
    d = np.asarray(values, float)
    if not len(d):
        return np.nan
    patterns = _patterns(tests)
    sums = np.abs(_signs(len(d), patterns) @ d)
    seen = np.abs(d.sum()) - 1e-9 * np.abs(d).sum()  # equal sums may differ by rounding
    as_extreme = np.count_nonzero(sums >= seen)
    exact = 2 ** len(d) <= patterns
    return float(as_extreme / len(sums) if exact else (as_extreme + 1) / (len(sums) + 1))


def least_p(runs: int, tests: int = 1) -> float:
    """The lowest p-value that so many runs can have, if so many tests are corrected together.

    Examples
    --------
    >>> least_p(5), least_p(30) < 1e-4
    (0.0625, True)
    """
    return max(2.0 ** (1 - runs), 1.0 / (_patterns(tests) + 1))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's adjusted p-values; NaN (nothing was tested) stays so and is not counted.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, float)
    adjusted = np.full(len(values), np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _pair(first: str, second: str, samples: Mapping[str, Sample], tests: int) -> Comparison:
    d = differences(samples[first], samples[second])
    return Comparison(first, second, len(d), estimate(np.mean, d), sign_flip_p(d, tests), np.nan)


def _patterns(tests: int) -> int:
    """How many patterns are looked at: all, if there are no more; a power of two."""
    return 2 ** max(EXACT_RUNS, math.ceil(math.log2(FINENESS * tests / LEVEL)))


@lru_cache(maxsize=2)
def _signs(runs: int, patterns: int) -> NDArray[np.float64]:
    """Patterns of ±1, [patterns, R]: all, or so many drawn ones."""
    if 2**runs <= patterns:
        return np.asarray(1.0 - 2.0 * (np.arange(2**runs)[:, None] >> np.arange(runs) & 1), float)
    return 1.0 - 2.0 * np.random.default_rng(SEED).integers(0, 2, (patterns, runs), np.int8)
