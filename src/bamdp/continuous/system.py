"""Description of a system with continuous observations before any learning.

An observation is a vector in a box [D]; an action is a vector a in a box [m] or one of n integers. The *state* s [d] is
the observation with each declared cosine–sine pair replaced by its angle. The regression for s' uses *inputs* x(s, a)
in place of s and a. An angle is encoded by its sine and cosine. Other coordinates are shifted and scaled to about [−1,
1] using the declared box, or using the data if the box is infinite or more than a hundred times as wide as the data.
Box actions are scaled to [−1, 1]; discrete actions are one-hot encoded.

Planners represent actions as *controls* u [k]: a box action scaled to [−1, 1], or one preference per discrete action,
where the action with the largest preference is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bamdp import _checks

Reward = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]
MAX_BOUND = 1e6  # larger bounds are uninformative
FULL_TURN = 2.0 * np.pi


@dataclass(frozen=True, eq=False)
class System:
    """Spaces, angles, and known rewards and terminations of a system.

    Parameters
    ----------
    box_low, box_high
        Bounds of the observation box [D]; infinite if unknown.
    action_low, action_high
        Bounds of the action box [m]; empty for discrete actions.
    n_actions, first_action
        The number of discrete actions and the first action's number; 0 for box actions.
    angles
        The observation coordinates that represent angles: an index for an angle in radians, or a pair of indices for
        its cosine and sine.
    reward
        ``reward(obs, action, next_obs)`` [n], for arrays [n, D], [n, m] (discrete actions: [n]) and [n, D]; None to
        learn rewards.
    terminated
        ``terminated(obs, action, next_obs)`` [n], bool, for the same arrays; None to learn terminations.
    steps
        The number of steps after which an episode is truncated, if known.
    """

    box_low: NDArray[np.float64]
    box_high: NDArray[np.float64]
    action_low: NDArray[np.float64]
    action_high: NDArray[np.float64]
    n_actions: int = 0
    first_action: int = 0
    angles: tuple[int | tuple[int, int], ...] = ()
    reward: Reward | None = None
    terminated: Reward | None = None
    steps: int | None = None

    @cached_property
    def sources(self) -> list[int | tuple[int, int]]:
        """The source of each state coordinate: an index into the observation, or a pair of indices for an angle."""
        pairs = {pair[0]: pair for pair in self.angles if isinstance(pair, tuple)}
        sines = {pair[1] for pair in pairs.values()}
        return [pairs.get(j, j) for j in range(len(self.box_low)) if j not in sines]

    @cached_property
    def state_angles(self) -> tuple[int, ...]:
        """The state coordinates that are angles."""
        return tuple(j for j, source in enumerate(self.sources) if source in self.angles)

    @cached_property
    def low(self) -> NDArray[np.float64]:
        """The lower bounds [d] of the state; angles computed from pairs are unbounded."""
        return np.array([-np.inf if isinstance(j, tuple) else self.box_low[j] for j in self.sources])

    @cached_property
    def high(self) -> NDArray[np.float64]:
        """The upper bounds [d] of the state."""
        return np.array([np.inf if isinstance(j, tuple) else self.box_high[j] for j in self.sources])

    @cached_property
    def turns(self) -> NDArray[np.bool_]:
        """A mask [d] of angles that wrap around because their box is one full turn."""
        turn = np.zeros(self.n_states, bool)
        turn[list(self.state_angles)] = True
        return turn & (np.abs(self.high - self.low - FULL_TURN) < 1e-3)

    @property
    def n_states(self) -> int:
        """The dimension d of states."""
        return len(self.sources)

    @property
    def n_controls(self) -> int:
        """The dimension k of controls."""
        return self.n_actions or len(self.action_low)

    def state(self, observation: Any) -> NDArray[np.float64]:
        """Validate an observation and return its state [d]."""
        vector = np.asarray(observation, float).ravel()
        if vector.shape != self.box_low.shape:
            raise ValueError(
                f"an observation has {len(self.box_low)} numbers, got {_checks.shown(observation)}"
            )
        if not np.isfinite(vector).all():
            raise ValueError(f"the environment returned an observation that is not finite: {observation}")
        parts = (
            np.arctan2(vector[j[1]], vector[j[0]]) if isinstance(j, tuple) else vector[j]
            for j in self.sources
        )
        return np.array(list(parts))

    def observations(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """Return the observations [..., D] of states [..., d]."""
        if not any(isinstance(source, tuple) for source in self.sources):
            return np.asarray(states, float)
        made = np.empty((*states.shape[:-1], len(self.box_low)))
        for j, source in enumerate(self.sources):
            if isinstance(source, tuple):
                made[..., source[0]], made[..., source[1]] = np.cos(states[..., j]), np.sin(states[..., j])
            else:
                made[..., source] = states[..., j]
        return made

    def control(self, action: Any) -> NDArray[np.float64]:
        """Return the control [k] of an action of the environment."""
        if self.n_actions:
            control = np.zeros(self.n_actions)
            control[_checks.index(action - self.first_action, "action", self.n_actions)] = 1.0
            return control
        vector = np.asarray(action, float).ravel()
        if vector.shape != self.action_low.shape or not np.isfinite(vector).all():
            raise ValueError(f"an action has {len(self.action_low)} finite numbers, got {action!r}")
        half = 0.5 * (self.action_high - self.action_low)
        return np.clip((vector - self.action_low) / half - 1.0, -1.0, 1.0)

    def actions(self, controls: NDArray[Any]) -> NDArray[Any]:
        """Return the actions [..., m] (or integers [...]) that correspond to controls [..., k]."""
        if self.n_actions:
            return controls.argmax(-1) + self.first_action
        half = 0.5 * (self.action_high - self.action_low)
        return self.action_low + half * (np.clip(controls, -1.0, 1.0) + 1.0)

    def action(self, control: NDArray[Any]) -> Any:
        """Return one action in the environment's format: a float32 array or an integer."""
        action = self.actions(control)
        return int(action) if self.n_actions else action.astype(np.float32)


def system_of(
    env: Any,
    *,
    reward: Reward | None = None,
    terminated: Reward | None = None,
    angles: Iterable[int | tuple[int, int]] = (),
) -> System:
    """Return the system described by a Gymnasium environment and its user."""
    space, actions = env.observation_space, env.action_space
    if not is_continuous(env):
        raise ValueError(
            f"continuous models need Box observations and Box or Discrete actions, got {space}, {actions}"
        )
    numbered = isinstance(actions, gymnasium.spaces.Discrete)
    low, high = (np.asarray(bound, float).ravel() for bound in (space.low, space.high))
    bounds = ((), ()) if numbered else (actions.low, actions.high)
    action_low, action_high = (np.asarray(bound, float).ravel() for bound in bounds)
    if not (np.isfinite(action_low).all() and np.isfinite(action_high).all()):
        raise ValueError(
            f"actions must have finite bounds, got {actions}; put gymnasium.wrappers.RescaleAction or an "
            "ActionWrapper with a finite Box around the environment"
        )
    chosen = _angles(angles, len(low))
    spec = getattr(env, "spec", None)
    steps = spec.max_episode_steps if spec is not None else None
    count, first = (int(actions.n), int(actions.start)) if numbered else (0, 0)
    rows = np.tile(np.clip(np.zeros(len(low)), low, high), (2, 1))
    taken = np.full(2, first) if numbered else np.tile(action_low, (2, 1))
    for name, function in (("reward", reward), ("terminated", terminated)):
        if function is not None:
            _check_function(name, function, rows, taken)
    return System(low, high, action_low, action_high, count, first, chosen, reward, terminated, steps)


def _check_function(name: str, function: Any, obs: NDArray[Any], actions: NDArray[Any]) -> None:
    """Raise an error if a user's function does not accept a batch of two steps or fails to return one number each."""
    if not callable(function):
        raise TypeError(
            f"{name} must be a function of (obs, action, next_obs), got {_checks.shown(function)}"
        )
    shapes = ", ".join(f"[n, {part.shape[1]}]" if part.ndim > 1 else "[n]" for part in (obs, actions, obs))
    rule = f"{name}(obs, action, next_obs) is called with n steps, arrays {shapes}, and must return n numbers"
    try:
        with np.errstate(all="ignore"):
            shape = np.shape(function(obs, actions, obs))
    except Exception as error:  # user code may raise any exception
        raise ValueError(f"{rule}; with two steps it raised {type(error).__name__}: {error}") from error
    if shape != (2,):
        raise ValueError(f"{rule}; with two steps it returned shape {list(shape)}")


def _angles(angles: Iterable[int | tuple[int, int]], size: int) -> tuple[int | tuple[int, int], ...]:
    """Check and normalise the declared angles."""
    chosen: list[int | tuple[int, int]] = []
    for angle in angles:
        if isinstance(angle, (int, np.integer)):
            chosen.append(_checks.index(angle, "angle", size))
        elif len(angle) == 2:
            chosen.append((_checks.index(angle[0], "cosine", size), _checks.index(angle[1], "sine", size)))
        else:
            raise ValueError(f"an angle is an index, or the indices of its cosine and sine, got {angle!r}")
    used = [j for angle in chosen for j in (angle if isinstance(angle, tuple) else (angle,))]
    if len(set(used)) < len(used):
        raise ValueError(f"a coordinate belongs to one angle only, got {chosen}")
    return tuple(chosen)


def is_continuous(env: Any) -> bool:
    """Return whether an environment's observations and actions are supported by continuous models."""
    space, actions = getattr(env, "observation_space", None), getattr(env, "action_space", None)
    real = isinstance(space, gymnasium.spaces.Box) and np.dtype(space.dtype).kind == "f"
    return real and isinstance(actions, (gymnasium.spaces.Box, gymnasium.spaces.Discrete))
