"""A store can be trusted: whatever is changed in its file is noticed, named in a line, and can be made good."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3

import pytest
from lab_fakes import contents

from bamdp.cli import main
from bamdp.lab import store as store_module
from bamdp.lab.collect import collect_provenance, collect_results, study_status
from bamdp.lab.exports import export_runs, import_runs, write_csv
from bamdp.lab.reading import load_study
from bamdp.lab.runner import run_study
from bamdp.lab.store import Damage, Store

TEXT = """
title = "Damage"
environments = ["chain"]
steps = 6
runs = 3
[algorithms.random]
[algorithms.q-learning]
epsilon = [0.1, 0.3]
[tuning]
runs = 2
"""
N_RUNS = 3 + 2 * 2 + 3
N_FLIPS = 400  # places in the file at which bits are flipped, one after the other


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a study that is complete: its file, its store, closed and without a write-ahead log."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "s.toml").write_text(TEXT)
    with Store(folder / "s.sqlite") as store:
        run_study(load_study(folder / "s.toml"), store)
    assert not (folder / "s.sqlite-wal").exists()
    return folder


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    """A copy of it, which is the working directory."""
    for name in ("s.toml", "s.sqlite"):
        shutil.copy(whole / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study():
    return load_study("s.toml")


def shown(results):
    """All that tables and figures are made of."""
    return [
        (
            s.environment,
            s.algorithm,
            s.phase,
            dict(s.configuration),
            s.replicates.tolist(),
            s.totals.tolist(),
            s.ms_per_step.tolist(),
            s.cpu_seconds.tolist(),
            s.traces().tolist(),
            s.failures,
            s.chosen,
            s.excluded,
        )
        for s in results.samples
    ]


def rewards_by_run():
    with Store("s.sqlite") as store:
        return contents(store)


def edit(query, *parameters):
    connection = sqlite3.connect("s.sqlite")
    with connection:
        assert connection.execute(query, parameters).rowcount == 1
    connection.close()


def evaluated_run():
    """The identity of run 1 of random."""
    with Store("s.sqlite") as store:
        cell = study().cells[0]
        facts = {name: json.loads(text) for name, text in store.select("SELECT id, facts FROM settings")}
        records = [r for r in store.all_records() if facts[r.setting]["planner"]["class"] == "Random"]
        (run,) = (r.id for r in records if r.replicate == 1)
    assert cell.algorithm == "random"
    return run


def call(capsys, command, status=0):
    assert main(command.split()) == status
    return capsys.readouterr()


EDITS = {
    "total": ("UPDATE runs SET total = total + 0.5 WHERE id = ?", ()),
    "time": ("UPDATE runs SET ms_per_step = 2 * ms_per_step WHERE id = ?", ()),
    "status": ("UPDATE runs SET status = 'failed' WHERE id = ?", ()),
    "machine": ("UPDATE runs SET machine = machine + 1 WHERE id = ?", ()),
    "replicate": ("UPDATE runs SET replicate = 77 WHERE id = ?", ()),
    "checksum": ("UPDATE runs SET checksum = '' WHERE id = ?", ()),
    "no text": ("UPDATE runs SET version = CAST(x'ff80' AS TEXT) WHERE id = ?", ()),
    "number of another type": ("UPDATE runs SET total = x'00' WHERE id = ?", ()),
    "trace": ("UPDATE traces SET rewards = x'789c0000' WHERE run = ?", ()),
    "no trace": ("DELETE FROM traces WHERE run = ?", ()),
    "trace of another": ("UPDATE traces SET run = 'x' WHERE run = ?", ()),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_run_that_was_edited_is_named_left_out_and_done_again(folder, capsys, what):
    before = rewards_by_run()
    run = evaluated_run()
    edit(EDITS[what][0], run)
    named = "random in chain: damaged in the store: run 1 of the evaluation; left out"
    with Store("s.sqlite") as store:
        results = collect_results(study(), store)
        (sample,) = (s for s in results.samples if s.algorithm == "random")
        assert sample.replicates.tolist() == [0, 2]
        assert not sample.complete
        assert [note for note in results.notes if named in note]
        assert "not complete, 1 or more runs are missing" in " ".join(results.waiting.values())
        assert [cell.missing for cell in study_status(study(), store)] == [1, 0]
        assert (
            export_runs(study(), store, "out.runs.xz") == write_csv(study(), store, "out.csv") == N_RUNS - 1
        )
    for command, status in (("status", 0), ("export", 0), ("check", 1)):
        assert named in call(capsys, f"lab {command} s.toml", status).err
    told = call(capsys, "lab run s.toml").err
    assert "random in chain: damaged in the store: run 1 of the evaluation; done again" in told
    assert rewards_by_run() == before
    assert call(capsys, "lab check s.toml").err.endswith(f"{N_RUNS} runs are sound\n")


@pytest.mark.parametrize("bit", [1, 128])  # another digit; no text any more
def test_a_run_whose_identity_is_damaged_is_named_and_done_again(folder, capsys, bit):
    before, run = rewards_by_run(), evaluated_run()
    data = (folder / "s.sqlite").read_bytes()
    place = next(p for p in places(data, run) if row_follows(data, p))
    flipped = bytearray(data)
    flipped[place + 31] ^= bit  # the last of its 32 digits, so that the order of the table stays
    (folder / "s.sqlite").write_bytes(flipped)
    assert "random in chain: damaged in the store: run 1" in call(capsys, "lab status s.toml").err
    call(capsys, "lab check s.toml", 1)
    assert "run 1 of the evaluation; done again" in call(capsys, "lab run s.toml").err
    assert rewards_by_run() == before
    call(capsys, "lab check s.toml")


def test_runs_that_are_not_found_because_another_is_out_of_order_are_damage(folder, capsys):
    """SQLite's own check of pages does not notice it."""
    with Store("s.sqlite") as store:
        (run,) = store.connection.execute("SELECT min(id) FROM runs").fetchone()
    data = bytearray((folder / "s.sqlite").read_bytes())
    for place in list(places(bytes(data), run)):
        data[place] = ord("z")
    (folder / "s.sqlite").write_bytes(data)
    for command in ("status", "check", "run", "export"):
        assert (
            "the store is damaged (its runs are not in order)" in call(capsys, f"lab {command} s.toml", 2).err
        )


def places(data, word):
    found = data.find(word.encode())
    while found >= 0:
        yield found
        found = data.find(word.encode(), found + 1)


def row_follows(data, place):
    """Whether the row of a run begins here: after its identity come that of its setting and the phase."""
    return data[place + 64 : place + 72] == b"evaluate"


def test_a_tuning_run_is_done_again_though_the_decision_by_it_stands(folder, capsys):
    before = rewards_by_run()
    edit("UPDATE runs SET total = 99.0 WHERE id = (SELECT id FROM runs WHERE phase = 'tune' LIMIT 1)")
    assert "of tuning; left out" in call(capsys, "lab status s.toml").err
    assert "of tuning; done again" in call(capsys, "lab run s.toml").err
    assert rewards_by_run() == before


def test_a_damaged_decision_is_made_again_from_the_runs(folder, capsys):
    with Store("s.sqlite") as store:
        expected = shown(collect_results(study(), store))
    edit("""UPDATE decisions SET facts = replace(facts, '"chosen":0', '"chosen":1')
            || CASE WHEN facts LIKE '%"chosen":1%' THEN ' ' ELSE '' END""")
    with Store("s.sqlite") as store:
        results = collect_results(study(), store)
        assert shown(results) == expected
        assert [note for note in results.notes if "a decision of tuning; it is made again" in note]
    assert "1 decisions of tuning" in call(capsys, "lab run s.toml").err
    with Store("s.sqlite") as store:
        assert store.check() == Damage()
        assert shown(collect_results(study(), store)) == expected


def test_damaged_descriptions_of_settings_and_machines_cost_no_run(folder, capsys):
    before = rewards_by_run()
    edit("UPDATE settings SET facts = '{}' WHERE id = (SELECT min(id) FROM settings)")
    edit("UPDATE machines SET facts = '{}'")
    told = call(capsys, "lab check s.toml", 1).err
    assert "1 descriptions of settings" in told
    assert "1 descriptions of machines" in told
    call(capsys, "lab export s.toml")
    with Store("s.sqlite") as store:
        assert collect_provenance(study(), store).facts["machine"].startswith("unknown, ")
    call(capsys, "lab run s.toml")
    assert rewards_by_run() == before
    with Store("s.sqlite") as store, Store("copy.sqlite") as copy:
        assert not store.check().settings
        assert import_runs(copy, "s.runs.xz").new == N_RUNS
        assert {facts["processor"] for facts in copy.machine_of(contents(copy)).values()} == {"unknown"}


def test_an_older_file_gets_checksums_and_what_cannot_be_true_counts_as_damaged(folder):
    run, connection = evaluated_run(), sqlite3.connect("s.sqlite")
    for table in ("runs", "machines", "decisions"):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    connection.execute("UPDATE runs SET total = total + 1 WHERE id = ?", (run,))
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    with Store("s.sqlite") as store:
        assert len(store.all_records()) == N_RUNS - 1
        assert store.check() == Damage(runs=frozenset({run}))


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (0, "is not a store of bamdp"),
        (16, "is not a store of bamdp"),
        (63, "was written by a newer bamdp"),
        (68, "is a database of something else"),
        (100, "damaged"),
    ],
)
def test_a_file_whose_head_is_damaged_is_refused_in_a_line(folder, capsys, offset, message):
    data = bytearray((folder / "s.sqlite").read_bytes())
    data[offset] ^= 0x55
    (folder / "s.sqlite").write_bytes(data)
    for command in ("status", "report", "export", "check", "run"):
        told = call(capsys, f"lab {command} s.toml", 2).err
        assert message in told
        assert len(told.splitlines()) == 1


def test_a_file_that_was_cut_is_refused_with_what_to_do(folder, capsys):
    data = (folder / "s.sqlite").read_bytes()
    (folder / "s.sqlite").write_bytes(data[: len(data) // 2])
    told = call(capsys, "lab report s.toml", 2).err
    assert "the store is damaged" in told
    assert "move the file away, import the last export" in told


def flips(size):
    """Every part of the file, evenly spaced, and which bits are flipped there."""
    dice = random.Random(size)
    return [
        (int(k * size / N_FLIPS) + dice.randrange(size // N_FLIPS), 1 << dice.randrange(8))
        for k in range(N_FLIPS)
    ]


def test_no_flipped_bit_changes_a_number_silently(folder):
    """The results are the same as before, or the damage is named; and no error is of another kind than those told."""
    data = (folder / "s.sqlite").read_bytes()
    with Store("s.sqlite") as store:
        expected = shown(collect_results(study(), store))
    the_study, fates, refusals = study(), {"same": 0, "named": 0}, []
    for offset, bit in flips(len(data)):
        flipped = bytearray(data)
        flipped[offset] ^= bit
        (folder / "s.sqlite").write_bytes(flipped)
        try:
            with Store("s.sqlite", create=False) as store:
                results = collect_results(the_study, store)
                found = shown(results)
                study_status(the_study, store)
        except (OSError, ValueError) as error:
            refusals.append(str(error))
            continue
        named = any("damaged in the store" in note for note in results.notes)
        assert named or found == expected, offset
        fates["named" if named else "same"] += 1
        sound = {
            (*row[:3], tuple(row[3].items())): dict(zip(row[4], row[5], strict=True)) for row in expected
        }
        for row in found:  # what is left is what it was
            totals = sound[(*row[:3], tuple(row[3].items()))]
            assert all(totals[r] == total for r, total in zip(row[4], row[5], strict=True)), offset
    assert min(fates.values()) > 0, fates
    assert refusals
    assert all("s.sqlite" in line and len(line.splitlines()) == 1 for line in refusals)


@pytest.mark.parametrize("part", range(4))
def test_commands_on_a_flipped_store_end_in_lines_never_in_a_traceback(folder, capsys, part):
    data = (folder / "s.sqlite").read_bytes()
    expected = rewards_by_run()
    for offset, bit in flips(len(data))[part::40]:
        flipped = bytearray(data)
        flipped[offset] ^= bit
        (folder / "s.sqlite").write_bytes(flipped)
        status = main("lab run s.toml".split())
        told = capsys.readouterr().err
        assert status in (0, 2), (offset, told)
        assert "Traceback" not in told
        if status == 0:
            assert rewards_by_run() == expected, offset
        else:
            assert told.startswith("error: "), offset
            assert len(told.splitlines()) == 1, (offset, told)


def test_large_files_are_opened_without_a_look_at_all_pages(folder, monkeypatch):
    looked = []
    monkeypatch.setattr(store_module, "_page_errors", lambda *arguments: looked.append(arguments) or ())
    Store("s.sqlite").close()
    assert len(looked) == 1
    monkeypatch.setattr(store_module, "CHECKED_BYTES", 1000)
    Store("s.sqlite").close()
    assert len(looked) == 1
