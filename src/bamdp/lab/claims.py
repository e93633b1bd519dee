"""Who is at work on which run, so that several drivers can share a study.

A driver is a process that runs a study. It claims a run before it begins and gives the claim up with the result; its
heart beats in the store. Another driver leaves claimed runs alone, unless the claimant is dead: its process is gone
from this machine, or its heart has not been heard for a minute. Should a driver that was thought dead come back, a run
is done twice, but kept once: results have unique names.
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bamdp.lab.store import Store

BEAT = 5.0  # seconds between two beats
SILENCE = 60.0  # seconds after which a driver is taken for dead


class Claims:
    """The claims that a store's file holds; those of this driver, once it has entered."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.driver: str | None = None

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Be a driver for as long as the block lasts, and keep the heart beating."""
        self.driver = uuid.uuid4().hex
        row = (self.driver, platform.node(), os.getpid(), time.time())
        self.store.connection.execute("INSERT INTO drivers VALUES (?, ?, ?, ?)", row)
        stop = threading.Event()
        heart = threading.Thread(target=_beat, args=(self.store.path, self.driver, stop), daemon=True)
        heart.start()
        try:
            yield
        finally:
            stop.set()
            heart.join()
            self.leave()

    def leave(self) -> None:
        """Give up everything, and be no driver any more."""
        if self.driver is not None:
            with self.store.transaction():
                self.store.connection.execute("DELETE FROM claims WHERE driver = ?", (self.driver,))
                self.store.connection.execute("DELETE FROM drivers WHERE id = ?", (self.driver,))
            self.driver = None

    def take(self, run: str) -> bool:
        """Claim a run, if nobody has it and it is not in the store yet."""
        ask = self.store.connection.execute
        with self.store.transaction():
            if ask("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone():
                return False
            row = ask("SELECT driver FROM claims WHERE run = ?", (run,)).fetchone()
            if row is not None and row[0] != self.driver and self._alive(row[0]):
                return False
            ask("INSERT OR REPLACE INTO claims VALUES (?, ?)", (run, self.driver))
        return True

    def give_up(self, run: str) -> None:
        """A claim of ours."""
        self.store.connection.execute("DELETE FROM claims WHERE run = ? AND driver = ?", (run, self.driver))

    def held(self) -> set[str]:
        """Runs that a living driver is at work on."""
        rows = self.store.connection.execute("SELECT run, driver FROM claims").fetchall()
        alive = {driver: self._alive(driver) for driver in {driver for _, driver in rows}}
        return {run for run, driver in rows if alive[driver]}

    def _alive(self, driver: str) -> bool:
        found = self.store.connection.execute("SELECT host, pid, beat FROM drivers WHERE id = ?", (driver,))
        row = found.fetchone()
        if row is None or time.time() - row[2] > SILENCE:
            return False
        return row[0] != platform.node() or _is_process(row[1])


def _beat(path: Path, driver: str, stop: threading.Event) -> None:
    """In a thread, with a connection of its own."""
    with closing(sqlite3.connect(path, timeout=BEAT, isolation_level=None, check_same_thread=False)) as own:
        while not stop.wait(BEAT):
            with suppress(sqlite3.Error):  # the next beat may be heard
                own.execute("UPDATE drivers SET beat = ? WHERE id = ?", (time.time(), driver))


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
