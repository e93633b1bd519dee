"""An agent that uses a Gymnasium environment's own observations and actions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium

from bamdp import _checks, _files
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior
from bamdp.gym.world import DEFAULT_HORIZON, GymWorld, from_gym
from bamdp.planners.base import Planner
from bamdp.seeding import Seed
from bamdp.simulation import Callback, Run, Step, simulate


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
        action_mask: bool = True,
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
        action_mask
            Whether to use ``info["action_mask"]`` if the environment provides it.
        **options
            ``rewards``, ``discount``, ``horizon``, ``objective`` and ``seed``, as in :meth:`bamdp.Agent.for_env`.
            (Known rewards are indexed by observation number, followed by the end state.)
        """
        if isinstance(env, str):
            env = from_gym(env.removeprefix("gym:")).env
        world = GymWorld(env, max_states=max_states, observation=observation, action_mask=action_mask)
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

    def play(
        self,
        *,
        steps: int | None = None,
        episodes: int | None = None,
        seed: Seed = None,
        progress: bool | Callable[[int], None] = False,
        callbacks: Iterable[Callback] = (),
    ) -> Run:
        """Act and learn for a number of steps or episodes, whichever ends first.

        Parameters
        ----------
        steps, episodes
            The length of the run, by default 1000 steps. If only ``episodes`` is given, the run lasts at most
            ``episodes`` times the environment's step limit, or 1000 steps if it has none.
        seed
            Seed of the environment's random stream.
        progress
            True for a progress bar on standard error, or a function called with the number of steps just taken.
        callbacks
            Called as ``callback(agent, world, step)`` after each step, as by :func:`bamdp.simulate`; returning False
            ends the run.
        """
        listeners = list(callbacks)
        if episodes is not None:
            left, env = _checks.integer(episodes, "episodes"), self.world.env
            own = (env.spec and env.spec.max_episode_steps) or getattr(env.unwrapped, "episode_steps", None)
            steps = left * (own or DEFAULT_HORIZON) if steps is None else steps

            def count(agent: Agent, world: Any, step: Step) -> bool:
                nonlocal left
                left -= step.terminated or step.truncated
                return left > 0

            listeners.insert(0, count)
        limit = DEFAULT_HORIZON if steps is None else steps
        return simulate(self.agent, self.world, limit, seed=seed, progress=progress, callbacks=listeners)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the agent to a single ``.npz`` file."""
        numbering = self.world.numbering
        seen = list(numbering.numbers) if numbering.space is None else None
        about = {"seen": seen, "n": numbering.n, "masked": self.world.masked}
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
            world = GymWorld(env, max_states=numbered, observation=observation, action_mask=about["masked"])
            if (world.n_states, world.n_actions) != (agent.belief.n_states, agent.belief.n_actions):
                raise ValueError(
                    f"the agent was made for {agent.belief.n_states} states and {agent.belief.n_actions} actions; "
                    f"{world.name} has {world.n_states} and {world.n_actions}"
                )
            for key in about["seen"] or ():
                world.numbering(key)
            return GymAgent(agent, world)

        return _files.read(path, "a Gymnasium agent", make)
