"""Configuration selection: which runs are needed next, and which configurations are selected or excluded.

Tuning and evaluation use different random streams. The selected configuration has the highest mean total reward over
its tuning runs or, if all totals are equal (in CartPole, every step pays 1), the highest mean episode return. A
configuration is excluded if one of its runs failed or was stopped, or if its mean processor time per step exceeds the
environment's limit.

- **Grid search**: run each configuration once, so that a failing or slow one costs only a single run, then complete
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.store import Store
from bamdp.lab.study import GRID_SEARCH, Study, StudyCell, Tuning, positive_optimum
from bamdp.lab.units import FAILED, OVER_LIMIT, RunRecord, Unit

Scores = Mapping[int, NDArray[np.float64]]  # configuration number: score of each replicate


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
