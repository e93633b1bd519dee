"""Posterior weights of a few alternatives, kept as logarithms so that none is lost to underflow, and their mixtures."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import primitive
from bamdp._kernels.random import uniform
from bamdp._serial import saveable


@saveable
class Weights(NamedTuple):
    """Normalised weights with an undo log; all are written to."""

    log: np.ndarray  # float64 [L]: logarithms
    now: np.ndarray  # float64 [L]: the weights themselves
    past: np.ndarray  # float64 [depth, 2, L]: logarithms and weights before each push
    top: np.ndarray  # int64 [1]


def new_weights(weights: np.ndarray) -> Weights:
    """From numbers that are not negative, some of them positive."""
    share = weights / weights.sum()
    with np.errstate(divide="ignore"):
        return Weights(np.log(share), share, np.zeros((16, 2, len(share))), np.zeros(1, np.int64))


def with_weights_room(weights: Weights, depth: int) -> Weights:
    """Return the same weights with room for ``depth`` more pushes."""
    depth += int(weights.top[0])
    if depth <= len(weights.past):
        return weights
    past = np.zeros((max(depth, 2 * len(weights.past)), 2, len(weights.log)))
    past[: len(weights.past)] = weights.past
    return weights._replace(past=past)


@primitive
def draw_weighted(weights, rng):
    """Draw an index with probability equal to its weight."""
    x = uniform(rng)
    last = weights.now.shape[0] - 1
    for m in range(last):
        x -= weights.now[m]
        if x < 0.0:
            return m
    while last > 0 and weights.now[last] == 0.0:  # rounding must not choose the impossible
        last -= 1
    return last


@primitive
def log_sum(total, x):
    """log(e^total + e^x), exact for -inf."""
    if x > total:
        total, x = x, total
    if x == -np.inf:
        return total
    return total + math.log1p(math.exp(x - total))


@primitive
def save_weights(weights):
    """Log the weights before they are changed."""
    at = weights.top[0]
    for m in range(weights.log.shape[0]):
        weights.past[at, 0, m] = weights.log[m]
        weights.past[at, 1, m] = weights.now[m]
    weights.top[0] = at + 1


@primitive
def normalise_weights(weights):
    """Make the logarithms those of weights that sum to one."""
    highest = -np.inf
    for m in range(weights.log.shape[0]):
        highest = max(highest, weights.log[m])
    total = 0.0
    for m in range(weights.log.shape[0]):
        total += math.exp(weights.log[m] - highest)
    shift = highest + math.log(total)
    for m in range(weights.log.shape[0]):
        weights.log[m] -= shift
        weights.now[m] = math.exp(weights.log[m])


@primitive
def restore_weights(weights):
    """Undo the last change."""
    at = weights.top[0] - 1
    weights.top[0] = at
    for m in range(weights.log.shape[0]):
        weights.log[m] = weights.past[at, 0, m]
        weights.now[m] = weights.past[at, 1, m]


@primitive
def merge_entries(index, prob, at, end, sums):
    """Add up entries of the same state, in order of first appearance; ``sums`` is zero before and after."""
    for i in range(at, end):
        sums[index[i]] += prob[i]
    kept = at
    for i in range(at, end):
        s2 = index[i]
        if sums[s2] != 0.0:
            index[kept] = s2
            prob[kept] = sums[s2]
            sums[s2] = 0.0
            kept += 1
    return kept


@primitive
def merge_moments(index, mean, square, at, end, rest, rest_square, sums):
    """Write means and variances of a mixture's entries; return the same as :func:`verbs.moments_row`.

    ``mean`` and ``square`` hold the weighted first and second moments of the parts' entries beyond what entries
    that are not listed have (``rest`` and ``rest_square`` in all); ``square`` becomes the variance. ``sums`` is
    zero before and after: in between it holds where a state stands.
    """
    kept = at
    for i in range(at, end):
        s2 = index[i]
        if sums[s2] == 0.0:
            index[kept] = s2
            mean[kept] = mean[i]
            square[kept] = square[i]
            kept += 1
            sums[s2] = kept - at
        else:
            j = at + np.int64(sums[s2]) - 1
            mean[j] += mean[i]
            square[j] += square[i]
    for i in range(at, kept):
        sums[index[i]] = 0.0
        mean[i] += rest
        square[i] = max(0.0, square[i] + rest_square - mean[i] * mean[i])
    return kept, rest, max(0.0, rest_square - rest * rest)
