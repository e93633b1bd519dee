"""Values of a Markov reward process, exactly: V = r + γ P V with P = E + b 1ᵀ/S (entries plus background).

The background is a rank-one term, so E stays sparse: with A = I − γE solve A x = r and A y = b; then
V = x + γ m y where m, the mean of V, is mean(x) / (1 − γ mean(y)) (Sherman & Morrison).

- up to ``DENSE`` states: LAPACK on the full matrix;
- up to ``DIRECT`` states: sparse LU of A;
- beyond, where fill-in may be ruinous: BiCGSTAB on the whole operator, restarted on its own residual, and
  Gauss–Seidel sweeps for whatever it leaves; both stop when the residual is down to rounding.

Whatever the way, the bound that comes with the values is ‖T V − V‖/(1−γ), widened for rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp._kernels.sweeps import evaluate
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import distance, q_table, rounding
from bamdp.mdp.structure import end_components
from bamdp.mdp.validate import entry_positions

DENSE = 300
DIRECT = 1000


def chain_values(
    chain: FiniteMDP, discount: float, guess: np.ndarray, tol: float | None = None
) -> tuple[np.ndarray, float]:
    """(values, bound on their error) of a model with one action; with ``tol`` sweeps stop at that bound."""
    if tol is not None:
        values = _sweep(chain, discount, guess, tol)
    elif chain.n_states <= DENSE:
        matrix = np.eye(chain.n_states) - discount * chain.dense()[:, 0, :]
        values = np.linalg.solve(matrix, chain.rows.reward)
    elif chain.n_states <= DIRECT:
        values = _direct(chain, discount)
    else:
        values = _sweep(chain, discount, _krylov(chain, discount, guess), 0.0)
    return values, distance(chain, discount, values, residual(chain, discount, values))


def residual(chain: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """T V − V, ``[S]``."""
    delta: np.ndarray = q_table(chain, discount, values)[:, 0] - values
    return delta


def _entries(chain: FiniteMDP) -> Any:
    """E as a SciPy matrix."""
    from scipy.sparse import csr_array

    row, position = entry_positions(chain.rows.span)
    n = chain.n_states
    return csr_array((chain.rows.prob[position], (row, chain.rows.index[position])), shape=(n, n))


def chain_bias(chain: FiniteMDP) -> np.ndarray | None:
    """Relative values h, h(0) = 0, of a chain with one closed class: h + g = r + P h, with g in the place of h(0).

    None where there are several, which leave the system without a solution, or where it is too large.
    """
    from scipy.sparse import csc_array, eye_array, hstack
    from scipy.sparse.linalg import splu

    n = chain.n_states
    if end_components(chain).max() > 0:
        return None
    if n <= DENSE:
        matrix = np.eye(n) - chain.dense()[:, 0, :]
        matrix[:, 0] = 1.0
        try:
            values = np.linalg.solve(matrix, chain.rows.reward)
        except np.linalg.LinAlgError:
            return None
    elif n <= DIRECT and not chain.rows.background.any():
        rest = (eye_array(n, format="csc") - _entries(chain).tocsc())[:, 1:]
        try:
            values = splu(hstack([csc_array(np.ones((n, 1))), rest], format="csc")).solve(chain.rows.reward)
        except RuntimeError:
            return None
    else:
        return None
    values[0] = 0.0
    return values if np.isfinite(values).all() else None


def _direct(chain: FiniteMDP, discount: float) -> np.ndarray:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    matrix = eye_array(chain.n_states) - discount * _entries(chain)
    factors = splu(matrix.tocsc())
    values: np.ndarray = factors.solve(chain.rows.reward)
    if chain.rows.background.any():
        y = factors.solve(chain.rows.background)
        values += y * (discount * values.mean() / (1.0 - discount * y.mean()))
    return values


def _krylov(chain: FiniteMDP, discount: float, guess: np.ndarray) -> np.ndarray:
    """BiCGSTAB, keeping a correction only when it helps."""
    from scipy.sparse.linalg import LinearOperator, bicgstab

    n = chain.n_states
    entries, background = _entries(chain), chain.rows.background

    def apply(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        result: np.ndarray = x - discount * (entries @ x + background * x.mean())
        return result

    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    values = np.where(chain.terminal, 0.0, guess)
    for _ in range(8):
        rest = residual(chain, discount, values)
        if np.abs(rest).max() <= rounding(chain, values):
            break
        with np.errstate(all="ignore"):
            step, _ = bicgstab(operator, rest, rtol=1e-10, maxiter=500)
        better = np.where(chain.terminal, 0.0, values + step)
        if not np.abs(residual(chain, discount, better)).max() < np.abs(rest).max():
            break
        values = better
    return values


def _sweep(chain: FiniteMDP, discount: float, guess: np.ndarray, tol: float) -> np.ndarray:
    """Gauss–Seidel until the bound is ``tol``, or rounding takes over."""
    values = np.where(chain.terminal, 0.0, guess)
    policy = np.zeros(chain.n_states, dtype=np.int64)
    limit = int(64.0 / (1.0 - discount)) + 64  # γ^limit is below 1e-27
    for _ in range(0, limit, 16):
        delta = residual(chain, discount, values)
        size, floor = float(np.abs(delta).max()), rounding(chain, values)
        if size <= max(floor, 0.99 * tol * (1.0 - discount) - floor):
            break
        order = np.argsort(-values, kind="stable")
        evaluate(chain.rows, chain.space, discount, policy, order, values, 16, 0.0)
    return values
