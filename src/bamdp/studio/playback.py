"""Choice of a run, its playback (play, step, rewind and jump), and the stage that holds one or two runs.

Time t is the number of completed steps. The run is identical to that of :func:`bamdp.runs.run_one` with the same
setting and replicate. Going back restores the latest copy of the agent at or before the requested step, and replays
from there. Planners are deterministic given their random stream; where a time budget makes them non-deterministic,
the recorded actions are repeated. The environment needs no copies: replaying it from its seed and the actions takes a
microsecond per step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.envs.environment import World
from bamdp.envs.picture import draw_world
from bamdp.envs.registry import make_world
from bamdp.runs import Setting, make_setting, new_agent
from bamdp.seeding import seeds
from bamdp.simulation import Interaction, Step
from bamdp.studio.explain import Decision
from bamdp.studio.view import Watcher, expectations, watched_world

MOST_STEPS = 100_000  # of a watched run
OPENING_SECONDS = 20.0  # for reaching the step to open at


@dataclass(frozen=True)
class Limits:
    """Limits on the size and computation time of watched runs."""

    states: int = 2_500  # of a displayed environment
    seconds: float = 60.0  # for a single decision; a slower process is killed

    def __post_init__(self) -> None:
        _checks.integer(self.states, "max-states")
        _checks.real(self.seconds, "limit", low=0.0, high=1e6, open_low=True)  # poll takes milliseconds

    def check(self, setting: Setting, env: World) -> None:
        """Reject environments too large to display, and planners whose decisions need too much time or memory."""
        if env.n_states > self.states:
            raise ValueError(
                f"{env.name} has {env.n_states} states, and the studio draws up to {self.states}: choose a smaller "
                "one, or start the studio with a larger --max-states"
            )
        cost = setting.planner.cost(env.n_states, env.n_actions, setting.first_discount)
        if cost.seconds > self.seconds:
            raise ValueError(
                f"a decision in {env.n_states} states would take about {cost.seconds:.3g} s, and the studio waits for "
                f"{self.seconds:g} s: lower the planner's parameters, or start the studio with a larger --limit"
            )
        _checks.memory(cost.bytes, "a decision")
        new_agent(setting, env)  # the planner may reject the belief


def make_discrete(spec: str) -> World:
    """Create an environment; environments with continuous observations cannot be shown."""
    env = make_world(spec)
    if env.system is not None:
        raise ValueError(
            f"{env.name} has continuous observations, which cannot be shown; discretise: --bins 8"
        )
    return env


@dataclass(frozen=True)
class Choice:
    """Unvalidated form; :meth:`settings` checks it. None selects the default of the planner or environment."""

    env: str = "grid10"
    planners: tuple[str, ...] = ("dss-pi",)  # one or two, as name:key=value,...
    prior: str | None = None
    rewards: str | None = None
    discount: float | str | None = None
    objective: str = "episode"
    seed: int = 0
    steps: int | None = None
    start: int = 0  # step to open at, for at most OPENING_SECONDS

    def settings(self, limits: Limits) -> list[Setting]:
        """Return one setting per planner after validating the form."""
        if not 1 <= len(self.planners) <= 2:
            raise ValueError(f"choose one planner or two, got {len(self.planners)}")
        env = make_discrete(self.env)
        steps = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        values = {key: getattr(self, key) for key in ("prior", "rewards", "discount", "objective", "seed")}
        made = [make_setting(self.env, name, steps=steps, world=env, **values) for name in self.planners]
        for setting in made:
            limits.check(setting, env)
        return made


# initial form of a new tab: an agent that has already found the goal
FIRST = Choice("grid5", ("dss-pi",), prior="sparse:beta=6", start=600)


# Playback

COPY_SPACING = 16  # initial number of steps between copies of the agent
MAX_COPIES = 64
SLOW_SECONDS = 0.2  # planning time after which a copy is always made


class Playback(Interaction):
    """Agent and environment at any step of a run.

    Attributes
    ----------
    steps : list of Step
        All steps taken so far, including those ahead after going back.
    visits : array [S, A]
        How often each action was taken in each state before t.

    Examples
    --------
    >>> from bamdp import Dirichlet, KnownRewards, ThompsonSampling, make_env
    >>> env = make_env("chain")
    >>> run = Playback(Setting("chain", ThompsonSampling(), Dirichlet(), KnownRewards(env.rewards), 0.95, 100))
    >>> run.seek(30), run.seek(7), len(run.steps)
    (30, 7, 30)
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        env = watched_world(setting.env)
        self._env_seed, agent_seed = seeds(setting.seed, 0)
        super().__init__(new_agent(setting, env, agent_seed), env, self._env_seed)
        self.steps: list[Step] = []
        self.visits: NDArray[np.int64] = np.zeros((env.n_states, env.n_actions), np.int64)
        self._copies: dict[int, Agent] = {0: self.agent.copy()}
        self._spacing = COPY_SPACING
        self._since_copy = 0.0

    @property
    def end(self) -> int:
        """Number of steps in the whole run."""
        return self.setting.steps

    @property
    def total_reward(self) -> float:
        """Sum of the rewards so far."""
        return math.fsum(step.reward for step in self.steps[: self.t])

    def seek(self, t: int) -> int:
        """Move to step ``t`` in either direction, but not past the end; return the step reached."""
        go([self], _checks.integer(t, "step", low=0))
        return self.t

    def rewind(self, t: int) -> None:
        """Restore the latest copy at or before step ``t``, if ``t`` is in the past."""
        if t < self.t:
            self._restore(max(at for at in self._copies if at <= t))

    def advance(self) -> None:
        """Take one step, replaying a recorded step if there is one; otherwise act and record it."""
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
        """Save a copy of the agent, discarding every other copy when there are too many."""
        self._copies[self.t] = self.agent.copy()
        self._since_copy = 0.0
        if len(self._copies) > MAX_COPIES:
            self._spacing *= 2
            for t in sorted(self._copies)[1:-1:2]:  # always keep the first
                del self._copies[t]

    def _restore(self, t: int) -> None:
        """Restore the copy of the agent at step ``t``, and replay the environment up to that step."""
        self.agent = self._copies[t].copy()
        self.state = self.env.reset(seed=self._env_seed)
        self.visits[:] = 0
        for step in self.steps[:t]:
            self.visits[step.state, step.action] += 1
            self.env.step(step.action)
            self.state = self.env.reset() if step.terminated or step.truncated else step.next_state
        self.t = t
        self._since_copy = 0.0


def go(runs: Sequence[Playback], t: int, seconds: float = math.inf) -> None:
    """Bring runs to step ``t`` or their end in lock-step; stop after the first step that exceeds ``seconds``."""
    stop, t = time.perf_counter() + seconds, min(t, runs[0].end)
    for run in runs:
        run.rewind(t)
    while (least := min(run.t for run in runs)) < t:
        for run in runs:
            if run.t == least:
                run.advance()
        if time.perf_counter() >= stop:
            break


class Stage:
    """One or two runs in lock-step, and the decisions being explained."""

    def __init__(self, settings: list[Setting]) -> None:
        self.runs = [Playback(setting) for setting in settings]
        self.watchers = [Watcher(run) for run in self.runs]
        self.decisions: dict[int, Decision] = {}

    def open(self, start: int) -> dict[str, Any]:
        """Move to step ``start``, and return the constant data and first frame of each run."""
        worlds = [{**watcher.world, "scene": draw_world(watcher.world).data()} for watcher in self.watchers]
        for run in self.runs:
            run.agent.copy().plan(run.state)  # compiles everything
        return {"worlds": worlds, **self.go(start, OPENING_SECONDS)}

    def seen(self) -> dict[str, Any]:
        """Return the current frame of each run."""
        frames = [watcher.frame() for watcher in self.watchers]
        return {"frames": frames, "at_end": all(run.t == run.end for run in self.runs)}

    def go(self, t: int, seconds: float) -> dict[str, Any]:
        """Move towards step ``t`` for some seconds, and return the frames."""
        self.decisions.clear()
        go(self.runs, t, seconds)
        return self.seen()

    def explain(self, lane: int) -> dict[str, Any]:
        """Explain the choice of the next action in one run."""
        run = self.runs[lane]
        if run.t == run.end:
            return {"t": run.t, "over": True}
        self.decisions[lane] = Decision(run)
        return self.decisions[lane].data()

    def node(self, lane: int, t: int, node: int) -> dict[str, Any]:
        """Return the details of a node in the most recently explained tree."""
        decision = self.decisions.get(lane)
        if decision is None or decision.t != t or decision.tree is None:
            raise ValueError("this tree is no longer there: the run has moved on")
        return decision.detail(node)

    def state(self, lane: int, state: int) -> dict[str, Any]:
        """Return the agent's expectations in any state."""
        run = self.runs[_checks.index(lane, "lane", len(self.runs))]
        return {"expects": expectations(run, _checks.index(state, "state", run.env.n_states))}
