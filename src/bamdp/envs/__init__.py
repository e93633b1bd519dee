"""Environments, each with its true model, its start and the paper's horizon.

`make_env` makes any of them by name, `from_mdp` makes one of a model of your own.
"""

from bamdp.envs.classic import bandit, chain, double_loop, river_swim
from bamdp.envs.custom import from_file, from_function, from_mdp
from bamdp.envs.deep_sea import DeepSea, deep_sea, deep_sea_stochastic
from bamdp.envs.environment import Environment, World, bernoulli
from bamdp.envs.families import Family, family_gc, family_gdl, family_grid, family_random, random_mdp
from bamdp.envs.grids import grid, grid5, grid10, maze, maze_door, maze_door_models
from bamdp.envs.operations import inventory, machine, pricing, queue
from bamdp.envs.registry import list_envs, make_env, make_world

__all__ = [
    "DeepSea",
    "Environment",
    "Family",
    "World",
    "bandit",
    "bernoulli",
    "chain",
    "deep_sea",
    "deep_sea_stochastic",
    "double_loop",
    "family_gc",
    "family_gdl",
    "family_grid",
    "family_random",
    "from_file",
    "from_function",
    "from_mdp",
    "grid",
    "grid5",
    "grid10",
    "inventory",
    "list_envs",
    "machine",
    "make_env",
    "make_world",
    "maze",
    "maze_door",
    "maze_door_models",
    "pricing",
    "queue",
    "random_mdp",
    "river_swim",
]
