"""The result type of solvers, its proven bounds, and shared helper functions.

**Bounds.** For any values V let δ(s) = max_a Q_V(s,a) − V(s), with Q_V(s,a) = r(s,a) + γ Σ p(s'|s,a) V(s'), and let δ_π
be the same with the policy's action in place of the best. With h = max δ, V + h/(1−γ) is an upper bound on V* (further
optimality sweeps can only lower it), and V + min δ_π/(1−γ) is a lower bound on V^π. Hence

    ‖V − V*‖ ≤ max|δ| / (1−γ)            (``error_bound``, from ``residual`` = max|δ|)
    V* − V^π ≤ (max δ − min δ_π) / (1−γ)    (``loss_bound``).

Terminal states are included with δ = 0. :func:`certify` computes these bounds for the values that any solver returns,
and widens them for rounding (ρ, a multiple of the machine precision times the largest |V| + |r|) and for rows that only
sum to 1 ± σ: δ ± ρ, and γ(1 ± σ) in place of γ.

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
from bamdp.mdp.build import row_entries, row_sums, used_rows
from bamdp.mdp.model import FiniteMDP

TIE = 1e-12
MANY_ENTRIES = 100_000


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
        return q_table(*self._model, self.values)


# Action values and bounds


def expectation(mdp: FiniteMDP) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function V ↦ Σ p(s'|row) V(s') for all rows of a model, ``[S*A]``, including the background."""
    rows = mdp.rows
    if len(rows.index) > MANY_ENTRIES:  # five times faster, but only worth importing SciPy for large models
        matrix = entry_matrix(mdp)
        return lambda values: matrix @ values + rows.background * values.mean()
    filled = np.flatnonzero(rows.span[:, 1] > rows.span[:, 0])
    begin = rows.span[filled, 0]

    def expect(values: np.ndarray) -> np.ndarray:
        expected = rows.background * values.mean()
        if len(filled):
            expected[filled] += np.add.reduceat(rows.prob * values[rows.index], begin)
        return expected

    return expect


def q_table(mdp: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """Return Q_V, ``[S, A]``."""
    q = (mdp.rows.reward + discount * expectation(mdp)(values)).reshape(mdp.action_mask.shape)
    return np.where(mdp.terminal[:, None], 0.0, np.where(mdp.action_mask, q, -np.inf))


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
    expect, ends = expectation(mdp), mdp.terminal
    low, high = 0.0, 0.0
    rewards = np.where(mdp.action_mask.ravel(), mdp.rows.reward, -np.inf)
    for sweep in range(max_sweeps):
        best = (rewards + expect(values)).reshape(mdp.action_mask.shape).max(axis=1)
        delta = np.where(ends, 0.0, best) - values
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
    q = q_table(mdp, discount, values)
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
    return float(np.abs(row_sums(mdp.rows)[used_rows(mdp.space)] - 1.0).max(initial=0.0))


# Validation of solver arguments


def check_model(mdp: Any) -> FiniteMDP:
    """Raise an error that explains how to create a model, unless the argument is one."""
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
    actions: np.ndarray
    shape = mdp.action_mask.shape
    if array.shape == shape[:1] and array.dtype.kind in "iu":
        actions = np.where(live, array, 0).astype(np.int64)
        outside = (actions < 0) | (actions >= shape[1])
        if outside.any():
            s = int(np.argmax(outside))
            raise ValueError(f"policy takes action {array[s]} in state {s}; actions are 0..{shape[1] - 1}")
        taken = np.eye(shape[1], dtype=bool)[actions]
    elif array.shape == shape:
        actions = np.where(live[:, None], _checks.numbers(array, "policy"), 0.0)
        invalid = live & ~((actions >= 0.0).all(axis=1) & (np.abs(actions.sum(axis=1) - 1.0) <= 1e-8))
        if invalid.any():
            s = int(np.argmax(invalid))
            raise ValueError(f"policy in state {s} must be probabilities that sum to 1, got {array[s]}")
        taken = actions > 0.0
        actions = actions / np.where(live, actions.sum(axis=1), 1.0)[:, None]
    else:
        raise ValueError(
            f"policy must be whole numbers [{shape[0]}] or probabilities {list(shape)}, "
            f"got {array.dtype} {list(array.shape)}"
        )
    masked = live & (taken & ~mdp.action_mask).any(axis=1)
    if masked.any():
        raise ValueError(f"policy takes an action in state {int(np.argmax(masked))} that is masked")
    return actions


# Markov reward processes


def chain_of(mdp: FiniteMDP, policy: np.ndarray) -> FiniteMDP:
    """Return the Markov reward process under a policy, ``[S]`` or ``[S, A]``, as a model with one action."""
    S, A = mdp.n_states, mdp.n_actions
    weight = (np.eye(A)[policy] if policy.ndim == 1 else policy).ravel()
    row, state, prob = row_entries(mdp.rows)
    prob *= weight[row]
    kept = prob > 0.0
    ends = np.searchsorted(row[kept] // A, np.arange(1, S + 1))
    span = np.stack([np.append(0, ends[:-1]), ends], axis=1)
    background, reward = (
        (x * weight).reshape(S, A).sum(axis=1) for x in (mdp.rows.background, mdp.rows.reward)
    )
    space = Space(mdp.space.terminal, np.ones((S, 1), np.bool_))
    return FiniteMDP.from_rows(Rows(span, state[kept], prob[kept], background, reward), space)


def entry_matrix(mdp: FiniteMDP) -> Any:
    """Return the entries, without the background, as a sparse matrix ``[S*A, S]``."""
    from scipy.sparse import csr_array

    rows = mdp.rows
    return csr_array(
        (rows.prob, rows.index, np.append(0, rows.span[:, 1])), shape=(len(rows.span), mdp.n_states)
    )
