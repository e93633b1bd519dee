"""A maze with a door that is open or closed: one bit to learn, and a question of whether to go and look."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.layout import DIRECTIONS, GRID_MOVES, Layout, Mark, grid_layout, slippery_moves
from bamdp.mdp import FiniteMDP

_MAP = np.array(
    [
        [2, 5, 7, 12],
        [1, -1, 8, 13],
        [0, -1, 9, 14],
        [3, -1, 10, 15],
        [4, 6, 11, 16],
    ]
)  # the state of each cell, rows from the top; -1 a wall
_DOOR, _GOAL = 6, 16
_SLIP = 0.1


def maze_door(door: Literal["open", "closed", "random"] = "random") -> Environment:
    """A small maze with two ways to the goal, one of them through a door that may be closed.

    Description
    -----------
    A wall parts the start from the goal. The upper way round it is always free. The lower one is shorter, but
    leads through a doorway, and the door is either open or closed for the whole run. Only trying it tells.
    With the two models of `maze_door_models` as its prior, an agent has one bit to learn, and the price of
    asking is known exactly.

    States
    ------
    17 cells, numbered as in the published program, 0 the start, 6 the doorway, 16 the goal, ``#`` the wall::

         2  5  7 12
         1  #  8 13
         0  #  9 14
         3  # 10 15
         4  6 11 16

    Actions
    -------
    0 up, 1 right, 2 down, 3 left.

    Transitions
    -----------
    The chosen direction is taken with probability 0.9, each of the two beside it with 0.05; a blocked move
    stays. A closed door blocks the doorway from both sides. Any action in the goal leads to the start with
    certainty.

    Rewards
    -------
    R(s, a): 1 for any action in the goal.

    Start
    -----
    State 0. The world never ends. With ``door="random"`` the door is open with probability 1/2, drawn at each
    `reset` from the run's own stream; `Environment.mdp` is then the truth of the present run (open before the
    first).

    Reference
    ---------
    A. Guez, D. Silver, P. Dayan (2012), Efficient Bayes-adaptive reinforcement learning using sample-based
    search, NIPS: the program published with it.

    Parameters
    ----------
    door : {"open", "closed", "random"}, default "random"
        How the door is.

    Examples
    --------
    >>> maze_door("closed").mdp.row(4, 1)
    (array([3, 4]), array([0.05, 0.95]))
    >>> env = maze_door()
    >>> [env.reset(seed=seed) or env.door for seed in range(4)]
    ['closed', 'closed', 'open', 'open']
    """
    return MazeDoor(door)


def maze_door_models() -> tuple[FiniteMDP, FiniteMDP]:
    """The two worlds that `maze_door` may be: (open, closed), for a prior over an explicit set of models.

    Examples
    --------
    >>> open_door, closed_door = maze_door_models()
    >>> open_door.row(4, 1)[0].tolist(), closed_door.row(4, 1)[0].tolist()
    ([3, 4, 6], [3, 4])
    """
    return _model("open"), _model("closed")


class MazeDoor(Environment):
    """The environment of `maze_door`, which tells how its ``door`` is in the present run."""

    def __init__(self, door: str = "random") -> None:
        _checks.one_of(door, "door", ("open", "closed", "random"))
        self.door = "closed" if door == "closed" else "open"
        super().__init__(
            "maze_door",
            _model(self.door),
            horizon=1000,
            time_limit=0.25,
            layout=_layout(self.door),
            parameters={"door": door},
        )

    @property
    def worlds(self) -> tuple[tuple[float, FiniteMDP], ...]:
        """See `Environment.worlds`: two, if the door is drawn."""
        if self.parameters["door"] != "random":
            return super().worlds
        return tuple((0.5, model) for model in maze_door_models())

    def drawn_world(self, seed: int | np.random.SeedSequence) -> int:
        """See `Environment.drawn_world`: 0 for an open door and 1 for a closed one, if it is drawn."""
        if self.parameters["door"] != "random":
            return 0
        other = MazeDoor("random")
        other.reset(seed=seed)
        return ("open", "closed").index(other.door)

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Go to the start state and return it; see `Environment.reset`. A random door is drawn first."""
        state = super().reset(seed=seed)
        if self.parameters["door"] == "random":
            door = "open" if self._uniform() < 0.5 else "closed"
            if door != self.door:
                self.door = door
                self._become(_model(door), _layout(door))
        return state


def _model(door: str) -> FiniteMDP:
    height, width = _MAP.shape
    neighbours = np.zeros((17, 4), np.int64)  # zeros: from the goal to the start
    for (y, x), s in np.ndenumerate(_MAP):
        for direction, (dx, dy) in enumerate(GRID_MOVES):
            inside = 0 <= x + dx < width and 0 <= y + dy < height
            ahead = _MAP[y + dy, x + dx] if inside else -1
            blocked = ahead < 0 or (ahead == _DOOR and door == "closed")
            if s >= 0 and s != _GOAL:
                neighbours[s, direction] = s if blocked else ahead
    rewards = np.zeros((17, 4))
    rewards[_GOAL] = 1.0
    labels = [str(cell) for cell in _cells()]
    return FiniteMDP(
        slippery_moves(neighbours, _SLIP), rewards, state_labels=labels, action_labels=DIRECTIONS
    )


def _layout(door: str) -> Layout:
    cells = _cells()
    marks = (
        Mark("start", *cells[0]),
        Mark("goal", *cells[_GOAL]),
        Mark(f"door_{door}", *cells[_DOOR]),
    )
    walls = [(int(x), int(y)) for y, x in np.argwhere(_MAP < 0)]
    return grid_layout(_MAP.shape[1], _MAP.shape[0], cells, walls=walls, marks=marks)


def _cells() -> list[tuple[int, int]]:
    """The place (x, y) of every state."""
    order = np.argsort(_MAP.ravel())[(_MAP < 0).sum() :]
    return [(int(i) % _MAP.shape[1], int(i) // _MAP.shape[1]) for i in order]
