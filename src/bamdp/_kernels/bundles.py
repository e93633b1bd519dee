"""Bundles of arrays for kernels, whose shapes are written once, where the bundle is declared.

class Stack(NamedTuple):
    state: Annotated[np.ndarray, "int64 [H]"]  # s of the node
    value: Annotated[np.ndarray, "float64 [H, A]"]

stack = zeros(Stack, H=4, A=2)
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np

T = TypeVar("T")


@cache
def _layout(kind: type) -> dict[str, tuple[np.dtype, list[str | int]]]:
    """Return of each array that a bundle declares its type, and its axes: the name of a size, or a number."""
    hints = get_type_hints(kind, include_extras=True).items()
    written = {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}
    split = {name: text.rstrip("]").split(" [") for name, text in written.items()}
    return {
        name: (np.dtype(dtype), [int(axis) if axis.isdigit() else axis for axis in axes.split(", ")])
        for name, (dtype, axes) in split.items()
    }


def zeros(kind: type[T], **given: Any) -> T:
    """Return a bundle of zeros.

    Parameters
    ----------
    kind
        A NamedTuple or a dataclass with arrays declared as above. An axis is the name of a size, or a number.
    **given
        The sizes of all axes that have a name, and the fields that are something else than zeros.
    """
    made = {name: value for name, value in given.items() if name in kind.__annotations__}
    for name, (dtype, axes) in _layout(kind).items():  # type: ignore[arg-type]
        if name not in made:
            made[name] = np.zeros(tuple(map(given.get, axes, axes)), dtype)  # type: ignore[arg-type]
    return kind(**made)
