"""The runs of a study as one tidy pandas DataFrame.

Each row is a run: ``environment``, ``algorithm``, ``label`` (the algorithm, with the parameters in which its
evaluated configurations differ), ``phase`` (``tune`` or ``evaluate``), ``configuration`` (a dictionary), ``prior`` and
``discount`` as text, ``replicate``, ``horizon``, ``total``, ``ms_per_step``, ``cpu_seconds``, ``episodes``,
``mean_return``, ``success``, ``failure`` (empty, or why the run failed or was stopped; its total is NaN), ``chosen``
(whether tuning chose the configuration, or nothing was to be chosen), ``excluded`` (why the configuration could not be
chosen), ``asked`` (runs of a complete evaluation), ``reproducible``, ``version``, ``machine`` (JSON), ``finished``, and
``trace``: the rewards as bytes, None where they were not kept. :func:`rewards` reads the traces of selected rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from bamdp.ceilings import Ceilings, ceilings
from bamdp.envs.environment import Environment
from bamdp.lab.choosing import CellSchedule, exclusion
from bamdp.lab.store import Store
from bamdp.lab.study import Study, StudyCell, parameters_text, prior_spec, varied_keys
from bamdp.lab.units import EVALUATE, FINISHED, TUNE, RunRecord, Unit, decode_trace
from bamdp.registry import entry_of
from bamdp.seeding import seeds
from bamdp.settings import cached_world
from bamdp.simulation import Run

QUICK_WARNING = "Quick run: few runs and short horizons, to see that it works. These numbers are not results."
COLUMNS = ("environment", "algorithm", "label", "phase", "configuration", "prior", "discount", "replicate", "horizon",
           "total", "ms_per_step", "cpu_seconds", "episodes", "mean_return", "success", "failure", "chosen",
           "excluded", "asked", "reproducible", "version", "machine", "finished", "trace")  # fmt: skip
NUMBERS = ("total", "ms_per_step", "cpu_seconds", "episodes", "mean_return", "success")


@dataclass(frozen=True, eq=False)
class Results:
    """The runs of a study, complete or not, with the reference values of its environments."""

    title: str
    runs: DataFrame
    ceilings: Mapping[str, Ceilings] = field(default_factory=dict)  # by environment
    quick: bool = False  # few runs, short horizons: to be marked as such wherever it is shown
    notes: tuple[str, ...] = ()

    def select(self, phase: str, environment: str | None = None, algorithm: str | None = None) -> DataFrame:
        """Return the runs of this phase, environment and algorithm; None stands for all."""
        runs = self.runs[self.runs.phase == phase]
        runs = runs if environment is None else runs[runs.environment == environment]
        return runs if algorithm is None else runs[runs.algorithm == algorithm]

    @property
    def environments(self) -> list[str]:
        """Labels, in order of appearance."""
        return list(self.runs.environment.unique())


def rewards(runs: DataFrame) -> NDArray[np.float64]:
    """Return the rewards [R, T] of these runs, which must have traces of one length."""
    return np.array([run.rewards for run in recorded_runs(runs)])


def recorded_runs(runs: DataFrame) -> list[Run]:
    """Return these runs as far as their traces tell: rewards and episodes."""
    return [decode_trace(trace) for trace in runs["trace"]]


def collect_results(study: Study, store: Store) -> Results:
    """Return the results of a study, complete or not; notes say what is missing."""
    rows: list[dict[str, Any]] = []
    notes, waiting = list(study.notes), []
    for cell in study.cells:
        schedule = CellSchedule(study, cell, store)
        missing = own_units(schedule.replay(), cell)
        rows += _cell_rows(schedule, store)
        label = f"{cell.algorithm} in {cell.environment.label}"
        if schedule.decided and schedule.chosen is None and cell.tuned:
            notes.append(
                f"{label}: every configuration left was excluded, so nothing was chosen or evaluated."
            )
        if missing or not schedule.decided:
            waiting.append(f"{label}: not complete, {len(missing)} or more runs are missing.")
    if len(waiting) > 5:
        waiting = [f"{len(waiting)} cells are not complete; see `bamdp lab status`."]
    known = {env.label: one for env in study.environments if (one := _ceilings_of(study, env)) is not None}
    return Results(study.title, new_runs_frame(rows), known, study.quick, (*notes, *waiting))


def own_units(units: Sequence[Unit], cell: StudyCell) -> list[Unit]:
    """Return those of the units that are of the cell's environment: cells that choose together wait for others, too."""
    return [unit for unit in units if unit.setting.env == cell.environment.env]


def new_runs_frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return a DataFrame of these rows, with the labels of what they evaluate."""
    columns = {name: [row.get(name) for row in rows] for name in COLUMNS}
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["phase"] == EVALUATE:
            found.setdefault((row["environment"], row["algorithm"]), []).append(row["configuration"])
    varied = {key: varied_keys(configurations) for key, configurations in found.items()}
    columns["label"] = [_label(row, varied.get((row["environment"], row["algorithm"]), [])) for row in rows]
    return DataFrame(columns).astype({**dict.fromkeys(NUMBERS, float), "chosen": bool})


def _label(row: Mapping[str, Any], varied: Sequence[str]) -> str:
    differing = {key: row["configuration"].get(key, "–") for key in varied}
    return f"{row['algorithm']} ({parameters_text(differing)})" if differing else row["algorithm"]


def _cell_rows(schedule: CellSchedule, store: Store) -> Iterator[dict[str, Any]]:
    """Yield the runs of a cell that are in the store; of the evaluation only those of what tuning has chosen."""
    cell = schedule.cell
    for number in range(len(cell.configurations)):
        planned: dict[str, list[Unit]] = {}
        if cell.tuned and cell.tuning is not None:
            planned[TUNE] = cell.tuning_units(number, range(cell.tuning.runs))
        if not cell.tuned or number == schedule.chosen:
            planned[EVALUATE] = cell.evaluation_units(number)
        for phase, units in planned.items():
            stored = store.records((unit.id for unit in units), traces=True)
            records = [stored[unit.id] for unit in units if unit.id in stored]
            excluded = schedule.excluded.get(number, "")
            if phase == EVALUATE and records and not excluded:
                excluded = exclusion(records, cell.environment.limit)
            for record in records:
                yield _row(cell, number, record) | {
                    "chosen": number == schedule.chosen,
                    "excluded": excluded,
                    "asked": cell.environment.runs if phase == EVALUATE else 0,
                }


def _row(cell: StudyCell, number: int, record: RunRecord) -> dict[str, Any]:
    configuration = cell.configurations[number]
    uses_prior: bool = entry_of(cell.planner).cls.uses_prior  # type: ignore[attr-defined]
    return vars(record) | {
        "environment": cell.environment.label,
        "algorithm": cell.algorithm,
        "configuration": dict(configuration),
        "prior": str(prior_spec(configuration)) if uses_prior else "–",
        "discount": str(configuration["discount"]),
        "horizon": cell.environment.steps,
        "total": record.total if record.status == FINISHED else np.nan,
        "failure": record.error,
        "reproducible": bool(record.reproducible),
    }


def _ceilings_of(study: Study, environment: Any) -> Ceilings | None:
    """Return the reference values beside an environment's runs; None where no model is known.

    The discounted optimum is for the first discount of the environment's first configuration. Where the model of a run
    is drawn at random, the values are of the models that the runs have drawn.
    """
    cell = next(cell for cell in study.cells if cell.environment == environment)
    phase, runs = EVALUATE, environment.runs
    if not runs and study.tuning is not None:
        phase, runs = TUNE, study.tuning.runs
    discount = cell.settings[0].first_discount
    return _known_ceilings(environment.env, discount, environment.steps, study.seed, phase, runs)


@lru_cache(maxsize=64)
def _known_ceilings(
    env: Any, discount: float, steps: int, seed: int, phase: str, runs: int
) -> Ceilings | None:
    world = cached_world(env)
    if not isinstance(world, Environment):
        return None
    drawn = [seeds(seed, replicate, tuning=phase == TUNE)[0] for replicate in range(runs)]
    return ceilings(world, discount, steps, drawn)


def export_runs(results: Results, path: Path) -> None:
    """Write the runs as CSV, with a column for each parameter."""
    configurations = results.runs.configuration
    keys = dict.fromkeys(key for one in configurations for key in one)
    parameters = {f"parameter.{key}": [one.get(key) for one in configurations] for key in keys}
    results.runs.drop(columns=["trace", "configuration"]).assign(**parameters).to_csv(path, index=False)


def study_status(study: Study, store: Store) -> list[dict[str, Any]]:
    """Return how far each cell has come; what is missing is known as far as tuning has decided."""
    cells = []
    for cell in study.cells:
        schedule = CellSchedule(study, cell, store)
        missing = own_units(schedule.replay(), cell)
        rows = new_runs_frame(list(_cell_rows(schedule, store)))
        later = 0 if schedule.decided else cell.runs  # the evaluation of what will be chosen
        pace = rows.ms_per_step[rows.failure == ""].mean() / 1e3
        steps = (len(missing) + later) * cell.environment.steps
        failed = rows[rows.failure != ""]
        errors = failed[failed.phase == EVALUATE].failure
        varied = varied_keys(cell.configurations)
        chosen = {} if schedule.chosen is None else cell.configurations[schedule.chosen]
        cells.append(
            {
                "environment": cell.environment.label,
                "algorithm": cell.algorithm,
                "done": len(rows) - len(failed),
                "missing": len(missing) + later,
                "failed": len(failed),
                "error": errors.iloc[0] if len(errors) else "",
                "chosen": parameters_text({key: chosen[key] for key in varied if key in chosen}),
                "complete": schedule.decided and not missing,
                "cpu_seconds_left": None if np.isnan(pace) and steps else float(np.nan_to_num(pace) * steps),
            }
        )
    return cells
