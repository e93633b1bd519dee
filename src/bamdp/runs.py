"""Many replicates of one setting, on one or several processes, with the same results on any number of them.

Replicate r of seed q has two random streams, spawned from ``SeedSequence(q)`` under keys of their own: (r, 0) the
environment's and (r, 1) the agent's. So replicate r is the same however many others there are and whoever runs
it, and two planners under one seed meet the same environments.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent, Callback, Run, simulate
from bamdp.beliefs import Prior, RewardModel
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs import World, make_world
from bamdp.planners import Planner
from bamdp.processes import TELL_EVERY, Progress, new_pool, stream

ENVIRONMENT, AGENT = range(2)  # spawn keys


@dataclass(frozen=True)
class Setting:
    """Everything that determines a replicate but its number."""

    env: str  # as make_world reads it
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float
    steps: int
    seed: int = 0
    objective: str = "episode"

    def __post_init__(self) -> None:
        _checks.discount(self.discount)
        _checks.integer(self.steps, "steps")
        _checks.integer(self.seed, "seed", low=0)
        _checks.one_of(self.objective, "objective", OBJECTIVES)

    def agent(self, env: World, seed: np.random.SeedSequence | int = 0) -> Agent:
        """A newborn agent for the setting's environment."""
        return Agent(
            self.planner,
            prior=self.prior,
            rewards=self.rewards,
            n_states=env.n_states,
            n_actions=env.n_actions,
            discount=self.discount,
            objective=self.objective,
            seed=seed,
            **env.knowledge,
        )


@dataclass(frozen=True)
class Batch:
    """The replicates of a setting, in order."""

    setting: Setting
    runs: tuple[Run, ...]
    reproducible: bool  # False when a time budget decided how much was computed
    seconds: float = field(compare=False)  # from start to end

    @property
    def totals(self) -> NDArray[np.float64]:
        """Total reward of each replicate."""
        return np.array([run.total_reward for run in self.runs])

    @property
    def mean(self) -> float:
        """Mean total reward."""
        return float(self.totals.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for a single run."""
        n = len(self.runs)
        return float(self.totals.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """Returns of all episodes that were completed, of one run after the other."""
        return np.concatenate([run.episode_returns for run in self.runs])

    @property
    def success(self) -> float | None:
        """Mean share of successes of the runs that have one (:attr:`Run.success`)."""
        shares = [run.success for run in self.runs if run.success is not None]
        return float(np.mean(shares)) if shares else None

    @property
    def ms_per_step(self) -> float:
        """Processor milliseconds a step, planning and learning; compiling is not in it."""
        return float(np.mean([run.ms_per_step for run in self.runs]))


def seeds(seed: int, replicate: int) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """The environment's and the agent's."""
    environment = np.random.SeedSequence(seed, spawn_key=(replicate, ENVIRONMENT))
    return environment, np.random.SeedSequence(seed, spawn_key=(replicate, AGENT))


def play(
    setting: Setting,
    environment_seed: np.random.SeedSequence,
    agent_seed: np.random.SeedSequence,
    progress: Progress | None = None,
    callbacks: Iterable[Callback] = (),
) -> Run:
    """One run with the two streams given; what it needs is compiled before it begins."""
    warm_up(setting)
    env = make_world(setting.env)
    agent = setting.agent(env, agent_seed)
    if progress is None:
        return simulate(agent, env, setting.steps, seed=environment_seed, callbacks=callbacks)
    with _seldom(progress) as tick:
        return simulate(agent, env, setting.steps, seed=environment_seed, progress=tick, callbacks=callbacks)


def run_one(setting: Setting, replicate: int, progress: Progress | None = None) -> Run:
    """One replicate."""
    return play(setting, *seeds(setting.seed, replicate), progress)


def run_many(setting: Setting, runs: int, jobs: int = 1, progress: Progress | None = None) -> Batch:
    """Replicates 0 .. runs-1, on ``jobs`` processes."""
    runs = _checks.integer(runs, "runs")
    jobs = min(_checks.integer(jobs, "jobs"), runs)
    reproducible = warm_up(setting)  # here first: what it compiles, the workers find on disk
    begin = time.perf_counter()
    done: dict[int, Run] = {}
    numbers = iter(range(runs))
    with new_pool(jobs, progress) as pool:
        results = stream(pool, partial(run_one, setting), lambda: next(numbers, None))
        with closing(results):
            for replicate, run in results:
                if isinstance(run, Exception):
                    raise run
                done[replicate] = run
    ordered = tuple(done[replicate] for replicate in range(runs))
    return Batch(setting, ordered, reproducible, time.perf_counter() - begin)


_warm: dict[str, bool] = {}


def warm_up(setting: Setting) -> bool:
    """Compile what the setting needs, or load it, once a process; returns whether its plans are reproducible."""
    key = repr(
        (
            setting.env,
            setting.planner,
            setting.prior,
            type(setting.rewards),
            setting.discount,
            setting.objective,
        )
    )
    if key not in _warm:
        env = make_world(setting.env)
        agent = setting.agent(env)
        plan = agent.plan(env.reset(seed=0))
        simulate(agent, env, steps=2, seed=0)
        _warm[key] = plan.reproducible
    return _warm[key]


@contextmanager
def _seldom(progress: Progress) -> Iterator[Progress]:
    """A progress function that passes sums on a few times a second, since steps may take microseconds."""
    waiting, last = 0, time.perf_counter()

    def tick(n: int) -> None:
        nonlocal waiting, last
        waiting += n
        now = time.perf_counter()
        if now - last >= TELL_EVERY:
            progress(waiting)
            waiting, last = 0, now

    yield tick
    progress(waiting)
