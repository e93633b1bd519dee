"""One table: unique runs, several processes, damage, other files and versions."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from lab_fakes import by_number, contents, live_through, number, record

from bamdp.lab.runner import CellSchedule
from bamdp.lab.store import OVER_LIMIT, SCHEMA_VERSION, Store
from bamdp.lab.study import parse_study

STUDY = parse_study('environments = ["chain"]\nruns = 3\nsteps = 4\n[algorithms.sboss]\nn_models = [1, 2]')
SHARED = """
runs = 2
steps = 4
[environments.strict]
env = "chain"
limit = 0.01
[environments.loose]
env = "chain"
[algorithms.sboss]
n_models = [1, 2, 3]
[tuning]
runs = 2
"""


@pytest.fixture
def unit():
    return STUDY.units()[0]


def test_a_record_comes_back_as_it_was(store, unit):
    written = record(unit, 0.1, mean_return=0.5)
    store.commit(written)
    assert store.records([unit.id, "other"], traces=True) == {unit.id: written}
    assert store.records([unit.id])[unit.id].trace is None


def test_of_one_run_done_twice_the_first_is_kept(tmp_path, unit):
    with Store(tmp_path / "s.sqlite") as one, Store(tmp_path / "s.sqlite") as two:
        one.commit(record(unit, 1.0))
        two.commit(record(unit, 2.0))
        assert (len(one), one.records([unit.id])[unit.id].total) == (1, 1.0)


def test_a_run_that_was_stopped_gives_way_to_the_same_run_under_a_wider_limit(store, unit):
    stopped = replace(record(unit, status=OVER_LIMIT), time_limit=0.1)
    store.commit(stopped)
    assert store.missing([replace(unit, limit=0.1)]) == []
    assert store.missing([replace(unit, limit=0.2)]) == [replace(unit, limit=0.2)]
    store.commit(replace(record(unit, 3.0), time_limit=0.05))
    assert store.records([unit.id])[unit.id].status == OVER_LIMIT
    store.commit(replace(record(unit, 3.0), time_limit=0.2))
    assert store.records([unit.id])[unit.id].total == 3.0


@pytest.mark.parametrize("first", [["strict"], ["loose"], []])
def test_cells_share_runs_but_not_limits_whatever_comes_first(store, first):
    def slow_ones_stop(unit):
        if number(unit) == 3 and unit.limit < 0.1:
            return record(unit, status=OVER_LIMIT, error="over")
        return record(unit, float(number(unit)), ms=100.0 if number(unit) == 3 else 1.0)

    study = parse_study(SHARED)
    part = replace(study, cells=tuple(c for c in study.cells if c.environment.label in first) or study.cells)
    live_through(part, store, slow_ones_stop)
    live_through(study, store, slow_ones_stop)
    found = [CellSchedule(study, cell, store) for cell in study.cells]
    assert [one.replay() for one in found] == [[], []]
    assert [one.chosen for one in found] == [1, 2]


def test_a_damaged_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        live_through(STUDY, store, by_number)
        before = contents(store)
    assert len(before) == 6
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(
        OSError, match=r"the store is damaged .*; move the file away and run the study again"
    ) as error:
        Store(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"PRAGMA user_version = {SCHEMA_VERSION + 1}", "was written by another version of bamdp"),
        (
            "PRAGMA user_version = 4",
            "was written by another version of bamdp .*; choose another file, or use that",
        ),
        ("PRAGMA application_id = 7", "is a database of something else"),
    ],
)
def test_a_file_of_another_version_or_kind_is_refused_in_one_line(tmp_path, script, message):
    path = tmp_path / "s.sqlite"
    Store(path).__exit__()
    with sqlite3.connect(path) as connection:
        connection.execute(script)
    connection.close()
    with pytest.raises(ValueError, match=message):
        Store(path)


def test_what_is_no_database_is_refused_and_a_missing_file_is_not_made_for_reading(tmp_path):
    (tmp_path / "notes.txt").write_text("no database" * 100)
    with pytest.raises(ValueError, match=r"notes\.txt is not a store of bamdp"):
        Store(tmp_path / "notes.txt")
    with pytest.raises(FileNotFoundError, match="run the study first"):
        Store(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_full_disk_is_one_line_and_what_was_stored_is_kept(store):
    units = STUDY.units()
    store.commit(record(units[0]))
    store.connection.execute("PRAGMA max_page_count = 1")

    def fill():
        for unit in units[1:] * 1000:
            store.commit(replace(record(unit), trace=bytes(100_000)))

    with pytest.raises(OSError, match=r"full.*repeat the command: completed runs are kept"):
        fill()
    assert len(store) >= 1
