"""Optimal policies of known models: value iteration and policy iteration, exact or partial.

All solve V(s) = max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], V = 0 in terminal states. One optimality sweep T takes
O(entries + S·A), background mass included, since it only needs the mean of V.

**Value iteration** repeats V ← T V. With δ = T V − V (see :mod:`bamdp.mdp.solution`) it stops

- without terminal states, when γ/(1−γ) · (max δ − min δ)/2 ≤ tol, and moves V to the middle of its bounds
  (MacQueen 1966; Porteus 1971): the constant that plain value iteration is slow to find costs nothing;
- with them (no constant fits all states), when γ/(1−γ) · max|δ| ≤ tol.

**Policy iteration** evaluates the policy and improves it until no action is better (Howard 1960). With
``sweeps`` it does that many sweeps with the policy instead of solving the linear system (modified policy
iteration, Puterman & Shin 1978), and stops by the same rule as value iteration. Large models begin exact
policy iteration with a few hundred sweeps of value iteration.

In either case the result's bounds come from one more sweep over the values that are returned. Where ``tol``
is below what double precision can show (about 1e-14 · max|V|/(1−γ)), solvers stop when rounding dominates
and ``error_bound`` says what was reached. If ``max_sweeps`` or ``max_iterations`` runs out first, they raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import average, improve, row_value
from bamdp.mdp.linear import DIRECT, chain_values
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import (
    Solution,
    certify,
    chain_of,
    check_model,
    check_tolerance,
    greedy,
    q_table,
    rounding,
    scale_of,
    start_values,
)

WARM_UP = 256


def value_iteration(
    mdp: FiniteMDP, discount: float, *, tol: float = 1e-8, max_sweeps: int = 1_000_000, initial: Any = None
) -> Solution:
    """Value iteration until the values are proven within ``tol`` of optimal.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    tol
        Bound on ‖values − V*‖ to reach.
    max_sweeps
        RuntimeError if it takes more.
    initial
        Values ``[S]`` to start from; 0 by default.

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
    width = _target(discount, check_tolerance(tol))
    _checks.integer(max_sweeps, "max_sweeps")
    values = start_values(mdp, initial)
    scratch = np.empty_like(values)
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    sweeps, low, high = 0, 0.0, np.inf
    centre = not mdp.terminal.any()
    while _width(low, high, centre) > max(width, _floor(mdp, values)):
        if sweeps >= max_sweeps:
            raise _unfinished("value iteration", f"{sweeps} sweeps", _width(low, high, centre), discount)
        more = min(64, max_sweeps - sweeps)
        done, low, high = iterate(mdp.rows, mdp.space, discount, width, centre, more, values, scratch, policy)
        sweeps += done
    return _finish(mdp, discount, values, sweeps, low, high, centre)


@kernel
def iterate(
    rows: Rows,
    space: Space,
    discount: float,
    width: float,
    centre: bool,
    max_sweeps: int,
    values: np.ndarray,
    scratch: np.ndarray,
    policy: np.ndarray,
) -> tuple[int, float, float]:
    """Up to ``max_sweeps`` optimality sweeps of ``values`` in place; stops early below ``width``.

    Returns the sweeps done and the last (min δ, max δ).
    """
    low, high = 0.0, 0.0
    for sweep in range(max_sweeps):
        low, high = improve(rows, space, discount, values, scratch, policy)
        for s in range(values.shape[0]):
            values[s] = scratch[s]
        if (0.5 * (high - low) if centre else max(high, -low)) <= width:
            return sweep + 1, low, high
    return max_sweeps, low, high


def policy_iteration(
    mdp: FiniteMDP,
    discount: float,
    *,
    sweeps: int | None = None,
    tol: float = 1e-8,
    max_iterations: int = 10_000,
    initial: Any = None,
) -> Solution:
    """Policy iteration, exact or partial.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    sweeps
        None: each policy is evaluated exactly, and the result is optimal up to rounding (``tol`` is unused).
        A number: evaluation by that many sweeps, until the values are proven within ``tol``.
    tol
        Bound on ‖values − V*‖ to reach with ``sweeps``.
    max_iterations
        RuntimeError if it takes more improvements.
    initial
        Values ``[S]`` whose greedy policy is the first; 0 by default.

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
    values = start_values(mdp, initial)
    if sweeps is None:
        return _howard(mdp, discount, max_iterations, values)
    _checks.integer(sweeps, "sweeps")
    return _modified(mdp, discount, sweeps, _target(discount, check_tolerance(tol)), max_iterations, values)


def _howard(mdp: FiniteMDP, discount: float, max_iterations: int, values: np.ndarray) -> Solution:
    """Exact evaluation, then a new action only where it is better beyond what rounding explains."""
    everyone = np.arange(mdp.n_states)
    if mdp.n_states > DIRECT:  # a sweep is far cheaper than an evaluation, so begin with a decent policy
        scratch, policy = np.empty_like(values), np.zeros(mdp.n_states, dtype=np.int64)
        iterate(mdp.rows, mdp.space, discount, 0.0, True, WARM_UP, values, scratch, policy)
    policy = greedy(q_table(mdp, discount, values), scale_of(mdp, values))
    best_mean = -np.inf
    for iteration in range(1, max_iterations + 1):
        values, _ = chain_values(chain_of(mdp, policy), discount, values)
        q = q_table(mdp, discount, values)
        best = np.argmax(q, axis=1)
        better = q[everyone, best] > q[everyone, policy] + 4.0 * rounding(mdp, values)
        # improvements raise the mean; when it no longer rises, what is left is rounding
        if not better.any() or values.mean() <= best_mean:
            return certify(mdp, discount, values, iteration)
        best_mean = values.mean()
        policy = np.where(better, best, policy)
    raise RuntimeError(f"policy iteration did not end in {max_iterations} improvements; raise max_iterations")


def _modified(
    mdp: FiniteMDP, discount: float, sweeps: int, width: float, max_iterations: int, values: np.ndarray
) -> Solution:
    """Improve, then ``sweeps`` sweeps with the policy found."""
    scratch = np.empty_like(values)
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    centre = not mdp.terminal.any()
    low, high = 0.0, np.inf
    for iteration in range(1, max_iterations + 1):
        _, low, high = iterate(mdp.rows, mdp.space, discount, width, centre, 1, values, scratch, policy)
        if _width(low, high, centre) <= max(width, _floor(mdp, values)):
            return _finish(mdp, discount, values, iteration, low, high, centre)
        follow(mdp.rows, mdp.space, discount, policy, sweeps, values, scratch)
    raise _unfinished(
        "policy iteration", f"{max_iterations} improvements", _width(low, high, centre), discount
    )


@kernel
def follow(
    rows: Rows,
    space: Space,
    discount: float,
    policy: np.ndarray,
    sweeps: int,
    values: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """``sweeps`` Jacobi sweeps with ``policy``, in place.

    Jacobi, since it moves all values alike by a constant, which the width of δ does not see.
    """
    n_states, n_actions = space.allowed.shape
    for _ in range(sweeps):
        mean = average(values)
        for s in range(n_states):
            if not space.terminal[s]:
                row = s * n_actions + policy[s]
                scratch[s] = rows.reward[row] + discount * row_value(rows, row, values, mean)
        for s in range(n_states):
            if not space.terminal[s]:
                values[s] = scratch[s]


def _finish(
    mdp: FiniteMDP,
    discount: float,
    values: np.ndarray,
    iterations: int,
    low: float,
    high: float,
    centre: bool,
) -> Solution:
    if centre:
        values += discount / (1.0 - discount) * 0.5 * (low + high)
    return certify(mdp, discount, values, iterations)


def _target(discount: float, tol: float) -> float:
    """The width of δ that proves ``tol`` after one more sweep, with a little in hand for rounding."""
    return 0.99 * tol * (1.0 - discount) / discount if discount > 0.0 else np.inf


def _width(low: float, high: float, centre: bool) -> float:
    return 0.5 * (high - low) if centre else max(high, -low)


def _floor(mdp: FiniteMDP, values: np.ndarray) -> float:
    """The width of δ that rounding alone can make."""
    return 2.0 * rounding(mdp, values)


def _unfinished(what: str, after: str, width: float, discount: float) -> RuntimeError:
    bound = discount / (1.0 - discount) * width
    return RuntimeError(
        f"{what} proved only an error of {bound:.3g} after {after}; "
        "allow more, raise tol, or use policy_iteration(mdp, discount)"
    )
