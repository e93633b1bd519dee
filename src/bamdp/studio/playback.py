"""A run that can be played, stepped, rewound and jumped about in, and the stage on which one or two of them stand.

Time t is the number of steps done. The run is that of :func:`bamdp.runs.run_one` with the same setting and replicate.
Going back restores the nearest copy of the agent at or before the step, and acts again from there: planners are
deterministic given their random stream, and where a time budget makes them not so, the recorded actions are repeated.
The environment needs no copies: it is replayed from its seed and the actions, which takes a microsecond per step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent, Step, WorldInteraction
from bamdp.envs.picture import draw_world
from bamdp.runs import new_agent, seeds
from bamdp.settings import FieldError, Setting, in_field
from bamdp.studio.view import Appearance, Watcher, expectations, watched_world
from bamdp.studio.why import Decision

COPY_SPACING = 16  # steps between two copies of the agent, to begin with
MAX_COPIES = 64
MAX_COPY_BYTES = 256_000_000  # of all copies together, about
SLOW_SECONDS = 0.2  # of planning, after which a copy is made in any case


class Playback(WorldInteraction):
    """One agent in one environment, at any step of its run.

    Attributes
    ----------
    steps : list of Step
        All steps that were ever done: after going back, those ahead too.
    visits : array [S, A]
        How often each action was taken in each state until t.
    looks : Appearance
        How the world looks.

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
        env = watched_world(setting.env)
        self.looks = Appearance(env)
        self._env_seed, agent_seed = seeds(setting.seed, _checks.integer(replicate, "replicate", low=0))
        super().__init__(new_agent(setting, env, agent_seed), env, self._env_seed)
        self.steps: list[Step] = []
        self.visits: NDArray[np.int64] = np.zeros((env.n_states, env.n_actions), np.int64)
        self._copies: dict[int, Agent] = {0: self.agent.copy()}
        self._spacing = COPY_SPACING
        self._since_copy = 0.0

    @property
    def end(self) -> int:
        """The number of steps of the whole run."""
        return self.setting.steps

    @property
    def total_reward(self) -> float:
        """The sum of the rewards until now."""
        return math.fsum(step.reward for step in self.steps[: self.t])

    @property
    def last(self) -> Step | None:
        """The step that led here, None at the beginning."""
        return self.steps[self.t - 1] if self.t else None

    def advance(self, steps: int = 1, seconds: float = math.inf) -> int:
        """Go on by ``steps``, but not beyond the end nor, once a step is done, for longer than ``seconds``.

        Returns the number of steps that were done.
        """
        begin, before = time.perf_counter(), self.t
        for _ in range(min(steps, self.end - self.t)):
            self._record_step()
            if time.perf_counter() - begin >= seconds:
                break
        return self.t - before

    def seek(self, t: int) -> bool:
        """Go to step ``t``, or to the last recorded step if ``t`` lies beyond it; return whether ``t`` was reached."""
        t = _checks.integer(t, "step", low=0, high=self.end)
        while not self.approach(t):
            pass
        return self.t == t

    def approach(self, t: int, seconds: float = math.inf) -> bool:
        """Go towards a recorded step for at most ``seconds``; return whether the step, or the last one, is reached."""
        goal = min(t, len(self.steps))
        if goal < self.t:
            self._restore(max(at for at in self._copies if at <= goal))
        self.advance(goal - self.t, seconds)
        return self.t == goal

    def _record_step(self) -> None:
        """Take one step: the next of the record where there is one, else a new one, which is recorded."""
        begin = time.perf_counter()
        is_new = self.t == len(self.steps)
        step = self.step(None if is_new else self.steps[self.t].action)
        self._since_copy += time.perf_counter() - begin
        if is_new:
            self.steps.append(step)
        self.visits[step.state, step.action] += 1
        self.proceed()
        if self.t not in self._copies and (self.t % self._spacing == 0 or self._since_copy > SLOW_SECONDS):
            self._keep_copy()

    def _keep_copy(self) -> None:
        """Keep a copy of the agent; where the copies become too many or too large, drop every other one."""
        self._copies[self.t] = self.agent.copy()
        self._since_copy = 0.0
        size = sum(array.nbytes for array in _arrays((self.agent.belief.arrays, self.agent.memory)))
        if len(self._copies) > max(2, min(MAX_COPIES, MAX_COPY_BYTES // max(size, 1))):
            self._spacing *= 2
            for t in sorted(self._copies)[1:-1:2]:  # never the first
                del self._copies[t]

    def _restore(self, t: int) -> None:
        """Go back to the copy of the agent at step ``t``, and replay the environment until there."""
        self.agent = self._copies[t].copy()
        self.state = self.env.reset(seed=self._env_seed)
        self.visits[:] = 0
        for step in self.steps[:t]:
            self.visits[step.state, step.action] += 1
            self.env.step(step.action)
            self.state = self.env.reset() if step.terminated or step.truncated else step.next_state
        self.t = t
        self._since_copy = 0.0


def _arrays(value: Any) -> Iterator[NDArray[Any]]:
    """Yield all arrays in nested NamedTuples and dataclasses."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif hasattr(value, "__dict__"):
        for part in vars(value).values():
            yield from _arrays(part)


class Stage:
    """One or two runs in lock-step, and the decisions that are looked at."""

    def __init__(self, settings: list[Setting]) -> None:
        self.runs = [Playback(setting) for setting in settings]
        self.watchers = [Watcher(run) for run in self.runs]
        self.decisions: dict[int, Decision] = {}

    def worlds(self) -> list[dict[str, Any]]:
        """Return what does not change, of each run."""
        worlds = [watcher.world for watcher in self.watchers]
        return [{**world, "scene": draw_world(world).data()} for world in worlds]

    def frames(self) -> list[dict[str, Any]]:
        """Return the present step of each run."""
        return [watcher.frame() for watcher in self.watchers]

    def advance(self, steps: int, seconds: float) -> dict[str, Any]:
        """Go on in lock-step, until ``steps`` are done or the time is up; return the frames."""
        self.decisions.clear()
        begin = time.perf_counter()
        for _ in range(steps):
            least = min(run.t for run in self.runs)  # after a pause on the way back, one may be behind
            moved = [run.advance() for run in self.runs if run.t == least]
            if not all(moved) or time.perf_counter() - begin >= seconds:
                break
        return self._seen()

    def approach(self, t: int, seconds: float) -> dict[str, Any]:
        """Go towards a recorded step; return the frames and whether it is reached."""
        self.decisions.clear()
        there = [run.approach(t, seconds / len(self.runs)) for run in self.runs]
        return {**self._seen(), "there": all(there)}

    def _seen(self) -> dict[str, Any]:
        return {"frames": self.frames(), "at_end": self.runs[0].t == self.runs[0].end}

    def explain(self, lane: int) -> dict[str, Any]:
        """Return why the next action is chosen, of one run."""
        run = self._run(lane)
        if run.t == run.end:
            return {"t": run.t, "over": True}
        self.decisions[lane] = Decision(run)
        return self.decisions[lane].data()

    def node(self, lane: int, t: int, node: int) -> dict[str, Any]:
        """Return the details of a node of the tree that was last explained."""
        decision = self.decisions.get(lane)
        if decision is None or decision.t != t or decision.tree is None:
            raise FieldError("node", "this tree is no longer there: the run has moved on")
        with in_field("node"):
            return decision.detail(node)

    def state(self, lane: int, state: int) -> dict[str, Any]:
        """Return what is expected in any state."""
        run = self._run(lane)
        with in_field("state"):
            _checks.index(state, "state", run.env.n_states)
        return {"expects": expectations(run, state)}

    def _run(self, lane: int) -> Playback:
        with in_field("lane"):
            return self.runs[_checks.index(lane, "lane", len(self.runs))]
