"""Playing a vector of environments: each part is a stream of experience of its own into one belief.

The parts take turns within a step of the vector: all act, the vector steps, then what each has seen is learned. When a
part resets depends on the vector (its ``autoreset_mode``): in the step after the end, in which the part's action is
ignored and nothing is learned but the start; in the same step, with the true last observation in ``info``; or when told
to. In no case is the first observation of an episode taken for a successor of the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from bamdp._kernels.random import Seed
from bamdp.agent import Agent, Callback, Interaction, Run, Step
from bamdp.gym import spaces
from bamdp.gym.world import GymWorld, gymnasium_seed


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
        types = (None, np.int64, np.int64, float, None, bool, bool, float)
        columns = zip(zip(*self.steps) if self.steps else [()] * len(types), types)
        states, actions, rewards, terminated, truncated, seconds = (
            np.array(column, dtype) for column, dtype in columns if dtype is not None
        )
        return Run(states, actions, rewards, terminated, seconds, truncated)


def play_vector(
    agent: Agent, world: GymWorld, steps: int, seed: Seed, callbacks: Iterable[Callback] = ()
) -> tuple[Run, ...]:
    """Play until ``steps`` steps were taken in all parts together; return a run for each part."""
    env, listeners = world.env, tuple(callbacks)
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    parts = [PartInteraction(agent, world) for _ in range(env.num_envs)]
    observations, infos = env.reset(seed=gymnasium_seed(seed))
    for i, first in enumerate(_split(env, observations)):
        parts[i].begin(first, _part_info(infos, i))
    done = 0
    while done < steps:
        # all parts act, and the vector steps
        actions = [0 if part.resets_itself else part.act() for part in parts]
        *results, infos = env.step(_join(env, world, actions))
        resets = np.zeros(len(parts), bool)
        # each part learns what it has seen, and begins again where its episode is over
        outcomes = zip(_split(env, results[0]), *results[1:])
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
            for i, first in enumerate(_split(env, observations)):
                if resets[i]:
                    parts[i].begin(first, _part_info(infos, i))
    return tuple(part.run() for part in parts)


def _split(env: Any, observations: Any) -> list[Any]:
    """Return the observations of the parts, one by one."""
    return list(iterate(env.observation_space, observations))


def _join(env: Any, world: GymWorld, actions: list[int]) -> Any:
    """Return the actions of all parts as the vector takes them."""
    space = env.single_action_space
    items = [spaces.form_element(world.actions, action) for action in actions]
    empty: Any = create_empty_array(space, len(items))
    return concatenate(space, items, empty)


def _part_info(infos: dict[str, Any], i: int) -> dict[str, NDArray[Any]]:
    """Return the info dictionary of one part, with its action mask if it has one."""
    has_mask = infos.get("_action_mask")
    return {"action_mask": infos["action_mask"][i]} if has_mask is not None and has_mask[i] else {}
