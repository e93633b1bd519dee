"""Deep sea: a treasure that only one of 2^size paths reaches, at a cost for each step towards it."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.envs.environment import LEAST_U, Environment, StepResult
from bamdp.envs.picture import Layout, Mark, grid_layout
from bamdp.envs.registry import ModelSeed, Size, environment, rows
from bamdp.mdp.model import FiniteMDP

MOVE_COST = 0.01  # total, for moving right at every step


@environment
def deep_sea(size: Size = 10, mapping_seed: ModelSeed = 42) -> Environment:
    """A dive of ``size`` steps to a treasure that only one action sequence reaches.

    Description
    -----------
    At each step a diver sinks by one row and moves left or right. The treasure lies in the lower right corner, so every
    step must go right, but each step to the right has a small cost: an agent that only exploits learns to go left.
    Random play finds the treasure once in 2^``size`` episodes on average; an agent that plans its exploration needs
    about ``size``² episodes. Which of the two actions goes right differs from cell to cell.

    States
    ------
    s = row * ``size`` + column, plus the terminal state ``size`` * ``size``. Cells right of the diagonal are never
    reached.

    Actions
    -------
    0 and 1. One goes right, the other left, according to a table determined by ``mapping_seed`` (`DeepSea.right`).

    Transitions
    -----------
    To the next row, one column to the left or right (clipped at the sides); from the last row to the terminal state.

    Rewards
    -------
    R(s, a): 1 for going right in the last column, and -0.01 / ``size`` for every step to the right.

    Start
    -----
    State 0, the upper left corner. An episode takes ``size`` steps. A run takes 10 000 steps, or 50 000 if ``size``
    is 20 or more, as in Appendix D of the paper.

    Reference
    ---------
    I. Osband et al. (2020), Behaviour suite for reinforcement learning, ICLR: ``deep_sea`` of bsuite, with identical
    tables (all bsuite experiments use ``mapping_seed`` 42); I. Osband, D. Russo, B. Van Roy (2019), Deep exploration
    via randomized value functions, JMLR.

    Parameters
    ----------
    size : int, default 10
        Number of rows and columns, at least 2.
    mapping_seed : int, default 42
        Seed of the table that determines which action goes right.

    Examples
    --------
    >>> env = deep_sea(size=3)
    >>> env.reset(seed=0)
    0
    >>> [env.step(int(env.right[row, row])) for row in range(3)]
    [(4, -0.0033333333333333335, False), (8, -0.0033333333333333335, False), (9, 0.9966666666666667, True)]
    """
    return DeepSea(size, mapping_seed, stochastic=False)


@environment
def deep_sea_stochastic(size: Size = 10, mapping_seed: ModelSeed = 42) -> Environment:
    """Deep sea with a current and reward noise in the lower corners; see `deep_sea`.

    Description
    -----------
    Like `deep_sea`, but a step to the right sometimes fails, and rewards in the two lower corners are noisy. A prior
    that expects deterministic transitions is wrong here.

    States
    ------
    As in `deep_sea`.

    Actions
    -------
    As in `deep_sea`.

    Transitions
    -----------
    As in `deep_sea`, but with probability 1 / ``size`` a step to the right sinks without moving right.

    Rewards
    -------
    R(s, a) as in `deep_sea`; a step to the right has its cost even if it fails. In both corners of the last row,
    standard normal noise is added for either action.

    Start
    -----
    As in `deep_sea`.

    Reference
    ---------
    I. Osband et al. (2020), Behaviour suite for reinforcement learning, ICLR: ``deep_sea_stochastic`` of bsuite.

    Parameters
    ----------
    size : int, default 10
        Number of rows and columns, at least 2.
    mapping_seed : int, default 42
        Seed of the table that determines which action goes right.

    Examples
    --------
    >>> env = deep_sea_stochastic(size=4)
    >>> env.mdp.row(0, int(env.right[0, 0]))
    (array([4, 5]), array([0.25, 0.75]))
    """
    return DeepSea(size, mapping_seed, stochastic=True)


class DeepSea(Environment):
    """The environment of `deep_sea` and `deep_sea_stochastic`.

    Attributes
    ----------
    size : int
    right : array [size, size]
        The action that goes right, by row and column.
    """

    def __init__(self, size: int, mapping_seed: int, *, stochastic: bool) -> None:
        _checks.memory(1000 * size**2, f"a deep sea of {size} by {size} cells")
        self.size = size
        # bsuite's table, which uses the same generator
        self.right = np.random.RandomState(mapping_seed).binomial(1, 0.5, (size, size))
        self._noisy = frozenset(((size - 1) * size, size**2 - 1) if stochastic else ())
        mdp, layout = _model(size, self.right, 1.0 / size if stochastic else 0.0)
        super().__init__("deep_sea", mdp, horizon=10_000 if size < 20 else 50_000, layout=layout)

    @property
    def stochastic_rewards(self) -> bool:  # type: ignore[override]
        """Whether rewards are random, in which case `rewards` contains their means."""
        return bool(self._noisy)

    def step(self, action: int) -> StepResult:
        """Take an action; see `Environment.step`. With noise, every step uses a second random number."""
        before = self.state
        s2, reward, terminated = super().step(action)
        if self._noisy:
            u = self._random()
            if before in self._noisy:
                reward += NormalDist().inv_cdf(max(u, LEAST_U))
        return s2, reward, terminated

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the direction of an action in a state, ``left`` or ``right``; without a state, return its number."""
        if state is None or not 0 <= state < self.size**2:
            return str(action)
        return "right" if self.right.flat[state] == action else "left"

    def bad_episodes(self, states: ArrayLike, actions: ArrayLike) -> NDArray[np.bool_]:
        """Return which episodes of a run left the path to the treasure by stepping left.

        Parameters
        ----------
        states, actions : array [T]
            States and actions of a `Run`.

        Returns
        -------
        array [number of complete episodes]
            Its sum is bsuite's ``total_bad_episodes``. Without noise, all other episodes found the treasure.

        Examples
        --------
        >>> env = deep_sea(size=2)
        >>> left, right = 1 - env.right, env.right
        >>> ways = [right[0, 0], right[1, 1], left[0, 0], right[1, 0], right[0, 0], left[1, 1]]
        >>> env.bad_episodes([0, 3, 0, 2, 0, 3], ways)
        array([False,  True,  True])
        """
        s = np.asarray(states, np.int64)
        n_episodes = len(s) // self.size
        row, column = np.divmod(s[: n_episodes * self.size], self.size)
        done = np.asarray(actions, np.int64)[: n_episodes * self.size]
        wrong = (row == column) & (done != self.right[row, column])
        return np.asarray(wrong.reshape(n_episodes, self.size).any(axis=1), bool)


def _model(size: int, right: NDArray[np.int64], fails: float) -> tuple[FiniteMDP, Layout]:
    """Return the model and its layout; ``fails`` is the probability that a step to the right only sinks.

    The terminal state lies below the grid, outside the picture.
    """
    cells, end = np.arange(size * size), size * size
    row, column = np.divmod(cells, size)
    goes_right = right.reshape(-1, 1) == np.arange(2)  # [cells, A]
    aside = np.where(goes_right, 1, -1)
    columns = np.clip(column[:, None, None] + np.stack([aside, 0 * aside], axis=2), 0, size - 1)
    target = np.full((end + 1, 2, 2), end)
    target[:-1] = np.where(row[:, None, None] < size - 1, (row[:, None, None] + 1) * size + columns, end)
    chances = np.zeros((end + 1, 2, 2))
    chances[:-1, :, 1] = fails * goes_right
    chances[:, :, 0] = 1.0 - chances[:, :, 1]
    rewards = np.zeros((end + 1, 2))
    rewards[:end] = 1.0 * (goes_right & (column == size - 1)[:, None]) - (MOVE_COST / size) * goes_right
    labels = [*(f"({r}, {c})" for r, c in zip(row.tolist(), column.tolist())), "the end"]
    mdp = FiniteMDP(rows(target, chances), rewards, terminal=[end], state_labels=labels)
    positions = np.vstack([np.column_stack([column, row]), [(size - 1) / 2, size + 1]])
    moves = np.ones((end + 1, 2, 2))
    moves[:-1, :, 0] = aside
    marks = (Mark("start", 0, 0), Mark("goal", size - 1, size - 1))
    return mdp, grid_layout(size, size, positions, moves=moves, marks=marks)
