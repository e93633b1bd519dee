"""Gymnasium both ways.

Importing this package registers our environments: ``gymnasium.make("bamdp/Grid5-v0")``. And :class:`GymAgent` plays any
Gymnasium environment with finite observations and actions, of whose model it is told nothing: transitions, rewards,
where episodes begin and end, and which actions exist are all learned.
"""

from bamdp.envs.gym_env import GymEnv, register_all
from bamdp.envs.gym_world import GymWorld
from bamdp.gym.player import GymAgent

__all__ = ["IDS", "GymAgent", "GymEnv", "GymWorld"]

IDS = tuple(register_all())
