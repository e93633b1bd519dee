"""What solvers return, the proof that goes with it, and what all solvers share.

**Bounds.** For any values V let δ(s) = max_a Q_V(s,a) − V(s), with Q_V(s,a) = r(s,a) + γ Σ p(s'|s,a) V(s'), and let
δ_π be the same with the policy's action in place of the best. V + h/(1−γ) with h = max δ is an upper bound of V*
(it can only fall under further optimality sweeps), V + min δ_π/(1−γ) a lower bound of V^π. Hence

    ‖V − V*‖ ≤ max|δ| / (1−γ)            (``error_bound``, from ``residual`` = max|δ|)
    V* − V^π ≤ (max δ − min δ_π) / (1−γ)    (``loss_bound``).

Terminal states are included with δ = 0. :func:`certify` evaluates this once for the values that a solver returns,
whatever the solver did, and widens it for rounding (ρ, a multiple of the machine precision times the largest
|V| + |r|) and for rows that only sum to 1 ± σ: δ ± ρ, and γ(1 ± σ) in place of γ.

**Ties.** A greedy policy takes the lowest action whose value is within ``TIE`` = 1e-12 of the best, relative
to the largest |V| + |r|. Terminal states have value 0 and policy 0; masked actions have value −inf.

**Policies as chains.** A policy turns a model into a Markov reward process, which is a model with one action
(:func:`chain_of`). Its values solve V = r + γ P V with P = E + b 1ᵀ/S (entries plus background). The background is a
rank-one term, so E stays sparse: with A = I − γE solve A x = r and A y = b; then V = x + γ m y, where m, the mean of
V, is mean(x) / (1 − γ mean(y)) (Sherman & Morrison). :func:`chain_values` uses

- LAPACK on the full matrix up to ``DENSE_STATES`` states;
- sparse LU of A up to ``DIRECT_STATES`` states;
- beyond, where fill-in may be ruinous, BiCGSTAB on the whole operator, restarted on its own residual, and
  Gauss–Seidel sweeps for what remains; both stop when the residual is down to rounding.

In each case the bound that is returned with the values is ‖T V − V‖/(1−γ), widened for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import evaluate, row_value
from bamdp.mdp.build import contiguous_spans, merge_model_entries, row_entries, row_sums, used_rows
from bamdp.mdp.model import FiniteMDP

TIE = 1e-12
DENSE_STATES = 300
DIRECT_STATES = 1000


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy and values, with bounds that hold whatever the solver did.

    Attributes
    ----------
    policy
        Actions, int ``[S]``; for :func:`evaluate_policy`, the policy that was evaluated.
    values
        ``[S]``; 0 in terminal states.
    iterations
        Sweeps of value iteration, improvements of policy iteration, trials of RTDP.
    residual
        max|δ|, the Bellman residual of ``values`` (for :func:`evaluate_policy`, that of the policy).
    error_bound
        Proven: no entry of ``values`` is further than this from the true value, V* (for
        :func:`evaluate_policy`, V^π).
    loss_bound
        Proven: V*(s) − V^π(s) is at most this in every state s.
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


# Values of actions, and bounds


@kernel
def fill_q(rows: Rows, space: Space, discount: float, values: np.ndarray, mean: float, q: np.ndarray) -> None:
    """Write Q_V into ``q`` ``[S, A]``; ``mean`` is the average of ``values``."""
    n_states, n_actions = space.allowed.shape
    for s in range(n_states):
        for a in range(n_actions):
            if space.terminal[s]:
                q[s, a] = 0.0
            elif space.allowed[s, a]:
                row = s * n_actions + a
                q[s, a] = rows.reward[row] + discount * row_value(rows, row, values, mean)
            else:
                q[s, a] = -np.inf


def q_table(mdp: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """Return Q_V, ``[S, A]``."""
    q = np.empty((mdp.n_states, mdp.n_actions))
    fill_q(mdp.rows, mdp.space, discount, values, float(np.mean(values)), q)
    return q


def value_scale(mdp: FiniteMDP, values: np.ndarray) -> float:
    """Return the largest |V| plus the largest |r|, to which rounding errors are relative."""
    return float(np.abs(values).max() + np.abs(mdp.rows.reward).max())


def greedy_actions(q: np.ndarray, scale: float, tie: float = TIE) -> np.ndarray:
    """Return the lowest action within ``tie * scale`` of the best, int64 ``[S]``."""
    near: np.ndarray = q >= q.max(axis=1, keepdims=True) - tie * scale
    return np.argmax(near, axis=1)


def certify(mdp: FiniteMDP, discount: float, values: np.ndarray, iterations: int) -> Solution:
    """Return the solution with these values, their greedy policy, and the bounds that they prove."""
    q = q_table(mdp, discount, values)
    policy = greedy_actions(q, value_scale(mdp, values))
    delta = q.max(axis=1) - values
    policy_delta = q[np.arange(mdp.n_states), policy] - values
    error = error_bound(mdp, discount, values, delta)
    rho, sigma = rounding_error(mdp, values), row_sum_error(mdp)
    upper = discounted_sum(float(delta.max()) + rho, discount, sigma)
    lower = -discounted_sum(-(float(policy_delta.min()) - rho), discount, sigma)
    residual = float(np.abs(delta).max())
    return Solution(policy, values, iterations, residual, error, upper - lower, (mdp, discount))


def error_bound(mdp: FiniteMDP, discount: float, values: np.ndarray, delta: np.ndarray) -> float:
    """Bound the distance of ``values`` from the fixed point of the operator whose residual is ``delta``."""
    size = float(np.abs(delta).max()) + rounding_error(mdp, values)
    return discounted_sum(size, discount, row_sum_error(mdp))


def discounted_sum(h: float, discount: float, sigma: float) -> float:
    """Return h/(1−γ), rounded upwards: γ(1+σ) in place of γ if h > 0, γ(1−σ) otherwise."""
    gap = 1.0 - discount * (1.0 + sigma if h > 0.0 else 1.0 - sigma)
    return h / gap if gap > 0.0 else np.inf


def rounding_error(mdp: FiniteMDP, values: np.ndarray) -> float:
    """Return ρ, a bound on the rounding error of one backup (the products of a row, and the mean)."""
    longest = int(np.diff(mdp.rows.span, axis=1).max())
    terms = longest + 8 + np.log2(mdp.n_states)
    return float(np.finfo(float).eps * terms * value_scale(mdp, values))


def row_sum_error(mdp: FiniteMDP) -> float:
    """Return σ, the largest distance of the sum of a used row from 1."""
    used = used_rows(mdp.space)
    if not used.any():
        return 0.0
    return float(np.abs(row_sums(mdp.rows)[used] - 1.0).max())


# Arguments of solvers


def check_model(mdp: Any) -> FiniteMDP:
    """Refuse everything but a model, and say how to make one."""
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(
            f"expected a FiniteMDP, got {type(mdp).__name__}; build one with FiniteMDP(P, rewards)"
        )
    return mdp


def check_tolerance(tol: Any) -> float:
    """Return a tolerance above 0, checked."""
    return _checks.real(tol, "tol", low=0.0, open_low=True)


def initial_values(mdp: FiniteMDP, initial: Any) -> np.ndarray:
    """Return the values ``[S]`` that a solver starts from: 0, or the caller's, with 0 in terminal states."""
    if initial is None:
        return np.zeros(mdp.n_states)
    values = _checks.numbers(initial, "initial")
    if values.ndim == 0:
        values = np.full(mdp.n_states, float(values))
    if values.shape != (mdp.n_states,) or not np.isfinite(values).all():
        raise ValueError(f"initial must be finite values [{mdp.n_states}], got shape {list(values.shape)}")
    return np.where(mdp.terminal, 0.0, values)


def check_policy(mdp: FiniteMDP, policy: Any) -> np.ndarray:
    """Return a policy as int64 ``[S]`` or float64 ``[S, A]``, checked for this model.

    Entries of terminal states are not checked, and are 0 in the result.
    """
    array = np.asarray(policy)
    shape = (mdp.n_states, mdp.n_actions)
    live = ~mdp.terminal
    if array.shape == shape[:1] and array.dtype.kind in "iu":
        return _check_actions(mdp, array, live)
    if array.shape != shape:
        raise ValueError(
            f"policy must be whole numbers [{shape[0]}] or probabilities {list(shape)}, "
            f"got {array.dtype} {list(array.shape)}"
        )
    probs = np.where(live[:, None], _checks.numbers(array, "policy"), 0.0)
    invalid = live & ~(
        (np.isfinite(probs) & (probs >= 0.0)).all(axis=1) & (np.abs(probs.sum(axis=1) - 1.0) <= 1e-8)
    )
    if invalid.any():
        s = int(np.argmax(invalid))
        raise ValueError(f"policy in state {s} must be probabilities that sum to 1, got {array[s]}")
    masked = live & ((probs > 0.0) & ~mdp.action_mask).any(axis=1)
    if masked.any():
        raise ValueError(f"policy takes a masked action in state {int(np.argmax(masked))}")
    return probs / np.where(live, probs.sum(axis=1), 1.0)[:, None]


def _check_actions(mdp: FiniteMDP, policy: np.ndarray, live: np.ndarray) -> np.ndarray:
    """Return a deterministic policy, int64 ``[S]``, whose actions exist in the states that are not terminal."""
    actions = np.where(live, policy, 0).astype(np.int64)
    outside = (actions < 0) | (actions >= mdp.n_actions)
    if outside.any():
        s = int(np.argmax(outside))
        raise ValueError(f"policy takes action {policy[s]} in state {s}; actions are 0..{mdp.n_actions - 1}")
    masked = live & ~mdp.action_mask[np.arange(mdp.n_states), actions]
    if masked.any():
        s = int(np.argmax(masked))
        raise ValueError(f"policy takes action {policy[s]} in state {s}, where it is masked")
    return actions


# Markov reward processes


def chain_of(mdp: FiniteMDP, policy: np.ndarray) -> FiniteMDP:
    """Return the Markov reward process under a policy, as a model with one action.

    Parameters
    ----------
    mdp
        The model.
    policy
        Actions, int64 ``[S]``, which share the entries of ``mdp``; or probabilities ``[S, A]``, which mix its rows
        in O(entries).
    """
    n_states, n_actions = mdp.n_states, mdp.n_actions
    rows = mdp.rows
    space = Space(mdp.space.terminal, np.ones((n_states, 1), dtype=np.bool_))
    if policy.ndim == 1:
        pick = np.arange(n_states) * n_actions + policy
        chosen = Rows(rows.span[pick], rows.index, rows.prob, rows.background[pick], rows.reward[pick])
        return FiniteMDP.from_rows(chosen, space)
    weight = policy.ravel()
    row, index, prob = row_entries(rows)
    state, index, prob = merge_model_entries(row // n_actions, index, prob * weight[row], n_states)
    span = contiguous_spans(state, n_states)
    background = (rows.background * weight).reshape(n_states, n_actions).sum(axis=1)
    reward = (rows.reward * weight).reshape(n_states, n_actions).sum(axis=1)
    return FiniteMDP.from_rows(Rows(span, index.astype(np.int32), prob, background, reward), space)


def entry_matrix(mdp: FiniteMDP) -> Any:
    """Return the entries, without the background, as a sparse matrix ``[S*A, S]``."""
    from scipy.sparse import csr_array

    row, state, prob = row_entries(mdp.rows)
    return csr_array((prob, (row, state)), shape=(len(mdp.rows.reward), mdp.n_states))


def chain_values(
    chain: FiniteMDP, discount: float, guess: np.ndarray, tol: float | None = None
) -> tuple[np.ndarray, float]:
    """Return the values ``[S]`` of a model with one action, and a bound on their error.

    Parameters
    ----------
    chain
        A model with one action.
    discount
        γ in [0, 1).
    guess
        Values ``[S]`` from which iterative methods start.
    tol
        None for values that are exact up to rounding; a number for sweeps that stop at that bound.
    """
    if tol is not None:
        values = _sweep(chain, discount, guess, tol)
    elif chain.n_states <= DENSE_STATES:
        matrix = np.eye(chain.n_states) - discount * chain.dense()[:, 0, :]
        values = np.linalg.solve(matrix, chain.rows.reward)
    elif chain.n_states <= DIRECT_STATES:
        values = _solve_directly(chain, discount)
    else:
        values = _sweep(chain, discount, _solve_iteratively(chain, discount, guess), 0.0)
    return values, error_bound(chain, discount, values, bellman_residual(chain, discount, values))


def bellman_residual(chain: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """Return T V − V, ``[S]``, of a model with one action."""
    delta: np.ndarray = q_table(chain, discount, values)[:, 0] - values
    return delta


def _solve_directly(chain: FiniteMDP, discount: float) -> np.ndarray:
    """Return the values by sparse LU, with a rank-one correction for the background."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    matrix = eye_array(chain.n_states) - discount * entry_matrix(chain)
    factors = splu(matrix.tocsc())
    values: np.ndarray = factors.solve(chain.rows.reward)
    if chain.rows.background.any():
        y = factors.solve(chain.rows.background)
        values += y * (discount * values.mean() / (1.0 - discount * y.mean()))
    return values


def _solve_iteratively(chain: FiniteMDP, discount: float, guess: np.ndarray) -> np.ndarray:
    """Return values improved by BiCGSTAB, whose corrections are kept only when they reduce the residual."""
    from scipy.sparse.linalg import LinearOperator, bicgstab

    n = chain.n_states
    entries, background = entry_matrix(chain), chain.rows.background

    def apply(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        result: np.ndarray = x - discount * (entries @ x + background * x.mean())
        return result

    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    values = np.where(chain.terminal, 0.0, guess)
    for _ in range(8):
        rest = bellman_residual(chain, discount, values)
        if np.abs(rest).max() <= rounding_error(chain, values):
            break
        with np.errstate(all="ignore"):
            correction, _ = bicgstab(operator, rest, rtol=1e-10, maxiter=500)
        better = np.where(chain.terminal, 0.0, values + correction)
        if not np.abs(bellman_residual(chain, discount, better)).max() < np.abs(rest).max():
            break
        values = better
    return values


def _sweep(chain: FiniteMDP, discount: float, guess: np.ndarray, tol: float) -> np.ndarray:
    """Return values after Gauss–Seidel sweeps until their bound is ``tol``, or rounding dominates."""
    values = np.where(chain.terminal, 0.0, guess)
    policy = np.zeros(chain.n_states, dtype=np.int64)
    limit = int(64.0 / (1.0 - discount)) + 64  # γ^limit is below 1e-27
    for _ in range(0, limit, 16):
        delta = bellman_residual(chain, discount, values)
        size, floor = float(np.abs(delta).max()), rounding_error(chain, values)
        if size <= max(floor, 0.99 * tol * (1.0 - discount) - floor):
            break
        order = np.argsort(-values, kind="stable")
        evaluate(chain.rows, chain.space, discount, policy, order, values, 16, 0.0)
    return values
