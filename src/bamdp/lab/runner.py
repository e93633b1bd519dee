"""Execute the runs that a study needs and the store does not have yet.

The driver takes claimed runs from the :class:`RunQueue`, hands them to a pool of processes (or to a cluster) and
commits each as it comes back. Cells advance independently, and whatever is killed, the same command continues from
what was committed:

- If a worker dies, the runs in work are done again, one at a time; one whose process has died three times while it was
  alone is recorded as failed.
- If the driver dies, its claims die with it.
- A run that another driver works on is waited for.
- A run that is damaged in the store is done again, also if tuning has decided by it already: its rewards come out the
  same, and the decision, which has a checksum of its own, stands.

**Time limit.** A configuration keeps a limit of L seconds per step if its mean processor time per step, of planning and
learning, compiling excluded, is at most L. A run is stopped as soon as it cannot keep the limit any more, when it has
used L for each of its T steps; or earlier, if after a tenth of them, and 20 at least, the mean is above 2 L. It is then
recorded as over the limit. A single step is never interrupted. In the evaluation of what tuning has chosen, L is twice
the environment's limit.
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext, suppress
from functools import lru_cache
from typing import Any

import numpy as np

import bamdp
from bamdp.agent import Agent
from bamdp.envs.environment import Environment
from bamdp.lab.choosing import CellSchedule, damage_lines, damaged_units, planned_runs, study_units
from bamdp.lab.results import TUNE
from bamdp.lab.store import Damage, Store
from bamdp.lab.study import Study
from bamdp.lab.units import (
    FAILED,
    FINISHED,
    OVER_LIMIT,
    RunOutcome,
    Unit,
    canonical_json,
    encode_trace,
)
from bamdp.processes import Pool, Progress, WorkerDied, new_pool, stream
from bamdp.runs import play, warm_up
from bamdp.seeding import seeds
from bamdp.settings import Setting, cached_world
from bamdp.simulation import Step

MAX_DEATHS = 3  # of a run's process, the run being alone, after which it is recorded as failed
MIN_STEPS_TO_STOP = 20  # before a run can be stopped for its mean time,
MIN_SHARE_TO_STOP = 0.1  # and this share of its steps: the first ones, in an unknown world, take longest
STOP_FACTOR = 2.0  # times the limit
HOPELESS_FACTOR = 100.0  # times the limit: a run is not begun if its steps are expected to take longer
POLL_SECONDS = 0.3  # between two looks at what other drivers have done

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
    tell: Callable[[str], object] = lambda line: None,
) -> None:
    """Execute what is missing, on ``jobs`` processes or on the given pool.

    Parameters
    ----------
    steps, more
        Are called with the number of steps just done, and with the number of steps that have become known to be needed.
        (A given pool reports its steps itself.)
    retry_failed
        Repeat runs that have failed or were stopped, and decide again where a decision was based on them.
    tell
        Is called with a line for whatever was damaged in the store and is made good.
    """
    again = mend_store(study, store, tell)
    if retry_failed:
        forget_failed(study, store)
    with store.claims.driving(), nullcontext(pool) if pool is not None else new_pool(jobs, steps) as workers:
        queue = RunQueue(study, store, more, steps, again)
        while queue.wait():
            if jobs > 1:
                queue.warm_up()
            with closing(stream(workers, execute_unit, queue.take)) as results:
                for unit, outcome in results:
                    queue.finish(unit, outcome)


def mend_store(study: Study, store: Store, tell: Callable[[str], object]) -> list[Unit]:
    """Mend what is damaged in the store, as far as the study knows it, and return the runs that must be done again."""
    damage = store.check()
    if damage == Damage():
        return []
    store.repair(damage)
    lost = damaged_units(study, damage.runs)
    for line in damage_lines(lost, "done again"):
        tell(line)
    if damage.decisions:
        what = f"{damage.decisions} decisions of tuning"
        tell(f"damaged in the store: {what}; they are made again from the runs")
    if damage.settings:
        facts = {unit.setting_id: unit.facts for _, unit in study_units(study)}
        with store.transaction():
            for name in damage.settings & facts.keys():
                store.insert_setting(name, facts[name])
    return [unit for _, unit in lost]


def forget_failed(study: Study, store: Store) -> None:
    """Delete all runs of a study that are not finished from the store, and the decisions of their cells."""
    for cell in study.cells:
        records = store.records(unit.id for planned in planned_runs(cell) for unit in planned.units)
        bad = [record.id for record in records.values() if record.status != FINISHED]
        if bad:
            store.forget(bad)
            store.undecide(CellSchedule(study, cell, store).key)


class RunQueue:
    """The runs to claim and execute, in the order of the study; each cell advances when its last batch is stored.

    If a worker dies, all runs in work are lost, and nobody knows which of them was the cause. So they
    are done again one at a time, and a death counts against a run only if it was alone.

    Parameters
    ----------
    study, store
        The study, and the store of its runs. The store's claims must be driving.
    more, steps
        Are called with the number of steps that have become known to be needed, and of those that other drivers have
        done.
    again
        Runs that are to be done in any case.
    """

    def __init__(
        self, study: Study, store: Store, more: Count, steps: Count, again: Iterable[Unit] = ()
    ) -> None:
        self.store, self.more, self.steps = store, more, steps
        self.schedules = [CellSchedule(study, cell, store) for cell in study.cells]
        self.batches: dict[int, set[str]] = {}  # schedule: the runs of its present batch
        self.n_missing: Counter[int] = Counter()  # schedule: how many of them are not stored yet
        self.waiting: dict[str, set[int]] = {}  # run: numbers of the schedules that wait for it
        self.needed: dict[str, Unit] = {}  # the same runs, each under the widest limit of those who wait
        self.queue: deque[str] = deque()
        self.elsewhere: dict[str, None] = {}  # claimed by other drivers, in order
        self.in_work: dict[str, bool] = {}  # run: whether another has been in work at the same time
        self.suspects: deque[str] = deque()  # were in work, as others were, when a worker died
        self.on_trial = False  # a suspect is in work, alone
        self.looked_at = 0.0  # when other drivers' work was looked at
        self.deaths: Counter[str] = Counter()
        self.compiled: set[object] = set()
        for number in range(len(self.schedules)):
            self._advance(number)
        for unit in again:
            if unit.id not in self.needed:
                self.needed[unit.id] = unit
                self.waiting[unit.id] = set()
                self.queue.append(unit.id)
                self.more(unit.setting.steps)

    def wait(self) -> bool:
        """Return whether there is a run to take; wait as long as only other drivers can go on."""
        while not self.queue and not self.suspects and self.elsewhere:
            time.sleep(POLL_SECONDS)
            self._look_elsewhere()
        return bool(self.queue or self.suspects)

    def take(self) -> Unit | None:
        """Claim and return the next run; None if there is none now."""
        self._look_elsewhere()
        if self.in_work and (self.suspects or self.on_trial):
            return None
        queue = self.suspects or self.queue
        while queue:
            run = queue.popleft()
            if self.store.claims.take(run):
                self.on_trial = queue is self.suspects
                self.in_work[run] = False
                if len(self.in_work) > 1:
                    self.in_work = dict.fromkeys(self.in_work, True)
                return self.needed[run]
            self.elsewhere[run] = None
        return None

    def finish(self, unit: Unit, outcome: RunOutcome | Exception) -> None:
        """Store the outcome of a run, or put the run back into the queue."""
        accompanied = self.in_work.pop(unit.id)
        self.on_trial = False
        if isinstance(outcome, WorkerDied):
            self.deaths[unit.id] += not accompanied
            if self.deaths[unit.id] < MAX_DEATHS:
                self.suspects.append(unit.id)
                return
            error = f"the process that ran it died {MAX_DEATHS} times (killed, or out of memory)"
            outcome = _outcome(unit, FAILED, error=error)
        if isinstance(outcome, Exception):
            raise outcome
        if outcome.status == OVER_LIMIT and unit.limit < self.needed[unit.id].limit:
            self.queue.appendleft(unit.id)  # meanwhile it is needed under a wider limit
            self.more(unit.setting.steps)
            return
        self.store.commit(unit, outcome)
        self._mark_stored(unit.id)

    def warm_up(self) -> None:
        """Compile what is about to be needed in this process, so that workers find it on disk."""
        for unit in (self.needed[run] for run in self.queue):
            setting = unit.setting
            kind = _compilation_key(setting)
            if kind not in self.compiled and hopeless_seconds(unit) is None:
                self.compiled.add(kind)
                with suppress(Exception):  # the run will meet the same error and record it
                    warm_up(setting)

    def _advance(self, number: int) -> None:
        """Let a schedule go on to the next batch of which some runs are missing."""
        self.batches.pop(number, None)
        while (batch := self.schedules[number].advance()) is not None:
            for run in self.store.forget_stopped(batch):
                self._wait_again(run)
            stored = self.store.records(unit.id for unit in batch)
            missing = {unit.id: unit for unit in batch if unit.id not in stored}
            if missing:
                self.batches[number] = {unit.id for unit in batch}
                self._need(number, missing)
                return

    def _need(self, number: int, missing: dict[str, Unit]) -> None:
        """Queue the missing runs of a schedule's batch, unless they are queued already."""
        self.n_missing[number] = len(missing)
        for run, unit in missing.items():
            self.waiting.setdefault(run, set()).add(number)
            if run not in self.needed:
                self.queue.append(run)
                self.more(unit.setting.steps)
            if run not in self.needed or unit.limit > self.needed[run].limit:
                self.needed[run] = unit

    def _wait_again(self, run: str) -> None:
        """Let schedules whose present batch has this run, which was deleted from the store, wait for the new one."""
        for number, batch in self.batches.items():
            if run in batch:
                self.waiting.setdefault(run, set()).add(number)
                self.n_missing[number] += 1

    def _mark_stored(self, run: str) -> None:
        del self.needed[run]
        for number in self.waiting.pop(run):
            self.n_missing[number] -= 1
            if not self.n_missing[number]:
                self._advance(number)

    def _look_elsewhere(self) -> None:
        """Count what other drivers have done; queue what they have given up, or stopped under a tighter limit."""
        if not self.elsewhere or time.monotonic() - self.looked_at < POLL_SECONDS:
            return
        self.looked_at = time.monotonic()
        self.store.forget_stopped(self.needed[run] for run in self.elsewhere)
        stored, claimed = self.store.records(self.elsewhere), self.store.claims.claimed()
        for run in [run for run in self.elsewhere if run in stored or run not in claimed]:
            del self.elsewhere[run]
            if run in stored:
                self.steps(self.needed[run].setting.steps)
                self._mark_stored(run)
            else:
                self.queue.append(run)


def _compilation_key(setting: Setting) -> object:
    """Return a key that is equal for settings which need the same code: names decide, numbers do not."""
    words = [
        str(value) for value in setting.planner.parameters().values() if not isinstance(value, (int, float))
    ]
    return type(setting.planner), *words, repr(setting.prior).partition("(")[0], type(setting.rewards)


def hopeless_seconds(unit: Unit) -> float | None:
    """Return about how long a step would take, if that is so far over the limit that a run cannot keep to it.

    One decision may take longer than a lifetime, and cannot be stopped as a run is that takes too long.
    """
    setting = unit.setting
    world = cached_world(setting.env)
    seconds = setting.planner.cost(world.n_states, world.n_actions, setting.first_discount).seconds
    seconds /= getattr(setting.planner, "replan_every", 1)
    return seconds if seconds > HOPELESS_FACTOR * unit.limit else None


def execute_unit(unit: Unit, tick: Progress) -> RunOutcome:
    """Run a unit and return its outcome; an error of the planner is an outcome, too."""
    seconds = hopeless_seconds(unit)
    if seconds is not None:
        tick(unit.setting.steps)
        words = f"over the limit of {unit.limit:g} s/step: not begun, about {seconds:.2g} s/step"
        return _outcome(unit, OVER_LIMIT, error=words)
    watch = _TimeLimit(unit.limit, unit.setting.steps)
    reported = 0

    def count(n: int) -> None:
        nonlocal reported
        reported += n
        tick(n)

    try:
        reproducible = warm_up(unit.setting)
        streams = seeds(unit.setting.seed, unit.replicate, tuning=unit.phase == TUNE)
        run = play(unit.setting, *streams, count, callbacks=[watch])
    except Exception as error:
        notes = getattr(error, "__notes__", ())  # how far it came
        line = " ".join(" ".join([f"{type(error).__name__}: {error}", *notes]).split())
        return _outcome(unit, FAILED, error=line)
    finally:
        tick(unit.setting.steps - reported)  # steps that will never be taken count as done
    measured: dict[str, Any] = {
        "steps": len(run.rewards),
        "total": run.total_reward,
        "ms_per_step": run.ms_per_step,
        "cpu_seconds": run.seconds,
    }
    if watch.exceeded:
        words = (
            f"over the limit of {unit.limit:g} s/step: stopped after {len(run.rewards)} of {unit.setting.steps} steps "
            f"at {run.ms_per_step / 1e3:.3g} s/step"
        )
        return _outcome(unit, OVER_LIMIT, error=words, **measured)
    trace = encode_trace(run.rewards, run.ends, run.terminated[run.ends])
    return _outcome(unit, FINISHED, trace=trace, reproducible=reproducible, **measured)


def _outcome(unit: Unit, status: str, **facts: Any) -> RunOutcome:
    """Return the outcome of a run on this machine, with this version."""
    machine, version = machine_facts(), bamdp.__version__
    return RunOutcome(status, limit=unit.limit, machine=machine, version=version, **facts)


class _TimeLimit:
    """A callback that ends a run which is over its time limit."""

    def __init__(self, limit: float, steps: int) -> None:
        self.limit, self.steps = limit, steps
        self.first_stop = max(MIN_STEPS_TO_STOP, MIN_SHARE_TO_STOP * steps)
        self.seconds = 0.0
        self.exceeded = False

    def __call__(self, agent: Agent, env: Environment, step: Step) -> bool:
        if step.t == 0:  # it may have loaded code; it is not in ms_per_step either
            return True
        self.seconds += step.seconds
        used_up = self.seconds > self.limit * self.steps
        far_over = step.t >= self.first_stop and self.seconds > STOP_FACTOR * self.limit * step.t
        self.exceeded = (used_up or far_over) and step.t + 1 < self.steps
        return not self.exceeded


@lru_cache(maxsize=1)
def machine_facts() -> str:
    """Return a description of the machine that this process runs on, as canonical JSON."""
    import numba

    return canonical_json(
        {
            "machine": platform.machine(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
        }
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(models, platform.processor())
    except OSError:
        return platform.processor()
