"""What DSS expects after its last stage: nothing, or something learned from models of the belief that it ends in."""

from __future__ import annotations

from typing import NamedTuple

from bamdp._kernels.jit import inner
from bamdp._kernels.random import put_words, random_words
from bamdp._kernels.solve import evaluate_solver_policy, solve
from bamdp.beliefs.kernels import FULL, mean_model, sample_model
from bamdp.beliefs.verbs import DONE

DSS_LEAVES = ("zero", "mean", "upper", "policy")
MEAN_LEAF, UPPER_LEAF = DSS_LEAVES.index("mean"), DSS_LEAVES.index("upper")


class ModelLeaf(NamedTuple):
    """A leaf is valued by solving models, from the values of earlier leaves."""

    kind: int  # an index of DSS_LEAVES
    n_models: int
    tol: float


@inner
def leaf_value(leaf, belief, rows, solver, discount, s, rng):
    """Return (DONE, value) of the hyper-state (s, belief) after the last stage, or FULL with ``rng`` put back.

    ``leaf`` None stands for 0.
    """
    if leaf is None:
        return DONE, 0.0
    else:
        before, total = random_words(rng), 0.0
        if leaf.kind != UPPER_LEAF:
            if mean_model(belief, rows) == FULL:
                return FULL, 0.0
            solve(rows, belief.space, discount, leaf.tol, solver, False)
            if leaf.kind == MEAN_LEAF:  # optimal value of the mean model
                return DONE, solver.values[s]
        for _ in range(leaf.n_models):
            if sample_model(belief, rows, rng) == FULL:
                put_words(rng, before)
                return FULL, 0.0
            if leaf.kind == UPPER_LEAF:  # mean optimal value of a few sampled models
                solve(rows, belief.space, discount, leaf.tol, solver, True)
            else:  # value of the mean model's policy on them
                evaluate_solver_policy(rows, belief.space, discount, leaf.tol, solver)
            total += solver.values[s]
        return DONE, total / leaf.n_models
