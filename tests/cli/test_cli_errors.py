"""Bad input: one clear line on standard error, exit status 2, no traceback, nothing on standard output."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bamdp.cli import LONGEST_MESSAGE, main

BAD = {
    "misspelt names are answered with the nearest": [
        ("rnu grid5 thompson", "did you mean 'run'"),
        ("run gird5 thompson", "did you mean 'grid5'"),
        ("run grid5 dss", "did you mean 'dss-pi'"),
        ("run grid5 thompson --stepz 3", "did you mean --steps"),
        ("run grid5 dss-pi --set n_step=3", "did you mean 'n_steps'"),
        ("run grid5 dss-pi --set leaf=meen", "did you mean 'mean'"),
        ("run grid5 dss-rtdp --set generator.dept=3", "did you mean 'depth'"),
        ("run grid5 thompson --prior spars", "did you mean 'sparse'"),
        ("run grid5 thompson --prior flat+sparse:bata=2", "did you mean 'beta'"),
        ("run grid5 thompson --rewards betta", "did you mean 'beta'"),
        ("run grid5 thompson --objective episodes", "did you mean 'episode'"),
        ("run grid:sise=3 thompson", "did you mean 'size'"),
        ("list envz", "did you mean 'envs'"),
        ("warmup dss", "unknown planner 'dss'"),
        ("studio gird10", "did you mean 'grid10'"),
        ("explain chain thompsen", "did you mean 'thompson'"),
        ("theory --n-step 3", "did you mean --n-steps"),
        ("completion tcsh", "known: bash, zsh"),
    ],
    "malformed text says what is expected": [
        ("run", "required: ENV"),
        ("run grid5 dss-pi --set n_steps", "is not key=value"),
        ("run grid5 dss-pi --set n_steps=abc", "n_steps must be a whole number, got 'abc'"),
        ("run grid5 dss-pi --set n_steps=1 n_steps=2", "n_steps twice"),
        ("run grid5 dss-pi:n_steps=1 --set n_steps=2", "given twice"),
        ("run grid5 random --set x=3", "takes no parameters"),
        ("run grid5 thompson --prior flat:alpha=x/S", "write for instance alpha=1/S"),
        (
            "run grid5 thompson --discount abc",
            "a discount is a number in [0, 1), or the word horizon or auto",
        ),
        ("run gym: thompson", "write gym:ID"),
        ("run file: thompson", "write file:PATH"),
        ("run chain thompson --bins 3", "observations of Gymnasium's environments"),
        ("run chain thompson --figure curves.jpeg", "--figure must end in .png, .svg or .pdf"),
        ("explain chain thompson --out why.png", "must end in .html or .svg"),
        ("theory extra", "unknown argument 'extra'"),
    ],
    "numbers out of range name their limits": [
        ("run grid5 dss-pi --set n_steps=2.5", "n_steps must be a whole number"),
        ("run grid5 dss-pi --set n_steps=0", "n_steps must be at least 1"),
        ("run grid5 dss-pi --set leaf_tol=-1", "leaf_tol must be finite, above 0"),
        ("run grid5 thompson --discount 1.0", "discount must be in [0, 1)"),
        ("run grid5 thompson --discount nan", "discount must be finite"),
        ("run grid5 thompson --steps -3", "steps must be at least 1"),
        ("run grid5 thompson --runs 0", "runs must be at least 1"),
        ("run grid5 thompson --seed -1", "seed must be at least 0"),
        ("run grid5 thompson --jobs 1000000", "jobs must be at least 1 and at most 4096"),
        ("run grid5 thompson --prior sparse:alpha=-1", "alpha must be finite, above 0"),
        ("run grid:size=1 thompson", "size must be at least 2"),
        ("solve maze --steps -1", "steps must be at least 1"),
        ("theory --discount 1", "discount must be in [0, 1)"),
        ("theory --delta 0", "delta must be above 0 and below 1"),
        ("theory --c inf", "c must be finite"),
    ],
    "what does not fit together says why": [
        ("run maze_door thompson --prior models:x=1", "takes no parameters"),
        ("run chain thompson --rewards beta", "chain pays 0.2"),
        ("run grid5 fhts --rewards normal", "FHTS enumerates rewards"),
        ("run gym:FrozenLake-v9 thompson", "cannot make 'FrozenLake-v9'"),
        ("run gym:FrozenLake-v1 thompson --rewards known", "are not known beforehand"),
        ("run gym:CartPole-v1 thompson", "make them discrete"),
        ("run gym:MountainCarContinuous-v0:max_states=9 thompson", "ActionWrapper"),
        ("run gym:my_module:MyEnv thompson", "register it"),
        ("solve gym:FrozenLake-v1", "is not known, and it is needed here"),
    ],
    "bad files are named": [
        ("run file:missing.npz thompson", "no model file missing.npz"),
        ("run file:junk.npz thompson", "junk.npz is not a model file"),
        ("run file:sums.npz thompson", "row (state 0, action 0) sums to 2"),
        ("run file:short.npz thompson", "rewards missing"),
        ("solve file:large.npz", "scale them"),
    ],
    "what cannot fit into memory is refused with its size": [
        ("run grid:size=100000 random", "a grid of 100000 by 100000 cells would need about 1.9e+04 GiB"),
        ("run random_mdp:n_states=1000000,prior=flat random", "a random model of 1000000 states"),
        ("run chain random --steps 1000000000000", "the record of a run of 1000000000000 steps"),
        ("run chain boss --set n_models=1000000000000", "would need about"),
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAMDP_DEBUG", raising=False)
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "12")
    (tmp_path / "junk.npz").write_bytes(b"not an archive")
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    np.savez(tmp_path / "sums.npz", transitions=np.ones((2, 1, 2)), rewards=np.zeros(2))
    np.savez(tmp_path / "short.npz", transitions=np.full((2, 1, 2), 0.5))
    np.savez(tmp_path / "large.npz", transitions=swap, rewards=[0.0, 1e300])
    return tmp_path


def check_refused(words, message, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("compiling")]
    assert out == ""
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert len(lines[0]) <= LONGEST_MESSAGE + 20
    assert message in lines[0]


@pytest.mark.parametrize("claim", BAD)
def test_bad_input_is_one_line_and_status_2(claim, folder, capsys):
    for command, message in BAD[claim]:
        check_refused(command.split(), message, capsys)


@pytest.mark.parametrize("value", ["1" + "0" * 20, "1e400", "nan", "", "[1,2]", "9" * 5000, "٣x"])
def test_extreme_numbers_are_refused_everywhere(value, folder, capsys):
    short = ["--runs", "1", "--steps", "3"]
    for words in (
        ["run", "chain", "random", f"--runs={value}"],
        ["run", "chain", "random", *short, f"--discount={value}"],
        ["run", "chain", "dss-pi", *short, "--set", f"n_steps={value}"],
        ["run", "chain", "thompson", *short, "--prior", f"sparse:alpha={value}"],
        ["run", "chain", "thompson", *short, "--rewards", f"normal:mu0={value}"],
        ["run", f"grid:size={value}", "random", *short],
        ["theory", f"--n-steps={value}"],
    ):
        if not (value.startswith("1000") and words[-1].startswith(("sparse", "normal"))):  # a legal number
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                check_refused(words, "", capsys)


def test_a_search_that_is_too_large_is_one_line_and_status_1(capsys):
    command = "run double_loop fhts --set horizon=9 max_hyper_states=10 --steps 1 --runs 1"
    assert main(command.split()) == 1
    assert "needs more than 10 hyper-states" in capsys.readouterr().err.splitlines()[-1]


def test_debug_keeps_the_traceback(monkeypatch):
    monkeypatch.setenv("BAMDP_DEBUG", "1")
    with pytest.raises(ValueError, match="did you mean 'grid5'"):
        main(["solve", "gird5"])
