"""Drawing Dirichlet vectors in place."""

from __future__ import annotations

import math

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import exponential, gamma_above_one, log_gamma

TINY_SHAPE = 0.02  # below it a gamma variable may underflow, so draw its logarithm


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
        for i in range(begin, end):
            shape = prob[i]
            if shape >= 1.0:
                prob[i] = gamma_above_one(rng, shape)
            else:
                prob[i] = gamma_above_one(rng, shape + 1.0) * math.exp(-exponential(rng) / shape)
    total = 0.0
    for i in range(begin, end):
        total += prob[i]
    scale = 1.0 / total
    for i in range(begin, end):
        prob[i] *= scale
