"""Whole models from a belief, written into preallocated rows: a posterior draw, or the posterior mean."""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import inner, kernel
from bamdp._kernels.rows import Rows
from bamdp.beliefs import verbs


def empty_rows(n_rows: int, room: int) -> Rows:
    """Rows to be filled: none drawn yet."""
    return Rows(
        span=np.full((n_rows, 2), -1, np.int64),
        index=np.empty(room, np.int32),
        prob=np.empty(room),
        background=np.zeros(n_rows),
        reward=np.zeros(n_rows),
    )


@kernel
def sample_model(T, R, space, rows, rng):
    """A whole model from the posterior into ``rows``; returns the used entries, or NO_ROOM."""
    n_states, n_actions = space.allowed.shape
    choice = verbs.choose(T, rng)
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if space.terminal[s] or not space.allowed[s, a]:
                skip_row(rows, row, at)
                continue
            end, background = verbs.sample_row(T, choice, row, rows.index, rows.prob, at, rng)
            if end == verbs.NO_ROOM:
                return end
            rows.span[row, 0] = at
            rows.span[row, 1] = end
            rows.background[row] = background
            rows.reward[row] = verbs.sample_reward(
                R, choice, row, rows.index, rows.prob, at, end, background, rng
            )
            at = end
    return at


@kernel
def mean_model(T, R, space, rows):
    """The posterior mean model into ``rows``; returns the used entries, or NO_ROOM."""
    n_states, n_actions = space.allowed.shape
    at = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if space.terminal[s] or not space.allowed[s, a]:
                skip_row(rows, row, at)
                continue
            end, background = verbs.mean_row(T, row, rows.index, rows.prob, at)
            if end == verbs.NO_ROOM:
                return end
            rows.span[row, 0] = at
            rows.span[row, 1] = end
            rows.background[row] = background
            rows.reward[row] = verbs.expected_reward(R, row, rows.index, rows.prob, at, end, background)
            at = end
    return at


@inner
def skip_row(rows, row, at):
    """A row of a terminal state or of an action that does not exist: empty."""
    rows.span[row, 0] = at
    rows.span[row, 1] = at
    rows.background[row] = 0.0
    rows.reward[row] = 0.0
