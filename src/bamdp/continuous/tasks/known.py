"""Prior knowledge about benchmarks as arguments for an agent: rewards, terminations and angles.

:func:`known` supports the systems of this package and some Gymnasium environments. Most published results with few real
steps are for agents that know the reward. No information about the dynamics is included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bamdp.continuous.tasks.systems import Array

Function = Callable[..., NDArray[Any]]


def known(env: Any) -> dict[str, Any]:
    """Return the known ``reward``, ``terminated`` and ``angles`` of an environment as arguments for an agent.

    Parameters
    ----------
    env
        An environment of this package; Gymnasium's ``Pendulum-v1``, ``Acrobot-v1``, ``MountainCar-v0``,
        ``MountainCarContinuous-v0``, or ``CartPole-v1``; or any environment whose class defines ``reward(obs, action,
        next_obs)``, ``terminated(obs, action, next_obs)`` and a tuple ``angles``.

    Examples
    --------
    >>> import gymnasium
    >>> facts = known(gymnasium.make("Pendulum-v1"))
    >>> sorted(facts), facts["angles"]  # the coordinates of the cosine and the sine
    (['angles', 'reward', 'terminated'], ((0, 1),))
    """
    inner = env
    while isinstance(inner, gymnasium.Wrapper):
        if isinstance(inner, _CHANGING):
            raise ValueError(
                f"{type(inner).__name__} changes what the known reward is a function of; give reward= for the "
                "environment as it is wrapped"
            )
        inner = inner.env
    if callable(getattr(inner, "reward", None)):
        terminated = getattr(inner, "terminated", _never)
        return {
            "reward": inner.reward,
            "terminated": terminated,
            "angles": tuple(getattr(inner, "angles", ())),
        }
    name = inner.spec.id if inner.spec is not None else type(inner).__name__
    if name not in _GYMNASIUM:
        raise ValueError(
            f"the reward of {name} is not known here; known are {', '.join(_GYMNASIUM)} and the tasks of "
            "bamdp.continuous. Give reward=, a function of (obs, action, next_obs), or let it be learned"
        )
    if getattr(inner, "goal_velocity", 0.0) != 0.0:
        raise ValueError(
            f"the ends of {name} are known for goal_velocity=0 only; give reward= and terminated="
        )
    reward, terminated = _GYMNASIUM[name]
    return {"reward": reward, "terminated": terminated, "angles": _ANGLES.get(name, ())}


def _never(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    return np.zeros(np.shape(next_obs)[:-1], bool)


# Gymnasium environments


def _pendulum_reward(obs: Array, action: Array, next_obs: Array) -> Array:
    """Return minus the cost of the state before the step."""
    angle, torque = np.arctan2(obs[..., 1], obs[..., 0]), np.clip(action[..., 0], -2.0, 2.0)
    return np.asarray(-(angle**2 + 0.1 * obs[..., 2] ** 2 + 0.001 * torque**2))


def _car_arrived(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    return np.asarray((next_obs[..., 0] >= 0.5) & (next_obs[..., 1] >= 0.0))


def _pushed_car_arrived(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    return np.asarray((next_obs[..., 0] >= 0.45) & (next_obs[..., 1] >= 0.0))


def _pushed_car_reward(obs: Array, action: Array, next_obs: Array) -> Array:
    """Return the true sparse reward: 100 at the goal, minus the cost of the force."""
    return np.asarray(100.0 * _pushed_car_arrived(obs, action, next_obs) - 0.1 * action[..., 0] ** 2)


def _minus_one(obs: Array, action: Array, next_obs: Array) -> Array:
    return np.full(np.shape(next_obs)[:-1], -1.0)


def _one(obs: Array, action: Array, next_obs: Array) -> Array:
    return np.ones(np.shape(next_obs)[:-1])


def _acrobot_terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    """Return whether the tip is more than one link length above the pivot: -cos θ₁ - cos(θ₁ + θ₂) > 1."""
    c1, s1, c2, s2 = (next_obs[..., i] for i in range(4))
    return np.asarray(-c1 - (c1 * c2 - s1 * s2) > 1.0)


def _acrobot_reward(obs: Array, action: Array, next_obs: Array) -> Array:
    return np.asarray(_acrobot_terminated(obs, action, next_obs) - 1.0)


def _cart_pole_terminated(obs: Array, action: Array, next_obs: Array) -> NDArray[np.bool_]:
    """Return whether the cart has left ±2.4 or the pole ±12 degrees."""
    return np.asarray((np.abs(next_obs[..., 0]) > 2.4) | (np.abs(next_obs[..., 2]) > np.radians(12.0)))


_CHANGING = (gymnasium.ObservationWrapper, gymnasium.ActionWrapper, gymnasium.RewardWrapper)
_ANGLES = {"Pendulum-v1": ((0, 1),), "Acrobot-v1": ((0, 1), (2, 3))}
_GYMNASIUM: dict[str, tuple[Function, Function]] = {
    "Pendulum-v1": (_pendulum_reward, _never),
    "Acrobot-v1": (_acrobot_reward, _acrobot_terminated),
    "CartPole-v1": (_one, _cart_pole_terminated),
    "MountainCar-v0": (_minus_one, _car_arrived),
    "MountainCarContinuous-v0": (_pushed_car_reward, _pushed_car_arrived),
}
