"""What is known of a benchmark beforehand, as arguments of an agent: its reward, its ends and its angles.

:func:`known` knows the systems of this package and some of Gymnasium's. Most published figures with few real steps
are of agents that know the reward; nothing about the dynamics is given here. Gymnasium shows some angles as cosine
and sine; :class:`AngleObservation` shows the angle instead, of which the change is easier to learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.continuous.tasks.systems import Array

Function = Callable[..., NDArray[Any]]


def known(env: Any) -> dict[str, Any]:
    """Return what is known of an environment: ``reward``, ``terminated`` and ``angles``, arguments of an agent.

    Parameters
    ----------
    env
        An environment of this package; one of Gymnasium's ``Pendulum-v1``, ``Acrobot-v1``, ``MountainCar-v0``,
        ``MountainCarContinuous-v0``, ``CartPole-v1``; or any whose class has functions ``reward(obs, action,
        next_obs)`` and ``terminated(obs, action, next_obs)`` and a tuple ``angles``. It may be inside an
        :class:`AngleObservation`.

    Examples
    --------
    >>> env = AngleObservation(gymnasium.make("Pendulum-v1"))
    >>> sorted(known(env)), known(env)["angles"]
    (['angles', 'reward', 'terminated'], (0,))
    """
    inner, wrapper = env, None
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, AngleObservation):
            wrapper = inner
        inner = inner.env
    if callable(getattr(inner, "reward", None)):
        terminated = getattr(inner, "terminated", _never)
        facts = {
            "reward": inner.reward,
            "terminated": terminated,
            "angles": tuple(getattr(inner, "angles", ())),
        }
    else:
        name = getattr(getattr(inner, "spec", None), "id", str(inner))
        make = _GYMNASIUM.get(name)
        if make is None:
            raise ValueError(
                f"the reward of {name} is not known here; known are {', '.join(_GYMNASIUM)} and the tasks of "
                "bamdp.continuous. Give reward=, a function of (obs, action, next_obs), or let it be learned"
            )
        reward, terminated = make(inner)
        facts = {"reward": reward, "terminated": terminated, "angles": ()}
    if wrapper is None:
        return facts
    functions = {name: partial(_on_angles, facts[name], wrapper.expand) for name in ("reward", "terminated")}
    return {**functions, "angles": wrapper.angles}


class AngleObservation(gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose cosines and sines are shown as angles in [-π, π].

    Parameters
    ----------
    env
        The environment, whose observation space is a ``Box`` of one axis.
    pairs
        The coordinates of the cosine and the sine of each angle, two that follow each other. By default those of
        ``Pendulum-v1`` and ``Acrobot-v1``.

    Attributes
    ----------
    angles : tuple of int
        The coordinates of the new observation that are angles.

    Examples
    --------
    >>> env = AngleObservation(gymnasium.make("Acrobot-v1"))
    >>> env.observation_space.shape, env.angles
    ((4,), (0, 1))
    """

    def __init__(self, env: gymnasium.Env[Any, Any], pairs: Sequence[tuple[int, int]] | None = None) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, pairs=pairs)
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise ValueError(f"angles are made of the coordinates of a Box of one axis, got {space}")
        if pairs is None:
            pairs = _PAIRS.get(env.spec.id if env.spec is not None else "", ())
        self.cosines = tuple(_checks.index(cosine, "coordinate", space.shape[0]) for cosine, _ in pairs)
        if not pairs or any(sine != cosine + 1 or sine >= space.shape[0] for cosine, sine in pairs):
            raise ValueError(
                "say which coordinates are the cosine and, right after it, the sine of each angle, such as "
                f"pairs=[(0, 1)]; got {pairs!r}"
            )
        sines = [cosine + 1 for cosine in self.cosines]
        self.angles = tuple(int(cosine - np.sum(np.array(sines) < cosine)) for cosine in self.cosines)
        low, high = (np.delete(bound.astype(float), sines) for bound in (space.low, space.high))
        low[list(self.angles)], high[list(self.angles)] = -np.pi, np.pi
        self.observation_space = Box(low, high, dtype=np.float64)

    def observation(self, observation: Any) -> Array:
        """Return an observation with angles in place of cosines and sines."""
        values = np.asarray(observation, float)
        shown = values.copy()
        for cosine in self.cosines:
            shown[cosine] = np.arctan2(values[cosine + 1], values[cosine])
        return np.delete(shown, [cosine + 1 for cosine in self.cosines])

    def expand(self, observations: Array) -> Array:
        """Return observations [..., n] with cosines and sines in place of angles, as the environment has them."""
        columns: list[Array] = []
        for i in range(np.shape(observations)[-1]):
            values = observations[..., i]
            columns += [np.cos(values), np.sin(values)] if i in self.angles else [values]
        return np.stack(columns, axis=-1)


def _on_angles(function: Function, expand: Function, obs: Array, action: Array, next_obs: Array) -> Any:
    return function(expand(obs), action, expand(next_obs))


def _never(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    return np.zeros(np.shape(next_obs)[:-1], bool)


# Gymnasium's


def _pendulum_reward(obs: Array, action: Array, next_obs: Array) -> Array:
    """Cost of the state before the step."""
    angle, torque = np.arctan2(obs[..., 1], obs[..., 0]), np.clip(action[..., 0], -2.0, 2.0)
    return np.asarray(-(angle**2 + 0.1 * obs[..., 2] ** 2 + 0.001 * torque**2))


def _beyond(
    position: float, velocity: float, obs: Array, action: Array, next_obs: Array
) -> NDArray[np.bool_]:
    return np.asarray((next_obs[..., 0] >= position) & (next_obs[..., 1] >= velocity))


def _car_reward(ended: Function, obs: Array, action: Array, next_obs: Array) -> Array:
    """The true, sparse reward: 100 at the goal, and the cost of the force."""
    return np.asarray(100.0 * ended(obs, action, next_obs) - 0.1 * action[..., 0] ** 2)


def _constant_reward(value: float, obs: Array, action: Array, next_obs: Array) -> Array:
    return np.full(np.shape(next_obs)[:-1], value)


def _acrobot_terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    """Whether the tip is one length above the pivot: -cos θ₁ - cos(θ₁ + θ₂) > 1."""
    c1, s1, c2, s2 = (next_obs[..., i] for i in range(4))
    return np.asarray(-c1 - (c1 * c2 - s1 * s2) > 1.0)


def _acrobot_reward(obs: Array, action: Array, next_obs: Array) -> Array:
    return np.asarray(_acrobot_terminated(obs, action, next_obs) - 1.0)


def _cart_pole_terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    """Whether the cart has left ±2.4 or the pole ±12 degrees."""
    return np.asarray((np.abs(next_obs[..., 0]) > 2.4) | (np.abs(next_obs[..., 2]) > np.radians(12.0)))


def _car(env: Any, reward: Callable[[Function], Function]) -> tuple[Function, Function]:
    ended = partial(_beyond, float(env.goal_position), float(env.goal_velocity))
    return reward(ended), ended


_PAIRS = {"Pendulum-v1": ((0, 1),), "Acrobot-v1": ((0, 1), (2, 3))}
_GYMNASIUM: dict[str, Callable[[Any], tuple[Function, Function]]] = {
    "Pendulum-v1": lambda env: (_pendulum_reward, _never),
    "Acrobot-v1": lambda env: (_acrobot_reward, _acrobot_terminated),
    "CartPole-v1": lambda env: (partial(_constant_reward, 1.0), _cart_pole_terminated),
    "MountainCar-v0": lambda env: _car(env, lambda ended: partial(_constant_reward, -1.0)),
    "MountainCarContinuous-v0": lambda env: _car(env, lambda ended: partial(_car_reward, ended)),
}
