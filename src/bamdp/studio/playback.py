"""A run that can be played, stepped, rewound and jumped about in.

Time t is the number of steps done. The run is that of :func:`bamdp.runs.run_one` with the same setting and replicate,
so what is watched here is what a table counts. Going back restores the nearest copy of the agent at or before the
wanted step, and acts again from there: planners are deterministic given their random stream, and where a time budget
makes them not so, what was done the first time is done again. The environment needs no copies: it is replayed from its
seed and the actions, a microsecond a step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent, Step, begin_episode
from bamdp.envs import make_env
from bamdp.runs import seeds
from bamdp.settings import Setting

SPACING = 16  # steps between two copies of the agent, to begin with
MOST_COPIES = 64
MOST_BYTES = 256_000_000  # that copies may take, about
SLOW = 0.2  # seconds of planning after which a copy is made in any case


class Playback:
    """One agent in one environment, at any time of its life.

    Examples
    --------
    >>> from bamdp import Dirichlet, KnownRewards, ThompsonSampling, make_env
    >>> env = make_env("chain")
    >>> run = Playback(Setting("chain", ThompsonSampling(), Dirichlet(), KnownRewards(env.rewards), 0.95, 100))
    >>> run.advance(30), run.t
    (30, 30)
    >>> run.seek(7), run.t, len(run.steps)
    (True, 7, 30)
    """

    def __init__(self, setting: Setting, replicate: int = 0) -> None:
        self.setting = setting
        self.env = make_env(setting.env)
        self._env_seed, agent_seed = seeds(setting.seed, _checks.integer(replicate, "replicate", low=0))
        self.agent = setting.agent(self.env, agent_seed)
        self.state = begin_episode(self.agent, self.env, self._env_seed)
        self.t = 0
        self.steps: list[Step] = []  # all that was ever done: the future, too, after going back
        self.visits: NDArray[np.int64] = np.zeros(
            (self.env.n_states, self.env.n_actions), np.int64
        )  # until t
        self.planned = math.nan  # seconds that the last step took
        self._copies: dict[int, Agent] = {0: self.agent.copy()}
        self._spacing = SPACING
        self._since_copy = 0.0

    @property
    def end(self) -> int:
        """The last step of the run."""
        return self.setting.steps

    @property
    def total_reward(self) -> float:
        """Of the steps until now."""
        return math.fsum(step.reward for step in self.steps[: self.t])

    @property
    def last(self) -> Step | None:
        """The step that led here."""
        return self.steps[self.t - 1] if self.t else None

    def advance(self, steps: int = 1, seconds: float = math.inf) -> int:
        """Go on by ``steps``, but not after the end nor, once a step is done, for longer than ``seconds``."""
        begin, before = time.perf_counter(), self.t
        for _ in range(min(steps, self.end - self.t)):
            self._step()
            if time.perf_counter() - begin >= seconds:
                break
        return self.t - before

    def seek(self, t: int) -> bool:
        """Go to ``t`` if it is not ahead of what was done already; otherwise to where that ends (False)."""
        t = _checks.integer(t, "step", low=0, high=self.end)
        while not self.approach(t):
            pass
        return self.t == t

    def approach(self, t: int, seconds: float = math.inf) -> bool:
        """Get nearer to a step that was done already, for ``seconds`` at most; True when there is no nearer."""
        goal = min(t, len(self.steps))
        if goal < self.t:
            self._restore(max(at for at in self._copies if at <= goal))
        self.advance(goal - self.t, seconds)
        return self.t == goal

    def _step(self) -> None:
        begin = time.perf_counter()
        action = self.agent.act(self.state)
        if self.t < len(self.steps):
            action = self.steps[self.t].action
        next_state, reward, terminated = self.env.step(action)
        self.agent.observe(self.state, action, reward, next_state, terminated)
        self.planned = time.perf_counter() - begin
        if self.t == len(self.steps):
            self.steps.append(Step(self.t, self.state, action, reward, next_state, terminated))
        self.visits[self.state, action] += 1
        self.state = begin_episode(self.agent, self.env) if terminated else next_state
        self.t += 1
        self._since_copy += self.planned
        if self.t not in self._copies and (self.t % self._spacing == 0 or self._since_copy > SLOW):
            self._keep()

    def _keep(self) -> None:
        self._copies[self.t] = self.agent.copy()
        self._since_copy = 0.0
        size = sum(array.nbytes for array in _arrays((self.agent.belief.arrays, self.agent.memory)))
        if len(self._copies) > max(2, min(MOST_COPIES, MOST_BYTES // max(size, 1))):
            self._spacing *= 2
            for t in sorted(self._copies)[1:-1:2]:  # every other one goes, never the first
                del self._copies[t]

    def _restore(self, t: int) -> None:
        self.agent = self._copies[t].copy()
        self.state = self.env.reset(seed=self._env_seed)
        self.visits[:] = 0
        for step in self.steps[:t]:
            self.visits[step.state, step.action] += 1
            self.env.step(step.action)
            self.state = self.env.reset() if step.terminated else step.next_state
        self.t = t
        self._since_copy = 0.0


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays in nested NamedTuples and dataclasses."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif hasattr(value, "__dict__"):
        for part in vars(value).values():
            yield from _arrays(part)
