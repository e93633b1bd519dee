"""The store: what is kept, old files, foreign files, and who may claim what."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from lab_fakes import contents, live_through, outcome, queue_of

from bamdp.lab import claims
from bamdp.lab import store as store_module
from bamdp.lab.collect import collect_results
from bamdp.lab.reading import parse_study
from bamdp.lab.store import Store
from bamdp.lab.units import FAILED, OVER_LIMIT, units_of

STUDY = parse_study('environments = ["chain"]\nalgorithms = ["random", "q-learning"]\nruns = 3\nsteps = 4')
UNITS = units_of(STUDY.cells[0].setting(STUDY.cells[0].configurations[0]), "evaluate", range(3), 0.25)

VERSION_1 = """
CREATE TABLE settings (id TEXT PRIMARY KEY, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, setting TEXT NOT NULL REFERENCES settings (id), phase TEXT NOT NULL,
    replicate INTEGER NOT NULL, status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'over')),
    steps INTEGER NOT NULL, total REAL NOT NULL, ms_per_step REAL NOT NULL, cpu_seconds REAL NOT NULL,
    error TEXT NOT NULL, time_limit REAL NOT NULL, reproducible INTEGER NOT NULL,
    machine INTEGER NOT NULL REFERENCES machines (id), version TEXT NOT NULL, finished TEXT NOT NULL,
    UNIQUE (setting, phase, replicate)
) WITHOUT ROWID;
CREATE TABLE traces (run TEXT PRIMARY KEY REFERENCES runs (id), rewards BLOB NOT NULL);
INSERT INTO machines VALUES (1, '{"machine":"old"}');
PRAGMA application_id = 1650552164;
PRAGMA user_version = 1;
"""  # a file as the first version of the laboratory wrote it


def columns(connection):
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in tables}


def test_a_run_is_kept_once_with_all_that_belongs_to_it(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        assert store.commit(UNITS[0], outcome(2.5))
        assert not store.commit(UNITS[0], outcome(9.0))
    with Store(tmp_path / "s.sqlite", create=False) as store:
        (record,) = store.all_records()
        assert (record.id, record.total, record.replicate, record.status) == (UNITS[0].id, 2.5, 0, "done")
        assert store.traces([record.id]).tolist() == [[2.5, 0.0, 0.0, 0.0]]
        ((facts,),) = store.select("SELECT facts FROM settings WHERE id = ?", [record.setting])
        assert json.loads(facts)["steps"] == 4
        assert store.machine_of([record.id]) == {record.id: {"machine": "none"}}


def test_readers_are_not_locked_out_while_somebody_writes(tmp_path):
    with Store(tmp_path / "s.sqlite") as writer, Store(tmp_path / "s.sqlite") as reader:
        writer.commit(UNITS[0], outcome())
        with writer.transaction():
            writer.insert({**_row(UNITS[1], writer), "id": UNITS[1].id, "replicate": 1}, '{"machine":"none"}')
            begin = time.monotonic()
            assert len(reader.all_records()) == 1  # and not the one that is not committed
            assert time.monotonic() - begin < 5.0
        assert len(reader.all_records()) == 2


def _row(unit, store):
    (record,) = store.all_records()
    return vars(record) | {"id": unit.id}


def test_a_broken_transaction_leaves_nothing(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        with contextlib.suppress(ZeroDivisionError), store.transaction():
            store.connection.execute("INSERT INTO settings VALUES ('x', '{}')")
            raise ZeroDivisionError
        assert store.connection.execute("SELECT count(*) FROM settings").fetchone() == (0,)


def test_a_full_disk_is_an_error_in_words(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
        store.connection.execute(f"PRAGMA max_page_count = {pages}")

        def fill():
            for number in range(100):
                with store.transaction():
                    store.connection.execute("INSERT INTO settings VALUES (?, ?)", (str(number), "x" * 1000))

        with pytest.raises(OSError, match=r"cannot use the store: database or disk is full"):
            fill()


def test_a_file_of_the_first_version_is_led_on_and_loses_nothing(tmp_path):
    path = tmp_path / "old.sqlite"
    with Store(tmp_path / "new.sqlite") as new:
        new.commit(UNITS[0], outcome(2.5))
        wanted, kept = columns(new.connection), contents(new)
        old = sqlite3.connect(path)
        old.executescript(VERSION_1)
        rows = {
            name: new.connection.execute(
                f"SELECT {', '.join(one[1] for one in columns(old)[name])} FROM {name}"
            ).fetchall()
            for name in ("settings", "runs", "traces")
        }
    for name, lines in rows.items():
        old.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(lines[0]))})", lines)
    old.commit()
    old.close()
    with Store(path) as store:
        assert contents(store) == kept
        assert columns(store.connection) == wanted
        assert store.connection.execute("PRAGMA user_version").fetchone() == (len(store_module.MIGRATIONS),)
        live_through(STUDY, store, lambda unit: outcome())
        assert len(store.all_records()) == 6


def test_a_migration_that_breaks_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "old.sqlite"
    old = sqlite3.connect(path)
    old.executescript(VERSION_1)
    before = columns(old)
    old.close()
    monkeypatch.setattr(
        store_module,
        "MIGRATIONS",
        (store_module.MIGRATIONS[0], "CREATE TABLE half (x); CREATE TABLE half (x)"),
    )
    with pytest.raises(OSError, match="table half already exists"):
        Store(path)
    again = sqlite3.connect(path)
    assert columns(again) == before
    assert again.execute("PRAGMA user_version").fetchone() == (1,)
    again.close()


def test_files_that_are_not_ours_or_too_new_are_refused(tmp_path):
    foreign = sqlite3.connect(tmp_path / "foreign.sqlite")
    foreign.execute("CREATE TABLE x (y)")
    foreign.commit()
    foreign.close()
    with pytest.raises(ValueError, match="database of something else"):
        Store(tmp_path / "foreign.sqlite")
    (tmp_path / "text.sqlite").write_text("hello, this is not a database at all" * 100)
    with pytest.raises(ValueError, match="is not a store of bamdp"):
        Store(tmp_path / "text.sqlite")
    with Store(tmp_path / "new.sqlite") as store:
        store.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="newer bamdp"):
        Store(tmp_path / "new.sqlite")
    with pytest.raises(FileNotFoundError, match="run the study first"):
        Store(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_many_may_open_a_new_store_at_the_same_time(tmp_path):
    """60 rounds of 6 threads; reading version, mark and tables one after the other failed in about one of 15."""
    errors = []

    def go(path, barrier):
        barrier.wait()
        try:
            Store(path).close()
        except Exception as error:
            errors.append(error)

    for number in range(60):
        barrier = threading.Barrier(6)
        threads = [
            threading.Thread(target=go, args=(tmp_path / f"{number}.sqlite", barrier)) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_two_drivers_share_a_study_and_never_do_the_same_run(tmp_path):
    with (
        Store(tmp_path / "s.sqlite") as a,
        Store(tmp_path / "s.sqlite") as b,
        a.claims.driving(),
        b.claims.driving(),
    ):
        one, two = queue_of(STUDY, a), queue_of(STUDY, b)
        first = [one.take() for _ in range(4)]
        second = []
        while (unit := two.take()) is not None:
            second.append(unit)
        taken = [unit.id for unit in first + second]
        assert len(taken) == len(set(taken)) == 6
        for unit in first:
            one.finish(unit, outcome())
        for unit in second:
            two.finish(unit, outcome())
        assert one.take() is None
        assert not one.wait()  # what the other one did is there
        assert not two.wait()
        assert len(a.all_records()) == 6


def test_what_a_driver_gives_up_is_done_by_the_other(tmp_path):
    with Store(tmp_path / "s.sqlite") as b:
        with b.claims.driving(), Store(tmp_path / "s.sqlite") as a:
            two = queue_of(STUDY, b)
            with a.claims.driving():
                one = queue_of(STUDY, a)
                held = [one.take() for _ in range(6)]
                assert two.take() is None
                assert a.claims.claimed() == b.claims.claimed() == {unit.id for unit in held}
            assert two.wait()  # Ctrl-C there: its claims are free
            assert {two.take().id for _ in range(6)} == {unit.id for unit in held}
        assert b.claims.claimed() == set()


@pytest.mark.parametrize(
    ("host", "pid", "age", "free"),
    [
        ("here", "dead", 0.0, True),  # killed -9 on this machine: noticed at once
        ("here", "alive", 0.0, False),
        ("elsewhere", "dead", 0.0, False),  # what is a process there, only its heart can tell
        ("elsewhere", "dead", 2 * claims.MAX_SILENCE, True),
        ("here", "alive", 2 * claims.MAX_SILENCE, True),
    ],
)
def test_claims_of_dead_drivers_are_free(tmp_path, monkeypatch, host, pid, age, free):
    """What only the heartbeat tells is believed when it has been watched for two beats."""
    monkeypatch.setattr(claims, "HEARTBEAT", 0.01)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    row = (
        "other",
        platform.node() if host == "here" else "elsewhere",
        gone.pid if pid == "dead" else os.getpid(),
        time.time() - age,
    )
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        store.connection.execute("INSERT INTO drivers VALUES (?, ?, ?, ?)", row)
        store.connection.execute("INSERT INTO claims VALUES (?, 'other')", (UNITS[0].id,))
        store.claims.claimed()
        time.sleep(0.05)
        assert (UNITS[0].id in store.claims.claimed()) is not free
        assert store.claims.take(UNITS[0].id) is free


def test_the_heart_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "HEARTBEAT", 0.01)
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        beat = lambda: store.connection.execute("SELECT beat FROM drivers").fetchone()[0]
        first = beat()
        for _ in range(500):
            if beat() > first:
                break
            time.sleep(0.02)
        assert beat() > first


def test_failed_and_stopped_runs_are_in_the_results_with_their_errors(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        fates = {
            0: outcome(),
            1: outcome(status=FAILED, error="ValueError: no"),
            2: outcome(status=OVER_LIMIT, error="over"),
        }
        live_through(STUDY, store, lambda unit: fates[unit.replicate])
        for sample in collect_results(STUDY, store).samples:
            assert sample.failures == ("run 1: ValueError: no", "run 2: over")
            assert sample.replicates.tolist() == [0]
            assert sample.traces().shape == (1, 4)
            assert "1 of 3 runs failed" in sample.excluded
        assert np.isfinite(collect_results(STUDY, store).ceilings["chain"].optimum)
