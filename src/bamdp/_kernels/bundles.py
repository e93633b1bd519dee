"""Bundles of arrays for kernels, with shapes declared alongside the fields.

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
    """Return the dtype and axes of each declared array; an axis is the name of a size or a number."""
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
        A NamedTuple or dataclass with arrays declared as in the module docstring. Axes are names of sizes or numbers.
    **given
        The sizes of all named axes, and values of fields that are not filled with zeros.
    """
    made = {name: value for name, value in given.items() if name in kind.__annotations__}
    for name, (dtype, axes) in _layout(kind).items():  # type: ignore[arg-type]
        if name not in made:
            made[name] = np.zeros(tuple(map(given.get, axes, axes)), dtype)  # type: ignore[arg-type]
    return kind(**made)
