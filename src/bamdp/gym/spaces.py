"""Elements of finite Gymnasium spaces as numbers, and other observations as numbers in the order of their appearance.

A *form* describes a finite space as plain data, so that it can be compared, pickled and saved:

    ("discrete", n, first)        ("multi", shape, sizes, firsts)        ("binary", shape)
    ("tuple", forms)              ("dict", names, forms)

The elements of a form are numbered like the digits of a number with mixed bases, the first part being the slowest.
Observations that are not whole numbers become states by bins along each coordinate (:class:`Discretize`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from operator import getitem
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks

MAX_ELEMENTS = 20_000  # of a space that is numbered ahead of time
MAX_STATES_CALL = "bamdp.make_world(env, max_states=500), on the command line gym:ID:max_states=500"
Form = tuple[Any, ...]
NESTED = ("tuple", "dict")  # forms of several forms
UNIFORM, QUANTILES = EDGES = ("uniform", "quantiles")
TRIAL_STEPS = 2000  # of random play, to see which observations there are
MAX_BOUND = 1e6  # a larger bound of a space says as little as none


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
    return math.prod(part_sizes(form))


def part_sizes(form: Form) -> tuple[int, ...]:
    """Return the numbers of elements of the parts of a form, of which the elements are the digits.

    Examples
    --------
    >>> part_sizes(("dict", ("a", "b"), (("discrete", 7, 0), ("binary", (2,)))))
    (7, 4)
    """
    if form[0] in NESTED:
        return tuple(form_size(part) for part in form[-1])
    if form[0] == "discrete":
        return (int(form[1]),)
    return form[2] if form[0] == "multi" else (2,) * math.prod(form[1])


def number_of(form: Form, value: Any) -> int:
    """Return the number of an element; raise ValueError if ``value`` is not an element of the form."""
    if form[0] == "discrete":
        return _digit(value, form[1], form[2])
    sizes = part_sizes(form)
    if form[0] in NESTED:
        digits = [number_of(part, item) for part, item in zip(form[-1], _items(form, value))]
    else:
        array = np.asarray(value)
        if array.shape != form[1]:
            raise ValueError(f"{value!r} should have shape {form[1]}")
        firsts = form[3] if form[0] == "multi" else (0,) * len(sizes)
        digits = [_digit(*each) for each in zip(array.ravel().tolist(), sizes, firsts)]
    total = 0
    for digit, base in zip(digits, sizes):
        total = total * base + digit
    return total


def _items(form: Form, value: Any) -> Sequence[Any]:
    """Return the parts of an element of a nested form."""
    if form[0] == "dict":
        if not isinstance(value, dict) or set(value) != set(form[1]):
            raise ValueError(f"{value!r} should be a dict with the keys {form[1]}")
        return [value[name] for name in form[1]]
    if not isinstance(value, (tuple, list)) or len(value) != len(form[-1]):
        raise ValueError(f"{value!r} should have {len(form[-1])} parts")
    return value


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
    digits = [int(digit) for digit in np.unravel_index(number, part_sizes(form))]
    if form[0] in NESTED:
        items = tuple(form_element(part, digit) for part, digit in zip(form[-1], digits))
        return items if form[0] == "tuple" else dict(zip(form[1], items))
    if form[0] == "binary":
        return np.array(digits, np.int8).reshape(form[1])
    return (np.array(digits, np.int64) + np.array(form[3], np.int64)).reshape(form[1])


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
    form = form_of(space) if function is None else None
    if max_states is None and form is not None and form_size(form) <= MAX_ELEMENTS:
        return Numbering(form, form_size(form))
    if function is None and _has_real_numbers(space):
        raise ValueError(_not_finite(str(space)))
    if max_states is not None:
        return Numbering(None, _checks.integer(max_states, "max_states"))
    if function is not None:
        raise ValueError(
            "with observation=... say max_states=..., how many different observations it may return"
        )
    why, which = f"{space} is not numbered ahead of time", "different observations"
    if form is not None:
        why, which = f"there are {form_size(form)} observations in {space}", "of them"
    raise ValueError(
        f"{why}; say max_states=..., how many {which} will appear at most, and they are numbered as they come: "
        f"{MAX_STATES_CALL}"
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
        self.parts = _parts(env.observation_space)
        keys = [part.path[:1] for part in self.parts if part.form is None for _ in range(part.size)]
        if not keys:
            raise ValueError(
                f"bins are for observations that have arrays of numbers (Box), got {env.observation_space}; a finite "
                "space needs none"
            )
        _checks.one_of(edges, "edges", EDGES)
        wanted = iter(_per_coordinate(bins, "bins", keys))
        ranges = iter(_per_coordinate(bounds, "bounds", keys))
        seen = cache(partial(_random_play, env, self.parts, _checks.integer(steps, "steps"), seed))
        found: list[NDArray[np.float64]] = []
        for part in self.parts:
            if part.form is not None:
                found.append(np.arange(0.5, form_size(part.form) - 1))
                continue
            for limits in zip(part.space.low.flat, part.space.high.flat):
                found.append(_inner_edges(len(found), next(wanted), next(ranges), edges, limits, seen))
        self.edges = tuple(found)
        self.sizes = tuple(len(inner) + 1 for inner in self.edges)
        self.observation_space = gymnasium.spaces.Discrete(math.prod(self.sizes))

    def observation(self, observation: Any) -> int:
        """Return the state of an observation."""
        state = 0
        for value, inner, size in zip(_coordinates(self.parts, observation), self.edges, self.sizes):
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


@dataclass(frozen=True)
class _Part:
    """A box, or a finite part, of an observation space."""

    path: tuple[Any, ...]  # keys that lead there from the whole observation
    space: Any
    form: Form | None  # of a finite part; None of a box

    @property
    def size(self) -> int:
        """How many coordinates it has."""
        return 1 if self.form is not None else math.prod(self.space.shape)


def _parts(space: Any, path: tuple[Any, ...] = ()) -> tuple[_Part, ...]:
    """Return the boxes and the finite parts of an observation space, in its order."""
    form, inner = form_of(space), getattr(space, "spaces", None)
    if form is not None or isinstance(space, gymnasium.spaces.Box):
        return (_Part(path, space, form),)
    if inner is None:
        raise ValueError(f"there are no bins for observations in {space}: it is neither finite nor a Box")
    named = inner.items() if isinstance(inner, Mapping) else enumerate(inner)
    return tuple(part for name, one in named for part in _parts(one, (*path, name)))


def _coordinates(parts: Sequence[_Part], observation: Any) -> NDArray[np.float64]:
    """Return an observation as an array: the numbers of its boxes, and the number of each finite part."""
    found: list[Any] = []
    for part in parts:
        value = reduce(getitem, part.path, observation)
        found.append(np.ravel(value) if part.form is None else [number_of(part.form, value)])
    return np.concatenate(found)


def _random_play(
    env: gymnasium.Env[Any, Any], parts: Sequence[_Part], steps: int, seed: int
) -> NDArray[np.float64]:
    """Return what random play shows of each coordinate, [T, n]."""
    env.action_space.seed(seed)
    seen = [_coordinates(parts, env.reset(seed=seed)[0])]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(_coordinates(parts, observation))
        if terminated or truncated:
            seen.append(_coordinates(parts, env.reset()[0]))
    return np.array(seen, float)


def _per_coordinate(values: Any, name: str, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return one value for each coordinate of boxes, whose keys in the observation are given.

    A single number, or None, is the same for all.
    """
    if isinstance(values, Mapping):
        known = {str(key[0]): keys.count(key) for key in keys if key}
        for key in values:
            _checks.one_of(key, f"key of {name}", known)
        missing = next((key for key in known if key not in values and name == "bins"), None)
        if missing is not None:
            raise ValueError(f"there are no bins for {missing!r}; with 1 it is left out")
        given = (_per_coordinate(values.get(key), f"{name}[{key!r}]", [()] * n) for key, n in known.items())
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
