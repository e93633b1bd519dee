"""Reading Gym's tables: ``P[s][a] = [(probability, next state, reward, done), ...]``.

A Gym table has no list of terminal states, only flags on transitions, and no rewards of their own:

- **done.** A state that other states enter only with ``done`` is terminal (its own outcomes are never used),
  and so is one whose only outcomes are ``done`` loops on itself without reward. A ``done`` transition into
  any other state must end the episode although its target goes on living: such transitions lead to **one
  extra state**, number S, terminal and labelled "end". With ``terminal`` given, that set is final instead
  (say ``terminal=[]`` when episodes start in a state which they also end in).
- **rewards.** Outcomes of a row with one next state are merged, their reward averaged by probability. If in
  some row the reward differs between next states, the model's rewards are ``[S, A, S]`` as long as that has
  at most ``DENSE_REWARDS`` entries, else, and otherwise, they are the expected ``[S, A]``.
- **missing.** Actions that are missing or have no outcomes are masked; a state without any is terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bamdp.mdp.build import Table, read_labels, read_space
from bamdp.mdp.validate import row_name

DENSE_REWARDS = 1 << 20


def is_table(transitions: Any) -> bool:
    """Whether this is a table of outcomes rather than arrays: a dict, or a nested list of outcome tuples."""
    if isinstance(transitions, Mapping):
        return True
    if not isinstance(transitions, Sequence) or not transitions:
        return False
    try:
        for row in transitions:
            if isinstance(row, Mapping):
                return True
            for outcomes in row:
                for outcome in outcomes:  # the first that there is
                    return len(outcome) == 4
    except TypeError:
        pass
    return False


def read_outcomes(transitions: Any, terminal: Any, action_mask: Any, state_labels: Any) -> tuple[Any, ...]:
    """(table, rewards, terminal, action mask, state labels) of a Gym table, with "end" added if needed."""
    n_states, n_actions, found = _collect(transitions)
    row, state = np.array(found[0], dtype=np.int64), np.array(found[1], dtype=np.int64)
    prob, reward = np.array(found[2], dtype=float), np.array(found[3], dtype=float)
    done = np.array(found[4], dtype=bool)
    space = read_space(n_states, n_actions, terminal, None)
    given = read_space(n_states, n_actions, np.ones(n_states, bool), action_mask).allowed
    exists = np.zeros((n_states, n_actions), dtype=bool)
    exists.ravel()[row] = True
    exists &= given
    ends = space.terminal | ~exists.any(axis=1)
    used = (prob != 0.0) & (state >= 0) & (state < n_states) & exists.ravel()[row]
    if terminal is None:
        ends |= _terminal_states(n_states, row // n_actions, state, reward, done, used)
    labels = read_labels(state_labels, "state_labels", n_states)
    leaving = used & done & ~ends[row // n_actions]
    leaving[leaving] = ~ends[state[leaving]]
    if leaving.any():
        state[leaving] = n_states
        ends = np.append(ends, True)
        exists = np.vstack([exists, np.ones(n_actions, bool)])
        labels = (*(labels or map(str, range(n_states))), "end")
        n_states += 1
    alive = ~ends[row // n_actions] & exists.ravel()[row]
    table = Table(n_states, n_actions, row[alive], state[alive], prob[alive])
    exists[ends] = True
    return table, _rewards(table, reward[alive]), ends, exists, labels


def _collect(transitions: Any) -> tuple[int, int, tuple[list[Any], ...]]:
    """(S, A, columns row, state, probability, reward, done)."""
    states = list(_children(transitions, "transitions"))
    n_states = len(states)
    if n_states == 0:
        raise ValueError("transitions has no states")
    actions = [dict(_children(table, f"transitions[{s}]", gaps=True)) for s, table in states]
    n_actions = 1 + max((a for table in actions for a in table), default=0)
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    for (s, _), table in zip(states, actions):
        for a, outcomes in table.items():
            for outcome in outcomes:
                values = _outcome(outcome, s, a)
                for column, value in zip(columns, (s * n_actions + a, *values)):
                    column.append(value)
    return n_states, n_actions, columns


def _children(table: Any, name: str, gaps: bool = False) -> Iterator[tuple[int, Any]]:
    """The entries of a dict with whole-number keys, or of a list, in order."""
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


def _outcome(outcome: Any, s: int, a: int) -> tuple[int, float, float, bool]:
    """(next state, probability, reward, done) of one tuple."""
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


def _terminal_states(
    n_states: int,
    source: np.ndarray,
    state: np.ndarray,
    reward: np.ndarray,
    done: np.ndarray,
    used: np.ndarray,
) -> np.ndarray:
    """States that the flags make terminal, see the module's docstring."""

    def count(which: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.bincount(where[used & which], minlength=n_states)

    other = source != state
    entered = (count(other & done, state) > 0) & (count(other & ~done, state) == 0)
    loop = ~other & done & (reward == 0.0)
    return entered | ((count(loop, source) > 0) & (count(~loop, source) == 0))


def _rewards(table: Table, reward: np.ndarray) -> np.ndarray:
    """``[S, A, S]`` if rewards depend on the next state and it is small, else the expected ``[S, A]``."""
    n_states, n_actions = table.n_states, table.n_actions
    inside = (table.state >= 0) & (table.state < n_states)  # the rest is refused later, with its row's name
    row, state, prob, reward = table.row[inside], table.state[inside], table.prob[inside], reward[inside]
    wrong = ~np.isfinite(reward)
    if wrong.any():
        raise ValueError(f"reward of row {row_name(row[np.argmax(wrong)], n_actions)} is not finite")
    expected = np.bincount(row, weights=prob * reward, minlength=n_states * n_actions)
    low = np.full(n_states * n_actions, np.inf)
    high = -low
    np.minimum.at(low, row[prob > 0.0], reward[prob > 0.0])
    np.maximum.at(high, row[prob > 0.0], reward[prob > 0.0])
    if not (low < high).any() or n_states * n_actions * n_states > DENSE_REWARDS:
        same = low == high
        expected[same] = low[same]
        return expected.reshape(n_states, n_actions)
    mass = np.zeros((n_states * n_actions, n_states))
    full = np.zeros_like(mass)
    np.add.at(mass, (row, state), prob)
    np.add.at(full, (row, state), prob * reward)
    np.divide(full, mass, out=full, where=mass > 0.0)
    same = np.isclose(full[row, state], reward, rtol=1e-12, atol=0.0)  # no rounding where nothing is averaged
    full[row[same], state[same]] = reward[same]
    return full.reshape(n_states, n_actions, n_states)
