"""Models as npz files, without pickle.

Either form may be read; the second is what is written, since it never takes more than the model itself:

========================  ====================================================================
``transitions``           ``[S, A, S]``: a user's own file, with ``rewards`` beside it
``indptr``                int ``[S*A + 1]``: entries of row ``s*A + a`` are ``indptr[row]:indptr[row+1]``
``next_states``, ``probs``  the entries
``background``            ``[S*A]``: mass spread evenly over all states; absent when 0
========================  ====================================================================

In both: ``rewards`` (``[S]``, ``[S, A]`` or ``[S, A, S]``) and, optionally, ``terminal``, ``action_mask``,
``state_labels``, ``action_labels``, and ``start``, a state or probabilities ``[S]``, which is no part of the
model but tells an environment where to begin.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.rows import Rows
from bamdp._serial import known
from bamdp.mdp import build, validate
from bamdp.mdp.model import FiniteMDP

Start = int | np.ndarray | None

_OPTIONAL = ("terminal", "action_mask", "state_labels", "action_labels")


def to_arrays(mdp: FiniteMDP) -> dict[str, np.ndarray]:
    """The model as named arrays, see the module's docstring."""
    rows = mdp.rows
    _, position = validate.entry_positions(rows.span)
    counts = rows.span[:, 1] - rows.span[:, 0]
    arrays = {
        "indptr": np.concatenate([[0], np.cumsum(counts)]),
        "next_states": rows.index[position],
        "probs": rows.prob[position],
        "rewards": mdp.rewards,
        "terminal": mdp.terminal,
        "action_mask": mdp.action_mask,
    }
    if rows.background.any():
        arrays["background"] = rows.background
    for name in ("state_labels", "action_labels"):
        labels = getattr(mdp, name)
        if labels is not None:
            arrays[name] = np.array(labels, dtype=np.str_)
    return {name: array.copy() for name, array in arrays.items()}


def from_arrays(arrays: Mapping[str, Any]) -> FiniteMDP:
    """The model that ``arrays`` describe; unknown names are ignored."""
    missing = [name for name in ("rewards",) if name not in arrays]
    if "transitions" not in arrays and "indptr" not in arrays:
        missing.insert(0, "transitions")
    if missing:
        raise ValueError(
            f"a model needs the arrays transitions [S, A, S] and rewards; {' and '.join(missing)} missing "
            f"(found: {', '.join(arrays) or 'nothing'})"
        )
    optional = {name: arrays[name] for name in _OPTIONAL if name in arrays}
    if "transitions" in arrays:
        return FiniteMDP(np.asarray(arrays["transitions"]), arrays["rewards"], **optional)
    needed = [name for name in ("next_states", "probs") if name not in arrays]
    if needed:
        raise ValueError(f"a model with indptr needs {', '.join(needed)} too")
    for name in ("indptr", "next_states"):
        given = np.asarray(arrays[name])
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(
                f"{name} must be a vector of whole numbers, got shape {given.shape} of {given.dtype}"
            )
    indptr = np.asarray(arrays["indptr"], dtype=np.int64)
    span = np.stack([indptr[:-1], indptr[1:]], axis=1)
    rows = Rows(
        span,
        np.array(arrays["next_states"], dtype=np.int32),
        np.array(arrays["probs"], dtype=np.float64),
        np.array(arrays.get("background", np.zeros(len(span))), dtype=np.float64),
        np.zeros(len(span)),
    )
    space = build.read_space(
        *_sizes(len(span), arrays["rewards"]), optional.get("terminal"), optional.get("action_mask")
    )
    labels = {name: optional.get(name) for name in ("state_labels", "action_labels")}
    return FiniteMDP.from_rows(rows, space, arrays["rewards"], **labels)


def _sizes(n_rows: int, rewards: Any) -> tuple[int, int]:
    """(S, A) of a model with so many rows and these rewards."""
    n_states = len(rewards) if np.ndim(rewards) else 0
    if n_states == 0 or n_rows == 0 or n_rows % n_states:
        raise ValueError(
            f"indptr has {n_rows} rows, one for each state and action, which does not go with rewards of shape "
            f"{list(np.shape(rewards))}; their first index is the state"
        )
    return n_states, n_rows // n_states


def save_model(mdp: FiniteMDP, path: str | Path, *, start: Any = None) -> None:
    """Write the model, and where to start, to an npz file of exactly this name."""
    arrays = to_arrays(mdp)
    if start is not None:
        arrays["start"] = np.asarray(check_start(start, mdp.n_states))
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def load_model(path: str | Path) -> tuple[FiniteMDP, Start]:
    """(model, start) from an npz file; ``start`` is None when the file does not say.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is no npz archive, lacks arrays, or holds an invalid model; the message names the file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file {path}; write one with FiniteMDP.save or np.savez")
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} is not a model file; write one with np.savez(path, transitions=P, rewards=R)"
        )
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # of a damaged archive nearly any
        raise ValueError(f"{path} is not a model file (npz without pickled objects): {error}") from None
    try:
        mdp = from_arrays(arrays)
        start = check_start(arrays["start"], mdp.n_states) if "start" in arrays else None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None
    return mdp, start


def check_start(start: Any, n_states: int) -> int | np.ndarray:
    """A start state, or start probabilities ``[S]``."""
    given = np.asarray(start)
    if given.ndim == 0:
        return _checks.index(given.item(), "start", n_states)
    probs = build.as_floats(given, "start")
    if probs.shape != (n_states,):
        raise ValueError(
            f"start must be a state or probabilities [{n_states}], got shape {list(probs.shape)}"
        )
    if not (np.isfinite(probs) & (probs >= 0.0)).all() or abs(probs.sum() - 1.0) > validate.SUM_TOLERANCE:
        raise ValueError("start must be finite probabilities, at least 0, that sum to 1")
    return probs


known(FiniteMDP, take=to_arrays, make=from_arrays)
