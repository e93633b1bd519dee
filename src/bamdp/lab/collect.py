"""From the store to results and to a status: what of a study is there, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from bamdp.ceilings import Ceilings, ceilings
from bamdp.envs import Environment
from bamdp.lab.identity import environment
from bamdp.lab.protocol import Course, exclusion
from bamdp.lab.results import EVALUATE, TUNE, Provenance, Results, Sample
from bamdp.lab.store import Record, Store
from bamdp.lab.study import Cell, Study
from bamdp.lab.units import DONE, FAILED, OVER, Unit, units_of


@dataclass(frozen=True)
class Part:
    """The runs that a study may have of one configuration, in one phase and of one horizon."""

    number: int  # of the configuration
    phase: str
    steps: int
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class CellStatus:
    """How far a cell has come."""

    cell: Cell
    done: int
    failed: int  # or stopped
    running: int
    missing: int  # as far as is known: tuning decides as it goes what more it needs
    undecided: bool  # tuning goes on, and may need more
    errors: tuple[str, ...]  # of runs of the evaluation that failed
    chosen: str  # what tuning has chosen, or where it stands
    seconds: float | None  # processor time that the missing ones will take; None where nothing is known yet

    @property
    def complete(self) -> bool:
        """Nothing is missing."""
        return self.running + self.missing == 0


def wanted(study: Study, cell: Cell, course: Course | None = None) -> list[Part]:
    """All runs that the study could ask for in a cell, whatever tuning decides; or has decided, with its course."""
    parts = []
    tuned = cell.tuning if len(cell.configurations) > 1 else None
    for number, configuration in enumerate(cell.configurations):
        horizons = [(EVALUATE, cell.place.steps, cell.runs)]
        if tuned is not None:
            horizons.insert(0, (TUNE, cell.place.steps, tuned.runs))
            if tuned.screening is not None and tuned.screening < cell.place.steps:
                horizons.insert(0, (TUNE, tuned.screening, tuned.runs))
        for phase, steps, runs in horizons:
            if phase == EVALUATE and course is not None and not _evaluated(course, number):
                continue
            units = units_of(cell.setting(configuration, steps), phase, range(runs), cell.place.limit)
            parts.append(Part(number, phase, steps, tuple(units)))
    return parts


def results(study: Study, store: Store) -> Results:
    """What is there of a study, complete or not; what is missing is said in ``waiting``."""
    samples: list[Sample] = []
    notes, waiting = list(study.notes), {}
    for cell in study.cells:
        course, missing = follow(study, cell, store)
        parts = wanted(study, cell, course)
        records = store.records(unit.id for part in parts for unit in part.units)
        samples += [sample for part in parts if (sample := _sample(course, part, records, store))]
        if course.decided and course.chosen is None and len(cell.configurations) > 1 and study.tuning:
            those = (
                "every configuration is" if _all_excluded(course) else "all that came to the last round are"
            )
            notes.append(f"{cell.label}: {those} excluded, so nothing was chosen or evaluated.")
        if missing or not course.decided:
            words = f"{cell.label}: not complete, {len(missing)} or more runs are missing."
            waiting[cell.place.label, cell.algorithm] = words
    known = {
        place.label: found
        for place in study.places
        if (found := _ceilings(place.env, _discount(study, place.label), place.steps)) is not None
    }
    horizons = {place.label: place.steps for place in study.places}
    cells = tuple((cell.place.label, cell.algorithm) for cell in study.cells if cell.place.runs)
    return Results(study.title, tuple(samples), known, study.quick, tuple(notes), horizons, cells, waiting)


def _evaluated(course: Course, number: int) -> bool:
    """Whether the study evaluates a configuration; the store may know more of it than this study asks for."""
    return course.chosen == number or (course.chosen is None and course.study.tuning is None)


def follow(study: Study, cell: Cell, store: Store) -> tuple[Course, list[Unit]]:
    """A course as far as the store has it, and the runs that it waits for."""
    course = Course(study, cell, store)
    while (batch := course.advance()) is not None:
        there = store.records(unit.id for unit in batch)
        missing = [unit for unit in batch if unit.id not in there]
        if missing:  # of its own: cells that choose together wait for each other's, too
            return course, [unit for unit in missing if unit.setting.env == cell.place.env]
    return course, []


def status(study: Study, store: Store) -> list[CellStatus]:
    """How far each cell has come; may be asked while others write."""
    claimed = store.claims.held()
    return [_cell_status(study, cell, store, claimed) for cell in study.cells]


def provenance(study: Study, store: Store, commands: Sequence[str] = ()) -> Provenance:
    """Versions, machines, seeds: what a report tells of where its numbers come from."""
    ids = [unit.id for cell in study.cells for part in wanted(study, cell) for unit in part.units]
    records = store.records(ids).values()
    machines = {f"{m['processor']}, {m['cores']} cores, {m['system']}, Python {m['python']}, NumPy {m['numpy']}, "
                f"Numba {m['numba']}" for m in store.machines(ids)}  # fmt: skip
    facts = {
        "bamdp": ", ".join(sorted({record.version for record in records})),
        "machine": "; ".join(sorted(machines)),
        "seed": str(study.seed),
        "runs in the store": str(len(records)),
        "first and last finished": " to ".join(
            sorted(r.finished for r in records)[:: max(len(records) - 1, 1)]
        ),
    }
    if not all(record.reproducible for record in records):
        facts["not reproducible"] = "some planners had a time budget"
    return Provenance({key: value for key, value in facts.items() if value}, tuple(commands), study.source)


def _cell_status(study: Study, cell: Cell, store: Store, claimed: set[str]) -> CellStatus:
    course, missing = follow(study, cell, store)
    records = store.records(u.id for part in wanted(study, cell, course) for u in part.units).values()
    running = sum(unit.id in claimed for unit in missing)
    steps = sum(unit.setting.steps for unit in missing)
    unknown = 0 if course.decided else cell.runs  # the evaluation of what will be chosen
    done = [record for record in records if record.status == DONE]
    pace = np.mean([record.ms_per_step for record in done]) / 1e3 if done else None
    return CellStatus(
        cell=cell,
        done=len(done),
        failed=sum(record.status in (FAILED, OVER) for record in records),
        running=running,
        missing=len(missing) - running + unknown,
        undecided=not course.decided,
        errors=tuple(r.error for r in records if r.status == FAILED and r.phase == EVALUATE),
        chosen=_chosen(course),
        seconds=None if pace is None else float(pace * (steps + unknown * cell.place.steps)),
    )


def _chosen(course: Course) -> str:
    if len(course.cell.configurations) == 1:
        return ""
    if not course.decided:
        return f"tuning {len(course.cell.configurations)} configurations"
    if course.study.tuning is None:
        return f"all {len(course.cell.configurations)} configurations"
    if course.chosen is None:
        return "none: all excluded" if _all_excluded(course) else "none: all left excluded"
    return brief(course.cell, course.chosen)


def _all_excluded(course: Course) -> bool:
    """In halving some may only have been worse than those that turned out to be no good."""
    return len(course.excluded) == len(course.cell.configurations)


def brief(cell: Cell, number: int) -> str:
    """A configuration in short: what is not the same in all of the cell."""
    chosen = cell.configurations[number]
    same = {key for key in chosen if all(one.get(key) == chosen[key] for one in cell.configurations)}
    return " ".join(f"{key}={value}" for key, value in chosen.items() if key not in same)


def _sample(course: Course, part: Part, records: dict[str, Record], store: Store) -> Sample | None:
    mine = [records[unit.id] for unit in part.units if unit.id in records]
    if not mine:
        return None
    done = [record for record in mine if record.status == DONE]
    excluded = course.excluded.get(part.number, "")
    return Sample(
        environment=course.cell.place.label,
        algorithm=course.cell.algorithm,
        phase=part.phase,
        configuration=course.cell.configurations[part.number],
        horizon=part.steps,
        replicates=np.array([record.replicate for record in done], np.int64),
        totals=np.array([record.total for record in done], float),
        ms_per_step=np.array([record.ms_per_step for record in done], float),
        cpu_seconds=np.array([record.cpu_seconds for record in done], float),
        traces=partial(_traces, store, [record.id for record in done]),
        failures=tuple(f"run {r.replicate}: {r.error}" for r in mine if r.status != DONE),
        chosen=part.number == course.chosen,
        asked=course.cell.place.runs if part.phase == EVALUATE else 0,
        excluded=excluded or (exclusion(mine, course.cell.place.limit) if part.phase == EVALUATE else ""),
    )


def _traces(store: Store, ids: list[str]) -> np.ndarray:
    with Store(store.path, create=False) as again:  # a report may be drawn after the store was closed
        return again.traces(ids)


def _discount(study: Study, label: str) -> float:
    """Of the environment's first configuration: which one matters only for the line of the discounted optimum."""
    cell = next(cell for cell in study.cells if cell.place.label == label)
    return float(cell.configurations[0]["discount"])


@lru_cache(maxsize=64)
def _ceilings(env: str, discount: float, steps: int) -> Ceilings | None:
    """None in worlds whose model nobody knows."""
    world = environment(env)
    return ceilings(world, discount, steps) if isinstance(world, Environment) else None
