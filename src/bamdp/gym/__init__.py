"""Gymnasium integration in both directions.

Importing this package registers bamdp's environments with Gymnasium: ``gymnasium.make("bamdp/Grid5-v0")``. Conversely,
:class:`GymAgent` acts in any Gymnasium environment with finite observations and actions. It knows nothing about the
model and learns the transitions, the rewards, where episodes begin and end, and which actions exist.
"""

from bamdp.gym.discretize import Discretize, DiscretizeActions
from bamdp.gym.env import IDS, GymEnv
from bamdp.gym.player import GymAgent
from bamdp.gym.world import GymWorld

__all__ = ["IDS", "Discretize", "DiscretizeActions", "GymAgent", "GymEnv", "GymWorld"]
