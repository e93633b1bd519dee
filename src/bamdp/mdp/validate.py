"""Rows that exist already, and whether they are a model: what :mod:`bamdp.mdp.build` promises, checked.

A message names the first bad row, says what is wrong with it and how to mend it.
"""

from __future__ import annotations

import numpy as np

from bamdp._kernels.rows import Rows, Space

SUM_TOLERANCE = 1e-8


def used_rows(space: Space) -> np.ndarray:
    """Which rows can be used, ``bool [S*A]``: not in terminal states, not masked."""
    return (space.allowed & ~space.terminal[:, None]).ravel()


def entry_positions(span: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row of each entry, its position in ``index`` and ``prob``), row after row, for any spans."""
    counts = span[:, 1] - span[:, 0]
    row = np.repeat(np.arange(span.shape[0]), counts)
    first = np.cumsum(counts) - counts
    return row, np.arange(row.size) + (span[:, 0] - first)[row]


def check_entries(
    row: np.ndarray, state: np.ndarray, prob: np.ndarray, n_states: int, n_actions: int
) -> None:
    """Refuse next states out of range and probabilities that are negative or not finite."""
    outside = (state < 0) | (state >= n_states)
    if outside.any():
        i = _first(outside, row)
        raise ValueError(
            f"row {row_name(row[i], n_actions)} leads to state {state[i]}, but states are 0..{n_states - 1}"
        )
    wrong = ~(np.isfinite(prob) & (prob >= 0.0))
    if wrong.any():
        i = _first(wrong, row)
        raise ValueError(
            f"row {row_name(row[i], n_actions)} has probability {prob[i]:g} for state {state[i]}; "
            "probabilities must be finite and at least 0"
        )


def check_sums(sums: np.ndarray, live: np.ndarray, n_actions: int) -> None:
    """Refuse a usable row that does not sum to 1."""
    wrong = live & ~(np.abs(sums - 1.0) <= SUM_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"row {row_name(row, n_actions)} sums to {sums[row]:.10g}, not 1; "
            "divide it by its sum, or mark the state terminal or the action masked"
        )


def check_rows(rows: Rows, space: Space) -> tuple[Rows, Space]:
    """Check arrays in the common layout, copying only what has another type or must be blanked."""
    allowed = _plain(space.allowed, np.bool_)
    if allowed.ndim != 2:
        raise ValueError(f"space.allowed must have shape [S, A], got {list(allowed.shape)}")
    n_states, n_actions = allowed.shape
    space = Space(_plain(space.terminal, np.bool_), allowed)
    check_space(space)
    types = (np.int64, np.int32, np.float64, np.float64, np.float64)
    rows = Rows(*(_plain(x, t) for x, t in zip(rows, types)))
    n_rows = allowed.size
    for name, shape in (("span", (n_rows, 2)), ("background", (n_rows,)), ("reward", (n_rows,))):
        if getattr(rows, name).shape != shape:
            raise ValueError(
                f"rows.{name} must have shape {list(shape)}, got {list(getattr(rows, name).shape)}"
            )
    live = used_rows(space)
    if not live.all():
        span, background = rows.span.copy(), rows.background.copy()
        span[~live] = 0
        background[~live] = 0.0
        rows = rows._replace(span=span, background=background)
    begin, end = rows.span[:, 0], rows.span[:, 1]
    wrong = (begin < 0) | (end < begin) | (end > min(rows.index.size, rows.prob.size))
    if wrong.any():
        bad = int(np.argmax(wrong))
        raise ValueError(
            f"row {row_name(bad, n_actions)} has the span {begin[bad]}..{end[bad]}; draw it first"
        )
    row, position = entry_positions(rows.span)
    check_entries(row, rows.index[position], rows.prob[position], n_states, n_actions)
    if not (rows.background >= 0.0).all():
        bad = int(np.argmin(rows.background >= 0.0))
        raise ValueError(
            f"row {row_name(bad, n_actions)} has background {rows.background[bad]:g}, not at least 0"
        )
    sums = np.bincount(row, weights=rows.prob[position], minlength=n_rows) + rows.background
    check_sums(sums, live, n_actions)
    return rows, space


def check_space(space: Space) -> None:
    """Refuse terminal states of another shape, and states that are stuck."""
    n_states = space.allowed.shape[0]
    if space.terminal.shape != (n_states,):
        raise ValueError(f"terminal must have shape [{n_states}], got {list(space.terminal.shape)}")
    stuck = np.flatnonzero(~space.terminal & ~space.allowed.any(axis=1))
    if stuck.size:
        raise ValueError(f"state {stuck[0]} has every action masked; allow one, or mark the state terminal")


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array itself if compiled code can take it as it is (contiguous, writable, of this type)."""
    array = np.ascontiguousarray(array, dtype=dtype)
    return array if array.flags.writeable else array.copy()


def _first(wrong: np.ndarray, row: np.ndarray) -> int:
    """The wrong entry with the lowest row."""
    where = np.flatnonzero(wrong)
    return int(where[np.argmin(row[where])])


def row_name(row: int | np.integer, n_actions: int) -> str:
    s, a = divmod(int(row), n_actions)
    return f"(state {s}, action {a})"
