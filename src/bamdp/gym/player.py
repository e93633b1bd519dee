"""An agent that uses a Gymnasium environment's own observations and actions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import gymnasium

from bamdp import _checks, _files
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior
from bamdp.gym.world import DEFAULT_HORIZON, GymWorld, from_gym
from bamdp.planners.base import Planner
from bamdp.simulation import Run, Step, simulate


class GymAgent:
    """An agent that uses a Gymnasium environment's own observations and actions.

    Create one with :meth:`for_env`. Its attribute ``agent`` is the underlying :class:`~bamdp.Agent`, and ``world``
    numbers observations and actions.

    Examples
    --------
    >>> import gymnasium
    >>> import bamdp
    >>> env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> player = bamdp.GymAgent.for_env(env, bamdp.ThompsonSampling(), objective="lifetime", seed=0)
    >>> run = player.play(episodes=40, seed=0)
    >>> len(run.episode_returns), bool(run.episode_returns[-10:].mean() > 0.5)
    (40, True)
    """

    def __init__(self, agent: Agent, world: GymWorld) -> None:
        self.agent = agent
        self.world = world

    @classmethod
    def for_env(
        cls,
        env: gymnasium.Env[Any, Any] | str,
        planner: Planner | str,
        prior: Prior | str | None = None,
        *,
        max_states: int | None = None,
        observation: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> GymAgent:
        """Create an agent without any experience.

        Parameters
        ----------
        env
            The environment, with or without wrappers, or its id.
        planner, prior
            As in :meth:`bamdp.Agent.for_env`.
        max_states
            Maximum number of distinct observations, numbered in order of appearance: for large or infinite spaces with
            hashable elements.
        observation
            A function applied to every observation first, to make it discrete.
        **options
            ``rewards``, ``discount``, ``horizon``, ``objective`` and ``seed``, as in :meth:`bamdp.Agent.for_env`.
            (Known rewards are indexed by observation number, followed by the end state.)
        """
        if isinstance(env, str):
            env = from_gym(env.removeprefix("gym:")).env
        world = GymWorld(env, max_states=max_states, observation=observation)
        return cls(Agent.for_env(world, planner, prior=prior, **options), world)

    def __repr__(self) -> str:
        return f"<GymAgent {self.agent!r} in {self.world!r}>"

    def begin(self, observation: Any, info: dict[str, Any] | None = None) -> None:
        """Begin an episode with the observation and the info returned by ``env.reset()``."""
        state = self.world.number(observation)
        self.agent.begin(state)
        self._allow(state, info)

    def act(self, observation: Any) -> Any:
        """Return the agent's action as an element of the environment's action space."""
        return self.world.actions[self.agent.act(self.world.number(observation))]

    def observe(
        self,
        observation: Any,
        action: Any,
        reward: float,
        next_observation: Any,
        terminated: bool,
        info: dict[str, Any] | None = None,
    ) -> None:
        """Learn from a step of the environment.

        Also call this for a step that truncated the episode without terminating it, and then call :meth:`begin`.
        """
        world = self.world
        state, number = world.number(observation), world.action_number(action)
        after = world.end if terminated else world.number(next_observation)
        self.agent.observe(state, number, _checks.real(reward, "reward"), after, bool(terminated))
        if not terminated:
            self._allow(after, info)

    def _allow(self, state: int, info: dict[str, Any] | None) -> None:
        mask = self.world.mask(info)
        if mask is not None:
            self.agent.allow(state, mask)

    def play(self, *, steps: int | None = None, episodes: int | None = None, **options: Any) -> Run:
        """Act and learn for a number of steps or episodes, whichever ends first.

        Parameters
        ----------
        steps, episodes
            The length of the run, by default 1000 steps. If only ``episodes`` is given, the run lasts at most
            ``episodes`` times the environment's step limit, or 1000 steps if it has none.
        **options
            ``seed``, ``progress`` and ``callbacks``, as in :func:`bamdp.simulate`.
        """
        if episodes is not None:
            left, env = _checks.integer(episodes, "episodes"), self.world.env
            own = (env.spec and env.spec.max_episode_steps) or getattr(env.unwrapped, "episode_steps", None)
            steps = left * (own or DEFAULT_HORIZON) if steps is None else steps

            def count(agent: Agent, world: Any, step: Step) -> bool:
                nonlocal left
                left -= step.terminated or step.truncated
                return left > 0

            options["callbacks"] = [count, *options.get("callbacks", ())]
        return simulate(self.agent, self.world, DEFAULT_HORIZON if steps is None else steps, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the agent to a single ``.npz`` file."""
        numbering = self.world.numbering
        seen = list(numbering.numbers) if numbering.space is None else None
        about = {"seen": seen, "n": numbering.n}
        _files.write(path, "a Gymnasium agent", {"agent": self.agent.content(), "world": about})

    @staticmethod
    def load(
        path: str | os.PathLike[str], env: Any, *, observation: Callable[[Any], Any] | None = None
    ) -> GymAgent:
        """Load an agent written by :meth:`save`, for an environment with the same spaces.

        The file does not contain the function ``observation``; pass it again.
        """

        def make(content: dict[str, Any]) -> GymAgent:
            agent, about = Agent.from_content(content["agent"]), content["world"]
            numbered = None if about["seen"] is None else about["n"]
            world = GymWorld(env, max_states=numbered, observation=observation)
            sizes = [(one.n_states, one.n_actions) for one in (agent.belief, world)]
            if sizes[0] != sizes[1]:
                raise ValueError(
                    f"the agent knows {sizes[0]} states and actions, {world.name} has {sizes[1]}"
                )
            for key in about["seen"] or ():
                world.numbering(key)
            return GymAgent(agent, world)

        return _files.read(path, "a Gymnasium agent", make)
