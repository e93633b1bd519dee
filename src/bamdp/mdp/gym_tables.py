"""Conversion of Gym tables, ``P[s][a] = [(probability, next state, reward, done), ...]``, to models.

Gym tables flag terminal transitions instead of terminal states, and have no separate rewards. The rules are:

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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bamdp.mdp.build import ModelEntries, check_size, read_labels, read_space, row_name

DENSE_REWARDS = 1 << 20
OUTCOME = {"row": np.int64, "state": np.int64, "prob": float, "reward": float, "done": bool}


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
    row, state, prob, reward, done = (outcomes[name].copy() for name in OUTCOME)
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
    """Return (S, A, outcomes), where outcomes has the columns of OUTCOME."""
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
    return len(states), n_actions, np.array(parsed, list(OUTCOME.items()))


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
    inside = (entries.state >= 0) & (
        entries.state < S
    )  # others are rejected later with the name of their row
    row, state, prob, reward = (
        column[inside] for column in (entries.row, entries.state, entries.prob, reward)
    )
    invalid = ~np.isfinite(reward)
    if invalid.any():
        raise ValueError(f"reward of row {row_name(row[np.argmax(invalid)], A)} is not finite")
    by_row, varies = _averages(row, S * A, prob, reward)
    if not varies or S * A * S > DENSE_REWARDS:
        return by_row.reshape(S, A)
    return _averages(row * S + state, S * A * S, prob, reward)[0].reshape(S, A, S)


def _averages(key: np.ndarray, size: int, prob: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the mean reward of each key, exact if all are equal, and whether any rewards differ."""
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, key[prob > 0.0], reward[prob > 0.0])
    np.maximum.at(high, key[prob > 0.0], reward[prob > 0.0])
    mass = np.bincount(key, weights=prob, minlength=size)
    total = np.bincount(key, weights=prob * reward, minlength=size)
    mean = np.divide(total, mass, out=np.zeros(size), where=mass > 0.0)
    return np.where(low == high, low, mean), bool((low < high).any())
