"""Enumeration of finite Gymnasium spaces, and numbering of observations.

The elements of a finite space, nested or not, are ordered: later parts change faster, and parts of a ``Dict`` are
sorted by key. The number of an element is its index in this order. Elements of spaces that cannot be enumerated are
numbered in order of appearance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from bamdp import _checks

MAX_ELEMENTS = 20_000  # of a space that is enumerated in advance
MAX_STATES_CALL = "bamdp.make_world(env, max_states=500), on the command line gym:ID:max_states=500"


def parts_of(space: Any) -> dict[Any, Any]:
    """Return the parts of a ``Dict`` or ``Tuple`` by key, in order; other spaces have no parts."""
    inner = getattr(space, "spaces", ())
    return dict(sorted(inner.items()) if isinstance(inner, Mapping) else enumerate(inner))


def is_finite(space: Any) -> bool:
    """Return whether a space has finitely many elements and can be enumerated."""
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        return all(map(is_finite, parts_of(space).values()))
    return isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))


def elements(space: Any) -> list[Any]:
    """Return the first ``MAX_ELEMENTS`` + 1 elements of a finite space.

    Examples
    --------
    >>> elements(spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(2, start=5)}))
    [{'a': 5, 'b': 0}, {'a': 5, 'b': 1}, {'a': 6, 'b': 0}, {'a': 6, 'b': 1}]
    """
    return list(itertools.islice(_elements(space), MAX_ELEMENTS + 1))


def _elements(space: Any) -> Iterator[Any]:
    if isinstance(space, spaces.Discrete):
        yield from range(int(space.start), int(space.start + space.n))
    elif isinstance(space, (spaces.Tuple, spaces.Dict)):
        parts = parts_of(space)
        for values in itertools.product(*map(elements, parts.values())):
            yield dict(zip(parts, values)) if isinstance(space, spaces.Dict) else values
    else:
        sizes = np.ravel(getattr(space, "nvec", np.full(space.shape, 2)))
        first = np.ravel(getattr(space, "start", np.zeros(space.shape, int)))
        for values in itertools.product(*(range(f, f + n) for f, n in zip(first.tolist(), sizes.tolist()))):
            yield np.array(values, space.dtype).reshape(space.shape)


def key_of(element: Any) -> Hashable:
    """Return a hashable key for an element; equal elements of any type have the same key."""
    if isinstance(element, (np.generic, np.ndarray)):
        if element.dtype.kind not in "biuSU":
            raise ValueError(_not_finite(f"observations of {element.dtype}"))
        element = element.tolist()
    if isinstance(element, (list, tuple)):
        return tuple(map(key_of, element))
    if isinstance(element, Mapping):
        return tuple((name, key_of(element[name])) for name in sorted(element))
    if not isinstance(element, Hashable):
        raise ValueError(
            f"observation {element!r} is not hashable; give observation=, a function that makes a tuple of it"
        )
    return element


class Numbering:
    """A map from elements to numbers 0 .. ``n`` - 1, in the order of an enumerated space or of appearance."""

    def __init__(self, n: int, listed: list[Any] | None = None, space: Any = None) -> None:
        self.n, self.space = n, space
        self.numbers = {key_of(element): i for i, element in enumerate(listed or ())}

    def __call__(self, element: Any) -> int:
        """Return the number of an element; without an enumerated space, a new element gets the next number."""
        key = key_of(element)
        number = self.numbers.get(key)
        if number is not None:
            return number
        if self.space is not None:
            raise ValueError(f"{element!r} is outside of the space {self.space}")
        if len(self.numbers) == self.n:
            raise ValueError(
                f"observation {element!r} is new, and {self.n} others have been seen, which is max_states; raise it"
            )
        self.numbers[key] = len(self.numbers)
        return self.numbers[key]


def number_observations(
    space: Any, max_states: int | None, function: Callable[[Any], Any] | None
) -> Numbering:
    """Return a numbering of a space's observations, after applying ``function`` if it is given."""
    if max_states is None and function is None and is_finite(space):
        listed = elements(space)
        if len(listed) <= MAX_ELEMENTS:
            return Numbering(len(listed), listed, space)
    if function is None and _has_real_numbers(space):
        raise ValueError(_not_finite(str(space)))
    if max_states is None:
        what = "with observation=..." if function is not None else f"{space} is not numbered ahead of time;"
        raise ValueError(
            f"{what} say max_states=..., how many different observations will appear at most, and they are numbered "
            f"as they come: {MAX_STATES_CALL}"
        )
    return Numbering(_checks.integer(max_states, "max_states"))


def _has_real_numbers(space: Any) -> bool:
    """Return whether observations contain real numbers, whose values hardly ever repeat."""
    real = isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f"
    return real or any(map(_has_real_numbers, parts_of(space).values()))


def _not_finite(what: str) -> str:
    return (
        f"{what} cannot be states of a finite model; make them discrete: bamdp.gym.Discretize(env, bins=8) (on the "
        "command line --bins 8), or bamdp.make_world(env, observation=..., max_states=500) with a function of your own"
    )


def list_actions(space: Any) -> list[Any]:
    """Return the actions of a space; raise ValueError if it is infinite or too large."""
    listed = elements(space) if is_finite(space) else []
    if not 0 < len(listed) <= MAX_ELEMENTS:
        raise ValueError(
            f"actions {space} cannot be actions of a finite model; put a gymnasium.ActionWrapper around the "
            f"environment whose action space is Discrete, such as a list of a few useful actions (at most "
            f"{MAX_ELEMENTS}), or bamdp.gym.DiscretizeActions"
        )
    return listed
