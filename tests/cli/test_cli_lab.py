"""The laboratory's commands, end to end."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_calls import STUDY, call, call_json

from bamdp.cli import main, studies


def page(err):
    """Where a report was written to, by what was said."""
    return Path(err.partition("report: ")[2].splitlines()[0])


def test_compare_shows_a_table_and_pairs_and_keeps_its_runs(folder, capsys):
    command = "compare chain random q-learning q-learning:epsilon=0.3 --steps 40 --runs 3"
    out = call(capsys, command).out
    assert all(word in out for word in ("random", "q-learning:epsilon=0.3", "optimum", "p (Holm)", "3"))
    found = call_json(capsys, command)
    totals = {sample["algorithm"]: sample["totals"] for sample in found["samples"]}
    assert set(totals) == {"random", "q-learning", "q-learning:epsilon=0.3"}
    assert found["ceilings"]["chain"]["optimum"] > 0
    assert (folder / ".bamdp" / "runs.sqlite").exists()
    more = call_json(capsys, command.replace("--runs 3", "--runs 5"))
    assert {s["algorithm"]: s["totals"][:3] for s in more["samples"]} == totals


def test_few_runs_do_not_suggest_equality(folder, capsys):
    few = call(capsys, "compare chain random q-learning --steps 40 --runs 3").out
    assert few.count("≈") == few.count("nothing is marked with ≈") == 1
    assert "too few runs to tell" in " ".join(few.split())
    many = call(capsys, "compare chain q-learning q-learning:epsilon=0.11 --steps 40 --runs 8").out
    assert "≈" in many.partition("Bold")[0]


def test_a_new_study_is_a_file_that_runs_and_is_never_overwritten(folder, capsys):
    assert "bamdp lab run mine.toml --quick" in call(capsys, "lab new mine.toml").err
    text = (folder / "mine.toml").read_text()
    assert "bamdp lab run mine.toml" in text
    study = studies.load_named_study("mine.toml")
    assert {cell.environment.env for cell in study.cells} == {"grid5", "grid:size=4"}
    every_line = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    every_line = "\n".join(every_line).replace('method = "grid"', 'method = "halving"')
    (folder / "all.toml").write_text(every_line)  # what is commented out can be used, too
    assert studies.load_named_study("all.toml").tuning.budget == 120.0
    call(capsys, "lab run mine.toml --quick")
    assert call_json(capsys, "lab status mine.toml --quick")["cells"][0]["complete"]
    assert "mine.toml is there already" in call(capsys, "lab new mine.toml", 2).err
    assert (folder / "mine.toml").read_text() == text


def test_tune_chooses_and_tells_how_to_run_it(folder, capsys):
    shown = call(
        capsys, "tune chain q-learning --grid epsilon=.1,.4 initial=0,4 --steps 40 --runs 2 --evaluate 2"
    )
    assert "4 configurations" in shown.out
    assert "chosen: bamdp run chain q-learning --set epsilon=0." in shown.err
    command = shown.err.partition("chosen: bamdp ")[2]
    assert "--steps 40" in command
    assert main([*command.split(), "--runs", "1"]) == 0
    capsys.readouterr()
    found = call_json(capsys, "tune chain q-learning --grid epsilon=.1,.4 initial=0,4 --steps 40 --runs 2")
    means = {repr(s["configuration"]): sum(s["totals"]) for s in found["samples"]}
    assert means[repr(found["chosen"])] == max(means.values())


def test_worlds_that_nobody_knows_are_compared_tuned_and_reported(folder, capsys):
    world = "gym:FrozenLake-v1:is_slippery=False"
    compared = call(capsys, f"compare {world} random q-learning --steps 60 --runs 3 --objective lifetime").out
    assert "q-learning" in compared
    assert "optimum (known model)" not in compared
    options = "--steps 60 --runs 2 --objective lifetime --rewards normal"
    tuned = call(capsys, f"tune {world} q-learning --grid epsilon=.1,.4 {options}").err
    assert "--rewards normal --objective lifetime" in tuned
    assert main([*tuned.partition("chosen: bamdp ")[2].split(), "--steps", "5", "--runs", "1"]) == 0
    capsys.readouterr()
    lake = STUDY.replace('["chain"]', f'["{world}", "chain"]')
    (folder / "lake.toml").write_text(lake)
    call(capsys, "lab run lake.toml")
    shown = call(capsys, "lab report lake.toml")
    assert world in page(shown.err).read_text()
    assert "20 runs: lake.runs.xz" in call(capsys, "lab export lake.toml").err


def test_tune_by_halving_under_a_budget(folder, capsys):
    options = "--method halving --budget 0.5 --configurations 5 --screening 20 --runs 3 --steps 40"
    found = call_json(
        capsys, f"tune chain q-learning --grid epsilon=.1,.2,.3 learning_rate=.1,.2,.3 {options}"
    )
    assert len({repr(s["configuration"]) for s in found["samples"]}) == 5
    assert {s["steps"] for s in found["samples"]} == {20, 40}
    assert found["chosen"] is not None


def test_a_study_from_run_to_report(folder, capsys):
    assert "no store yet" in call(capsys, "lab status s.toml", 2).err
    assert "10 runs are done, 0 failed" in call(capsys, "lab run s.toml").err
    cells = call_json(capsys, "lab status s.toml")["cells"]
    assert [(cell["algorithm"], cell["done"], cell["missing"], cell["complete"]) for cell in cells] == [
        ("random", 3, 0, True),
        ("q-learning", 7, 0, True),
    ]
    assert "epsilon=0." in call(capsys, "lab status s.toml").out
    shown = call(capsys, "lab report s.toml")
    assert "q-learning" in shown.out
    assert "A small study" in page(shown.err).read_text()
    assert page(shown.err).parent.name == "s-report"


def test_a_discount_is_told_with_all_its_digits(folder, capsys):
    shown = call(capsys, "tune chain q-learning --grid discount=.9999999,.9999998 --steps 20 --runs 1")
    assert main(shown.err.partition("chosen: bamdp ")[2].split()) == 0
    capsys.readouterr()


def test_a_damaged_store_is_one_line(folder, capsys):
    call(capsys, "lab run s.toml")
    with (folder / "s.sqlite").open("r+b") as file:
        file.seek(2 * 4096)
        file.write(bytes(range(256)) * 64)
    for command in ("status", "run", "report", "export"):
        err = call(capsys, f"lab {command} s.toml", 2).err
        assert "s.sqlite: the store is damaged" in err, command
        assert "Traceback" not in err


def test_a_study_moves_to_another_store(folder, capsys):
    call(capsys, "lab run s.toml")
    assert "10 runs: s.runs.xz" in call(capsys, "lab export s.toml").err
    assert "10 new runs" in call(capsys, "lab import s.toml --store other.sqlite").err
    assert "0 new runs, 10 were there" in call(capsys, "lab import s.toml s.runs.xz --store other.sqlite").err
    cells = call_json(capsys, "lab status s.toml --store other.sqlite")["cells"]
    assert all(cell["complete"] for cell in cells)
    for kind in ("csv", "parquet"):
        assert f"10 runs: s.{kind}" in call(capsys, f"lab export s.toml --format {kind}").err


def test_quick_is_short_and_marked(folder, capsys):
    call(capsys, "lab run s.toml --quick")
    shown = call(capsys, "lab report s.toml --quick --output quick")
    assert "Quick run" in shown.out
    assert "Quick run" in page(shown.err).read_text()
    assert not call_json(capsys, "lab status s.toml")["cells"][0]["complete"]
    assert page(call(capsys, "lab report s.toml --quick").err).parent.name == "s-quick-report"
    # not over that of the study itself
    assert "runs: s-quick.runs.xz" in call(capsys, "lab export s.toml --quick").err


def test_an_incomplete_study_is_reported_as_such(folder, capsys):
    call(capsys, "lab run s.toml --quick")
    call(capsys, "lab run s.toml")
    (folder / "s.toml").write_text(STUDY.replace("runs = 3", "runs = 5"))
    shown = call(capsys, "lab report s.toml")
    assert "2 or more runs are missing" in shown.err
    assert "chain: not all runs are there; means are of those that are." in " ".join(shown.out.split())
    assert "3 of 5" in shown.out
    shown = call(capsys, "lab status s.toml")
    assert "of processor time" in shown.err


def test_a_row_with_fewer_runs_stands_apart_in_the_report(folder, capsys):
    few = STUDY.replace("[algorithms.random]", "[algorithms.random]\nat.chain.runs = 2")
    (folder / "s.toml").write_text(few)
    call(capsys, "lab run s.toml")
    shown = call(capsys, "lab report s.toml")
    first, _, second = shown.out.partition("Too slow or unfinished here")
    assert "q-learning" in first
    assert "random " not in first.replace("random play", "")
    assert "2 of 3" in second
    rows = (folder / "s-report" / "tables" / "rewards.md").read_text()
    assert "| random |" not in rows
    assert "| chain | random | 2 of 3 |" in (folder / "s-report" / "tables" / "unfinished.md").read_text()


def test_a_study_that_only_tunes_has_no_table_of_results(folder, capsys):
    (folder / "s.toml").write_text(STUDY.replace("runs = 3", "runs = 0"))
    call(capsys, "lab run s.toml")
    assert call(capsys, "lab report s.toml").out.strip() == ""
    (folder / "s.toml").write_text(STUDY.replace("runs = 3", "runs = 0").replace(
        '["chain"]\nsteps = 40', "{ chain = { steps = 40, runs = 3 } }"))  # fmt: skip
    call(capsys, "lab run s.toml")
    assert "Total reward" in call(capsys, "lab report s.toml").out


def test_progress_of_a_study_is_on_standard_error(folder, capfd):
    assert main("lab run s.toml --progress --jobs 2".split()) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "A small study" in err
    assert "100%" in err


QUICK = "--quick --environments double_loop --algorithms dss-pi sboss"


def test_table_1_is_reproduced_quickly_and_marked(folder, capsys):
    shown = call(capsys, f"reproduce table1 {QUICK} --output report")
    assert "Quick run" in shown.out
    assert "dss-pi" in shown.out
    assert "Appendix C" in shown.err
    assert f"bamdp reproduce table1 {QUICK}" in page(shown.err).read_text()
    assert (folder / ".bamdp" / "dss2020.sqlite").exists()
    found = call_json(capsys, f"reproduce table1 {QUICK}")
    assert found["quick"] is True
    assert found["targets"]["table1"][0]["rows"][0][0] == {"text": "dss-pi"}
    assert {s["algorithm"] for s in found["studies"]["dss2020/published"]["samples"]} == {"dss-pi", "sboss"}
    assert all(cell["algorithm"] in ("dss-pi", "sboss", "bfs3", "bamcp", "dss-rtdp", "thompson")
               for cell in call_json(capsys, "lab status dss2020/published --quick")["cells"])  # fmt: skip


def test_targets_of_one_study_run_it_once_and_make_tables_and_figures(folder, capsys, monkeypatch):
    ran = []
    run = studies.run
    monkeypatch.setattr(studies, "run", lambda study, *rest: (ran.append(study.title), run(study, *rest)))
    shown = call(capsys, f"reproduce table1 table2 figure2 {QUICK} --output there")
    assert len(ran) == 1
    assert "Processor seconds per run" in shown.out
    assert {path.name for path in (folder / "there").glob("figure2.*")} == {"figure2.png", "figure2.svg"}
    assert {path.name for path in (folder / "there" / "table2").iterdir()} == {
        f"times.{e}" for e in ("md", "csv", "tex")
    }
    call(capsys, f"reproduce figure2 {QUICK}")
    assert (folder / "out" / "reproduction" / "figure2.png").exists()


def test_a_study_that_chooses_for_all_environments_is_left_out_of_a_part_and_it_is_said(folder, capsys):
    (folder / "results").mkdir()
    call(capsys, f"reproduce table1 {QUICK}")
    call(capsys, "lab export dss2020/published --quick --output results/published.runs.xz")
    shown = call(capsys, "reproduce table1 --as fair --quick --environments chain --from results")
    assert "dss2020/single chooses for all environments together" in shown.err
    named = "--environments chain --algorithms dss-pi dss-pi-single"
    shown = call(capsys, f"reproduce table1 --as fair --quick {named} --from results")
    assert "dss2020/single chooses for all environments together" in shown.err
    shown = call(
        capsys, "reproduce table1 --as fair --quick --environments chain --algorithms dss-pi --from results"
    )
    assert "together" not in shown.err  # nobody asked for it


def test_tables_are_made_from_exports_without_running_anything(folder, capsys, monkeypatch):
    call(capsys, f"reproduce table1 {QUICK}")
    call(capsys, "lab export dss2020/published --quick --output results/published.runs.xz")
    monkeypatch.setattr(studies, "run", lambda *given: pytest.fail("nothing may be run"))
    stored = call_json(capsys, f"reproduce table1 {QUICK} --from results")["studies"]["dss2020/published"]
    assert [(s["algorithm"], s["runs"]) for s in stored["samples"]] == [("dss-pi", 3), ("sboss", 3)]
    shown = call(capsys, "reproduce table1 --quick --from results/published.runs.xz")
    assert "28 cells are not complete, see the table" in shown.err
    assert "Too slow or unfinished here" in shown.out
    shown = call(capsys, "reproduce table1 --quick --from results --algorithms bamcp --environments maze")
    assert "bamcp in maze: not complete, 3 or more runs are missing" in shown.err


def test_lab_alone_tells_its_commands(capsys):
    assert "status" in call(capsys, "lab").out
