"""The arrays of a belief that mean something, to compare bit for bit."""

import numpy as np

from bamdp.beliefs.rewards.cells import Cells
from bamdp.beliefs.transitions.counts import SIZE, START, Counts

# Fields that hold nothing but what is next computed into them.
SCRATCH = {"mark", "memo", "memo_key", "sizes", "log", "share", "last", "stream", "drawn", "of", "pushed"}


def content(state):
    """Every array that means something, name and copy; unused places of the pool are left out."""
    if isinstance(state, Counts):
        used = [state.pool[r[START] : r[START] + r[SIZE]].copy() for r in state.rows]
        return [("rows", state.rows.copy()), ("top", state.top.copy()), *(("pool", x) for x in used)]
    if isinstance(state, Cells):
        used = state.top[0]
        arrays = (state.head, state.top, state.stats[:used], state.link[:used])
        return [("cells", array.copy()) for array in arrays]
    if isinstance(state, np.ndarray):
        return [("", state.copy())]
    if not isinstance(state, tuple):
        return []
    names = getattr(state, "_fields", range(len(state)))
    return [
        (f"{type(state).__name__}.{name}.{rest}", array)
        for name, part in zip(names, state)
        if name not in SCRATCH
        for rest, array in content(part)
    ]


def same(one, two):
    assert [name for name, _ in one] == [name for name, _ in two]
    for (name, x), (_, y) in zip(one, two):
        assert x.dtype == y.dtype, name
        assert x.tobytes() == y.tobytes(), f"{name} has changed"
