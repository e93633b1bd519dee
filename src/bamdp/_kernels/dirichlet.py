"""In-place sampling of Dirichlet vectors as normalised gamma variables.

Concentrations a < 1 are common (α for a sparse prior, 1/S for a flat one). A Gamma(a) variable can then be drawn as
a Gamma(a + 1) variable times U^(1/a). For small a, the method of Ahrens & Dieter (1974, "GS") is cheaper: draw x =
p^(1/a) with p uniform on [0, 1 + a/e], and accept it with probability e^-x if p <= 1. The rare case p > 1 represents
the tail x > 1: draw 1 plus an exponential variable and accept it with probability x^(a-1). The best way to compute the
power depends on a; see :func:`power_method`. GS is worthwhile if there are many unseen outcomes and 1/a is an integer
above MOST_FACTORS, as in rows of the flat prior. Rows of the sparse prior have few unseen outcomes, so GS is not
compiled for them.
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

BY_LOGARITHMS, BY_EXPONENTIAL = (
    -1,
    0,
)  # methods of computing the power; a positive method is the exponent itself
TINY_SHAPE = 0.03  # below it, all gamma variables of a vector may underflow, so draw their logarithms
# Largest exponent computed as a product; above it, GS nearly always accepts and is faster for many outcomes.
MOST_FACTORS = 8


def power_method(alpha):
    """Return the method of computing the power for concentration ``alpha``; see :func:`posterior_row`."""
    if alpha < TINY_SHAPE:
        return np.int64(BY_LOGARITHMS)
    power = np.int64(1.0 / alpha + 0.5)
    return power if abs(power * alpha - 1.0) < 1e-15 else np.int64(BY_EXPONENTIAL)


compiled_power_method = primitive(power_method)


@inner
def dirichlet(prob, begin, end, smallest, rng):
    """Replace the concentrations in ``prob[begin:end]``, all at least ``smallest``, with a Dirichlet draw."""
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
    """Draw a Dirichlet row with seen and unseen outcomes into ``prob[begin:end]``.

    Entries before ``new`` contain the concentrations of seen outcomes, all at least one. Unseen outcomes have
    concentration ``alpha``, and ``method`` is the value of :func:`power_method`.
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
    """Draw the same kind of row for many unseen outcomes with concentration 1/power, for power above MOST_FACTORS."""
    total = _draw_seen(prob, begin, new, rng) + _draw_small(prob, new, end, power, rng)
    _divide(prob, begin, end, total)


@primitive
def _divide(prob, begin, end, total):
    scale = 1.0 / total
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] *= scale


@primitive
def _draw_seen(prob, begin, end, rng):
    """Draw a gamma variable for each concentration (all at least one) and return their sum."""
    total = 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        x = gamma_above_one(rng, prob[i])
        prob[i] = x
        total += x
    return total


@primitive
def _draw_equal(prob, begin, end, alpha, method, rng):
    """Draw Gamma(alpha, 1) variates and return their sum; alpha < 1 needs the power of a uniform variate."""
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
    """Draw Gamma(1/power, 1) variables by GS: all proposals in one pass, then a few corrections; return their sum.

    Each proposal x <= 1 is accepted with probability e^-x. If the x are laid end to end as intervals, the rejected ones
    are those that contain a point of a Poisson process; one exponential variable locates the first of them.
    """
    span = 1.0 + 1.0 / (math.e * power)
    for i in range(np.uint64(begin), np.uint64(end)):
        prob[i] = span * (1.0 - uniform(rng))
    for i in range(np.uint64(begin), np.uint64(end)):  # a separate loop, which can be vectorised
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
            stands = u * x < 1.0 or u < x ** (1.0 / power - 1.0)  # x^(a-1) > 1/x avoids computing most powers
        if stands:
            prob[i] = x
            total += x
            i += np.uint64(1)
        else:
            prob[i] = _power(span * (1.0 - uniform(rng)), power)
    return total


@primitive
def _power(p, n):
    """Return p^n for n < 64 (at most 1/TINY_SHAPE, see :func:`power_method`) by squaring, without loops or branches."""
    result = p if n & 1 else 1.0
    for bit in (2, 4, 8, 16, 32):
        p *= p
        result *= p if n & bit else 1.0
    return result


@inner
def _draw_logarithms(prob, begin, end, rng):
    """Draw a gamma variable for each concentration, divide all by the largest, and return their sum."""
    highest, total = -np.inf, 0.0
    for i in range(begin, end):
        prob[i] = log_gamma(rng, prob[i])
        highest = max(highest, prob[i])
    for i in range(begin, end):
        prob[i] = math.exp(prob[i] - highest)
        total += prob[i]
    return total
