"""Dearden's maze: flags to fetch on the way to a goal that pays for them."""

from __future__ import annotations

import numpy as np

from bamdp.envs.environment import Environment
from bamdp.envs.layout import DIRECTIONS, GRID_MOVES, Mark, grid_layout, slippery_moves
from bamdp.mdp import FiniteMDP

_MAP = """\
. X $ . X . G
. X . . X . .
. . . . . . .
X X . . . X X
. . . . . . $
$ . . . . . X"""  # X a wall, $ a flag, G the goal; the start is in the upper left corner
_SLIP = 0.1


def maze() -> Environment:
    """A maze with three flags: the goal pays for each flag that is carried there.

    Description
    -----------
    A map of 7 by 6 cells with walls, three flags and a goal. The goal pays the number of flags held, so that
    detours are worth their way; after it the flags are back in their places. A discount of 0.95 is too
    impatient to fetch all of them.

    States
    ------
    264 = 33 free cells times 8 sets of flags: 8 * cell + flags. Cells are numbered column by column from the
    left, each from the top. Flags are bits: 1 for the one at (0, 5), 2 for (2, 0), 4 for (6, 4), as (column,
    row).

    Actions
    -------
    0 up, 1 right, 2 down, 3 left.

    Transitions
    -----------
    The chosen direction is taken with probability 0.9, each of the two beside it with 0.05; a blocked move
    stays. A flag is held from whenever the cell arrived at is its cell, so bumping into a wall there takes it
    too. Any action in the goal leads to the start without flags.

    Rewards
    -------
    R(s, a): in the goal the number of flags held, for any action.

    Start
    -----
    The upper left cell without flags, state 0. The world never ends; the paper runs it for 20000 steps.

    Reference
    ---------
    R. Dearden, N. Friedman, S. Russell (1998), Bayesian Q-learning, AAAI.

    Examples
    --------
    >>> env = maze()
    >>> env
    Environment('maze', 264 states, 4 actions, start 0, horizon 20000)
    >>> print(env.render())
    maze · state 0: (0, 0), no flags
    <BLANKLINE>
    ┌─────────────────────┐
    │ @ ███ ⚑  · ███ ·  G │
    │ · ███ ·  · ███ ·  · │
    │ ·  ·  ·  ·  ·  ·  · │
    │██████ ·  ·  · ██████│
    │ ·  ·  ·  ·  ·  ·  ⚑ │
    │ ⚑  ·  ·  ·  ·  · ███│
    └─────────────────────┘
    """
    rows = [line.split() for line in _MAP.splitlines()]
    height, width = len(rows), len(rows[0])
    places = [(x, y) for x in range(width) for y in range(height)]
    cells = [(x, y) for x, y in places if rows[y][x] != "X"]
    flags = {place: 1 << i for i, place in enumerate((x, y) for x, y in places if rows[y][x] == "$")}
    goal = next((x, y) for x, y in places if rows[y][x] == "G")
    number = {cell: i for i, cell in enumerate(cells)}
    neighbours = np.zeros((len(cells) * 8, 4), np.int64)  # zeros: from the goal to the start without flags
    for cell in (c for c in cells if c != goal):
        for direction, (dx, dy) in enumerate(GRID_MOVES):
            ahead = (cell[0] + dx, cell[1] + dy)
            ahead = ahead if ahead in number else cell
            held = np.arange(8)
            neighbours[8 * number[cell] + held, direction] = 8 * number[ahead] + (held | flags.get(ahead, 0))
    rewards = np.zeros((len(neighbours), 4))
    rewards[8 * number[goal] + np.arange(8)] = [[held.bit_count()] for held in range(8)]
    return Environment(
        "maze",
        FiniteMDP(
            slippery_moves(neighbours, _SLIP),
            rewards,
            state_labels=[f"{cell}, {_holding(held)}" for cell in cells for held in range(8)],
            action_labels=DIRECTIONS,
        ),
        horizon=20_000,
        time_limit=1.5,
        layout=grid_layout(
            width,
            height,
            np.repeat(cells, 8, axis=0).tolist(),
            walls=[place for place in places if place not in number],
            marks=(
                Mark("start", *cells[0]),
                Mark("goal", *goal),
                *(Mark("flag", *place, bit=bit) for place, bit in flags.items()),
            ),
            layers=np.tile(np.arange(8), len(cells)),
        ),
    )


def _holding(flags: int) -> str:
    held = [str(1 << bit) for bit in range(3) if flags >> bit & 1]
    return "no flags" if not held else f"flag{'s' if len(held) > 1 else ''} {'+'.join(held)}"
