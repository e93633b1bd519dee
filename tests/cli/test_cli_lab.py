"""compare, tune, lab and reproduce, end to end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bamdp.lab.study import load_study

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
QUICK = "--quick --environments chain --algorithms thompson"


def page(err):
    """The path of a report, by what was said."""
    return Path(err.partition("report: ")[2].splitlines()[0])


def test_compare_stores_its_runs_and_resumes(folder, call_json):
    command = "compare chain random q-learning q-learning:epsilon=0.3 --steps 40 --runs"
    totals = lambda found: {(run["label"], run["replicate"]): run["total"] for run in found["runs"]}
    few, many = totals(call_json(f"{command} 3")), totals(call_json(f"{command} 5"))
    assert (folder / ".bamdp" / "runs.sqlite").exists()
    assert (len(few), len(many)) == (9, 15)
    assert few.items() <= many.items()


def test_tune_chooses_and_says_how_to_run_it_and_whether_the_choice_is_clear(folder, call, call_json):
    command = "tune chain q-learning --grid epsilon=.1,.4 discount=.9999999,.9999998 --steps 40 --runs 2"
    shown = call(f"{command} --evaluate 2 --rewards normal --objective lifetime")
    assert "4 configurations" in shown.out
    assert "is not distinguishable from the next" in " ".join(shown.out.split())
    assert "--rewards normal --objective lifetime" in shown.err
    chosen = shown.err.partition("chosen: bamdp ")[2].split()
    call(" ".join([*chosen, "--runs", "1"]))
    found = call_json(f"{command} --method halving --configurations 3")
    assert len({str(run["configuration"]) for run in found["runs"]}) == 3
    assert found["chosen"]["epsilon"] in (0.1, 0.4)


def test_a_study_from_a_new_file_to_its_report(folder, call, call_json):
    assert "bamdp lab run mine.toml --quick" in call("lab new mine.toml").err
    assert "mine.toml exists already" in call("lab new mine.toml", 2).err
    every_line = [re.sub(r"^# (?=.* = )", "", line) for line in Path("mine.toml").read_text().splitlines()]
    Path("all.toml").write_text("\n".join(every_line))  # what is commented out can be used, too
    assert load_study("all.toml").cells
    assert "no store yet" in call("lab status s.toml", 2).err
    assert "10 runs completed, 0 failed" in call("lab run s.toml").err
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


def test_table_1_is_reproduced_quickly_and_marked(folder, call):
    shown = call(f"reproduce table1 table2 {QUICK}")
    assert "Quick run" in shown.out
    assert "Appendix C" in shown.err
    assert "thompson" in page(shown.err).read_text()
    assert "ms/step" in shown.out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("lab run s.toml --jobs 0", "jobs must be at least 1"),
        ("lab run s.toml --store s.toml", "is not a store of bamdp"),
        ("lab run s.toml --jobs 2 --cluster tcp://127.0.0.1:9", "exclude each other"),
        ("lab report s.toml", "there is no store yet"),
    ],
)
def test_a_study_that_cannot_be_run_is_one_line_and_status_2(folder, call, command, message):
    err = call(command, 2).err
    assert message in err
    assert len(err.strip().splitlines()) == 1
