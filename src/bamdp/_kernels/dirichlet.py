"""Drawing Dirichlet vectors in place."""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import exponential, gamma_with_constants, log_gamma, uniform

TINY_SHAPE = 0.03  # below it all gamma variables of a vector may underflow, so draw their logarithms
MOST_FACTORS = 8


@primitive
def _whole_power(shape):
    """1/shape if that is a small whole number, else 0: U^(1/shape) is then a product, as for α = 0.2."""
    power = int(1.0 / shape + 0.5)
    return power if power <= MOST_FACTORS and abs(power * shape - 1.0) < 1e-15 else 0


@kernel
def dirichlet(prob, begin, end, rng):
    """Replace the concentrations in ``prob[begin:end]`` by a Dirichlet draw with those concentrations."""
    if end - begin == 1:
        prob[begin] = 1.0
        return
    smallest = np.inf
    for i in range(begin, end):
        smallest = min(smallest, prob[i])
    if smallest < TINY_SHAPE:
        highest = -np.inf
        for i in range(begin, end):
            prob[i] = log_gamma(rng, prob[i])
            highest = max(highest, prob[i])
        for i in range(begin, end):
            prob[i] = math.exp(prob[i] - highest)
    else:
        last, d, c = -1.0, 0.0, 0.0
        small, power = -1.0, 0
        for i in range(begin, end):
            shape = prob[i]
            above_one = shape if shape >= 1.0 else shape + 1.0
            if above_one != last:  # runs of equal shapes share the constants, a root and a division
                last = above_one
                d = above_one - 1.0 / 3.0
                c = 1.0 / math.sqrt(9.0 * d)
            prob[i] = gamma_with_constants(rng, d, c)
            if shape < 1.0:
                if shape != small:
                    small = shape
                    power = _whole_power(shape)
                if power > 0:
                    u = 1.0 - uniform(rng)
                    for _ in range(power):
                        prob[i] *= u
                else:
                    prob[i] *= math.exp(-exponential(rng) / shape)
    total = 0.0
    for i in range(begin, end):
        total += prob[i]
    scale = 1.0 / total
    for i in range(begin, end):
        prob[i] *= scale
