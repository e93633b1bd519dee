"""The course of one cell: which runs are needed next, which configuration is chosen, and which are excluded.

Tuning and evaluation are different phases with different luck. A configuration is chosen by its mean total reward
over its tuning runs. It cannot be chosen, and is said to be excluded, if one of its runs failed or was stopped, or
if its mean processor time a step is over the environment's limit.

- **Grid.** First one run of each configuration, so that those that are over the limit, or fail, cost one run only;
  then the others. (:func:`grid`)
- **Successive halving.** Rounds, after each of which the best share goes on. (:mod:`bamdp.lab.halving`)

Every decision is a function of what is in the store, and is itself stored: a study that goes on later, or elsewhere
with other speeds, never decides again what was decided. Every algorithm gets the same number of configurations (as
far as its space has them), the same runs and the same budget.

A course yields batches of runs. Whoever drives it comes back when all of a batch are in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from bamdp.lab.identity import digest
from bamdp.lab.results import EVALUATE, TUNE
from bamdp.lab.store import Record, Store
from bamdp.lab.study import GRID, Cell, Study, Tuning
from bamdp.lab.units import FAILED, OVER, Unit, units_of

CHOICE = -1  # the round under which the choice is kept

Batch = Sequence[Unit]


@dataclass
class Course:
    """A cell on its way. ``advance`` gives the next batch; the other attributes tell how far it has come."""

    study: Study
    cell: Cell
    store: Store
    chosen: int | None = None  # number of the configuration
    decided: bool = False  # tuning is over, with or without a choice
    excluded: dict[int, str] = field(default_factory=dict)  # number of the configuration: why

    def __post_init__(self) -> None:
        self._going = self._go()

    def advance(self) -> Batch | None:
        """The next batch, all of the last one being in the store; None when the cell is done."""
        return next(self._going, None)

    def units(self, number: int, phase: str, replicates: range, steps: int | None = None) -> list[Unit]:
        """Runs of a configuration."""
        setting = self.cell.setting(self.cell.configurations[number], steps)
        return units_of(setting, phase, replicates, self.cell.place.limit)

    def _go(self) -> Iterator[Batch]:
        numbers = range(len(self.cell.configurations))
        if self.study.tuning is not None and len(numbers) > 1:
            yield from self._tune(self.study.tuning)
            numbers = range(0) if self.chosen is None else range(self.chosen, self.chosen + 1)
        elif len(numbers) == 1:
            self.chosen = 0
        self.decided = True
        if self.study.runs and len(numbers):
            yield [u for n in numbers for u in self.units(n, EVALUATE, range(self.study.runs))]

    def _tune(self, tuning: Tuning) -> Iterator[Batch]:
        key = self.key
        choice = self.store.decisions(key).get(CHOICE)
        if choice is None:
            if tuning.method == GRID:
                yield from grid(self, tuning)
            else:
                from bamdp.lab.halving import halving

                yield from halving(self, tuning, key)
            choice = self.store.decide(
                key, CHOICE, {"chosen": self.chosen, "excluded": by_text(self.excluded)}
            )
        self.chosen = choice["chosen"]
        self.excluded = {int(number): why for number, why in choice["excluded"].items()}

    @property
    def key(self) -> str:
        """The name under which decisions are kept: all that they depend on but the runs."""
        units = [self.units(n, TUNE, range(1))[0] for n in range(len(self.cell.configurations))]
        options = {} if self.study.tuning is None else asdict(self.study.tuning)
        return digest({"candidates": [u.id for u in units], "limit": self.cell.place.limit, **options})

    def judge(self, numbers: Sequence[int], replicates: int, steps: int | None = None) -> dict[int, float]:
        """Mean totals of those that may be chosen; the others are noted as excluded."""
        means = {}
        for number in numbers:
            units = self.units(number, TUNE, range(replicates), steps)
            records = list(self.store.records(unit.id for unit in units).values())
            why = exclusion(records, self.cell.place.limit)
            if why:
                self.excluded[number] = why
            else:
                means[number] = float(np.mean([record.total for record in records]))
        return means


def exclusion(records: Sequence[Record], limit: float) -> str:
    """Why a configuration with these runs cannot be chosen; empty if it can."""
    for status, words in ((FAILED, "failed"), (OVER, "went over the limit")):
        bad = [record for record in records if record.status == status]
        if bad:
            return f"{len(bad)} of {len(records)} runs {words} ({bad[0].error})"
    mean = float(np.mean([record.ms_per_step for record in records])) if records else 0.0
    return f"{mean:.4g} ms/step, over the limit of {1e3 * limit:g}" if mean > 1e3 * limit else ""


def best(means: Mapping[int, float]) -> int | None:
    """The number with the highest mean, the first of those that are equal."""
    return max(means, key=lambda number: (means[number], -number)) if means else None


def by_text(numbered: Mapping[int, str]) -> dict[str, str]:
    """With keys as JSON has them."""
    return {str(number): why for number, why in numbered.items()}


def grid(course: Course, tuning: Tuning) -> Iterator[Batch]:
    """One run of each, then the others of those that may be chosen."""
    everyone = range(len(course.cell.configurations))
    yield [unit for n in everyone for unit in course.units(n, TUNE, range(1))]
    left = list(course.judge(everyone, 1))
    yield [unit for n in left for unit in course.units(n, TUNE, range(1, tuning.runs))]
    course.chosen = best(course.judge(left, tuning.runs))
