"""Choose configurations, and execute the runs of a study that are missing from the store.

Cells advance independently. A :class:`RunQueue` sends the runs in each cell's next batch to a process pool or cluster,
and commits each result on arrival. After an interruption, the same command resumes from the committed runs. If a
worker dies, every run that may have been on it is repeated in isolation. A run whose process dies three times in
isolation is recorded as failed.

**Time limit.** A configuration satisfies a limit of L seconds per step if its mean processor time per step is at most
L. This includes planning and learning, but not compilation. A run of T steps is stopped as soon as it can no longer
satisfy the limit, that is, after using L·T seconds. It is stopped earlier if the mean exceeds 2 L once a tenth of its
steps, and at least 20, are complete. Stopped runs are recorded as over the limit. Single steps are never
interrupted. When a tuned configuration is evaluated, L is twice the environment's limit.

**Choosing.** Tuning and evaluation use different random streams. The selected configuration has the highest mean total
reward over its tuning runs or, if all totals are equal (in CartPole, every step pays 1), the highest mean episode
return. A configuration is excluded if one of its runs failed or was stopped, or if its mean processor time per step
exceeds the environment's limit.

- **Grid search**: run each configuration once, so that a failing or slow one costs a single run, and then complete
  the others.
- **Successive halving** (Jamieson & Talwalkar 2016): n configurations compete over R = ⌈log n / log(1/keep)⌉ rounds.
  By the end of round k = 0 .. R−1, each has ⌈runs·keep^(R−1−k)⌉ replicates, including those of earlier rounds. The
  best fraction ``keep`` of the remaining configurations advances.

**Across environments** (``across``), an algorithm uses one choice everywhere. The candidates are configurations with
the same index in every environment. They are ranked by total reward as a fraction of the known model's optimum over
the same steps, averaged over environments. A candidate excluded in one environment is excluded in all.

Every decision is a function of stored runs, so a resumed study makes the same decisions. A :class:`CellSchedule` lists
the missing runs; its caller asks again once they are in the store.
"""

from __future__ import annotations

import math
import os
import platform
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import bamdp
from bamdp.agent import Agent
from bamdp.lab.store import (
    FAILED,
    FINISHED,
    OVER_LIMIT,
    TUNE,
    RunRecord,
    Store,
    Unit,
    canonical_json,
    measurements,
)
from bamdp.lab.study import GRID_SEARCH, Study, StudyCell, Tuning, positive_optimum
from bamdp.processes import Pool, Progress, WorkerDied, stream
from bamdp.runs import cached_world, run_one, warm_up
from bamdp.simulation import Step

MAX_DEATHS = 3  # deaths in isolation before a run is recorded as failed
MIN_STEPS_TO_STOP = 20  # minimum number of steps before a run can be stopped for its mean time
MIN_SHARE_TO_STOP = 0.1  # minimum fraction of its steps; the first steps are the slowest
STOP_FACTOR = 2.0  # times the limit
HOPELESS_FACTOR = 100.0  # times the limit; runs expected to be slower are not started

Count = Callable[[int], object]
Scores = Mapping[int, NDArray[np.float64]]  # configuration number: score of each replicate


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
    """Execute the missing runs on ``jobs`` processes or on the given pool.

    Parameters
    ----------
    steps, more
        Callbacks that receive the number of steps just completed, and the number of steps newly found to be necessary.
        (A given pool reports its own steps.)
    retry_failed
        Repeat runs that failed or were stopped.
    """
    if retry_failed:
        store.forget_failed(unit.id for unit in study.units())
    with nullcontext(pool) if pool is not None else Pool(jobs, steps) as workers:
        queue = RunQueue(study, store, more, steps)
        if jobs > 1:
            queue.warm_up()
        with closing(stream(workers, execute_unit, queue.take)) as results:
            for unit, outcome in results:
                queue.finish(unit, outcome)


@dataclass
class CellSchedule:
    """Batches of runs for one cell, and the resulting choice; each batch starts once the previous one is stored."""

    study: Study
    cell: StudyCell
    store: Store
    chosen: int | None = None  # configuration number
    decided: bool = False  # tuning is complete, with or without a choice
    excluded: dict[int, str] = field(default_factory=dict)  # configuration number: reason

    def __post_init__(self) -> None:
        self._batches = self._generate()
        # cells that share one choice: this cell alone, or its algorithm in every environment
        self.cells = self.study.choosing_together(self.cell)

    def replay(self) -> list[Unit]:
        """Advance as far as the stored runs allow, and return the missing runs of the next batch."""
        for batch in self._batches:
            if missing := self.store.missing(batch):
                return missing
        return []

    def _generate(self) -> Iterator[Sequence[Unit]]:
        numbers: Sequence[int] = range(len(self.cell.configurations))
        if self.cell.tuned and self.cell.tuning is not None:
            yield from self._tune(self.cell.tuning)
            numbers = [] if self.chosen is None else [self.chosen]
        elif len(numbers) == 1:
            self.chosen = 0
        self.decided = True
        units = [unit for number in numbers for unit in self.cell.evaluation_units(number)]
        if units:
            yield units

    def _tune(self, tuning: Tuning) -> Iterator[Sequence[Unit]]:
        left: Sequence[int] = range(len(self.cell.configurations))
        done = 0
        for replicates, survivors in rounds(tuning, len(left)):
            new = range(done, replicates)
            yield [unit for n in left for cell in self.cells for unit in cell.tuning_units(n, new)]
            done = replicates
            means = {n: float(np.mean(scores)) for n, scores in self.judge(left, done).items()}
            # highest mean first; ties go to the lower number
            left = sorted(sorted(means, key=lambda n: (-means[n], n))[:survivors])
        self.chosen = left[0] if left else None

    def judge(self, numbers: Sequence[int], replicates: int) -> Scores:
        """Return the scores of eligible configurations, and record the excluded ones."""
        found = {n: [self._records(cell, n, replicates) for cell in self.cells] for n in numbers}
        for n, by_cell in found.items():
            for cell, records in zip(self.cells, by_cell):
                why = exclusion(records, cell.environment.limit)
                if why:
                    self.excluded[n] = why if len(self.cells) == 1 else f"{cell.environment.label}: {why}"
        kept = {n: by_cell for n, by_cell in found.items() if n not in self.excluded}
        if len(self.cells) == 1:
            return dict(zip(kept, scores([by_cell[0] for by_cell in kept.values()])))
        optima = [positive_optimum(cell.environment.env, cell.environment.steps) for cell in self.cells]
        totals = {n: np.array([[r.total for r in records] for records in kept[n]]) for n in kept}
        return {n: np.mean(values / np.array(optima)[:, None], axis=0) for n, values in totals.items()}

    def _records(self, cell: StudyCell, number: int, replicates: int) -> list[RunRecord]:
        units = cell.tuning_units(number, range(replicates))
        stored = self.store.records(unit.id for unit in units)
        return [stored[unit.id] for unit in units]


def rounds(tuning: Tuning, n: int) -> list[tuple[int, int]]:
    """Return the replicates per configuration by the end of each tuning round, and the number of survivors.

    Examples
    --------
    >>> rounds(Tuning(runs=10), 8)
    [(1, 8), (10, 1)]
    >>> rounds(Tuning(method="halving", runs=9), 9)
    [(3, 3), (9, 1)]
    """
    if tuning.method == GRID_SEARCH:
        return [(1, n), (tuning.runs, 1)]
    count = max(1, math.ceil(round(math.log(n) / -math.log(tuning.keep), 9)))
    listed = []
    for k in range(count):
        n = 1 if k == count - 1 else math.ceil(n * tuning.keep)
        listed.append((math.ceil(round(tuning.runs * tuning.keep ** (count - 1 - k), 9)), n))
    return listed


def scores(groups: Sequence[Sequence[RunRecord]]) -> list[NDArray[np.float64]]:
    """Return the total rewards of the runs in each group, or their mean returns if all totals are equal."""
    totals = {record.total for records in groups for record in records}
    by_return = len(totals) == 1 and all(r.mean_return is not None for records in groups for r in records)
    return [np.array([r.mean_return if by_return else r.total for r in records], float) for records in groups]


def exclusion(records: Sequence[RunRecord], limit: float) -> str:
    """Return the reason for excluding a configuration with these runs, or an empty string."""
    for status, words in ((FAILED, "failed"), (OVER_LIMIT, "went over the limit")):
        bad = [record for record in records if record.status == status]
        if bad:
            return f"{len(bad)} of {len(records)} runs {words} ({bad[0].error})"
    mean = float(np.mean([record.ms_per_step for record in records])) if records else 0.0
    return f"{mean:.4g} ms/step, over the limit of {1e3 * limit:g}" if mean > 1e3 * limit else ""


class RunQueue:
    """Queue of runs in study order; each cell advances when its previous batch is stored.

    If a worker dies, all active runs are lost and the cause is unknown. They are therefore repeated in isolation, and
    a death only counts against a run that was alone.
    """

    def __init__(self, study: Study, store: Store, more: Count, steps: Count) -> None:
        self.store, self.more, self.steps = store, more, steps
        self.schedules = [CellSchedule(study, cell, store) for cell in study.cells]
        self.n_missing: Counter[int] = Counter()  # schedule number: unstored runs in its batch
        self.waiting: dict[str, set[int]] = {}  # run: numbers of the schedules waiting for it
        self.needed: dict[str, Unit] = {}  # the same runs, each with the widest limit requested
        self.queue: deque[str] = deque()
        self.suspects: deque[str] = deque()  # active when a process died
        self.in_work: dict[str, bool] = {}  # run: whether another run was active at the same time
        self.deaths: Counter[str] = Counter()
        for number in range(len(self.schedules)):
            self._advance(number)

    def take(self) -> Unit | None:
        """Return the next run, or None if none is available; runs completed by other processes are skipped."""
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
        """Store the outcome of a run, or return the run to the queue."""
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
            self.queue.appendleft(unit.id)  # also needed with a wider limit
            self.more(unit.setting.steps)
            return
        self._mark_stored(unit.id)

    def warm_up(self) -> None:
        """Compile all planners in this process, so that workers can load the code from disk."""
        units = {type(u.setting.planner): u for u in self.needed.values() if hopeless_seconds(u) is None}
        for unit in units.values():
            with suppress(Exception):  # the run will raise the same error and record it
                warm_up(unit.setting)

    def _advance(self, number: int) -> None:
        """Advance a schedule to its next batch with missing runs."""
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
    """Return the estimated seconds per step if they far exceed the limit, else None.

    Such a run is never started: one decision may take longer than a lifetime and cannot be interrupted.
    """
    setting = unit.setting
    world = cached_world(setting.env)
    seconds = setting.planner.cost(world.n_states, world.n_actions, setting.first_discount).seconds
    seconds /= getattr(setting.planner, "replan_every", 1)
    return seconds if seconds > HOPELESS_FACTOR * unit.limit else None


def execute_unit(unit: Unit, tick: Progress) -> RunRecord:
    """Run a unit and return its record; planner errors are recorded as outcomes."""
    seconds = hopeless_seconds(unit)
    if seconds is not None:
        tick(unit.setting.steps)
        words = f"over the limit of {unit.limit:g} s/step: not begun, about {seconds:.2g} s/step"
        return _record(unit, OVER_LIMIT, error=words)
    watch = _TimeLimit(unit.limit, unit.setting.steps)

    try:
        reproducible = warm_up(unit.setting)
        run = run_one(unit.setting, unit.replicate, tuning=unit.phase == TUNE, callbacks=[watch])
    except Exception as error:
        notes = getattr(error, "__notes__", ())  # progress before the error
        line = " ".join(" ".join([f"{type(error).__name__}: {error}", *notes]).split())
        return _record(unit, FAILED, error=line)
    finally:
        tick(unit.setting.steps)  # count all steps, even if the run was stopped
    measured = measurements(run) | {"reproducible": reproducible}
    if watch.exceeded:
        words = (
            f"over the limit of {unit.limit:g} s/step: stopped after {len(run.rewards)} of {unit.setting.steps} steps "
            f"at {run.ms_per_step / 1e3:.3g} s/step"
        )
        return _record(unit, OVER_LIMIT, error=words, **measured | {"trace": None})
    return _record(unit, FINISHED, **measured)


def _record(unit: Unit, status: str, **values: Any) -> RunRecord:
    """Return the record of a run on this machine and version."""
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    values |= {"machine": machine_facts(), "version": bamdp.__version__, "finished": finished}
    return RunRecord(unit.id, unit.facts, unit.phase, unit.replicate, status, unit.limit, **values)


class _TimeLimit:
    """Callback that stops a run once it exceeds its time limit."""

    def __init__(self, limit: float, steps: int) -> None:
        self.limit, self.steps = limit, steps
        self.first_stop = max(MIN_STEPS_TO_STOP, MIN_SHARE_TO_STOP * steps)
        self.seconds = 0.0
        self.exceeded = False

    def __call__(self, agent: Agent, env: Any, step: Step) -> bool:
        if step.t == 0:  # may include loading of compiled code; also excluded from ms_per_step
            return True
        self.seconds += step.seconds
        used_up = self.seconds > self.limit * self.steps
        far_over = step.t >= self.first_stop and self.seconds > STOP_FACTOR * self.limit * step.t
        self.exceeded = (used_up or far_over) and step.t + 1 < self.steps
        return not self.exceeded


@lru_cache(maxsize=1)
def machine_facts() -> str:
    """Return a JSON description of the machine running this process."""
    processor = platform.processor()
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    facts = {"processor": processor, "cores": os.cpu_count(), "system": platform.platform()}
    versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
    return canonical_json(facts | versions)
