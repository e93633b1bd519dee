"""Solvers of known models: value iteration, policy iteration (exact or partial), and the value of a given policy.

**Optimal policies** solve V(s) = max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], V = 0 in terminal states. One optimality
sweep T takes O(entries + S·A), background mass included, since it only needs the mean of V.

**Value iteration** repeats V ← T V. With δ = T V − V (see :mod:`bamdp.mdp.solution`) it stops

- without terminal states, when γ/(1−γ) · (max δ − min δ)/2 ≤ tol, and moves V to the middle of its bounds
  (MacQueen 1966; Porteus 1971): the constant that plain value iteration is slow to find costs nothing;
- with them (no constant fits all states), when γ/(1−γ) · max|δ| ≤ tol.

**Policy iteration** evaluates the policy and improves it until no action is better (Howard 1960). With
``sweeps`` it does that many sweeps with the policy instead of solving the linear system (modified policy
iteration, Puterman & Shin 1978), and stops by the same rule as value iteration. In large models exact
policy iteration, and each of its improvements, begins with up to ``WARM_UP_SWEEPS`` sweeps of value iteration.

In each case the bounds of the result come from one more sweep over the values that are returned. Where ``tol``
is below what double precision can show (about 1e-14 · max|V|/(1−γ)), solvers stop when rounding dominates
and ``error_bound`` says what was reached. If ``max_sweeps`` or ``max_iterations`` does not suffice, they raise.

**A given policy** π has values V(s) = Σ_a π(a|s) [r(s,a) + γ Σ p(s'|s,a) V(s')], a linear system
(:func:`bamdp.mdp.solution.chain_values`). Totals over T steps come from T backward sweeps with γ = 1, in
O(T · entries).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import improve, policy_sweep
from bamdp.mdp.model import FiniteMDP, check_start
from bamdp.mdp.solution import (
    DIRECT_STATES,
    Solution,
    bellman_residual,
    certify,
    chain_of,
    chain_values,
    check_model,
    check_policy,
    check_tolerance,
    discounted_sum,
    greedy_actions,
    initial_values,
    q_table,
    rounding_error,
    row_sum_error,
    value_scale,
)

WARM_UP_SWEEPS = 512
_ROUNDS_PER_CHECK = 64


def value_iteration(
    mdp: FiniteMDP, discount: float, *, tol: float = 1e-8, max_sweeps: int = 1_000_000, initial: Any = None
) -> Solution:
    """Find the optimal values by value iteration, until they are proven within ``tol``.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    tol
        The bound on ‖values − V*‖ to reach.
    max_sweeps
        The largest number of sweeps; more are a RuntimeError.
    initial
        Values ``[S]`` to start from; 0 by default.

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
    discount = _checks.discount(discount)
    check_tolerance(tol)
    _checks.integer(max_sweeps, "max_sweeps")
    return _modified(mdp, discount, 0, tol, max_sweeps, initial_values(mdp, initial))


def policy_iteration(
    mdp: FiniteMDP,
    discount: float,
    *,
    sweeps: int | None = None,
    tol: float = 1e-8,
    max_iterations: int = 1_000_000,
    initial: Any = None,
) -> Solution:
    """Find an optimal policy by policy iteration, exact or partial.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    sweeps
        None to evaluate each policy exactly, so that the result is optimal up to rounding (``tol`` is unused).
        A number to evaluate by that many sweeps, until the values are proven within ``tol``.
    tol
        The bound on ‖values − V*‖ to reach with ``sweeps``.
    max_iterations
        The largest number of improvements; more are a RuntimeError.
    initial
        Values ``[S]`` whose greedy policy is the first; 0 by default.

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
    >>> policy_iteration(mdp, 0.9, sweeps=5).values.round(4)
    array([ 8.7805, 10.    ])
    """
    check_model(mdp)
    discount = _checks.discount(discount)
    _checks.integer(max_iterations, "max_iterations")
    values = initial_values(mdp, initial)
    if sweeps is None:
        return _howard(mdp, discount, max_iterations, values)
    _checks.integer(sweeps, "sweeps")
    check_tolerance(tol)
    return _modified(mdp, discount, sweeps, tol, max_iterations, values)


def _howard(mdp: FiniteMDP, discount: float, max_iterations: int, values: np.ndarray) -> Solution:
    """Do exact policy iteration; an action changes only where it is better by more than rounding explains."""
    everyone = np.arange(mdp.n_states)
    policy = _swept_policy(mdp, discount, values)
    best_mean = -np.inf
    for iteration in range(1, max_iterations + 1):
        values, _ = chain_values(chain_of(mdp, policy), discount, values)
        q = q_table(mdp, discount, values)
        best = np.argmax(q, axis=1)
        better = q[everyone, best] > q[everyone, policy] + 4.0 * rounding_error(mdp, values)
        # Improvements raise the mean; when it no longer rises, only rounding is left.
        if not better.any() or values.mean() <= best_mean:
            return certify(mdp, discount, values, iteration)
        best_mean = values.mean()
        large = mdp.n_states > DIRECT_STATES
        policy = _swept_policy(mdp, discount, values) if large else np.where(better, best, policy)
    raise RuntimeError(f"policy iteration did not end in {max_iterations} improvements; raise max_iterations")


def _swept_policy(mdp: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """Return the greedy policy of ``values``, int64 ``[S]``; in a large model after further sweeps, in place.

    There a sweep is far cheaper than an evaluation, and a better policy saves many evaluations.
    """
    if mdp.n_states > DIRECT_STATES:
        scratch, policy = np.empty_like(values), np.zeros(mdp.n_states, dtype=np.int64)
        enough = 2.0 * rounding_error(mdp, values)
        improvement_rounds(
            mdp.rows, mdp.space, discount, enough, True, 0, WARM_UP_SWEEPS, values, scratch, policy
        )
    return greedy_actions(q_table(mdp, discount, values), value_scale(mdp, values), 0.0)


def _modified(
    mdp: FiniteMDP, discount: float, sweeps: int, tol: float, max_rounds: int, values: np.ndarray
) -> Solution:
    """Do modified policy iteration with ``sweeps`` sweeps per policy; without any it is value iteration."""
    scratch = np.empty_like(values)
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    centre = not mdp.terminal.any()
    # The width of δ at which the error is proven to be at most tol, a little less for rounding.
    width = min(0.99 * tol * (1.0 - discount) / max(discount, 1e-300), 1e300)
    done, reached = 0, np.inf
    low, high = 0.0, 0.0
    while reached > max(width, 2.0 * rounding_error(mdp, values)):
        if done >= max_rounds:
            raise RuntimeError(
                f"only an error of {discount / (1.0 - discount) * reached:.3g} is proven after {done} "
                "iterations; allow more, raise tol, or use policy_iteration(mdp, discount)"
            )
        chunk = min(_ROUNDS_PER_CHECK, max_rounds - done)
        rounds, low, high, reached = improvement_rounds(
            mdp.rows, mdp.space, discount, width, centre, sweeps, chunk, values, scratch, policy
        )
        done += rounds
    if centre:
        values += discount / (1.0 - discount) * 0.5 * (low + high)
    return certify(mdp, discount, values, done)


@kernel
def improvement_rounds(
    rows: Rows,
    space: Space,
    discount: float,
    width: float,
    centre: bool,
    sweeps: int,
    max_rounds: int,
    values: np.ndarray,
    scratch: np.ndarray,
    policy: np.ndarray,
) -> tuple[int, float, float, float]:
    """Do rounds of V ← T V in place, each but the last followed by ``sweeps`` sweeps with its greedy policy.

    They end after ``max_rounds``, or when the width of δ is at most ``width``: half its spread with ``centre``, else
    its largest absolute value. Returns the number of rounds, the last (min δ, max δ), and the last width.
    """
    low, high, reached = 0.0, 0.0, np.inf
    for i in range(max_rounds):
        # One optimality sweep, whose greedy policy is left in ``policy``.
        low, high = improve(rows, space, discount, values, scratch, policy)
        for s in range(values.shape[0]):
            values[s] = scratch[s]
        reached = 0.5 * (high - low) if centre else max(high, -low)
        if reached <= width:
            return i + 1, low, high, reached
        if i + 1 < max_rounds:
            # Jacobi sweeps move all values alike by a constant, which does not change the spread of δ.
            for _ in range(sweeps):
                policy_sweep(rows, space, discount, policy, values, scratch)
                for s in range(values.shape[0]):
                    values[s] = scratch[s]
    return max_rounds, low, high, reached


# --- the value of a given policy ------------------------------------------------------------------------------


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
    scratch, never = np.empty_like(values), -1.0  # all sweeps are done, whatever they change
    improvement_rounds(mdp.rows, mdp.space, 1.0, never, False, 0, horizon, values, scratch, actions)
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
