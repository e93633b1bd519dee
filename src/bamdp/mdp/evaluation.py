"""The value of a given policy: discounted over infinitely many steps, or in total over a finite horizon.

The values of π solve V(s) = Σ_a π(a|s) [r(s,a) + γ Σ p(s'|s,a) V(s')], a linear system
(:func:`bamdp.mdp.solution.chain_values`). Totals over T steps come from T backward sweeps with γ = 1, in
O(T · entries).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import improve
from bamdp.mdp.model import FiniteMDP, check_start
from bamdp.mdp.solution import (
    Solution,
    bellman_residual,
    chain_of,
    chain_values,
    check_model,
    check_policy,
    check_tolerance,
    discounted_sum,
    q_table,
    rounding_error,
    row_sum_error,
)


def evaluate_policy(mdp: FiniteMDP, policy: Any, discount: float, *, tol: float | None = None) -> Solution:
    """Compute the discounted values of a policy.

    Parameters
    ----------
    mdp
        The model.
    policy
        Actions, int ``[S]``, or probabilities ``[S, A]``. Entries of terminal states are ignored.
    discount
        γ in [0, 1).
    tol
        None for values that are exact up to rounding. A number for sweeps until the values are proven within it,
        which suits huge models.

    Returns
    -------
    Solution
        ``error_bound`` is about V^π, ``loss_bound`` about V* − V^π.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, evaluate_policy
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 0]])
    >>> evaluate_policy(mdp, [1, 0], 0.9).values.round(4)
    array([ 8.7805, 10.    ])
    >>> evaluate_policy(mdp, [[0.5, 0.5], [0.5, 0.5]], 0.9).values.round(4)
    array([1.978 , 2.5275])
    """
    check_model(mdp)
    discount = _checks.discount(discount)
    policy = check_policy(mdp, policy)
    chain = chain_of(mdp, policy)
    tolerance = None if tol is None else check_tolerance(tol)
    values, error = chain_values(chain, discount, np.zeros(mdp.n_states), tolerance)
    residual = float(np.abs(bellman_residual(chain, discount, values)).max())
    # V* exceeds these values by at most max δ / (1−γ), and these exceed V^π by at most their error.
    delta = float((q_table(mdp, discount, values).max(axis=1) - values).max()) + rounding_error(mdp, values)
    loss = discounted_sum(delta, discount, row_sum_error(mdp)) + error
    return Solution(policy, values, 1, residual, error, loss, (mdp, discount))


def total_reward(mdp: FiniteMDP, start: Any, horizon: int, policy: Any = None) -> float:
    """Compute the expected undiscounted total reward of ``horizon`` steps.

    Parameters
    ----------
    mdp
        The model.
    start
        A state, or probabilities ``[S]``.
    horizon
        The number of steps.
    policy
        None for the optimum over all policies, time-dependent ones included; or a stationary policy, int
        ``[S]`` or probabilities ``[S, A]``; or ``"uniform"``, which takes every existing action equally often.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, total_reward
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 0]])
    >>> round(total_reward(mdp, start=0, horizon=3), 3)
    1.76
    >>> round(total_reward(mdp, start=0, horizon=3, policy="uniform"), 3)
    0.42
    """
    check_model(mdp)
    begin = check_start(start, mdp.n_states)
    horizon = _checks.integer(horizon, "horizon", low=0)
    if policy is not None:
        mdp = chain_of(mdp, named_policy(mdp, policy))
    values = np.zeros(mdp.n_states)
    actions = np.zeros(mdp.n_states, dtype=np.int64)
    backward_sweeps(mdp.rows, mdp.space, horizon, values, np.empty_like(values), actions)
    return float(values[begin] if isinstance(begin, int) else values @ begin)


def named_policy(mdp: FiniteMDP, policy: Any) -> np.ndarray:
    """Return a policy, checked, from an array or from its name, ``"uniform"``."""
    if isinstance(policy, str):
        _checks.one_of(policy, "policy", ["uniform"])
        return uniform_policy(mdp)
    return check_policy(mdp, policy)


def uniform_policy(mdp: FiniteMDP) -> np.ndarray:
    """Return the policy that takes every existing action with the same probability, ``[S, A]``."""
    return mdp.action_mask / np.maximum(mdp.action_mask.sum(axis=1, keepdims=True), 1)


@kernel
def backward_sweeps(
    rows: Rows, space: Space, horizon: int, values: np.ndarray, scratch: np.ndarray, policy: np.ndarray
) -> None:
    """Apply ``horizon`` undiscounted optimality sweeps to ``values`` in place; overwrite the other two arrays."""
    for _ in range(horizon):
        improve(rows, space, 1.0, values, scratch, policy)
        for s in range(values.shape[0]):
            values[s] = scratch[s]
