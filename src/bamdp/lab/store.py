"""Run store: one SQLite table, with one row and one commit per run.

Each run is stored under its identity on completion, so that killing a process loses no committed run and no run is
stored twice. In WAL mode, readers do not wait for writers. Several processes can share the file; if two of them
execute the same run, the first result is kept. Failed and stopped runs are stored too. A stopped run is replaced when
it is repeated with a wider time limit.

``PRAGMA user_version`` holds the version of the table. Files of another version are rejected. Damaged files are also
rejected, since SQLite checks the file when it is opened.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path

from bamdp.lab.units import FINISHED, OVER_LIMIT, RunRecord, Unit

WRITER_TIMEOUT = 60.0  # seconds to wait for another writer
APPLICATION_ID = 0x62616D64  # "bamd"
SCHEMA_VERSION = 5
TYPES = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL", "bytes": "BLOB"}
COLUMNS = [f.name for f in fields(RunRecord)]
SCHEMA = f"""CREATE TABLE runs ({", ".join(f"{f.name} {TYPES[str(f.type).split()[0]]}" for f in fields(RunRecord))},
    PRIMARY KEY (id))"""
INSERT = f"""INSERT INTO runs ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in COLUMNS)}
    WHERE runs.status = '{OVER_LIMIT}' AND runs.time_limit < excluded.time_limit"""


class Store:
    """Open store, usable as a context manager; a missing file is created unless ``create`` is False."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise FileNotFoundError(2, "there is no store yet; run the study first", str(self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self.connection = sqlite3.connect(self.path, timeout=WRITER_TIMEOUT, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self.connection.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def records(self, ids: Iterable[str], *, traces: bool = False) -> dict[str, RunRecord]:
        """Return the stored runs among ``ids``, by identity, with traces only if requested."""
        names = COLUMNS if traces else [name for name in COLUMNS if name != "trace"]
        query = f"SELECT {', '.join(names)} FROM runs WHERE id IN (SELECT value FROM json_each(?))"
        with self._explained():
            rows = self.connection.execute(query, (json.dumps(list(ids)),)).fetchall()
        return {row[0]: RunRecord(**dict(zip(names, row))) for row in rows}

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that are not stored or were stopped under a tighter limit."""
        stored = self.records(unit.id for unit in units)
        return [
            unit
            for unit in units
            if (one := stored.get(unit.id)) is None
            or (one.status == OVER_LIMIT and one.time_limit < unit.limit)
        ]

    def commit(self, record: RunRecord) -> None:
        """Store a run unless it is already present."""
        with self._explained():
            self.connection.execute(INSERT, astuple(record))

    def forget_failed(self, ids: Iterable[str]) -> None:
        """Delete failed and stopped runs so that they will be repeated."""
        with self._explained():
            self.connection.executemany(
                f"DELETE FROM runs WHERE id = ? AND status != '{FINISHED}'", [(one,) for one in ids]
            )

    def __len__(self) -> int:
        return int(self.connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    def _prepare(self) -> None:
        """Create the table in a new file; reject damaged files and those of another kind or version."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")  # two processes may create the file simultaneously
        with self.connection:
            version = execute("PRAGMA user_version").fetchone()[0]
            kind = execute("PRAGMA application_id").fetchone()[0]
            if kind == version == execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                execute(SCHEMA)
                execute(f"PRAGMA application_id = {APPLICATION_ID}")
                execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif kind != APPLICATION_ID:
                raise ValueError(f"{self.path} is a database of something else; choose another file")
            elif version != SCHEMA_VERSION:
                raise ValueError(
                    f"{self.path} was written by another version of bamdp (format {version}, this one has "
                    f"{SCHEMA_VERSION}); choose another file, or use that version"
                )
        self._use_write_ahead_log()
        execute("PRAGMA synchronous = NORMAL")
        wrong = [line for (line,) in execute("PRAGMA quick_check") if line != "ok"]
        if wrong:
            raise sqlite3.DatabaseError(" ".join(wrong[0].split()))

    def _use_write_ahead_log(self) -> None:
        """Switch to a write-ahead log. SQLite refuses this while another connection switches, without waiting."""
        until = time.monotonic() + WRITER_TIMEOUT
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert SQLite errors into one-line messages that suggest a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            kept = "free some space or make it writable, and repeat the command: completed runs are kept"
            raise OSError(None, f"cannot use the store: {error}; {kept}", str(self.path)) from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise ValueError(f"{self.path} is not a store of bamdp; choose another file") from None
            remedy = "move the file away and run the study again"
            raise OSError(None, f"the store is damaged ({error}); {remedy}", str(self.path)) from None
