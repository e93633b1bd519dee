"""Read, check and store models: from the arrays that users have to :class:`~bamdp._kernels.rows.Rows`.

Transitions come in three forms: dense arrays, SciPy sparse matrices, and Gym tables. Each reader returns the nonzero
entries (:class:`ModelEntries`) in time and memory proportional to its input, and no sparse input is made dense.
:func:`pack_rows` then checks them and stores them row by row. A model is valid if

- every row (state, action) that can be used has finite, nonnegative entries that sum to 1 within ``SUM_TOLERANCE``;
  they are stored unchanged, without rescaling;
- rewards are finite wherever a row is used, and each state that is not terminal has at least one action.

Rows of terminal states and of masked actions are never used, so their content is dropped without a check. Error
messages name the first invalid row, say what is wrong with it and how to correct it.

**Gym tables** have the form ``P[s][a] = [(probability, next state, reward, done), ...]``. They have no list of
terminal states, only flags on transitions, and no separate rewards:

- *done.* A state that other states enter only with ``done`` is terminal (its outcomes are never used), and so is one
  whose only outcomes are ``done`` loops on itself without reward. A ``done`` transition into any other state must end
  the episode although that state continues elsewhere: such transitions lead to one extra state, number S, which is
  terminal and labelled "end". If the caller gives ``terminal``, that set is used instead (``terminal=[]``, for
  instance, if episodes start in a state in which they also end).
- *rewards.* Outcomes of a row with the same next state are merged and their rewards averaged by probability. If the
  reward of some row depends on the next state, the rewards of the model have shape ``[S, A, S]``, unless that exceeds
  ``DENSE_REWARDS`` entries; otherwise they are the expected rewards ``[S, A]``.
- *missing actions.* Actions that are missing or have no outcomes are masked; a state without any is terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows, Space

SUM_TOLERANCE = 1e-8
ROW_BYTES, ENTRY_BYTES = 64, 80  # about what making a model takes of memory
DENSE_REWARDS = 1 << 20
OUTCOME = {"row": np.int64, "state": np.int64, "prob": float, "reward": float, "done": bool}  # of a Gym table


class ModelEntries(NamedTuple):
    """The nonzero entries of a model, in any order."""

    n_states: int
    n_actions: int
    row: np.ndarray  # int64 [n]: s * A + a
    state: np.ndarray  # int64 [n]: next states
    prob: np.ndarray  # float64 [n]


# Transitions as arrays


def read_transitions(transitions: Any) -> ModelEntries:
    """Read dense transitions ``[S, A, S]`` or SciPy sparse ones (a list of ``[S, S]``, or one ``[S*A, S]``)."""
    if _is_sparse(transitions):
        shape = transitions.shape
        if len(shape) != 2 or 0 in shape or shape[0] % shape[1]:
            raise ValueError(
                f"a single sparse matrix must have shape [S*A, S] with row s*A + a, got {list(shape)}"
            )
        return _read_sparse([transitions], shape[1], shape[0] // shape[1], step=1)
    if isinstance(transitions, Sequence) and len(transitions) and all(_is_sparse(m) for m in transitions):
        shape = transitions[0].shape
        for a, matrix in enumerate(transitions):
            if len(shape) != 2 or shape[0] != shape[1] or matrix.shape != shape:
                raise ValueError(
                    f"transitions[{a}] has shape {list(matrix.shape)}; a list of sparse matrices "
                    "must contain one [S, S] matrix per action"
                )
        return _read_sparse(transitions, shape[0], len(transitions), step=len(transitions))
    return _read_dense(transitions)


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def _read_dense(transitions: Any) -> ModelEntries:
    array = _checks.numbers(transitions, "transitions")
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise ValueError(
            f"transitions must have shape [S, A, S], got {list(array.shape)}; "
            "arrays in the order [A, S, S] need np.swapaxes(transitions, 0, 1)"
        )
    n_states, n_actions, _ = array.shape
    check_size(n_states, n_actions, int(np.count_nonzero(array)))
    s, a, state = np.nonzero(array)
    return ModelEntries(n_states, n_actions, s * n_actions + a, state, array[s, a, state])


def _read_sparse(matrices: Sequence[Any], n_states: int, n_actions: int, step: int) -> ModelEntries:
    """Read matrices of which row i of the a-th is row ``i * step + a`` of the model."""
    check_size(n_states, n_actions, sum(m.nnz for m in matrices))
    parts = [m.tocoo() for m in matrices]
    row = np.concatenate([np.asarray(m.row, np.int64) * step + a for a, m in enumerate(parts)])
    state = np.concatenate([np.asarray(m.col, np.int64) for m in parts])
    prob = np.concatenate([_checks.numbers(m.data, "transitions") for m in parts])
    return ModelEntries(n_states, n_actions, row, state, prob)


def check_size(n_states: int, n_actions: int, n_entries: int) -> None:
    """Refuse a model that would not fit into memory, with the size that it would need."""
    _checks.memory(
        ROW_BYTES * n_states * n_actions + ENTRY_BYTES * n_entries,
        f"a model of {n_states} states, {n_actions} actions and {n_entries} entries",
    )


# Transitions as Gym tables


def is_gym_table(transitions: Any) -> bool:
    """Return whether ``transitions`` is a table of outcomes: a dict, or a nested list of outcome tuples."""
    if isinstance(transitions, Mapping):
        return True
    if not isinstance(transitions, Sequence) or not transitions:
        return False
    try:
        for row in transitions:
            if isinstance(row, Mapping):
                return True
            for outcomes in row:
                for outcome in outcomes:  # the first outcome that there is decides
                    return len(outcome) == 4
    except TypeError:
        pass
    return False


def read_gym_table(transitions: Any, terminal: Any, action_mask: Any, state_labels: Any) -> tuple[Any, ...]:
    """Return (entries, rewards, terminal, action mask, state labels) of a Gym table, with "end" added if needed."""
    n_states, n_actions, outcomes = _collect_outcomes(transitions)
    row, state, prob, reward, done = (outcomes[name].copy() for name in OUTCOME)

    # Which actions exist, and which states are terminal.
    space = read_space(n_states, n_actions, terminal, None)
    exists = np.zeros((n_states, n_actions), dtype=bool)
    exists.ravel()[row] = True
    exists &= read_space(n_states, n_actions, np.ones(n_states, bool), action_mask).allowed
    ends = space.terminal | ~exists.any(axis=1)
    used = (prob != 0.0) & (state >= 0) & (state < n_states) & exists.ravel()[row]
    if terminal is None:
        ends |= _states_ended_by_flags(n_states, row // n_actions, state, reward, done, used)
    labels = read_labels(state_labels, "state_labels", n_states)

    # Transitions with ``done`` into states that are not terminal lead to an extra state.
    leaving = used & done & ~ends[row // n_actions]
    leaving[leaving] = ~ends[state[leaving]]
    if leaving.any():
        state[leaving] = n_states
        ends = np.append(ends, True)
        exists = np.vstack([exists, np.ones(n_actions, bool)])
        labels = (*(labels or map(str, range(n_states))), "end")
        n_states += 1

    kept = ~ends[row // n_actions] & exists.ravel()[row]
    entries = ModelEntries(n_states, n_actions, row[kept], state[kept], prob[kept])
    exists[ends] = True
    return entries, _gym_rewards(entries, reward[kept]), ends, exists, labels


def _collect_outcomes(transitions: Any) -> tuple[int, int, np.ndarray]:
    """Return (S, A, outcomes), the latter with the columns of OUTCOME."""
    states = list(_numbered_items(transitions, "transitions"))
    n_states = len(states)
    if n_states == 0:
        raise ValueError("transitions has no states")
    actions = [dict(_numbered_items(table, f"transitions[{s}]", gaps=True)) for s, table in states]
    n_actions = 1 + max((a for table in actions for a in table), default=0)
    check_size(n_states, n_actions, 0)
    parsed = [
        (s * n_actions + a, *_parse_outcome(outcome, s, a))
        for (s, _), table in zip(states, actions)
        for a, outcomes in table.items()
        for outcome in outcomes
    ]
    return n_states, n_actions, np.array(parsed, list(OUTCOME.items()))


def _numbered_items(table: Any, name: str, gaps: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield (number, item) of a list, or of a dict with whole-number keys, in order."""
    if not isinstance(table, Mapping):
        yield from enumerate(table)
        return
    keys = list(table)
    if not all(isinstance(k, int | np.integer) and k >= 0 for k in keys):
        raise TypeError(f"{name} must have whole numbers from 0 as keys, got {keys[:5]}")
    if not gaps and max(keys, default=-1) != len(keys) - 1:
        raise ValueError(f"{name} must have the keys 0..{len(keys) - 1} without gaps")
    for key in sorted(keys):
        yield int(key), table[key]


def _parse_outcome(outcome: Any, s: int, a: int) -> tuple[int, float, float, bool]:
    """Return (next state, probability, reward, done) of one tuple of the table."""
    try:
        probability, state, reward, done = outcome
        if int(state) != state:
            raise ValueError
        return int(state), float(probability), float(reward), bool(done)
    except (TypeError, ValueError):
        raise ValueError(
            f"row (state {s}, action {a}) has the outcome {outcome!r}; "
            "each must be (probability, next state, reward, done)"
        ) from None


def _states_ended_by_flags(
    n_states: int,
    source: np.ndarray,
    state: np.ndarray,
    reward: np.ndarray,
    done: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """Return the states, bool ``[S]``, that the ``done`` flags make terminal; see the module's docstring."""

    def count(which: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.bincount(where[used & which], minlength=n_states)

    other = source != state
    entered_with_done = (count(other & done, state) > 0) & (count(other & ~done, state) == 0)
    loop = ~other & done & (reward == 0.0)
    return entered_with_done | ((count(loop, source) > 0) & (count(~loop, source) == 0))


def _gym_rewards(entries: ModelEntries, reward: np.ndarray) -> np.ndarray:
    """Return ``[S, A, S]`` if rewards depend on the next state and that is small, else the expected ``[S, A]``."""
    n_states, n_actions = entries.n_states, entries.n_actions
    # Next states out of range are refused later, with the name of their row.
    inside = (entries.state >= 0) & (entries.state < n_states)
    columns = (entries.row, entries.state, entries.prob, reward)
    row, state, prob, reward = (column[inside] for column in columns)
    invalid = ~np.isfinite(reward)
    if invalid.any():
        raise ValueError(f"reward of row {row_name(row[np.argmax(invalid)], n_actions)} is not finite")

    # The expected reward of each row, exact where all its outcomes have the same one.
    expected = np.bincount(row, weights=prob * reward, minlength=n_states * n_actions)
    low = np.full(n_states * n_actions, np.inf)
    high = -low
    np.minimum.at(low, row[prob > 0.0], reward[prob > 0.0])
    np.maximum.at(high, row[prob > 0.0], reward[prob > 0.0])
    if not (low < high).any() or n_states * n_actions * n_states > DENSE_REWARDS:
        same = low == high
        expected[same] = low[same]
        return expected.reshape(n_states, n_actions)

    # The mean reward of each (row, next state), without rounding where nothing is averaged.
    mass = np.zeros((n_states * n_actions, n_states))
    full = np.zeros_like(mass)
    np.add.at(mass, (row, state), prob)
    np.add.at(full, (row, state), prob * reward)
    np.divide(full, mass, out=full, where=mass > 0.0)
    same = np.isclose(full[row, state], reward, rtol=1e-12, atol=0.0)
    full[row[same], state[same]] = reward[same]
    return full.reshape(n_states, n_actions, n_states)


# Everything else that describes a model


def read_space(n_states: int, n_actions: int, terminal: Any, action_mask: Any) -> Space:
    """Read the terminal states and the allowed actions.

    Parameters
    ----------
    n_states, n_actions
        S and A.
    terminal
        A bool mask ``[S]``, a list of states, or None for no terminal states.
    action_mask
        Bool ``[S, A]`` (or ``[A]`` for all states), True where the action exists; None for all actions.

    Returns
    -------
    Space
        Terminal states, bool ``[S]``, and allowed actions, bool ``[S, A]``.
    """
    ends = np.zeros(n_states, dtype=np.bool_)
    if terminal is not None:
        states = np.asarray(terminal)
        if states.dtype == np.bool_:
            if states.shape != (n_states,):
                raise ValueError(f"terminal must have shape [{n_states}], got {list(states.shape)}")
            ends[:] = states
        elif states.size:
            if states.dtype.kind not in "iu" or states.ndim != 1:
                raise TypeError("terminal must be a bool mask [S] or a list of state numbers")
            if states.min() < 0 or states.max() >= n_states:
                raise ValueError(f"terminal names a state outside 0..{n_states - 1}")
            if len(np.unique(states)) < len(states):
                raise ValueError("terminal names a state twice; if it is a mask, make it one of booleans")
            ends[states] = True
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


def read_rewards(rewards: Any, rows: Rows, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Read rewards of shape ``[S]``, ``[S, A]`` or ``[S, A, S]``.

    Returns
    -------
    tuple
        The rewards in their own shape, checked and read-only, and the expected rewards ``[S*A]``, which are 0 on
        unused rows.
    """
    n_states, n_actions = space.allowed.shape
    array = _checks.numbers(rewards, "rewards")
    shapes = [(n_states,), (n_states, n_actions), (n_states, n_actions, n_states)]
    if array.shape not in shapes:
        raise ValueError(
            f"rewards must have shape {' or '.join(str(list(s)) for s in shapes)}, got {list(array.shape)}"
        )
    used = used_rows(space)
    finite = np.isfinite(array)
    if array.ndim == 3:
        finite = finite.all(axis=2)
    elif array.ndim == 1:
        finite = finite[:, None]
    invalid = used & ~np.broadcast_to(finite, space.allowed.shape).ravel()
    if invalid.any():
        raise ValueError(
            f"reward of row {row_name(np.argmax(invalid), n_actions)} is not finite; "
            "use action_mask for actions that do not exist, not an infinite reward"
        )
    array[~np.isfinite(array)] = 0.0  # those that are left belong to rows that are never used
    if array.ndim == 3:
        row, state, prob = row_entries(rows)
        flat = array.reshape(-1, n_states)
        expected = np.bincount(row, weights=prob * flat[row, state], minlength=used.size)
        spread = np.flatnonzero(rows.background)
        expected[spread] += rows.background[spread] * flat[spread].mean(axis=1)
    else:
        expected = np.repeat(array, n_actions) if array.ndim == 1 else array.ravel().copy()
    expected[~used] = 0.0
    array.flags.writeable = False
    return array, expected


def read_labels(labels: Any, name: str, size: int) -> tuple[str, ...] | None:
    """Return labels as a tuple of ``size`` strings, or None if there are none."""
    if labels is None:
        return None
    if isinstance(labels, str | Mapping):
        raise TypeError(f"{name} must be a sequence of {size} strings, got {labels!r}")
    names = tuple(str(label) for label in labels)
    if len(names) != size:
        raise ValueError(f"{name} must have {size} entries, got {len(names)}")
    return names


# Rows


def used_rows(space: Space) -> np.ndarray:
    """Return which rows can be used, bool ``[S*A]``: not those of terminal states or of masked actions."""
    return (space.allowed & ~space.terminal[:, None]).ravel()


def entry_positions(span: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of each entry and its position in ``index`` and ``prob``, row by row, for any spans."""
    counts = span[:, 1] - span[:, 0]
    row = np.repeat(np.arange(span.shape[0]), counts)
    first = np.cumsum(counts) - counts
    return row, np.arange(row.size) + (span[:, 0] - first)[row]


def row_entries(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row, next state, probability) of each entry, row by row."""
    row, position = entry_positions(rows.span)
    return row, rows.index[position], rows.prob[position]


def row_sums(rows: Rows) -> np.ndarray:
    """Return the sums of the rows, background included, ``[S*A]``."""
    row, _, prob = row_entries(rows)
    return np.bincount(row, weights=prob, minlength=len(rows.span)) + rows.background


def merge_model_entries(
    row: np.ndarray, state: np.ndarray, prob: np.ndarray, n_states: int
) -> tuple[np.ndarray, ...]:
    """Return (row, state, prob) sorted by row and next state, with duplicates summed and zeros dropped."""
    key = row * n_states + state
    if key.size > 1 and not (np.diff(key) > 0).all():
        key, where = np.unique(key, return_inverse=True)
        prob = np.bincount(where, weights=prob, minlength=key.size)
    keep = prob != 0.0
    row, state = np.divmod(key[keep], n_states)
    return row, state, prob[keep]


def contiguous_spans(row: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the spans, int64 ``[n_rows, 2]``, of entries that are stored row by row without gaps."""
    ends = np.cumsum(np.bincount(row, minlength=n_rows))
    return np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)


def pack_rows(entries: ModelEntries, space: Space) -> Rows:
    """Check the entries and store them row by row, next states ascending, duplicates summed; rewards are 0."""
    n_states, n_actions = entries.n_states, entries.n_actions
    n_rows = n_states * n_actions
    if n_states > np.iinfo(np.int32).max:
        raise ValueError(f"at most {np.iinfo(np.int32).max} states are supported, got {n_states}")
    used = used_rows(space)
    keep = used[entries.row]
    row, state, prob = entries.row[keep], entries.state[keep], entries.prob[keep]
    check_entries(row, state, prob, n_states, n_actions)
    row, state, prob = merge_model_entries(row, state, prob, n_states)
    check_sums(np.bincount(row, weights=prob, minlength=n_rows), used, n_actions)
    span = contiguous_spans(row, n_rows)
    return Rows(span, state.astype(np.int32), prob, np.zeros(n_rows), np.zeros(n_rows))


# Checks


def check_rows(rows: Rows, space: Space) -> tuple[Rows, Space]:
    """Check rows that exist already; copy only what has another type or must be blanked.

    Returns
    -------
    tuple
        The rows, with unused rows empty, and the space, both in the types that compiled code takes.
    """
    allowed = _contiguous(space.allowed, np.bool_)
    if allowed.ndim != 2:
        raise ValueError(f"space.allowed must have shape [S, A], got {list(allowed.shape)}")
    n_states, n_actions = allowed.shape
    space = Space(_contiguous(space.terminal, np.bool_), allowed)
    check_space(space)
    types = (np.int64, np.int32, np.float64, np.float64, np.float64)
    rows = Rows(*(_contiguous(x, t) for x, t in zip(rows, types)))
    n_rows = allowed.size
    shapes = {"span": (n_rows, 2), "background": (n_rows,), "reward": (n_rows,), "prob": (rows.index.size,)}
    for name, shape in shapes.items():
        if getattr(rows, name).shape != shape:
            raise ValueError(
                f"rows.{name} must have shape {list(shape)}, got {list(getattr(rows, name).shape)}"
            )

    # Unused rows are emptied, whatever they contain.
    used = used_rows(space)
    if not used.all():
        span, background = rows.span.copy(), rows.background.copy()
        span[~used] = 0
        background[~used] = 0.0
        rows = rows._replace(span=span, background=background)

    # Spans, entries, background and sums of the used rows.
    begin, end = rows.span[:, 0], rows.span[:, 1]
    invalid = (begin < 0) | (end < begin) | (end > min(rows.index.size, rows.prob.size))
    if invalid.any():
        bad = int(np.argmax(invalid))
        raise ValueError(
            f"row {row_name(bad, n_actions)} has the span {begin[bad]}..{end[bad]}; draw it first"
        )
    check_entries(*row_entries(rows), n_states, n_actions)
    if not (rows.background >= 0.0).all():
        bad = int(np.argmin(rows.background >= 0.0))
        raise ValueError(
            f"row {row_name(bad, n_actions)} has background {rows.background[bad]:g}, not at least 0"
        )
    check_sums(row_sums(rows), used, n_actions)
    return rows, space


def check_entries(
    row: np.ndarray, state: np.ndarray, prob: np.ndarray, n_states: int, n_actions: int
) -> None:
    """Refuse next states out of range and probabilities that are negative or not finite."""
    outside = (state < 0) | (state >= n_states)
    if outside.any():
        i = _first_by_row(outside, row)
        raise ValueError(
            f"row {row_name(row[i], n_actions)} leads to state {state[i]}, but states are 0..{n_states - 1}"
        )
    invalid = ~(np.isfinite(prob) & (prob >= 0.0))
    if invalid.any():
        i = _first_by_row(invalid, row)
        raise ValueError(
            f"row {row_name(row[i], n_actions)} has probability {prob[i]:g} for state {state[i]}; "
            "probabilities must be finite and at least 0"
        )


def check_sums(sums: np.ndarray, used: np.ndarray, n_actions: int) -> None:
    """Refuse a used row whose sum is not 1; ``sums`` and ``used`` have shape ``[S*A]``."""
    invalid = used & ~(np.abs(sums - 1.0) <= SUM_TOLERANCE)
    if invalid.any():
        row = int(np.argmax(invalid))
        raise ValueError(
            f"row {row_name(row, n_actions)} sums to {sums[row]:.10g}, not 1; "
            "divide it by its sum, or mark the state terminal or the action masked"
        )


def check_space(space: Space) -> None:
    """Refuse terminal states of another shape, and states that are not terminal but have no action."""
    n_states = space.allowed.shape[0]
    if space.terminal.shape != (n_states,):
        raise ValueError(f"terminal must have shape [{n_states}], got {list(space.terminal.shape)}")
    stuck = np.flatnonzero(~space.terminal & ~space.allowed.any(axis=1))
    if stuck.size:
        raise ValueError(f"state {stuck[0]} has every action masked; allow one, or mark the state terminal")


def row_name(row: int | np.integer, n_actions: int) -> str:
    """Return the name of a row in error messages."""
    s, a = divmod(int(row), n_actions)
    return f"(state {s}, action {a})"


def _first_by_row(invalid: np.ndarray, row: np.ndarray) -> int:
    """Return the position of the invalid entry with the lowest row."""
    where = np.flatnonzero(invalid)
    return int(where[np.argmin(row[where])])


def _contiguous(array: np.ndarray, dtype: type) -> np.ndarray:
    """Return the array itself if compiled code can take it (contiguous, writable, of this type), else a copy."""
    array = np.ascontiguousarray(array, dtype=dtype)
    return array if array.flags.writeable else array.copy()
