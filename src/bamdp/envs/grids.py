"""Grids and mazes with moves in four directions that may slip to either side.

Grids have a goal in the far corner. In Dearden's maze, the agent collects flags on its way to a goal that pays for
them. In the maze with a door, the agent has one bit to learn (whether the door is open) and must decide whether that is
worth the cost.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.picture import DIRECTIONS, GRID_MOVES, Layout, Mark, grid_layout
from bamdp.envs.registry import Probability, Size, environment, rows
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from scipy import sparse

FLAG_MAP = """\
. X $ . X . G
. X . . X . .
. . . . . . .
X X . . . X X
. . . . . . $
$ . . . . . X"""  # X wall, $ flag, G goal; the start is the upper left corner
MAZE_SLIP = 0.1
DOOR_ROWS = """\
 2  5  7 12
 1 -1  8 13
 0 -1  9 14
 3 -1 10 15
 4  6 11 16"""  # the state of each cell; -1 is a wall
DOOR_MAP = np.array([line.split() for line in DOOR_ROWS.splitlines()], int)
DOOR_CELLS = [(int(x), int(y)) for s in range(17) for y, x in np.argwhere(s == DOOR_MAP)]  # by state
DOOR, DOOR_GOAL = 6, 16  # their states


@environment
def grid(size: Size = 5, slip: Probability = 0.2) -> Environment:
    """A square grid with a goal in the far corner and slippery moves.

    Description
    -----------
    Only one cell pays. The known rewards reveal its position, but the agent must learn how to get there. The larger the
    grid, the longer an agent walks at random if it does not plan its exploration.

    States
    ------
    s = x * ``size`` + y, with x to the right and y upwards from the start's corner.

    Actions
    -------
    0 up (y + 1), 1 right (x + 1), 2 down (y - 1), 3 left (x - 1).

    Transitions
    -----------
    The chosen direction is taken with probability 1 - ``slip``, each of the two perpendicular ones with probability
    ``slip`` / 2. A move off the grid leaves the agent where it is. Any action in the goal leads to the start with
    certainty.

    Rewards
    -------
    R(s, a): 1 for any action in the goal, the state ``size``² - 1.

    Start
    -----
    State 0. The task is continuing. A run lasts 200 * ``size`` steps, which gives the paper's 1000 steps at size 5 and
    2000 at size 10.

    Reference
    ---------
    A. Guez, D. Silver, P. Dayan (2012), Efficient Bayes-adaptive reinforcement learning using sample-based
    search, NIPS.

    Parameters
    ----------
    size : int, default 5
        Number of cells per side, at least 2.
    slip : float, default 0.2
        Probability of a move to either side.

    Examples
    --------
    >>> env = grid(size=3)
    >>> env.mdp.row(0, 1)
    (array([0, 1, 3]), array([0.1, 0.1, 0.8]))
    """
    _checks.memory(2000 * size * size, f"a grid of {size} by {size} cells")
    goal = size * size - 1
    places = np.stack(np.divmod(np.arange(size * size), size), axis=1)
    cells = places * (1, -1) + (0, size - 1)
    neighbours = cell_neighbours(cells)
    neighbours[goal] = 0
    rewards = np.zeros((size * size, 4))
    rewards[goal] = 1.0
    labels = [str((x, y)) for x, y in places.tolist()]
    mdp = FiniteMDP(slippery_moves(neighbours, slip), rewards, state_labels=labels, action_labels=DIRECTIONS)
    marks = (Mark("start", 0, size - 1), Mark("goal", size - 1, 0))
    return Environment("grid", mdp, horizon=200 * size, layout=grid_layout(size, size, cells, marks=marks))


@environment
def grid5() -> Environment:
    """The paper's grid of 5 by 5 cells; see `grid`.

    Examples
    --------
    >>> grid5()
    Environment('grid5', 25 states, 4 actions, start 0, horizon 1000)
    """
    return grid(5)


@environment
def grid10() -> Environment:
    """The paper's grid of 10 by 10 cells; see `grid`.

    Examples
    --------
    >>> grid10()
    Environment('grid10', 100 states, 4 actions, start 0, horizon 2000)
    """
    return grid(10)


def cell_neighbours(cells: ArrayLike) -> NDArray[np.int64]:
    """Return the indices of the cells up, right, down and left of each cell (x, y), or its own if none exists.

    Examples
    --------
    >>> cell_neighbours([(0, 0), (1, 0)])
    array([[0, 1, 0, 0],
           [1, 1, 1, 0]])
    """
    x, y = np.asarray(cells).T + 1
    own = np.arange(len(x))
    board = np.full((x.max() + 2, y.max() + 2), -1)  # with a margin
    board[x, y] = own
    ahead = np.stack([board[x + dx, y + dy] for dx, dy in GRID_MOVES], axis=1)
    return np.where(ahead < 0, own[:, None], ahead)


def slippery_moves(neighbours: NDArray[np.int64], slip: float) -> sparse.csr_matrix:
    """Return the transitions of the actions up, right, down and left, whose moves may slip to either side.

    Parameters
    ----------
    neighbours : array [S, 4]
        The states up, right, down and left of each state (the state itself if the move is blocked).
    slip : float
        The probability of slipping: half of it for each of the two perpendicular directions.

    Examples
    --------
    >>> two = np.array([[0, 1, 0, 0], [1, 1, 1, 0]])  # two cells, side by side
    >>> slippery_moves(two, 0.2).toarray()[1::4]  # to the right
    array([[0.2, 0.8],
           [0. , 1. ]])
    """
    aside = [np.roll(neighbours, turn, axis=1) for turn in (-1, 1)]
    return rows(np.stack([neighbours, *aside], axis=2), (1.0 - slip, slip / 2, slip / 2))


@environment
def maze() -> Environment:
    """A maze with three flags; the goal pays for each flag that the agent brings.

    Description
    -----------
    A map of 7 by 6 cells with walls, three flags and a goal. The goal pays the number of flags collected, so detours
    are worthwhile; afterwards the flags return to their cells. With a discount factor of 0.95, collecting all of them
    is not optimal.

    States
    ------
    264 = 33 free cells times 8 sets of flags: 8 * cell + flags. Cells are numbered by column from the left and,
    within a column, from the top. Flags are bits: 1 for the flag at (0, 5), 2 for (2, 0) and 4 for (6, 4), given as
    (column, row).

    Actions
    -------
    0 up, 1 right, 2 down, 3 left.

    Transitions
    -----------
    The chosen direction is taken with probability 0.9, each of the two perpendicular ones with 0.05; a blocked move
    leaves the agent where it is. The agent collects a flag whenever a step ends in the flag's cell, even by bumping
    into a wall there. Any action in the goal leads to the start without flags.

    Rewards
    -------
    R(s, a): in the goal, the number of flags collected, for any action.

    Start
    -----
    The upper left cell without flags, state 0. The task is continuing; the paper runs it for 20 000 steps.

    Reference
    ---------
    R. Dearden, N. Friedman, S. Russell (1998), Bayesian Q-learning, AAAI.

    Examples
    --------
    >>> env = maze()
    >>> env
    Environment('maze', 264 states, 4 actions, start 0, horizon 20000)
    >>> env.state_label(7)
    '(0, 0), flags 1+2+4'
    """
    board = np.array([line.split() for line in FLAG_MAP.splitlines()]).T  # [x, y]
    cells = [(x, y) for x, y in np.ndindex(board.shape) if board[x, y] != "X"]
    flags = {cell: 1 << i for i, cell in enumerate(cell for cell in cells if board[cell] == "$")}
    goal = next(s for s, cell in enumerate(cells) if board[cell] == "G")
    flag = np.array([flags.get(cell, 0) for cell in cells])
    ahead, held = cell_neighbours(cells)[:, None], np.arange(8)
    neighbours = 8 * ahead + (held[:, None] | flag[ahead])  # [cell, flags, direction]
    neighbours[goal] = 0  # to the start without flags
    rewards = np.zeros((len(cells), 8, 4))
    rewards[goal] = [[n.bit_count()] for n in range(8)]
    labels = [f"{cell}, {_holding(n)}" for cell in cells for n in range(8)]
    moves = slippery_moves(neighbours.reshape(-1, 4), MAZE_SLIP)
    mdp = FiniteMDP(moves, rewards.reshape(-1, 4), state_labels=labels, action_labels=DIRECTIONS)
    walls = [cell for cell in np.ndindex(board.shape) if board[cell] == "X"]
    marks = [Mark("start", *cells[0]), Mark("goal", *cells[goal])]
    marks += [Mark("flag", *cell, bit) for cell, bit in flags.items()]
    width, height = board.shape
    layers = np.tile(held, len(cells))
    places = [cell for cell in cells for _ in held]
    layout = grid_layout(width, height, places, walls=walls, marks=marks, layers=layers)
    return Environment("maze", mdp, horizon=20_000, time_limit=1.5, layout=layout)


def _holding(flags: int) -> str:
    held = [str(1 << bit) for bit in range(3) if flags >> bit & 1]
    return "no flags" if not held else f"flag{'s' if len(held) > 1 else ''} {'+'.join(held)}"


@environment
def maze_door(door: Literal["open", "closed", "random"] = "random") -> Environment:
    """A small maze with two paths to the goal, one of them through a door that may be closed.

    Description
    -----------
    A wall separates the start from the goal. The upper path around it is always free. The lower path is shorter but
    leads through a door that is either open or closed for the whole run; the agent can find out only by trying it. With
    the two models of `maze_door_models` as its prior, an agent has one bit to learn, and the cost of learning it can be
    computed exactly.

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
    The chosen direction is taken with probability 0.9, each of the two perpendicular ones with 0.05; a blocked move
    leaves the agent where it is. A closed door blocks the doorway from both sides. Any action in the goal leads to the
    start with certainty.

    Rewards
    -------
    R(s, a): 1 for any action in the goal.

    Start
    -----
    State 0. The task is continuing. With ``door="random"``, each `reset` opens the door with probability 1/2, using the
    run's random stream; `Environment.mdp` is then the true model of the current run (before the first run, the model
    with the open door).

    Reference
    ---------
    A. Guez, D. Silver, P. Dayan (2012), Efficient Bayes-adaptive reinforcement learning using sample-based
    search, NIPS: the program published with it.

    Parameters
    ----------
    door : {"open", "closed", "random"}, default "random"
        State of the door.

    Examples
    --------
    >>> maze_door("closed").mdp.row(4, 1)
    (array([3, 4]), array([0.05, 0.95]))
    >>> env = maze_door()
    >>> open_door, _ = maze_door_models()
    >>> [env.reset(seed=seed) or env.mdp == open_door for seed in range(4)]
    [False, False, True, True]
    """
    draw, mdp = _random_door if door == "random" else None, _door_model(door != "closed")
    return Environment("maze_door", mdp, time_limit=0.25, layout=_door_layout, draw_model=draw)


def maze_door_models() -> tuple[FiniteMDP, FiniteMDP]:
    """Return the two models of `maze_door`, (open, closed), for a prior over a finite set of models.

    Examples
    --------
    >>> open_door, closed_door = maze_door_models()
    >>> open_door.row(4, 1)[0].tolist(), closed_door.row(4, 1)[0].tolist()
    ([3, 4, 6], [3, 4])
    """
    return _door_model(True), _door_model(False)


def _random_door(u: float) -> FiniteMDP:
    return _door_model(u < 0.5)


@cache
def _door_model(is_open: bool) -> FiniteMDP:
    neighbours = cell_neighbours(DOOR_CELLS)
    if not is_open:
        neighbours = np.where(neighbours == DOOR, np.arange(17)[:, None], neighbours)
    neighbours[DOOR_GOAL] = 0  # to the start
    rewards = np.zeros((17, 4))
    rewards[DOOR_GOAL] = 1.0
    labels = [str(cell) for cell in DOOR_CELLS]
    moves = slippery_moves(neighbours, MAZE_SLIP)
    return FiniteMDP(moves, rewards, state_labels=labels, action_labels=DIRECTIONS)


def _door_layout(mdp: FiniteMDP) -> Layout:
    door = "door_open" if mdp == _door_model(True) else "door_closed"
    marks = [Mark(kind, *DOOR_CELLS[s]) for s, kind in ((0, "start"), (DOOR_GOAL, "goal"), (DOOR, door))]
    walls = [(int(x), int(y)) for y, x in np.argwhere(DOOR_MAP < 0)]
    height, width = DOOR_MAP.shape
    return grid_layout(width, height, DOOR_CELLS, walls=walls, marks=marks)
