"""Execute the runs that a study needs and the store does not have yet.

Cells advance independently: a :class:`RunQueue` hands the runs of each cell's next batch to a pool of processes (or to
a cluster) and commits each run as it comes back. Whatever is killed, the same command continues from what was
committed. If a worker dies, the runs it may have had are done again one at a time; one whose process dies three times
while it is alone is recorded as failed.

**Time limit.** A configuration keeps a limit of L seconds per step if its mean processor time per step, of planning and
learning, compiling excluded, is at most L. A run is stopped as soon as it cannot keep the limit any more, when it has
used L for each of its T steps; or earlier, if after a tenth of them, and 20 at least, the mean is above 2 L. It is then
recorded as over the limit. A single step is never interrupted. In the evaluation of what tuning has chosen, L is twice
the environment's limit.
"""

from __future__ import annotations

import os
import platform
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numba
import numpy as np

import bamdp
from bamdp.agent import Agent
from bamdp.lab.choosing import CellSchedule
from bamdp.lab.store import Store
from bamdp.lab.study import Study
from bamdp.lab.units import FAILED, FINISHED, OVER_LIMIT, TUNE, RunRecord, Unit, canonical_json, encode_trace
from bamdp.processes import Pool, Progress, WorkerDied, new_pool, stream
from bamdp.runs import play, warm_up
from bamdp.seeding import seeds
from bamdp.settings import cached_world
from bamdp.simulation import Step

MAX_DEATHS = 3  # of a run's process, the run being alone, after which it is recorded as failed
MIN_STEPS_TO_STOP = 20  # before a run can be stopped for its mean time,
MIN_SHARE_TO_STOP = 0.1  # and this share of its steps: the first ones, with little known, take longest
STOP_FACTOR = 2.0  # times the limit
HOPELESS_FACTOR = 100.0  # times the limit: a run is not begun if its steps are expected to take longer

Count = Callable[[int], object]


def run_study(
    study: Study,
    store: Store,
    *,
    jobs: int = 1,
    pool: Pool | None = None,
    steps: Count = lambda n: None,
    more: Count = lambda n: None,
    retry_failed: bool = False,
) -> None:
    """Execute what is missing, on ``jobs`` processes or on the given pool.

    Parameters
    ----------
    steps, more
        Are called with the number of steps just done, and with the number of steps that have become known to be needed.
        (A given pool reports its steps itself.)
    retry_failed
        Repeat runs that have failed or were stopped.
    """
    if retry_failed:
        store.forget_failed(unit.id for unit in study.units())
    with nullcontext(pool) if pool is not None else new_pool(jobs, steps) as workers:
        queue = RunQueue(study, store, more, steps)
        if jobs > 1:
            queue.warm_up()
        with closing(stream(workers, execute_unit, queue.take)) as results:
            for unit, outcome in results:
                queue.finish(unit, outcome)


class RunQueue:
    """The runs to execute, in the order of the study; each cell advances when its last batch is stored.

    If a worker dies, all runs in work are lost, and nobody knows which of them was the cause. So they are
    done again one at a time, and a death counts against a run only if it was alone.
    """

    def __init__(self, study: Study, store: Store, more: Count, steps: Count) -> None:
        self.store, self.more, self.steps = store, more, steps
        self.schedules = [CellSchedule(study, cell, store) for cell in study.cells]
        self.n_missing: Counter[int] = Counter()  # schedule: how many runs of its batch are not stored yet
        self.waiting: dict[str, set[int]] = {}  # run: numbers of the schedules that wait for it
        self.needed: dict[str, Unit] = {}  # the same runs, each under the widest limit of those who wait
        self.queue: deque[str] = deque()
        self.suspects: deque[str] = deque()  # were in work when a process died
        self.in_work: dict[str, bool] = {}  # run: whether another has been in work at the same time
        self.deaths: Counter[str] = Counter()
        for number in range(len(self.schedules)):
            self._advance(number)

    def take(self) -> Unit | None:
        """Return the next run; None if there is none now. What another process has done meanwhile is skipped."""
        if self.in_work and (self.suspects or any(run in self.deaths for run in self.in_work)):
            return None
        while queue := self.suspects or self.queue:
            unit = self.needed[queue.popleft()]
            if self.store.missing([unit]):
                self.in_work[unit.id] = False
                if len(self.in_work) > 1:
                    self.in_work = dict.fromkeys(self.in_work, True)
                return unit
            self.steps(unit.setting.steps)
            self._mark_stored(unit.id)
        return None

    def finish(self, unit: Unit, outcome: RunRecord | Exception) -> None:
        """Store the outcome of a run, or put the run back into the queue."""
        accompanied = self.in_work.pop(unit.id)
        if isinstance(outcome, WorkerDied):
            self.deaths[unit.id] += not accompanied
            if self.deaths[unit.id] < MAX_DEATHS:
                self.suspects.append(unit.id)
                return
            error = f"the process that ran it died {MAX_DEATHS} times (killed, or out of memory)"
            outcome = _record(unit, FAILED, error=error)
        if isinstance(outcome, Exception):
            raise outcome
        self.store.commit(outcome)
        if outcome.status == OVER_LIMIT and unit.limit < self.needed[unit.id].limit:
            self.queue.appendleft(unit.id)  # it is also needed under a wider limit
            self.more(unit.setting.steps)
            return
        self._mark_stored(unit.id)

    def warm_up(self) -> None:
        """Compile what each planner needs in this process, so that workers find it on disk."""
        units = {type(u.setting.planner): u for u in self.needed.values() if hopeless_seconds(u) is None}
        for unit in units.values():
            with suppress(Exception):  # the run will meet the same error and record it
                warm_up(unit.setting)

    def _advance(self, number: int) -> None:
        """Let a schedule go on to the next batch of which some runs are missing."""
        for unit in (missing := self.schedules[number].replay()):
            self.waiting.setdefault(unit.id, set()).add(number)
            if unit.id not in self.needed:
                self.queue.append(unit.id)
                self.more(unit.setting.steps)
            if unit.id not in self.needed or unit.limit > self.needed[unit.id].limit:
                self.needed[unit.id] = unit
        self.n_missing[number] = len(missing)

    def _mark_stored(self, run: str) -> None:
        del self.needed[run]
        self.deaths.pop(run, None)
        for number in self.waiting.pop(run):
            self.n_missing[number] -= 1
            if not self.n_missing[number]:
                self._advance(number)


def hopeless_seconds(unit: Unit) -> float | None:
    """Return about how long a step would take, if that is so far over the limit that a run cannot keep to it.

    One decision may take longer than a lifetime, and cannot be stopped as a run is that takes too long.
    """
    setting = unit.setting
    world = cached_world(setting.env)
    seconds = setting.planner.cost(world.n_states, world.n_actions, setting.first_discount).seconds
    seconds /= getattr(setting.planner, "replan_every", 1)
    return seconds if seconds > HOPELESS_FACTOR * unit.limit else None


def execute_unit(unit: Unit, tick: Progress) -> RunRecord:
    """Run a unit and return its record; an error of the planner is an outcome, too."""
    seconds = hopeless_seconds(unit)
    if seconds is not None:
        tick(unit.setting.steps)
        words = f"over the limit of {unit.limit:g} s/step: not begun, about {seconds:.2g} s/step"
        return _record(unit, OVER_LIMIT, error=words)
    watch = _TimeLimit(unit.limit, unit.setting.steps)

    try:
        reproducible = warm_up(unit.setting)
        streams = seeds(unit.setting.seed, unit.replicate, tuning=unit.phase == TUNE)
        run = play(unit.setting, *streams, callbacks=[watch])
    except Exception as error:
        notes = getattr(error, "__notes__", ())  # how far it came
        line = " ".join(" ".join([f"{type(error).__name__}: {error}", *notes]).split())
        return _record(unit, FAILED, error=line)
    finally:
        tick(unit.setting.steps)  # all of them, even if it was stopped
    returns = run.episode_returns
    measured: dict[str, Any] = {
        "steps": len(run.rewards),
        "total": run.total_reward,
        "ms_per_step": run.ms_per_step,
        "cpu_seconds": run.seconds,
        "episodes": len(returns),
        "mean_return": float(returns.mean()) if len(returns) else None,
        "success": run.success,
        "reproducible": reproducible,
    }
    if watch.exceeded:
        words = (
            f"over the limit of {unit.limit:g} s/step: stopped after {len(run.rewards)} of {unit.setting.steps} steps "
            f"at {run.ms_per_step / 1e3:.3g} s/step"
        )
        return _record(unit, OVER_LIMIT, error=words, **measured)
    return _record(unit, FINISHED, trace=encode_trace(run), **measured)


def _record(unit: Unit, status: str, **values: Any) -> RunRecord:
    """Return the record of a run on this machine, with this version."""
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    values |= {"machine": machine_facts(), "version": bamdp.__version__, "finished": finished}
    return RunRecord(unit.id, unit.facts, unit.phase, unit.replicate, status, unit.limit, **values)


class _TimeLimit:
    """A callback that ends a run which is over its time limit."""

    def __init__(self, limit: float, steps: int) -> None:
        self.limit, self.steps = limit, steps
        self.first_stop = max(MIN_STEPS_TO_STOP, MIN_SHARE_TO_STOP * steps)
        self.seconds = 0.0
        self.exceeded = False

    def __call__(self, agent: Agent, env: Any, step: Step) -> bool:
        if step.t == 0:  # it may have loaded code; it is not in ms_per_step either
            return True
        self.seconds += step.seconds
        used_up = self.seconds > self.limit * self.steps
        far_over = step.t >= self.first_stop and self.seconds > STOP_FACTOR * self.limit * step.t
        self.exceeded = (used_up or far_over) and step.t + 1 < self.steps
        return not self.exceeded


@lru_cache(maxsize=1)
def machine_facts() -> str:
    """Return a description of the machine that this process runs on, as JSON."""
    processor = platform.processor()
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    facts = {"processor": processor, "cores": os.cpu_count(), "system": platform.platform()}
    versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
    return canonical_json(facts | versions)
