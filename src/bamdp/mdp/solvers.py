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
policy iteration, and each improvement, with up to ``WARM_UP`` sweeps of value iteration.

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

WARM_UP = 512
_CHUNK = 64


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
    check_tolerance(tol)
    _checks.integer(max_sweeps, "max_sweeps")
    return _modified(mdp, discount, 0, tol, max_sweeps, start_values(mdp, initial))


def policy_iteration(
    mdp: FiniteMDP,
    discount: float,
    *,
    sweeps: int | None = None,
    tol: float = 1e-8,
    max_iterations: int = 1_000_000,
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
    check_tolerance(tol)
    return _modified(mdp, discount, sweeps, tol, max_iterations, values)


def _howard(mdp: FiniteMDP, discount: float, max_iterations: int, values: np.ndarray) -> Solution:
    """Exact evaluation, then a new action only where it is better beyond what rounding explains."""
    everyone = np.arange(mdp.n_states)
    policy = _swept_policy(mdp, discount, values)
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
        large = mdp.n_states > DIRECT
        policy = _swept_policy(mdp, discount, values) if large else np.where(better, best, policy)
    raise RuntimeError(f"policy iteration did not end in {max_iterations} improvements; raise max_iterations")


def _swept_policy(mdp: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """The greedy policy of ``values``; in a large model of values swept further (in place) first.

    There a sweep is far cheaper than an evaluation, and a better policy saves many of those.
    """
    if mdp.n_states > DIRECT:
        scratch, policy = np.empty_like(values), np.zeros(mdp.n_states, dtype=np.int64)
        enough = 2.0 * rounding(mdp, values)
        iterate(mdp.rows, mdp.space, discount, enough, True, 0, WARM_UP, values, scratch, policy)
    return greedy(q_table(mdp, discount, values), scale_of(mdp, values), 0.0)


def _modified(
    mdp: FiniteMDP, discount: float, sweeps: int, tol: float, max_rounds: int, values: np.ndarray
) -> Solution:
    """Improve, then ``sweeps`` sweeps with the policy found; none is value iteration."""
    scratch = np.empty_like(values)
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    centre = not mdp.terminal.any()
    width = min(0.99 * tol * (1.0 - discount) / max(discount, 1e-300), 1e300)
    done, reached = 0, np.inf
    low, high = 0.0, 0.0
    while reached > max(width, 2.0 * rounding(mdp, values)):
        if done >= max_rounds:
            raise RuntimeError(
                f"only an error of {discount / (1.0 - discount) * reached:.3g} is proven after {done} "
                "iterations; allow more, raise tol, or use policy_iteration(mdp, discount)"
            )
        more = min(_CHUNK, max_rounds - done)
        rounds, low, high, reached = iterate(
            mdp.rows, mdp.space, discount, width, centre, sweeps, more, values, scratch, policy
        )
        done += rounds
    if centre:
        values += discount / (1.0 - discount) * 0.5 * (low + high)
    return certify(mdp, discount, values, done)


@kernel
def iterate(
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
    """Rounds of V ← T V, each but the last followed by ``sweeps`` sweeps with its greedy policy, in place.

    Ends after ``max_rounds``, or when δ is down to ``width``: half its spread with ``centre``, else its
    largest size. Returns the rounds done, the last (min δ, max δ), and that width.
    """
    low, high, reached = 0.0, 0.0, np.inf
    for i in range(max_rounds):
        low, high = improve(rows, space, discount, values, scratch, policy)
        for s in range(values.shape[0]):
            values[s] = scratch[s]
        reached = 0.5 * (high - low) if centre else max(high, -low)
        if reached <= width:
            return i + 1, low, high, reached
        if i + 1 < max_rounds:
            follow(rows, space, discount, policy, sweeps, values, scratch)
    return max_rounds, low, high, reached


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

    Jacobi, since it moves all values alike by a constant, which the spread of δ does not see.
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
