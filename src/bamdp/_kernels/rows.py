"""Common layout of known and sampled models: sparse rows plus a uniform background.

Row ``s * A + a`` is the distribution of the next state after action ``a`` in state ``s``: the entries
``index[begin:end], prob[begin:end]`` plus the mass ``background`` spread evenly over all S states. Means of
Dirichlet priors need the background; sampled models rarely do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import uniform

ANYWHERE = -1  # a next state drawn from the background: uniform over all states


class Rows(NamedTuple):
    """A model as arrays. Sampled models may be filled row by row; ``span[row, 0] < 0`` means "not drawn yet"."""

    span: np.ndarray  # int64 [S*A, 2]: begin and end of each row's entries
    index: np.ndarray  # type: ignore[assignment]  # int32 [capacity]: next states
    prob: np.ndarray  # float64 [capacity]
    background: np.ndarray  # float64 [S*A]: mass spread evenly over all states
    reward: np.ndarray  # float64 [S*A]: expected reward E[r | s, a]


class Space(NamedTuple):
    """Known terminal states and allowed actions of an environment."""

    terminal: np.ndarray  # bool [S]: no action is taken here, the value is 0
    allowed: np.ndarray  # bool [S, A]: actions that exist in a state


@primitive
def is_listed(index, begin, end, s2):
    """Return whether state ``s2`` is among ``index[begin:end]``."""
    listed = False
    for i in range(begin, end):
        listed = listed or index[i] == s2
    return listed


@inner
def draw_next(rows, row, rng):
    """Draw a next state from a row's distribution; return ANYWHERE if it comes from the background."""
    u = uniform(rng)
    begin, end = rows.span[row, 0], rows.span[row, 1]
    for i in range(np.uint64(begin), np.uint64(end)):
        u -= rows.prob[i]
        if u < 0.0:
            return np.int64(rows.index[i])
    if rows.background[row] > 0.0:
        return np.int64(ANYWHERE)
    while end > begin + 1 and rows.prob[end - 1] == 0.0:  # rounding made the sum less than 1
        end -= 1
    return np.int64(rows.index[end - 1])
