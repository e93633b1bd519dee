"""How the configuration of a cell is chosen: which runs are needed next, which is chosen, and which are excluded.

Tuning and evaluation are different phases with different random streams. A configuration is chosen by its mean total
reward over its tuning runs; where all totals are the same because every step pays the same, as in CartPole, by the mean
return of its runs' episodes. It cannot be chosen, and is said to be excluded, if one of its runs failed or was stopped,
or if its mean processor time per step is over the limit: the environment's, or under a budget twice an even share.

- **Grid search** (:func:`grid_search`). First one run of each configuration, so that those that are over the limit, or
  fail, cost one run only; then the others.
- **Successive halving** (:func:`successive_halving`; Jamieson & Talwalkar 2016), with or without a budget of processor
  time. Of n configurations there are R = ⌈log n / log(1/keep)⌉ rounds, k = 0 .. R−1; after each, the best share
  ``keep`` of those that are left goes on, after the last one the best. Runs of earlier rounds count if they have the
  same horizon: with ``screening``, all rounds but the last have shorter runs.

  - Without a budget, round k ends when each has ⌈runs·keep^(R−1−k)⌉ replicates, the last one thus with ``runs``.
  - With a budget of B processor seconds, a round has an equal share of what is left of B, and in it each configuration
    an equal part: it is run as often as fits, judged by what its runs took so far, once at least and ``runs`` times at
    most; what the quick ones leave over is for the others. So slow configurations do not use the time of quick ones. A
    configuration that needs more than 2B/n for a run of the first round (later as much per step) is stopped and
    excluded; with so small a budget that none keeps to it, all are.

  Means of few runs are mostly noise, and the highest of many such means most of all. So those with unequal numbers of
  runs are compared by means that are shrunk towards the common one, the more the fewer their runs
  (:func:`shrunk_means`).

**Across environments** (``across``), an algorithm has one choice for all: configuration number i of every environment
is one candidate, chosen by the mean over environments of total / optimal total of the known model over the same
steps, and excluded if it is in any. The cells of the algorithm need the same tuning runs and decide under the same
key, so whichever comes first decides for all.

Every decision is a function of what is in the store, and is itself stored (of a round with its costs): a study that is
continued later, or elsewhere at other speeds, never decides again. Every algorithm gets the same number of
configurations (as far as its space has them), the same runs and the same budget.

A :class:`CellSchedule` yields batches of runs. Whoever drives it comes back when all of a batch are in the store.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.results import EVALUATE, TUNE, EpisodeSummary, steady_returns
from bamdp.lab.study import GRID_SEARCH, Study, StudyCell, Tuning, positive_optimum
from bamdp.lab.units import FAILED, OVER_LIMIT, Unit, digest, units_of

if TYPE_CHECKING:
    from bamdp.lab.store import RunRecord, Store

PHASE_WORDS = {TUNE: "tuning", EVALUATE: "the evaluation"}
LEFT_OUT = "left out; `bamdp lab run` does it again"
CHOICE_ROUND = -1  # the round under which the choice is stored
RULE_VERSION = 2  # is raised when the same runs would be decided on otherwise

UnitBatch = Sequence[Unit]
Scores = Mapping[int, NDArray[np.float64]]  # by configuration: what it is judged by, for each replicate


@dataclass
class CellSchedule:
    """The runs of one cell in their order. ``advance`` returns the next batch; the attributes say what is decided."""

    study: Study
    cell: StudyCell
    store: Store
    chosen: int | None = None  # number of the configuration
    decided: bool = False  # tuning is over, with or without a choice
    excluded: dict[int, str] = field(default_factory=dict)  # number of the configuration: why

    def __post_init__(self) -> None:
        self._batches = self._generate()

    def advance(self) -> UnitBatch | None:
        """Return the next batch, all of the last one being in the store; None when the cell is done."""
        return next(self._batches, None)

    @property
    def cells(self) -> tuple[StudyCell, ...]:
        """The cells that choose together: the cell alone, or its algorithm in every environment."""
        return self.study.choosing_together(self.cell)

    def evaluation(self, number: int) -> list[Unit]:
        """Return the evaluation runs of a configuration."""
        setting = self.cell.setting(self.cell.configurations[number])
        return units_of(setting, EVALUATE, self.cell.replicates, self.cell.evaluation_limit)

    def trials(self, number: int, replicates: range, short: bool = False) -> list[Unit]:
        """Return the tuning runs of a configuration, in all cells that choose together."""
        return [unit for cell in self.cells for unit in _trials(cell, number, replicates, short)]

    def _generate(self) -> Iterator[UnitBatch]:
        numbers = range(len(self.cell.configurations))
        if self.cell.tuning is not None and len(numbers) > 1:
            yield from self._tune(self.cell.tuning)
            numbers = range(0) if self.chosen is None else range(self.chosen, self.chosen + 1)
        elif len(numbers) == 1:
            self.chosen = 0
        self.decided = True
        if self.cell.runs and len(numbers):
            yield [unit for number in numbers for unit in self.evaluation(number)]

    def _tune(self, tuning: Tuning) -> Iterator[UnitBatch]:
        key = self.key
        choice = self.store.decisions(key).get(CHOICE_ROUND)
        if choice is None:
            search = grid_search if tuning.method == GRID_SEARCH else successive_halving
            yield from search(self, tuning, key)
            facts = {"chosen": self.chosen, "excluded": _text_keys(self.excluded)}
            choice = self.store.decide(key, CHOICE_ROUND, facts)
        self.chosen = choice["chosen"]
        self.excluded = {int(number): why for number, why in choice["excluded"].items()}

    @property
    def key(self) -> str:
        """The key of its decisions in the store: a digest of all that they depend on but the runs."""
        numbers = range(len(self.cell.configurations))
        return digest(
            {
                "rule": RULE_VERSION,
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
        """Return the scores of configurations with so many replicates each; note those that are excluded."""
        scores = {}
        for number, runs in replicates.items():
            records = [(cell, self._records(cell, number, runs, short)) for cell in self.cells]
            reasons = [(cell, exclusion(of_cell, cell.tuning_limit)) for cell, of_cell in records]
            bad = [(cell, why) for cell, why in reasons if why]
            if bad:
                cell, why = bad[0]
                self.excluded[number] = why if len(self.cells) == 1 else f"{cell.environment.label}: {why}"
            else:
                scores[number] = _scores(records, short)
        return scores

    def informative(self, scores: Scores, short: bool = False) -> Scores:
        """Return the scores, or where every step pays the same the mean return of the episodes of each run."""
        if len(self.cells) > 1:
            return scores
        totals = (float(total) for values in scores.values() for total in values)
        found = steady_returns(totals, lambda: [self._episodes(n, len(v), short) for n, v in scores.items()])
        return scores if found is None else dict(zip(scores, found))

    def _episodes(self, number: int, runs: int, short: bool) -> EpisodeSummary | None:
        records = self._records(self.cell, number, runs, short)
        return self.store.episodes([record.id for record in records])

    def _records(self, cell: StudyCell, number: int, replicates: int, short: bool) -> list[RunRecord]:
        units = _trials(cell, number, range(replicates), short)
        stored = self.store.records(unit.id for unit in units)
        return [stored[unit.id] for unit in units if unit.id in stored]


def _trials(cell: StudyCell, number: int, replicates: range, short: bool) -> list[Unit]:
    setting = cell.setting(cell.configurations[number], cell.horizon(short))
    return units_of(setting, TUNE, replicates, cell.tuning_limit)


def _scores(records: Sequence[tuple[StudyCell, Sequence[RunRecord]]], short: bool) -> NDArray[np.float64]:
    """Return the totals of a single cell; of several, the mean of their shares of the optimum."""
    totals = np.array([[record.total for record in of_cell] for _, of_cell in records])
    if len(records) == 1:
        return totals[0]
    optima = np.array([positive_optimum(cell.environment.env, cell.horizon(short)) for cell, _ in records])
    return np.mean(totals / optima[:, None], axis=0)


def exclusion(records: Sequence[RunRecord], limit: float) -> str:
    """Return why a configuration with these runs cannot be chosen; empty if it can."""
    for status, words in ((FAILED, "failed"), (OVER_LIMIT, "went over the limit")):
        bad = [record for record in records if record.status == status]
        if bad:
            return f"{len(bad)} of {len(records)} runs {words} ({bad[0].error})"
    mean = float(np.mean([record.ms_per_step for record in records])) if records else 0.0
    return f"{mean:.4g} ms/step, over the limit of {1e3 * limit:g}" if mean > 1e3 * limit else ""


def _text_keys(numbered: Mapping[int, str]) -> dict[str, str]:
    """Return a mapping with keys as JSON has them."""
    return {str(number): why for number, why in numbered.items()}


# Grid search


def grid_search(schedule: CellSchedule, tuning: Tuning, key: str) -> Iterator[UnitBatch]:
    """Yield one run of each configuration, then the others of those that may be chosen."""
    numbers = range(len(schedule.cell.configurations))
    yield [unit for n in numbers for unit in schedule.trials(n, range(1))]
    left = list(schedule.judge(dict.fromkeys(numbers, 1)))
    yield [unit for n in left for unit in schedule.trials(n, range(1, tuning.runs))]
    scores = schedule.informative(schedule.judge(dict.fromkeys(left, tuning.runs)))
    # the highest mean; of equal ones the first
    schedule.chosen = max(scores, key=lambda n: (float(np.mean(scores[n])), -n)) if scores else None


# Successive halving


def successive_halving(schedule: CellSchedule, tuning: Tuning, key: str) -> Iterator[UnitBatch]:
    """Yield the batches of a cell round by round, and in the end set ``schedule.chosen``."""
    left: Sequence[int] = range(len(schedule.cell.configurations))
    rounds = n_rounds(len(left), tuning.keep)
    screened = any(cell.horizon(short=True) < cell.environment.steps for cell in schedule.cells)
    budget = _common_budget(schedule)
    replicates: dict[bool, dict[int, int]] = {}  # of those that are left, by whether runs are short
    spent = 0.0
    for k in range(rounds):
        last = k == rounds - 1
        short = screened and not last
        decision = schedule.store.decisions(key).get(k)
        if decision is None:
            goal, share = tuning.runs, math.inf
            if budget is None:
                goal = math.ceil(round(tuning.runs * tuning.keep ** (rounds - 1 - k), 9))
            else:
                share = max(budget - spent, 0.0) / (rounds - k)
            size = 1 if last else math.ceil(len(left) * tuning.keep)
            begun = {number: replicates.get(short, {}).get(number, 0) for number in left}
            paid = replicates.get(True, {}) if not short else {}
            facts = yield from _round(schedule, begun, paid, short, goal, share, size)
            decision = schedule.store.decide(key, k, facts)
        left = decision["kept"]
        replicates[short] = {int(number): n for number, n in decision["replicates"].items()}
        schedule.excluded = {int(number): why for number, why in decision["excluded"].items()}
        spent += decision["cost"]
    schedule.chosen = left[0] if left else None


def n_rounds(n: int, keep: float) -> int:
    """Return how often a share must be kept until one is left.

    Examples
    --------
    >>> n_rounds(48, 1 / 3), n_rounds(9, 1 / 3), n_rounds(8, 0.5)
    (4, 2, 3)
    """
    return max(1, math.ceil(round(math.log(n) / -math.log(keep), 9)))


def shrunk_means(scores: Scores) -> dict[int, float]:
    """Return means shrunk towards the common one, as estimates of the expected score of each configuration.

    By empirical Bayes: runs of a configuration vary with variance s² (pooled) around its own mean, these with variance
    τ² around the common one, so the mean of n runs counts τ²/(τ² + s²/n), and the common mean the rest. Nothing is
    changed where no configuration has two runs, and no order is where all have the same number.

    Examples
    --------
    >>> runs = {0: np.array([9.0]), 1: np.array([7.0, 10.0, 8.0, 10.0]), 2: np.array([4.0, 7.0, 6.0, 6.5])}
    >>> {number: round(value, 1) for number, value in shrunk_means(runs).items()}
    {0: 8.4, 1: 8.5, 2: 6.2}
    """
    means = {number: float(np.mean(values)) for number, values in scores.items()}
    freedom = sum(len(values) - 1 for values in scores.values())
    if freedom == 0 or len(means) < 2:
        return means
    within = sum(float(((v - np.mean(v)) ** 2).sum()) for v in scores.values()) / freedom
    noise = {number: within / len(values) for number, values in scores.items()}
    between = max(float(np.var(list(means.values()), ddof=1)) - float(np.mean(list(noise.values()))), 0.0)
    if between == 0.0:  # the means differ by no more than noise: the more runs agree, the more they count
        between = 1e-3 * within
    if within == 0.0:
        return means
    weight = {number: 1.0 / (between + noise[number]) for number in means}
    common = sum(weight[n] * means[n] for n in means) / sum(weight.values())
    return {n: common + between * weight[n] * (means[n] - common) for n in means}


def _round(
    schedule: CellSchedule,
    begun: Mapping[int, int],
    paid: Mapping[int, int],
    short: bool,
    goal: int,
    share: float,
    size: int,
) -> Generator[UnitBatch, None, Mapping[str, Any]]:
    """Yield batches until each has reached the goal or used up its part; return the decision to be stored.

    ``begun`` are the replicates of each configuration before the round, ``paid`` those of short runs: where cells
    choose together and some are not screened, a short run is a whole one there, and has its cost in an earlier round.
    """
    replicates = dict(begun)
    spent = dict.fromkeys(replicates, 0.0)
    before = {unit.id for n in begun for unit in schedule.trials(n, range(paid.get(n, 0)), short=True)}
    scores = schedule.judge({n: runs for n, runs in begun.items() if runs}, short)
    while True:
        more = _next_runs(replicates, begun, spent, goal, share)
        more = {n: runs for n, runs in more.items() if n not in schedule.excluded}
        if not more:
            break
        batch = {
            n: schedule.trials(n, range(replicates[n], replicates[n] + runs), short)
            for n, runs in more.items()
        }
        yield [unit for units in batch.values() for unit in units]
        for n, units in batch.items():
            replicates[n] += more[n]
            new = (unit.id for unit in units if unit.id not in before)
            spent[n] += sum(record.cpu_seconds for record in schedule.store.records(new).values())
        scores |= schedule.judge({n: replicates[n] for n in batch}, short)
    judged = {n: values for n, values in scores.items() if n not in schedule.excluded}
    means = shrunk_means(schedule.informative(judged, short))
    ranked = sorted(means, key=lambda number: (-means[number], number))
    return {
        "kept": ranked[:size],
        "replicates": {str(n): replicates[n] for n in ranked},
        "steps": schedule.cell.horizon(short),
        "excluded": _text_keys(schedule.excluded),
        "cost": sum(spent.values()),
    }


def _next_runs(
    replicates: Mapping[int, int],
    begun: Mapping[int, int],
    spent: Mapping[int, float],
    goal: int,
    share: float,
) -> dict[int, int]:
    """Return how many runs each gets next: one at first, then what its part affords, at most as many again."""
    unfinished = [n for n in replicates if replicates[n] < goal]
    used = sum(spent[n] for n in replicates if n not in unfinished)
    part = max(share - used, 0.0) / max(len(unfinished), 1)
    more = {}
    for n in unfinished:
        new = replicates[n] - begun[n]
        if new == 0:
            more[n] = 1
            continue
        price = spent[n] / new
        affordable = goal if price <= 0.0 or math.isinf(part) else int((part - spent[n]) / price)
        runs = min(goal - replicates[n], new, affordable)
        if runs > 0:
            more[n] = runs
    return more


def _common_budget(schedule: CellSchedule) -> float | None:
    """Return the budget of all cells that choose together; None if one has none."""
    budgets = [cell.tuning.budget for cell in schedule.cells if cell.tuning is not None]
    known = [budget for budget in budgets if budget is not None]
    return sum(known) if len(known) == len(budgets) else None


@dataclass(frozen=True)
class PlannedRuns:
    """The runs that a study may have of one configuration, in one phase and of one horizon."""

    number: int  # of the configuration
    phase: str
    steps: int
    units: tuple[Unit, ...]


def planned_runs(cell: StudyCell, schedule: CellSchedule | None = None) -> list[PlannedRuns]:
    """Return all runs that a study could need in a cell, whatever tuning decides; with a schedule, has decided."""
    tuned = cell.tuning if len(cell.configurations) > 1 else None
    horizons = sorted({cell.horizon(short=True), cell.horizon(short=False)})
    tuning = [] if tuned is None else [(TUNE, steps, range(tuned.runs)) for steps in horizons]
    evaluated: Collection[int | None] = range(len(cell.configurations))
    if schedule is not None and (schedule.study.tuning is not None or schedule.chosen is not None):
        evaluated = [schedule.chosen]  # the store may have runs of others, from another study
    planned = []
    for number, configuration in enumerate(cell.configurations):
        evaluation = [(EVALUATE, cell.environment.steps, cell.replicates)] if number in evaluated else []
        for phase, steps, replicates in [*tuning, *evaluation]:
            limit = cell.evaluation_limit if phase == EVALUATE else cell.environment.limit
            units = units_of(cell.setting(configuration, steps), phase, replicates, limit)
            planned.append(PlannedRuns(number, phase, steps, tuple(units)))
    return planned


def study_units(study: Study) -> Iterator[tuple[StudyCell, Unit]]:
    """Yield every run that a study may need, whatever tuning decides, with its cell."""
    for cell in study.cells:
        for planned in planned_runs(cell):
            for unit in planned.units:
                yield cell, unit


def damaged_units(study: Study, damaged: Collection[str]) -> list[tuple[StudyCell, Unit]]:
    """Return those of the damaged runs that a study may need, whatever tuning decides, each with its first cell."""
    found: dict[str, tuple[StudyCell, Unit]] = {}
    for cell, unit in study_units(study) if damaged else ():
        if unit.id in damaged:
            found.setdefault(unit.id, (cell, unit))
    return list(found.values())


def damage_lines(units: Iterable[tuple[StudyCell, Unit]], remedy: str) -> list[str]:
    """Return a line for each cell and phase that names its damaged runs, and says what becomes of them."""
    numbers: dict[tuple[str, str], dict[int, None]] = {}
    for cell, unit in units:
        numbers.setdefault((cell.label, PHASE_WORDS[unit.phase]), {})[unit.replicate] = None
    return [
        f"{label}: damaged in the store: run {', '.join(map(str, replicates))} of {phase}; {remedy}"
        for (label, phase), replicates in numbers.items()
    ]
