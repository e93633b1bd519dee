"""Grids of any size with a goal in the far corner."""

from __future__ import annotations

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.layout import DIRECTIONS, Mark, grid_layout, slippery_moves
from bamdp.mdp import FiniteMDP


def grid(size: int = 5, slip: float = 0.2) -> Environment:
    """A square grid with a goal in the far corner and slippery moves.

    Description
    -----------
    One cell pays, and nothing tells where it is but the known rewards: what must be learned is how to get
    there. The larger the grid, the longer an agent that does not plan to explore walks at random.

    States
    ------
    s = x * ``size`` + y, with x to the right and y upwards from the start's corner.

    Actions
    -------
    0 up (y + 1), 1 right (x + 1), 2 down (y - 1), 3 left (x - 1).

    Transitions
    -----------
    The chosen direction is taken with probability 1 - ``slip``, each of the two beside it with ``slip`` / 2.
    A move off the grid stays. Any action in the goal leads to the start with certainty.

    Rewards
    -------
    R(s, a): 1 for any action in the goal, the state ``size``² - 1.

    Start
    -----
    State 0. The world never ends; the paper runs it for 1000 steps at size 5 and for 2000 at size 10, and
    here for 200 * ``size`` at others.

    Reference
    ---------
    A. Guez, D. Silver, P. Dayan (2012), Efficient Bayes-adaptive reinforcement learning using sample-based
    search, NIPS.

    Parameters
    ----------
    size : int, default 5
        Cells to a side, at least 2.
    slip : float, default 0.2
        The probability of a move to the side.

    Examples
    --------
    >>> env = grid(size=3)
    >>> env.mdp.row(0, 1)
    (array([0, 1, 3]), array([0.1, 0.1, 0.8]))
    """
    return _grid("grid", size, slip, {"size": size, "slip": slip})


def grid5() -> Environment:
    """The paper's grid of 5 by 5 cells; see `grid`.

    Examples
    --------
    >>> grid5()
    Environment('grid5', 25 states, 4 actions, start 0, horizon 1000)
    """
    return _grid("grid5", 5, 0.2, {})


def grid10() -> Environment:
    """The paper's grid of 10 by 10 cells; see `grid`.

    Examples
    --------
    >>> grid10()
    Environment('grid10', 100 states, 4 actions, start 0, horizon 2000)
    """
    return _grid("grid10", 10, 0.2, {})


def _grid(name: str, size: int, slip: float, parameters: dict[str, object]) -> Environment:
    size = _checks.integer(size, "size", low=2)
    slip = _checks.real(slip, "slip", low=0.0, high=1.0)
    _checks.memory(2000 * size * size, f"a grid of {size} by {size} cells")
    states = np.arange(size * size)
    x, y = states // size, states % size
    goal, last = size * size - 1, size - 1
    neighbours = np.column_stack(
        [
            x * size + np.minimum(y + 1, last),
            np.minimum(x + 1, last) * size + y,
            x * size + np.maximum(y - 1, 0),
            np.maximum(x - 1, 0) * size + y,
        ]
    )
    neighbours[goal] = 0
    rewards = np.zeros((size * size, 4))
    rewards[goal] = 1.0
    cells = list(zip(x.tolist(), (last - y).tolist()))
    labels = [f"({i}, {j})" for i, j in zip(x.tolist(), y.tolist())]
    marks = (Mark("start", *cells[0]), Mark("goal", *cells[goal]))
    return Environment(
        name,
        FiniteMDP(slippery_moves(neighbours, slip), rewards, state_labels=labels, action_labels=DIRECTIONS),
        horizon=200 * size,
        time_limit=1.0,
        layout=grid_layout(size, size, cells, marks=marks),
        parameters=parameters,
    )
