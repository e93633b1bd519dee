"""From what users hold to :class:`~bamdp._kernels.rows.Rows`: readers of each input form, and all the checks.

Every reader yields the same thing, a :class:`Table` of nonzero entries, in time and memory proportional to
the entries that it is given; no sparse input is ever made dense. What counts as a valid model:

- each row (state, action) that can be used has finite, nonnegative entries which sum to 1 within
  1e-8; they are kept as given, not rescaled;
- rows of terminal states and of masked actions are never used: whatever is written there is dropped unread;
- rewards are finite wherever a row is used; each state that is not terminal has at least one action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.rows import Rows, Space
from bamdp.mdp.validate import check_entries, check_space, check_sums, entry_positions, row_name, used_rows


class Table(NamedTuple):
    """The nonzero entries of a model, in any order."""

    n_states: int
    n_actions: int
    row: np.ndarray  # int64 [n]: s * A + a
    state: np.ndarray  # int64 [n]: next states
    prob: np.ndarray  # float64 [n]


def read_table(transitions: Any) -> Table:
    """Read dense ``[S, A, S]`` or SciPy sparse transitions."""
    if _is_sparse(transitions):
        return _read_stacked(transitions)
    if isinstance(transitions, Sequence) and len(transitions) and all(_is_sparse(m) for m in transitions):
        return _read_sparse(transitions)
    return _read_dense(transitions)


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def _read_dense(transitions: Any) -> Table:
    array = as_floats(transitions, "transitions")
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise ValueError(
            f"transitions must have shape [S, A, S], got {list(array.shape)}; "
            "arrays in the order [A, S, S] need np.swapaxes(transitions, 0, 1)"
        )
    n_states, n_actions, _ = array.shape
    s, a, state = np.nonzero(array)
    return Table(n_states, n_actions, s * n_actions + a, state, array[s, a, state])


def _read_sparse(matrices: Sequence[Any]) -> Table:
    shape = matrices[0].shape
    n_actions = len(matrices)
    for a, matrix in enumerate(matrices):
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape != shape:
            raise ValueError(
                f"transitions[{a}] has shape {list(matrix.shape)}; a list of sparse matrices "
                "must hold one [S, S] matrix an action"
            )
    parts = [m.tocoo() for m in matrices]
    row = np.concatenate([np.asarray(m.row, np.int64) * n_actions + a for a, m in enumerate(parts)])
    state = np.concatenate([np.asarray(m.col, np.int64) for m in parts])
    prob = np.concatenate([as_floats(m.data, "transitions") for m in parts])
    return Table(shape[0], n_actions, row, state, prob)


def _read_stacked(matrix: Any) -> Table:
    height, n_states = matrix.shape if len(matrix.shape) == 2 else (0, 0)
    if n_states == 0 or height == 0 or height % n_states:
        raise ValueError(
            f"a single sparse matrix must have shape [S*A, S] with row s*A + a, got {list(matrix.shape)}"
        )
    coo = matrix.tocoo()
    prob = as_floats(coo.data, "transitions")
    return Table(
        n_states, height // n_states, np.asarray(coo.row, np.int64), np.asarray(coo.col, np.int64), prob
    )


def as_floats(values: Any, name: str) -> np.ndarray:
    """``values`` as float64, or a TypeError that says what they are."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers ({error})") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got an array of {array.dtype}")
    return array.astype(np.float64)


def read_space(n_states: int, n_actions: int, terminal: Any, action_mask: Any) -> Space:
    """Terminal states (a mask, or a list of states) and allowed actions (``[S, A]``, or ``[A]`` for all)."""
    ends = np.zeros(n_states, dtype=np.bool_)
    if terminal is not None:
        given = np.asarray(terminal)
        if given.dtype == np.bool_:
            if given.shape != (n_states,):
                raise ValueError(f"terminal must have shape [{n_states}], got {list(given.shape)}")
            ends[:] = given
        elif given.size:
            if given.dtype.kind not in "iu" or given.ndim != 1:
                raise TypeError("terminal must be a bool mask [S] or a list of state numbers")
            if given.min() < 0 or given.max() >= n_states:
                raise ValueError(f"terminal names a state outside 0..{n_states - 1}")
            if len(np.unique(given)) < len(given):
                raise ValueError("terminal names a state twice; if it is a mask, let it be of booleans")
            ends[given] = True
    allowed = np.ones((n_states, n_actions), dtype=np.bool_)
    if action_mask is not None:
        mask = np.asarray(action_mask)
        if mask.dtype != np.bool_ and not (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all()):
            raise TypeError("action_mask must be bool: True where an action exists")
        if mask.shape not in ((n_states, n_actions), (n_actions,)):
            raise ValueError(f"action_mask must have shape [{n_states}, {n_actions}], got {list(mask.shape)}")
        allowed[:] = mask.astype(np.bool_)
    space = Space(ends, allowed)
    check_space(space)
    return space


def pack(table: Table, space: Space) -> Rows:
    """Check the entries and lay them out row by row, next states rising, duplicates summed; reward is 0."""
    n_rows = table.n_states * table.n_actions
    if table.n_states > np.iinfo(np.int32).max:
        raise ValueError(f"at most {np.iinfo(np.int32).max} states are supported, got {table.n_states}")
    live = used_rows(space)
    keep = live[table.row]
    row, state, prob = table.row[keep], table.state[keep], table.prob[keep]
    check_entries(row, state, prob, table.n_states, table.n_actions)
    row, state, prob = merge(row, state, prob, table.n_states)
    sums = np.bincount(row, weights=prob, minlength=n_rows)
    check_sums(sums, live, table.n_actions)
    ends = np.cumsum(np.bincount(row, minlength=n_rows))
    span = np.zeros((n_rows, 2), dtype=np.int64)
    span[:, 1] = ends
    span[1:, 0] = ends[:-1]
    return Rows(span, state.astype(np.int32), prob, np.zeros(n_rows), np.zeros(n_rows))


def merge(row: np.ndarray, state: np.ndarray, prob: np.ndarray, n_states: int) -> tuple[np.ndarray, ...]:
    """Entries sorted by (row, next state), with duplicates summed and zeros dropped."""
    key = row * n_states + state
    if key.size > 1 and not (np.diff(key) > 0).all():
        key, where = np.unique(key, return_inverse=True)
        prob = np.bincount(where, weights=prob, minlength=key.size)
    keep = prob != 0.0
    row, state = np.divmod(key[keep], n_states)
    return row, state, prob[keep]


def read_rewards(rewards: Any, rows: Rows, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """(rewards as given but checked, expected rewards ``[S*A]`` that are 0 on unused rows)."""
    n_states, n_actions = space.allowed.shape
    given = as_floats(rewards, "rewards")
    shapes = [(n_states,), (n_states, n_actions), (n_states, n_actions, n_states)]
    if given.shape not in shapes:
        raise ValueError(
            f"rewards must have shape {' or '.join(str(list(s)) for s in shapes)}, got {list(given.shape)}"
        )
    live = used_rows(space)
    finite = np.isfinite(given)
    if given.ndim == 3:
        finite = finite.all(axis=2)
    wrong = (
        live & ~np.broadcast_to(finite if given.ndim > 1 else finite[:, None], space.allowed.shape).ravel()
    )
    if wrong.any():
        raise ValueError(
            f"reward of row {row_name(np.argmax(wrong), n_actions)} is not finite; "
            "use action_mask for actions that do not exist, not an infinite reward"
        )
    given[~np.isfinite(given)] = 0.0  # what is left of those stands in rows that are never used
    if given.ndim == 3:
        row, position = entry_positions(rows.span)
        flat = given.reshape(-1, n_states)
        expected = np.bincount(
            row, weights=rows.prob[position] * flat[row, rows.index[position]], minlength=live.size
        )
        spread = np.flatnonzero(rows.background)
        expected[spread] += rows.background[spread] * flat[spread].mean(axis=1)
    else:
        expected = np.repeat(given, n_actions) if given.ndim == 1 else given.ravel().copy()
    expected[~live] = 0.0
    given.flags.writeable = False
    return given, expected


def read_labels(labels: Any, name: str, size: int) -> tuple[str, ...] | None:
    """Labels as a tuple of ``size`` strings, or None."""
    if labels is None:
        return None
    if isinstance(labels, str | Mapping):
        raise TypeError(f"{name} must be a sequence of {size} strings, got {labels!r}")
    names = tuple(str(label) for label in labels)
    if len(names) != size:
        raise ValueError(f"{name} must have {size} entries, got {len(names)}")
    return names
