"""The store of runs: one SQLite file, written by the drivers of a study and read by anybody meanwhile.

**Runs.** The file is in WAL mode, so that readers and the writer do not wait for each other; every run is committed by
itself under its identity, so that a killed process loses nothing that was committed and no run is stored twice. Runs
that failed or were stopped are records like others.

**Claims.** A driver is a process that runs a study; several can share one. A driver claims a run before it begins and
gives the claim up with the result; it writes a heartbeat into the store. Another driver leaves claimed runs alone,
unless the claimant is dead: its process is gone from this machine, or there was no heartbeat for a minute. Should a
driver that was thought dead come back, a run is done twice, but stored once.

**Schema.** The tables are the result of a list of migrations; a file of any earlier version is migrated when it is
opened. ``PRAGMA user_version`` counts the migrations that a file has behind it, ``application_id`` marks it as ours. A
migration that has been released is never changed: what comes later is a new one.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.units import OVER_LIMIT, RunOutcome, Unit, canonical_json, decode_rewards

WRITER_TIMEOUT = 60.0  # seconds to wait for another writer
IDS_PER_QUERY = 500
HEARTBEAT = 5.0  # seconds between two heartbeats
MAX_SILENCE = 60.0  # seconds without a heartbeat after which a driver is taken for dead

APPLICATION_ID = 0x62616D64  # "bamd"
MIGRATIONS = (
    # 1: runs and their settings
    """
    CREATE TABLE settings (id TEXT PRIMARY KEY, facts TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        setting TEXT NOT NULL REFERENCES settings (id),
        phase TEXT NOT NULL,
        replicate INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'over')),
        steps INTEGER NOT NULL,
        total REAL NOT NULL,
        ms_per_step REAL NOT NULL,
        cpu_seconds REAL NOT NULL,
        error TEXT NOT NULL,
        time_limit REAL NOT NULL,
        reproducible INTEGER NOT NULL,
        machine INTEGER NOT NULL REFERENCES machines (id),
        version TEXT NOT NULL,
        finished TEXT NOT NULL,
        UNIQUE (setting, phase, replicate)
    ) WITHOUT ROWID;
    CREATE TABLE traces (run TEXT PRIMARY KEY REFERENCES runs (id), rewards BLOB NOT NULL);
    """,
    # 2: drivers with their claims, and the decisions of tuning
    """
    CREATE TABLE drivers (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, beat REAL NOT NULL);
    CREATE TABLE claims (run TEXT PRIMARY KEY, driver TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE decisions (
        cell TEXT NOT NULL, round INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (cell, round)
    ) WITHOUT ROWID;
    """,
)


@dataclass(frozen=True)
class RunRecord:
    """A run in the store, without its trace."""

    id: str
    setting: str
    phase: str
    replicate: int
    status: str
    steps: int
    total: float
    ms_per_step: float
    cpu_seconds: float
    error: str
    time_limit: float
    reproducible: bool
    version: str
    finished: str


RECORD_FIELDS = tuple(RunRecord.__dataclass_fields__)
RECORD_COLUMNS = ", ".join(RECORD_FIELDS)


class Store:
    """An open store; a context manager.

    Parameters
    ----------
    path
        The file. It is made, with its folder, if there is none, unless ``create`` is False.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise FileNotFoundError(2, "there is no store yet; run the study first", str(self.path))
        if create:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = connect(self.path)
        self.claims = Claims(self)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, sqlite3.Error):
            self.close()
            return
        with suppress(sqlite3.Error, OSError):
            self.close()
        raise _store_error(self.path, error) from None

    def close(self) -> None:
        """Give up all claims and close the file."""
        self.claims.leave()
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything inside or nothing, while nobody else writes."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            with self.connection:
                yield
        except sqlite3.DatabaseError as error:  # such as a full disk, or a damaged file
            raise _store_error(self.path, error) from None

    # Reading

    def records(self, ids: Iterable[str]) -> dict[str, RunRecord]:
        """Return those of the runs that are in the store, by identity."""
        rows = self.select_ids(f"SELECT {RECORD_COLUMNS} FROM runs WHERE id IN", ids)
        return {row[0]: _record(row) for row in rows}

    def all_records(self) -> list[RunRecord]:
        """Return every run, in order of setting, phase and replicate."""
        query = f"SELECT {RECORD_COLUMNS} FROM runs ORDER BY setting, phase, replicate"
        return [_record(row) for row in self.connection.execute(query)]

    def traces(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return the rewards [R, T] of these runs, which must be finished and of one length."""
        encoded = dict(self.select_ids("SELECT run, rewards FROM traces WHERE run IN", ids))
        return np.array([decode_rewards(encoded[run]) for run in ids]) if ids else np.empty((0, 0))

    def has_trace(self, run: str) -> bool:
        """Return whether a run's rewards are stored; those of thin files are not."""
        return any(self.select_ids("SELECT 1 FROM traces WHERE run IN", [run]))

    def setting(self, setting_id: str) -> Mapping[str, Any]:
        """Return the facts of a setting."""
        row = self.connection.execute("SELECT facts FROM settings WHERE id = ?", (setting_id,)).fetchone()
        facts: Mapping[str, Any] = json.loads(row[0])
        return facts

    def machines(self, ids: Iterable[str]) -> list[Mapping[str, Any]]:
        """Return the facts of the machines that these runs were done on."""
        numbers = {number for _, number in self.select_ids("SELECT id, machine FROM runs WHERE id IN", ids)}
        rows = self.connection.execute("SELECT id, facts FROM machines ORDER BY id")
        return [json.loads(facts) for number, facts in rows if number in numbers]

    def select_ids(self, query: str, ids: Iterable[str]) -> Iterator[Any]:
        """Yield the rows of a query that ends in ``IN``, for any number of ids."""
        listed = list(ids)
        for first in range(0, len(listed), IDS_PER_QUERY):
            some = listed[first : first + IDS_PER_QUERY]
            yield from self.connection.execute(f"{query} ({','.join('?' * len(some))})", some)

    # Writing

    def commit(self, unit: Unit, outcome: RunOutcome) -> bool:
        """Store the outcome of a run, and give up the claim to it; return False if it was there already."""
        with self.transaction():
            self.insert_setting(unit.setting_id, unit.facts)
            record = {
                **asdict(outcome),
                "id": unit.id,
                "setting": unit.setting_id,
                "phase": unit.phase,
                "replicate": unit.replicate,
                "time_limit": outcome.limit,
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            new = self.insert(record, outcome.machine, outcome.trace)
            self.claims.give_up(unit.id)
        return new

    def insert(self, record: Mapping[str, Any], machine: str, trace: bytes = b"") -> bool:
        """Insert a record (other keys are ignored) and its trace, inside a transaction; return False if it is there."""
        execute = self.connection.execute
        execute("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (machine,))
        number = execute("SELECT id FROM machines WHERE facts = ?", (machine,)).fetchone()[0]
        marks = ", ".join("?" * (len(RECORD_FIELDS) + 1))
        row = (*(record[name] for name in RECORD_FIELDS), number)
        query = f"INSERT OR IGNORE INTO runs ({RECORD_COLUMNS}, machine) VALUES ({marks})"
        new = bool(execute(query, row).rowcount)
        if new and trace:
            execute("INSERT OR IGNORE INTO traces VALUES (?, ?)", (record["id"], trace))
        return new

    def insert_setting(self, setting_id: str, facts: Mapping[str, Any]) -> None:
        """Insert the facts of a setting, inside a transaction, unless they are there."""
        row = (setting_id, canonical_json(facts))
        self.connection.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", row)

    def insert_decision(self, cell: str, number: int, facts: Mapping[str, Any]) -> None:
        """Insert a decision of tuning, inside a transaction, unless there is one."""
        row = (cell, number, canonical_json(facts))
        self.connection.execute("INSERT OR IGNORE INTO decisions VALUES (?, ?, ?)", row)

    def forget(self, ids: Iterable[str]) -> None:
        """Delete runs, so that they are done again."""
        with self.transaction():
            for run in ids:
                self.connection.execute("DELETE FROM traces WHERE run = ?", (run,))
                self.connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    def forget_stopped(self, units: Iterable[Unit]) -> list[str]:
        """Delete runs that were stopped under a tighter limit than they have now; return which."""
        limits = {unit.id: unit.limit for unit in units}
        records = self.records(limits).values()
        stopped = [r.id for r in records if r.status == OVER_LIMIT and r.time_limit < limits[r.id]]
        self.forget(stopped)
        return stopped

    # Decisions of tuning

    def decisions(self, cell: str) -> dict[int, Mapping[str, Any]]:
        """Return what tuning has decided in a cell, by round."""
        rows = self.connection.execute("SELECT round, facts FROM decisions WHERE cell = ?", (cell,))
        return {number: json.loads(facts) for number, facts in rows}

    def decide(self, cell: str, number: int, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store a decision, unless there is one, and return the one that holds; only drivers store any."""
        if self.claims.driver is None:
            return self.decisions(cell).get(number, facts)
        with self.transaction():
            self.insert_decision(cell, number, facts)
        return self.decisions(cell)[number]

    def undecide(self, cell: str) -> None:
        """Delete the decisions of a cell."""
        with self.transaction():
            self.connection.execute("DELETE FROM decisions WHERE cell = ?", (cell,))


class Claims:
    """The claims in a store's file; the driver is None until this process has become one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.driver: str | None = None

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Be a driver for as long as the block lasts, with a heartbeat."""
        self.driver = uuid.uuid4().hex
        row = (self.driver, platform.node(), os.getpid(), time.time())
        self.store.connection.execute("INSERT INTO drivers VALUES (?, ?, ?, ?)", row)
        stop = threading.Event()
        heart = threading.Thread(target=_heartbeat, args=(self.store.path, self.driver, stop), daemon=True)
        heart.start()
        try:
            yield
        finally:
            stop.set()
            heart.join()
            self.leave()

    def leave(self) -> None:
        """Give up all claims, and be no driver any more."""
        if self.driver is not None:
            with self.store.transaction():
                self.store.connection.execute("DELETE FROM claims WHERE driver = ?", (self.driver,))
                self.store.connection.execute("DELETE FROM drivers WHERE id = ?", (self.driver,))
            self.driver = None

    def take(self, run: str) -> bool:
        """Claim a run; return False if a living driver has it or it is in the store already."""
        execute = self.store.connection.execute
        with self.store.transaction():
            if execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone():
                return False
            row = execute("SELECT driver FROM claims WHERE run = ?", (run,)).fetchone()
            if row is not None and row[0] != self.driver and self._is_alive(row[0]):
                return False
            execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (run, self.driver))
        return True

    def give_up(self, run: str) -> None:
        """Give up this driver's claim to a run."""
        self.store.connection.execute("DELETE FROM claims WHERE run = ? AND driver = ?", (run, self.driver))

    def claimed(self) -> set[str]:
        """Return the runs that living drivers work on."""
        rows = self.store.connection.execute("SELECT run, driver FROM claims").fetchall()
        alive = {driver: self._is_alive(driver) for driver in {driver for _, driver in rows}}
        return {run for run, driver in rows if alive[driver]}

    def _is_alive(self, driver: str) -> bool:
        query = "SELECT host, pid, beat FROM drivers WHERE id = ?"
        row = self.store.connection.execute(query, (driver,)).fetchone()
        if row is None or time.time() - row[2] > MAX_SILENCE:
            return False
        return row[0] != platform.node() or _process_exists(row[1])


def _heartbeat(path: Path, driver: str, stop: threading.Event) -> None:
    """Write the heartbeat of a driver; runs in a thread, with a connection of its own."""
    connection = sqlite3.connect(path, timeout=HEARTBEAT, isolation_level=None, check_same_thread=False)
    with closing(connection):
        while not stop.wait(HEARTBEAT):
            with suppress(sqlite3.Error):  # the next one may succeed
                connection.execute("UPDATE drivers SET beat = ? WHERE id = ?", (time.time(), driver))


def _process_exists(pid: int) -> bool:
    if os.name == "nt":  # os.kill would end the process there; the heartbeat decides
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# Opening a file


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to a store's file, migrated to the present version."""
    try:
        connection = sqlite3.connect(path, timeout=WRITER_TIMEOUT, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise _store_error(path, error) from None
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate and set WAL mode; several may do so at once, and SQLite does not wait by itself for the latter."""
    end = time.monotonic() + WRITER_TIMEOUT
    while True:
        try:
            _migrate(connection, str(path))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise _store_error(path, error) from None
            time.sleep(0.02)
        except sqlite3.DatabaseError as error:
            raise _store_error(path, error) from None


def _migrate(connection: sqlite3.Connection, name: str) -> None:
    """Migrate a new or older file to the present version; several may try at the same time."""
    with _plain_transaction(connection, "DEFERRED"):
        version = _schema_version(connection, name)
    if version == len(MIGRATIONS):
        return
    with _plain_transaction(connection, "IMMEDIATE"):  # all migrations or none
        for step in MIGRATIONS[
            _schema_version(connection, name) :
        ]:  # again: another may have done it meanwhile
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextmanager
def _plain_transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    with connection:
        yield


def _schema_version(connection: sqlite3.Connection, name: str) -> int:
    """Return a file's version; inside a transaction, so that the three values are of one moment."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    except sqlite3.OperationalError:  # locked, or the disk: says nothing about the kind of file
        raise
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{name} is not a store of bamdp ({error}); choose another file") from None
    if not ours and not (empty and version == 0):
        raise ValueError(f"{name} is a database of something else; choose another file")
    if version > len(MIGRATIONS):
        raise ValueError(
            f"{name} was written by a newer bamdp (format {version}, this one knows {len(MIGRATIONS)}); upgrade bamdp"
        )
    return version


def _store_error(path: Path, error: sqlite3.Error) -> OSError:
    hint = ""
    if "locked" in str(error):
        hint = f" by another program for more than {WRITER_TIMEOUT:.0f} seconds; end that, or try again later"
    return OSError(None, f"cannot use the store: {error}{hint}", str(path))


def _record(row: Sequence[Any]) -> RunRecord:
    values = dict(zip(RECORD_FIELDS, row))
    return RunRecord(**{**values, "reproducible": bool(values["reproducible"])})
