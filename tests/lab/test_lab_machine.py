"""What a machine does to a study: a full disk, a folder that cannot be written any more, a clock that is set."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import time

import pytest
from lab_fakes import contents, live_through, outcome, queue_of

from bamdp.cli import main
from bamdp.lab import claims
from bamdp.lab.reading import parse_study
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store

TEXT = """
title = "Machine"
environments = ["chain"]
steps = 40
runs = 12
[algorithms.random]
[algorithms.q-learning]
epsilon = [0.1, 0.3]
[tuning]
runs = 2
"""
STUDY = parse_study(TEXT)
N_RUNS = 12 + 2 * 2 + 12
HOUR = 3600.0


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What a run without trouble comes to."""
    with Store(tmp_path_factory.mktemp("lab") / "one.sqlite") as store:
        run_study(STUDY, store)
        return contents(store)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys, command, status):
    assert main(command.split()) == status
    return capsys.readouterr().err


@pytest.mark.parametrize("committed", [0, 1, 7])
@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("max_page_count = 1", "disk is full; make room, and the same command goes on"),
        ("query_only = ON", "readonly database; make file and folder writable, and the same command goes on"),
    ],
)
def test_a_store_that_cannot_be_written_any_more_stops_the_driver_in_a_line(
    folder, capsys, monkeypatch, reference, pragma, message, committed
):
    """Whatever was committed is kept, and the same command goes on."""
    real, done = Store.commit, []

    def commit(self, unit, result):
        if len(done) == committed:
            self.connection.execute(f"PRAGMA {pragma}")
            if pragma.startswith("max"):  # it cannot be less than there are; the next page is one too many
                with contextlib.suppress(OSError):
                    while True:
                        with self.transaction():
                            row = (str(time.monotonic_ns()), "x" * 5000)
                            self.connection.execute("INSERT INTO settings VALUES (?, ?)", row)
        done.append(unit.id)
        return real(self, unit, result)

    monkeypatch.setattr(Store, "commit", commit)
    err = told(capsys, "lab run s.toml", 2)
    assert message in err
    assert len(err.splitlines()) == 1
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    with Store("s.sqlite") as store:
        kept = contents(store)
        assert committed <= len(kept) < N_RUNS
        assert kept.items() <= reference.items()
    monkeypatch.setattr(claims, "_process_exists", lambda pid: False)  # the driver's process has ended
    told(capsys, "lab run s.toml", 0)
    with Store("s.sqlite") as store:
        assert contents(store) == reference


@contextlib.contextmanager
def small_disk(path, kilobytes):
    """A file system of this size; where it cannot be had, the test is skipped."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_on_a_disk_that_fills_up_nothing_is_lost_and_the_same_command_goes_on(folder, capsys, reference):
    with small_disk(folder / "disk", 512) as disk:
        command = f"lab run s.toml --store {disk / 's.sqlite'}"
        (disk / "filler").write_bytes(bytes(350_000))
        err = told(capsys, command, 2)
        assert "s.sqlite: cannot use the store: " in err
        assert "make room" in err
        assert len(err.splitlines()) == 1
        (disk / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        told(capsys, command, 0)
        with Store(disk / "s.sqlite") as store:
            assert contents(store) == reference


def test_on_a_disk_that_is_read_only_every_command_ends_in_a_line(folder, capsys):
    with small_disk(folder / "disk", 8192) as disk:
        told(capsys, f"lab run s.toml --store {disk / 's.sqlite'}", 0)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in ("run", "status", "report", "check"):
            err = told(capsys, f"lab {command} s.toml --store {disk / 's.sqlite'}", 2)
            assert "writable" in err
            assert len(err.splitlines()) == 1


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_that_is_set_takes_no_claim_from_a_living_driver(tmp_path, monkeypatch, jump):
    """Not before its next heartbeat, which has the new time, nor after it."""
    monkeypatch.setattr(claims, "HEARTBEAT", 30.0)  # none comes by itself
    with (
        Store(tmp_path / "s.sqlite") as a,
        Store(tmp_path / "s.sqlite") as b,
        a.claims.driving(),
        b.claims.driving(),
    ):
        unit = queue_of(STUDY, a).take()
        now, monotonic = time.time(), time.monotonic()
        monkeypatch.setattr(time, "time", lambda: now + jump)
        assert not b.claims.take(unit.id)
        monkeypatch.setattr(time, "monotonic", lambda: monotonic + 40.0)
        beat = "UPDATE drivers SET beat = ? WHERE id = ?"
        a.connection.execute(beat, (time.time() - 10.0, a.claims.driver))
        assert not b.claims.take(unit.id)
        assert unit.id in b.claims.claimed()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_that_is_set_keeps_no_claim_of_a_dead_driver(tmp_path, monkeypatch, jump):
    """Its process cannot be asked, being elsewhere, or its number belongs to another by now."""
    for host in ("elsewhere", platform.node()):
        with Store(tmp_path / f"{host}.sqlite") as store, store.claims.driving():
            unit = queue_of(STUDY, store).take()
            row = ("dead", host, os.getpid(), time.time() + jump)
            store.connection.execute("INSERT INTO drivers VALUES (?, ?, ?, ?)", row)
            store.connection.execute("UPDATE claims SET driver = 'dead'")
            assert not store.claims.take(unit.id)  # it may be alive: watch it
            now = time.monotonic()
            with monkeypatch.context() as patch:
                patch.setattr(time, "monotonic", lambda now=now: now + 3.0 * claims.HEARTBEAT)
                assert store.claims.take(unit.id)


def test_a_study_goes_on_while_the_clock_goes_back(tmp_path, monkeypatch, reference):
    clock = [time.time()]

    def earlier():
        clock[0] -= 100.0
        return clock[0]

    monkeypatch.setattr(time, "time", earlier)
    with Store(tmp_path / "s.sqlite") as store:
        run_study(STUDY, store)
        assert contents(store) == reference


@pytest.mark.parametrize(("column", "value"), [("pid", 2**60), ("pid", "x"), ("beat", "x"), ("beat", b"\0")])
def test_a_driver_whose_record_is_damaged_holds_nothing(tmp_path, column, value):
    with Store(tmp_path / "s.sqlite") as store, store.claims.driving():
        unit = queue_of(STUDY, store).take()
        row = ("dead", platform.node(), os.getpid(), time.time())
        store.connection.execute("INSERT INTO drivers VALUES (?, ?, ?, ?)", row)
        store.connection.execute("UPDATE claims SET driver = 'dead'")
        assert store.claims.claimed() == {unit.id}
        store.connection.execute(f"UPDATE drivers SET {column} = ? WHERE id = 'dead'", (value,))
        assert store.claims.claimed() == set()
        assert store.claims.take(unit.id)


def test_a_run_damaged_under_two_drivers_is_done_again_once(tmp_path):
    """The second one finds that the first has it in work."""
    with Store(tmp_path / "s.sqlite") as store:
        done = live_through(STUDY, store, lambda unit: outcome())
        store.connection.execute("UPDATE runs SET total = 9.0 WHERE id = ?", (done[0].id,))
    with Store(tmp_path / "s.sqlite") as a, Store(tmp_path / "s.sqlite") as b:
        with a.claims.driving(), b.claims.driving():
            one, two = queue_of(STUDY, a), queue_of(STUDY, b)
            unit = one.take()
            assert unit.id == done[0].id
            assert two.take() is None
            one.finish(unit, outcome())
            assert not two.wait()
        assert len(b.all_records()) == len(done)
        assert b.damaged == set()
