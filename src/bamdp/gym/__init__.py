"""Gymnasium both ways.

Importing this package registers our environments: ``gymnasium.make("bamdp/Grid5-v0")``. And :class:`GymAgent` plays any
Gymnasium environment with finite observations and actions, whose model is unknown: transitions, rewards,
where episodes begin and end, and which actions exist are all learned.
"""

from bamdp.gym.discretize import Discretize, DiscretizeActions
from bamdp.gym.env import GymEnv, register_all
from bamdp.gym.player import GymAgent
from bamdp.gym.world import GymWorld

__all__ = ["IDS", "Discretize", "DiscretizeActions", "GymAgent", "GymEnv", "GymWorld"]

IDS = tuple(register_all())
