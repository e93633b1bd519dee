"""Where runs are kept: one SQLite file, written by whoever runs the study and read by anybody meanwhile.

The file is in WAL mode, so that readers and the writer do not wait for each other; every run is committed by itself
under its identity, so that a killed process loses nothing that was committed and nothing can be there twice. Runs
that failed or were stopped are records like others.

Work is shared out by claims. A driver (a process that runs a study) claims a run before it begins and gives the
claim up with the result; its heart beats in the file. Another driver leaves claimed runs alone, unless the claimant
is dead: its process is gone from this machine, or its heart has not been heard for a minute.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.identity import canonical
from bamdp.lab.schema import prepare
from bamdp.lab.traces import decode
from bamdp.lab.units import OVER, Outcome, Unit

BEAT = 5.0  # seconds between two beats of a driver
SILENCE = 60.0  # seconds after which it is taken for dead
PATIENCE = 60.0  # seconds to wait for another writer
AT_A_TIME = 500  # names in one question


@dataclass(frozen=True)
class Record:
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


FIELDS = ", ".join(Record.__dataclass_fields__)


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
        self.driver: str | None = None
        self.connection = connect(self.path)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up what was claimed, and leave."""
        if self.driver is not None:
            with self._transaction():
                self.connection.execute("DELETE FROM claims WHERE driver = ?", (self.driver,))
                self.connection.execute("DELETE FROM drivers WHERE id = ?", (self.driver,))
        self.connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes in between."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    # What is there ------------------------------------------------------------------------------------------------

    def records(self, ids: Iterable[str]) -> dict[str, Record]:
        """Those of the runs that are in the store, by identity."""
        found = self._chosen(f"SELECT {FIELDS} FROM runs WHERE id IN", ids)
        return {row[0]: _record(row) for row in found}

    def all_records(self) -> list[Record]:
        """Every run, in order of setting, phase and replicate."""
        rows = self.connection.execute(f"SELECT {FIELDS} FROM runs ORDER BY setting, phase, replicate")
        return [_record(row) for row in rows]

    def traces(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """Rewards step by step, [R, T], in the order of the runs; all must be done and of one length."""
        found = dict(self._chosen("SELECT run, rewards FROM traces WHERE run IN", ids))
        return np.array([decode(found[run]) for run in ids])

    def setting(self, setting_id: str) -> Mapping[str, Any]:
        """The facts of a setting."""
        row = self.connection.execute("SELECT facts FROM settings WHERE id = ?", (setting_id,)).fetchone()
        facts: Mapping[str, Any] = json.loads(row[0])
        return facts

    def machines(self) -> list[Mapping[str, Any]]:
        """The machines that runs were done on."""
        return [
            json.loads(row[0]) for row in self.connection.execute("SELECT facts FROM machines ORDER BY id")
        ]

    def _chosen(self, question: str, ids: Iterable[str]) -> Iterator[Any]:
        names = list(ids)
        for first in range(0, len(names), AT_A_TIME):
            some = names[first : first + AT_A_TIME]
            yield from self.connection.execute(f"{question} ({','.join('?' * len(some))})", some)

    # Writing ------------------------------------------------------------------------------------------------------

    def commit(self, unit: Unit, outcome: Outcome) -> bool:
        """Keep what came of a run, and give up the claim to it; False if it was there already."""
        with self._transaction():
            machine = self._machine(outcome.machine)
            self.connection.execute(
                "INSERT OR IGNORE INTO settings VALUES (?, ?)", (unit.setting_id, canonical(unit.facts))
            )
            new = self.connection.execute(
                f"INSERT OR IGNORE INTO runs ({FIELDS}, machine) VALUES ({','.join('?' * 15)})",
                (
                    unit.id,
                    unit.setting_id,
                    unit.phase,
                    unit.replicate,
                    outcome.status,
                    outcome.steps,
                    outcome.total,
                    outcome.ms_per_step,
                    outcome.cpu_seconds,
                    outcome.error,
                    outcome.limit,
                    outcome.reproducible,
                    outcome.version,
                    datetime.now(UTC).isoformat(timespec="seconds"),
                    machine,
                ),
            ).rowcount
            if new and outcome.trace:
                self.connection.execute("INSERT INTO traces VALUES (?, ?)", (unit.id, outcome.trace))
            self.connection.execute("DELETE FROM claims WHERE run = ? AND driver = ?", (unit.id, self.driver))
        return bool(new)

    def _machine(self, facts: str) -> int:
        self.connection.execute("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (facts,))
        found = self.connection.execute("SELECT id FROM machines WHERE facts = ?", (facts,))
        return int(found.fetchone()[0])

    def forget(self, ids: Iterable[str]) -> None:
        """Take runs out, so that they are done again."""
        with self._transaction():
            for run in ids:
                self.connection.execute("DELETE FROM traces WHERE run = ?", (run,))
                self.connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    def forget_over(self, units: Iterable[Unit]) -> None:
        """Take those out that were stopped under a tighter limit than they have now."""
        limits = {unit.id: unit.limit for unit in units}
        found = self.records(limits).values()
        self.forget(r.id for r in found if r.status == OVER and r.time_limit < limits[r.id])

    # Decisions ----------------------------------------------------------------------------------------------------

    def decisions(self, cell: str) -> dict[int, Mapping[str, Any]]:
        """What tuning has decided in a cell, by round."""
        rows = self.connection.execute("SELECT round, facts FROM decisions WHERE cell = ?", (cell,))
        return {number: json.loads(facts) for number, facts in rows}

    def decide(self, cell: str, number: int, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep a decision, unless there is one; returns the one that holds. Only drivers keep any."""
        if self.driver is None:
            return self.decisions(cell).get(number, facts)
        with self._transaction():
            self.connection.execute(
                "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?)", (cell, number, canonical(facts))
            )
        return self.decisions(cell)[number]

    def undecide(self, cell: str) -> None:
        """Forget the decisions of a cell."""
        with self._transaction():
            self.connection.execute("DELETE FROM decisions WHERE cell = ?", (cell,))

    # Claims -------------------------------------------------------------------------------------------------------

    def become_driver(self) -> None:
        """From now on this store can claim runs; call :func:`beat` every few seconds."""
        self.driver = uuid.uuid4().hex
        with self._transaction():
            self.connection.execute(
                "INSERT INTO drivers VALUES (?, ?, ?, ?)",
                (self.driver, platform.node(), os.getpid(), time.time()),
            )

    def claim(self, run: str) -> bool:
        """Take a run, if nobody has it and it is not there yet."""
        with self._transaction():
            if self.connection.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone():
                return False
            row = self.connection.execute("SELECT driver FROM claims WHERE run = ?", (run,)).fetchone()
            if row is not None and row[0] != self.driver and self._alive(row[0]):
                return False
            self.connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (run, self.driver))
        return True

    def claimed(self) -> dict[str, str]:
        """Runs that a living driver is at work on, and who."""
        rows = self.connection.execute("SELECT run, driver FROM claims").fetchall()
        alive = {driver: self._alive(driver) for driver in {driver for _, driver in rows}}
        return {run: driver for run, driver in rows if alive[driver]}

    def _alive(self, driver: str) -> bool:
        row = self.connection.execute(
            "SELECT host, pid, beat FROM drivers WHERE id = ?", (driver,)
        ).fetchone()
        if row is None or time.time() - row[2] > SILENCE:
            return False
        return row[0] != platform.node() or _is_process(row[1])


def beat(path: Path, driver: str) -> None:
    """Tell the others that a driver is alive; from any thread."""
    with closing(connect(path)) as connection:
        connection.execute("UPDATE drivers SET beat = ? WHERE id = ?", (time.time(), driver))


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a store's file, which is of the present version then."""
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise OSError(None, f"cannot open the store: {error}", str(path)) from None
    try:
        prepare(connection, str(path))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_process(pid: int) -> bool:
    if os.name == "nt":  # asking is not possible there without harm; the beat decides
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _record(row: Sequence[Any]) -> Record:
    values = dict(zip(Record.__dataclass_fields__, row))
    return Record(**{**values, "reproducible": bool(values["reproducible"])})
