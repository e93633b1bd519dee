"""Adapter for Gymnasium environments with continuous observations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.continuous.agent import DEFAULT_PLANNER
from bamdp.continuous.system import is_continuous, system_of
from bamdp.continuous.tasks import known
from bamdp.envs.environment import World

DEFAULT_HORIZON = 1000  # steps per run if episodes are not truncated


class ContinuousWorld(World):
    """A Gymnasium environment with ``Box`` observations and ``Box`` or discrete actions.

    States and actions are the environment's own observations and actions, without integer indices.

    Examples
    --------
    >>> import gymnasium
    >>> ContinuousWorld(gymnasium.make("Pendulum-v1"))
    ContinuousWorld('Pendulum-v1', 3 coordinates, 1 action in a box)
    """

    n_states = n_actions = 0  # no integer indices
    usual_planner = DEFAULT_PLANNER

    def __init__(self, env: Any, name: str | None = None) -> None:
        self.system = system_of(env)
        self.env = env
        spec = getattr(env, "spec", None)
        self.name = str(name or (spec.id if spec is not None else type(env).__name__))
        self.horizon = self.system.steps or DEFAULT_HORIZON

    def __repr__(self) -> str:
        n, actions = self.system.n_controls, "actions" if self.system.n_controls > 1 else "action"
        kind = "numbered" if self.system.n_actions else "in a box"
        return f"ContinuousWorld({self.name!r}, {len(self.system.box_low)} coordinates, {n} {actions} {kind})"

    def check_agent(self, agent: Any) -> None:
        """Raise an error if the agent was created for different observations or actions."""
        systems = [thing.system for thing in (agent, self) if hasattr(thing, "system")]
        sizes = {(len(one.box_low), one.n_controls, one.n_actions) for one in systems}
        if len(systems) < 2 or len(sizes) > 1:
            raise ValueError(f"{agent!r} was made for other observations or actions than those of {self!r}")

    def records(self, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return empty arrays of ``steps`` observations and actions."""
        numbered, m = self.system.n_actions, len(self.system.action_low)
        actions = np.zeros(steps, np.int64) if numbered else np.zeros((steps, m), np.float32)
        return np.zeros((steps, len(self.system.box_low))), actions

    def reset(self, *, seed: Any = None) -> Any:
        """Begin an episode and return its first observation."""
        if isinstance(seed, np.random.SeedSequence):
            seed = int(seed.generate_state(1)[0])
        self.truncated = False
        observation, _ = self.env.reset(seed=seed)
        return np.array(observation, float).ravel()

    def step(self, action: Any) -> Any:
        """Take an action; return (observation, reward, terminated)."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        self.truncated = bool(truncated)
        return np.array(observation, float).ravel(), _checks.real(reward, "reward"), bool(terminated)

    def facts(self, rewards: Any) -> dict[str, Any]:
        """Return an agent's prior knowledge; ``rewards`` is ``"known"``, ``"learned"`` or a function."""
        if callable(rewards):
            return {"reward": rewards}
        name = _checks.one_of(
            rewards, "rewards of a system with continuous observations", ("known", "learned")
        )
        return known(self.env) if name == "known" else {}


def as_continuous(env: Any, name: str | None = None, **arguments: Any) -> ContinuousWorld | None:
    """Return the adapter for an environment with continuous observations that are not discretised, else None."""
    numbered = any(value is not None for key, value in arguments.items() if key != "action_mask")
    return None if numbered or not is_continuous(env) else ContinuousWorld(env, name)
