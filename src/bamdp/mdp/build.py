"""Validation and conversion of users' arrays to models (:class:`~bamdp._kernels.rows.Rows`).

Each reader returns the nonzero entries in time and memory proportional to its input, without converting sparse input to
dense arrays. A model is valid if every usable row (state, action) has finite rewards and finite, nonnegative entries
that sum to 1 within ``SUM_TOLERANCE`` (stored unchanged), and if each nonterminal state has an action. Rows of terminal
states and masked actions are never used, so their contents are dropped. Errors name the first invalid row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows, Space

SUM_TOLERANCE = 1e-8
ROW_BYTES, ENTRY_BYTES = 64, 80  # approximate memory needed to build a model


class ModelEntries(NamedTuple):
    """The nonzero entries of a model, in any order."""

    n_states: int
    n_actions: int
    row: np.ndarray  # int64 [n]: s * A + a
    state: np.ndarray  # int64 [n]: next states
    prob: np.ndarray  # float64 [n]


def read_transitions(transitions: Any) -> ModelEntries:
    """Read dense transitions ``[S, A, S]`` or SciPy sparse ones (a list of ``[S, S]``, or one ``[S*A, S]``)."""
    if _is_sparse(transitions):
        shape = transitions.shape
        if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
            raise ValueError(
                f"a single sparse matrix must have shape [S*A, S] with row s*A + a, got {list(shape)}"
            )
        return _read_sparse([transitions], shape[1], shape[0] // shape[1], step=1)
    if isinstance(transitions, Sequence) and len(transitions) and all(map(_is_sparse, transitions)):
        size = int(transitions[0].shape[0])
        for a, matrix in enumerate(transitions):
            if matrix.shape != (size, size):
                raise ValueError(
                    f"transitions[{a}] has shape {list(matrix.shape)}; give one [S, S] per action"
                )
        return _read_sparse(transitions, size, len(transitions), step=len(transitions))
    array = _checks.numbers(transitions, "transitions")
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise ValueError(
            f"transitions must have shape [S, A, S], got {list(array.shape)}; "
            "arrays in the order [A, S, S] need np.swapaxes(transitions, 0, 1)"
        )
    n_states, n_actions = int(array.shape[0]), int(array.shape[1])
    check_size(n_states, n_actions, int(np.count_nonzero(array)))
    s, action, state = np.nonzero(array)
    return ModelEntries(n_states, n_actions, s * n_actions + action, state, array[s, action, state])


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def _read_sparse(matrices: Sequence[Any], n_states: int, n_actions: int, step: int) -> ModelEntries:
    """Read matrices; row i of matrix a becomes row ``i * step + a`` of the model."""
    check_size(n_states, n_actions, sum(m.nnz for m in matrices))
    parts = [m.tocoo() for m in matrices]
    row = np.concatenate([np.asarray(m.row, np.int64) * step + a for a, m in enumerate(parts)])
    state = np.concatenate([np.asarray(m.col, np.int64) for m in parts])
    prob = np.concatenate([_checks.numbers(m.data, "transitions") for m in parts])
    return ModelEntries(n_states, n_actions, row, state, prob)


def check_size(n_states: int, n_actions: int, n_entries: int) -> None:
    """Raise an error that reports the required size if a model would not fit in memory."""
    _checks.memory(
        ROW_BYTES * n_states * n_actions + ENTRY_BYTES * n_entries,
        f"a model of {n_states} states, {n_actions} actions and {n_entries} entries",
    )


def read_space(n_states: int, n_actions: int, terminal: Any, action_mask: Any) -> Space:
    """Read the terminal states (a mask ``[S]``, a list, or None) and the action mask (``[S, A]``, ``[A]`` or None)."""
    space = Space(np.zeros(n_states, np.bool_), np.ones((n_states, n_actions), np.bool_))
    states = np.asarray([] if terminal is None else terminal)
    if states.dtype == np.bool_:
        if states.shape != (n_states,):
            raise ValueError(f"terminal must have shape [{n_states}], got {list(states.shape)}")
        space.terminal[:] = states
    elif states.size:
        if states.dtype.kind not in "iu" or states.ndim != 1:
            raise TypeError("terminal must be a bool mask [S] or a list of state numbers")
        if states.min() < 0 or states.max() >= n_states:
            raise ValueError(f"terminal names a state outside 0..{n_states - 1}")
        if len(np.unique(states)) < len(states):
            raise ValueError("terminal names a state twice; if it is a mask, make it one of booleans")
        space.terminal[states] = True
    if action_mask is not None:
        mask = np.asarray(action_mask)
        if mask.dtype != np.bool_ and not (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all()):
            raise TypeError("action_mask must be bool: True where an action exists")
        if mask.shape not in ((n_states, n_actions), (n_actions,)):
            raise ValueError(f"action_mask must have shape [{n_states}, {n_actions}], got {list(mask.shape)}")
        space.allowed[:] = mask
    stuck = np.flatnonzero(~space.terminal & ~space.allowed.any(axis=1))
    if stuck.size:
        raise ValueError(f"state {stuck[0]} has every action masked; allow one, or mark the state terminal")
    return space


def read_rewards(rewards: Any, rows: Rows, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return validated, read-only rewards ``[S]``, ``[S, A]`` or ``[S, A, S]``, and their expectations ``[S*A]``."""
    S, A = space.allowed.shape
    array = _checks.numbers(rewards, "rewards")
    shapes = [(S,), (S, A), (S, A, S)]
    if array.shape not in shapes:
        named = " or ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"rewards must have shape {named}, got {list(array.shape)}")
    used = used_rows(space)
    finite = (
        np.isfinite(array).reshape(S, -1 if array.ndim > 1 else 1, S if array.ndim == 3 else 1).all(axis=2)
    )
    invalid = used & ~np.broadcast_to(finite, (S, A)).ravel()
    cure = "has a reward that is not finite; use action_mask for actions that do not exist"
    _refuse_entry(invalid, np.arange(S * A), A, lambda row: cure)
    array[~np.isfinite(array)] = 0.0  # the remaining ones belong to unused rows
    if array.ndim == 3:
        row, state, prob = row_entries(rows)
        flat = array.reshape(-1, S)
        expected = np.bincount(row, weights=prob * flat[row, state], minlength=used.size)
        spread = np.flatnonzero(rows.background)
        expected[spread] += rows.background[spread] * flat[spread].mean(axis=1)
    else:
        expected = np.repeat(array, A) if array.ndim == 1 else array.ravel().copy()
    expected[~used] = 0.0
    array.flags.writeable = False
    return array, expected


def read_labels(labels: Any, name: str, size: int) -> tuple[str, ...] | None:
    """Return labels as a tuple of ``size`` strings, or None if there are none."""
    if labels is None:
        return None
    if isinstance(labels, str | Mapping):
        raise TypeError(f"{name} must be a sequence of {size} strings, got {labels!r}")
    names = tuple(map(str, labels))
    if len(names) != size:
        raise ValueError(f"{name} must have {size} entries, got {len(names)}")
    return names


def used_rows(space: Space) -> np.ndarray:
    """Return a mask of usable rows, bool ``[S*A]``, excluding terminal states and masked actions."""
    return (space.allowed & ~space.terminal[:, None]).ravel()


def entry_positions(span: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the position in ``index`` and ``prob`` of each entry, row by row, for any spans."""
    counts = span[:, 1] - span[:, 0]
    row = np.repeat(np.arange(span.shape[0]), counts)
    first = np.cumsum(counts) - counts
    return row, np.arange(row.size) + (span[:, 0] - first)[row]


def row_entries(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, next state, probability) of each entry, row by row."""
    row, position = entry_positions(rows.span)
    return row, rows.index[position], rows.prob[position]


def row_sums(rows: Rows) -> np.ndarray:
    """Return the row sums of a model, including the background, ``[S*A]``."""
    sums = rows.background.copy()
    filled = np.flatnonzero(rows.span[:, 1] > rows.span[:, 0])
    if len(filled):
        sums[filled] += np.add.reduceat(rows.prob, rows.span[filled, 0])
    return sums


def merge_entries(
    row: np.ndarray, state: np.ndarray, prob: np.ndarray, n_states: int
) -> tuple[np.ndarray, ...]:
    """Return (row, state, prob) sorted by row and next state, with duplicates summed and zeros dropped."""
    key = row * n_states + state
    if key.size > 1 and not (key[1:] > key[:-1]).all():
        key, where = np.unique(key, return_inverse=True)
        prob = np.bincount(where, weights=prob, minlength=key.size)
        row, state = np.divmod(key, n_states)
    keep = prob != 0.0
    return (row, state, prob) if keep.all() else (row[keep], state[keep], prob[keep])


def pack_rows(entries: ModelEntries, space: Space, background: np.ndarray | float = 0.0) -> Rows:
    """Check the entries and store them by row, with ascending next states, summed duplicates and rewards of 0."""
    n_states, n_actions, row, state, prob = entries
    used = used_rows(space)
    if not used.all():
        kept = used[row]
        row, state, prob = row[kept], state[kept], prob[kept]
    _refuse_entry(
        (state < 0) | (state >= n_states),
        row,
        n_actions,
        lambda i: f"leads to state {state[i]}, not in 0..{n_states - 1}",
    )
    _refuse_entry(
        ~(np.isfinite(prob) & (prob >= 0.0)),
        row,
        n_actions,
        lambda i: f"has probability {prob[i]:g} for state {state[i]}, not finite and at least 0",
    )
    row, state, prob = merge_entries(row, state, prob, n_states)
    ends = np.cumsum(np.bincount(row, minlength=used.size))
    span = np.stack([np.append(0, ends[:-1]), ends], axis=1)
    rows = Rows(span, state.astype(np.int32), prob, np.where(used, background, 0.0), np.zeros(used.size))
    sums, every_row = row_sums(rows), np.arange(used.size)
    _refuse_entry(
        used & ~(np.abs(sums - 1.0) <= SUM_TOLERANCE),
        every_row,
        n_actions,
        lambda i: (
            f"sums to {sums[i]:.10g}, not 1; divide it by its sum, or mark the state terminal or the action masked"
        ),
    )
    return rows


def row_name(row: int | np.integer, n_actions: int) -> str:
    """Return the name of a row for error messages."""
    s, a = divmod(int(row), n_actions)
    return f"(state {s}, action {a})"


def _refuse_entry(invalid: np.ndarray, row: np.ndarray, n_actions: int, say: Callable[[int], str]) -> None:
    """Raise an error about the invalid entry with the lowest row; ``say`` returns the message."""
    if invalid.any():
        where = np.flatnonzero(invalid)
        i = int(where[np.argmin(row[where])])
        raise ValueError(f"row {row_name(row[i], n_actions)} {say(i)}")
