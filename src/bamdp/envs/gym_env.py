"""Our environments as Gymnasium environments: ``bamdp/Grid5-v0`` and so on."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.registry import list_envs, make_env

NAMESPACE, VERSION = "bamdp", 0


class GymEnv(gymnasium.Env[Any, Any]):
    """An environment of ours behind Gymnasium's interface.

    Observations and actions are numbers, ``Discrete``. Where not every action exists, ``info["action_mask"]`` tells
    which do. ``options={"state": s}`` begins an episode in a state of choice. Episodes of continuing worlds are
    cut off (truncated) after the horizon of the literature.

    Parameters
    ----------
    env
        One of ours, or the name that `bamdp.make_env` makes it by.
    render_mode
        ``"ansi"``, text, or ``"rgb_array"``, an image.
    **parameters
        Of `bamdp.make_env`.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, env: Environment | str, render_mode: str | None = None, **parameters: Any) -> None:
        if render_mode is not None:
            _checks.one_of(render_mode, "render mode", self.metadata["render_modes"])
        self.world = make_env(env, **parameters) if isinstance(env, str) else env
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(self.world.n_states)
        self.action_space = gymnasium.spaces.Discrete(self.world.n_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        state = self.world.reset(seed=seed)
        if options and "state" in options:
            state = self.world.place(options["state"])
        return state, self._info()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Do an action."""
        state, reward, terminated = self.world.step(int(action))
        return state, reward, terminated, False, self._info()

    def render(self) -> Any:
        """As text or image, by ``render_mode``."""
        if self.render_mode is None:
            return None
        return self.world.render("ansi" if self.render_mode == "ansi" else "rgb")

    def _info(self) -> dict[str, Any]:
        mask = self.world.mdp.action_mask
        return {} if mask.all() else {"action_mask": mask[self.world.state].astype(np.int8)}


def gym_id(name: str) -> str:
    """The id under which an environment is registered.

    Examples
    --------
    >>> gym_id("double_loop")
    'bamdp/DoubleLoop-v0'
    """
    return f"{NAMESPACE}/{''.join(part.capitalize() for part in name.split('_'))}-v{VERSION}"


def register_all() -> list[str]:
    """Register every environment that `make_env` knows by name; returns the ids. Twice does no harm."""
    ids = []
    for info in list_envs():
        ids.append(gym_id(info.name))
        if ids[-1] not in gymnasium.registry:
            gymnasium.register(
                ids[-1],
                entry_point="bamdp.envs.gym_env:GymEnv",
                kwargs={"env": info.name},
                max_episode_steps=make_env(info.name).horizon,
            )
    return ids
