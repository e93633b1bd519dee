"""Single-threaded Cholesky factorisation for small regressions of about a hundred rows.

LAPACK uses several threads even for such small matrices and then takes a hundred times as long on a busy machine.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, fastmath={"contract", "reassoc", "arcp"}, error_model="numpy")
def cholesky(matrix, lower):
    """Write the lower factor of a symmetric matrix [n, n] to ``lower``; return whether it is positive definite."""
    n = len(matrix)
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = total / lower[j, j]
            elif total > 0.0:
                lower[i, i] = np.sqrt(total)
            else:
                return False
    return True


@numba.njit(cache=True, fastmath={"contract", "reassoc", "arcp"}, error_model="numpy")
def solve_rows(lower, upper, rows):
    """Replace each row b of ``rows`` [m, n] by the solution of L Lᵀ x = b; ``upper`` is Lᵀ in row-major order."""
    n = len(lower)
    for x in rows:
        for i in range(n):
            total = x[i]
            for k in range(i):
                total -= lower[i, k] * x[k]
            x[i] = total / lower[i, i]
        for i in range(n - 1, -1, -1):
            total = x[i]
            for k in range(i + 1, n):
                total -= upper[i, k] * x[k]
            x[i] = total / lower[i, i]


def factor(matrix):
    """Return the lower factor of a symmetric matrix, or None if it is not positive definite."""
    lower = np.zeros_like(matrix)
    return lower if cholesky(matrix, lower) else None


def solve(lower, rows):
    """Return the solutions of L Lᵀ x = b for a vector b [n] or the rows b of a matrix [m, n]."""
    found = np.array(rows, float, ndmin=2)
    solve_rows(lower, np.ascontiguousarray(lower.T), found)
    return found.reshape(np.shape(rows))
