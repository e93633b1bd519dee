"""What the laboratory's commands say when something is wrong, missing or unfinished."""

from __future__ import annotations

import pytest
from lab_calls import STUDY, call, call_json

from bamdp.lab.store import Store

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
        ("lab run s.toml --cluster here", "is not the address of a scheduler"),
        ("lab report s.toml", "there is no store yet"),
        ("lab export s.toml --format xlsx", "unknown format 'xlsx'"),
        ("lab export s.toml --format csv --thin", "--thin is for --format runs"),
        ("lab import s.toml", "s.runs.xz: No such file"),
        ("lab import s.toml s.toml", "is not a file of runs"),
        ("lab run dss2020/fiar", "did you mean 'dss2020/fair'?"),
        ("compare chain", "the following arguments are required: PLANNER"),
        ("compare chain random random", "random is given twice"),
        ("compare chain rnadom", "did you mean 'random'"),
        ("compare chian random", "did you mean 'chain'"),
        ("compare chain random --runs 0", "leaves nothing to do"),
        ("tune chain q-learning", "there is nothing to choose"),
        ("tune chain q-learning --grid epsilon", "is not key=value,value"),
        ("tune chain q-learning --grid epsilon=.1 epsilon=.2", "gives epsilon twice"),
        ("tune chain q-learning --grid epsilom=.1,.2", "did you mean 'epsilon'"),
        ("tune chain q-learning --grid epsilon=.1,.2 --budget 3", 'are for method = "halving"'),
        ("tune chain q-learning --grid epsilon=.1,.2 --method gird", "did you mean 'grid'"),
        ("reproduce", "the following arguments are required: TARGET"),
        ("reproduce tabel1", "did you mean 'table1'"),
        ("reproduce table1 --as fiar", "did you mean 'fair'"),
        ("reproduce table1 --algorithms dss", "unknown algorithm of the study 'dss'"),
        ("reproduce figure2 ablatoin", "did you mean 'ablation'"),
        ("reproduce table1 --environments grid", "unknown environment of the study 'grid'"),
        ("reproduce table1 --from nowhere", "nowhere: No such file"),
        ("reproduce table1 --from .", "has no file that ends in .runs.xz"),
        ("reproduce table1 --from s.toml", "is not a file of runs"),
        ("reproduce table1 --from . --jobs 2", "--from runs nothing"),
        (
            "reproduce table1 ablation --algorithms dss-pi",
            "ablation: unknown algorithm of the study 'dss-pi'",
        ),
        ("reproduce table1 --as fair --environments maze --algorithms dss-pi-single", "drop --environments"),
        ("reproduce figure3 --from . --store x --retry-failed", "drop --store, --retry-failed"),
        ("reproduce figure3 --jobs 0", "jobs must be at least 1"),
        (
            "reproduce figure3 --environments lifetime-10 --algorithms bdqn",
            "figure3: none of these algorithms is run in these environments",
        ),
        ("reproduce figure3 --environments episode10", "did you mean 'episode-10'"),
        ("reproduce figure3 --algorithms dss-spars", "did you mean 'dss-sparse'"),
        (
            "reproduce figure3 table1 --environments grid5",
            "figure3: unknown environment of the study 'grid5'",
        ),
        ("reproduce figure3 tabel1", "did you mean 'table1'"),
        ("reproduce page", "unknown target 'page'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, capsys, command, message):
    err = call(capsys, command, 2).err
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_study_with_a_mistake_names_its_place(folder, capsys):
    (folder / "s.toml").write_text(STUDY.replace("epsilon", "epsilom"))
    err = call(capsys, "lab run s.toml", 2).err
    assert (
        "s.toml: algorithms.q-learning: unknown parameter of q-learning 'epsilom'; did you mean 'epsilon'"
        in err
    )
    assert not (folder / "s.sqlite").exists()


def test_what_breaks_in_a_run_is_told_with_how_far_it_came(folder, capsys, monkeypatch):
    (folder / "broken_ring.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(folder)
    told = call(capsys, "run gym:broken_ring:Ring-v0:bad=true random --steps 20 --runs 1", 1).err
    assert "error: sensor broke (after 6 steps" in told
    (folder / "b.toml").write_text(
        """notes = "one line"
runs = 2
steps = 20
algorithms = ["random"]
[environments.good]
env = "gym:broken_ring:Ring-v0"
[environments.bad]
env = "gym:broken_ring:Ring-v0:bad=true"
"""
    )
    told = call(capsys, "lab run b.toml", 1).err
    assert "random in bad: 2 runs failed: RuntimeError: sensor broke (after 6 steps" in told
    assert "--retry-failed" in told
    rows = [line.split() for line in call(capsys, "lab status b.toml").out.splitlines() if "random" in line]
    assert [row[-1] for row in rows] == ["done", "failed"]
    shown = call(capsys, "lab report b.toml")
    assert shown.out.count("runs failed") == 1
    assert "one line" in shown.err


def test_where_nothing_can_be_bold_the_best_has_a_star(folder, capsys):
    out = call(capsys, "compare chain random q-learning --steps 40 --runs 3").out
    assert "*: the highest mean" in " ".join(out.split())
    assert sum(" * " in line for line in out.splitlines()) == 1
    assert "*" not in call(capsys, "tune chain q-learning --grid epsilon=.1,.4 --steps 40 --runs 2").out


def test_a_status_says_that_tuning_may_need_more(folder, capsys):
    with Store("s.sqlite"):
        pass
    found = call(capsys, "lab status s.toml")
    rows = {line.split()[1]: line.split() for line in found.out.splitlines() if line.startswith(" chain")}
    assert "+" not in "".join(rows["random"])
    assert rows["q-learning"][4].endswith("+")
    assert "or more: tuning decides" in found.err
    undecided = {c["algorithm"]: c["undecided"] for c in call_json(capsys, "lab status s.toml")["cells"]}
    assert undecided == {"random": False, "q-learning": True}
    call(capsys, "lab run s.toml")
    assert "+" not in call(capsys, "lab status s.toml").out


def test_runs_of_another_study_are_not_taken_in_silently(folder, capsys):
    call(capsys, "lab run s.toml")
    call(capsys, "lab export s.toml --output s.runs.xz")
    (folder / "t.toml").write_text(STUDY.replace("steps = 40", "steps = 41"))
    assert "none of them is of t.toml" in call(capsys, "lab import t.toml s.runs.xz").err
    assert "none of them" not in call(capsys, "lab import s.toml s.runs.xz --store again.sqlite").err


def test_misspelt_studies_and_missing_models_are_told(folder, capsys):
    assert "did you mean 'dss2020/fair'?" in call(capsys, "lab run dss2020/fare", 2).err
    (folder / "m.toml").write_text('algorithms = ["random"]\n[environments.mine]\nenv = "file:no.npz"\n')
    assert "m.toml: environments.mine: no model file" in call(capsys, "lab run m.toml", 2).err
