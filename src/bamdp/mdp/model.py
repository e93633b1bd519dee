"""A known model: FiniteMDP.

A finite Markov decision process μ has states 0..S−1, actions 0..A−1, the law P(s'|s,a) of the next state, an
expected reward r(s,a), terminal states (no action is taken and no reward collected there; their value is 0)
and, optionally, actions that do not exist in some states. The discount is not part of it: solvers and agents
take it as an argument.

A row (s, a) is stored as its nonzero entries plus a *background* mass b(s,a) spread evenly over all S states,

    P(s'|s,a) = e(s'|s,a) + b(s,a)/S,

so that the mean of a Dirichlet prior takes memory for what was observed only: O(S·A + entries) in all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows, Space
from bamdp.mdp import build, validate
from bamdp.mdp.tables import is_table, read_outcomes


class FiniteMDP:
    """A known finite MDP; immutable.

    Parameters
    ----------
    transitions
        One of

        - an array ``[S, A, S]`` of P(s'|s,a);
        - SciPy sparse: a list of A matrices ``[S, S]``, or one ``[S*A, S]`` whose row is ``s*A + a``;
        - a Gym table ``P[s][a] = [(probability, next state, reward, done), ...]``, dicts or lists, with
          ``rewards=None``. How ``done`` flags become terminal states is told in :mod:`bamdp.mdp.tables`: at
          most one extra state, labelled "end", is added.
    rewards
        ``[S]`` (for being in s and acting), ``[S, A]`` or ``[S, A, S]``; collected when acting, so never in a
        terminal state.
    terminal
        A bool mask ``[S]`` or a list of states. Their rows are ignored.
    action_mask
        Bool ``[S, A]`` (or ``[A]`` for all states), True where the action exists. Other rows are ignored.
    state_labels, action_labels
        Names for people to read.

    Notes
    -----
    Rows must sum to 1 within 1e-8; they are kept as given, not rescaled. Terminal and masked rows are stored
    empty with reward 0. The arrays in ``rows`` and ``space`` are what compiled code reads; they are writable
    only because Numba would compile everything twice for read-only arrays: do not write to them.

    Examples
    --------
    >>> import numpy as np
    >>> stay_or_go = np.array([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]])
    >>> mdp = FiniteMDP(stay_or_go, rewards=[[0, 0], [1, 0]])
    >>> mdp
    FiniteMDP(n_states=2, n_actions=2, entries=5)
    >>> mdp.row(0, 1)
    (array([0, 1]), array([0.2, 0.8]))
    """

    __slots__ = ("_action_labels", "_rewards", "_rows", "_space", "_state_labels")

    _rows: Rows
    _space: Space
    _rewards: np.ndarray
    _state_labels: tuple[str, ...] | None
    _action_labels: tuple[str, ...] | None

    def __init__(
        self,
        transitions: Any,
        rewards: Any = None,
        *,
        terminal: Any = None,
        action_mask: Any = None,
        state_labels: Any = None,
        action_labels: Any = None,
    ) -> None:
        if is_table(transitions):
            if rewards is not None:
                raise ValueError("a table P[s][a] holds its own rewards; leave rewards=None")
            parts = read_outcomes(transitions, terminal, action_mask, state_labels)
            table, rewards, terminal, action_mask, state_labels = parts
        else:
            table = build.read_table(transitions)
            if rewards is None:
                raise ValueError("rewards are missing; give an array [S], [S, A] or [S, A, S]")
        space = build.read_space(table.n_states, table.n_actions, terminal, action_mask)
        self._fill(build.pack(table, space), space, rewards, state_labels, action_labels)

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        space: Space,
        rewards: Any = None,
        *,
        state_labels: Any = None,
        action_labels: Any = None,
    ) -> FiniteMDP:
        """A model around arrays that exist already (of beliefs, say), checked but not copied where possible.

        Parameters
        ----------
        rows
            Entries and background, see :class:`Rows`. Terminal and masked rows may be missing (span < 0).
        space
            Terminal states and allowed actions.
        rewards
            As for the class; None means that ``rows.reward`` holds the expected rewards.

        Examples
        --------
        >>> import numpy as np
        >>> span, none = np.zeros((3, 2), dtype=np.int64), np.zeros(0)
        >>> rows = Rows(span, none.astype(np.int32), none, background=np.ones(3), reward=np.arange(3.0))
        >>> space = Space(terminal=np.zeros(3, dtype=bool), allowed=np.ones((3, 1), dtype=bool))
        >>> FiniteMDP.from_rows(rows, space).dense()[0, 0].round(3)
        array([0.333, 0.333, 0.333])
        """
        self = cls.__new__(cls)
        rows, space = validate.check_rows(rows, space)
        if rewards is None:
            rewards = rows.reward.reshape(space.allowed.shape)
        self._fill(rows, space, rewards, state_labels, action_labels)
        return self

    def _fill(self, rows: Rows, space: Space, rewards: Any, state_labels: Any, action_labels: Any) -> None:
        given, expected = build.read_rewards(rewards, rows, space)
        n_states, n_actions = space.allowed.shape
        fields = (
            ("_rows", rows._replace(reward=expected)),
            ("_space", space),
            ("_rewards", given),
            ("_state_labels", build.read_labels(state_labels, "state_labels", n_states)),
            ("_action_labels", build.read_labels(action_labels, "action_labels", n_actions)),
        )
        for name, value in fields:
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"FiniteMDP is immutable; build a new one instead of setting {name}")

    @property
    def n_states(self) -> int:
        """S, terminal states included."""
        return int(self._space.allowed.shape[0])

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self._space.allowed.shape[1])

    @property
    def rows(self) -> Rows:
        """The model as arrays for compiled code; not to be written to."""
        return self._rows

    @property
    def space(self) -> Space:
        """Terminal states and allowed actions for compiled code; not to be written to."""
        return self._space

    @property
    def rewards(self) -> np.ndarray:
        """Rewards as given: ``[S]``, ``[S, A]`` or ``[S, A, S]``, read-only."""
        return self._rewards

    @property
    def expected_rewards(self) -> np.ndarray:
        """r(s,a), ``[S, A]``, read-only; 0 in terminal states and for masked actions."""
        return _read_only(self._rows.reward.reshape(self._space.allowed.shape))

    @property
    def terminal(self) -> np.ndarray:
        """Bool ``[S]``, read-only."""
        return _read_only(self._space.terminal)

    @property
    def action_mask(self) -> np.ndarray:
        """Bool ``[S, A]``, read-only: True where the action exists."""
        return _read_only(self._space.allowed)

    @property
    def state_labels(self) -> tuple[str, ...] | None:
        """Names of the states, if any."""
        return self._state_labels

    @property
    def action_labels(self) -> tuple[str, ...] | None:
        """Names of the actions, if any."""
        return self._action_labels

    def row(self, state: int, action: int) -> tuple[np.ndarray, np.ndarray]:
        """The law of the next state: (states, probabilities), background included.

        Terminal states and masked actions have an empty row.
        """
        s = _checks.index(state, "state", self.n_states)
        row = s * self.n_actions + _checks.index(action, "action", self.n_actions)
        begin, end = self._rows.span[row]
        states, probs = self._rows.index[begin:end].astype(np.int64), self._rows.prob[begin:end].copy()
        if self._rows.background[row] == 0.0:
            return states, probs
        full = np.full(self.n_states, self._rows.background[row] / self.n_states)
        np.add.at(full, states, probs)
        return np.arange(self.n_states), full

    def dense(self) -> np.ndarray:
        """P as an array ``[S, A, S]``: for small models. Terminal and masked rows are 0."""
        rows, n = self._rows, self.n_states
        full = np.repeat(rows.background[:, None] / n, n, axis=1)
        row, position = validate.entry_positions(rows.span)
        np.add.at(full, (row, rows.index[position]), rows.prob[position])
        return full.reshape(n, self.n_actions, n)

    def __repr__(self) -> str:
        entries = int(np.diff(self._rows.span, axis=1).sum())
        text = f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}, entries={entries}"
        if self._rows.background.any():
            text += ", background"
        if self._space.terminal.any():
            text += f", terminal={int(self._space.terminal.sum())}"
        return text + ")"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMDP):
            return NotImplemented
        same = self._space.allowed.shape == other._space.allowed.shape
        same = same and self._state_labels == other._state_labels
        same = same and self._action_labels == other._action_labels
        return same and all(np.array_equal(x, y) for x, y in zip(self._content(), other._content()))

    def __hash__(self) -> int:
        return hash((self._space.allowed.tobytes(), self._space.terminal.tobytes()))

    def _content(self) -> tuple[np.ndarray, ...]:
        """What equality compares; the order of entries in a row does not count."""
        row, position = validate.entry_positions(self._rows.span)
        entries = build.merge(
            row, self._rows.index[position].astype(np.int64), self._rows.prob[position], self.n_states
        )
        return (*entries, self._rows.background, self._rewards, self._space.terminal, self._space.allowed)

    def arrays(self) -> dict[str, np.ndarray]:
        """The model as named arrays, none of which needs pickle; see :mod:`bamdp.mdp.files`."""
        from bamdp.mdp.files import to_arrays

        return to_arrays(self)

    @classmethod
    def from_arrays(cls, arrays: Any) -> FiniteMDP:
        """The inverse of :meth:`arrays`; also reads ``transitions`` ``[S, A, S]`` with ``rewards``."""
        from bamdp.mdp.files import from_arrays

        return from_arrays(arrays)

    def save(self, path: str | Path, *, start: Any = None) -> None:
        """Write an npz file; ``start`` (a state, or probabilities ``[S]``) goes along for environments."""
        from bamdp.mdp.files import save_model

        save_model(self, path, start=start)

    @classmethod
    def load(cls, path: str | Path) -> FiniteMDP:
        """Read an npz file, written by :meth:`save` or by ``np.savez(path, transitions=P, rewards=R)``."""
        from bamdp.mdp.files import load_model

        return load_model(path)[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return FiniteMDP.from_arrays, (self.arrays(),)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
