"""Storage for the statistics of reward models: one cell for each pair (s, a), or for each (s, a, s').

A cell is created with its first reward, so memory grows with the data. The cells of a row form a linked list, newest
first: a single cell if rewards are by pair, one for each observed next state if they are by next state. A push logs the
old statistics and a pop restores them, so undoing is bit-for-bit exact. A cell created by a push is the last in the
table and the first in its row's list, so the pop only has to unlink it.

Rows that lead from the end of an episode to the next start are known to pay nothing: they are FREE.

A reward model registers its computations for one cell (:func:`cell_mean`, :func:`cell_variance`, :func:`cell_sample`).
The computations for a row, whose next state has some distribution P, are the same for all models;
:func:`stored_in_cells` registers them. With independent cells,

    E[r | row] = Σ P(s') m(s'),        Var = Σ P(s')² v(s'),        sampled: Σ P(s') μ(s').
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import generic, primitive
from bamdp._kernels.rows import is_listed
from bamdp.beliefs.base import (
    fix_zero_reward,
    longer,
    posterior_part,
    register_methods,
    reserve,
)

State = TypeVar("State", bound=type)
NO_CELL = -1  # no cell: no reward observed
FREE = -2  # no cell: the row is known to pay nothing
NEXT_STATE, AFTER = 0, 1  # columns of Cells.link
LOGGED_CELL, LOGGED_ROW = 0, 1  # columns of Cells.log
USED, LOGGED = 0, 1  # entries of Cells.top
SMALL_MASS = 1e-9  # background mass up to this gets the mean reward, not a separate draw for each next state


@posterior_part(learned=("stats", "link", "head", "top"))
class Cells(NamedTuple):
    """Arrays of the cells. Push and pop write to ``stats``, ``link``, ``head``, ``log``, ``old`` and ``top``."""

    stats: np.ndarray  # float64 [capacity, W]: statistics of each cell, defined by the model
    link: np.ndarray  # int64 [capacity, 2]: next state (0 if rewards are by pair), next cell or NO_CELL
    head: np.ndarray  # int64 [S*A]: first cell of each row, NO_CELL or FREE
    start: np.ndarray  # float64 [W]: prior statistics of a cell
    log: np.ndarray  # int64 [depth, 2]: cell of a push (or FREE), its row if newly created, else NO_CELL
    old: np.ndarray  # float64 [depth, W]: its statistics before the push
    top: np.ndarray  # int64 [2]: number of cells, length of the log
    next_step: int  # 1 if rewards are by next state, 0 if by pair
    n_states: int


def empty_cells(n_states: int, n_actions: int, start: list[float], by_next: bool) -> Cells:
    """Return storage without any cells; ``start`` holds the prior statistics of a cell."""
    width = len(start)
    return Cells(
        stats=np.zeros((64, width)),
        link=np.zeros((64, 2), np.int64),
        head=np.full(n_states * n_actions, NO_CELL, np.int64),
        start=np.array(start, float),
        log=np.zeros((64, 2), np.int64),
        old=np.zeros((64, width)),
        top=np.zeros(2, np.int64),
        next_step=int(by_next),
        n_states=n_states,
    )


@reserve.register(Cells)
def _reserve(cells: Cells, depth: int) -> Cells:
    used, logged = (int(x) + depth for x in cells.top)
    return cells._replace(
        stats=longer(cells.stats, used),
        link=longer(cells.link, used),
        log=longer(cells.log, logged),
        old=longer(cells.old, logged),
    )


# --- one cell -----------------------------------------------------------------------------------------------


@generic
def cell_mean(R, row, cell):
    """Return the posterior mean of a cell's expected reward; for NO_CELL, that of a cell without data."""


@generic
def cell_variance(R, row, cell):
    """Return the posterior variance of a cell's expected reward; for NO_CELL, that of a cell without data."""


@generic
def cell_sample(R, row, cell, rng):
    """Draw a cell's expected reward from its posterior; for NO_CELL, that of a cell without data."""


@primitive
def find_cell(cells, row, s2):
    """Return the cell for a reward after ``row`` → ``s2``, or NO_CELL or FREE."""
    cell = cells.head[row]
    while cell >= 0 and cells.link[cell, NEXT_STATE] != s2 * cells.next_step:
        cell = cells.link[cell, AFTER]
    return cell


@primitive
def statistic(cells, cell, i):
    """Return the i-th statistic of a cell; for NO_CELL, its prior value."""
    return cells.start[i] if cell == NO_CELL else cells.stats[cell, i]


@primitive
def open_cell(cells, row, s2):
    """Log a push and return the cell to update, created if necessary, or FREE."""
    cell = find_cell(cells, row, s2)
    entry = cells.top[LOGGED]
    cells.top[LOGGED] = entry + 1
    cells.log[entry, LOGGED_ROW] = NO_CELL
    if cell == NO_CELL:
        cell = cells.top[USED]
        cells.top[USED] = cell + 1
        cells.link[cell, NEXT_STATE] = s2 * cells.next_step
        cells.link[cell, AFTER] = cells.head[row]
        cells.head[row] = cell
        for i in range(cells.start.shape[0]):
            cells.stats[cell, i] = cells.start[i]
        cells.log[entry, LOGGED_ROW] = row
    elif cell != FREE:
        for i in range(cells.start.shape[0]):
            cells.old[entry, i] = cells.stats[cell, i]
    cells.log[entry, LOGGED_CELL] = cell
    return cell


@primitive
def undo_cell(cells):
    """Undo the last push."""
    entry = cells.top[LOGGED] - 1
    cells.top[LOGGED] = entry
    cell, row = cells.log[entry, LOGGED_CELL], cells.log[entry, LOGGED_ROW]
    if cell == FREE:
        return
    if row != NO_CELL:
        cells.head[row] = cells.link[cell, AFTER]
        cells.top[USED] = cell
        return
    for i in range(cells.start.shape[0]):
        cells.stats[cell, i] = cells.old[entry, i]


# --- a row --------------------------------------------------------------------------------------------------


def expected_reward(R, row, index, prob, begin, end, background):
    """Return E[r | row] for the distribution at ``begin:end`` plus background.

    The sum starts from the mean of a cell without data and adds a correction for each cell.
    """
    head = R.cells.head[row]
    if head == FREE:
        return 0.0
    if R.cells.next_step == 0 or head == NO_CELL:
        return cell_mean(R, row, head)
    unseen = cell_mean(R, row, NO_CELL)
    total = unseen
    for i in range(begin, end):
        cell = find_cell(R.cells, row, np.int64(index[i]))
        if cell != NO_CELL:
            total += prob[i] * (cell_mean(R, row, cell) - unseen)
    if background > 0.0:
        share = background / R.cells.n_states
        cell = head
        while cell != NO_CELL:
            total += share * (cell_mean(R, row, cell) - unseen)
            cell = R.cells.link[cell, AFTER]
    return total


def reward_variance(R, row, index, prob, begin, end, background):
    """Return the variance of E[r | row] for the distribution at ``begin:end`` plus background."""
    head = R.cells.head[row]
    if head == FREE:
        return 0.0
    if R.cells.next_step == 0:
        return cell_variance(R, row, head)
    share = background / R.cells.n_states
    unseen = cell_variance(R, row, NO_CELL)
    total = (R.cells.n_states - (end - begin)) * share * share * unseen
    for i in range(begin, end):
        p = prob[i] + share
        total += p * p * cell_variance(R, row, find_cell(R.cells, row, np.int64(index[i])))
    cell = head if share > 0.0 else np.int64(NO_CELL)
    while cell != NO_CELL:  # next states seen but not listed
        if not is_listed(index, begin, end, R.cells.link[cell, NEXT_STATE]):
            total += share * share * (cell_variance(R, row, cell) - unseen)
        cell = R.cells.link[cell, AFTER]
    return total


def sample_reward(R, choice, row, index, prob, begin, end, background, rng):
    """Return E[r | row] in a sampled model with the distribution at ``begin:end`` plus background."""
    head = R.cells.head[row]
    if head == FREE:
        return 0.0
    if R.cells.next_step == 0:
        return cell_sample(R, row, head, rng)
    everywhere = background > SMALL_MASS
    share = background / R.cells.n_states if everywhere else 0.0
    total = 0.0 if everywhere else background * cell_mean(R, row, NO_CELL)
    for i in range(begin, end):
        cell = find_cell(R.cells, row, np.int64(index[i]))
        total += (prob[i] + share) * cell_sample(R, row, cell, rng)
    if everywhere:
        for s2 in range(R.cells.n_states):
            if not is_listed(index, begin, end, s2):
                total += share * cell_sample(R, row, find_cell(R.cells, row, s2), rng)
    return total


def pop_reward(R):
    undo_cell(R.cells)


def commit_reward(R, row):
    R.cells.top[LOGGED] = 0


def _fix_zero_reward(R: Any, row: int) -> None:
    R.cells.head[row] = FREE


def stored_in_cells(cls: State) -> State:
    """Register the verbs and declarations that all posteriors with ``cells`` share."""
    if "low" in cls._fields:  # type: ignore[attr-defined]
        cls.reward_range = property(lambda R: (R.low, R.high))  # type: ignore[attr-defined]
    cls.by_next_state = property(lambda R: R.cells.next_step == 1)  # type: ignore[attr-defined]
    shared = expected_reward, reward_variance, sample_reward, pop_reward, commit_reward
    register_methods(cls, {**globals(), **vars(verbs)}, *shared)
    fix_zero_reward.register(cls)(_fix_zero_reward)
    return cls
