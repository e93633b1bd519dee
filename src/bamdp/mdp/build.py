"""Validation and conversion of users' arrays and Gym tables to models (:class:`~bamdp._kernels.rows.Rows`).

Each reader returns the nonzero entries in time and memory proportional to its input, without converting sparse input to
dense arrays. A model is valid if every usable row (state, action) has finite rewards and finite, nonnegative entries
that sum to 1 within ``SUM_TOLERANCE`` (stored unchanged), and if each nonterminal state has an action. Rows of terminal
states and masked actions are never used, so their contents are dropped. Errors name the first invalid row.

**Gym tables**, ``P[s][a] = [(probability, next state, reward, done), ...]``, flag terminal transitions instead of
terminal states, and have no separate rewards. They are converted to models as follows.

- *done.* A state is terminal if other states enter it only with ``done`` (its outcomes are then never used), or if its
  only outcomes are ``done`` self-loops without reward. A ``done`` transition into any other state ends the episode,
  although that state is not terminal; it is redirected to an extra terminal state with index S, labelled "end". If the
  caller passes ``terminal``, that set is used instead (for example, ``terminal=[]`` if episodes start in a state in
  which they also end).
- *rewards.* Outcomes of a row with the same next state are merged, and their rewards are averaged with their
  probabilities as weights. If any reward depends on the next state, the model's rewards have shape ``[S, A, S]``,
  unless this exceeds ``DENSE_REWARDS`` entries. In all other cases, they are the expected rewards ``[S, A]``.
- *missing actions.* Actions that are missing or have no outcomes are masked; a state without actions is terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows, Space

SUM_TOLERANCE = 1e-8
DENSE_REWARDS = 1 << 20  # largest number of rewards [S, A, S] made from a Gym table
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
        return _read_sparse([transitions], transitions.shape[0] // transitions.shape[-1], step=1)
    if isinstance(transitions, Sequence) and len(transitions) and all(map(_is_sparse, transitions)):
        return _read_sparse(transitions, len(transitions), step=len(transitions))
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


def _read_sparse(matrices: Sequence[Any], n_actions: int, step: int) -> ModelEntries:
    """Read matrices; row i of matrix a becomes row ``i * step + a`` of the model."""
    n_states = int(matrices[0].shape[-1])
    shape = (n_states * n_actions // step, n_states)
    if any(m.shape != shape for m in matrices):
        raise ValueError(
            "sparse transitions must be one matrix [S*A, S] with row s*A + a, or a list of A matrices [S, S], "
            f"got {[m.shape for m in matrices]}"
        )
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


def entry_matrix(rows: Rows, n_states: int) -> Any:
    """Return the entries of a model, without the background, as a sparse matrix ``[S*A, S]``."""
    from scipy.sparse import csr_array

    return csr_array((rows.prob, rows.index, np.append(0, rows.span[:, 1])), shape=(len(rows.span), n_states))


def pack_rows(entries: ModelEntries, space: Space, background: np.ndarray | float = 0.0) -> Rows:
    """Check the entries and store them by row, with ascending next states, summed duplicates and rewards of 0."""
    from scipy.sparse import coo_array

    n_states, n_actions, row, state, prob = entries
    used = used_rows(space)
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
    matrix = coo_array((prob, (row, state)), shape=(used.size, n_states)).tocsr()
    matrix.eliminate_zeros()
    span = np.stack([matrix.indptr[:-1], matrix.indptr[1:]], axis=1).astype(np.int64)
    index, background = matrix.indices.astype(np.int32), np.where(used, background, 0.0)
    sums = matrix.sum(axis=1) + background
    _refuse_entry(
        used & ~(np.abs(sums - 1.0) <= SUM_TOLERANCE),
        np.arange(used.size),
        n_actions,
        lambda i: (
            f"sums to {sums[i]:.10g}, not 1; divide it by its sum, or mark the state terminal or the action masked"
        ),
    )
    return Rows(span, index, matrix.data, background, np.zeros(used.size))


def _refuse_entry(invalid: np.ndarray, row: np.ndarray, n_actions: int, say: Callable[[int], str]) -> None:
    """Raise an error for the first invalid row; ``say`` returns the message."""
    if invalid.any():
        where = np.flatnonzero(invalid)
        i = int(where[np.argmin(row[where])])
        s, a = divmod(int(row[i]), n_actions)
        raise ValueError(f"row (state {s}, action {a}) {say(i)}")


# Gym tables


def is_gym_table(transitions: Any) -> bool:
    """Return whether ``transitions`` is a table of outcomes: a dict, or a nested list of outcome tuples."""
    if isinstance(transitions, Mapping):
        return True
    if not isinstance(transitions, Sequence):
        return False
    try:
        rows = [row for row in transitions if len(row)]
        if any(isinstance(row, Mapping) for row in rows):
            return True
        return next(len(outcome) == 4 for row in rows for outcomes in row for outcome in outcomes)
    except (TypeError, StopIteration):
        return False


def read_gym_table(transitions: Any, terminal: Any, action_mask: Any, state_labels: Any) -> tuple[Any, ...]:
    """Return (entries, rewards, terminal, action mask, state labels) of a Gym table, with "end" added if needed."""
    n_states, n_actions, outcomes = _collect_outcomes(transitions)
    row, state, prob, reward, done = (outcomes[name].copy() for name in outcomes.dtype.names or ())
    source = row // n_actions

    # Determine existing actions and terminal states.
    ends = read_space(n_states, n_actions, terminal, None).terminal.copy()
    exists = np.zeros((n_states, n_actions), dtype=bool)
    exists.ravel()[row] = True
    exists &= read_space(n_states, n_actions, np.ones(n_states, bool), action_mask).allowed
    ends |= ~exists.any(axis=1)
    used = (prob != 0.0) & (state >= 0) & (state < n_states) & exists.ravel()[row]
    if terminal is None:
        entered = used & (source != state)
        loop = used & (source == state) & done & (reward == 0.0)
        for yes, no, where in ((entered & done, entered & ~done, state), (loop, used & ~loop, source)):
            ends |= np.isin(np.arange(n_states), where[yes]) & ~np.isin(np.arange(n_states), where[no])
    labels = read_labels(state_labels, "state_labels", n_states)

    # Redirect ``done`` transitions into nonterminal states to an extra state.
    leaving = used & done & ~ends[source]
    leaving[leaving] = ~ends[state[leaving]]
    if leaving.any():
        state[leaving] = n_states
        ends, exists = np.append(ends, True), np.vstack([exists, np.ones(n_actions, bool)])
        labels = (*(labels or map(str, range(n_states))), "end")
        n_states += 1

    kept = ~ends[source] & exists.ravel()[row]
    entries = ModelEntries(n_states, n_actions, row[kept], state[kept], prob[kept])
    exists[ends] = True
    return entries, _rewards(entries, reward[kept]), ends, exists, labels


def _collect_outcomes(transitions: Any) -> tuple[int, int, np.ndarray]:
    """Return (S, A, outcomes), where outcomes has the columns row, state, prob, reward and done."""
    states = list(_numbered(transitions, "transitions"))
    if [s for s, _ in states] != list(range(len(states))) or not states:
        raise ValueError("transitions has no states" if not states else "states must be 0..S-1 without gaps")
    actions = [dict(_numbered(table, f"transitions[{s}]")) for s, table in states]
    n_actions = 1 + max((a for table in actions for a in table), default=0)
    check_size(len(states), n_actions, 0)
    parsed = [
        (s * n_actions + a, *_parse_outcome(outcome, s, a))
        for s, table in enumerate(actions)
        for a, outcomes in table.items()
        for outcome in outcomes
    ]
    return len(states), n_actions, np.array(parsed, "i8, i8, f8, f8, ?")


def _numbered(table: Any, name: str) -> Iterator[tuple[int, Any]]:
    """Return the (index, item) pairs of a list, or of a dict with integer keys, in order."""
    if not isinstance(table, Mapping):
        return enumerate(table)
    if not all(isinstance(key, int | np.integer) and key >= 0 for key in table):
        raise TypeError(f"{name} must have whole numbers from 0 as keys, got {list(table)[:5]}")
    return iter([(int(key), table[key]) for key in sorted(table)])


def _parse_outcome(outcome: Any, s: int, a: int) -> tuple[int, float, float, bool]:
    """Parse one table entry and return (next state, probability, reward, done)."""
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


def _rewards(entries: ModelEntries, reward: np.ndarray) -> np.ndarray:
    """Return rewards ``[S, A, S]`` if they depend on the next state and are small enough, else expected ``[S, A]``."""
    S, A = entries.n_states, entries.n_actions
    # others are rejected later by an error that names their row, or never occur
    inside = (entries.state >= 0) & (entries.state < S) & (entries.prob > 0.0)
    row, state, prob, reward = (x[inside] for x in (entries.row, entries.state, entries.prob, reward))
    _refuse_entry(~np.isfinite(reward), row, A, lambda i: "has a reward that is not finite")
    expected = _mean_rewards(row, S * A, prob, reward)
    if (reward == expected[row]).all() or S * A * S > DENSE_REWARDS:
        return expected.reshape(S, A)
    return _mean_rewards(row * S + state, S * A * S, prob, reward).reshape(S, A, S)


def _mean_rewards(key: np.ndarray, size: int, prob: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Return the mean reward of each key, exact if all are equal."""
    one = np.zeros(size)
    one[key] = reward
    difference = np.bincount(key, weights=prob * (reward - one[key]), minlength=size)
    return one + difference / np.maximum(np.bincount(key, weights=prob, minlength=size), 1e-300)
