"""Kernels to be called in several ways. (Numba needs a file.)"""

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel


class Pair(NamedTuple):
    values: np.ndarray
    extra: int


@kernel
def scaled(values, factor):
    return (values[0] + values[1]) * factor


@kernel
def added(pair):
    total = pair.values[0]
    for i in range(1, pair.values.shape[0]):
        total += pair.values[i]
    return total + pair.extra
