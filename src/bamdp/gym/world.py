"""Gymnasium environments with finite spaces as environments with numbered states and actions.

States are the numbers of observations, and one additional last state represents the end of an episode: the model is
unknown, so any transition may end an episode. Truncation is not an end; it only means that the environment must be
reset.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._parameters import parse_spec
from bamdp.continuous.world import as_continuous
from bamdp.envs.environment import World
from bamdp.envs.picture import DIRECTIONS, GRID_MOVES, Layout, table_layout
from bamdp.gym.discretize import Discretize
from bamdp.gym.spaces import Numbering, list_actions, number_observations

WORLD_ARGUMENTS = ("max_states", "action_mask", "observation")
BIN_ARGUMENTS = ("bins", "edges", "bounds")
ONE_AT_A_TIME = "an agent acts in one environment at a time, not in a vector of them; use gymnasium.make"
DEFAULT_HORIZON = 1000  # steps per run
ACTION_NAMES = {  # in Gymnasium's own environments, by prefix of their names
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("down", "up", "right", "left", "pick up", "drop off"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("push left", "push right"),
    "MountainCar": ("push left", "coast", "push right"),
    "Acrobot": ("torque −1", "torque 0", "torque +1"),
}
MOVES = dict(zip(DIRECTIONS, GRID_MOVES))
RETURNED = {"reset": "observation, info", "step": "observation, reward, terminated, truncated, info"}


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
    action_mask
        Whether to use ``info["action_mask"]`` if the environment provides it.
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
        action_mask: bool = True,
        name: str | None = None,
    ) -> None:
        if not isinstance(action_mask, bool):
            raise TypeError(f"action_mask must be True or False, got {action_mask!r}")
        self.env, self.function, self.masked = env, observation, action_mask
        if isinstance(env, gymnasium.vector.VectorEnv):
            raise ValueError(ONE_AT_A_TIME)
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
        self._masks: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"GymWorld({self.name!r}, {self.n_states} states with the end, {self.n_actions} actions)"

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the name of an action in Gymnasium's own environments, otherwise its number."""
        names = self._action_names()
        return names[action] if names else str(action)

    def _action_names(self) -> tuple[str, ...]:
        own = self.name.rpartition("/")[2].rpartition(":")[2]
        names = next((names for head, names in ACTION_NAMES.items() if own.startswith(head)), ())
        return names if len(names) == self.n_actions else ()

    @property
    def geometry(self) -> Layout:
        """The geometry for drawing: the environment's grid if it has one, otherwise a table of its states."""
        inner = getattr(self.env, "unwrapped", self.env)
        shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
        if len(shape) != 2 or shape[0] * shape[1] != self.end:
            return table_layout(self.n_states)
        moves = [MOVES[name] for name in self._action_names() if name in MOVES]
        aims = moves if len(moves) == self.n_actions else ()
        return table_layout(self.n_states, (int(shape[0]), int(shape[1])), moves=aims)

    def forget_run(self) -> None:
        """Forget the observations that have appeared, so that a copy for another run numbers them again."""
        self._masks.clear()
        if self.numbering.space is None:
            self.numbering.numbers.clear()

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Begin an episode and return the number of its first observation."""
        try:
            result = self.env.reset(seed=gymnasium_seed(seed))
        except TypeError as error:
            if "seed" not in str(error):
                raise
            signature = "def reset(self, *, seed=None, options=None)"
            raise TypeError(f"reset of {self.name} must take a seed, as in Gymnasium: {signature}") from error
        self.terminated = self.truncated = False
        return self._arrive(*self._returned(result, "reset"))

    def step(self, action: int) -> tuple[int, float, bool]:
        """Take an action and return (next state, reward, whether the episode has ended).

        Afterwards, ``truncated`` says whether the episode was truncated.
        """
        action = _checks.index(action, "action", self.n_actions)
        result = self._returned(self.env.step(self.actions[action]), "step")
        observation, reward, terminated, truncated, info = result
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        if self.terminated:
            self.state, self.allowed = self.end, None
        else:
            self._arrive(observation, info)
        try:
            return self.state, float(reward), self.terminated
        except (TypeError, ValueError):
            raise TypeError(f"the reward of {self.name} must be a number, got {reward!r}") from None

    def _returned(self, result: Any, method: str) -> Any:
        """Return the result of an environment's method after checking that it has Gymnasium's form."""
        names = RETURNED[method]
        n = names.count(",") + 1
        if not isinstance(result, (tuple, list)) or len(result) != n:
            raise TypeError(
                f"{method} of {self.name} must return {n} things, as in Gymnasium: ({names}); got {result!r}"
            )
        return result

    def number(self, observation: Any) -> int:
        """Return the number of an observation, after applying ``observation`` if it is given."""
        return self.numbering(observation if self.function is None else self.function(observation))

    def mask(self, state: int, info: Any) -> NDArray[np.bool_] | None:
        """Return the mask of existing actions in a state, or None if ``info`` has none.

        The mask of a state must be the same on every visit.
        """
        mask = info.get("action_mask") if self.masked and isinstance(info, dict) else None
        if mask is None:
            return None
        allowed = np.asarray(mask).astype(bool)
        if allowed.shape != (self.n_actions,):
            raise ValueError(
                f"the action mask must have {self.n_actions} entries, one for each action, got shape "
                f"{list(allowed.shape)}; say action_mask=False to do without"
            )
        if self._masks.setdefault(state, allowed.tobytes()) != allowed.tobytes():
            raise ValueError(
                f"the action mask of state {state} has changed; add to the observation what decides it, or say "
                "action_mask=False"
            )
        return allowed

    def _arrive(self, observation: Any, info: Any) -> int:
        self.state = self.number(observation)
        self.allowed = self.mask(self.state, info)
        return self.state


def gymnasium_seed(seed: Any) -> int | None:
    """Return a seed in the form that Gymnasium expects: an integer or None."""
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1)[0])
    return None if seed is None else operator.index(seed)


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
        hint = (
            " (PYTHONPATH=. finds modules of the working directory; a class has no id, register it: "
            f"gymnasium.register('MyEnv-v0', entry_point={name!r})"
        )
        given = f" with {arguments}" if arguments else ""
        hint = hint if ":" in name else ""
        raise ValueError(f"Gymnasium cannot make {name!r}{given}: {error}{hint}") from None
    return wrap_gym(env, name=name, **own)


def wrap_gym(env: Any, **arguments: Any) -> World:
    """Wrap a Gymnasium environment, after discretising its observations if ``bins`` is given.

    Real observations without any numbering remain continuous, in a `bamdp.continuous.ContinuousWorld`.
    """
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise ValueError(ONE_AT_A_TIME)
    bins = {key: arguments.pop(key) for key in BIN_ARGUMENTS if key in arguments}
    continuous = as_continuous(env, **arguments) if bins.get("bins") is None else None
    if continuous is not None:
        return continuous
    return GymWorld(Discretize(env, **bins) if bins.get("bins") is not None else env, **arguments)


def with_bins(text: str, bins: str) -> str:
    """Return the text of a Gymnasium environment with its observation bins added.

    Examples
    --------
    >>> with_bins("gym:CartPole-v1", "3,3,6,5")
    'gym:CartPole-v1:bins=(3,3,6,5)'
    >>> with_bins("gym:MountainCar-v0:goal_velocity=0.1", "quantiles:8")
    'gym:MountainCar-v0:goal_velocity=0.1,bins=8,edges=quantiles'
    """
    head, _, rest = text.partition(":")
    if head.strip().lower() != "gym":
        raise ValueError(f"bins are for observations of Gymnasium's environments, gym:ID; {text!r} is none")
    kind, colon, numbers = bins.rpartition(":")
    if not all(number.strip().isdigit() for number in numbers.split(",")):
        raise ValueError(f"bins {bins!r} are not whole numbers; write for instance 3,3,6,5 or quantiles:8")
    written = f"bins=({numbers})" if "," in numbers else f"bins={numbers}"
    written += f",edges={kind.strip()}" if colon else ""
    return f"{text}{',' if '=' in rest.rpartition(':')[2] else ':'}{written}"


def read_gym(text: str) -> tuple[str, dict[str, Any]]:
    """Return the id and the parameters from ``ID`` or ``ID:key=value,...``."""
    name, _, last = text.strip().rpartition(":")
    if "=" not in last:  # an id may itself contain a colon, as in module:Name-v0
        name, last = text.strip(), ""
    if not name:
        raise ValueError("an environment is missing; write gym:ID, for instance gym:FrozenLake-v1")
    return name, parse_spec(f"gym:{last}").parameters
