"""bamdp's environments as Gymnasium environments, such as ``bamdp/Grid5-v0``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.registry import list_envs, make_env


class GymEnv(gymnasium.Env[Any, Any]):
    """A bamdp environment with Gymnasium's interface.

    Observations and actions are ``Discrete``. If some actions do not exist in a state, ``info["action_mask"]`` marks
    the existing ones. Episodes are truncated after ``episode_steps``, by default the horizon used in the literature.

    Parameters
    ----------
    env
        An `Environment`, or a name for `bamdp.make_env`.
    render_mode
        ``"rgb_array"`` for images.
    episode_steps
        The number of steps after which episodes are truncated, by default the environment's horizon.
    **parameters
        Parameters for `bamdp.make_env`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        env: Environment | str,
        render_mode: str | None = None,
        episode_steps: int | None = None,
        **parameters: Any,
    ) -> None:
        self.world = make_env(env, **parameters) if isinstance(env, str) else env
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(self.world.n_states)
        self.action_space = gymnasium.spaces.Discrete(self.world.n_actions)
        steps = self.world.horizon if episode_steps is None else episode_steps
        self.episode_steps = _checks.integer(steps, "episode_steps")
        self._steps = 0  # in this episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode and return its first state and the info dictionary."""
        super().reset(seed=seed)
        self._steps = 0
        return self.world.reset(seed=seed), self._info()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action and return (observation, reward, terminated, truncated, info), as in Gymnasium."""
        state, reward, terminated = self.world.step(np.asarray(action).item())
        self._steps += 1
        return state, reward, terminated, self._steps >= self.episode_steps, self._info()

    def render(self) -> Any:
        """Return an image of the current state, or None without a ``render_mode``."""
        return None if self.render_mode is None else self.world.render()

    def _info(self) -> dict[str, Any]:
        mask = self.world.mdp.action_mask
        return {} if mask.all() else {"action_mask": mask[self.world.state].astype(np.int8)}


IDS = {f"bamdp/{info.name.title().replace('_', '')}-v0": info.name for info in list_envs()}
for made in IDS.keys() - gymnasium.registry.keys():
    gymnasium.register(made, entry_point="bamdp.gym.env:GymEnv", kwargs={"env": IDS[made]})
