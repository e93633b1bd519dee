"""Where runs are kept: one SQLite file, written by whoever runs the study and read by anybody meanwhile.

The file is in WAL mode, so that readers and the writer do not wait for each other; every run is committed by itself
under its identity, so that a killed process loses nothing that was committed and nothing can be there twice. Runs
that failed or were stopped are records like others.

Who is at work on what is kept in the same file: :mod:`bamdp.lab.claims`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.claims import Claims
from bamdp.lab.identity import canonical
from bamdp.lab.schema import prepare
from bamdp.lab.traces import decode
from bamdp.lab.units import OVER, Outcome, Unit

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


FIELDS = tuple(Record.__dataclass_fields__)
NAMES = ", ".join(FIELDS)


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
        raise _trouble(self.path, error) from None

    def close(self) -> None:
        """Give up what was claimed, and leave."""
        self.claims.leave()
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes in between."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            with self.connection:
                yield
        except sqlite3.DatabaseError as error:  # such as a full disk, or a damaged file
            raise _trouble(self.path, error) from None

    def records(self, ids: Iterable[str]) -> dict[str, Record]:
        """Those of the runs that are in the store, by identity."""
        found = self.chosen(f"SELECT {NAMES} FROM runs WHERE id IN", ids)
        return {row[0]: _record(row) for row in found}

    def all_records(self) -> list[Record]:
        """Every run, in order of setting, phase and replicate."""
        rows = self.connection.execute(f"SELECT {NAMES} FROM runs ORDER BY setting, phase, replicate")
        return [_record(row) for row in rows]

    def traces(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """Rewards step by step, [R, T], in the order of the runs; all must be done and of one length."""
        found = dict(self.chosen("SELECT run, rewards FROM traces WHERE run IN", ids))
        return np.array([decode(found[run]) for run in ids]) if ids else np.empty((0, 0))

    def has_trace(self, run: str) -> bool:
        """Whether a run's rewards are here step by step; those of thin files are not."""
        return any(self.chosen("SELECT 1 FROM traces WHERE run IN", [run]))

    def setting(self, setting_id: str) -> Mapping[str, Any]:
        """The facts of a setting."""
        row = self.connection.execute("SELECT facts FROM settings WHERE id = ?", (setting_id,)).fetchone()
        facts: Mapping[str, Any] = json.loads(row[0])
        return facts

    def machines(self, ids: Iterable[str]) -> list[Mapping[str, Any]]:
        """The machines that these runs were done on."""
        numbers = {number for _, number in self.chosen("SELECT id, machine FROM runs WHERE id IN", ids)}
        rows = self.connection.execute("SELECT id, facts FROM machines ORDER BY id")
        return [json.loads(facts) for number, facts in rows if number in numbers]

    def chosen(self, question: str, ids: Iterable[str]) -> Iterator[Any]:
        """Rows of a question that ends in ``IN``, whatever the number of names."""
        names = list(ids)
        for first in range(0, len(names), AT_A_TIME):
            some = names[first : first + AT_A_TIME]
            yield from self.connection.execute(f"{question} ({','.join('?' * len(some))})", some)

    def commit(self, unit: Unit, outcome: Outcome) -> bool:
        """Keep what came of a run, and give up the claim to it; False if it was there already."""
        with self.transaction():
            self.connection.execute(
                "INSERT OR IGNORE INTO settings VALUES (?, ?)", (unit.setting_id, canonical(unit.facts))
            )
            new = self.insert(
                {
                    "id": unit.id,
                    "setting": unit.setting_id,
                    "phase": unit.phase,
                    "replicate": unit.replicate,
                    "status": outcome.status,
                    "steps": outcome.steps,
                    "total": outcome.total,
                    "ms_per_step": outcome.ms_per_step,
                    "cpu_seconds": outcome.cpu_seconds,
                    "error": outcome.error,
                    "time_limit": outcome.limit,
                    "reproducible": outcome.reproducible,
                    "version": outcome.version,
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                },
                outcome.machine,
            )
            if new and outcome.trace:
                self.connection.execute("INSERT INTO traces VALUES (?, ?)", (unit.id, outcome.trace))
            self.claims.give_up(unit.id)
        return new

    def insert(self, record: Mapping[str, Any], machine: str) -> bool:
        """Put a record in, inside a transaction; False if there is one of that name."""
        ask = self.connection.execute
        ask("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (machine,))
        number = ask("SELECT id FROM machines WHERE facts = ?", (machine,)).fetchone()[0]
        places = ", ".join("?" * (len(FIELDS) + 1))
        row = (*(record[name] for name in FIELDS), number)
        return bool(ask(f"INSERT OR IGNORE INTO runs ({NAMES}, machine) VALUES ({places})", row).rowcount)

    def forget(self, ids: Iterable[str]) -> None:
        """Take runs out, so that they are done again."""
        with self.transaction():
            for run in ids:
                self.connection.execute("DELETE FROM traces WHERE run = ?", (run,))
                self.connection.execute("DELETE FROM runs WHERE id = ?", (run,))

    def forget_over(self, units: Iterable[Unit]) -> list[str]:
        """Take those out that were stopped under a tighter limit than they have now; returns which."""
        limits = {unit.id: unit.limit for unit in units}
        found = self.records(limits).values()
        over = [r.id for r in found if r.status == OVER and r.time_limit < limits[r.id]]
        self.forget(over)
        return over

    def decisions(self, cell: str) -> dict[int, Mapping[str, Any]]:
        """What tuning has decided in a cell, by round."""
        rows = self.connection.execute("SELECT round, facts FROM decisions WHERE cell = ?", (cell,))
        return {number: json.loads(facts) for number, facts in rows}

    def decide(self, cell: str, number: int, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep a decision, unless there is one; returns the one that holds. Only drivers keep any."""
        if self.claims.driver is None:
            return self.decisions(cell).get(number, facts)
        with self.transaction():
            self.connection.execute(
                "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?)", (cell, number, canonical(facts))
            )
        return self.decisions(cell)[number]

    def undecide(self, cell: str) -> None:
        """Forget the decisions of a cell."""
        with self.transaction():
            self.connection.execute("DELETE FROM decisions WHERE cell = ?", (cell,))


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a store's file, which is of the present version then."""
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise _trouble(path, error) from None
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Several may do so at the same time; SQLite does not wait by itself when the journal's mode is set."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            prepare(connection, str(path))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise _trouble(path, error) from None
            time.sleep(0.02)
        except sqlite3.DatabaseError as error:
            raise _trouble(path, error) from None


def _trouble(path: Path, error: sqlite3.Error) -> OSError:
    hint = ""
    if "locked" in str(error):
        hint = f" by another program for more than {PATIENCE:.0f} seconds; end that, or try again later"
    return OSError(None, f"cannot use the store: {error}{hint}", str(path))


def _record(row: Sequence[Any]) -> Record:
    values = dict(zip(FIELDS, row))
    return Record(**{**values, "reproducible": bool(values["reproducible"])})
