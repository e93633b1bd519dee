"""The class FiniteMDP for known models, and its file format.

A finite Markov decision process μ has states 0..S−1, actions 0..A−1, the distribution P(s'|s,a) of the next state, an
expected reward r(s,a), terminal states (no action is taken and no reward collected there; their value is 0) and,
optionally, actions that do not exist in some states. The discount is not part of the model; it is an argument of
solvers and agents.

A row (s, a) is stored as its nonzero entries plus a *background* mass b(s,a) spread evenly over all S states,

    P(s'|s,a) = e(s'|s,a) + b(s,a)/S,

so that the posterior mean of a Dirichlet model needs memory only for observed transitions: O(S·A + entries) in total.

**Files.** Models are saved as npz files without pickled objects. Two formats can be read. Only the second is written,
since it never takes more memory than the model itself:

========================  ====================================================================
``transitions``           ``[S, A, S]``: user-created files, together with ``rewards``
``indptr``                int ``[S*A + 1]``: entries of row ``s*A + a`` are ``indptr[row]:indptr[row+1]``
``next_states``, ``probs``  the entries
``background``            ``[S*A]``: mass spread evenly over all states; 0 by default
========================  ====================================================================

Both contain ``rewards`` (``[S]``, ``[S, A]`` or ``[S, A, S]``) and, optionally, ``terminal``, ``action_mask``,
``state_labels``, ``action_labels``, and ``start``, a state or probabilities ``[S]``. ``start`` is not part of the
model but specifies the initial state of an environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import bamdp.mdp.build as build
from bamdp import _checks
from bamdp._kernels.rows import Rows, Space

Start = int | np.ndarray | None

_OPTIONAL_ARRAYS = ("terminal", "action_mask", "state_labels", "action_labels")


class FiniteMDP:
    """An immutable, known finite MDP.

    Parameters
    ----------
    transitions
        One of

        - an array ``[S, A, S]`` of P(s'|s,a);
        - SciPy sparse: a list of A matrices ``[S, S]``, or one ``[S*A, S]`` whose row is ``s*A + a``;
        - a Gym table ``P[s][a] = [(probability, next state, reward, done), ...]``, dicts or lists, with
          ``rewards=None``. :mod:`bamdp.mdp.build` describes how ``done`` flags are converted to terminal states;
          at most one extra state, labelled "end", is added.
    rewards
        ``[S]`` (for taking any action in s), ``[S, A]`` or ``[S, A, S]``; collected when acting, so never in a terminal
        state.
    terminal
        A bool mask ``[S]`` or a list of states. Their rows are ignored.
    action_mask
        Bool ``[S, A]`` (or ``[A]`` for all states), True where the action exists. Other rows are ignored.
    state_labels, action_labels
        Display names.

    Attributes
    ----------
    rows
        The model as arrays for compiled code; do not modify them.
    space
        Terminal states and allowed actions for compiled code; do not modify them.
    rewards
        The rewards in their original shape: ``[S]``, ``[S, A]`` or ``[S, A, S]``, read-only.
    state_labels, action_labels
        Names of states and actions, if any.

    Notes
    -----
    Rows must sum to 1 within 1e-8; they are stored without rescaling. Terminal and masked rows are stored empty, with
    reward 0. Compiled code reads the arrays in ``rows`` and ``space``; they are writable only because Numba would
    otherwise compile everything twice.

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

    rows: Rows
    space: Space
    rewards: np.ndarray
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None

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
        if build.is_gym_table(transitions):
            if rewards is not None:
                raise ValueError("a table P[s][a] holds its own rewards; leave rewards=None")
            parts = build.read_gym_table(transitions, terminal, action_mask, state_labels)
            entries, rewards, terminal, action_mask, state_labels = parts
        else:
            entries = build.read_transitions(transitions)
            if rewards is None:
                raise ValueError("rewards are missing; give an array [S], [S, A] or [S, A, S]")
        self._fill(entries, 0.0, rewards, terminal, action_mask, state_labels, action_labels)

    @classmethod
    def from_rows(cls, rows: Rows, space: Space, rewards: Any = None) -> FiniteMDP:
        """Create a model from rows with a background, such as those of beliefs.

        Parameters
        ----------
        rows
            Entries and background; see :class:`Rows`. Terminal and masked rows may be missing (span < 0).
        space
            Terminal states and allowed actions.
        rewards
            As for the class; None means that ``rows.reward`` contains the expected rewards.

        Examples
        --------
        >>> import numpy as np
        >>> span, none = np.zeros((3, 2), dtype=np.int64), np.zeros(0)
        >>> rows = Rows(span, none.astype(np.int32), none, background=np.ones(3), reward=np.arange(3.0))
        >>> space = Space(terminal=np.zeros(3, dtype=bool), allowed=np.ones((3, 1), dtype=bool))
        >>> FiniteMDP.from_rows(rows, space).dense()[0, 0].round(3)
        array([0.333, 0.333, 0.333])
        """
        S, A = space.allowed.shape
        span = np.where(build.used_rows(space)[:, None], rows.span, 0)
        if (span < 0).any():
            raise ValueError("a row that can be used has no entries yet; draw it first")
        entries = build.ModelEntries(S, A, *build.row_entries(rows._replace(span=span)))
        self = cls.__new__(cls)
        rewards = rows.reward.reshape(S, A) if rewards is None else rewards
        self._fill(entries, rows.background, rewards, space.terminal, space.allowed)
        return self

    def _fill(
        self,
        entries: build.ModelEntries,
        background: Any,
        rewards: Any,
        terminal: Any = None,
        action_mask: Any = None,
        state_labels: Any = None,
        action_labels: Any = None,
    ) -> None:
        """Check everything and set the fields."""
        space = build.read_space(entries.n_states, entries.n_actions, terminal, action_mask)
        rows = build.pack_rows(entries, space, background)
        rewards, expected = build.read_rewards(rewards, rows, space)
        vars(self).update(
            rows=rows._replace(reward=expected),
            space=space,
            rewards=rewards,
            state_labels=build.read_labels(state_labels, "state_labels", entries.n_states),
            action_labels=build.read_labels(action_labels, "action_labels", entries.n_actions),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"FiniteMDP is immutable; build a new one instead of setting {name}")

    @property
    def n_states(self) -> int:
        """The number of states S, including terminal states."""
        return int(self.space.allowed.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions A."""
        return int(self.space.allowed.shape[1])

    @property
    def expected_rewards(self) -> np.ndarray:
        """Expected rewards r(s,a), ``[S, A]``, read-only; 0 in terminal states and for masked actions."""
        return _read_only(self.rows.reward.reshape(self.space.allowed.shape))

    @property
    def terminal(self) -> np.ndarray:
        """Terminal states, bool ``[S]``, read-only."""
        return _read_only(self.space.terminal)

    @property
    def action_mask(self) -> np.ndarray:
        """Bool ``[S, A]``, read-only: True where the action exists."""
        return _read_only(self.space.allowed)

    def row(self, state: int, action: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the distribution of the next state as (states, probabilities), including the background.

        Rows of terminal states and masked actions are empty.
        """
        s = _checks.index(state, "state", self.n_states)
        row = s * self.n_actions + _checks.index(action, "action", self.n_actions)
        begin, end = self.rows.span[row]
        states, probs = self.rows.index[begin:end].astype(np.int64), self.rows.prob[begin:end].copy()
        if self.rows.background[row] == 0.0:
            return states, probs
        full = np.full(self.n_states, self.rows.background[row] / self.n_states)
        np.add.at(full, states, probs)
        return np.arange(self.n_states), full

    def dense(self) -> np.ndarray:
        """Return P as an array ``[S, A, S]``, for small models; terminal and masked rows are 0."""
        rows, n = self.rows, self.n_states
        full = np.repeat(rows.background[:, None] / n, n, axis=1)
        row, state, prob = build.row_entries(rows)
        np.add.at(full, (row, state), prob)
        return full.reshape(n, self.n_actions, n)

    def __repr__(self) -> str:
        entries = int(np.diff(self.rows.span, axis=1).sum())
        text = f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}, entries={entries}"
        if self.rows.background.any():
            text += ", background"
        if self.space.terminal.any():
            text += f", terminal={int(self.space.terminal.sum())}"
        return text + ")"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMDP):
            return NotImplemented
        labels = (self.state_labels, self.action_labels) == (other.state_labels, other.action_labels)
        return labels and all(map(np.array_equal, self._content(), other._content()))

    def __hash__(self) -> int:
        return hash((self.space.allowed.tobytes(), self.space.terminal.tobytes()))

    def _content(self) -> tuple[np.ndarray, ...]:
        """Return the arrays compared for equality."""
        return (*self.rows[:4], self.rewards, *self.space)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the model as named arrays that need no pickling; see the module docstring."""
        arrays = {
            "indptr": np.append(0, self.rows.span[:, 1]),
            "next_states": self.rows.index,
            "probs": self.rows.prob,
            "background": self.rows.background,
            "rewards": self.rewards,
            "terminal": self.terminal,
            "action_mask": self.action_mask,
        }
        for name in ("state_labels", "action_labels"):
            if getattr(self, name) is not None:
                arrays[name] = np.array(getattr(self, name), dtype=np.str_)
        return {name: array.copy() for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> FiniteMDP:
        """Create a model from named arrays, as returned by :meth:`arrays`.

        Parameters
        ----------
        arrays
            One of the two formats listed in the module docstring; unknown names are ignored.
        """
        needed = ("transitions",) if "indptr" not in arrays else ("next_states", "probs")
        missing = [name for name in (*needed, "rewards") if name not in arrays]
        if missing:
            raise ValueError(
                f"a model needs the arrays transitions [S, A, S] and rewards; {' and '.join(missing)} missing "
                f"(found: {', '.join(arrays) or 'nothing'})"
            )
        optional = {name: arrays[name] for name in _OPTIONAL_ARRAYS if name in arrays}
        rewards = np.asarray(arrays["rewards"])
        if "transitions" in arrays:
            return cls(np.asarray(arrays["transitions"]), rewards, **optional)
        length, state = np.diff(arrays["indptr"]), np.asarray(arrays["next_states"])
        prob = _checks.numbers(arrays["probs"], "probs")
        background = _checks.numbers(arrays.get("background", np.zeros(len(length))), "background")
        whole = length.dtype.kind in "iu" and state.dtype.kind in "iu" and (length >= 0).all()
        if not (whole and state.shape == prob.shape == (length.sum(),) and background.shape == length.shape):
            raise ValueError("indptr, next_states, probs and background do not describe one model")
        n_actions, rest = divmod(len(length), rewards.shape[0] if rewards.ndim else len(length) + 1)
        if rest or n_actions == 0:
            raise ValueError("indptr must have one entry for each state and action in rewards, plus one")
        row = np.repeat(np.arange(len(length)), length)
        entries = build.ModelEntries(len(rewards), n_actions, row, state.astype(np.int64), prob)
        self = cls.__new__(cls)
        self._fill(entries, np.maximum(background, 0.0), rewards, **optional)
        return self

    def save(self, path: str | Path, *, start: Any = None) -> None:
        """Write the model to an npz file with exactly this name.

        Parameters
        ----------
        path
            The file.
        start
            Initial state of an environment, or initial state probabilities ``[S]``; None to omit it.
        """
        arrays = self.arrays()
        if start is not None:
            arrays["start"] = np.asarray(check_start(start, self.n_states))
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> FiniteMDP:
        """Read an npz file written by :meth:`save` or by ``np.savez(path, transitions=P, rewards=R)``."""
        return load_model(path)[0]


def load_model(path: str | Path) -> tuple[FiniteMDP, Start]:
    """Read (model, start) from an npz file; ``start`` is None if the file does not contain it.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    ValueError
        The file is not an npz archive, lacks arrays, or contains an invalid model; the message names the file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file {path}; write one with FiniteMDP.save or np.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
    except Exception as error:  # a damaged archive can raise nearly any exception
        raise ValueError(f"{path} is not a model file; write one with np.savez ({error})") from None
    try:
        mdp = FiniteMDP.from_arrays(arrays)
        return mdp, check_start(arrays["start"], mdp.n_states) if "start" in arrays else None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None


def check_start(start: Any, n_states: int) -> int | np.ndarray:
    """Validate and return a start state or start probabilities ``[S]``."""
    array = np.asarray(start)
    if array.ndim == 0:
        return _checks.index(array.item(), "start", n_states)
    probs = _checks.numbers(array, "start")
    if probs.shape != (n_states,):
        raise ValueError(
            f"start must be a state or probabilities [{n_states}], got shape {list(probs.shape)}"
        )
    if not (np.isfinite(probs) & (probs >= 0.0)).all() or abs(probs.sum() - 1.0) > build.SUM_TOLERANCE:
        raise ValueError("start must be finite probabilities, at least 0, that sum to 1")
    return probs


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view
