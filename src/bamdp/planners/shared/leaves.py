"""What DSS expects after its last stage: nothing, or something learned from models of the belief that it ends in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, primitive
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import average, row_value
from bamdp.beliefs.kernels import mean_model, sample_model
from bamdp.beliefs.verbs import DONE, NO_ROOM

DSS_LEAVES = ("zero", "mean", "upper", "policy")
MEAN_LEAF, UPPER_LEAF = DSS_LEAVES.index("mean"), DSS_LEAVES.index("upper")


class ZeroLeaf(NamedTuple):
    """Nothing is expected after the last stage."""

    unused: int = 0


class ModelLeaf(NamedTuple):
    """A leaf is valued by solving models, from the values of earlier leaves."""

    kind: int
    n_models: int
    tol: float


@generic
def leaf_value(leaf, belief, workspace, discount, s, rng):
    """Return (DONE or NO_ROOM, value) of the hyper-state (s, belief) after the last stage."""


@leaf_value.register(ZeroLeaf)
def _zero_leaf(leaf, belief, workspace, discount, s, rng):
    return DONE, 0.0


@leaf_value.register(ModelLeaf)
def _model_leaf(leaf, belief, workspace, discount, s, rng):
    rows, solver, space = workspace.rows, workspace.leaf_solver, belief.space
    if leaf.kind == UPPER_LEAF:  # mean optimal value of a few sampled models
        total = 0.0
        for _ in range(leaf.n_models):
            if sample_model(belief, rows, rng) == NO_ROOM:
                return NO_ROOM, 0.0
            solve(rows, space, discount, leaf.tol, solver, True)
            total += solver.values[s]
        return DONE, total / leaf.n_models
    if mean_model(belief, rows) == NO_ROOM:
        return NO_ROOM, 0.0
    solve(rows, space, discount, leaf.tol, solver, False)
    if leaf.kind == MEAN_LEAF:  # optimal value of the mean model
        return DONE, solver.values[s]
    total = 0.0  # value of the mean model's policy on a few sampled models
    for _ in range(leaf.n_models):
        if sample_model(belief, rows, rng) == NO_ROOM:
            return NO_ROOM, 0.0
        total += _policy_value(rows, space, discount, leaf.tol, solver, s)
    return DONE, total / leaf.n_models


@primitive
def value_leaf(leaf, belief, workspace, discount, s, rng):
    """Call :func:`leaf_value` from outside of kernels."""
    return leaf_value(leaf, belief, workspace, discount, s, rng)


@primitive
def _policy_value(rows, space, discount, tol, solver, s):
    """Return the value at ``s`` of the policy that stands in ``solver``, in the model ``rows``.

    Jacobi sweeps from the mean model's values until the changes differ by at most ``tol``; the result is
    the middle of the bounds. The solver's values are left as they were.
    """
    n_states, n_actions = space.allowed.shape
    old, new = solver.scratch, solver.change
    for t in range(n_states):
        old[t] = solver.values[t]
    while True:
        mean = average(old)
        low, high = np.inf, -np.inf
        for t in range(n_states):
            row = t * n_actions + solver.policy[t]
            new[t] = (
                0.0 if space.terminal[t] else rows.reward[row] + discount * row_value(rows, row, old, mean)
            )
            low = min(low, new[t] - old[t])
            high = max(high, new[t] - old[t])
        if high - low <= tol:
            return new[s] + 0.5 * (high + low) * discount / (1.0 - discount)
        for t in range(n_states):
            old[t] = new[t]
