"""Elements of finite Gymnasium spaces as numbers, and other observations as numbers in the order of their appearance.

An element of a finite space, nested in whatever way, is a list of digits: whole numbers, each with a first value and a
size. Its number is that of the digits in mixed bases, the first being the slowest. Observations that are not whole
numbers become states by bins along each coordinate (:class:`Discretize`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks

MAX_ELEMENTS = 20_000  # of a space that is numbered ahead of time
MAX_STATES_CALL = "bamdp.make_world(env, max_states=500), on the command line gym:ID:max_states=500"
Digits = tuple[tuple[int, int], ...]  # the first value and the size of each
UNIFORM, QUANTILES = EDGES = ("uniform", "quantiles")
TRIAL_STEPS = 2000  # of random play, to see which observations there are
MAX_BOUND = 1e6  # a larger bound of a space says as little as none


def parts_of(space: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a nested space by their keys; none of another space."""
    inner = getattr(space, "spaces", ())
    yield from sorted(inner.items()) if isinstance(inner, Mapping) else enumerate(inner)


def digits_of(space: Any) -> Digits | None:
    """Return the digits of a space's elements, or None if it is not finite.

    Examples
    --------
    >>> digits_of(spaces.Dict({"a": spaces.Discrete(7, start=1), "b": spaces.MultiBinary(2)}))
    ((1, 7), (0, 2), (0, 2))
    """
    if isinstance(space, spaces.Discrete):
        return ((int(space.start), int(space.n)),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(zip(np.ravel(space.start).tolist(), np.ravel(space.nvec).tolist()))
    if isinstance(space, spaces.MultiBinary):
        return ((0, 2),) * math.prod(space.shape)
    if not isinstance(space, (spaces.Tuple, spaces.Dict)):
        return None
    parts = [digits_of(part) for _, part in parts_of(space)]
    return None if None in parts else tuple(digit for part in parts for digit in part or ())


def values_of(element: Any) -> list[Any]:
    """Return the numbers in an element, in the order of the digits of its space."""
    if isinstance(element, Mapping):
        return [value for key in sorted(element) for value in values_of(element[key])]
    if isinstance(element, (tuple, list)):
        return [value for part in element for value in values_of(part)]
    values: list[Any] = np.ravel(element).tolist()
    return values


def n_elements(digits: Digits) -> int:
    """Return the number of elements that have these digits."""
    return math.prod(size for _, size in digits)


def number_of(digits: Digits, element: Any) -> int:
    """Return the number of an element; raise ValueError if it does not have these digits."""
    values, total = values_of(element), 0
    if len(values) != len(digits):
        raise ValueError(f"{element!r} should have {len(digits)} numbers")
    for value, (first, size) in zip(values, digits):
        if not isinstance(value, int) or not first <= value < first + size:
            raise ValueError(f"{value!r} should be a whole number in {first}..{first + size - 1}")
        total = total * size + value - first
    return total


def element_of(space: Any, number: int) -> Any:
    """Return the element of a finite space with a number, in the type that Gymnasium uses."""
    digits = digits_of(space)
    assert digits is not None
    places = np.unravel_index(number, [size for _, size in digits])
    return _build(space, iter([first + int(place) for (first, _), place in zip(digits, places)]))


def _build(space: Any, values: Iterator[int]) -> Any:
    if isinstance(space, spaces.Discrete):
        return next(values)
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        flat = [next(values) for _ in range(math.prod(space.shape))]
        return np.array(flat, space.dtype).reshape(space.shape)
    built = {key: _build(part, values) for key, part in parts_of(space)}
    return built if isinstance(space, spaces.Dict) else tuple(built.values())


@dataclass
class Numbering:
    """A map from observations to numbers: by the digits of their space, or in the order of appearance without any."""

    digits: Digits | None
    n: int  # how many numbers there are
    seen: dict[Any, int] = field(default_factory=dict)

    def __call__(self, observation: Any) -> int:
        """Return the number of an observation; a new one gets the next number."""
        if self.digits is not None:
            try:
                return number_of(self.digits, observation)
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


def as_key(observation: Any) -> Hashable:
    """Return something hashable that stands for an observation."""
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
    digits = digits_of(space) if function is None else None
    if max_states is None and digits is not None and n_elements(digits) <= MAX_ELEMENTS:
        return Numbering(digits, n_elements(digits))
    if function is None and _has_real_numbers(space):
        raise ValueError(_not_finite(str(space)))
    if max_states is None:
        what = "with observation=..." if function is not None else f"{space} is not numbered ahead of time;"
        raise ValueError(
            f"{what} say max_states=..., how many different observations will appear at most, and they are numbered "
            f"as they come: {MAX_STATES_CALL}"
        )
    return Numbering(None, _checks.integer(max_states, "max_states"))


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


def number_actions(space: Any) -> Digits:
    """Return the digits of an action space; raise ValueError if it is not finite, or too large."""
    digits = digits_of(space)
    if digits is None:
        raise ValueError(
            f"actions {space} cannot be actions of a finite model; put a gymnasium.ActionWrapper around the "
            "environment whose action space is Discrete, such as a list of a few useful actions"
        )
    if n_elements(digits) > MAX_ELEMENTS:
        raise ValueError(f"{space} has more than {MAX_ELEMENTS} actions; wrap it into fewer")
    return digits


class Discretize(gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose observations become states, by bins along each of their numbers.

    The new observation space is ``Discrete``: the bins of all coordinates are the digits of the state. Such a world is
    no longer Markov, and agents believe that it is; with bins that separate what calls for different actions that does
    little harm. What lies beyond the outermost edges belongs to the outermost bins.

    Parameters
    ----------
    env
        The environment. Its observation space is a ``Box``, or a ``Dict`` or ``Tuple`` with such parts; their finite
        parts stay as they are.
    bins
        How many bins: a number for all coordinates of boxes, or one for each, or in a dictionary by the keys of a
        ``Dict``. With 1 a coordinate is left out. In place of a number there may be the inner edges of the bins, in
        ascending order.
    edges
        Where the edges are that were not given: ``"uniform"``, bins of equal width between ``bounds``; ``"quantiles"``,
        bins that random play visits equally often.
    bounds
        For uniform bins, (low, high) of each coordinate of boxes, or None for what the space says. Where it says
        nothing, as of CartPole's velocities, what random play has shown.
    steps, seed
        The length of the random play, and its seed. It takes place only if it is needed, when the wrapper is made.

    Attributes
    ----------
    edges : tuple of arrays
        The inner edges of each coordinate, one fewer than bins. A finite part is one coordinate, its number.

    Examples
    --------
    >>> import gymnasium
    >>> env = Discretize(gymnasium.make("CartPole-v1"), bins=(3, 3, 6, 5))
    >>> env.observation_space
    Discrete(270)
    >>> env.edges[0].round(2).tolist()
    [-1.6, 1.6]
    >>> Discretize(gymnasium.make("CartPole-v1"), bins=(1, 1, [-0.1, 0.0, 0.1], [0.0])).observation_space
    Discrete(8)
    >>> from gymnasium import spaces
    >>> shop = gymnasium.Env()
    >>> shop.observation_space = spaces.Dict({"day": spaces.Discrete(7), "stock": spaces.Box(0.0, 9.0, (2,))})
    >>> shop = Discretize(shop, bins={"stock": (3, 2)})
    >>> shop.observation_space, shop.observation({"day": 1, "stock": [4.0, 8.0]})
    (Discrete(42), 9)
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        bins: int | Sequence[int | ArrayLike] | Mapping[str, int | Sequence[int | ArrayLike]],
        *,
        edges: str = UNIFORM,
        bounds: Sequence[tuple[float, float] | None] | None = None,
        steps: int = TRIAL_STEPS,
        seed: int = 0,
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, bins=bins, edges=edges, bounds=bounds, steps=steps, seed=seed
        )
        super().__init__(env)
        coordinates = list(_coordinates(env.observation_space))
        keys = [key for key, digit, _ in coordinates if digit is None]
        if not keys:
            raise ValueError(
                f"bins are for observations that have arrays of numbers (Box), got {env.observation_space}; a finite "
                "space needs none"
            )
        _checks.one_of(edges, "edges", EDGES)
        wanted = iter(_per_coordinate(bins, "bins", keys))
        ranges = iter(_per_coordinate(bounds, "bounds", keys))
        seen = cache(partial(_random_play, env, _checks.integer(steps, "steps"), seed))
        self.edges = tuple(
            _inner_edges(i, next(wanted), next(ranges), edges, limits, seen)
            if digit is None
            else np.arange(digit[0] + 0.5, sum(digit) - 1)
            for i, (_, digit, limits) in enumerate(coordinates)
        )
        self.sizes = tuple(len(inner) + 1 for inner in self.edges)
        self.observation_space = gymnasium.spaces.Discrete(math.prod(self.sizes))

    def observation(self, observation: Any) -> int:
        """Return the state of an observation."""
        state = 0
        for value, inner, size in zip(values_of(observation), self.edges, self.sizes):
            if np.isnan(value):
                raise ValueError(
                    f"the environment returned an observation that is not a number: {observation}"
                )
            state = state * size + int(np.searchsorted(inner, value, side="right"))
        return state

    def intervals(self, state: int) -> list[tuple[float, float]]:
        """Return what a state stands for: the interval of each coordinate, the outermost ones without an end."""
        state = _checks.index(state, "state", math.prod(self.sizes))
        digits = np.unravel_index(state, self.sizes)
        ends = [np.concatenate([[-np.inf], inner, [np.inf]]) for inner in self.edges]
        return [(float(end[digit]), float(end[digit + 1])) for end, digit in zip(ends, digits)]


def _coordinates(space: Any, key: Any = None) -> Iterator[tuple[Any, Any, tuple[float, float]]]:
    """Yield each number of an observation: its key in the whole, its digit (None in a box) and a box's limits."""
    if isinstance(space, spaces.Box):
        yield from ((key, None, limits) for limits in zip(space.low.flat, space.high.flat))
    elif (digits := digits_of(space)) is not None:
        yield from ((key, digit, (0.0, 0.0)) for digit in digits)
    elif isinstance(space, (spaces.Tuple, spaces.Dict)):
        for inner, part in parts_of(space):
            yield from _coordinates(part, inner if key is None else key)
    else:
        raise ValueError(f"there are no bins for observations in {space}: it is neither finite nor a Box")


def _random_play(env: gymnasium.Env[Any, Any], steps: int, seed: int) -> NDArray[np.float64]:
    """Return what random play shows of each coordinate, [T, n]."""
    env.action_space.seed(seed)
    seen = [values_of(env.reset(seed=seed)[0])]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(values_of(observation))
        if terminated or truncated:
            seen.append(values_of(env.reset()[0]))
    return np.array(seen, float)


def _per_coordinate(values: Any, name: str, keys: Sequence[Any]) -> list[Any]:
    """Return one value for each coordinate of boxes, whose keys in the observation are given.

    A single number, or None, is the same for all.
    """
    if isinstance(values, Mapping):
        known = {str(key): keys.count(key) for key in keys if key is not None}
        for key in values:
            _checks.one_of(key, f"key of {name}", known)
        missing = next((key for key in known if key not in values and name == "bins"), None)
        if missing is not None:
            raise ValueError(f"there are no bins for {missing!r}; with 1 it is left out")
        given = (_per_coordinate(values.get(key), f"{name}[{key!r}]", [None] * n) for key, n in known.items())
        return [value for part in given for value in part]
    if not isinstance(values, (Sequence, np.ndarray)):
        return [values] * len(keys)
    if len(values) != len(keys):
        raise ValueError(
            f"{name} must be one for all, or one for each of the {len(keys)} coordinates, got {len(values)}"
        )
    return list(values)


def _inner_edges(
    i: int, wanted: Any, bounds: Any, edges: str, space: tuple[float, float], play: Callable[[], NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the inner edges of one coordinate; random play shows its values, where they are needed."""
    if isinstance(wanted, (Sequence, np.ndarray)):
        inner = np.asarray(wanted, float)
        if inner.ndim != 1 or not np.isfinite(inner).all() or (np.diff(inner) <= 0).any():
            raise ValueError(f"edges of coordinate {i} must be numbers in ascending order, got {wanted!r}")
        return inner
    size = _checks.integer(wanted, "bins")
    if size == 1:
        return np.zeros(0)
    if edges == QUANTILES:
        inner = np.unique(np.quantile(play()[:, i], np.arange(1, size) / size))
        return np.asarray(inner, float)
    low, high = (float(end) for end in (space if bounds is None else bounds))
    if bounds is None and not max(abs(low), abs(high)) < MAX_BOUND:
        low, high = play()[:, i].min(), play()[:, i].max()
    if not low < high:
        raise ValueError(
            f"the bounds of coordinate {i} are {low:g} and {high:g}; the first must be the smaller"
        )
    return np.linspace(low, high, size + 1)[1:-1]
