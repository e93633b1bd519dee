"""Statistics of samples on the stack of a depth-first search: one row a level, which DSS and sparse sampling share."""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import primitive

# columns: of the sample at hand its reward so far and γ^k; sums of returns and of their squares; best Q
SAMPLE_RETURN, WEIGHT, Q_SUM, Q_SQUARES, BEST_Q = range(5)


@primitive
def add_sample(sums, h, q):
    """Take a return ``q`` into the sums of level ``h``."""
    sums[h, Q_SUM] += q
    sums[h, Q_SQUARES] += q * q


@primitive
def clear_samples(sums, h):
    """Begin the samples of another choice at level ``h``."""
    sums[h, Q_SUM] = 0.0
    sums[h, Q_SQUARES] = 0.0


@primitive
def sample_spread(sums, h, n):
    """Return the standard deviation of the ``n`` returns of a choice; NaN for a single one."""
    if n < 2:
        return np.nan
    mean = sums[h, Q_SUM] / n
    return np.sqrt(max(0.0, sums[h, Q_SQUARES] / n - mean * mean) * n / (n - 1))
