"""Drawing Dirichlet vectors in place, as gamma variables divided by their sum.

Concentrations a below one are common here (α of a sparse prior, 1/S of a flat one). A Gamma(a) variable is then a
Gamma(a + 1) one times U^(1/a); for small a the method of Ahrens & Dieter (1974, "GS") is cheaper: x = p^(1/a), p
uniform on [0, 1 + a/e], accepted with probability e^-x if p <= 1; the rare p > 1 stand for the tail x > 1, which is
1 + an exponential variable, accepted with probability x^(a-1). How the power is best taken depends on a, see
:func:`power_method`. GS pays where many outcomes are unseen and 1/a is a whole number above MOST_FACTORS, as in rows of
the flat prior; rows of the sparse prior have few, and spare the compiler its code.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import (
    exponential,
    gamma,
    gamma_above_one,
    gamma_with_constants,
    log_gamma,
    uniform,
)

BY_LOGARITHMS, BY_EXPONENTIAL = -1, 0  # how to take the power; a positive method is the power itself
TINY_SHAPE = 0.03  # below it all gamma variables of a vector may underflow, so draw their logarithms
# Of a power taken as a product; beyond it GS, which then accepts nearly always, is faster for many.
MOST_FACTORS = 8


def power_method(alpha):
    """Return how to take the power for outcomes of concentration ``alpha``, see :func:`posterior_row`."""
    if alpha < TINY_SHAPE:
        return np.int64(BY_LOGARITHMS)
    power = np.int64(1.0 / alpha + 0.5)
    return power if abs(power * alpha - 1.0) < 1e-15 else np.int64(BY_EXPONENTIAL)


compiled_power_method = primitive(power_method)


@inner
def dirichlet(prob, begin, end, smallest, rng):
    """Replace the concentrations in ``prob[begin:end]``, none below ``smallest``, by a Dirichlet draw with them."""
    if end - begin == 1:
        prob[begin] = 1.0
        return
    if smallest < TINY_SHAPE:
        _divide(prob, begin, end, _draw_logarithms(prob, begin, end, rng))
        return
    total = 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        x = gamma(rng, prob[i])
        prob[i] = x
        total += x
    _divide(prob, begin, end, total)


@inner
def posterior_row(prob, begin, new, end, alpha, method, rng):
    """Draw from a Dirichlet into ``prob[begin:end]``: a row with outcomes seen and not seen.

    Up to ``new`` stand the concentrations of those seen, at least one each; the others have ``alpha``, whose ``method``
    is that of :func:`power_method`.
    """
    if method == BY_LOGARITHMS:
        for i in range(new, end):
            prob[i] = alpha
        _divide(prob, begin, end, _draw_logarithms(prob, begin, end, rng))
        return
    total = _draw_seen(prob, begin, new, rng) + _draw_equal(prob, new, end, alpha, method, rng)
    _divide(prob, begin, end, total)


@inner
def posterior_row_by_gs(prob, begin, new, end, power, rng):
    """Draw the same for many unseen outcomes with a concentration of 1/power, more than MOST_FACTORS."""
    total = _draw_seen(prob, begin, new, rng) + _draw_small(prob, new, end, power, rng)
    _divide(prob, begin, end, total)


@primitive
def _divide(prob, begin, end, total):
    scale = 1.0 / total
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] *= scale


@primitive
def _draw_seen(prob, begin, end, rng):
    """Draw a gamma variable for each concentration, all at least one; return their sum."""
    total = 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        x = gamma_above_one(rng, prob[i])
        prob[i] = x
        total += x
    return total


@primitive
def _draw_equal(prob, begin, end, alpha, method, rng):
    """Gamma(alpha, 1) variables, by a power of a uniform one where alpha < 1; returns their sum."""
    total = 0.0
    d = (alpha if alpha >= 1.0 else alpha + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    for i in range(np.uint64(begin), np.uint64(end)):
        x = gamma_with_constants(rng, d, c)
        if alpha < 1.0:
            if method == BY_EXPONENTIAL:
                x *= math.exp(-exponential(rng) / alpha)
            else:
                u = 1.0 - uniform(rng)
                for _ in range(method):
                    x *= u
        prob[i] = x
        total += x
    return total


@inner
def _draw_small(prob, begin, end, power, rng):
    """Gamma(1/power, 1) variables by GS: all proposals in one go, then a second look at few; returns their sum.

    Each proposal x <= 1 stands with probability e^-x. So the rejected ones are those in whose stretch of the line, if
    the x are laid end to end, a point of a Poisson process falls: one exponential variable says where the first is.
    """
    span = 1.0 + 1.0 / (math.e * power)
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] = span * (1.0 - uniform(rng))
    for i in range(np.uint64(begin), np.uint64(end)):  # a loop of its own: it is done for several at once
        prob[i] = _power(prob[i], power)
    total, line, point = 0.0, 0.0, exponential(rng)
    i = np.uint64(begin)
    while i < np.uint64(end):
        x = prob[i]
        if x <= 1.0:
            line += x
            stands = line <= point
            if not stands:
                point = line + exponential(rng)
        else:  # p > 1
            x = 1.0 + exponential(rng)
            u = uniform(rng)
            stands = u * x < 1.0 or u < x ** (1.0 / power - 1.0)  # x^(a-1) > 1/x spares most of the powers
        if stands:
            prob[i] = x
            total += x
            i += np.uint64(1)
        else:
            prob[i] = _power(span * (1.0 - uniform(rng)), power)
    return total


@primitive
def _power(p, n):
    """p^n for n < 64 (:func:`power_method` gives at most 1/TINY_SHAPE) by squaring, without a loop or a branch."""
    result = p if n & 1 else 1.0
    for bit in (2, 4, 8, 16, 32):
        p *= p
        result *= p if n & bit else 1.0
    return result


@inner
def _draw_logarithms(prob, begin, end, rng):
    """Draw a gamma variable for each concentration, all divided by the largest; return their sum."""
    highest, total = -np.inf, 0.0
    for i in range(begin, end):
        prob[i] = log_gamma(rng, prob[i])
        highest = max(highest, prob[i])
    for i in range(begin, end):
        prob[i] = math.exp(prob[i] - highest)
        total += prob[i]
    return total
