"""compare, tune, lab and reproduce, end to end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bamdp.cli import main
from bamdp.lab.reading import load_study

BROKEN = """
import gymnasium


class Ring(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(5)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, bad=False):
        self.bad = bad

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.done = 0
        return 0, {}

    def step(self, action):
        self.done += 1
        if self.bad and self.done == 7:
            raise RuntimeError("sensor broke")
        return self.done % 5, 1.0, False, False, {}


gymnasium.register("Ring-v0", entry_point=Ring)
"""
QUICK = "--quick --environments double_loop --algorithms dss-pi sboss"


def page(err):
    """The path of a report, by what was said."""
    return Path(err.partition("report: ")[2].splitlines()[0])


def test_compare_prints_one_table_and_keeps_its_runs(folder, call, call_json):
    command = "compare chain random q-learning q-learning:epsilon=0.3 --steps 40 --runs 3"
    out = call(f"{command} --figure curves.png").out
    assert out.count("────") < 60
    assert all(
        word in out for word in ("q-learning:epsilon=0.3", "difference to the best", "optimum, model known")
    )
    assert "p (Holm)" not in out
    assert "p (Holm)" in call(f"{command} --full").out
    assert (folder / "curves.png").exists()
    assert (folder / ".bamdp" / "runs.sqlite").exists()
    totals = lambda found: {(run["label"], run["replicate"]): run["total"] for run in found["runs"]}
    few, many = totals(call_json(command)), totals(call_json(command.replace("--runs 3", "--runs 5")))
    assert (len(few), len(many)) == (9, 15)
    assert few.items() <= many.items()


def test_tune_chooses_and_says_how_to_run_it_and_whether_the_choice_is_clear(folder, call, call_json):
    command = "tune chain q-learning --grid epsilon=.1,.4 discount=.9999999,.9999998 --steps 40 --runs 2"
    shown = call(f"{command} --evaluate 2 --figure map.png")
    assert "4 configurations" in shown.out
    assert "is not distinguishable from the next" in " ".join(shown.out.split())
    assert (folder / "map.png").exists()
    chosen = shown.err.partition("chosen: bamdp ")[2].split()
    call(" ".join([*chosen, "--runs", "1"]))
    found = call_json(f"{command} --method halving --configurations 3")
    assert len({str(run["configuration"]) for run in found["runs"]}) == 3
    assert found["chosen"]["epsilon"] in (0.1, 0.4)


def test_environments_without_a_known_model_are_compared_and_tuned(folder, call):
    world = "gym:FrozenLake-v1:is_slippery=False"
    assert (
        "optimum"
        not in call(f"compare {world} random q-learning --steps 60 --runs 3 --objective lifetime").out
    )
    options = "--steps 60 --runs 2 --objective lifetime --rewards normal"
    assert options[19:] in call(f"tune {world} q-learning --grid epsilon=.1,.4 {options}").err.replace(
        "--rewards normal --objective lifetime", "--objective lifetime --rewards normal"
    )


def test_a_study_from_a_new_file_to_its_report(folder, call, call_json):
    assert "bamdp lab run mine.toml --quick" in call("lab new mine.toml").err
    assert "mine.toml is there already" in call("lab new mine.toml", 2).err
    every_line = [re.sub(r"^# (?=.* = )", "", line) for line in Path("mine.toml").read_text().splitlines()]
    Path("all.toml").write_text("\n".join(every_line))  # what is commented out can be used, too
    assert load_study("all.toml").cells
    assert "no store yet" in call("lab status s.toml", 2).err
    assert "10 runs are done, 0 failed" in call("lab run s.toml").err
    cells = call_json("lab status s.toml")["cells"]
    assert [(c["algorithm"], c["done"], c["missing"], c["complete"]) for c in cells] == [
        ("random", 3, 0, True),
        ("q-learning", 7, 0, True),
    ]
    assert "epsilon=0." in call("lab status s.toml").out
    shown = call("lab report s.toml")
    assert "q-learning" in shown.out
    assert "A small study" in page(shown.err).read_text()
    assert "10 runs: s.csv" in call("lab export s.toml").err
    (folder / "s.toml").write_text((folder / "s.toml").read_text().replace("runs = 3", "runs = 5"))
    assert "2 or more runs are missing" in call("lab report s.toml").err


def test_a_quick_study_is_marked_and_the_report_of_the_whole_says_so(folder, call):
    text = (folder / "s.toml").read_text()
    (folder / "s.toml").write_text(text.replace("steps = 40", "steps = 300"))
    call("lab run s.toml --quick")
    assert "add --quick" in call("lab report s.toml", 2).err
    shown = call("lab report s.toml --quick")
    assert "Quick run" in shown.out
    assert "Quick run" in page(shown.err).read_text()
    assert page(shown.err).parent.name == "s-quick-report"


def test_progress_of_a_study_is_on_standard_error(folder, capfd):
    assert main("lab run s.toml --progress --jobs 2".split()) == 0
    out, err = capfd.readouterr()
    assert (out, "A small study" in err, "%" in err) == ("", True, True)


def test_what_breaks_in_a_run_is_told_with_how_far_it_came(folder, call, monkeypatch):
    (folder / "broken_ring.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(folder)
    (folder / "b.toml").write_text(
        'runs = 2\nsteps = 20\nalgorithms = ["random"]\n[environments.good]\nenv = "gym:broken_ring:Ring-v0"\n'
        '[environments.bad]\nenv = "gym:broken_ring:Ring-v0:bad=true"\n'
    )
    told = call("lab run b.toml", 1).err
    assert "random in bad: RuntimeError: sensor broke (after 6 steps" in told
    assert "--retry-failed" in told
    assert "good" in call("lab report b.toml").out


def test_table_1_is_reproduced_quickly_and_marked(folder, call, call_json):
    shown = call(f"reproduce table1 table2 figure2 {QUICK} --output there")
    assert "Quick run" in shown.out
    assert "Appendix C" in shown.err
    assert (folder / "there" / "figure2.png").exists()
    assert "dss-pi" in page(shown.err).read_text()
    assert "ms/step" in shown.out
    found = call_json(f"reproduce table1 {QUICK}")
    assert found["quick"] is True
    assert [row["algorithm"] for row in found["targets"]["table1"][0]][:2] == ["dss-pi", "sboss"]


def test_lab_alone_tells_its_commands(call):
    assert "status" in call("lab").out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("lab rnu s.toml", "unknown lab command 'rnu'; did you mean 'run'?"),
        ("lab run", "the following arguments are required: STUDY"),
        ("lab run none.toml", "none.toml: No such file or directory"),
        ("lab run s.toml --job 2", "did you mean --jobs?"),
        ("lab run s.toml --jobs 0", "jobs must be at least 1"),
        ("lab run s.toml --store s.toml", "is not a store of bamdp"),
        ("lab run s.toml --jobs 2 --cluster tcp://127.0.0.1:9", "exclude each other"),
        ("lab report s.toml", "there is no store yet"),
        ("lab run dss2020/fiar", "did you mean 'dss2020/fair'?"),
        ("compare chain random random", "random is given twice"),
        ("compare chain rnadom", "did you mean 'random'"),
        ("compare chain random --runs 0", "runs must be at least 1"),
        ("tune chain q-learning", "there is nothing to choose"),
        ("tune chain q-learning --grid epsilon", "is not key=value"),
        ("tune chain q-learning --grid epsilom=.1,.2", "did you mean 'epsilon'"),
        ("tune chain q-learning --grid epsilon=.1,.2 --method gird", "did you mean 'grid'"),
        ("reproduce tabel1", "did you mean 'table1'"),
        ("reproduce table1 --as fiar", "did you mean 'fair'"),
        ("reproduce table1 --algorithms dss", "unknown algorithm of the study 'dss'"),
        ("reproduce figure3 --environments episode10", "did you mean 'episode-10'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, call, command, message):
    err = call(command, 2).err
    assert message in err
    assert len(err.strip().splitlines()) == 1
