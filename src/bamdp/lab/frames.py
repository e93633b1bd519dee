"""Runs as one tidy pandas DataFrame, whether they come from a store or from an exported file.

Each row is a run of a study: ``study``, ``environment``, ``algorithm``, ``phase`` (``tune`` or ``evaluate``),
``configuration`` (a dictionary), ``replicate``, ``horizon``, ``total``, ``ms_per_step``, ``cpu_seconds``, ``failure``
(empty, or why the run failed or was stopped; its total is NaN), ``chosen`` (whether tuning chose the configuration, or
nothing was to be chosen), ``excluded`` (why the configuration could not be chosen), ``asked`` (runs of a complete
evaluation), ``reproducible``, ``version``, ``machine`` (JSON), ``finished``, and ``trace``: the rewards as bytes, None
where they were not kept. :func:`rewards` and :func:`recorded_runs` read the traces of selected rows.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.choosing import CellSchedule, exclusion, planned_runs
from bamdp.lab.results import EVALUATE
from bamdp.lab.store import Store
from bamdp.lab.study import Study
from bamdp.lab.units import FINISHED, canonical_json, decode_trace
from bamdp.simulation import Run, new_frame

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("study", "environment", "algorithm", "phase", "configuration", "replicate", "horizon", "total",
           "ms_per_step", "cpu_seconds", "failure", "chosen", "excluded", "asked",
           "reproducible", "version", "machine", "finished", "trace")  # fmt: skip
FILE_ENDING, INDEX_ENDING = ".runs.xz", ".index.xz"


def runs_frame(store: Store, study: Study) -> DataFrame:
    """Return the runs of a study that are in the store."""
    return _frame(row for cell in study.cells for row in _cell_rows(store, study, cell))


def rewards(frame: DataFrame) -> NDArray[np.float64]:
    """Return the rewards [R, T] of these rows, which must have traces of one length."""
    return np.array([run.rewards for run in recorded_runs(frame)])


def recorded_runs(frame: DataFrame) -> list[Run]:
    """Return the runs of these rows as far as traces tell: rewards and episodes."""
    return [decode_trace(trace) for trace in frame["trace"]]


def read_export(path: str | Path, study: str | None = None) -> DataFrame:
    """Return the runs of an exported file, labelled by the index beside it.

    The index says which environment, algorithm and configuration each setting is, what tuning chose, and in its first
    line, which becomes ``frame.attrs``, reference values and seeds, as the version that ran the study had them. A file
    can hold runs of several studies; ``study`` names the one to read, by default that of the file's own name.
    """
    path = Path(path)
    name = study or path.name.removesuffix(FILE_ENDING)
    head, *samples = _json_lines(path.with_name(name.rpartition("/")[2] + INDEX_ENDING))
    lines = _json_lines(path)
    machines = {line["machine"]: canonical_json(line["facts"]) for line in lines if "machine" in line}
    runs = {(line["of"], line["phase"], line["replicate"]): line for line in lines if "run" in line}
    frame = _frame(
        {"study": head["study"], **sample, **_exported(runs[key]), "machine": machines[runs[key]["on"]]}
        for sample in samples
        for replicate in range(*sample["replicates"])
        if (key := (sample["setting"], sample["phase"], replicate)) in runs
    )
    frame.attrs.update(head)
    return frame


def _frame(rows: Iterator[dict[str, Any]]) -> DataFrame:
    listed = list(rows)
    frame = new_frame({name: [row[name] for row in listed] for name in COLUMNS})
    return frame.astype({"total": float, "ms_per_step": float, "cpu_seconds": float, "chosen": bool})


def _cell_rows(store: Store, study: Study, cell: Any) -> Iterator[dict[str, Any]]:
    schedule = CellSchedule(study, cell, store)
    while (batch := schedule.advance()) is not None:
        if len(store.records(unit.id for unit in batch)) < len(batch):
            break
    for planned in planned_runs(cell, schedule):
        ids = [unit.id for unit in planned.units]
        records, traces, machines = store.records(ids), store.encoded_traces(ids), store.machine_of(ids)
        evaluated = planned.phase == EVALUATE
        excluded = schedule.excluded.get(planned.number, "")
        if evaluated and not excluded:
            excluded = exclusion(list(records.values()), cell.environment.limit) if records else ""
        for run in (run for run in ids if run in records):
            record = records[run]
            yield {
                **vars(record),
                "study": study.title,
                "environment": cell.environment.label,
                "algorithm": cell.algorithm,
                "configuration": dict(cell.configurations[planned.number]),
                "horizon": planned.steps,
                "total": record.total if record.status == FINISHED else np.nan,
                "failure": record.error,
                "chosen": planned.number == schedule.chosen,
                "excluded": excluded,
                "asked": cell.environment.runs if evaluated else 0,
                "machine": canonical_json(machines[run]),
                "trace": traces.get(run),
            }


def _exported(line: Mapping[str, Any]) -> dict[str, Any]:
    finished = line["status"] == FINISHED
    trace = line["rewards"]
    return {
        **line,
        "total": line["total"] if finished else np.nan,
        "failure": line["error"],
        "trace": None if trace is None else base64.b64decode(trace),
    }


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a file of runs, or is damaged ({error})") from None
