"""What DSS expects after its last stage: nothing, or something learned from models of the belief that it ends in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, kernel, primitive
from bamdp._kernels.solve import Solver, solve
from bamdp._kernels.sweeps import average, row_value
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.models import mean_model, sample_model

LEAVES = ("zero", "mean", "upper", "policy")
MEAN, UPPER = LEAVES.index("mean"), LEAVES.index("upper")
FITS, NO_ROOM = 0, verbs.NO_ROOM
LEAF_ROUNDS = 10_000


@known
class ZeroLeaf(NamedTuple):
    """Nothing is expected after the last stage."""

    unused: int = 0


@known
class ModelLeaf(NamedTuple):
    """A leaf is valued by solving models, with values of its own to start from (those of earlier leaves)."""

    kind: int
    n_models: int
    tol: float
    solver: Solver


@generic
def leaf_value(L, T, R, space, discount, rows, s, rng):
    """(status, value) of the hyper-state (s, belief) after the last stage."""


@leaf_value.register(ZeroLeaf)
def _zero_leaf(L, T, R, space, discount, rows, s, rng):
    return FITS, 0.0


@leaf_value.register(ModelLeaf)
def _model_leaf(leaf, T, R, space, discount, rows, s, rng):
    if leaf.kind == UPPER:  # mean optimal value of a few sampled models
        total = 0.0
        for _ in range(leaf.n_models):
            if sample_model(T, R, space, rows, rng) == NO_ROOM:
                return NO_ROOM, 0.0
            solve(rows, space, discount, leaf.tol, LEAF_ROUNDS, leaf.solver, True)
            total += leaf.solver.values[s]
        return FITS, total / leaf.n_models
    if mean_model(T, R, space, rows) == NO_ROOM:
        return NO_ROOM, 0.0
    solve(rows, space, discount, leaf.tol, LEAF_ROUNDS, leaf.solver, False)
    if leaf.kind == MEAN:  # optimal value of the mean model
        return FITS, leaf.solver.values[s]
    total = 0.0  # value of the mean model's policy on a few sampled models
    for _ in range(leaf.n_models):
        if sample_model(T, R, space, rows, rng) == NO_ROOM:
            return NO_ROOM, 0.0
        total += _policy_value(rows, space, discount, leaf, s)
    return FITS, total / leaf.n_models


@kernel
def value_leaf(leaf, T, R, space, discount, rows, s, rng):
    """The same for callers outside kernels."""
    return leaf_value(leaf, T, R, space, discount, rows, s, rng)


@primitive
def _policy_value(rows, space, discount, leaf, s):
    """The value at ``s`` of the policy that stands in the leaf's solver, in the model ``rows``.

    Jacobi sweeps from the mean model's values until the changes differ by at most ``leaf.tol``; the result is
    the middle of the bounds. The solver's values are left as they were.
    """
    n_states, n_actions = space.allowed.shape
    old, new = leaf.solver.scratch, leaf.solver.change
    for t in range(n_states):
        old[t] = leaf.solver.values[t]
    while True:
        mean = average(old)
        low, high = np.inf, -np.inf
        for t in range(n_states):
            row = t * n_actions + leaf.solver.policy[t]
            new[t] = (
                0.0 if space.terminal[t] else rows.reward[row] + discount * row_value(rows, row, old, mean)
            )
            low = min(low, new[t] - old[t])
            high = max(high, new[t] - old[t])
        if high - low <= leaf.tol:
            return new[s] + 0.5 * (high + low) * discount / (1.0 - discount)
        for t in range(n_states):
            old[t] = new[t]
