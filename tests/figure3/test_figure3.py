"""The deep-sea comparison: what is run, what is kept, what is drawn, and what the committed runs say."""

from __future__ import annotations

import doctest
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bamdp.cli import main
from bamdp.envs import make_env
from bamdp.figure3 import (
    CONTESTANTS,
    CONTESTS,
    PAPER,
    Record,
    collect,
    draw,
    read_records,
    records_of,
    summary,
)
from bamdp.figure3 import records as records_module
from bamdp.figure3.contests import SPARSE
from bamdp.figure3.records import counts, interval, run_record, setting_text
from bamdp.runs import run_one

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "results" / "figure3" / "runs.jsonl"


@pytest.fixture
def tiny(monkeypatch):
    """A contest of twenty episodes beside the others."""
    base = CONTESTS["episode-10"]
    monkeypatch.setitem(CONTESTS, "tiny", replace(base, name="tiny", steps=205))
    return "tiny"


def record(replicate: int, bad: tuple[int, ...], contest: str = "episode-10", who: str = "rmax") -> Record:
    return Record(contest, who, replicate, setting_text(contest, who), bad, 1.0)


def test_contests_are_the_paper_s_and_more():
    assert {(c.size, c.steps) for c in CONTESTS.values()} == {(10, 10_000), (20, 50_000)}
    assert {c.objective for c in CONTESTS.values()} == {"episode", "lifetime"}
    assert {c.env for c in CONTESTS.values()} == {"deep_sea", "deep_sea_stochastic"}
    assert all(who in CONTESTS[contest].contestants for contest, who in PAPER)
    for size, (N, M, K) in {10: (4, 10, 20), 20: (2, 5, 40)}.items():
        dss = CONTESTANTS["dss-flat"].planner(size)
        assert (dss.n_policies, dss.n_samples, dss.n_steps, dss.n_stages) == (N, M, K, 1)


def test_nobody_is_told_the_rewards():
    for contest in CONTESTS.values():
        for who in contest.contestants:
            model = CONTESTANTS[who].setting(contest).rewards
            assert type(model).__name__ == "NormalGamma"
            assert model.mu0 == 0.0


def test_the_sparse_prior_is_not_degenerate():
    belief = SPARSE.belief(101, 2)
    for outcome in (3, 7):
        belief.observe(0, 0, 0.0, outcome)
    assert 0.3 < belief.predictive(0, 0)[3] < 0.5, "a row with two outcomes is learned as one"


def test_a_record_is_the_run_s_bad_episodes(tiny):
    found = run_record((tiny, "psrl-sparse", 1))
    setting = CONTESTANTS["psrl-sparse"].setting(CONTESTS[tiny])
    run = run_one(setting, 1)
    bad = make_env(setting.env).bad_episodes(run.states, run.actions)
    assert len(bad) == 20, "the last five steps are no episode"
    assert found.bad == tuple(np.flatnonzero(bad).tolist())
    assert repr(setting.planner) in found.setting


def test_runs_that_are_there_are_not_done_again(tiny, tmp_path, monkeypatch):
    path = tmp_path / "new" / "runs.jsonl"
    told: list[Record] = []
    first = collect(path, [tiny], ["rmax", "psrl-sparse"], 2, tell=told.append)
    assert len(first) == len(told) == len(path.read_text().splitlines()) == 4
    with path.open("a") as file:
        file.write('{"contest": "tiny", "contes')  # a run that was cut off
    monkeypatch.setattr(records_module, "run_record", None)  # nothing may be run
    assert collect(path, [tiny], ["rmax", "psrl-sparse"], 2) == first
    assert collect(path, [tiny], ["rmax"], 1) == [r for r in first if r.contestant == "rmax"][:1]


def test_results_do_not_depend_on_the_number_of_processes(tmp_path):
    found = [collect(tmp_path / str(jobs), ["episode-10"], ["rmax"], 2, jobs) for jobs in (1, 2)]
    assert [r.bad for r in found[0]] == [r.bad for r in found[1]]


def test_a_run_under_other_parameters_is_another_run(tmp_path):
    path = tmp_path / "runs.jsonl"
    old = replace(record(0, (1, 2)), setting="something else")
    path.write_text(json.dumps(vars(old)) + "\n")
    assert read_records(path) == [old]
    assert records_of([old, record(1, ())], "episode-10", "rmax") == [record(1, ())]


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"name": "not a run"}\n')
    with pytest.raises(ValueError, match=r"line 1 of .*other\.jsonl is no record"):
        read_records(path)


def test_counts_add_up_and_intervals_are_student_s():
    runs = counts([record(0, (0, 1, 5)), record(1, (0,))], CONTESTS["episode-10"])
    assert runs.shape == (2, 1000)
    assert runs[0, [0, 1, 4, 5, 999]].tolist() == [1, 2, 2, 3, 3]
    mean, half = interval(runs[:, -1])
    assert mean == 2.0
    assert half == pytest.approx(12.706 * 1.0, abs=0.001)  # t of one degree of freedom times s/√2 = 1
    assert np.isnan(interval(runs[:1, -1])[1])
    assert doctest.testmod(records_module).failed == 0


def test_the_summary_names_every_result_once():
    lines = summary([record(0, (0, 1, 5)), record(1, (0,)), record(0, (2,), "lifetime-20")])
    assert [(line.contest, line.runs, line.mean, line.low, line.high) for line in lines] == [
        ("episode-10", 2, 2.0, 1, 3),
        ("lifetime-20", 1, 1.0, 1, 1),
    ]


def test_the_figure_shows_what_there_is(tmp_path):
    runs = [record(r, tuple(range(20 + r)), who=who) for who in ("rmax", "bdqn") for r in range(3)]
    draw(runs, tmp_path / "one.svg")
    text = (tmp_path / "one.svg").read_text()
    assert text.startswith("<?xml")
    draw([*runs, record(0, (1,), "stochastic-20")], tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="no runs to draw"):
        draw([], tmp_path / "none.png")


def test_the_command_prints_a_table_and_draws(tiny, tmp_path, capsys):
    arguments = ["--environments", tiny, "--algorithms", "rmax", "--quick", "--output", str(tmp_path)]
    assert main(["reproduce", "figure3", *arguments]) == 0
    out, err = capsys.readouterr()
    assert "R-max" in out
    assert "run 1" in err
    assert {path.name for path in tmp_path.iterdir()} == {"runs.jsonl", "figure3.png"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--environments", "episode-11"], "did you mean 'episode-10'"),
        (["--algorithms", "dqn"], "did you mean 'bdqn'"),
        (["--jobs", "0"], "jobs must be at least 1"),
        (["--environments", "lifetime-10", "--algorithms", "bdqn"], "none of these contestants"),
        (["--json"], "keeps its runs in runs.jsonl"),
    ],
)
def test_bad_arguments_end_in_one_line(arguments, words, tmp_path, capsys):
    assert main(["reproduce", "figure3", *arguments, "--output", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("contest", "target"), [("episode-10", 60), ("episode-20", 150)])
def test_the_committed_runs_meet_the_target(contest, target):
    found = records_of(read_records(COMMITTED), contest, "dss-sparse")
    assert len(found) >= 10
    assert np.mean([len(r.bad) for r in found]) <= target


@pytest.mark.slow
def test_the_committed_runs_can_be_repeated():
    for contest, target in (("episode-10", 60), ("episode-20", 150)):
        now = [run_record((contest, "dss-sparse", replicate)) for replicate in range(5)]
        assert np.mean([len(r.bad) for r in now]) <= target


def test_the_code_of_the_page_runs(capsys):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "deep-sea.md").read_text(), flags=re.S)
    assert len(code) == 2
    exec(compile("\n".join(code), "deep-sea.md", "exec"), {})
    assert int(capsys.readouterr().out.split()[0]) < 60


def test_the_page_shows_the_committed_figure():
    shown = ROOT / "docs" / "images" / "deep-sea.png"
    assert shown.read_bytes() == (ROOT / "results" / "figure3" / "figure3.png").read_bytes()
