"""Exports of a study's runs: a small file to commit beside the study and to continue from elsewhere, CSV and Parquet.

**Files of runs.** The file is text, one JSON object per line, compressed (xz): a head that says what it is, then the
settings, machines and decisions that are needed, then the runs in order of their identities, traces included. The same
runs give the same bytes. An import computes every identity again from its facts and every total from its rewards, and
the last line holds a digest of all others, so that a damaged or edited file is refused. A *thin* file leaves out the
traces of tuning runs, which nothing is drawn from: their totals, times and the decisions based on them are there, so a
study continues from it all the same.

**Files as stores.** :func:`open_exports` imports files into temporary stores to read results from. Studies share runs:
those must have the same rewards in all files, but took their own time in each. So a study is read from the files that
are named after it, where there are any. What the files do not have is missing from the results, which say so.

**Tables of runs.** CSV and Parquet files have a row for each run; Parquet has the rewards of every step, too.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import lzma
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bamdp.lab.choosing import CellSchedule, planned_runs, study_units
from bamdp.lab.results import TUNE
from bamdp.lab.store import RECORD_FIELDS, Store, is_plausible
from bamdp.lab.study import Study
from bamdp.lab.units import FINISHED, RUN_STATUSES, Unit, canonical_json, decode_trace, digest, run_identity

FILE_KIND, FILE_VERSION = "bamdp runs", 3
READABLE_VERSIONS = (2, 3)  # traces of 2 do not tell of episodes
FILE_ENDING = ".runs.xz"
FILE_DIGEST = "digest"  # key of the last line: a digest of all lines before it

TABLE_COLUMNS = ("environment", "algorithm", "phase", "replicate", "status", "steps", "total", "ms_per_step",
                 "cpu_seconds", "error", "time_limit", "reproducible", "version", "finished", "id")  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    new: int
    known: int  # were there already, with the same total
    other: int  # were there already with another total; those that were there were kept
    settings: frozenset[str] = frozenset()  # digests of the settings that the runs are of


# Files of runs


def export_runs(study: Study, store: Store, path: str | Path, *, thin: bool = False) -> int:
    """Write all runs of a study that the store has, and return how many; ``thin`` leaves out traces of tuning."""
    units = {unit.id: unit for _, unit in study_units(study)}
    keys = [CellSchedule(study, cell, store).key for cell in study.cells]
    store.find_misnamed()
    head = {"kind": FILE_KIND, "version": FILE_VERSION, "title": study.title, "study": study.source}
    count, sha = 0, hashlib.sha256()
    with replacing(Path(path)) as temporary, lzma.open(temporary, "wt", encoding="utf-8") as file:
        for entry in chain([head], _entries(store, units, keys, thin)):
            count += "run" in entry
            sha.update(_json_line(entry).encode())
            file.write(_json_line(entry))
        file.write(_json_line({FILE_DIGEST: sha.hexdigest()}))
    return count


def import_runs(store: Store, path: str | Path) -> Imported:
    """Put the runs of a file into the store; all of them, or none if something is wrong with the file."""
    entries = list(_read_entries(Path(path)))
    named = [
        (entry.get("setting", entry.get("machine")), entry) for entry in entries if isinstance(entry, dict)
    ]
    facts = {name: entry.get("facts") for name, entry in named if name is not None}
    if not all(_is_sound(entry, facts) for entry in entries):
        raise ValueError(
            f"{path}: an entry does not agree with its name or its rewards; the file is damaged or edited"
        )
    return _insert_entries(store, entries)


def count_shared_settings(study: Study, settings: frozenset[str]) -> int:
    """Return how many of these settings the study has."""
    return len({unit.setting_id for _, unit in study_units(study)} & settings)


def _entries(
    store: Store, units: Mapping[str, Unit], cells: list[str], thin: bool
) -> Iterator[dict[str, Any]]:
    """Yield the entries of the file, those first that later ones refer to."""
    records = store.records(units)
    settings = {units[run].setting_id: units[run].facts for run in records}
    for setting in sorted(settings):
        yield {"setting": setting, "facts": settings[setting]}
    machine_of = store.machine_of(records)
    names = {run: digest(facts) for run, facts in machine_of.items()}
    machines = {names[run]: facts for run, facts in machine_of.items()}
    for name in sorted(machines):
        yield {"machine": name, "facts": machines[name]}
    for cell in sorted(set(cells)):
        for number, facts in sorted(store.decisions(cell).items()):
            yield {"decision": cell, "round": number, "facts": facts}
    for run in sorted(records):
        values = asdict(records[run])
        del values["id"]
        trace = None if thin and values["phase"] == TUNE else store.encoded_traces([run]).get(run)
        yield {
            "run": run,
            "of": values.pop("setting"),
            **values,
            "on": names[run],
            "rewards": None if trace is None else base64.b64encode(trace).decode(),
        }


def _insert_entries(store: Store, entries: list[dict[str, Any]]) -> Imported:
    machines = {entry["machine"]: canonical_json(entry["facts"]) for entry in entries if "machine" in entry}
    runs = [entry for entry in entries if "run" in entry]
    stored = store.records(entry["run"] for entry in runs)
    new = [entry for entry in runs if entry["run"] not in stored]
    with store.transaction():
        for entry in entries:
            if "setting" in entry:
                store.insert_setting(entry["setting"], entry["facts"])
            elif "decision" in entry:
                store.insert_decision(entry["decision"], entry["round"], entry["facts"])
        for entry in new:
            values = {**entry, "id": entry["run"], "setting": entry["of"]}
            trace = base64.b64decode(entry["rewards"] or "")
            store.insert(values, machines[entry["on"]], trace)
    other = sum(entry["run"] in stored and stored[entry["run"]].total != entry["total"] for entry in runs)
    settings = frozenset(entry["of"] for entry in runs)
    return Imported(len(new), len(runs) - len(new) - other, other, settings)


def _read_entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a file of runs, or is damaged ({error}); export it again") from None
    head = lines[0] if lines and isinstance(lines[0], dict) else {}
    if head.get("kind") != FILE_KIND:
        raise ValueError(f"{path} is not a file of runs; `bamdp lab export` writes one")
    if head.get("version") not in READABLE_VERSIONS:
        raise ValueError(
            f"{path} was written by another bamdp (version {head.get('version')} of the format, this one reads "
            f"{' and '.join(map(str, READABLE_VERSIONS))}); upgrade, or export it again"
        )
    expected = hashlib.sha256("".join(map(_json_line, lines[:-1])).encode()).hexdigest()
    if not isinstance(lines[-1], dict) or lines[-1].get(FILE_DIGEST) != expected:
        raise ValueError(
            f"{path}: its last line does not agree with the others; the file is damaged or edited"
        )
    yield from lines[1:-1]


def _is_sound(entry: Any, facts: Mapping[str, Any]) -> bool:
    """Return whether an entry agrees with its name; ``facts`` are those of settings and machines by their names."""
    try:
        if "run" in entry:
            return _is_sound_run(entry, facts)
        name = entry.get("setting", entry.get("machine"))
        return "decision" in entry if name is None else digest(entry["facts"]) == name
    except (KeyError, TypeError, AttributeError, ValueError, zlib.error):
        return False


def _is_sound_run(entry: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    name = run_identity(entry["of"], entry["phase"], entry["replicate"])
    complete = {"run", "of", "on", "rewards", *RECORD_FIELDS} - {"id", "setting"} <= set(entry)
    known = entry["of"] in facts and entry["on"] in facts and entry["status"] in RUN_STATUSES
    if not complete or not known or entry["run"] != name:
        return False
    thin = entry["rewards"] is None and entry["phase"] == TUNE
    if entry["status"] != FINISHED or thin:
        return True
    return is_plausible(FINISHED, entry["steps"], entry["total"], base64.b64decode(entry["rewards"]))


def _json_line(entry: Mapping[str, Any]) -> str:
    return canonical_json(entry) + "\n"


# Files of runs as stores


class ExportedRuns:
    """Stores with the runs of exported files: of all files together, and of each study's files alone."""

    def __init__(self, paths: Sequence[Path], stack: ExitStack) -> None:
        self._paths, self._stack = paths, stack
        self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="bamdp-")))
        self.together = self._imported(paths, "together")

    def store_of(self, study: str) -> Store:
        """Return the runs of the files named after a study, such as dss2020/fair; of all files if none is."""
        named = [path for path in self._paths if path.name == export_name(study)]
        return self.together if named in ([], self._paths) else self._imported(named, study.replace("/", "-"))

    def _imported(self, paths: Sequence[Path], name: str) -> Store:
        store = self._stack.enter_context(Store(self._folder / f"{name}.sqlite"))
        for path in paths:
            contradictions = import_runs(store, path).other
            if contradictions:
                raise ValueError(
                    f"{path} has {contradictions} runs that another file has with other rewards; "
                    "export both studies again"
                )
        return store


@contextmanager
def open_exports(paths: Sequence[str | Path]) -> Iterator[ExportedRuns]:
    """Open the runs of these files, and of all files in these folders, for the duration of a ``with`` block."""
    with ExitStack() as stack:
        yield ExportedRuns([file for path in paths for file in export_files(Path(path))], stack)


def export_name(study: str) -> str:
    """Return the file name of a study's exported runs, such as fair.runs.xz for dss2020/fair."""
    return study.rpartition("/")[2] + FILE_ENDING


def export_files(path: Path) -> list[Path]:
    """Return the file itself, or the exported files of a folder; no such file is an error."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return [path]
    found = sorted(path.glob(f"*{FILE_ENDING}"))
    if not found:
        raise ValueError(f"{path} has no file that ends in {FILE_ENDING}; `bamdp lab export` writes them")
    return found


# Tables of runs


def write_csv(study: Study, store: Store, path: str | Path) -> int:
    """Write a CSV file with a row for each run, and return the number of runs."""
    rows = list(_run_rows(study, store))
    with replacing(Path(path)) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _column_names(rows))
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def write_parquet(study: Study, store: Store, path: str | Path) -> int:
    """Write a Parquet file with a column ``rewards`` of lists, per step, and return the number of runs."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError("Parquet needs pyarrow; install it with: pip install pyarrow") from None
    rows = list(_run_rows(study, store))
    columns = {name: _same_type([row.get(name) for row in rows]) for name in _column_names(rows)}
    traces = [_row_rewards(store, row) for row in rows]
    with replacing(Path(path)) as temporary:
        table = pyarrow.table({**columns, "rewards": pyarrow.array(traces, pyarrow.list_(pyarrow.float64()))})
        pyarrow.parquet.write_table(table, temporary, compression="zstd")
    return len(rows)


def _run_rows(study: Study, store: Store) -> Iterator[dict[str, Any]]:
    """Yield all runs of a study that the store has; parameters that do not apply are left out."""
    store.find_misnamed()
    for cell in study.cells:
        labels = {"environment": cell.environment.label, "algorithm": cell.algorithm}
        for planned in planned_runs(cell):
            records = store.records(unit.id for unit in planned.units)
            parameters = {f"parameter.{k}": v for k, v in cell.configurations[planned.number].items()}
            for unit in planned.units:
                if unit.id in records:
                    values = asdict(records[unit.id])
                    yield labels | {key: values[key] for key in TABLE_COLUMNS if key in values} | parameters


def _row_rewards(store: Store, row: dict[str, Any]) -> list[float] | None:
    """Return the rewards of each step; None of a run that was not finished, or came from a thin file."""
    run = row["id"]
    encoded = store.encoded_traces([run]).get(run) if row["status"] == FINISHED else None
    return None if encoded is None else decode_trace(encoded).rewards.tolist()


def _column_names(rows: list[dict[str, Any]]) -> list[str]:
    """Return all keys that some row has, in order of appearance."""
    return list(dict.fromkeys([*TABLE_COLUMNS, *(name for row in rows for name in row)]))


def _same_type(values: list[Any]) -> list[Any]:
    """Return the values of a column as texts if some are: parameters such as depth may be a number or a word."""
    texts = any(isinstance(value, str) for value in values)
    return [None if value is None else str(value) if texts else value for value in values]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write to, which replaces ``path`` only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
