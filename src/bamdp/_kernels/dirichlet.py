"""Drawing Dirichlet vectors in place, as gamma variables divided by their sum.

Concentrations a below one are common here (α of a sparse prior, 1/S of a flat one). A Gamma(a) variable is then a
Gamma(a + 1) one times U^(1/a); for small a the method of Ahrens & Dieter (1974, "GS") is cheaper: x = p^(1/a), p
uniform on [0, 1 + a/e], accepted with probability e^-x if p <= 1; the rare p > 1 stand for the tail x > 1. How the
power is best taken depends on a, so callers look it up once (:func:`small_shapes`) and hand it over.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import inner, kernel, primitive
from bamdp._kernels.random import exponential, gamma_above_one, gamma_with_constants, log_gamma, uniform

BY_LOGARITHMS, BY_EXPONENTIAL = -1, 0  # ways to take the power; a positive way is the power itself
TINY_SHAPE = 0.03  # below it all gamma variables of a vector may underflow, so draw their logarithms
MOST_FACTORS = 8  # of a power taken as a product; beyond it GS, which then accepts nearly always, is faster


@kernel
def small_shapes(shape):
    """The way for vectors whose smallest concentration, and the only one below one, is ``shape``."""
    if shape < TINY_SHAPE:
        return BY_LOGARITHMS
    power = int(1.0 / shape + 0.5)
    return power if abs(power * shape - 1.0) < 1e-15 else BY_EXPONENTIAL


@kernel
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
    elif way > MOST_FACTORS:
        total = _draw_small(prob, begin, end, way, rng)
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


@inner
def _draw_small(prob, begin, end, power, rng):
    """The same with GS for concentrations 1/power, which mostly stand side by side."""
    total = 0.0
    i = begin
    while i < end:
        first = i
        while i < end and prob[i] < 1.0:
            i += 1
        if i > first:
            total += _fill_small(prob, first, i, power, rng)
        if i < end:
            prob[i] = gamma_above_one(rng, prob[i])
            total += prob[i]
            i += 1
    return total


@primitive
def _fill_small(prob, begin, end, power, rng):
    """Gamma(1/power, 1) variables by GS: all proposals without a branch, then a second look at few. Returns the sum."""
    span, total = 1.0 + 1.0 / (math.e * power), 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] = _power(span * (1.0 - uniform(rng)), power)
    for i in range(np.uint64(begin), np.uint64(end)):
        u = uniform(rng)
        if u >= 1.0 - prob[i]:  # 1 - x <= e^-x, and x > 1 where p > 1
            prob[i] = _small_gamma(rng, prob[i], u, span, power)
        total += prob[i]
    return total


@inner
def _small_gamma(rng, x, u, span, power):
    """A Gamma(1/power, 1) variable whose first proposal is p^power = x, with the uniform ``u`` to judge it."""
    while True:
        if x > 1.0:  # p is uniform between 1 and span, whatever x
            x = -math.log((span - 1.0) * (1.0 - uniform(rng)) * power)
            if u < x ** (1.0 / power - 1.0):
                return x
        elif u < math.exp(-x):
            return x
        x = _power(span * (1.0 - uniform(rng)), power)
        u = uniform(rng)


@primitive
def _power(p, n):
    """p^n by squaring."""
    result = 1.0
    while n > 0:
        if n & 1:
            result *= p
        p *= p
        n >>= 1
    return result


@inner
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
