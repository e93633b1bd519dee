"""Transitions of worlds with four directions, where a move may slip to either side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

ACTIONS = ("up", "right", "down", "left")


def slippery(neighbours: NDArray[np.int64], slip: float) -> list[sparse.csr_matrix]:
    """The transition matrices of the four actions.

    Parameters
    ----------
    neighbours : array [S, 4]
        The state that lies up, right, down and left of each state (itself, where the way is blocked).
    slip : float
        The probability of going to a side instead: half of it to each of the two neighbouring directions.

    Returns
    -------
    list of 4 sparse matrices [S, S]

    Examples
    --------
    >>> two = np.array([[0, 1, 0, 0], [1, 1, 1, 0]])  # two cells, side by side
    >>> slippery(two, 0.2)[1].toarray()
    array([[0.2, 0.8],
           [0. , 1. ]])
    """
    from scipy import sparse  # seldom needed, and slow to import

    n_states = len(neighbours)
    source = np.tile(np.arange(n_states), 3)
    chance = np.repeat([1.0 - slip, slip / 2, slip / 2], n_states)
    matrices = []
    for a in range(4):
        target = neighbours[:, [a, (a + 1) % 4, (a - 1) % 4]].T.ravel()
        matrix = sparse.csr_matrix((chance, (source, target)), shape=(n_states, n_states))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrices.append(matrix)
    return matrices
