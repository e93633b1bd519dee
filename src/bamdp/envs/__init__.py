"""Environments, each with its true model, start state and the horizon used in the paper.

`make_env` creates an environment by name; `from_mdp` creates one from your own model.
"""

from bamdp.envs import classic, deep_sea, families, operations  # noqa: F401, the imports register environments
from bamdp.envs.environment import Environment, World, bernoulli
from bamdp.envs.grids import maze_door_models
from bamdp.envs.registry import from_file, from_function, from_mdp, list_envs, make_env, make_world

__all__ = [
    "Environment",
    "World",
    "bernoulli",
    "from_file",
    "from_function",
    "from_mdp",
    "list_envs",
    "make_env",
    "make_world",
    "maze_door_models",
]
