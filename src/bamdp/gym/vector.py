"""Playing a vector of environments: each part is a stream of its own into one belief.

The parts take turns within a step of the vector: all act, the vector steps, then what each has seen is learned. When a
part resets depends on the vector (its ``autoreset_mode``): in the step after the end, in which the part's action is
ignored and nothing is learned but the start; in the same step, with the true last observation in ``info``; or when told
to. In no case is the first observation of an episode taken for a successor of the last.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from bamdp._kernels.random import Seed
from bamdp.agent import Agent, Callback, Run, Step
from bamdp.envs import spaces
from bamdp.envs.gym_world import GymWorld, whole_seed


class Stream:
    """The steps of one part, in order."""

    def __init__(self) -> None:
        self.state = 0
        self.resting = False  # the part will reset itself in the step to come
        self.rows: list[tuple[Any, ...]] = []

    def run(self) -> Run:
        """As a run of its own."""
        kinds = (np.int64, np.int64, float, bool, float, bool)
        columns = list(zip(*self.rows)) or [()] * len(kinds)
        return Run(*(np.array(column, kind) for column, kind in zip(columns, kinds)))


def play_vector(
    agent: Agent, world: GymWorld, steps: int, seed: Seed, callbacks: Iterable[Callback] = ()
) -> tuple[Run, ...]:
    """Play until so many steps were taken, all parts together; returns a run for each part."""
    env, listeners = world.env, tuple(callbacks)
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    streams = [Stream() for _ in range(env.num_envs)]
    observations, infos = env.reset(seed=whole_seed(seed))
    for i, first in enumerate(_parts(env, observations)):
        _begin(agent, world, streams[i], first, _info(infos, i))
    done = 0
    while done < steps:
        begun = time.thread_time()
        actions = [0 if stream.resting else agent.act(stream.state) for stream in streams]
        planning = (time.thread_time() - begun) / len(streams)
        *found, infos = env.step(_together(env, world, actions))
        resets = np.zeros(len(streams), bool)
        for i, (observation, reward, terminated, truncated) in enumerate(
            zip(_parts(env, found[0]), *found[1:])
        ):
            stream, info = streams[i], _info(infos, i)
            if stream.resting:
                stream.resting = False
                _begin(agent, world, stream, observation, info)
                continue
            over = bool(terminated or truncated)
            last = observation
            if over and mode is AutoresetMode.SAME_STEP:
                last = infos["final_obs"][i]
            begun = time.thread_time()
            state, action = stream.state, actions[i]
            after = world.end if terminated else world.number(last)
            agent.observe(state, action, float(reward), after, bool(terminated))
            seconds = planning + time.thread_time() - begun
            cut = bool(truncated) and not terminated
            stream.rows.append((state, action, float(reward), bool(terminated), seconds, cut))
            done += 1
            stream.state = after
            if not over:
                _allow(agent, world, after, info)
            elif mode is AutoresetMode.SAME_STEP:
                _begin(agent, world, stream, observation, info)
            else:
                stream.resting = mode is AutoresetMode.NEXT_STEP
                resets[i] = True
            step = Step(done - 1, state, action, float(reward), after, bool(terminated), cut, seconds)
            if any([listener(agent, world, step) is False for listener in listeners]):
                done = steps
        if mode is AutoresetMode.DISABLED and resets.any() and done < steps:
            observations, infos = env.reset(options={"reset_mask": resets})
            for i, first in enumerate(_parts(env, observations)):
                if resets[i]:
                    _begin(agent, world, streams[i], first, _info(infos, i))
    return tuple(stream.run() for stream in streams)


def _parts(env: Any, observations: Any) -> list[Any]:
    """The observations of the parts, one by one."""
    return list(iterate(env.observation_space, observations))


def _together(env: Any, world: GymWorld, actions: list[int]) -> Any:
    """The actions of all parts as the vector wants them."""
    space = env.single_action_space
    items = [spaces.element(world.actions, action) for action in actions]
    empty: Any = create_empty_array(space, len(items))
    return concatenate(space, items, empty)


def _info(infos: dict[str, Any], i: int) -> dict[str, NDArray[Any]]:
    """What ``infos`` tells of one part's actions."""
    told = infos.get("_action_mask")
    return {"action_mask": infos["action_mask"][i]} if told is not None and told[i] else {}


def _begin(agent: Agent, world: GymWorld, stream: Stream, observation: Any, info: dict[str, Any]) -> None:
    stream.state = world.number(observation)
    agent.begin(stream.state)
    _allow(agent, world, stream.state, info)


def _allow(agent: Agent, world: GymWorld, state: int, info: dict[str, Any]) -> None:
    mask = world.mask(state, info)
    if mask is not None:
        agent.allow(state, mask)
