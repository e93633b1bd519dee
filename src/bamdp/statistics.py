"""Statistics of one algorithm's runs in one environment, with uncertainty estimates.

For totals x₁..x_R of R independent runs:

- the mean, with its standard error s/√R;
- the interquartile mean, IQM = 2 ∫ F⁻¹(u) du over u in [1/4, 3/4]: the mean of the middle half, which is robust to
  single outlying runs and more efficient than the median;
- 95% bootstrap intervals for both (bias-corrected and accelerated, Efron 1987), with a fixed seed so that reports are
  reproducible. Identical results give an interval of width zero; a single run gives no interval;
- scores against reference values: total / optimum, and the normalised score (total − random) / (optimum − random),
  which is 0 for uniformly random actions and 1 for an optimal policy of the known model.

For comparisons between algorithms, see :mod:`bamdp.lab.comparisons`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 9_999
FEWER_RESAMPLES = 1_999  # for bands and pooled scores, where more would take seconds
MAX_RESAMPLED = 2_000_000  # maximum number of resampled values held in memory
SEED = 20_200_211  # of every bootstrap and permutation, so that results do not depend on earlier calls

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A point estimate with its 95% interval; NaN if undetermined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """Mean, standard error and IQM of a sample of totals."""

    runs: int
    mean: Estimate
    standard_error: float  # standard error of the mean
    iqm: Estimate


def summarise(values: ArrayLike) -> Summary:
    """Return mean, standard error and IQM of independent values [R], with intervals.

    Examples
    --------
    >>> found = summarise([1.0, 2.0, 3.0, 10.0])
    >>> found.mean.value, round(found.standard_error, 3), found.iqm.value
    (4.0, 2.041, 2.5)
    >>> found.mean.low < 4.0 < found.mean.high
    True
    >>> summarise([7.0]).mean
    Estimate(value=7.0, low=nan, high=nan)
    """
    array = np.asarray(values, float)
    return Summary(len(array), estimate(np.mean, array), standard_error(array), estimate(iqm, array))


def standard_error(values: ArrayLike) -> float:
    """Return the standard error of the mean of values [R]; NaN for fewer than two.

    Examples
    --------
    >>> standard_error([1.0, 3.0])
    1.0
    """
    array = np.asarray(values, float)
    if len(array) < 2:
        return np.nan
    return float(array.std(ddof=1) / np.sqrt(len(array))) if np.ptp(array) else 0.0  # exact for equal values


def iqm(values: ArrayLike, weights: ArrayLike | None = None, axis: int = -1) -> Any:
    """Return the exact interquartile mean along ``axis``, with fractional weights at the quartiles.

    ``weights`` [R] need not sum to one.

    Examples
    --------
    >>> float(iqm([0.0, 1.0, 2.0, 99.0]))
    1.5
    >>> float(iqm([0.0, 3.0, 9.0]).round(9))  # the middle third counts whole, of the others a quarter each
    3.5
    """
    array = np.moveaxis(np.asarray(values, float), axis, -1)
    if not array.shape[-1]:
        return np.full(array.shape[:-1], np.nan)
    mass = np.ones(array.shape[-1]) if weights is None else np.asarray(weights, float)
    order = np.argsort(array, axis=-1)
    upper = np.cumsum(mass[order], axis=-1) / mass.sum()  # F at each value
    inside = np.diff(np.clip(upper, 0.25, 0.75), axis=-1, prepend=0.25)
    return 2.0 * (inside * np.take_along_axis(array, order, -1)).sum(axis=-1)


def estimate(statistic: Callable[..., Any], *samples: ArrayLike, resamples: int = RESAMPLES) -> Estimate:
    """Return a statistic of independent samples with its bootstrap interval; each sample is resampled separately.

    ``statistic(*samples, axis=-1)`` must support batches of resamples.
    """
    arrays = [np.asarray(sample, float) for sample in samples]
    if not all(len(array) for array in arrays):
        return Estimate(np.nan, np.nan, np.nan)
    value = float(statistic(*arrays, axis=-1))
    if any(len(array) == 1 for array in arrays):  # the variance of a single value is unknown
        return Estimate(value, np.nan, np.nan)
    if all((array == array[0]).all() for array in arrays):
        return Estimate(value, value, value)
    return Estimate(value, *_bootstrap_interval(statistic, arrays, resamples))


def pooled_iqm(scores: Sequence[ArrayLike]) -> Estimate:
    """Return the IQM of normalised scores over equally weighted environments, with its interval.

    Runs are resampled within their environments (Agarwal et al. 2021).

    Examples
    --------
    >>> pooled_iqm([[0.5, 0.5], [0.9, 0.9]]).value
    0.7
    """

    def pooled(*parts: FloatArray, axis: int) -> Any:
        weights = np.concatenate([np.full(part.shape[axis], 1.0 / part.shape[axis]) for part in parts])
        return iqm(np.concatenate(parts, axis=axis), weights, axis)

    return estimate(pooled, *scores, resamples=FEWER_RESAMPLES)


def band(curves: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return pointwise 95% bounds [P], [P] of the mean of curves [R, P] by a percentile bootstrap over whole runs.

    Examples
    --------
    >>> low, high = band([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> bool(low[0] < 1.0 < high[0]), float(high[1] - low[1])
    (True, 0.0)
    """
    array = np.asarray(curves, float)
    R, tail = len(array), (1.0 - CONFIDENCE_LEVEL) / 2.0
    if R < 2:
        return np.full(array.shape[1:], np.nan), np.full(array.shape[1:], np.nan)
    draws = np.random.default_rng(SEED).multinomial(R, np.full(R, 1 / R), FEWER_RESAMPLES)
    centre = array.mean(axis=0)  # subtracted first, so that constants stay exact
    low, high = np.quantile((draws / R) @ (array - centre), [tail, 1.0 - tail], axis=0)
    return centre + low, centre + high


def rescaled(values: ArrayLike, zero: float, one: float) -> FloatArray:
    """Rescale values so that ``zero`` maps to 0 and ``one`` to 1; return NaN if this is impossible.

    Scaling from 0 to the optimum gives fractions of the optimum; scaling from the total of a random policy gives
    normalised scores.

    Examples
    --------
    >>> rescaled([20.0, 60.0, 100.0], zero=20.0, one=100.0)
    array([0. , 0.5, 1. ])
    """
    width = one - zero if one > zero else np.nan
    return np.asarray((np.asarray(values, float) - zero) / width)


def _bootstrap_interval(
    statistic: Callable[..., Any], arrays: list[FloatArray], resamples: int
) -> tuple[float, float]:
    """Return the BCa interval, or the percentile interval if the acceleration is undefined."""
    from scipy import stats  # slow to import

    ends = (np.nan, np.nan)
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            result = stats.bootstrap(
                arrays,
                statistic,
                vectorized=True,
                axis=-1,
                n_resamples=resamples,
                batch=max(1, MAX_RESAMPLED // sum(map(len, arrays))),
                confidence_level=CONFIDENCE_LEVEL,
                method=method,
                rng=np.random.default_rng(SEED),
            )
        ends = float(result.confidence_interval.low), float(result.confidence_interval.high)
        if np.isfinite(ends).all():
            break
    return ends
