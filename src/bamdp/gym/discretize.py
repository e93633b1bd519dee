"""Discretisation of real-valued observations into bins, and of real-valued actions into levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks

UNIFORM, QUANTILES = EDGES = ("uniform", "quantiles")
TRIAL_STEPS = 2000  # of random play, to find the range of observations
MAX_BOUND = 1e6  # a space with a larger bound counts as unbounded


class Discretize(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment whose observations are discretised into bins along each coordinate.

    The new observation space is ``Discrete``: the bins of all coordinates are the digits of the state. The discretised
    environment is no longer Markov, although agents assume that it is; this does little harm if the bins separate
    observations that require different actions. Values beyond the outermost edges belong to the outermost bins.

    Parameters
    ----------
    env
        The environment. Its observation space is a ``Box``; wrap others in `gymnasium.wrappers.FlattenObservation`.
    bins
        The number of bins: one number for all coordinates, or one per coordinate. A coordinate with 1 bin is ignored.
        Instead of a number, give the inner edges of the bins in ascending order.
    edges
        How to choose edges that are not given: ``"uniform"`` for bins of equal width between ``bounds``, or
        ``"quantiles"`` for bins that random play visits equally often.
    bounds
        For uniform bins, (low, high) of each coordinate, or None for the bounds of the space. If the space is
        unbounded, as for CartPole's velocities, the range observed in random play is used. Random play, if needed,
        takes place when the wrapper is created.

    Attributes
    ----------
    edges : tuple of arrays
        The inner edges of each coordinate, one fewer than there are bins.

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
    ) -> None:
        super().__init__(env)
        box = env.observation_space
        if not isinstance(box, spaces.Box):
            raise ValueError(f"bins are for a Box, which FlattenObservation makes of other spaces; got {box}")
        _checks.one_of(edges, "edges", EDGES)
        limits = list(zip(box.low.ravel().tolist(), box.high.ravel().tolist()))
        wanted = _per_coordinate(bins, "bins", len(limits))
        ranges = _per_coordinate(bounds, "bounds", len(limits))
        play = cache(partial(_random_play, env))
        self.edges = tuple(
            _inner_edges(i, wanted[i], ranges[i] or limits[i], edges, play) for i in range(len(limits))
        )
        self.sizes = tuple(len(inner) + 1 for inner in self.edges)
        self.observation_space = spaces.Discrete(math.prod(self.sizes))

    def observation(self, observation: Any) -> int:
        """Return the state that contains an observation."""
        values = np.ravel(observation)
        if np.isnan(values).any():
            raise ValueError(f"the environment returned an observation that is not a number: {observation}")
        digits = [np.searchsorted(inner, value, side="right") for inner, value in zip(self.edges, values)]
        return int(np.ravel_multi_index(digits, self.sizes))


class DiscretizeActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """An environment with discretised ``Box`` actions: each action number selects one level of every coordinate.

    Together with :class:`Discretize`, it converts an environment with real observations and actions into a finite
    environment. The number of actions is the product of the numbers of levels, and an agent must learn the effect of
    each in every state, so use few levels.

    Parameters
    ----------
    env
        The environment. Its action space is a ``Box``.
    levels
        The number of levels, equally spaced from the lower to the upper bound inclusive (a single level is the
        midpoint): one number for all coordinates, or one per coordinate. Instead of a number, give the levels
        themselves.

    Attributes
    ----------
    actions : array
        The action [m] for each number.

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
        super().__init__(env)
        box = env.action_space
        if not isinstance(box, spaces.Box):
            raise ValueError(f"levels are for actions in a Box, got {box}")
        wanted = _per_coordinate(levels, "levels", math.prod(box.shape))
        values = [_levels(i, *given) for i, given in enumerate(zip(wanted, box.low.flat, box.high.flat))]
        grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1)
        self.actions = grid.reshape(-1, *box.shape).astype(box.dtype)
        self.action_space = spaces.Discrete(len(self.actions))

    def action(self, action: Any) -> NDArray[Any]:
        """Return the action for a number."""
        return np.array(self.actions[_checks.index(action, "action", len(self.actions))])


def _levels(i: int, wanted: Any, low: float, high: float) -> NDArray[np.float64]:
    """Return the levels of one coordinate of actions."""
    if np.ndim(wanted):
        values = np.asarray(wanted, float)
        if values.ndim != 1 or not len(values) or not ((values >= low) & (values <= high)).all():
            raise ValueError(f"levels of coordinate {i} must be numbers in [{low:g}, {high:g}]: {wanted!r}")
        return values
    size = _checks.integer(wanted, "levels")
    if not np.isfinite([low, high]).all():
        raise ValueError(f"actions have no bounds in coordinate {i}: give its levels, such as [-1.0, 1.0]")
    return np.linspace(low, high, size) if size > 1 else np.array([0.5 * (low + high)])


def _random_play(env: gymnasium.Env[Any, Any]) -> NDArray[np.float64]:
    """Return the coordinates observed in random play, [T, n]."""
    env.action_space.seed(0)
    seen = [np.ravel(env.reset(seed=0)[0])]
    for _ in range(TRIAL_STEPS):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(np.ravel(observation))
        if terminated or truncated:
            seen.append(np.ravel(env.reset()[0]))
    return np.array(seen)


def _per_coordinate(values: Any, name: str, n: int) -> list[Any]:
    """Return one value for each of n coordinates; a single number or None applies to all."""
    if not isinstance(values, (Sequence, np.ndarray)):
        return [values] * n
    if len(values) != n:
        raise ValueError(f"{name} must be one for all, or one for each of the {n} coordinates: {values}")
    return list(values)


def _inner_edges(
    i: int, wanted: Any, limits: tuple[float, float], edges: str, play: Callable[[], NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the inner edges of one coordinate; ``play`` supplies values from random play if needed."""
    if np.ndim(wanted):
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
        raise ValueError(f"the bounds of coordinate {i}, {low:g} and {high:g}, are not in ascending order")
    return np.linspace(low, high, size + 1)[1:-1]
