"""Runs as one flat table, a row for each: CSV, and Parquet with the rewards of every step."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bamdp.lab.collect import wanted
from bamdp.lab.portable import replaced
from bamdp.lab.store import Store
from bamdp.lab.study import Study
from bamdp.lab.units import DONE

FIRST = ("environment", "algorithm", "phase", "replicate", "status", "steps", "total", "ms_per_step", "cpu_seconds",
         "error", "time_limit", "reproducible", "version", "finished", "id")  # fmt: skip


def rows(study: Study, store: Store) -> Iterator[dict[str, Any]]:
    """All runs of a study that the store has; parameters under their names, those that do not apply left out."""
    for cell in study.cells:
        for part in wanted(study, cell):
            records = store.records(unit.id for unit in part.units)
            for unit in part.units:
                if unit.id in records:
                    values = asdict(records[unit.id])
                    labels = {"environment": cell.place.label, "algorithm": cell.algorithm}
                    yield {**labels, **{key: values[key] for key in FIRST if key in values}} | {
                        f"parameter.{key}": value for key, value in cell.configurations[part.number].items()
                    }


def write_csv(study: Study, store: Store, path: str | Path) -> int:
    """Returns the number of runs."""
    found = list(rows(study, store))
    with replaced(Path(path)) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns(found))
        writer.writeheader()
        writer.writerows(found)
    return len(found)


def write_parquet(study: Study, store: Store, path: str | Path) -> int:
    """With a column ``rewards`` of lists, step by step; returns the number of runs."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError("Parquet needs pyarrow; install it with: pip install 'bamdp[parquet]'") from None
    found = list(rows(study, store))
    named = {name: _one_type([row.get(name) for row in found]) for name in columns(found)}
    traces = [_rewards(store, row) for row in found]
    with replaced(Path(path)) as temporary:
        table = pyarrow.table({**named, "rewards": pyarrow.array(traces, pyarrow.list_(pyarrow.float64()))})
        pyarrow.parquet.write_table(table, temporary, compression="zstd")
    return len(found)


def _rewards(store: Store, row: dict[str, Any]) -> list[float] | None:
    """Step by step; None of a run that was not finished, or came from a thin file."""
    held = row["status"] == DONE and store.has_trace(row["id"])
    return store.traces([row["id"]])[0].tolist() if held else None


def columns(found: list[dict[str, Any]]) -> list[str]:
    """All that some row has, in order of appearance."""
    return list(dict.fromkeys([*FIRST, *(name for row in found for name in row)]))


def _one_type(values: list[Any]) -> list[Any]:
    """Parameters such as depth may be a number here and a word there: then all are words."""
    words = any(isinstance(value, str) for value in values)
    return [None if value is None else str(value) if words else value for value in values]
