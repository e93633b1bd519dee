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
from bamdp.lab.units import FAILED, OVER, Outcome, Unit, machine_facts
from bamdp.processes import Lost
from bamdp.runs import warm_up
from bamdp.settings import Setting

LIVES = 3  # processes that a run may take with it, being alone
POLL = 0.3  # seconds between two looks at what others have done


class Agenda:
    """Runs to claim and to do, in the order of the study; each cell goes on as soon as its last batch is there.

    If a worker dies, all runs at hand are lost, and nobody knows which of them it was. So those that had begun are done
    again one at a time, and a death counts against a run only if there was no other.

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
        self.batches: dict[int, set[str]] = {}  # course: the runs that it goes on with
        self.open: Counter[int] = Counter()  # course: how many of them are not there yet
        self.awaited: dict[str, set[int]] = {}  # run: numbers of the courses that wait for it
        self.wanted: dict[str, Unit] = {}  # the same runs, each under the widest limit of those who wait
        self.queue: deque[str] = deque()
        self.elsewhere: dict[str, None] = {}  # claimed by others, in order
        self.at_hand: dict[str, bool] = {}  # run: whether another has been at hand with it
        self.suspects: deque[str] = deque()  # had begun, as others had, when a worker died
        self.on_trial = False  # a suspect is at hand, alone
        self.looked = 0.0
        self.deaths: Counter[str] = Counter()
        self.warm: set[object] = set()
        for number in range(len(self.courses)):
            self._advance(number)

    def wait(self) -> bool:
        """Whether there is something for us to do; waits as long as only others can go on."""
        while not self.queue and not self.suspects and self.elsewhere:
            time.sleep(POLL)
            self._look_elsewhere()
        return bool(self.queue or self.suspects)

    def take(self) -> Unit | None:
        """The next run, claimed; None if there is none now."""
        self._look_elsewhere()
        if self.at_hand and (self.suspects or self.on_trial):
            return None
        queue = self.suspects or self.queue
        while queue:
            run = queue.popleft()
            if self.store.claims.take(run):
                self.on_trial = queue is self.suspects
                self.at_hand[run] = False
                if len(self.at_hand) > 1:
                    self.at_hand = dict.fromkeys(self.at_hand, True)
                return self.wanted[run]
            self.elsewhere[run] = None
        return None

    def finish(self, unit: Unit, outcome: Outcome | Exception) -> None:
        """Keep what came of a run."""
        accompanied = self.at_hand.pop(unit.id)
        self.on_trial = False
        if isinstance(outcome, Lost):
            if not outcome.begun:
                self.queue.appendleft(unit.id)
                return
            self.deaths[unit.id] += not accompanied
            if self.deaths[unit.id] < LIVES:
                self.suspects.append(unit.id)
                return
            error = f"the process that ran it died {LIVES} times (killed, or out of memory)"
            outcome = Outcome(
                FAILED, error=error, limit=unit.limit, machine=machine_facts(), version=bamdp.__version__
            )
        if isinstance(outcome, Exception):
            raise outcome
        if outcome.status == OVER and unit.limit < self.wanted[unit.id].limit:
            self.queue.appendleft(unit.id)  # meanwhile somebody wants it who has more patience
            self.more(unit.setting.steps)
            return
        self.store.commit(unit, outcome)
        self._there(unit.id)

    def warm_up(self) -> None:
        """Compile what is about to be needed in this process, so that workers find it on disk."""
        for setting in (self.wanted[run].setting for run in self.queue):
            kind = _kind(setting)
            if kind not in self.warm:
                self.warm.add(kind)
                with suppress(Exception):  # the run will meet the same error and record it
                    warm_up(setting)

    def _advance(self, number: int) -> None:
        """Let a course go on to the next batch of which something is missing."""
        self.batches.pop(number, None)
        while (batch := self.courses[number].advance()) is not None:
            for run in self.store.forget_over(batch):
                self._wait_again(run)
            there = self.store.records(unit.id for unit in batch)
            missing = {unit.id: unit for unit in batch if unit.id not in there}
            if missing:
                self.batches[number] = {unit.id for unit in batch}
                self._want(number, missing)
                return

    def _want(self, number: int, missing: dict[str, Unit]) -> None:
        self.open[number] = len(missing)
        for run, unit in missing.items():
            self.awaited.setdefault(run, set()).add(number)
            if run not in self.wanted:
                self.queue.append(run)
                self.more(unit.setting.steps)
            if run not in self.wanted or unit.limit > self.wanted[run].limit:
                self.wanted[run] = unit

    def _wait_again(self, run: str) -> None:
        """A run was there and is no more: whoever has it in the batch at hand waits for the new one."""
        for number, batch in self.batches.items():
            if run in batch:
                self.awaited.setdefault(run, set()).add(number)
                self.open[number] += 1

    def _there(self, run: str) -> None:
        del self.wanted[run]
        for number in self.awaited.pop(run):
            self.open[number] -= 1
            if not self.open[number]:
                self._advance(number)

    def _look_elsewhere(self) -> None:
        """What others have done counts; what they have given up, or stopped too early for us, is ours."""
        if not self.elsewhere or time.monotonic() - self.looked < POLL:
            return
        self.looked = time.monotonic()
        self.store.forget_over(self.wanted[run] for run in self.elsewhere)
        there, claimed = self.store.records(self.elsewhere), self.store.claims.held()
        for run in [run for run in self.elsewhere if run in there or run not in claimed]:
            del self.elsewhere[run]
            if run in there:
                self.steps(self.wanted[run].setting.steps)
                self._there(run)
            else:
                self.queue.append(run)


def _kind(setting: Setting) -> object:
    """Settings of one kind need the same code: names decide, numbers do not."""
    words = [
        str(value) for value in setting.planner.parameters().values() if not isinstance(value, (int, float))
    ]
    return type(setting.planner), *words, repr(setting.prior).partition("(")[0], type(setting.rewards)
