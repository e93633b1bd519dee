"""The course of one cell: which runs are needed next, which configuration is chosen, and which are excluded.

Tuning and evaluation are different phases with different luck. A configuration is chosen by its mean total reward
over its tuning runs. It cannot be chosen, and is said to be excluded, if one of its runs failed or was stopped, or
if its mean processor time a step is over the limit: the environment's, or under a budget twice an even share of that.

- **Grid.** First one run of each configuration, so that those that are over the limit, or fail, cost one run only;
  then the others. (:func:`grid`)
- **Successive halving.** Rounds, after each of which the best share goes on. (:mod:`bamdp.lab.halving`)

**Across environments** (``across``), an algorithm has one choice for all: configuration number i of every environment
is one candidate, chosen by the mean over environments of total / optimal total of the known model over the same
steps, and excluded if it is in any. The cells of the algorithm ask for the same tuning runs and decide under the same
name, so whichever comes first decides for all.

Every decision is a function of what is in the store, and is itself stored: a study that goes on later, or elsewhere
with other speeds, never decides again what was decided. Every algorithm gets the same number of configurations (as
far as its space has them), the same runs and the same budget.

A course yields batches of runs. Whoever drives it comes back when all of a batch are in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bamdp.ceilings import optimal_total
from bamdp.envs import Environment
from bamdp.lab.identity import digest, environment
from bamdp.lab.results import EVALUATE, TUNE
from bamdp.lab.store import Record, Store
from bamdp.lab.study import GRID, Cell, Study, Tuning
from bamdp.lab.units import FAILED, OVER, Unit, units_of

CHOICE = -1  # the round under which the choice is kept

RULE = 2  # is raised when the same runs would be decided on otherwise

Batch = Sequence[Unit]
Scores = Mapping[int, NDArray[np.float64]]  # by configuration: what it is judged by, replicate by replicate


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

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Those that choose together: the cell alone, or its algorithm in every environment."""
        return self.study.together(self.cell)

    def evaluation(self, number: int) -> list[Unit]:
        """Runs of what was chosen."""
        setting = self.cell.setting(self.cell.configurations[number])
        return units_of(setting, EVALUATE, range(self.cell.runs), self.cell.place.limit)

    def trials(self, number: int, replicates: range, short: bool = False) -> list[Unit]:
        """Tuning runs of a configuration, in all cells that choose together."""
        return [unit for cell in self.cells for unit in _trials(cell, number, replicates, short)]

    def _go(self) -> Iterator[Batch]:
        numbers = range(len(self.cell.configurations))
        if self.cell.tuning is not None and len(numbers) > 1:
            yield from self._tune(self.cell.tuning)
            numbers = range(0) if self.chosen is None else range(self.chosen, self.chosen + 1)
        elif len(numbers) == 1:
            self.chosen = 0
        self.decided = True
        if self.cell.runs and len(numbers):
            yield [unit for number in numbers for unit in self.evaluation(number)]

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
        numbers = range(len(self.cell.configurations))
        return digest(
            {
                "rule": RULE,
                "cells": [
                    {
                        "candidates": [_trials(cell, n, range(1), False)[0].id for n in numbers],
                        "limit": cell.tuning_limit,
                        **({} if cell.tuning is None else asdict(cell.tuning)),
                    }
                    for cell in self.cells
                ],
            }
        )

    def judge(self, replicates: Mapping[int, int], short: bool = False) -> dict[int, NDArray[np.float64]]:
        """Scores of those that may be chosen, of so many replicates each; the others are noted as excluded."""
        scores = {}
        for number, runs in replicates.items():
            found = [(cell, self._records(cell, number, runs, short)) for cell in self.cells]
            reasons = [(cell, exclusion(records, cell.tuning_limit)) for cell, records in found]
            bad = [(cell, why) for cell, why in reasons if why]
            if bad:
                cell, why = bad[0]
                self.excluded[number] = why if len(self.cells) == 1 else f"{cell.place.label}: {why}"
            else:
                scores[number] = _scores(found, short)
        return scores

    def _records(self, cell: Cell, number: int, replicates: int, short: bool) -> list[Record]:
        units = _trials(cell, number, range(replicates), short)
        found = self.store.records(unit.id for unit in units)
        return [found[unit.id] for unit in units if unit.id in found]


def _trials(cell: Cell, number: int, replicates: range, short: bool) -> list[Unit]:
    setting = cell.setting(cell.configurations[number], cell.horizon(short))
    return units_of(setting, TUNE, replicates, cell.tuning_limit)


def _scores(found: Sequence[tuple[Cell, Sequence[Record]]], short: bool) -> NDArray[np.float64]:
    """Totals of a single cell; of several, the mean of their shares of the optimum."""
    totals = np.array([[record.total for record in records] for _, records in found])
    if len(found) == 1:
        return totals[0]
    optima = np.array([optimum(cell.place.env, cell.horizon(short)) for cell, _ in found])
    return np.mean(totals / optima[:, None], axis=0)


@lru_cache(maxsize=64)
def optimum(env: str, steps: int) -> float:
    """The best total of an environment, of which shares can be taken."""
    world = environment(env)
    assert isinstance(world, Environment)  # the study was refused otherwise
    best = optimal_total(world, steps)
    if best <= 0.0:
        raise ValueError(
            f"{env}: its best total in {steps} steps is {best:g}, of which no share can be taken; choose without "
            "across = true"
        )
    return best


def exclusion(records: Sequence[Record], limit: float) -> str:
    """Why a configuration with these runs cannot be chosen; empty if it can."""
    for status, words in ((FAILED, "failed"), (OVER, "went over the limit")):
        bad = [record for record in records if record.status == status]
        if bad:
            return f"{len(bad)} of {len(records)} runs {words} ({bad[0].error})"
    mean = float(np.mean([record.ms_per_step for record in records])) if records else 0.0
    return f"{mean:.4g} ms/step, over the limit of {1e3 * limit:g}" if mean > 1e3 * limit else ""


def best(scores: Scores) -> int | None:
    """The number with the highest mean, the first of those that are equal."""
    return max(scores, key=lambda number: (float(np.mean(scores[number])), -number)) if scores else None


def by_text(numbered: Mapping[int, str]) -> dict[str, str]:
    """With keys as JSON has them."""
    return {str(number): why for number, why in numbered.items()}


def grid(course: Course, tuning: Tuning) -> Iterator[Batch]:
    """One run of each, then the others of those that may be chosen."""
    everyone = range(len(course.cell.configurations))
    yield [unit for n in everyone for unit in course.trials(n, range(1))]
    left = list(course.judge(dict.fromkeys(everyone, 1)))
    yield [unit for n in left for unit in course.trials(n, range(1, tuning.runs))]
    course.chosen = best(course.judge(dict.fromkeys(left, tuning.runs)))
