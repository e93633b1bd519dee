"""A user's own model from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bamdp.envs.environment import Environment
from bamdp.mdp import load_model


def from_file(path: str | Path, start: Any = None, horizon: int = 1000) -> Environment:
    """A model from an npz file, which `FiniteMDP.save` wrote or holds ``transitions`` and ``rewards``.

    Parameters
    ----------
    path : str or Path
        The file.
    start : int or array [S], optional
        The state after a reset, or probabilities to draw it from; by default the file's own ``start``, or
        else 0.
    horizon : int, default 1000
        How many steps a run usually lasts.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "swap.npz")
    >>> np.savez(path, transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0], start=1)
    >>> from_file(path).reset(seed=0)
    1
    """
    if not str(path):
        raise ValueError("a file is missing; write file:PATH, for instance file:model.npz")
    mdp, written = load_model(path)
    parameters = {"horizon": horizon} | ({} if start is None else {"start": start})
    first = written if start is None else start
    return Environment(
        f"file:{path}", mdp, start=0 if first is None else first, horizon=horizon, parameters=parameters
    )
