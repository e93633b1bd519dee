"""Tools for defining named environments.

Every model has the form s' = target[s, a, w], where the disturbance w has given probabilities; :func:`rows` builds its
transition matrix. The decorator :func:`environment` registers a function under its name, validates its arguments
against the types below and records them.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.envs.environment import Environment

if TYPE_CHECKING:
    from scipy import sparse


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else _checks.integer(value, name, low=0)


Count = Annotated[int, _checks.integer]
Size = Annotated[int, partial(_checks.integer, low=2)]
Seed = Annotated[int, partial(_checks.integer, low=0, high=2**32 - 1)]
OptionalNumber = Annotated[int | None, _optional]
Real = Annotated[float, _checks.real]
Positive = Annotated[float, partial(_checks.real, low=0.0, open_low=True)]
Probability = Annotated[float, partial(_checks.real, low=0.0, high=1.0)]
# a Poisson mean small enough for computing the probabilities one by one
Rate = Annotated[float, partial(_checks.real, low=0.0, high=500.0, open_low=True)]

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {}


def environment(make: Callable[..., Environment]) -> Callable[..., Environment]:
    """Register a function that creates an environment, and validate its arguments by their types."""
    checks: dict[str, Callable[[Any, str], Any]] = {}
    for name, hint in typing.get_type_hints(make, include_extras=True).items():
        if typing.get_origin(hint) is Literal:
            checks[name] = partial(_checks.one_of, choices=typing.get_args(hint))
        for note in getattr(hint, "__metadata__", ()):
            checks[name] = note
    signature = inspect.signature(make)

    @functools.wraps(make)
    def checked(*args: Any, **parameters: Any) -> Environment:
        given = signature.bind(*args, **parameters)
        given.apply_defaults()
        values = {name: checks.get(name, _same)(value, name) for name, value in given.arguments.items()}
        made = make(**values)
        made.name = make.__name__
        made.parameters = {name: made.parameters.get(name, value) for name, value in values.items()}
        return made

    ENVIRONMENTS[make.__name__] = checked
    return checked


def _same(value: Any, name: str) -> Any:
    return value


def rows(target: NDArray[Any], chances: ArrayLike) -> sparse.csr_matrix:
    """Return transitions [S*A, S] from (s, a) to ``target[s, a, w]`` with probability ``chances[..., w]``.

    Examples
    --------
    >>> rows(np.array([[[0, 1]], [[1, 1]]]), [0.2, 0.8]).toarray()
    array([[0.2, 0.8],
           [0. , 1. ]])
    """
    from scipy import sparse  # slow to import

    S, A, W = target.shape
    p = np.broadcast_to(np.asarray(chances, float), target.shape).flatten()
    begins = np.arange(0, S * A * W + 1, W)
    matrix = sparse.csr_matrix((p, target.flatten(), begins), shape=(S * A, S))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
