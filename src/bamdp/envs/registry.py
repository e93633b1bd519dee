"""Creation of environments: by name, from a model, a file or a function, and from Gymnasium.

The decorator :func:`environment` makes a function known to `make_env` under its name, validates its arguments against
the types below and records them. Most models have the form s' = target[s, a, w], where the disturbance w has given
probabilities; :func:`rows` builds their transition matrix.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp._parameters import Entry, InfoList, parse_spec
from bamdp.envs.environment import LEAST_U, Environment, Seed, StepResult, World, bernoulli
from bamdp.mdp.model import FiniteMDP, load_model

if TYPE_CHECKING:
    from scipy import sparse

# --- definitions -----------------------------------------------------------------------------------------------


def _optional(value: Any, name: str) -> int | None:
    return None if value is None else _checks.integer(value, name, low=0)


def _numbers(values: Any, name: str, **limits: Any) -> tuple[float, ...]:
    values = (values,) if isinstance(values, (int, float)) else values
    if isinstance(values, str) or len(values) == 0:
        raise ValueError(f"{name} must be a sequence of one number or more, got {values!r}")
    for i, value in enumerate(values):
        _checks.real(value, f"{name}[{i}]", **limits)
    return tuple(values)


Count = Annotated[int, _checks.integer]
Size = Annotated[int, partial(_checks.integer, low=2)]
ModelSeed = Annotated[int, partial(_checks.integer, low=0, high=2**32 - 1)]
OptionalNumber = Annotated[int | None, _optional]
Real = Annotated[float, _checks.real]
Positive = Annotated[float, partial(_checks.real, low=0.0, open_low=True)]
Probability = Annotated[float, partial(_checks.real, low=0.0, high=1.0)]
# a Poisson mean small enough to compute the probabilities one by one
Rate = Annotated[float, partial(_checks.real, low=0.0, high=500.0, open_low=True)]
Numbers = Annotated[Sequence[float], _numbers]
Probabilities = Annotated[Sequence[float], partial(_numbers, low=0.0, high=1.0)]

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {}


def environment(make: Callable[..., Environment]) -> Callable[..., Environment]:
    """Register a function that creates an environment, and validate its arguments by their types."""
    checks: dict[str, Callable[[Any, str], Any]] = {}
    for name, hint in typing.get_type_hints(make, include_extras=True).items():
        if typing.get_origin(hint) is Literal:
            checks[name] = partial(_checks.one_of, choices=typing.get_args(hint))
        for note in getattr(hint, "__metadata__", ()):
            checks[name] = note
    signature = inspect.signature(make)

    @functools.wraps(make)
    def checked(*args: Any, **parameters: Any) -> Environment:
        given = signature.bind(*args, **parameters)
        given.apply_defaults()
        values = {name: checks[name](value, name) for name, value in given.arguments.items()}
        made = make(**values)
        made.name, made.parameters = make.__name__, values
        return made

    ENVIRONMENTS[make.__name__] = checked
    return checked


def rows(target: NDArray[Any], chances: ArrayLike) -> sparse.csr_matrix:
    """Return transitions [S*A, S] from (s, a) to ``target[s, a, w]`` with probability ``chances[..., w]``.

    Examples
    --------
    >>> rows(np.array([[[0, 1]], [[1, 1]]]), [0.2, 0.8]).toarray()
    array([[0.2, 0.8],
           [0. , 1. ]])
    """
    from scipy import sparse  # slow to import

    S, A, W = target.shape
    p = np.broadcast_to(np.asarray(chances, float), target.shape).flatten()
    begins = np.arange(0, S * A * W + 1, W)
    matrix = sparse.csr_matrix((p, target.flatten(), begins), shape=(S * A, S))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


# --- by name, or from anything ---------------------------------------------------------------------------------


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
    ValueError: unknown environment 'gird5'; did you mean 'grid5'? (known: bandit, ..., file:PATH, gym:ID)
    """
    if not isinstance(name, str):
        raise TypeError(f"an environment is made by its name, got {name!r}")
    kind, rest = _split(name)
    if kind == "gym":
        raise ValueError(f"the model of {name!r} is not known, and it is needed here; see bamdp.make_world")
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
        if kind != "gym":
            return make_env(env, **parameters)
        from bamdp.gym.world import from_gym  # imported only if needed

        return from_gym(rest, **parameters)
    if is_gymnasium(env):
        from bamdp.gym.world import wrap_gym

        return wrap_gym(env, **parameters)
    if not isinstance(env, World):
        raise TypeError(f"an environment is a name, a World (bamdp.from_mdp) or a gymnasium.Env, not {env!r}")
    if parameters:
        raise ValueError(f"{env!r} exists already; {next(iter(parameters))} must be given when it is created")
    return env


def new_world(source: Any) -> World:
    """Create a separate environment for one run: from text, by calling a factory function, or by copying an object.

    Examples
    --------
    >>> env = make_env("grid5")
    >>> new_world(env) is env, new_world(lambda: env) is env
    (False, True)
    """
    if callable(source) and not is_gymnasium(source):
        return make_world(source())
    try:
        copied = copy.deepcopy(source)
    except (TypeError, RecursionError) as error:
        raise TypeError(f"{source!r} cannot be copied ({error}); give a function that makes it") from None
    world = make_world(copied)
    if hasattr(world, "forget_run"):
        world.forget_run()
    return world


def is_gymnasium(env: Any) -> bool:
    """Return whether an object is a Gymnasium environment or vector environment, without importing Gymnasium."""
    return not isinstance(env, type) and hasattr(env, "observation_space") and hasattr(env, "action_space")


def _split(name: str) -> tuple[str, str]:
    """Return the kind of an environment and the text after the colon; ``family:gdl`` counts as one kind."""
    kind, _, rest = re.sub(r"^\s*family:\s*", "family_", name, flags=re.IGNORECASE).partition(":")
    kind, written = kind.strip().lower().replace("-", "_"), name.strip()
    if kind not in ("file", "gym", *ENVIRONMENTS):
        if re.search(r"-v\d+(:|$)", written):
            raise ValueError(f"{name!r} looks like an environment of Gymnasium; write gym:{written}")
        _checks.one_of(kind, "environment", [*sorted(ENVIRONMENTS), "file:PATH", "gym:ID"])
    return kind, rest


# --- your own --------------------------------------------------------------------------------------------------


def from_mdp(
    mdp: FiniteMDP,
    start: int | ArrayLike = 0,
    horizon: int = 1000,
    name: str = "custom",
    *,
    noise: float | str | Callable[[float, float], float] = 0.0,
    time_limit: float = 1.0,
) -> Environment:
    """Create an environment from your own model.

    Parameters
    ----------
    mdp : FiniteMDP
        The true model.
    start : int or array [S], default 0
        The state after a reset, or the probabilities of the start states.
    horizon : int, default 1000
        Usual number of steps in a run.
    name : str, default "custom"
        The name.
    noise : float, "bernoulli" or callable, default 0
        Makes rewards random, with the model's rewards as their means: the standard deviation of normal noise;
        "bernoulli" for rewards of 0 or 1; or your own function (mean, u), which returns the quantile of the reward at u
        in [0, 1).
    time_limit : float, default 1.0
        Planning time per step, in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from bamdp.mdp import FiniteMDP
    >>> swap = FiniteMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[0.0], [1.0]]))
    >>> env = from_mdp(swap, name="swap")
    >>> env.reset(seed=0), env.step(0), env.step(0)
    (0, (1, 0.0, False), (0, 1.0, False))
    >>> noisy = from_mdp(swap, noise=0.1)
    >>> noisy.stochastic_rewards, noisy.reset(seed=0), round(noisy.step(0)[1], 3)
    (True, 0, -0.061)
    """
    draw: Any = noise
    if noise == "bernoulli":
        draw = bernoulli
        if mdp.rewards.size and not (mdp.rewards.min() >= 0.0 and mdp.rewards.max() <= 1.0):
            raise ValueError("Bernoulli rewards have means from 0 to 1; the model has others")
    elif not callable(noise):
        deviation = _checks.real(noise, "noise", low=0.0)
        draw = partial(_normal, deviation) if deviation > 0.0 else None
    parameters = {"start": start, "horizon": horizon} | ({} if noise == 0.0 else {"noise": noise})
    run: dict[str, Any] = {"start": start, "horizon": horizon, "time_limit": time_limit}
    return Environment(name, mdp, parameters=parameters, draw_reward=draw, **run)


def _normal(deviation: float, mean: float, u: float) -> float:
    """Return the quantile at ``u`` of a normally distributed reward."""
    return NormalDist(mean, deviation).inv_cdf(max(u, LEAST_U))


def from_file(path: str | Path, start: Any = None, horizon: int = 1000) -> Environment:
    """Create an environment from a model in an npz file.

    The file was written by `FiniteMDP.save` or contains the arrays ``transitions`` and ``rewards``.

    Parameters
    ----------
    path : str or Path
        The file.
    start : int or array [S], optional
        The state after a reset, or the probabilities of the start states; by default ``start`` from the file, or 0 if
        the file has none.
    horizon : int, default 1000
        Usual number of steps in a run.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "swap.npz")
    >>> np.savez(path, transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0], start=1)
    >>> from_file(path).reset(seed=0)
    1
    """
    if not str(path):
        raise ValueError("a file is missing; write file:PATH, for instance file:model.npz")
    mdp, start_in_file = load_model(path)
    parameters = {"horizon": horizon} | ({} if start is None else {"start": start})
    first = next((one for one in (start, start_in_file) if one is not None), 0)
    return Environment(f"file:{path}", mdp, start=first, horizon=horizon, parameters=parameters)


class FunctionWorld(World):
    """An environment whose steps are computed by your own function, also called ``from_function``.

    Parameters
    ----------
    step
        ``step(state, action, rng)`` returns (next state, reward, terminated); it must take all random numbers from
        ``rng``, a NumPy generator.
    n_states, n_actions
        Size of the environment.
    start
        The initial state of every episode, or a function ``start(rng)`` that draws it.
    horizon
        Usual number of steps in a run.
    name
        The name.

    Examples
    --------
    >>> world = from_function(lambda s, a, rng: ((s + a) % 3, float(s == 2), False), n_states=3, n_actions=2)
    >>> world.reset(seed=0), world.step(1), world.step(1), world.step(0)
    (0, (1, 0.0, False), (2, 0.0, False), (2, 1.0, False))
    """

    def __init__(
        self,
        step: Callable[[int, int, np.random.Generator], StepResult],
        n_states: int,
        n_actions: int,
        start: int | Callable[[np.random.Generator], int] = 0,
        horizon: int = 1000,
        name: str = "function",
    ) -> None:
        self.function, self.start, self.name = step, start, str(name)
        self.n_states = _checks.integer(n_states, "n_states")
        self.n_actions = _checks.integer(n_actions, "n_actions")
        self.horizon = _checks.integer(horizon, "horizon")
        self.state, self.terminated = 0, True  # until the first reset
        self._rng: np.random.Generator | None = None

    def __repr__(self) -> str:
        return f"FunctionWorld({self.name!r}, {self.n_states} states, {self.n_actions} actions)"

    def reset(self, *, seed: Seed = None) -> int:
        """Begin an episode and return its first state; with a seed, reseed the random stream."""
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        first = self.start(self._rng) if callable(self.start) else self.start
        self.state, self.terminated = _checks.index(first, "start", self.n_states), False
        return self.state

    def step(self, action: int) -> StepResult:
        """Take an action and return (next state, reward, whether the episode has ended)."""
        if self.terminated or self._rng is None:
            raise RuntimeError(f"{self.name} has terminated or not begun; call reset() first")
        after, reward, terminated = self.function(self.state, action, self._rng)
        self.state, self.terminated = _checks.index(after, "next state", self.n_states), bool(terminated)
        return self.state, _checks.real(reward, "reward"), self.terminated


from_function = FunctionWorld
