"""Leaf values of DSS: zero, or values of models under the belief at the leaf."""

from __future__ import annotations

from bamdp._kernels.jit import inner
from bamdp._kernels.solve import evaluate_solver_policy, solve
from bamdp.beliefs.kernels import mean_model, sample_model

DSS_LEAVES = ("zero", "mean", "upper", "policy")
LEAF_HELP = "value at the end: 0, that of the mean model, of two sampled models, of its policy in them"
MEAN_LEAF, UPPER_LEAF = DSS_LEAVES.index("mean"), DSS_LEAVES.index("upper")
LEAF_MODELS, LEAF_TOL = 2, 1e-3  # number of models sampled per leaf, accuracy of their solutions


@inner
def leaf_value(leaf, belief, rows, solver, discount, s, rng):
    """Return the value of the hyper-state (s, belief) after the last stage: 0 if ``leaf`` is None."""
    if leaf is None:
        return 0.0
    else:
        if leaf != UPPER_LEAF:
            mean_model(belief, rows)
            solve(rows, belief.space, discount, LEAF_TOL, solver, False)
            if leaf == MEAN_LEAF:  # optimal value of the mean model
                return solver.values[s]
        total = 0.0
        for _ in range(LEAF_MODELS):
            sample_model(belief, rows, rng)
            if leaf == UPPER_LEAF:  # mean optimal value of a few sampled models
                solve(rows, belief.space, discount, LEAF_TOL, solver, True)
            else:  # mean value of the mean model's policy in these models
                evaluate_solver_policy(rows, belief.space, discount, LEAF_TOL, solver)
            total += solver.values[s]
        return total / LEAF_MODELS
