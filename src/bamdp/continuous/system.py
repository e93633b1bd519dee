"""What is known of a system with continuous observations before anything is learned.

An observation is a vector s in a box [d]; an action is a vector a in a box [m], or one of n numbers. The regression
that learns s' sees neither: it sees the *inputs* x(s, a). A declared angle becomes its sine and cosine; any other
coordinate is shifted and scaled to about [−1, 1], by the declared box, or by the data where the box is infinite or
more than a hundred times as wide as what was seen. A box's action is scaled to [−1, 1]; a numbered action is one-hot.

Planners write actions as *controls* u [k]: a box's action in [−1, 1], or a preference for each numbered action, of
which the greatest is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks

Reward = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]
MAX_BOUND = 1e6  # a bound beyond it says nothing
FULL_TURN = 2.0 * np.pi


@dataclass(frozen=True, eq=False)
class System:
    """Spaces, angles, and what is known of rewards and ends.

    Parameters
    ----------
    low, high
        The box of observations [d]; infinite where nothing is known.
    action_low, action_high
        The box of actions [m]; ignored if there are numbered actions.
    n_actions
        The number of actions if they are numbered; 0 if they are a box.
    first_action
        The number of the first of them.
    angles
        The coordinates of the observation that are angles in radians.
    reward
        ``reward(obs, action, next_obs)`` [n], for arrays [n, d], [n, m] (numbered actions: [n]) and [n, d]; None if
        rewards are to be learned.
    terminated
        ``terminated(obs, action, next_obs)`` [n], bool, of the same arrays; None if ends are to be learned.
    steps
        After how many steps an episode is cut off, if that is known.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    action_low: NDArray[np.float64]
    action_high: NDArray[np.float64]
    n_actions: int = 0
    first_action: int = 0
    angles: tuple[int, ...] = ()
    reward: Reward | None = None
    terminated: Reward | None = None
    steps: int | None = None

    @property
    def n_observations(self) -> int:
        """The number d of coordinates of an observation."""
        return len(self.low)

    @property
    def n_controls(self) -> int:
        """The number k of coordinates of a control."""
        return self.n_actions or len(self.action_low)

    @property
    def turns(self) -> NDArray[np.bool_]:
        """The angles [d] whose box is one full turn, beyond which they begin again."""
        width = self.high - self.low
        turn = np.zeros(len(width), bool)
        turn[list(self.angles)] = True
        return turn & (np.abs(width - FULL_TURN) < 1e-3)

    def observation(self, value: Any) -> NDArray[np.float64]:
        """Check an observation and return it as a vector [d]."""
        vector = np.asarray(value, float).ravel()
        if vector.shape != self.low.shape:
            raise ValueError(f"an observation has {len(self.low)} numbers, got {_checks.shown(value)}")
        if not np.isfinite(vector).all():
            raise ValueError(f"the environment returned an observation that is not finite: {value}")
        return vector

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
        """Return the actions [..., m], or numbers [...], of controls [..., k]."""
        if self.n_actions:
            return controls.argmax(-1) + self.first_action
        half = 0.5 * (self.action_high - self.action_low)
        return self.action_low + half * (np.clip(controls, -1.0, 1.0) + 1.0)

    def action(self, control: NDArray[Any]) -> Any:
        """Return one action as the environment takes it: an array of float32, or a whole number."""
        action = self.actions(control)
        return int(action) if self.n_actions else action.astype(np.float32)


def system_of(
    env: Any,
    *,
    reward: Reward | None = None,
    terminated: Reward | None = None,
    angles: ArrayLike = (),
) -> System:
    """Return what a Gymnasium environment and its user tell of a system."""
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
    for name, function in (("reward", reward), ("terminated", terminated)):
        if function is not None and not callable(function):
            raise TypeError(
                f"{name} must be a function of (obs, action, next_obs), got {_checks.shown(function)}"
            )
    chosen = tuple(
        _checks.index(angle, "angle", len(low)) for angle in np.atleast_1d(np.asarray(angles, int)).tolist()
    )
    spec = getattr(env, "spec", None)
    steps = spec.max_episode_steps if spec is not None else None
    count, first = (int(actions.n), int(actions.start)) if numbered else (0, 0)
    return System(low, high, action_low, action_high, count, first, chosen, reward, terminated, steps)


def is_continuous(env: Any) -> bool:
    """Return whether an environment has real observations and actions that continuous models can plan for."""
    space, actions = getattr(env, "observation_space", None), getattr(env, "action_space", None)
    real = isinstance(space, gymnasium.spaces.Box) and np.dtype(space.dtype).kind == "f"
    return real and isinstance(actions, (gymnasium.spaces.Box, gymnasium.spaces.Discrete))
