"""Gymnasium environments with finite spaces as environments with numbered states and actions.

States are the numbers of observations, and one additional last state represents the end of an episode: the model is
unknown, so any transition may end an episode. Truncation is not an end; it only means that the environment must be
reset.

The elements of a finite space, nested or not, are numbered in advance, with later parts varying fastest. Elements of
spaces that cannot be enumerated are numbered in order of appearance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._parameters import parse_spec
from bamdp.continuous.world import as_continuous
from bamdp.envs.environment import World
from bamdp.envs.picture import DIRECTIONS, GRID_MOVES, Layout, table_layout
from bamdp.gym.discretize import Discretize

WORLD_ARGUMENTS = ("max_states", "observation")
BIN_ARGUMENTS = ("bins", "edges", "bounds")
DEFAULT_HORIZON = 1000  # steps per run
MAX_ELEMENTS = 20_000  # of a space that is enumerated in advance
ACTION_NAMES = {  # in Gymnasium's own environments, by a part of their names
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("down", "up", "right", "left", "pick up", "drop off"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("push left", "push right"),
}
MOVES = dict(zip(DIRECTIONS, GRID_MOVES))


# --- numbers ---------------------------------------------------------------------------------------------------


def elements(space: Any) -> list[Any] | None:
    """Return the first ``MAX_ELEMENTS`` + 1 elements of a finite space, or None for other spaces.

    Examples
    --------
    >>> elements(spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(2, start=5)}))
    [{'a': 5, 'b': 0}, {'a': 5, 'b': 1}, {'a': 6, 'b': 0}, {'a': 6, 'b': 1}]
    """
    if isinstance(space, spaces.Discrete):
        return list(range(int(space.start), int(space.start) + min(int(space.n), MAX_ELEMENTS + 1)))
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        parts = [part for one in inner if (part := elements(one)) is not None]
        if len(parts) < len(inner):
            return None
        found = itertools.islice(itertools.product(*parts), MAX_ELEMENTS + 1)
        return [dict(zip(space, values)) if isinstance(space, spaces.Dict) else values for values in found]
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        sizes = np.ravel(getattr(space, "nvec", np.full(space.shape, 2))).tolist()
        first = np.ravel(getattr(space, "start", np.zeros(space.shape, int))).tolist()
        ranges = (range(low, low + n) for low, n in zip(first, sizes))
        found = itertools.islice(itertools.product(*ranges), MAX_ELEMENTS + 1)
        return [np.array(values, space.dtype).reshape(space.shape) for values in found]
    return None


def key_of(element: Any) -> Hashable:
    """Return a hashable key for an element; equal elements of any type have the same key."""
    if isinstance(element, np.ndarray):
        element = element.tolist()
    if isinstance(element, (list, tuple)):
        return tuple(map(key_of, element))
    if isinstance(element, Mapping):
        return tuple((name, key_of(element[name])) for name in sorted(element))
    return element


class Numbering:
    """A map from elements to numbers 0 .. ``n`` - 1, in the order of an enumerated space or of appearance."""

    def __init__(self, n: int, listed: list[Any] | None = None, space: Any = None) -> None:
        self.n, self.space = n, space
        self.numbers = {key_of(element): i for i, element in enumerate(listed or ())}

    def __call__(self, element: Any) -> int:
        """Return the number of an element; without an enumerated space, a new element gets the next number."""
        key = key_of(element)
        number = self.numbers.get(key)
        if number is not None:
            return number
        if self.space is not None:
            raise ValueError(f"{element!r} is outside of the space {self.space}")
        if len(self.numbers) == self.n:
            raise ValueError(f"observation {element!r} is new after {self.n} others; increase max_states")
        self.numbers[key] = len(self.numbers)
        return self.numbers[key]


def number_observations(
    space: Any, max_states: int | None, function: Callable[[Any], Any] | None
) -> Numbering:
    """Return a numbering of a space's observations, after applying ``function`` if it is given."""
    listed = elements(space) if max_states is None and function is None else None
    if listed is not None and len(listed) <= MAX_ELEMENTS:
        return Numbering(len(listed), listed, space)
    if function is None and "float" in str(space):  # the type of a box, even one inside other spaces
        raise ValueError(
            f"{space} cannot be states of a finite model; make them discrete by bins (bamdp.gym.Discretize, on the "
            "command line --bins 8) or by your own function: bamdp.make_world(env, observation=..., max_states=500)"
        )
    if max_states is None:
        what = "observation=..." if function is not None else str(space)
        raise ValueError(f"{what} needs max_states=..., the maximum number of distinct observations")
    return Numbering(_checks.integer(max_states, "max_states"))


def list_actions(space: Any) -> list[Any]:
    """Return the actions of a space; raise ValueError if it is infinite or too large."""
    listed = elements(space) or []
    if not 0 < len(listed) <= MAX_ELEMENTS:
        raise ValueError(
            f"{space} is not a finite set of actions; use a wrapper such as gym.DiscretizeActions"
        )
    return listed


# --- environments ----------------------------------------------------------------------------------------------


class GymWorld(World):
    """A Gymnasium environment with numbered states and actions.

    Parameters
    ----------
    env
        The environment, with or without wrappers. It is never closed.
    max_states
        Maximum number of distinct observations, numbered in order of appearance: for large or infinite spaces with
        hashable elements. By default finite spaces are enumerated in advance.
    observation
        A function applied to every observation first.
    name
        The name.

    Examples
    --------
    >>> import gymnasium
    >>> world = GymWorld(gymnasium.make("FrozenLake-v1", is_slippery=False))
    >>> world.n_states, world.n_actions, world.reset(seed=0), world.step(2)
    (17, 4, 0, (1, 0.0, False))
    """

    end: int

    def __init__(
        self,
        env: Any,
        *,
        max_states: int | None = None,
        observation: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.env, self.function = env, observation
        self.actions = list_actions(env.action_space)
        self.action_number = Numbering(len(self.actions), self.actions, env.action_space)
        self.numbering = number_observations(env.observation_space, max_states, observation)
        spec = getattr(env, "spec", None)
        self.name = str(name or (spec.id if spec is not None else type(env).__name__))
        self.n_states, self.n_actions = self.numbering.n + 1, len(self.actions)
        self.end = self.numbering.n
        self.horizon = DEFAULT_HORIZON
        self.state = 0
        self.terminated = self.truncated = False
        self.allowed: NDArray[np.bool_] | None = None  # in the current state, if the environment provides it

    def __repr__(self) -> str:
        return f"GymWorld({self.name!r}, {self.n_states} states with the end, {self.n_actions} actions)"

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the name of an action in Gymnasium's own environments, otherwise its number."""
        names = self._action_names()
        return names[action] if names else str(action)

    def _action_names(self) -> tuple[str, ...]:
        names = next((names for part, names in ACTION_NAMES.items() if part in self.name), ())
        return names if len(names) == self.n_actions else ()

    @property
    def geometry(self) -> Layout:
        """The geometry for drawing: the environment's grid if it has one, otherwise a table of its states."""
        inner = getattr(self.env, "unwrapped", self.env)
        shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
        if len(shape) != 2 or shape[0] * shape[1] != self.end:
            return table_layout(self.n_states)
        moves = [MOVES[name] for name in self._action_names() if name in MOVES]
        aims = moves if len(moves) == self.n_actions else None
        return table_layout(self.n_states, (int(shape[0]), int(shape[1])), moves=aims)

    def forget_run(self) -> None:
        """Forget the observations that have appeared, so that a copy for another run numbers them again."""
        if self.numbering.space is None:
            self.numbering.numbers.clear()

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Begin an episode and return the number of its first observation."""
        if isinstance(seed, np.random.SeedSequence):
            seed = int(seed.generate_state(1)[0])
        observation, info = self.env.reset(seed=seed)
        self.terminated = self.truncated = False
        self.state, self.allowed = self.number(observation), self.mask(info)
        return self.state

    def step(self, action: int) -> tuple[int, float, bool]:
        """Take an action and return (next state, reward, whether the episode has ended).

        Afterwards, ``truncated`` says whether the episode was truncated.
        """
        action = _checks.index(action, "action", self.n_actions)
        observation, reward, terminated, truncated, info = self.env.step(self.actions[action])
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        self.state, self.allowed = self.end, None
        if not self.terminated:
            self.state, self.allowed = self.number(observation), self.mask(info)
        return self.state, _checks.real(reward, "reward"), self.terminated

    def number(self, observation: Any) -> int:
        """Return the number of an observation, after applying ``observation`` if it is given."""
        return self.numbering(observation if self.function is None else self.function(observation))

    def mask(self, info: Any) -> NDArray[np.bool_] | None:
        """Return the mask of the actions in the current state, or None if ``info`` has none."""
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return None if mask is None else np.asarray(mask, bool)


def from_gym(text: str, **parameters: Any) -> Any:
    """Create an environment from ``ID`` or ``ID:key=value,...``, with arguments of ``gymnasium.make`` or `GymWorld`.

    Examples
    --------
    >>> from_gym("FrozenLake-v1:is_slippery=False,map_name=8x8")
    GymWorld('FrozenLake-v1', 65 states with the end, 4 actions)
    >>> from_gym("CartPole-v1:bins=(3,3,6,5)")
    GymWorld('CartPole-v1', 271 states with the end, 2 actions)
    """
    name, written = read_gym(text)
    arguments = written | parameters
    own = {key: arguments.pop(key) for key in (*WORLD_ARGUMENTS, *BIN_ARGUMENTS) if key in arguments}
    try:
        env = gymnasium.make(name, **arguments)
    except Exception as error:  # environments may raise any exception for invalid parameters
        is_class = ":" in name and "-v" not in name
        hint = f" A class needs an id; register it: gymnasium.register('MyEnv-v0', entry_point={name!r})"
        given = f" with {arguments}" if arguments else ""
        raise ValueError(f"Gymnasium cannot make {name!r}{given}: {error}{hint * is_class}") from None
    return wrap_gym(env, name=name, **own)


def wrap_gym(env: Any, **arguments: Any) -> World:
    """Wrap a Gymnasium environment, after discretising its observations if ``bins`` is given.

    Real-valued observations without any numbering remain continuous, in a `bamdp.continuous.ContinuousWorld`.
    """
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise ValueError("an agent acts in one environment at a time, not in a vector of them")
    bins = {key: arguments.pop(key) for key in BIN_ARGUMENTS if key in arguments}
    if bins.get("bins") is not None:
        return GymWorld(Discretize(env, **bins), **arguments)
    return as_continuous(env, **arguments) or GymWorld(env, **arguments)


def with_bins(text: str, bins: str) -> str:
    """Return the text of a Gymnasium environment with its observation bins added.

    Examples
    --------
    >>> with_bins("gym:CartPole-v1", "3,3,6,5")
    'gym:CartPole-v1:bins=(3,3,6,5)'
    >>> with_bins("gym:MountainCar-v0:goal_velocity=0.1", "quantiles:8")
    'gym:MountainCar-v0:goal_velocity=0.1,bins=8,edges=quantiles'
    """
    kind, _, numbers = bins.rpartition(":")
    written = f"bins=({numbers})" if "," in numbers else f"bins={numbers}"
    written += f",edges={kind.strip()}" if kind else ""
    return f"{text}{',' if '=' in text.rpartition(':')[2] else ':'}{written}"


def read_gym(text: str) -> tuple[str, dict[str, Any]]:
    """Return the id and the parameters from ``ID`` or ``ID:key=value,...``."""
    name, _, last = text.strip().rpartition(":")
    if "=" not in last:  # an id may itself contain a colon, as in module:Name-v0
        name, last = text.strip(), ""
    return name, parse_spec(f"gym:{last}").parameters
