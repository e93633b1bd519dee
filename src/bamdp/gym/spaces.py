"""Elements of finite Gymnasium spaces as numbers, and other observations as numbers in the order of their appearance.

A *form* describes a finite space as plain data, so that it can be compared, pickled and saved:

    ("discrete", n, first)        ("multi", shape, sizes, firsts)        ("binary", shape)
    ("tuple", forms)              ("dict", names, forms)

The elements of a form are numbered like the digits of a number with mixed bases, the first part being the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from bamdp import _checks, _serial

MAX_ELEMENTS = 20_000  # of a space that is numbered ahead of time
MAX_STATES_CALL = "bamdp.make_world(env, max_states=500), on the command line gym:ID:max_states=500"
Form = tuple[Any, ...]


def form_of(space: Any) -> Form | None:
    """Return the form of a Gymnasium space, or None if it is not finite."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Discrete):
        return "discrete", int(space.n), int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        firsts = getattr(space, "start", np.zeros_like(space.nvec))
        return "multi", space.nvec.shape, tuple(space.nvec.ravel().tolist()), tuple(np.ravel(firsts).tolist())
    if isinstance(space, spaces.MultiBinary):
        return "binary", tuple(space.shape)
    if isinstance(space, spaces.Tuple):
        return _of_parts("tuple", (), space.spaces)
    if isinstance(space, spaces.Dict):
        return _of_parts("dict", (tuple(space.spaces),), space.spaces.values())
    return None


def _of_parts(kind: str, names: tuple[Any, ...], parts: Any) -> Form | None:
    forms = tuple(form_of(part) for part in parts)
    return None if None in forms else (kind, *names, forms)


def form_size(form: Form) -> int:
    """Return the number of elements of a form."""
    if form[0] == "discrete":
        return int(form[1])
    if form[0] in ("tuple", "dict"):
        return math.prod(form_size(part) for part in form[-1])
    return math.prod(_sizes(form))


def part_sizes(form: Form) -> tuple[int, ...]:
    """Return the numbers of elements of the parts of a form, of which the elements are the digits.

    Examples
    --------
    >>> part_sizes(("dict", ("a", "b"), (("discrete", 7, 0), ("binary", (2,)))))
    (7, 4)
    """
    if form[0] == "discrete":
        return (int(form[1]),)
    if form[0] in ("tuple", "dict"):
        return tuple(form_size(part) for part in form[-1])
    return _sizes(form)


def _sizes(form: Form) -> tuple[int, ...]:
    return form[2] if form[0] == "multi" else (2,) * math.prod(form[1])


def number_of(form: Form, value: Any) -> int:
    """Return the number of an element; raise ValueError if ``value`` is not an element of the form."""
    if form[0] == "discrete":
        return _digit(value, form[1], form[2])
    if form[0] in ("tuple", "dict"):
        return _number_of_parts(form, value)
    array = np.asarray(value)
    if array.shape != form[1]:
        raise ValueError(f"{value!r} should have shape {form[1]}")
    sizes = _sizes(form)
    firsts = form[3] if form[0] == "multi" else (0,) * len(sizes)
    total = 0
    for digit, base, first in zip(array.ravel().tolist(), sizes, firsts):
        total = total * base + _digit(digit, base, first)
    return total


def _number_of_parts(form: Form, value: Any) -> int:
    parts = form[-1]
    if form[0] == "dict":
        if not isinstance(value, dict) or set(value) != set(form[1]):
            raise ValueError(f"{value!r} should be a dict with the keys {form[1]}")
        value = [value[name] for name in form[1]]
    if not isinstance(value, (tuple, list)) or len(value) != len(parts):
        raise ValueError(f"{value!r} should have {len(parts)} parts")
    total = 0
    for part, item in zip(parts, value):
        total = total * form_size(part) + number_of(part, item)
    return total


def _digit(value: Any, base: int, first: int) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, (int, np.integer)) or not first <= value < first + base:
        raise ValueError(f"{value!r} should be a whole number in {first}..{first + base - 1}")
    return int(value) - first


def form_element(form: Form, number: int) -> Any:
    """Return the element with a number, in the type that Gymnasium uses for the space."""
    if form[0] == "discrete":
        return number + form[2]
    if form[0] in ("tuple", "dict"):
        items: list[Any] = []
        for part in reversed(form[-1]):
            number, digit = divmod(number, form_size(part))
            items.append(form_element(part, digit))
        items.reverse()
        return tuple(items) if form[0] == "tuple" else dict(zip(form[1], items))
    sizes = _sizes(form)
    digits = np.zeros(len(sizes), np.int64)
    for i in range(len(sizes) - 1, -1, -1):
        number, digits[i] = divmod(number, sizes[i])
    if form[0] == "binary":
        return digits.astype(np.int8).reshape(form[1])
    return (digits + np.array(form[3], np.int64)).reshape(form[1])


@dataclass
class Numbering:
    """A map from observations to numbers: given by the form of their space, or made as they appear without one."""

    form: Form | None
    n: int  # how many numbers there are
    seen: dict[Any, int] = field(default_factory=dict)

    def __call__(self, observation: Any) -> int:
        """Return the number of an observation; a new one gets the next number."""
        if self.form is not None:
            try:
                return number_of(self.form, observation)
            except ValueError as error:
                raise ValueError(
                    f"the environment returned an observation outside its observation space: {error}"
                ) from None
        key = as_key(observation)
        if key not in self.seen:
            if len(self.seen) == self.n:
                raise ValueError(
                    f"observation {observation!r} is new, and {self.n} others have been seen, which is max_states; "
                    "raise it"
                )
            self.seen[key] = len(self.seen)
        return self.seen[key]


_serial.saveable(Numbering)


def as_key(observation: Any) -> Hashable:
    """Return something hashable, and saveable, that stands for an observation."""
    if isinstance(observation, (np.generic, np.ndarray)):
        if observation.dtype.kind not in "biuSU":
            raise ValueError(_not_finite(f"observations of {observation.dtype}"))
        observation = observation.tolist()
    if isinstance(observation, (list, tuple)):
        return tuple(as_key(item) for item in observation)
    if isinstance(observation, dict):
        return tuple((name, as_key(observation[name])) for name in sorted(observation))
    if not isinstance(observation, Hashable):
        raise ValueError(
            f"observation {observation!r} is not hashable; give observation=, a function that makes a tuple of numbers "
            "of it"
        )
    return observation


def number_observations(
    space: Any, max_states: int | None, function: Callable[[Any], Any] | None
) -> Numbering:
    """Return a numbering of the observations of a space, or of what ``function`` makes of them."""
    form = form_of(space) if function is None else None
    if max_states is not None:
        if function is None and _has_real_numbers(space):
            raise ValueError(_not_finite(str(space)))
        return Numbering(None, _checks.integer(max_states, "max_states"))
    if form is not None and form_size(form) <= MAX_ELEMENTS:
        return Numbering(form, form_size(form))
    if form is not None:
        raise ValueError(
            f"there are {form_size(form)} observations in {space}; say max_states=..., how many of them will appear at "
            f"most, and they are numbered as they come: {MAX_STATES_CALL}"
        )
    if function is not None:
        raise ValueError(
            "with observation=... say max_states=..., how many different observations it may return"
        )
    if _has_real_numbers(space):
        raise ValueError(_not_finite(str(space)))
    raise ValueError(
        f"{space} is not numbered ahead of time; say max_states=..., how many different observations will appear at "
        f"most, and they are numbered as they come: {MAX_STATES_CALL}"
    )


def _has_real_numbers(space: Any) -> bool:
    """Return whether observations have numbers that are not whole, which hardly ever come again."""
    parts = getattr(space, "spaces", None)
    if parts is not None:
        return any(_has_real_numbers(part) for part in (parts.values() if isinstance(parts, dict) else parts))
    return isinstance(space, gymnasium.spaces.Box) and np.dtype(space.dtype).kind == "f"


def _not_finite(what: str) -> str:
    return (
        f"{what} cannot be states of a finite model; make them discrete: bamdp.gym.Discretize(env, bins=8) (on the "
        "command line --bins 8), or bamdp.make_world(env, observation=..., max_states=500) with a function of your own"
    )


def number_actions(space: Any) -> Form:
    """Return the form of an action space; raise ValueError if it is not finite, or too large."""
    form = form_of(space)
    if form is None:
        raise ValueError(
            f"actions {space} cannot be actions of a finite model; put a gymnasium.ActionWrapper around the "
            "environment whose action space is Discrete, such as a list of a few useful actions"
        )
    if form_size(form) > MAX_ELEMENTS:
        raise ValueError(
            f"there are {form_size(form)} actions in {space}, more than {MAX_ELEMENTS}; wrap it into fewer"
        )
    return form
