"""Claims: which run of a study is done by which of the processes that share it.

A driver is a process that runs a study; several can share one. A driver claims a run before it begins and
gives the claim up with the result; it writes a heartbeat into the store. Another driver leaves claimed runs alone,
unless the claimant is dead: its process is gone from this machine, or there was no heartbeat for a minute. A heartbeat
that looks old, or comes from the future, may be due to a clock that was set: a driver believes it only after it has
watched it stand still for two beats by the monotonic clock, which nobody sets. Should a driver that was thought dead
come back, a run is done twice, but stored once.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bamdp.lab.store import Store

HEARTBEAT = 5.0  # seconds between two heartbeats
MAX_SILENCE = 60.0  # seconds without a heartbeat after which a driver is taken for dead


class Claims:
    """The claims in a store's file; the driver is None until this process has become one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.driver: str | None = None
        self._watched: dict[str, tuple[Any, float]] = {}  # driver: its heartbeat, and when it was first seen

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
        """Give up all claims, and be no driver any more; where that cannot be written, they end with the process."""
        driver, self.driver = self.driver, None
        if driver is not None:
            with suppress(OSError), self.store.transaction():
                self.store.connection.execute("DELETE FROM claims WHERE driver = ?", (driver,))
                self.store.connection.execute("DELETE FROM drivers WHERE id = ?", (driver,))

    def take(self, run: str) -> bool:
        """Claim a run; return False if a living driver has it or it is in the store already."""
        execute = self.store.connection.execute
        with self.store.transaction():
            if self.store.records([run]):
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
        if row is None or not isinstance(row[1], int) or not isinstance(row[2], float):
            return False
        host, pid, beat = row
        if host == platform.node() and not _process_exists(pid):
            return False
        if abs(time.time() - beat) <= MAX_SILENCE:
            return True
        return self.driver is not None and not self._stands_still(driver, beat)

    def _stands_still(self, driver: str, beat: float) -> bool:
        """Return whether a heartbeat has not changed for two beats, by a clock that is never set."""
        now = time.monotonic()
        seen, since = self._watched.get(driver, (None, now))
        if seen != beat:
            self._watched[driver] = (beat, now)
            return False
        return now - since > 2.0 * HEARTBEAT


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
    except OverflowError:  # no process has such a number
        return False
    return True
