"""Runs of a study as one tidy pandas DataFrame.

Each row is one run, with these columns:

- ``environment``, ``algorithm`` and ``label`` (the algorithm and the parameters that distinguish its evaluated
  configurations);
- ``phase`` (``tune`` or ``evaluate``), ``configuration`` (a dictionary), ``prior`` and ``discount`` as text,
  ``replicate`` and ``horizon``;
- ``total``, ``ms_per_step``, ``cpu_seconds``, ``episodes``, ``mean_return`` and ``success``;
- ``failure``: why the run failed or was stopped, in which case its total is NaN; otherwise empty;
- ``chosen``: whether tuning selected the configuration, or no choice was necessary;
- ``excluded``: why the configuration could not be selected;
- ``asked``: the number of runs in a complete evaluation;
- ``reproducible``, ``version``, ``machine`` (JSON) and ``finished``;
- ``trace``: the rewards as bytes, or None if they were not stored.

:func:`rewards` decodes the traces of selected rows.
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

import bamdp
from bamdp.envs.ceilings import Ceilings, ceilings
from bamdp.envs.environment import Environment
from bamdp.lab.runner import CellSchedule, exclusion
from bamdp.lab.space import parameters_text, prior_spec, varied_keys
from bamdp.lab.store import EVALUATE, FINISHED, TUNE, RunRecord, Store, Unit, decode_trace, measurements
from bamdp.lab.study import Study, StudyCell
from bamdp.registry import entry_of, label
from bamdp.runs import Batch, Setting, cached_world
from bamdp.seeding import seeds
from bamdp.simulation import Run

QUICK_WARNING = "Quick run: few runs and short horizons, to see that it works. These numbers are not results."
COLUMNS = ("environment", "algorithm", "label", "phase", "configuration", "prior", "discount", "replicate", "horizon",
           "total", "ms_per_step", "cpu_seconds", "episodes", "mean_return", "success", "failure", "chosen",
           "excluded", "asked", "reproducible", "version", "machine", "finished", "trace")  # fmt: skip
NUMBERS = ("total", "ms_per_step", "cpu_seconds", "episodes", "mean_return", "success")


@dataclass(frozen=True, eq=False)
class Results:
    """Runs of a study, complete or not, with the reference values of its environments."""

    title: str
    runs: DataFrame
    ceilings: Mapping[str, Ceilings] = field(default_factory=dict)  # environment: reference values
    quick: bool = False  # few runs and short horizons; flagged wherever results are shown
    notes: tuple[str, ...] = ()

    def select(self, phase: str, environment: str | None = None, algorithm: str | None = None) -> DataFrame:
        """Return the runs for this phase, environment and algorithm; None matches everything."""
        runs = self.runs[self.runs.phase == phase]
        runs = runs if environment is None else runs[runs.environment == environment]
        return runs if algorithm is None else runs[runs.algorithm == algorithm]

    @property
    def environments(self) -> list[str]:
        """Environment labels in order of appearance."""
        return list(self.runs.environment.unique())


def rewards(runs: DataFrame) -> NDArray[np.float64]:
    """Return the rewards [R, T] of these runs, whose traces must have equal lengths."""
    return np.array([run.rewards for run in recorded_runs(runs)])


def recorded_runs(runs: DataFrame) -> list[Run]:
    """Reconstruct the rewards and episodes of these runs from their traces."""
    return [decode_trace(trace) for trace in runs["trace"]]


def collect_results(study: Study, store: Store) -> Results:
    """Return the results of a study, complete or not, with notes on missing runs."""
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


def batch_results(batches: Mapping[str, Batch]) -> Results:
    """Return batches of runs in one environment, by label, as the results of a study that stored nothing."""
    rows = []
    for name, batch in batches.items():
        setting = batch.setting
        env = setting.env if isinstance(setting.env, str) else cached_world(setting.env).name
        shared = {
            "environment": env,
            "algorithm": name,
            "phase": EVALUATE,
            "configuration": {"planner": label(setting.planner), "rewards": label(setting.rewards)},
            "prior": label(setting.prior) if getattr(setting.planner, "uses_prior", True) else "–",
            "discount": str(setting.discount),
            "horizon": setting.steps,
            "failure": "",
            "chosen": True,
            "excluded": "",
            "asked": len(batch.runs),
            "reproducible": batch.reproducible,
            "version": bamdp.__version__,
        }
        rows += [shared | {"replicate": r} | measurements(run) for r, run in enumerate(batch.runs)]
    known = _known_ceilings(setting, len(batch.runs))
    title = f"{env}: {', '.join(batches)}"
    return Results(title, new_runs_frame(rows), {} if known is None else {env: known})


def own_units(units: Sequence[Unit], cell: StudyCell) -> list[Unit]:
    """Return the units of the cell's own environment; cells sharing a choice also wait for other environments'."""
    return [unit for unit in units if unit.setting.env == cell.environment.env]


def new_runs_frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return a DataFrame of these rows, adding labels for the evaluated configurations."""
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
    """Yield a cell's stored runs; evaluation runs are limited to the configuration selected by tuning."""
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
    uses_prior: bool = entry_of(cell.planner).cls.uses_prior
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
    """Return the reference values for an environment's runs, or None if no model is known.

    The discounted optimum uses the first discount of the environment's first configuration. If each run draws its
    model at random, the values are those of the drawn models.
    """
    cell = next(cell for cell in study.cells if cell.environment == environment)
    if not environment.runs and study.tuning is not None:
        return _known_ceilings(cell.settings[0], study.tuning.runs, tuning=True)
    return _known_ceilings(cell.settings[0], environment.runs)


def _known_ceilings(setting: Setting, runs: int, tuning: bool = False) -> Ceilings | None:
    if not isinstance(cached_world(setting.env), Environment):
        return None
    return _ceilings_of_runs(setting.env, setting.first_discount, setting.steps, setting.seed, runs, tuning)


@lru_cache(maxsize=64)
def _ceilings_of_runs(env: Any, discount: float, steps: int, seed: int, runs: int, tuning: bool) -> Ceilings:
    drawn = [seeds(seed, replicate, tuning=tuning)[0] for replicate in range(runs)]
    return ceilings(cached_world(env), discount, steps, drawn)  # type: ignore[arg-type]


def export_runs(results: Results, path: Path) -> None:
    """Write the runs to CSV, with one column per parameter."""
    configurations = results.runs.configuration
    keys = dict.fromkeys(key for one in configurations for key in one)
    parameters = {f"parameter.{key}": [one.get(key) for one in configurations] for key in keys}
    results.runs.drop(columns=["trace", "configuration"]).assign(**parameters).to_csv(path, index=False)


def study_status(study: Study, store: Store) -> list[dict[str, Any]]:
    """Return the progress of each cell; missing runs are counted as far as tuning has been decided."""
    cells = []
    for cell in study.cells:
        schedule = CellSchedule(study, cell, store)
        missing = own_units(schedule.replay(), cell)
        rows = new_runs_frame(list(_cell_rows(schedule, store)))
        later = 0 if schedule.decided else cell.runs  # evaluation runs pending a choice
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
