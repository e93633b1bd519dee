"""An agent that speaks in a Gymnasium environment's own observations and actions.

In a vector of environments each part is a stream of experience of its own into one belief. The parts take turns within
a step of the vector: all act, the vector steps, then what each has seen is learned. When a part resets depends on the
vector (its ``autoreset_mode``): in the step after the end, in which the part's action is ignored and nothing is learned
but the start; in the same step, with the true last observation in ``info``; or when told to. In no case is the first
observation of an episode taken for a successor of the last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks, _files
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.gym import spaces
from bamdp.gym.env import longest_episode
from bamdp.gym.world import DEFAULT_HORIZON, GymWorld, from_gym, gymnasium_seed, single_spaces
from bamdp.planners.base import Planner
from bamdp.seeding import Seed
from bamdp.simulation import Callback, Interaction, Run, Step, simulate


class GymAgent:
    """An agent for a Gymnasium environment: it speaks in the environment's own observations and actions.

    Made by :meth:`for_env`. ``agent`` is the :class:`~bamdp.Agent` inside, ``world`` says how things are numbered.

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
        env: gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any] | str,
        planner: Planner | str,
        prior: Prior | str | None = None,
        *,
        rewards: RewardModel | ArrayLike | str = "hierarchical",
        discount: float | str | None = None,
        objective: str = "episode",
        max_states: int | None = None,
        observation: Callable[[Any], Any] | None = None,
        action_mask: bool = True,
        seed: Seed = None,
    ) -> GymAgent:
        """Make an agent that has learned nothing yet.

        Parameters
        ----------
        env
            The environment, wrapped or not, or its id; or a vector of environments: each of its parts is a stream of
            its own into the one belief.
        planner
            The algorithm's hyper-parameters; or text, such as ``"dss-pi:n_steps=30"``.
        prior
            What is believed about transitions, or text; by default the planner's ``default_prior``.
        rewards
            A reward model, or text; by default ``HierarchicalNormal()``. (Known rewards are possible: their states are
            the numbers of the observations, and the end.)
        discount
            What the agent plans for, as in :meth:`bamdp.Agent.for_env`; by default the planner's ``default_discount``.
        objective
            What an end is worth: ``"episode"``, nothing; ``"lifetime"``, what the next episode is worth.
        max_states
            Number observations as they appear, up to so many: for spaces that are large, or not finite but hashable.
        observation
            A function that every observation goes through first, to make it discrete.
        action_mask
            Whether to believe ``info["action_mask"]``, where the environment gives one.
        seed
            The seed of the agent's random stream.
        """
        if isinstance(env, str):
            env = from_gym(env.removeprefix("gym:")).env
        world = GymWorld(env, max_states=max_states, observation=observation, action_mask=action_mask)
        agent = Agent.for_env(
            world,
            planner,
            prior=prior,
            rewards=rewards,
            discount=discount,
            objective=objective,
            seed=seed,
        )
        return cls(agent, world)

    def __repr__(self) -> str:
        return f"<GymAgent {self.agent!r} in {self.world!r}>"

    def begin(self, observation: Any, info: dict[str, Any] | None = None) -> None:
        """Take note that an episode begins: what ``env.reset()`` has returned."""
        state = self.world.number(observation)
        self.agent.begin(state)
        self._allow(state, info)

    def act(self, observation: Any) -> Any:
        """Return the agent's action as an element of the environment's action space."""
        return self.world.element(self.agent.act(self.world.number(observation)))

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

        If it was ``truncated``, and has not ``terminated``, learn it all the same and say :meth:`begin` afterwards.
        """
        state = self.world.number(observation)
        number = spaces.number_of(self.world.actions, action)
        after = self.world.end if terminated else self.world.number(next_observation)
        self.agent.observe(state, number, _checks.real(reward, "reward"), after, bool(terminated))
        if not terminated:
            self._allow(after, info)

    def _allow(self, state: int, info: dict[str, Any] | None) -> None:
        mask = self.world.mask(state, info)
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
        """Play and learn, for so many steps or so many episodes, whichever is over first.

        Parameters
        ----------
        steps, episodes
            The length of the run. By default 1000 steps; for ``episodes`` alone up to 1000 steps each, or the
            environment's limit.
        seed
            The seed of the environment's random stream.
        progress
            True for a progress bar on standard error, or a function called with the number of steps just done.
        callbacks
            Called as ``callback(agent, world, step)`` after each step, as by :func:`bamdp.simulate`; returning False
            ends the run there.
        """
        if self.is_vector:
            raise ValueError(
                "a vector of environments is played with play_vector, which returns a run for each part"
            )
        steps, listeners = self._limits(steps, episodes)
        listeners += callbacks
        return simulate(self.agent, self.world, steps, seed=seed, progress=progress, callbacks=listeners)

    def play_vector(
        self,
        *,
        steps: int | None = None,
        episodes: int | None = None,
        seed: Seed = None,
        callbacks: Iterable[Callback] = (),
    ) -> tuple[Run, ...]:
        """Play in a vector of environments; steps and episodes of all parts count. Return a run for each part."""
        if not self.is_vector:
            raise ValueError("this is no vector of environments; use play")
        steps, listeners = self._limits(steps, episodes)
        return play_vector(self.agent, self.world, steps, seed, [*listeners, *callbacks])

    @property
    def is_vector(self) -> bool:
        """Whether the environment is a vector of environments."""
        return isinstance(self.world.env, gymnasium.vector.VectorEnv)

    def _limits(self, steps: int | None, episodes: int | None) -> tuple[int, list[Any]]:
        """Return the largest number of steps, and callbacks that end the run before."""
        if steps is not None:
            _checks.integer(steps, "steps")
        if episodes is None:
            return DEFAULT_HORIZON if steps is None else steps, []
        _checks.integer(episodes, "episodes")
        longest = longest_episode(self.world.env) or DEFAULT_HORIZON
        return episodes * longest if steps is None else steps, [_stop_after(episodes)]

    def move_to(self, env: Any) -> None:
        """Go on in another environment with the same spaces."""
        observations, actions = single_spaces(env)
        if spaces.digits_of(actions) != self.world.actions:
            raise ValueError(f"the agent was made for other actions than {actions}")
        digits = self.world.numbering.digits
        if digits is not None and spaces.digits_of(observations) != digits:
            raise ValueError(f"the agent was made for other observations than {observations}")
        self.world.env = env

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one ``.npz`` file."""
        content = {"agent": self.agent.content(), "world": self.world.content()}
        _files.write(path, "a Gymnasium agent", content)

    @staticmethod
    def load(
        path: str | os.PathLike[str], env: Any, *, observation: Callable[[Any], Any] | None = None
    ) -> GymAgent:
        """Read an agent that :meth:`save` wrote, for an environment with the same spaces.

        The function ``observation`` is not in the file: give it again.
        """

        def make(content: dict[str, Any]) -> GymAgent:
            return GymAgent(Agent.from_content(content["agent"]), GymWorld.from_content(content["world"]))

        player: GymAgent = _files.read(path, "a Gymnasium agent", make)
        if player.world.reworked is not None and player.world.reworked != (observation is not None):
            raise ValueError(
                "the agent was made with a function for observations; give it again, as observation=..."
                if player.world.reworked
                else "the agent was made without a function for observations; leave observation= out"
            )
        player.world.function = observation
        player.move_to(env)
        return player


def _stop_after(episodes: int) -> Callable[[Agent, Any, Step], bool]:
    """Return a callback that ends a run after so many episodes."""
    left = episodes

    def listen(agent: Agent, env: Any, step: Step) -> bool:
        nonlocal left
        left -= step.terminated or step.truncated
        return left > 0

    return listen


class PartInteraction(Interaction):
    """The agent in one part of a vector of environments, with the steps taken there."""

    def __init__(self, agent: Agent, world: GymWorld) -> None:
        super().__init__(agent)
        self.world = world
        self.resets_itself = False  # in the step to come
        self.steps: list[Step] = []

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Begin an episode with what a reset of the part has returned."""
        state = self.world.number(observation)
        self.begin_at(state, self.world.mask(state, info))

    def learn(self, action: int, observation: Any, reward: Any, terminated: Any, truncated: Any) -> None:
        """Learn from what a step of the part has returned, and record it."""
        after = self.world.end if terminated else self.world.number(observation)
        self.steps.append(self.observe(action, after, float(reward), bool(terminated), bool(truncated)))

    def run(self) -> Run:
        """Return the steps of this part as a run."""
        dtypes = (None, np.int64, np.int64, float, None, bool, bool, float)
        columns = zip(*self.steps) if self.steps else [()] * len(dtypes)
        _, states, actions, rewards, _, terminated, truncated, seconds = map(np.array, columns, dtypes)
        return Run(states, actions, rewards, terminated, seconds, truncated)


def play_vector(
    agent: Agent, world: GymWorld, steps: int, seed: Seed, callbacks: Iterable[Callback] = ()
) -> tuple[Run, ...]:
    """Play until ``steps`` steps were taken in all parts together; return a run for each part."""
    env, listeners = world.env, tuple(callbacks)
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    parts = [PartInteraction(agent, world) for _ in range(env.num_envs)]
    observations, infos = env.reset(seed=gymnasium_seed(seed))
    for i, first in enumerate(iterate(env.observation_space, observations)):
        parts[i].begin(first, _part_info(infos, i))
    done = 0
    while done < steps:
        # all parts act, and the vector steps
        actions = [0 if part.resets_itself else part.act() for part in parts]
        *results, infos = env.step(_join(env, world, actions))
        resets = np.zeros(len(parts), bool)
        # each part learns what it has seen, and begins again where its episode is over
        outcomes = zip(iterate(env.observation_space, results[0]), *results[1:])
        for i, (observation, reward, terminated, truncated) in enumerate(outcomes):
            part, info = parts[i], _part_info(infos, i)
            if part.resets_itself:
                part.resets_itself = False
                part.begin(observation, info)
                continue
            over = bool(terminated or truncated)
            same_step = over and mode is AutoresetMode.SAME_STEP
            last = infos["final_obs"][i] if same_step else observation
            part.learn(actions[i], last, reward, terminated, truncated)
            if not over:
                part.allow(world.mask(part.state, info))
            elif same_step:
                part.begin(observation, info)
            else:
                part.resets_itself = mode is AutoresetMode.NEXT_STEP
                resets[i] = True
            step = part.steps[-1]._replace(t=done)
            done += 1
            if any([listener(agent, world, step) is False for listener in listeners]):
                done = steps
        if mode is AutoresetMode.DISABLED and resets.any() and done < steps:
            observations, infos = env.reset(options={"reset_mask": resets})
            for i, first in enumerate(iterate(env.observation_space, observations)):
                if resets[i]:
                    parts[i].begin(first, _part_info(infos, i))
    return tuple(part.run() for part in parts)


def _join(env: Any, world: GymWorld, actions: list[int]) -> Any:
    """Return the actions of all parts as the vector takes them."""
    space = env.single_action_space
    items = [world.element(action) for action in actions]
    empty: Any = create_empty_array(space, len(items))
    return concatenate(space, items, empty)


def _part_info(infos: dict[str, Any], i: int) -> dict[str, NDArray[Any]]:
    """Return the info dictionary of one part, with its action mask if it has one."""
    has_mask = infos.get("_action_mask")
    return {"action_mask": infos["action_mask"][i]} if has_mask is not None and has_mask[i] else {}
