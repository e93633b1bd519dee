"""Drawing Dirichlet vectors in place."""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import exponential, gamma_with_constants, log_gamma

TINY_SHAPE = 0.03  # below it all gamma variables of a vector may underflow, so draw their logarithms


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
        for i in range(begin, end):
            shape = prob[i]
            above_one = shape if shape >= 1.0 else shape + 1.0
            if above_one != last:  # runs of equal shapes share the constants, a root and a division
                last = above_one
                d = above_one - 1.0 / 3.0
                c = 1.0 / math.sqrt(9.0 * d)
            prob[i] = gamma_with_constants(rng, d, c)
            if shape < 1.0:
                prob[i] *= math.exp(-exponential(rng) / shape)
    total = 0.0
    for i in range(begin, end):
        total += prob[i]
    scale = 1.0 / total
    for i in range(begin, end):
        prob[i] *= scale
