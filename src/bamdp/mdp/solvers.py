"""Solvers for known models: optimal values and policies, policy evaluation, totals over a horizon, and their bounds.

**Optimal policies** solve V(s) = max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], V = 0 in terminal states. Modified policy
iteration (Puterman & Shin 1978; :mod:`bamdp._kernels.solve`, which planners also use for sampled models) stops when the
spread of the changes in an optimality sweep proves the requested bound (MacQueen 1966; Porteus 1971).
:func:`value_iteration` returns its values. :func:`policy_iteration` continues with exact evaluations (Howard 1960) in
models of up to ``DIRECT_STATES`` states, and with sweeps until rounding errors dominate in larger ones.

**A given policy** π turns the model into a Markov reward process, a model with one action, whose values solve V = r + γ
P V with P = E + b 1ᵀ/S (entries plus background). The background is a rank-one term, so E stays sparse: with B = I − γE
solve B x = r and B y = b; then V = x + γ m y, where m = mean(V) = mean(x) / (1 − γ mean(y)) (Sherman & Morrison).
Larger models use the same modified policy iteration.

**Bounds.** For any values V let δ(s) = max_a Q_V(s,a) − V(s), with Q_V(s,a) = r(s,a) + γ Σ p(s'|s,a) V(s'), and let δ_π
be the same with the policy's action in place of the best. With h = max δ, V + h/(1−γ) is an upper bound on V* (further
optimality sweeps can only lower it), and V + min δ_π/(1−γ) is a lower bound on V^π. Hence

    ‖V − V*‖ ≤ max|δ| / (1−γ)            (``error_bound``, from ``residual`` = max|δ|)
    V* − V^π ≤ (max δ − min δ_π) / (1−γ)    (``loss_bound``).

Terminal states are included with δ = 0. :func:`certify` computes these bounds for the values that any solver returns,
and widens them for rounding (ρ, a multiple of the machine precision times the largest |V| + |r|) and for rows that
sum to 1 only within ±σ: δ ± ρ, and γ(1 ± σ) in place of γ. If ``tol`` is below the resolution of double precision
(about 1e-14 · max|V|/(1−γ)), ``error_bound`` gives the accuracy that was reached.

**Ties.** A greedy policy takes the lowest action whose value is within ``TIE`` = 1e-12 of the best, relative
to the largest |V| + |r|. Terminal states have value 0 and policy 0; masked actions have value −inf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import evaluate_solver_policy, new_solver, reward_scale, solve
from bamdp.mdp.build import entry_matrix, row_entries, used_rows
from bamdp.mdp.model import FiniteMDP, check_start

TIE = 1e-12
DIRECT_STATES = 2000  # policies are evaluated by sparse LU up to this number of states


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy and values with bounds that hold for any solver.

    Attributes
    ----------
    policy
        Actions, int ``[S]``; for :func:`evaluate_policy`, the evaluated policy.
    values
        ``[S]``; 0 in terminal states.
    iterations
        Number of policy improvements, or of RTDP trials.
    residual
        max|δ|, the Bellman residual of ``values`` (for :func:`evaluate_policy`, that of the policy).
    error_bound
        Proven bound on the error of every entry of ``values`` relative to V* (for :func:`evaluate_policy`, V^π).
    loss_bound
        Proven bound on V*(s) − V^π(s) for every state s.
    """

    policy: np.ndarray
    values: np.ndarray
    iterations: int
    residual: float
    error_bound: float
    loss_bound: float
    _model: tuple[FiniteMDP, float] = field(repr=False)

    def __repr__(self) -> str:
        low, high = float(self.values.min()), float(self.values.max())
        return (
            f"Solution: values from {low:.6g} to {high:.6g} in {len(self.values)} states, error at most "
            f"{self.error_bound:.2g}, loss of the policy at most {self.loss_bound:.2g}, {self.iterations} iterations"
        )

    @property
    def q_values(self) -> np.ndarray:
        """Q(s,a) for ``values``, ``[S, A]``: −inf for masked actions, 0 in terminal states."""
        return q_function(*self._model)(self.values)


# Action values and bounds


def q_function(mdp: FiniteMDP, discount: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function V ↦ Q_V, ``[S, A]``: −inf for masked actions, 0 in terminal states."""
    rows, shape = mdp.rows, mdp.action_mask.shape
    matrix, closed = entry_matrix(rows, mdp.n_states), np.where(mdp.action_mask, 0.0, -np.inf)

    def q(values: np.ndarray) -> np.ndarray:
        q = rows.reward + discount * (matrix @ values + rows.background * values.mean())
        return np.where(mdp.terminal[:, None], 0.0, q.reshape(shape) + closed)

    return q


def relative_sweeps(
    mdp: FiniteMDP,
    values: np.ndarray,
    max_sweeps: int,
    *,
    tol: float = -1.0,
    step: float = 1.0,
    anchored: bool = True,
) -> tuple[int, float, float]:
    """Run undiscounted sweeps V ← V + step·δ in place until max δ − min δ ≤ ``tol``.

    V(0) is kept at 0 unless ``anchored``. Return the number of sweeps and the last (min δ, max δ), which belong to
    ``values`` if the sweeps stopped early.
    """
    q, low, high = q_function(mdp, 1.0), 0.0, 0.0
    for sweep in range(max_sweeps):
        delta = q(values).max(axis=1) - values
        low, high = float(delta.min()), float(delta.max())
        if high - low <= tol:
            return sweep + 1, low, high
        values += step * delta
        if not anchored:
            values -= values[0]
    return max_sweeps, low, high


def greedy_actions(q: np.ndarray, scale: float) -> np.ndarray:
    """Return the lowest action within ``TIE * scale`` of the best, int64 ``[S]``."""
    near: np.ndarray = q >= q.max(axis=1, keepdims=True) - TIE * scale
    return np.argmax(near, axis=1)


def certify(
    mdp: FiniteMDP, discount: float, values: np.ndarray, iterations: int, policy: np.ndarray | None = None
) -> Solution:
    """Return a solution with the given values, a policy and proven bounds.

    Without a given policy, the greedy one is used and the bounds refer to V*; otherwise they refer to V^π.
    """
    q = q_function(mdp, discount)(values)
    chosen = greedy_actions(q, value_scale(mdp, values)) if policy is None else policy
    own_delta = _own_values(q, chosen) - values
    delta = q.max(axis=1) - values
    rho, sigma = rounding_error(mdp, values), row_sum_error(mdp)
    residual = float(np.abs(delta if policy is None else own_delta).max())
    error = discounted_sum(residual + rho, discount, sigma)
    above = discounted_sum(float(delta.max()) + rho, discount, sigma)
    below = discounted_sum(rho - float(own_delta.min()), discount, sigma)
    return Solution(chosen, values, iterations, residual, error, above + below, (mdp, discount))


def _own_values(q: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """Return the values of a policy, ``[S]`` or ``[S, A]``, given action values."""
    if policy.ndim == 1:
        return q[np.arange(len(q)), policy]
    mixed: np.ndarray = (policy * np.where(policy > 0.0, q, 0.0)).sum(axis=1)
    return mixed


def discounted_sum(h: float, discount: float, sigma: float) -> float:
    """Return an upper bound on h/(1−γ), with γ(1+σ) in place of γ if h > 0 and γ(1−σ) otherwise."""
    gap = 1.0 - discount * (1.0 + sigma if h > 0.0 else 1.0 - sigma)
    return h / gap if gap > 0.0 else np.inf


def value_scale(mdp: FiniteMDP, values: np.ndarray) -> float:
    """Return the largest |V| plus the largest |r|, the scale of rounding errors."""
    return float(np.abs(values).max() + np.abs(mdp.rows.reward).max())


def rounding_error(mdp: FiniteMDP, values: np.ndarray) -> float:
    """Return ρ, a bound on the rounding error of one backup (a row's products and the mean)."""
    longest = int(np.diff(mdp.rows.span, axis=1).max())
    terms = longest + 8 + np.log2(mdp.n_states)
    return float(np.finfo(float).eps * terms * value_scale(mdp, values))


def row_sum_error(mdp: FiniteMDP) -> float:
    """Return σ, the largest deviation from 1 of the sum of a used row."""
    sums = entry_matrix(mdp.rows, mdp.n_states).sum(axis=1) + mdp.rows.background
    return float(np.abs(sums[used_rows(mdp.space)] - 1.0).max(initial=0.0))


# Validation of solver arguments


def check_model(mdp: Any) -> FiniteMDP:
    """Return the argument if it is a model; otherwise, raise an error that explains how to create a model."""
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(
            f"expected a FiniteMDP, got {type(mdp).__name__}; build one with FiniteMDP(P, rewards)"
        )
    return mdp


def check_tolerance(tol: Any) -> float:
    """Validate and return a positive tolerance."""
    return _checks.real(tol, "tol", low=0.0, open_low=True)


def initial_values(mdp: FiniteMDP, initial: Any) -> np.ndarray:
    """Return a solver's initial values ``[S]``: 0, or the caller's values with 0 in terminal states."""
    values = _checks.numbers(0.0 if initial is None else initial, "initial")
    if values.shape not in ((), (mdp.n_states,)) or not np.isfinite(values).all():
        raise ValueError(f"initial must be finite values [{mdp.n_states}], got shape {list(values.shape)}")
    return np.where(mdp.terminal, 0.0, values)


def check_policy(mdp: FiniteMDP, policy: Any) -> np.ndarray:
    """Validate a policy for this model and return it as int64 ``[S]`` or float64 ``[S, A]``.

    Entries of terminal states are not checked and are 0 in the result.
    """
    array, live = np.asarray(policy), ~mdp.terminal
    S, A = mdp.action_mask.shape
    if array.shape == (S,) and array.dtype.kind in "iu":
        array = np.where(live, array, 0).astype(np.int64)
        taken, wrong = array[:, None] == np.arange(A), (array < 0) | (array >= A)
        problem = f"must be an action 0..{A - 1}"
    elif array.shape == (S, A):
        array = np.where(live[:, None], _checks.numbers(array, "policy"), 0.0)
        taken, wrong = (
            array > 0.0,
            live & ~((array >= 0.0).all(axis=1) & (np.abs(array.sum(axis=1) - 1.0) <= 1e-8)),
        )
        problem = "must be probabilities that sum to 1"
    else:
        raise ValueError(
            f"policy must be whole numbers [{S}] or probabilities [{S}, {A}], got {array.dtype} {list(array.shape)}"
        )
    masked = live & (taken & ~mdp.action_mask).any(axis=1)
    if (wrong | masked).any():
        s = int(np.argmax(wrong | masked))
        raise ValueError(
            f"policy in state {s} {problem if wrong[s] else 'takes a masked action'}, got {array[s]}"
        )
    return array if array.ndim == 1 else array / np.where(live, array.sum(axis=1), 1.0)[:, None]


# Markov reward processes


def chain_of(mdp: FiniteMDP, policy: np.ndarray) -> FiniteMDP:
    """Return the Markov reward process under a policy, ``[S]`` or ``[S, A]``, as a model with one action."""
    S, A = mdp.n_states, mdp.n_actions
    weight = (np.eye(A)[policy] if policy.ndim == 1 else policy).ravel()
    row, state, prob = row_entries(mdp.rows)
    background, reward = (
        (x * weight).reshape(S, A).sum(axis=1) for x in (mdp.rows.background, mdp.rows.reward)
    )
    ends = np.searchsorted(row // A, np.arange(1, S + 1))
    span = np.stack([np.append(0, ends[:-1]), ends], axis=1)
    space = Space(mdp.space.terminal, np.ones((S, 1), np.bool_))
    return FiniteMDP.from_rows(Rows(span, state, prob * weight[row], background, reward), space)


# Solvers


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


def policy_iteration(mdp: FiniteMDP, discount: float) -> Solution:
    """Compute a policy and values that are optimal up to rounding.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).

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
    discount, values = _checks.discount(discount), np.zeros(mdp.n_states)
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

    S = chain.n_states
    factors = splu((eye_array(S) - discount * entry_matrix(chain.rows, S)).tocsc())
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
        None for values that are exact up to rounding; otherwise, sweeps continue until the error is provably at most
        this number, which suits very large models.

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
