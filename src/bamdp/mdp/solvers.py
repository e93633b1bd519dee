"""Solvers for known models: optimal values and policies, policy evaluation, and totals over a horizon.

**Optimal policies** solve V(s) = max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], V = 0 in terminal states. Modified policy
iteration (Puterman & Shin 1978; :mod:`bamdp._kernels.solve`, which planners also use for sampled models) stops when the
spread of the changes in an optimality sweep proves the requested bound (MacQueen 1966; Porteus 1971).
:func:`value_iteration` returns its values. :func:`policy_iteration` continues with exact evaluations (Howard 1960) in
models of up to ``DIRECT_STATES`` states, and with sweeps until rounding errors dominate in larger ones.

**A given policy** π turns the model into a Markov reward process, a model with one action, whose values solve V = r + γ
P V with P = E + b 1ᵀ/S (entries plus background). The background is a rank-one term, so E stays sparse: with B = I − γE
solve B x = r and B y = b; then V = x + γ m y, where m = mean(V) = mean(x) / (1 − γ mean(y)) (Sherman & Morrison).
Larger models use the same modified policy iteration.

The bounds are computed by one more sweep over the returned values (:func:`bamdp.mdp.solution.certify`). If ``tol`` is
below the resolution of double precision (about 1e-14 · max|V|/(1−γ)), ``error_bound`` gives the accuracy that was
reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.solve import evaluate_solver_policy, new_solver, reward_scale, solve
from bamdp.mdp.model import FiniteMDP, check_start
from bamdp.mdp.solution import (
    Solution,
    certify,
    chain_of,
    check_model,
    check_policy,
    check_tolerance,
    entry_matrix,
    initial_values,
    relative_sweeps,
    rounding_error,
    value_scale,
)

DIRECT_STATES = 2000  # policies are evaluated by sparse LU up to this number of states


def value_iteration(mdp: FiniteMDP, discount: float, *, tol: float = 1e-8, initial: Any = None) -> Solution:
    """Compute optimal values with a proven error of at most ``tol``.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    tol
        The required bound on ‖values − V*‖.
    initial
        Initial values ``[S]``; 0 by default.

    Returns
    -------
    Solution
        Values, their greedy policy, and proven bounds.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, value_iteration
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 0]])
    >>> solution = value_iteration(mdp, 0.9)
    >>> solution.policy
    array([1, 0])
    >>> solution.values.round(4), solution.error_bound <= 1e-8
    (array([ 8.7805, 10.    ]), True)
    """
    check_model(mdp)
    values = initial_values(mdp, initial)
    return _solve_within(mdp, _checks.discount(discount), check_tolerance(tol), values)


def policy_iteration(mdp: FiniteMDP, discount: float, *, initial: Any = None) -> Solution:
    """Compute a policy and values that are optimal up to rounding.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    initial
        Values ``[S]`` whose greedy policy is the initial one; 0 by default.

    Returns
    -------
    Solution
        Values, their greedy policy, and proven bounds.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, policy_iteration
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 0]])
    >>> policy_iteration(mdp, 0.9).policy
    array([1, 0])
    """
    check_model(mdp)
    discount = _checks.discount(discount)
    values = initial_values(mdp, initial)
    if mdp.n_states > DIRECT_STATES:
        return _solve_within(mdp, discount, 0.0, values)
    solution = _solve_within(mdp, discount, 1e-4 * value_scale(mdp, values) / (1.0 - discount), values)
    best_mean = -np.inf
    while True:  # improvements raise the mean; once it stops rising, only rounding remains
        values = _direct_values(chain_of(mdp, solution.policy), discount)
        better = certify(mdp, discount, values, solution.iterations + 1)
        if values.mean() <= best_mean:
            return solution
        if np.array_equal(better.policy, solution.policy):
            return better
        solution, best_mean = better, values.mean()


def _solve_within(mdp: FiniteMDP, discount: float, tol: float, values: np.ndarray) -> Solution:
    """Run modified policy iteration until the error is provably at most ``tol`` or rounding dominates."""
    solver = new_solver(mdp.n_states, len(mdp.rows.index))
    solver.values[:] = values
    scale = float(reward_scale(mdp.rows, mdp.space)) or 1.0
    # the spread that proves the error bound, reduced slightly for rounding and terminal states
    spread, iterations = min(0.99 * tol * (1.0 - discount) / max(discount, 1e-300), 1e300), 0
    while True:
        floor = 2.0 * rounding_error(mdp, solver.values)
        rounds, _ = solve(mdp.rows, mdp.space, discount, max(spread, floor) / scale, solver, False)
        iterations += rounds
        solution = certify(mdp, discount, solver.values.copy(), iterations)
        if solution.error_bound <= tol:
            return solution
        if (
            spread <= floor
        ):  # the policy has converged; its values are computed from sums and may be less accurate
            evaluate_solver_policy(mdp.rows, mdp.space, discount, 2.0 * floor / scale, solver)
            return certify(mdp, discount, solver.values, iterations)
        spread *= 0.1


def _direct_values(chain: FiniteMDP, discount: float) -> np.ndarray:
    """Return the values of a one-action model using sparse LU with a correction for the background."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    factors = splu((eye_array(chain.n_states) - discount * entry_matrix(chain)).tocsc())
    values: np.ndarray = factors.solve(chain.rows.reward)
    if chain.rows.background.any():
        y = factors.solve(chain.rows.background)
        values += y * (discount * values.mean() / (1.0 - discount * y.mean()))
    return values


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
        None for values that are exact up to rounding; a number to sweep until the error is provably within it, which
        suits very large models.

    Returns
    -------
    Solution
        ``error_bound`` refers to V^π and ``loss_bound`` to V* − V^π.

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
    if tol is None and chain.n_states <= DIRECT_STATES:
        return certify(mdp, discount, _direct_values(chain, discount), 1, policy)
    within = 0.0 if tol is None else check_tolerance(tol)
    solution = _solve_within(chain, discount, within, np.zeros(mdp.n_states))
    return certify(mdp, discount, solution.values, solution.iterations, policy)


def total_reward(mdp: FiniteMDP, start: Any, horizon: int, policy: Any = None) -> float:
    """Compute the expected undiscounted total reward over ``horizon`` steps by backward induction.

    Parameters
    ----------
    mdp
        The model.
    start
        A state, or probabilities ``[S]``.
    horizon
        The number of steps.
    policy
        None for the optimum over all policies, including time-dependent ones; a stationary policy, int ``[S]`` or
        probabilities ``[S, A]``; or ``"uniform"`` for equal probabilities of all existing actions.

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
    relative_sweeps(mdp, values, horizon)
    return float(values[begin] if isinstance(begin, int) else values @ begin)


def named_policy(mdp: FiniteMDP, policy: Any) -> np.ndarray:
    """Validate and return a policy given as an array or as the name ``"uniform"``."""
    if isinstance(policy, str):
        _checks.one_of(policy, "policy", ["uniform"])
        return uniform_policy(mdp)
    return check_policy(mdp, policy)


def uniform_policy(mdp: FiniteMDP) -> np.ndarray:
    """Return the policy that takes every existing action with the same probability, ``[S, A]``."""
    return mdp.action_mask / np.maximum(mdp.action_mask.sum(axis=1, keepdims=True), 1)
