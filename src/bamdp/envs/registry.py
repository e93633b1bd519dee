"""Creation of environments by name (`make_env`, `list_envs`) or from any source (`make_world`, `new_world`)."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from bamdp import _checks
from bamdp._parameters import Entry, InfoList, parse_spec
from bamdp.envs import classic, deep_sea, families, grids, operations  # noqa: F401, the imports register their environments
from bamdp.envs.custom import from_file
from bamdp.envs.environment import Environment, World
from bamdp.envs.making import ENVIRONMENTS
from bamdp.mdp.model import FiniteMDP

_KINDS = (
    "a name such as grid5 or gym:FrozenLake-v1, what make_env, from_mdp or from_function have made, or a Gymnasium "
    "environment"
)


def list_envs() -> InfoList:
    """Return the ``name``, ``help`` and ``parameters`` of all environments known to `make_env`.

    Examples
    --------
    >>> for info in list_envs()[:2]:
    ...     print(info.name, info.parameters)
    bandit {'means': (0.3, 0.5, 0.7)}
    chain {'rewards': 'action', 'n_states': 5, 'slip': 0.2}
    """
    return InfoList.of({name: Entry(factory) for name, factory in sorted(ENVIRONMENTS.items())})


def make_env(name: str, **parameters: Any) -> Environment:
    """Create an environment by name.

    Parameters
    ----------
    name : str
        A name from `list_envs`, with hyphens or underscores; parameters may follow a colon, as in ``"grid:size=7"``. A
        family may be written ``"family:gdl"``. ``"file:model.npz"`` loads a saved `FiniteMDP`, with ``start`` and
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
    ValueError: unknown environment 'gird5'; did you mean 'grid5'? (known: bandit, ..., file:PATH)
    """
    if not isinstance(name, str):
        raise TypeError(f"an environment is made by its name, got {_shown(name)}")
    kind, rest = _split(name)
    if kind == "gym":
        raise ValueError(
            f"the model of {name!r} is not known, and it is needed here; Gymnasium's environments are for run, "
            "compare, tune, lab, studio and explain, and in Python for bamdp.make_world and bamdp.GymAgent"
        )
    _check_known(kind, name)
    factory: Callable[..., Environment] = from_file if kind == "file" else ENVIRONMENTS[kind]
    known = list(inspect.signature(factory).parameters)
    if kind == "file":
        factory, known, rest = partial(factory, rest), known[1:], ""
    written = parse_spec(f"{kind}:{rest}").extended(parameters).parameters
    for key in written:
        _checks.parameter(key, kind, known)
    return factory(**written)


def make_world(env: Any, **parameters: Any) -> World:
    """Create an environment that agents can act in.

    Parameters
    ----------
    env
        A name as for `make_env`; or ``gym:ID`` for a Gymnasium environment, with parameters of ``gymnasium.make`` after
        a second colon; or a Gymnasium environment. A `World` is returned unchanged.
    **parameters
        Arguments of the environment. For Gymnasium environments: those of `bamdp.gym.GymWorld`, such as ``max_states``,
        and ``bins``, which discretises real-valued observations.

    Examples
    --------
    >>> make_world("grid5")
    Environment('grid5', 25 states, 4 actions, start 0, horizon 1000)
    >>> make_world("gym:FrozenLake-v1:is_slippery=False")
    GymWorld('FrozenLake-v1', 17 states with the end, 4 actions)
    >>> import gymnasium
    >>> make_world(gymnasium.make("CartPole-v1"), bins=(3, 3, 6, 5))
    GymWorld('CartPole-v1', 271 states with the end, 2 actions)
    """
    if isinstance(env, str):
        kind, rest = _split(env)
        if kind == "gym":
            from bamdp.gym.world import from_gym  # imported only if needed

            return from_gym(rest, **parameters)
        _check_known(kind, env, "gym:ID")
        return make_env(env, **parameters)
    if is_gymnasium(env):
        from bamdp.gym.world import wrap_gym

        return wrap_gym(env, **parameters)
    if not isinstance(env, World):
        raise TypeError(f"an environment is {_KINDS}; got {_shown(env)}")
    if parameters:
        raise ValueError(f"{env!r} is made already; {next(iter(parameters))} comes too late")
    return env


def new_world(source: Any) -> World:
    """Create a separate environment for one run: from text, by calling a factory function, or by copying an object.

    Examples
    --------
    >>> env = make_env("grid5")
    >>> new_world(env) is env, new_world(lambda: env) is env
    (False, True)
    """
    if isinstance(source, str):
        return make_world(source)
    if callable(source) and not is_gymnasium(source):
        return make_world(source())
    if not (is_gymnasium(source) or isinstance(source, World)):
        return make_world(source)  # raises an error that names the problem
    try:
        world = make_world(copy.deepcopy(source))
    except (TypeError, RecursionError) as error:
        raise TypeError(
            f"{source!r} cannot be copied for each run ({error}); give a function that makes it, lambda: ..."
        ) from None
    if hasattr(world, "forget_run"):
        world.forget_run()
    return world


def is_gymnasium(env: Any) -> bool:
    """Return whether an object is a Gymnasium environment or vector environment, without importing Gymnasium."""
    return not isinstance(env, type) and hasattr(env, "observation_space") and hasattr(env, "action_space")


def _check_known(kind: str, name: str, *others: str) -> None:
    """Raise ValueError for an unknown environment, with a hint if the name looks like a Gymnasium id."""
    if kind in ENVIRONMENTS or kind == "file":
        return
    written = name.strip()
    if re.search(r"-v\d+(:|$)", written):
        raise ValueError(
            f"{name!r} looks like an environment of Gymnasium; write gym:{written}, or give gymnasium.make({written!r})"
        )
    _checks.one_of(kind, "environment", [*sorted(ENVIRONMENTS), "file:PATH", *others])


def _shown(env: Any) -> str:
    """Return a description of an object that is not an environment, with a hint, for error messages."""
    if isinstance(env, type):
        return f"the class {env.__name__}: make one, {env.__name__}()"
    if all(hasattr(env, name) for name in ("reset", "step")):
        return f"{env!r}, which has no observation_space and action_space: set them when it is made"
    if isinstance(env, FiniteMDP):
        return f"{env!r}: make one of it, bamdp.from_mdp(mdp)"
    return repr(env)


def _split(name: str) -> tuple[str, str]:
    """Return the kind of an environment and the text after the colon; ``family:gdl`` counts as one kind."""
    kind, _, rest = re.sub(r"^\s*family:\s*", "family_", name, flags=re.IGNORECASE).partition(":")
    return kind.strip().lower().replace("-", "_"), rest
