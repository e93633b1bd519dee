"""Bad input: one clear line on standard error, exit status 2, no traceback, nothing on standard output."""

from __future__ import annotations

import pytest

from bamdp.cli import main

BAD = [
    # misspelt names are answered with the nearest
    ("rnu grid5 thompson", "unknown command 'rnu'; did you mean 'run'"),
    ("lab rnu s.toml", "unknown lab command 'rnu'; did you mean 'run'?"),
    ("run gird5 thompson", "did you mean 'grid5'"),
    ("run grid5 dss", "did you mean 'dss-pi'"),
    ("run grid5 thompson --stepz 3", "did you mean --steps"),
    ("compare grid5 dss-rtdp --set generator.dept=3", "did you mean 'depth'"),
    ("tune grid5 thompson --prior flat+sparse:bata=2", "did you mean 'beta'"),
    ("tune chain q-learning --grid epsilom=.1,.2", "did you mean 'epsilon'"),
    ("tune chain q-learning --grid epsilon=.1,.2 --method gird", "did you mean 'grid'"),
    ("explain grid:sise=3 thompson", "did you mean 'size'"),
    ("lab run dss2020/fiar", "did you mean 'dss2020/fair'?"),
    ("reproduce tabel1", "unknown target 'tabel1'; did you mean 'table1'"),
    ("reproduce table1 --as fiar", "did you mean 'fair'"),
    ("reproduce table1 --algorithms dss", "unknown algorithm of the study 'dss'"),
    # malformed text says what is expected
    ("run", "required: ENV"),
    ("run grid5 dss-pi --set n_steps", "is not key=value"),
    ("studio grid5 dss-pi:n_steps=1 --set n_steps=2", "given twice"),
    ("run grid5 thompson --discount abc", "discount must be a number in [0, 1), 'horizon' or 'auto'"),
    ("run chain thompson --figure curves.jpeg", "--figure must end in .png, .svg or .pdf"),
    ("explain chain thompson --figure why.png", "--figure must end in .html or .svg"),
    ("lab run none.toml", "none.toml: No such file or directory"),
    ("lab new study.txt", "must end in .toml"),
    # numbers out of range name their limits
    ("run grid5 dss-pi --set n_steps=2.5", "n_steps must be a whole number"),
    ("run grid5 thompson --runs 0", "runs must be at least 1"),
    ("compare chain random --runs 0", "runs must be at least 1"),
    ("run grid5 thompson --seed a", "--seed: invalid int value: 'a'"),
    ("solve maze --steps -1", "steps must be at least 1"),
    ("theory --delta 0", "delta must be above 0 and below 1"),
    # what does not fit together says why, and what to do
    ("run grid5 fhts --rewards normal", "FHTS enumerates rewards"),
    ("run gym:my_module:MyEnv thompson", "register it: gymnasium.register('MyEnv-v0'"),
    ("run gym:FrozenLake-v1 thompson --rewards known", "are not known in advance"),
    ("solve gym:FrozenLake-v1", "is not known, and it is needed here"),
    ("solve file:missing.npz", "no model file missing.npz"),
    ("run chain random random", "random is given twice"),
    ("compare chain", "there is nothing to compare"),
    ("tune chain q-learning", "there is nothing to choose"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAMDP_DEBUG", raising=False)
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "12")


def check_refused(words, message, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("compiling")]
    assert out == ""
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert message in lines[0]


@pytest.mark.parametrize(("command", "message"), BAD)
def test_bad_input_is_one_line_and_status_2(command, message, capsys):
    check_refused(command.split(), message, capsys)


@pytest.mark.parametrize("value", ["1e400", "", "[1,2]", "9" * 5000])
def test_extreme_numbers_are_refused_everywhere(value, capsys):
    run = ["run", "chain", "thompson", "--runs=1", "--steps=3"]
    for words in (
        [*run, f"--discount={value}"],
        [*run, "--prior", f"sparse:alpha={value}"],
        [*run, "--rewards", f"normal:mu0={value}"],
        ["run", "chain", "dss-pi", "--set", f"n_steps={value}"],
        ["run", f"grid:size={value}", "random"],
        ["theory", f"--n-steps={value}"],
    ):
        check_refused(words, "", capsys)


def test_a_search_that_is_too_large_is_one_line_and_status_1(capsys):
    command = "run double_loop fhts --set horizon=9 max_hyper_states=10 --steps 1 --runs 1"
    assert main(command.split()) == 1
    assert "needs more than 10 hyper-states" in capsys.readouterr().err.splitlines()[-1]


def test_debug_keeps_the_traceback(monkeypatch):
    monkeypatch.setenv("BAMDP_DEBUG", "1")
    with pytest.raises(ValueError, match="did you mean 'grid5'"):
        main(["solve", "gird5"])
