"""The store's tables, as the list of steps that lead to them; a file of any earlier version is led on from where it is.

``PRAGMA user_version`` counts the steps that a file has behind it, ``application_id`` marks it as ours. A step that
has been released is never changed: what comes later is a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

APPLICATION = 0x62616D64  # "bamd"

STEPS = (
    # 1: runs, and what they were runs of
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
    # 2: who is at work on what, and what tuning has decided
    """
    CREATE TABLE drivers (id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, beat REAL NOT NULL);
    CREATE TABLE claims (run TEXT PRIMARY KEY, driver TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE decisions (
        cell TEXT NOT NULL, round INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (cell, round)
    ) WITHOUT ROWID;
    """,
)
VERSION = len(STEPS)


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Lead a new or older file on to the present version; several may try at the same time."""
    with _transaction(connection, "DEFERRED"):
        version = _version(connection, name)
    if version == VERSION:
        return
    with _transaction(connection, "IMMEDIATE"):  # all steps or none
        for step in STEPS[_version(connection, name) :]:  # again: somebody else may have done it meanwhile
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    with connection:
        yield


def _version(connection: sqlite3.Connection, name: str) -> int:
    """How far a file has come; inside a transaction, so that all three are of one moment."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    except sqlite3.OperationalError:  # locked, or the disk: no matter of what the file is
        raise
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{name} is not a store of bamdp ({error}); choose another file") from None
    if not ours and not (empty and version == 0):
        raise ValueError(f"{name} is a database of something else; choose another file")
    if version > VERSION:
        raise ValueError(
            f"{name} was written by a newer bamdp (format {version}, this one knows {VERSION}); upgrade bamdp"
        )
    return version
