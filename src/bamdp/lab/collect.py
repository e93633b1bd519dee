"""Make results and a status from the store: which runs of a study are there, and which are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from bamdp.ceilings import Ceilings, ceilings
from bamdp.envs.environment import Environment
from bamdp.lab.choosing import (
    LEFT_OUT,
    CellSchedule,
    PlannedRuns,
    damage_lines,
    exclusion,
    planned_runs,
    study_units,
)
from bamdp.lab.results import EVALUATE, TUNE, Provenance, Results, Sample
from bamdp.lab.store import RunRecord, Store
from bamdp.lab.study import Study, StudyCell, StudyEnvironment
from bamdp.lab.units import FAILED, FINISHED, OVER_LIMIT, Unit
from bamdp.seeding import seeds
from bamdp.settings import cached_world


@dataclass(frozen=True)
class CellStatus:
    """How far a cell has come."""

    cell: StudyCell
    done: int
    failed: int  # or stopped
    running: int
    missing: int  # as far as is known: tuning decides as it goes what more it needs
    undecided: bool  # tuning goes on, and may need more
    errors: tuple[str, ...]  # of runs of the evaluation that failed
    chosen: str  # what tuning has chosen, or where it stands
    seconds: float | None  # processor time that the missing runs will take; None where nothing is known yet
    damaged: tuple[str, ...] = ()  # lines that name the runs and decisions which the store has, but damaged

    @property
    def complete(self) -> bool:
        """Whether no run is missing."""
        return self.running + self.missing == 0


def _cell_damage(cell: StudyCell, schedule: CellSchedule, planned: Sequence[PlannedRuns]) -> list[str]:
    """Return lines on what was damaged in the store of what a cell needs, its runs having been read."""
    store = schedule.store
    missing = [(cell, unit) for runs in planned for unit in runs.units if unit.id in store.damaged]
    lines = damage_lines(missing, LEFT_OUT)
    if store.damaged_decisions and schedule.key in store.damaged_decisions:
        remedy = "it is made again from the runs"
        lines.append(f"{cell.label}: damaged in the store: a decision of tuning; {remedy}")
    return lines


def collect_results(study: Study, store: Store) -> Results:
    """Return the results of a study, complete or not; what is missing is described in ``waiting``."""
    samples: list[Sample] = []
    notes, waiting = list(study.notes), {}
    store.find_misnamed()
    for cell in study.cells:
        schedule, missing = replay_schedule(study, cell, store)
        planned = planned_runs(cell, schedule)
        records = store.records(unit.id for runs in planned for unit in runs.units)
        samples += [sample for runs in planned if (sample := _make_sample(schedule, runs, records, store))]
        notes += _cell_damage(cell, schedule, planned)
        if schedule.decided and schedule.chosen is None and len(cell.configurations) > 1 and study.tuning:
            everything = _all_excluded(schedule)
            subject = "every configuration is" if everything else "all that came to the last round are"
            notes.append(f"{cell.label}: {subject} excluded, so nothing was chosen or evaluated.")
        if missing or not schedule.decided:
            line = f"{cell.label}: not complete, {len(missing)} or more runs are missing."
            waiting[cell.environment.label, cell.algorithm] = line
    values = {env.label: _ceilings_of(study, env) for env in study.environments}
    known = {label: one for label, one in values.items() if one is not None}
    horizons = {env.label: env.steps for env in study.environments}
    cells = tuple((cell.environment.label, cell.algorithm) for cell in study.cells if cell.environment.runs)
    return Results(study.title, tuple(samples), known, study.quick, tuple(notes), horizons, cells, waiting)


def replay_schedule(study: Study, cell: StudyCell, store: Store) -> tuple[CellSchedule, list[Unit]]:
    """Return a cell's schedule, advanced as far as the store has its runs, and the runs that it waits for."""
    schedule = CellSchedule(study, cell, store)
    while (batch := schedule.advance()) is not None:
        stored = store.records(unit.id for unit in batch)
        missing = [unit for unit in batch if unit.id not in stored]
        if missing:  # only its own: cells that choose together wait for each other's, too
            return schedule, [unit for unit in missing if unit.setting.env == cell.environment.env]
    return schedule, []


def study_status(study: Study, store: Store) -> list[CellStatus]:
    """Return how far each cell has come; others may write meanwhile."""
    claimed = store.claims.claimed()
    store.find_misnamed()
    return [_cell_status(study, cell, store, claimed) for cell in study.cells]


def collect_provenance(study: Study, store: Store, commands: Sequence[str] = ()) -> Provenance:
    """Return versions, machines and seeds, which tell where the numbers of a report come from."""
    ids = [unit.id for _, unit in study_units(study)]
    records = store.records(ids).values()
    machines = {f"{m['processor']}, {m['cores']} cores, {m['system']}, Python {m['python']}, NumPy {m['numpy']}, "
                f"Numba {m['numba']}" for m in store.machine_of(ids).values()}  # fmt: skip
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


def _cell_status(study: Study, cell: StudyCell, store: Store, claimed: set[str]) -> CellStatus:
    schedule, missing = replay_schedule(study, cell, store)
    planned = planned_runs(cell, schedule)
    records = store.records(unit.id for runs in planned for unit in runs.units).values()
    running = sum(unit.id in claimed for unit in missing)
    steps = sum(unit.setting.steps for unit in missing)
    unknown = 0 if schedule.decided else cell.runs  # the evaluation of what will be chosen
    done = [record for record in records if record.status == FINISHED]
    pace = np.mean([record.ms_per_step for record in done]) / 1e3 if done else None
    return CellStatus(
        cell=cell,
        done=len(done),
        failed=sum(record.status in (FAILED, OVER_LIMIT) for record in records),
        running=running,
        missing=len(missing) - running + unknown,
        undecided=not schedule.decided,
        errors=tuple(r.error for r in records if r.status == FAILED and r.phase == EVALUATE),
        chosen=_choice_text(schedule),
        seconds=None if pace is None else float(pace * (steps + unknown * cell.environment.steps)),
        damaged=tuple(_cell_damage(cell, schedule, planned)),
    )


def _choice_text(schedule: CellSchedule) -> str:
    configurations = schedule.cell.configurations
    if len(configurations) == 1:
        return ""
    if not schedule.decided:
        return f"tuning {len(configurations)} configurations"
    if schedule.study.tuning is None:
        return f"all {len(configurations)} configurations"
    if schedule.chosen is None:
        return "none: all excluded" if _all_excluded(schedule) else "none: all left excluded"
    # only what is not the same in all configurations
    chosen = configurations[schedule.chosen]
    same = {key for key in chosen if all(one.get(key) == chosen[key] for one in configurations)}
    return " ".join(f"{key}={value}" for key, value in chosen.items() if key not in same)


def _all_excluded(schedule: CellSchedule) -> bool:
    """Return whether all are excluded; in halving some may only have been worse than those that are."""
    return len(schedule.excluded) == len(schedule.cell.configurations)


def _make_sample(
    schedule: CellSchedule, planned: PlannedRuns, records: dict[str, RunRecord], store: Store
) -> Sample | None:
    stored = [records[unit.id] for unit in planned.units if unit.id in records]
    if not stored:
        return None
    cell, evaluated = schedule.cell, planned.phase == EVALUATE
    done = [record for record in stored if record.status == FINISHED]
    excluded = schedule.excluded.get(planned.number, "")
    return Sample(
        environment=cell.environment.label,
        algorithm=cell.algorithm,
        phase=planned.phase,
        configuration=cell.configurations[planned.number],
        horizon=planned.steps,
        replicates=np.array([record.replicate for record in done], np.int64),
        totals=np.array([record.total for record in done], float),
        ms_per_step=np.array([record.ms_per_step for record in done], float),
        cpu_seconds=np.array([record.cpu_seconds for record in done], float),
        traces=partial(_read_again, Store.traces, store, [record.id for record in done]),
        episodes=partial(_read_again, Store.episodes, store, [record.id for record in done]),
        failures=tuple(f"run {r.replicate}: {r.error}" for r in stored if r.status != FINISHED),
        chosen=planned.number == schedule.chosen,
        asked=cell.environment.runs if evaluated else 0,
        excluded=excluded or (exclusion(stored, cell.environment.limit) if evaluated else ""),
    )


def _read_again(read: Callable[[Store, list[str]], Any], store: Store, ids: list[str]) -> Any:
    # a report may be drawn after the store was closed; its pages were checked when it was opened
    with Store(store.path, create=False, check_pages=False) as again:
        return read(again, ids)


def _ceilings_of(study: Study, environment: StudyEnvironment) -> Ceilings | None:
    """Return the reference values beside an environment's runs; None where no model is known.

    The discounted optimum is for the first discount of the environment's first configuration.
    """
    cell = next(cell for cell in study.cells if cell.environment == environment)
    discount = cell.setting(cell.configurations[0]).first_discount
    phase, runs = EVALUATE, environment.runs
    if not runs and study.tuning is not None:
        phase, runs = TUNE, study.tuning.runs
    return _known_ceilings(environment.env, discount, environment.steps, study.seed, phase, runs)


@lru_cache(maxsize=64)
def _known_ceilings(
    env: Any, discount: float, steps: int, seed: int, phase: str, runs: int
) -> Ceilings | None:
    """Return the reference values, of the worlds that these runs have drawn; None where no model is known."""
    world = cached_world(env)
    if not isinstance(world, Environment):
        return None
    drawn = [seeds(seed, replicate, tuning=phase == TUNE)[0] for replicate in range(runs)]
    return ceilings(world, discount, steps, drawn)
