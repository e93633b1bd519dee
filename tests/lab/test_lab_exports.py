"""Files to commit and to go on from: exact, refused when damaged, and tables for other programs."""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
import sys

import pytest
from lab_fakes import contents, live_through, outcome, queue_of

from bamdp.lab.collect import collect_results
from bamdp.lab.exports import export_runs, import_runs, write_csv, write_parquet
from bamdp.lab.reading import parse_study
from bamdp.lab.store import Store
from bamdp.lab.units import FAILED, canonical_json

STUDY = parse_study("""
title = "Portable"
environments = ["chain"]
steps = 4
runs = 3
[algorithms.sboss]
n_models = [1, 2, 3, 4, 5, 6, 7, 8, 9]
[algorithms.bamcp]
depth = [15, "auto"]
[tuning]
method = "halving"
runs = 6
budget = 30
""")


def fate(unit):
    parameters = unit.setting.planner.parameters()
    n = parameters.get("n_models", 1)
    if n == 3:
        return outcome(status=FAILED, error="ValueError: no, not “three”")
    return outcome(n + 0.1 * unit.replicate, cpu=0.3 + 0.01 * n, ms=1 / 3)


@pytest.fixture
def full(tmp_path):
    with Store(tmp_path / "full.sqlite") as store:
        live_through(STUDY, store, fate)
        yield store


def shown(store):
    return [
        (
            s.phase,
            s.algorithm,
            dict(s.configuration),
            s.totals.tolist(),
            s.ms_per_step.tolist(),
            s.chosen,
            s.excluded,
        )
        for s in collect_results(STUDY, store).samples
    ]


def test_what_was_exported_comes_back_to_the_bit(full, tmp_path):
    count = export_runs(STUDY, full, tmp_path / "runs.xz")
    with Store(tmp_path / "other.sqlite") as other:
        found = import_runs(other, tmp_path / "runs.xz")
        assert (found.new, found.known, found.other) == (count, 0, 0)
        assert contents(other) == contents(full)
        assert shown(other) == shown(full)
        assert other.all_records() == full.all_records()
        assert live_through(STUDY, other, fate) == []  # decisions came along: nothing is left to do
        again = import_runs(other, tmp_path / "runs.xz")
        assert (again.new, again.known, again.other) == (0, count, 0)


def test_the_same_runs_give_the_same_bytes(full, tmp_path):
    export_runs(STUDY, full, tmp_path / "a.xz")
    with Store(tmp_path / "other.sqlite") as other:
        import_runs(other, tmp_path / "a.xz")
        export_runs(STUDY, other, tmp_path / "b.xz")
    assert (tmp_path / "a.xz").read_bytes() == (tmp_path / "b.xz").read_bytes()
    assert sorted(path.name for path in tmp_path.glob("*.xz")) == ["a.xz", "b.xz"]


def test_a_study_goes_on_elsewhere_from_a_part_of_its_runs(full, tmp_path):
    with Store(tmp_path / "part.sqlite") as part, part.claims.driving():
        queue = queue_of(STUDY, part)
        for _ in range(15):
            unit = queue.take()
            queue.finish(unit, fate(unit))
        export_runs(STUDY, part, tmp_path / "part.xz")
    with Store(tmp_path / "elsewhere.sqlite") as store:
        assert import_runs(store, tmp_path / "part.xz").new == 15
        live_through(STUDY, store, fate)
        assert shown(store) == shown(full)


def test_only_the_runs_of_the_study_are_exported(full, tmp_path):
    few = parse_study('environments = ["chain"]\nsteps = 4\nruns = 1\n[algorithms.sboss]\nn_models = 9')
    assert export_runs(few, full, tmp_path / "few.xz") == 1


def test_runs_that_differ_from_those_that_are_there_are_told_and_not_taken(full, tmp_path):
    export_runs(STUDY, full, tmp_path / "runs.xz")
    with Store(tmp_path / "other.sqlite") as other:
        live_through(STUDY, other, lambda unit: outcome(-1.0))
        before = contents(other)
        found = import_runs(other, tmp_path / "runs.xz")
        assert found.other > 0
        assert before.items() <= contents(other).items()


def change(path, edit, seal=True):
    """Edit the entries of a file, and its last line so that it agrees, as one would who means to deceive."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines.pop()
    edit(lines)
    lines.append(
        {
            "digest": hashlib.sha256(
                "".join(canonical_json(line) + "\n" for line in lines).encode()
            ).hexdigest()
        }
    )
    if not seal:
        lines[-1]["digest"] = "0" * 64
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def entry(lines, kind, **has):
    return next(e for e in lines if kind in e and all(e.get(key) == value for key, value in has.items()))


def test_any_change_is_noticed_by_the_last_line(full, tmp_path):
    export_runs(STUDY, full, tmp_path / "runs.xz")
    slower = lambda lines: entry(lines, "run", status="done").update(ms_per_step=0.001)
    change(tmp_path / "runs.xz", slower, seal=False)
    with (
        Store(tmp_path / "other.sqlite") as other,
        pytest.raises(ValueError, match="last line does not agree"),
    ):
        import_runs(other, tmp_path / "runs.xz")


def test_a_thin_file_is_smaller_and_as_good_to_go_on_from(full, tmp_path):
    count = export_runs(STUDY, full, tmp_path / "full.xz")
    assert export_runs(STUDY, full, tmp_path / "thin.xz", thin=True) == count
    assert (tmp_path / "thin.xz").stat().st_size < (tmp_path / "full.xz").stat().st_size
    with Store(tmp_path / "other.sqlite") as other:
        assert import_runs(other, tmp_path / "thin.xz").new == count
        assert shown(other) == shown(full)
        assert other.all_records() == full.all_records()
        assert live_through(STUDY, other, fate) == []
        evaluated = [s for s in collect_results(STUDY, other).samples if s.phase == "evaluate"]
        assert all(s.traces().shape == (3, 4) for s in evaluated)
        export_runs(STUDY, other, tmp_path / "again.xz")
        write_parquet(STUDY, other, tmp_path / "runs.parquet")
    assert (tmp_path / "again.xz").read_bytes() == (tmp_path / "thin.xz").read_bytes()


def test_only_rewards_of_tuning_may_be_left_out(full, tmp_path):
    export_runs(STUDY, full, tmp_path / "runs.xz")
    bare = lambda lines: entry(lines, "run", status="done", phase="evaluate").update(rewards=None)
    change(tmp_path / "runs.xz", bare)
    with Store(tmp_path / "other.sqlite") as other, pytest.raises(ValueError, match="damaged or edited"):
        import_runs(other, tmp_path / "runs.xz")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: entry(lines, "run", status="done").update(total=1e6), "damaged or edited"),
        (lambda lines: entry(lines, "run").update(replicate=99), "damaged or edited"),
        (lambda lines: entry(lines, "setting")["facts"].update(discount=0.5), "damaged or edited"),
        (lambda lines: entry(lines, "run", status="done").update(rewards="AAAA"), "damaged or edited"),
        (lambda lines: entry(lines, "run").update(status="fine"), "damaged or edited"),
        (lambda lines: entry(lines, "run").pop("of"), "damaged or edited"),
        (lambda lines: entry(lines, "run").pop("version"), "damaged or edited"),
        (lambda lines: entry(lines, "run").update(on="nowhere"), "damaged or edited"),
        (lambda lines: lines.append({"riddle": 3}), "damaged or edited"),
        (lambda lines: lines.append([3]), "damaged or edited"),
        (lambda lines: lines[0].update(version=99), "another bamdp"),
        (lambda lines: lines.pop(0), "not a file of runs"),
        (lambda lines: lines.clear(), "not a file of runs"),
    ],
)
def test_a_file_that_was_changed_is_refused_and_nothing_is_taken(full, tmp_path, edit, message):
    path = tmp_path / "runs.xz"
    export_runs(STUDY, full, path)
    change(path, edit)
    with Store(tmp_path / "other.sqlite") as other:
        with pytest.raises(ValueError, match=message):
            import_runs(other, path)
        assert other.all_records() == []


def test_a_file_that_was_cut_off_is_refused(full, tmp_path):
    path = tmp_path / "runs.xz"
    export_runs(STUDY, full, path)
    path.write_bytes(path.read_bytes()[:-50])
    with Store(tmp_path / "other.sqlite") as other, pytest.raises(ValueError, match="is damaged"):
        import_runs(other, path)


def test_csv_has_a_row_for_each_run(full, tmp_path):
    count = write_csv(STUDY, full, tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count == len(full.all_records())
    records = full.records(row["id"] for row in rows)
    assert all(float(row["total"]) == records[row["id"]].total for row in rows)  # exactly
    assert {row["parameter.depth"] for row in rows} == {"", "15", "auto"}
    assert {row["status"] for row in rows} == {"done", "failed"}


def test_parquet_has_the_rewards_of_every_step(full, tmp_path):
    import pyarrow.parquet

    count = write_parquet(STUDY, full, tmp_path / "runs.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "runs.parquet").to_pylist()
    assert len(table) == count
    for row in table:
        if row["status"] == "done":
            assert row["rewards"] == full.traces([row["id"]])[0].tolist()
        else:
            assert row["rewards"] is None
    assert {row["parameter.n_models"] for row in table if row["algorithm"] == "sboss"} == set(range(1, 10))


def test_without_pyarrow_the_extra_is_named(full, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install .*\[parquet\]"):
        write_parquet(STUDY, full, tmp_path / "runs.parquet")
