"""Observations that are not whole numbers as states, by bins along each coordinate; a few levels of such actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.gym.spaces import elements, is_finite, parts_of

UNIFORM, QUANTILES = EDGES = ("uniform", "quantiles")
TRIAL_STEPS = 2000  # of random play, to see which observations there are
MAX_BOUND = 1e6  # a larger bound of a space says as little as none


class Discretize(gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose observations become states, by bins along each of their numbers.

    The new observation space is ``Discrete``: the bins of all coordinates are the digits of the state. Such a world is
    no longer Markov, and agents believe that it is; with bins that separate what calls for different actions that does
    little harm. Values beyond the outermost edges belong to the outermost bins.

    Parameters
    ----------
    env
        The environment. Its observation space is a ``Box``, or a ``Dict`` or ``Tuple`` with such parts; their finite
        parts stay as they are.
    bins
        How many bins: a number for all coordinates of boxes, or one for each, in the order of the keys of a ``Dict``.
        1 leaves a coordinate out. In place of a number there may be the inner edges of the bins, in ascending order.
    edges
        Where the edges are that were not given: ``"uniform"``, bins of equal width between ``bounds``; ``"quantiles"``,
        bins that random play visits equally often.
    bounds
        For uniform bins, (low, high) of each coordinate of boxes, or None for what the space says. Where it says
        nothing, as of CartPole's velocities, the range that random play has shown.
    steps, seed
        The length of the random play, and its seed. It takes place only if it is needed, when the wrapper is made.

    Attributes
    ----------
    edges : tuple of arrays
        The inner edges of each coordinate, one fewer than bins. A finite part is one coordinate for each number.

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
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        bins: int | Sequence[int | ArrayLike],
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
        n_real = sum(limits is not None for limits, _ in coordinates)
        if not n_real:
            raise ValueError(
                f"bins are for observations that have arrays of numbers (Box), got {env.observation_space}; a finite "
                "space needs none"
            )
        _checks.one_of(edges, "edges", EDGES)
        wanted = iter(_per_coordinate(bins, "bins", n_real))
        ranges = iter(_per_coordinate(bounds, "bounds", n_real))
        seen = cache(partial(_random_play, env, _checks.integer(steps, "steps"), seed))
        self.edges = tuple(
            whole if limits is None else _inner_edges(i, next(wanted), next(ranges) or limits, edges, seen)
            for i, (limits, whole) in enumerate(coordinates)
        )
        self.sizes = tuple(len(inner) + 1 for inner in self.edges)
        self.observation_space = spaces.Discrete(math.prod(self.sizes))

    def observation(self, observation: Any) -> int:
        """Return the state of an observation."""
        values = _numbers_in(observation)
        if np.isnan(values).any():
            raise ValueError(f"the environment returned an observation that is not a number: {observation}")
        digits = [np.searchsorted(inner, value, side="right") for inner, value in zip(self.edges, values)]
        return int(np.ravel_multi_index(digits, self.sizes))

    def intervals(self, state: int) -> list[tuple[float, float]]:
        """Return what a state stands for: the interval of each coordinate, the outermost ones without an end."""
        state = _checks.index(state, "state", math.prod(self.sizes))
        ends = [(-np.inf, *inner.tolist(), np.inf) for inner in self.edges]
        return [(end[i], end[i + 1]) for end, i in zip(ends, np.unravel_index(state, self.sizes))]


class DiscretizeActions(gymnasium.ActionWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose actions, a ``Box``, become numbers: each stands for one level of every coordinate.

    With :class:`Discretize` it makes a finite world of one with real observations and actions. The number of actions is
    the product of the numbers of levels, and every state must learn what each of them does: use few.

    Parameters
    ----------
    env
        The environment. Its action space is a ``Box``.
    levels
        How many levels, at equal distances from the lower to the upper bound, both included (1 is the middle): a number
        for all coordinates, or one for each. In place of a number there may be the levels themselves.

    Attributes
    ----------
    actions : array
        The action [m] that each number stands for.

    Examples
    --------
    >>> import gymnasium
    >>> env = DiscretizeActions(gymnasium.make("Pendulum-v1"), levels=3)
    >>> env.action_space, env.actions.ravel().tolist()
    (Discrete(3), [-2.0, 0.0, 2.0])
    >>> from bamdp import make_world
    >>> world = make_world(Discretize(env, bins=(8, 8, 8)))
    >>> world.n_states, world.n_actions  # with the state that stands for the end
    (513, 3)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], levels: int | Sequence[int | ArrayLike]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, levels=levels)
        super().__init__(env)
        box = env.action_space
        if not isinstance(box, spaces.Box):
            raise ValueError(f"levels are for actions that are arrays of numbers (Box), got {box}")
        ranges = list(zip(box.low.ravel().tolist(), box.high.ravel().tolist()))
        values = [
            _levels(i, level, *ends)
            for i, (level, ends) in enumerate(zip(_per_coordinate(levels, "levels", len(ranges)), ranges))
        ]
        grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1)
        self.actions = grid.reshape(-1, *box.shape).astype(box.dtype)
        self.action_space = spaces.Discrete(len(self.actions))

    def action(self, action: Any) -> NDArray[Any]:
        """Return the action that a number stands for."""
        return np.array(self.actions[_checks.index(action, "action", len(self.actions))])


def _levels(i: int, wanted: Any, low: float, high: float) -> NDArray[np.float64]:
    """Return the levels of one coordinate of actions."""
    if isinstance(wanted, (Sequence, np.ndarray)):
        values = np.asarray(wanted, float)
        if values.ndim != 1 or not len(values) or not ((values >= low) & (values <= high)).all():
            raise ValueError(
                f"levels of coordinate {i} must be numbers in [{low:g}, {high:g}], got {wanted!r}"
            )
        return values
    size = _checks.integer(wanted, "levels")
    if not np.isfinite([low, high]).all():
        raise ValueError(
            f"actions have no bounds in coordinate {i}: give its levels, such as levels=([-1.0, 0.0, 1.0],)"
        )
    return np.linspace(low, high, size) if size > 1 else np.array([0.5 * (low + high)])


def _coordinates(space: Any) -> Iterator[tuple[tuple[float, float] | None, NDArray[Any]]]:
    """Yield each number of an observation: the limits of a box, or None and the edges between whole numbers."""
    if isinstance(space, spaces.Box):
        yield from (
            ((float(low), float(high)), np.zeros(0)) for low, high in zip(space.low.flat, space.high.flat)
        )
    elif parts := parts_of(space):
        for part in parts.values():
            yield from _coordinates(part)
    elif is_finite(space):
        for values in zip(*map(_numbers_in, elements(space))):
            yield None, np.unique(values)[1:] - 0.5
    else:
        raise ValueError(f"there are no bins for observations in {space}: it is neither finite nor a Box")


def _numbers_in(observation: Any) -> list[float]:
    """Return the numbers in an observation, in the order of its coordinates."""
    if isinstance(observation, Mapping):
        observation = [observation[key] for key in sorted(observation)]
    if isinstance(observation, (tuple, list)):
        return [number for part in observation for number in _numbers_in(part)]
    return [float(number) for number in np.ravel(observation)]


def _random_play(env: gymnasium.Env[Any, Any], steps: int, seed: int) -> NDArray[np.float64]:
    """Return what random play shows of each coordinate, [T, n]."""
    env.action_space.seed(seed)
    seen = [_numbers_in(env.reset(seed=seed)[0])]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(_numbers_in(observation))
        if terminated or truncated:
            seen.append(_numbers_in(env.reset()[0]))
    return np.array(seen)


def _per_coordinate(values: Any, name: str, n: int) -> list[Any]:
    """Return one value for each of n coordinates; a single number, or None, is the same for all."""
    if not isinstance(values, (Sequence, np.ndarray)):
        return [values] * n
    if len(values) != n:
        raise ValueError(
            f"{name} must be one for all, or one for each of the {n} coordinates, got {len(values)}"
        )
    return list(values)


def _inner_edges(
    i: int, wanted: Any, limits: tuple[float, float], edges: str, play: Callable[[], NDArray[Any]]
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
        return np.unique(np.quantile(play()[:, i], np.arange(1, size) / size))
    low, high = limits
    if not max(abs(low), abs(high)) < MAX_BOUND:
        low, high = play()[:, i].min(), play()[:, i].max()
    if not low < high:
        raise ValueError(
            f"the bounds of coordinate {i} are {low:g} and {high:g}; the first must be the smaller"
        )
    return np.linspace(low, high, size + 1)[1:-1]
