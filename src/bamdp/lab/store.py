"""The store of runs: one SQLite file, written by the drivers of a study and read by anybody meanwhile.

**Runs.** The file is in WAL mode, so that readers and the writer do not wait for each other; every run is committed by
itself under its identity, so that a killed process loses nothing that was committed and no run is stored twice. Runs
that failed or were stopped are records like others.

**Damage.** Every run has a checksum of all that is stored about it, trace included, and so have the decisions of tuning
and the machines. They are checked whenever these are read. A damaged run is as good as missing: it is not among the
records, the store remembers its identity in ``damaged``, and the same run, done again, takes its place. A damaged
decision is made again from the runs. The facts of a setting are checked against their digest. When a file is opened,
SQLite checks its pages, unless it is larger than :data:`CHECKED_BYTES`; :meth:`Store.check` looks at everything.

**Schema.** The tables are the result of a list of migrations; a file of any earlier version is migrated when it is
opened, and its runs get their checksums then (a run whose total is not the sum of its rewards gets none, and counts as
damaged). ``PRAGMA user_version`` counts the migrations that a file has behind it, ``application_id`` marks it as ours.
A migration that has been released is never changed: what comes later is a new one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.claims import Claims
from bamdp.lab.results import EpisodeSummary
from bamdp.lab.units import (
    FINISHED,
    OVER_LIMIT,
    RunOutcome,
    Unit,
    canonical_json,
    decode_trace,
    digest,
    run_identity,
)

WRITER_TIMEOUT = 60.0  # seconds to wait for another writer
IDS_PER_QUERY = 500
# larger files are opened without a look at all pages, which takes about 1 s for 100 MB
CHECKED_BYTES = 200_000_000
MACHINE_FACTS = ("machine", "processor", "cores", "system", "python", "numpy", "numba")
UNKNOWN_MACHINE = dict.fromkeys(MACHINE_FACTS, "unknown")  # in place of one whose record is damaged

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
    # 3: checksums
    """
    ALTER TABLE runs ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
    ALTER TABLE machines ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
    UPDATE runs SET checksum = row_checksum(
        id, setting, phase, replicate, status, steps, total, ms_per_step, cpu_seconds, error, time_limit,
        reproducible, version, finished, machine, (SELECT rewards FROM traces WHERE run = id)
    ) WHERE is_plausible(status, steps, total, (SELECT rewards FROM traces WHERE run = id));
    UPDATE machines SET checksum = row_checksum(id, facts);
    UPDATE decisions SET checksum = row_checksum(cell, round, facts);
    """,
    # 4: traces may tell of episodes, which earlier programs do not read
    "",
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
REPRODUCIBLE = RECORD_FIELDS.index("reproducible")
# what a run's checksum is of
RUN_VALUES = f"{RECORD_COLUMNS}, machine, (SELECT rewards FROM traces WHERE run = id)"
ALL_RUNS = f"SELECT {RUN_VALUES}, checksum FROM runs"


@dataclass(frozen=True)
class Damage:
    """What is wrong in a store; empty if nothing is."""

    runs: frozenset[str] = frozenset()  # identities
    settings: frozenset[str] = frozenset()  # their digests
    machines: int = 0
    decisions: int = 0
    indices: tuple[str, ...] = ()  # what SQLite says of indices that do not agree with their tables


class Store:
    """An open store; a context manager.

    Parameters
    ----------
    path
        The file. It is made, with its folder, if there is none, unless ``create`` is False.
    check_pages
        Whether SQLite is to look at all pages of the file first.

    Attributes
    ----------
    damaged
        Identities of runs that were met and do not agree with their checksum.
    damaged_decisions
        Keys of cells of which a decision was met that does not agree with its checksum.
    """

    def __init__(self, path: str | Path, *, create: bool = True, check_pages: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.exists():
            raise FileNotFoundError(2, "there is no store yet; run the study first", str(self.path))
        if create:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = connect(self.path, check_pages)
        self.claims = Claims(self)
        self.damaged: set[str] = set()
        self.damaged_decisions: set[str] = set()
        self._looked_for_misnamed = False

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
        with _explained(self.path), _plain_transaction(self.connection, "IMMEDIATE"):
            yield

    # Reading

    def records(self, ids: Iterable[str]) -> dict[str, RunRecord]:
        """Return those of the runs that are in the store, by identity; damaged ones are not."""
        return {row[0]: _record(row) for row in self._sound_runs(ids)}

    def all_records(self) -> list[RunRecord]:
        """Return every run, in order of setting, phase and replicate; damaged ones are left out."""
        records = [_record(row) for row in self._sound_runs()]
        return sorted(records, key=lambda record: (record.setting, record.phase, record.replicate))

    def traces(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return the rewards [R, T] of these runs, which must be finished and of one length."""
        encoded = self.encoded_traces(ids)
        return np.array([decode_trace(encoded[run]).rewards for run in ids]) if ids else np.empty((0, 0))

    def encoded_traces(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the traces, as they are stored, of those of the runs that have one; the runs must be sound."""
        encoded = {row[0]: row[-2] for row in self._sound_runs(ids) if row[-2] is not None}
        lost = len(self.damaged.intersection(ids))
        if lost:
            raise OSError(None, f"{lost} runs were damaged while they were read; try again", str(self.path))
        return encoded

    def episodes(self, ids: Sequence[str]) -> EpisodeSummary | None:
        """Return the episodes of those of the runs that have a trace; None if none was completed."""
        runs = tuple(decode_trace(trace) for trace in self.encoded_traces(ids).values())
        return EpisodeSummary(runs) if any(len(run.ends) for run in runs) else None

    def machine_of(self, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return the facts of the machine that each of these runs was done on; unknown ones of a damaged machine."""
        rows = self.select("SELECT id, facts, checksum FROM machines")
        known = {row[0]: json.loads(row[1]) for row in rows if _agrees(row)}
        numbers = self.select_ids("SELECT id, machine FROM runs WHERE id IN", ids)
        return {run: known.get(number, UNKNOWN_MACHINE) for run, number in numbers}

    def _sound_runs(self, ids: Iterable[str] | None = None) -> Iterator[Any]:
        """Yield the rows of these runs, or of all, that agree with their checksums, and remember which do not."""
        rows = self.select(ALL_RUNS) if ids is None else self.select_ids(f"{ALL_RUNS} WHERE id IN", ids)
        for row in rows:
            if _agrees(row):
                self.damaged.discard(row[0])
                yield row
            else:
                self.damaged.update(_possible_identities(row))

    def check(self) -> Damage:
        """Look at every page and every row; damaged runs are then in ``damaged``, too."""
        self.damaged.clear()
        self._looked_for_misnamed = False
        self.find_misnamed()
        lines = _page_errors(self.connection, "integrity_check", self.path)
        sound = {row[0] for row in self._sound_runs()}
        self.damaged -= sound
        settings = self.select("SELECT id, facts FROM settings")
        machines = self.select("SELECT id, facts, checksum FROM machines")
        decisions = self.select("SELECT cell, round, facts, checksum FROM decisions")
        return Damage(
            frozenset(self.damaged),
            frozenset(str(name) for name, facts in settings if not _is_sound_setting(name, facts)),
            sum(not _agrees(row) for row in machines),
            sum(not _agrees(row) for row in decisions),
            lines,
        )

    def find_misnamed(self) -> None:
        """Look for runs that are not found because their identity is damaged; at most once."""
        if not self._looked_for_misnamed:
            self._looked_for_misnamed = True
            named = [row[0] for row in self.select("SELECT id FROM runs NOT INDEXED")]
            if named != sorted(named, key=str):
                # SQLite looks for a run by halves, and would not find others either
                raise _damage_error(self.path, "its runs are not in order")
            index = self.select("SELECT id FROM runs INDEXED BY sqlite_autoindex_runs_2")
            if set(named) != {row[0] for row in index}:
                self.all_records()

    def repair(self, damage: Damage) -> None:
        """Make room for what is to be done again: delete misnamed runs and bad decisions, make indices anew."""
        execute = self.connection.execute
        with self.transaction():
            for row in self.select(ALL_RUNS) if damage.runs else ():
                if not _agrees(row) and len(_possible_identities(row)) > 1:
                    execute("DELETE FROM runs WHERE id = ?", row[:1])
            for row in self.select("SELECT cell, round, facts, checksum FROM decisions"):
                if not _agrees(row):
                    execute("DELETE FROM decisions WHERE cell = ? AND round = ?", row[:2])
            if damage.indices:
                execute("REINDEX")

    def select_ids(self, query: str, ids: Iterable[str]) -> Iterator[Any]:
        """Yield the rows of a query that ends in ``IN``, for any number of ids."""
        listed = list(ids)
        for first in range(0, len(listed), IDS_PER_QUERY):
            some = listed[first : first + IDS_PER_QUERY]
            yield from self.select(f"{query} ({','.join('?' * len(some))})", some)

    def select(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query; texts that are damaged so that they are none any more are read all the same."""
        try:
            return self.connection.execute(query, parameters).fetchall()
        except UnicodeDecodeError as error:  # in a message that quotes damage
            raise _store_error(self.path, error) from None
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
        self.connection.text_factory = lambda text: text.decode(errors="replace")  # the checksum will tell
        return self.connection.execute(query, parameters).fetchall()

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
        """Insert a record (other keys are ignored) and its trace, inside a transaction; return False if it is there.

        A damaged run gives way to the new one.
        """
        execute, run = self.connection.execute, record["id"]
        if self.records([run]):
            return False
        execute("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (machine,))
        number = execute("SELECT id FROM machines WHERE facts = ?", (machine,)).fetchone()[0]
        execute(
            "UPDATE machines SET checksum = row_checksum(id, facts) WHERE id = ? AND checksum = ''", (number,)
        )
        marks = ", ".join("?" * (len(RECORD_FIELDS) + 1))
        row = (*(record[name] for name in RECORD_FIELDS), number)
        execute(f"INSERT OR REPLACE INTO runs ({RECORD_COLUMNS}, machine) VALUES ({marks})", row)
        if run in self.damaged:
            execute("DELETE FROM traces WHERE run = ?", (run,))
        if trace:
            execute("INSERT OR REPLACE INTO traces VALUES (?, ?)", (run, trace))
        execute(f"UPDATE runs SET checksum = row_checksum({RUN_VALUES}) WHERE id = ?", (run,))
        self.damaged.discard(run)
        return True

    def insert_setting(self, setting_id: str, facts: Mapping[str, Any]) -> None:
        """Insert the facts of a setting, inside a transaction, unless they are there and sound."""
        query = (
            "INSERT INTO settings VALUES (?, ?) "
            "ON CONFLICT (id) DO UPDATE SET facts = excluded.facts WHERE facts IS NOT excluded.facts"
        )
        self.connection.execute(query, (setting_id, canonical_json(facts)))

    def insert_decision(self, cell: str, number: int, facts: Mapping[str, Any]) -> None:
        """Insert a decision of tuning, inside a transaction, unless there is one that is sound."""
        if number in self.decisions(cell):
            return
        row = (cell, number, canonical_json(facts))
        query = "INSERT OR REPLACE INTO decisions VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3))"
        self.connection.execute(query, row)

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
        """Return what tuning has decided in a cell, by round; damaged decisions are left out."""
        query = "SELECT cell, round, facts, checksum FROM decisions WHERE cell = ?"
        rows = self.select(query, (cell,))
        if not all(map(_agrees, rows)):
            self.damaged_decisions.add(cell)
        return {row[1]: json.loads(row[2]) for row in rows if _agrees(row)}

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


# Opening a file


def connect(path: Path, check_pages: bool = True) -> sqlite3.Connection:
    """Return a connection to a store's file, migrated to the present version; a damaged file is refused."""
    with _explained(path), ExitStack() as stack:
        connection = sqlite3.connect(path, timeout=WRITER_TIMEOUT, isolation_level=None)
        stack.callback(connection.close)
        connection.create_function("row_checksum", -1, row_checksum)
        connection.create_function("is_plausible", 4, is_plausible)
        _prepare(connection, path)
        if check_pages and path.stat().st_size <= CHECKED_BYTES:
            _page_errors(connection, "quick_check", path)
        stack.pop_all()  # it stays open
    return connection


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what an error of SQLite, such as a full disk or a damaged file, means for the store and what can be done."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter in a message that quotes damage
        raise _store_error(path, error) from None


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
                raise
            time.sleep(0.02)


def _migrate(connection: sqlite3.Connection, name: str) -> None:
    """Migrate a new or older file to the present version; several may try at the same time."""
    with _plain_transaction(connection, "DEFERRED"):
        version = _schema_version(connection, name)
    if version == len(MIGRATIONS):
        return
    with _plain_transaction(connection, "IMMEDIATE"):  # all migrations or none
        version = _schema_version(connection, name)  # again: another may have done it meanwhile
        for step in MIGRATIONS[version:]:
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
        if "not a database" not in str(error):
            raise
        raise ValueError(f"{name} is not a store of bamdp ({error}); choose another file") from None
    if not ours and not (empty and version == 0):
        raise ValueError(f"{name} is a database of something else; choose another file")
    if version > len(MIGRATIONS):
        raise ValueError(
            f"{name} was written by a newer bamdp (format {version}, this one knows {len(MIGRATIONS)}); upgrade bamdp"
        )
    return version


def _page_errors(connection: sqlite3.Connection, check: str, path: Path) -> tuple[str, ...]:
    """Return what SQLite's check says of indices; anything else is damage that nothing can be read behind."""
    with _explained(path):
        lines = [str(line) for (line,) in connection.execute(f"PRAGMA {check}")]
    of_indices = tuple(line for line in lines if "index" in line)
    others = [line for line in lines if line != "ok" and line not in of_indices]
    if others:
        raise _damage_error(path, " ".join(others[0].split()))
    return of_indices


def _store_error(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> OSError:
    text = str(error)
    damaged = text.startswith(("no such", "malformed", "duplicate"))
    if damaged or not isinstance(error, sqlite3.OperationalError):
        return _damage_error(path, text)
    hints = {
        "locked": f" by another program for more than {WRITER_TIMEOUT:.0f} seconds; end that, or try again later",
        "full": "; make room, and the same command goes on: what was stored is kept",
        "disk I/O": "; if the disk is full make room, and the same command goes on: what was stored is kept",
        "readonly": "; make file and folder writable, and the same command goes on: what was stored is kept",
        "unable to open": "; the file and its folder must be there and writable",
    }
    hint = next((hint for part, hint in hints.items() if part in text), "")
    return OSError(None, f"cannot use the store: {text}{hint}", str(path))


def _damage_error(path: Path, what: str) -> OSError:
    remedy = "move the file away, import the last export if there is one (`bamdp lab import`), and run the study again"
    return OSError(None, f"the store is damaged ({what}); {remedy}", str(path))


# Checksums


def row_checksum(*values: Any) -> str:
    """Return 16 hexadecimal digits that tell whether one of the values of a row has changed; the last may be a blob.

    Examples
    --------
    >>> row_checksum("run", 1.0, None), row_checksum("run", 1.5, None)
    ('5bb2c51f2b1c4229', 'c740834e1035e150')
    """
    *others, last = values
    texts = "\0".join(map(str, others))
    blob = last if isinstance(last, bytes) else str(last).encode(errors="replace")
    return hashlib.blake2b(texts.encode(errors="replace") + b"\0" + blob, digest_size=8).hexdigest()


def is_plausible(status: str, steps: int, total: float, trace: bytes | None) -> bool:
    """Return whether a run of an older file, which has no checksum yet, agrees with its rewards."""
    if status != FINISHED or trace is None:
        return True
    try:
        rewards = decode_trace(trace).rewards
    except (ValueError, IndexError, TypeError, struct.error, zlib.error):
        return False
    return len(rewards) == steps and float(rewards.sum()) == total


def _agrees(row: Sequence[Any]) -> bool:
    """Return whether a row agrees with the checksum in its last column."""
    return bool(row_checksum(*row[:-1]) == row[-1])


def _is_sound_setting(name: Any, facts: Any) -> bool:
    try:
        return bool(digest(json.loads(facts)) == name)
    except (ValueError, TypeError):
        return False


def _possible_identities(row: Sequence[Any]) -> set[str]:
    """Return the identity of a damaged run: the one that it has, and the one that it should have."""
    name, setting, phase, replicate = row[:4]
    number = replicate if isinstance(replicate, int) else -1
    return {str(name), run_identity(str(setting), str(phase), number)}


def _record(row: Sequence[Any]) -> RunRecord:
    values = list(row[: len(RECORD_FIELDS)])
    values[REPRODUCIBLE] = bool(values[REPRODUCIBLE])
    return RunRecord(*values)
