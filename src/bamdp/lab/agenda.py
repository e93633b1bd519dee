"""What is to be done next: the courses of all cells, and the runs that they wait for."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

import bamdp
from bamdp.lab.protocol import Course
from bamdp.lab.store import Store
from bamdp.lab.study import Study
from bamdp.lab.units import FAILED, Outcome, Unit, machine_facts
from bamdp.processes import Lost
from bamdp.runs import Setting, warm_up

LIVES = 3  # processes that a run may take with it
POLL = 0.3  # seconds between two looks at what others have done


class Agenda:
    """Runs to claim and to do, in the order of the study; each cell goes on as soon as its last batch is there.

    Parameters
    ----------
    study, store
        What is wanted, and where it is kept. The store's claims must be driving.
    more, steps
        Are called with the number of steps that have become known to be needed, and of those that others have done.
    """

    def __init__(
        self, study: Study, store: Store, more: Callable[[int], object], steps: Callable[[int], object]
    ) -> None:
        self.store, self.more, self.steps = store, more, steps
        self.courses = [Course(study, cell, store) for cell in study.cells]
        self.awaited: dict[str, set[int]] = {}  # run: numbers of the courses that wait for it
        self.open: Counter[int] = Counter()  # course: how many runs it waits for
        self.queue: deque[Unit] = deque()
        self.elsewhere: dict[str, Unit] = {}  # claimed by others
        self.looked = 0.0
        self.deaths: Counter[str] = Counter()
        self.warm: set[object] = set()
        for number in range(len(self.courses)):
            self._advance(number)

    def wait(self) -> bool:
        """Whether there is something for us to do; waits as long as only others can go on."""
        while not self.queue and self.elsewhere:
            time.sleep(POLL)
            self._look_elsewhere()
        return bool(self.queue)

    def take(self) -> Unit | None:
        """The next run, claimed; None if there is none now."""
        self._look_elsewhere()
        while self.queue:
            unit = self.queue.popleft()
            if self.store.claims.take(unit.id):
                return unit
            self.elsewhere[unit.id] = unit
        return None

    def finish(self, unit: Unit, outcome: Outcome | Exception) -> None:
        """Keep what came of a run."""
        if isinstance(outcome, Lost):
            self.deaths[unit.id] += outcome.begun
            if self.deaths[unit.id] < LIVES:
                self.queue.appendleft(unit)
                return
            error = f"the process that ran it died {LIVES} times (killed, or out of memory)"
            outcome = Outcome(
                FAILED, error=error, limit=unit.limit, machine=machine_facts(), version=bamdp.__version__
            )
        if isinstance(outcome, Exception):
            raise outcome
        self.store.commit(unit, outcome)
        self._there(unit.id)

    def warm_up(self) -> None:
        """Compile what is about to be needed in this process, so that workers find it on disk."""
        for unit in self.queue:
            kind = _kind(unit.setting)
            if kind not in self.warm:
                self.warm.add(kind)
                with suppress(Exception):  # the run will meet the same error and record it
                    warm_up(unit.setting)

    def _advance(self, number: int) -> None:
        """Let a course go on to the next batch of which something is missing."""
        while (batch := self.courses[number].advance()) is not None:
            self.store.forget_over(batch)
            there = self.store.records(unit.id for unit in batch)
            missing = {unit.id: unit for unit in batch if unit.id not in there}
            if missing:
                self._want(number, missing)
                return

    def _want(self, number: int, missing: dict[str, Unit]) -> None:
        self.open[number] = len(missing)
        new = [unit for run, unit in missing.items() if run not in self.awaited]
        for run in missing:
            self.awaited.setdefault(run, set()).add(number)
        self.queue.extend(new)
        self.more(sum(unit.setting.steps for unit in new))

    def _there(self, run: str) -> None:
        for number in self.awaited.pop(run):
            self.open[number] -= 1
            if not self.open[number]:
                self._advance(number)

    def _look_elsewhere(self) -> None:
        """What others have done counts; what they have given up is ours."""
        if not self.elsewhere or time.monotonic() - self.looked < POLL:
            return
        self.looked = time.monotonic()
        there, claimed = self.store.records(self.elsewhere), self.store.claims.held()
        for run, unit in list(self.elsewhere.items()):
            if run in there or run not in claimed:
                del self.elsewhere[run]
            if run in there:
                self.steps(unit.setting.steps)
                self._there(run)
            elif run not in claimed:
                self.queue.append(unit)


def _kind(setting: Setting) -> object:
    """Settings of one kind need the same code: names decide, numbers do not."""
    words = [
        str(value) for value in setting.planner.parameters().values() if not isinstance(value, (int, float))
    ]
    return type(setting.planner), *words, repr(setting.prior).partition("(")[0], type(setting.rewards)
