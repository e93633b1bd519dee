"""Drawing Dirichlet vectors in place, as gamma variables divided by their sum.

A Gamma(a) variable with a < 1 is a Gamma(a + 1) one times U^(1/a). How that power is best taken depends on a,
so callers look it up once (:func:`small_shapes`) and hand it over.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import exponential, gamma_with_constants, log_gamma, uniform

BY_LOGARITHMS, BY_EXPONENTIAL = -1, 0  # ways to take the power; a positive way is the power itself
TINY_SHAPE = 0.03  # below it all gamma variables of a vector may underflow, so draw their logarithms
MOST_FACTORS = 8


@kernel
def small_shapes(shape):
    """The way for vectors whose smallest concentration, and the only one below one, is ``shape``."""
    if shape < TINY_SHAPE:
        return BY_LOGARITHMS
    power = int(1.0 / shape + 0.5)
    whole = power <= MOST_FACTORS and abs(power * shape - 1.0) < 1e-15
    return power if whole else BY_EXPONENTIAL


@primitive
def mixed_shapes(smallest):
    """The way for vectors with any concentrations not below ``smallest``."""
    return BY_LOGARITHMS if smallest < TINY_SHAPE else BY_EXPONENTIAL


@kernel
def dirichlet(prob, begin, end, way, rng):
    """Replace the concentrations in ``prob[begin:end]`` by a Dirichlet draw with those concentrations."""
    if end - begin == 1:
        prob[begin] = 1.0
        return
    if way == BY_LOGARITHMS:
        total = _draw_logarithms(prob, begin, end, rng)
    else:
        total = _draw_gammas(prob, begin, end, way, rng)
    scale = 1.0 / total
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] *= scale


@primitive
def _draw_gammas(prob, begin, end, way, rng):
    """A gamma variable for each concentration; returns their sum."""
    total, last, d, c = 0.0, -1.0, 0.0, 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        shape = prob[i]
        if shape != last:  # runs of equal shapes share the constants, a root and a division
            last = shape
            d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
            c = 1.0 / math.sqrt(9.0 * d)
        x = gamma_with_constants(rng, d, c)
        if shape < 1.0:
            if way == BY_EXPONENTIAL:
                x *= math.exp(-exponential(rng) / shape)
            else:
                u = 1.0 - uniform(rng)
                for _ in range(way):
                    x *= u
        prob[i] = x
        total += x
    return total


@kernel
def _draw_logarithms(prob, begin, end, rng):
    """The same from logarithms, divided by the largest."""
    highest, total = -np.inf, 0.0
    for i in range(begin, end):
        prob[i] = log_gamma(rng, prob[i])
        highest = max(highest, prob[i])
    for i in range(begin, end):
        prob[i] = math.exp(prob[i] - highest)
        total += prob[i]
    return total
