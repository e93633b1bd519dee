"""Any Gymnasium environment with finite spaces, with states and actions numbered, for agents to act in.

States are the numbers of its observations, and one more, the last, that stands for the end of an episode: nothing is
known of the model, so any transition may turn out to end one. Truncation is not an end: it only means that the
environment must be reset.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._specs import parse_spec
from bamdp.envs.environment import World
from bamdp.gym import spaces
from bamdp.gym.spaces import UNIFORM, Discretize

SAVED_ATTRIBUTES = ("numbering", "actions", "name", "masked", "reworked")
WORLD_ARGUMENTS = ("max_states", "action_mask", "observation", "bins", "edges", "bounds")
DEFAULT_HORIZON = 1000  # steps of a run


class GymWorld(World):
    """A Gymnasium environment, with states and actions numbered.

    Parameters
    ----------
    env
        The environment, wrapped in whatever way. It is stepped and reset, never closed.
    max_states
        Number observations as they appear, up to so many: for spaces that are large, or not finite but hashable.
        By default finite spaces are numbered ahead of time.
    observation
        A function that every observation goes through first.
    action_mask
        Whether to believe ``info["action_mask"]``, where the environment gives one.
    name
        What it is called.

    Examples
    --------
    >>> import gymnasium
    >>> world = GymWorld(gymnasium.make("FrozenLake-v1", is_slippery=False))
    >>> world.n_states, world.n_actions, world.reset(seed=0), world.step(2)
    (17, 4, 0, (1, 0.0, False))
    """

    def __init__(
        self,
        env: Any,
        *,
        max_states: int | None = None,
        observation: Callable[[Any], Any] | None = None,
        action_mask: bool = True,
        name: str | None = None,
    ) -> None:
        self.env = env
        self.function = observation
        self.reworked: bool | None = observation is not None  # whether there is a function; it is not saved
        observations, actions = single_spaces(env)
        self.actions = spaces.number_actions(actions)
        self.numbering = spaces.number_observations(observations, max_states, observation)
        spec = getattr(env, "spec", None)
        self.name = str(name or (spec.id if spec is not None else type(env).__name__))
        if not isinstance(action_mask, bool):
            raise TypeError(f"action_mask must be True or False, got {action_mask!r}")
        self.masked = action_mask
        self._settle()

    def _settle(self) -> None:
        """Set the attributes that follow from how observations and actions are numbered."""
        self.n_states = self.numbering.n + 1
        self.n_actions = spaces.n_elements(self.actions)
        self.end = self.numbering.n
        self.horizon = DEFAULT_HORIZON
        self.state = 0
        self.terminated = self.truncated = False
        self.allowed: NDArray[np.bool_] | None = None  # of the present state, if the environment tells
        self._masks: dict[int, bytes] = {}
        self._space: Any = None  # the action space that was looked at last

    def __repr__(self) -> str:
        return f"GymWorld({self.name!r}, {self.n_states} states with the end, {self.n_actions} actions)"

    def content(self) -> dict[str, Any]:
        """Return what a file says of the world: nothing of the environment and the function for observations."""
        return {name: getattr(self, name) for name in SAVED_ATTRIBUTES}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> GymWorld:
        """Return the world of which :meth:`content` said this, as yet without an environment."""
        world = cls.__new__(cls)
        vars(world).update(content, env=None, function=None)
        world._settle()
        return world

    def forget_run(self) -> None:
        """Forget which observations have appeared, so that a copy for another run numbers them anew."""
        self.numbering.seen.clear()
        self._masks.clear()

    @property
    def knowledge(self) -> dict[str, Any]:
        """The arguments of `Agent` that are known beforehand: the state that stands for the end."""
        return {"end": self.end}

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Begin an episode and return the number of its first observation."""
        try:
            result = self.env.reset(seed=gymnasium_seed(seed))
        except TypeError as error:
            if "seed" not in str(error):
                raise
            written = "def reset(self, *, seed=None, options=None)"
            raise TypeError(f"reset of {self.name} must take a seed, as in Gymnasium: {written}") from error
        observation, info = self._returned(result, "reset", "observation, info")
        self.terminated = self.truncated = False
        self._check_actions()
        return self._arrive(observation, info)

    def step(self, action: int) -> tuple[int, float, bool]:
        """Take the action with this number; return (next state, reward, whether the episode has ended).

        Afterwards ``truncated`` says whether the episode was cut off.
        """
        action = _checks.index(action, "action", self.n_actions)
        observation, reward, terminated, truncated, info = self._returned(
            self.env.step(self.element(action)), "step", "observation, reward, terminated, truncated, info"
        )
        self._check_actions()
        self.terminated, self.truncated = bool(terminated), bool(truncated)
        if self.terminated:
            self.state, self.allowed = self.end, None
        else:
            self._arrive(observation, info)
        try:
            return self.state, float(reward), self.terminated
        except (TypeError, ValueError):
            raise TypeError(f"the reward of {self.name} must be a number, got {reward!r}") from None

    def _returned(self, result: Any, method: str, names: str) -> Any:
        """Return what a method of the environment has returned, if it is what Gymnasium asks for."""
        n = names.count(",") + 1
        if not isinstance(result, (tuple, list)) or len(result) != n:
            raise TypeError(
                f"{method} of {self.name} must return {n} things, as in Gymnasium: ({names}); got {result!r}"
            )
        return result

    def number(self, observation: Any) -> int:
        """Return the number of an observation, after the function for observations if there is one."""
        return self.numbering(observation if self.function is None else self.function(observation))

    def element(self, action: int) -> Any:
        """Return the action with a number as the environment takes it."""
        return spaces.element_of(single_spaces(self.env)[1], action)

    def mask(self, state: int, info: Any) -> NDArray[np.bool_] | None:
        """Return the mask of the actions that exist in a state, or None if ``info`` has none.

        The mask of a state must be the same at each visit.
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

    def _check_actions(self) -> None:
        """Raise ValueError if the environment has changed its action space."""
        if self.env.action_space is self._space:
            return
        if spaces.digits_of(self.env.action_space) != self.actions:
            raise ValueError(
                f"{self.name} has changed its action space to {self.env.action_space}; agents need one for all states: "
                'let it be the largest, with info["action_mask"] where not all of it exists'
            )
        self._space = self.env.action_space


def single_spaces(env: Any) -> tuple[Any, Any]:
    """Return the observation and the action space of an environment, or of the parts of a vector."""
    observations = getattr(env, "single_observation_space", None)
    if observations is None:
        return env.observation_space, env.action_space
    return observations, env.single_action_space


def gymnasium_seed(seed: Any) -> int | None:
    """Return a seed as Gymnasium takes it: a whole number or None."""
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1)[0])
    return None if seed is None else operator.index(seed)


def from_gym(text: str, **parameters: Any) -> GymWorld:
    """Make a world from text: ``ID`` or ``ID:key=value,...``, with arguments of ``gymnasium.make`` or of a world.

    Examples
    --------
    >>> from_gym("FrozenLake-v1:is_slippery=False,map_name=8x8")
    GymWorld('FrozenLake-v1', 65 states with the end, 4 actions)
    >>> from_gym("CartPole-v1:bins=(3,3,6,5)")
    GymWorld('CartPole-v1', 271 states with the end, 2 actions)
    """
    name, written = read_gym(text)
    arguments = written | parameters
    world_arguments = {key: arguments.pop(key) for key in WORLD_ARGUMENTS if key in arguments}
    return wrap_gym(make_gym(name, **arguments), name=name, **world_arguments)


def make_gym(name: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Call ``gymnasium.make``; what is wrong is a ValueError in one line."""
    try:
        return gymnasium.make(name, **arguments)
    except (gymnasium.error.Error, ImportError) as error:
        how = f"register it: gymnasium.register('MyEnv-v0', entry_point={name!r})"
        hint = (
            f" (PYTHONPATH=. finds modules of the working directory; a class has no id, {how})"
            if ":" in name
            else ""
        )
        raise ValueError(f"Gymnasium cannot make {name!r}: {error}{hint}") from None
    except Exception as error:  # environments check their parameters in any way, or not at all
        raise ValueError(f"Gymnasium cannot make {name!r} with {arguments}: {error}") from None


def wrap_gym(
    env: Any, *, bins: Any = None, edges: str = UNIFORM, bounds: Any = None, **arguments: Any
) -> GymWorld:
    """Make a world of an environment, whose observations are discretised first if ``bins`` are given."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        raise ValueError("a vector of environments is played by bamdp.GymAgent.for_env(...).play_vector(...)")
    if bins is not None:
        env = Discretize(env, bins, edges=edges, bounds=bounds)
    return GymWorld(env, **arguments)


def with_bins(text: str, bins: str) -> str:
    """Return the text of a Gymnasium environment with the bins for its observations written into it.

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
    """Return the id and the parameters in ``ID`` or ``ID:key=value,...``."""
    name, _, last = text.strip().rpartition(":")
    if "=" not in last:  # an id may itself be module:Name-v0
        name, last = text.strip(), ""
    if not name:
        raise ValueError("an environment is missing; write gym:ID, for instance gym:FrozenLake-v1")
    return name, parse_spec(f"gym:{last}").parameters
