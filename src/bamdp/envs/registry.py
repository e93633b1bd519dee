"""Environments by name: `make_env` and `list_envs`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bamdp import _checks
from bamdp._specs import parse_spec, read_value
from bamdp.envs.bandit import bandit
from bamdp.envs.chain import chain
from bamdp.envs.custom import from_file
from bamdp.envs.deep_sea import deep_sea, deep_sea_stochastic
from bamdp.envs.double_loop import double_loop
from bamdp.envs.environment import Environment, World
from bamdp.envs.grid import grid, grid5, grid10
from bamdp.envs.maze import maze
from bamdp.envs.maze_door import maze_door
from bamdp.envs.random_mdp import random_mdp
from bamdp.envs.river_swim import river_swim

_FACTORIES: dict[str, Callable[..., Environment]] = {
    factory.__name__: factory
    for factory in (
        chain,
        double_loop,
        grid5,
        grid10,
        grid,
        maze,
        maze_door,
        river_swim,
        bandit,
        random_mdp,
        deep_sea,
        deep_sea_stochastic,
    )
}


@dataclass(frozen=True)
class EnvironmentInfo:
    """An entry of `list_envs`: an environment's name, a line of help, and its parameters with their defaults."""

    name: str
    help: str
    parameters: dict[str, Any]


def list_envs() -> list[EnvironmentInfo]:
    """Return all environments that `make_env` knows by name.

    Examples
    --------
    >>> for info in list_envs()[:3]:
    ...     print(info.name, info.parameters)
    chain {'rewards': 'action', 'n_states': 5, 'slip': 0.2}
    double_loop {}
    grid5 {}
    """
    return [
        EnvironmentInfo(name, _first_line(factory), _defaults(factory))
        for name, factory in _FACTORIES.items()
    ]


def make_env(name: str, **parameters: Any) -> Environment:
    """Make an environment by name.

    Parameters
    ----------
    name : str
        One of `list_envs`, hyphens and underscores alike; parameters may follow a colon, as in
        ``"grid:size=7"``. ``"file:model.npz"`` reads a `FiniteMDP` that was saved, with ``start`` and
        ``horizon`` as parameters.
    **parameters
        Arguments of the environment.

    Returns
    -------
    Environment

    Examples
    --------
    >>> make_env("double-loop")
    Environment('double_loop', 9 states, 2 actions, start 0, horizon 1000)
    >>> make_env("grid:size=7").parameters
    {'size': 7, 'slip': 0.2}
    >>> make_env("gird5")
    Traceback (most recent call last):
    ...
    ValueError: unknown environment 'gird5'; did you mean 'grid5'? (known: chain, ..., file:PATH)
    """
    if not isinstance(name, str):
        raise TypeError(f"an environment is made by its name, got {name!r}")
    head, _, tail = name.partition(":")
    if head.strip() == "file":
        _check_names("file", from_file, parameters, skip=1)
        return from_file(tail, **parameters)
    known = head.strip().lower().replace("-", "_")
    if known == "gym":
        raise ValueError(
            f"the model of {name!r} is not known, and it is needed here; Gymnasium's environments are for run, "
            "compare, tune and lab, and in Python for bamdp.make_world and bamdp.GymAgent"
        )
    if known not in _FACTORIES:
        known = _checks.one_of(known, "environment", [*_FACTORIES, "file:PATH"])
    factory = _FACTORIES[known]
    written = {key: read_value(text) for key, text in parse_spec(name).parameters.items()}
    twice = sorted(set(written) & set(parameters))
    if twice:
        raise ValueError(f"{twice[0]} is given twice, in {name!r} and as a parameter; drop one")
    written.update(parameters)
    _check_names(known, factory, written)
    return factory(**written)


def make_world(name: str) -> World:
    """Make a world from text: an environment as `make_env` reads it, or ``gym:ID`` of Gymnasium.

    Parameters of ``gymnasium.make`` follow a second colon, together with ``max_states`` and ``action_mask`` of
    `GymWorld`.

    Examples
    --------
    >>> make_world("grid5")
    Environment('grid5', 25 states, 4 actions, start 0, horizon 1000)
    >>> make_world("gym:FrozenLake-v1:is_slippery=False")
    GymWorld('FrozenLake-v1', 17 states with the end, 4 actions)
    """
    head, _, tail = name.partition(":") if isinstance(name, str) else ("", "", "")
    if head.strip().lower() != "gym":
        kind = head.strip().lower().replace("-", "_")
        if head and kind not in (*_FACTORIES, "file"):
            _checks.one_of(kind, "environment", [*_FACTORIES, "file:PATH", "gym:ID"])
        return make_env(name)
    from bamdp.gym.world import from_gym  # Gymnasium is imported only where it is used

    return from_gym(tail)


def _check_names(
    name: str, factory: Callable[..., Environment], parameters: dict[str, Any], skip: int = 0
) -> None:
    known = list(_defaults(factory))[skip:]
    for key in parameters:
        if not known:
            raise ValueError(f"{name} takes no parameters, got {key!r}")
        _checks.one_of(key, f"parameter of {name}", known)


def _defaults(factory: Callable[..., Environment]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(factory).parameters.values()}


def _first_line(factory: Callable[..., Environment]) -> str:
    return (inspect.getdoc(factory) or "").partition("\n")[0]
