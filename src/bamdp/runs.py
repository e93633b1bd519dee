"""Many replicates of one setting, on one or several processes, with the same results on any number of them.

Replicate r of seed q has two random streams, spawned from ``SeedSequence(q)`` under keys of their own: (r, 0) the
environment's and (r, 1) the agent's. So replicate r is the same however many others there are and whoever runs
it, and two planners under one seed meet the same environments.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.agent import Agent, Run, simulate
from bamdp.beliefs import Prior, RewardModel
from bamdp.envs import Environment, make_env
from bamdp.planners import Planner

ENVIRONMENT, AGENT = range(2)  # spawn keys
TELL_EVERY = 0.05  # seconds between two reports of progress

Progress = Callable[[int], Any]  # is called with the number of steps just done


@dataclass(frozen=True)
class Setting:
    """Everything that determines a replicate but its number."""

    env: str  # as make_env reads it
    planner: Planner
    prior: Prior
    rewards: RewardModel
    discount: float
    steps: int
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.discount(self.discount)
        _checks.integer(self.steps, "steps")
        _checks.integer(self.seed, "seed", low=0)

    def agent(self, env: Environment, seed: np.random.SeedSequence | int = 0) -> Agent:
        """A newborn agent for the setting's environment."""
        return Agent(
            self.planner,
            prior=self.prior,
            rewards=self.rewards,
            n_states=env.n_states,
            n_actions=env.n_actions,
            discount=self.discount,
            terminal=env.mdp.terminal,
            action_mask=env.mdp.action_mask,
            seed=seed,
        )


@dataclass(frozen=True)
class Batch:
    """The replicates of a setting, in order."""

    setting: Setting
    runs: tuple[Run, ...]
    reproducible: bool  # False when a time budget decided how much was computed
    seconds: float  # from start to end

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
    def ms_per_step(self) -> float:
        """Processor milliseconds a step, planning and learning; compiling is not in it."""
        return float(np.mean([run.ms_per_step for run in self.runs]))


def seeds(seed: int, replicate: int) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """The environment's and the agent's."""
    environment = np.random.SeedSequence(seed, spawn_key=(replicate, ENVIRONMENT))
    return environment, np.random.SeedSequence(seed, spawn_key=(replicate, AGENT))


def run_one(setting: Setting, replicate: int, progress: Progress | None = None) -> Run:
    """One replicate."""
    warm_up(setting)
    env = make_env(setting.env)
    environment_seed, agent_seed = seeds(setting.seed, replicate)
    agent = setting.agent(env, agent_seed)
    if progress is None:
        return simulate(agent, env, setting.steps, seed=environment_seed)
    with _seldom(progress) as tick:
        return simulate(agent, env, setting.steps, seed=environment_seed, progress=tick)


def run_many(setting: Setting, runs: int, jobs: int = 1, progress: Progress | None = None) -> Batch:
    """Replicates 0 .. runs-1, on ``jobs`` processes."""
    runs = _checks.integer(runs, "runs")
    jobs = min(_checks.integer(jobs, "jobs"), runs)
    reproducible = warm_up(setting)  # here first: what it compiles, the workers find on disk
    begin = time.perf_counter()
    if jobs == 1:
        done = [run_one(setting, replicate, progress) for replicate in range(runs)]
    else:
        done = _run_parallel(setting, runs, jobs, progress or (lambda n: None))
    return Batch(setting, tuple(done), reproducible, time.perf_counter() - begin)


_warm: dict[str, bool] = {}


def warm_up(setting: Setting) -> bool:
    """Compile what the setting needs, or load it, once a process; returns whether its plans are reproducible."""
    key = repr((setting.env, setting.planner, setting.prior, type(setting.rewards), setting.discount))
    if key not in _warm:
        env = make_env(setting.env)
        agent = setting.agent(env)
        plan = agent.plan(env.reset(seed=0))
        simulate(agent, env, steps=2, seed=0)
        _warm[key] = plan.reproducible
    return _warm[key]


def _run_parallel(setting: Setting, runs: int, jobs: int, progress: Progress) -> list[Run]:
    from joblib import Parallel, delayed

    done: dict[int, Run] = {}
    with TemporaryDirectory(prefix="bamdp-") as folder:
        path = Path(folder, "steps")
        counts = np.memmap(path, np.int64, "w+", shape=(runs,))  # steps that each replicate has done
        with _watch(counts, progress):
            parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1)
            with _children_without_ctrl_c():
                results = parallel(delayed(_work)(setting, r, runs, path) for r in range(runs))
            for replicate, run in results:
                done[replicate] = run
        del counts
    return [done[replicate] for replicate in range(runs)]


def _work(setting: Setting, replicate: int, runs: int, path: Path) -> tuple[int, Run]:
    counts = np.memmap(path, np.int64, "r+", shape=(runs,))

    def tell(n: int) -> None:
        counts[replicate] += n

    return replicate, run_one(setting, replicate, tell)


@contextmanager
def _children_without_ctrl_c() -> Iterator[None]:
    """Processes begun inside ignore Ctrl-C, which is ours to handle: we end them, and they have no last words."""
    if threading.current_thread() is not threading.main_thread():  # only there can it be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@contextmanager
def _watch(counts: NDArray[np.int64], progress: Progress) -> Iterator[None]:
    """Tell ``progress`` of what workers write into ``counts``."""
    stop, told = threading.Event(), 0

    def look() -> None:
        nonlocal told
        new = int(counts.sum()) - told
        told += new
        if new:
            progress(new)

    def loop() -> None:
        while not stop.wait(TELL_EVERY):
            look()

    watcher = threading.Thread(target=loop, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
        look()


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
