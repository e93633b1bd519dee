"""Bad input: one clear line on standard error, exit status 2, no traceback, nothing on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bamdp import _checks
from bamdp.cli import main

ROOT = Path(__file__).parents[2]

BAD = [
    ("run gird5 thompson", "did you mean 'grid5'"),
    ("run grid5 tompson", "did you mean 'thompson'"),
    ("run grid5 dss", "did you mean 'dss-pi'"),
    ("lab new study.txt", "ends in .toml"),
    ("completion tcsh", "known: bash, zsh"),
    ("rnu grid5 thompson", "did you mean 'run'"),
    ("run", "required: ENV"),
    ("run grid5 thompson --stepz 3", "did you mean --steps"),
    ("run grid5 thompson extra", "unknown argument 'extra'"),
    ("run grid5 dss-pi --set n_step=3", "did you mean 'n_steps'"),
    ("run grid5 dss-pi --set n_steps=abc", "n_steps must be a whole number, got 'abc'"),
    ("run grid5 dss-pi --set n_steps=2.5", "n_steps must be a whole number"),
    ("run grid5 dss-pi --set n_steps=0", "n_steps must be at least 1"),
    ("run grid5 dss-pi --set n_steps=1 n_steps=2", "n_steps twice"),
    ("run grid5 dss-pi:n_steps=1 --set n_steps=2", "given twice"),
    ("run grid5 dss-pi --set n_steps", "is not key=value"),
    ("run grid5 dss-pi --set leaf=meen", "did you mean 'mean'"),
    ("run grid5 dss-pi --set leaf_tol=-1", "leaf_tol must be finite, above 0"),
    ("run grid5 dss-rtdp --set generator.dept=3", "did you mean 'depth'"),
    ("run grid5 dss-pi --set generator.depth=3", "unknown parameter of the generator pi"),
    ("run grid5 dss-pi --set generator=pie", "did you mean 'pi'"),
    ("run grid5 thompson --set generator.depth=3", "unknown parameter of thompson"),
    ("run grid5 thompson --set resample=sometimes", "unknown resample"),
    ("run grid5 random --set x=3", "takes no parameters"),
    ("run grid5 thompson --discount 1.0", "discount must be in [0, 1)"),
    ("run grid5 thompson --discount nan", "discount must be finite"),
    ("run grid5 thompson --discount abc", "a discount is a number in [0, 1), or the word horizon or auto"),
    ("run grid5 thompson --steps -3", "steps must be at least 1"),
    ("run grid5 thompson --steps 0", "steps must be at least 1"),
    ("run grid5 thompson --runs 0", "runs must be at least 1"),
    ("run grid5 thompson --jobs 0", "jobs must be at least 1"),
    ("run grid5 thompson --seed -1", "seed must be at least 0"),
    ("run grid5 thompson --prior spars", "did you mean 'sparse'"),
    ("run grid5 thompson --prior sparse:bata=2", "did you mean 'beta'"),
    ("run grid5 thompson --prior sparse:alpha=-1", "alpha must be finite, above 0"),
    ("run grid5 thompson --prior sparse:alpha", "is not key=value"),
    ("run grid5 thompson --prior sparse:p_k=abc", "p_k must be"),
    ("run grid5 thompson --prior flat:alpha=x/S", "write for instance alpha=1/S"),
    ("run grid5 thompson --prior flat+spars", "did you mean 'sparse'"),
    ("run grid5 thompson --prior models", "several worlds"),
    ("run maze_door thompson --prior models:x=1", "takes no parameters"),
    ("run chain thompson --rewards beta", "chain pays 0.2"),
    ("run grid5 thompson --rewards betta", "did you mean 'beta'"),
    ("run grid5 thompson --rewards known:x=1", "known takes no parameters"),
    ("run grid5 thompson --rewards normal:mu=1", "did you mean 'mu0'"),
    ("run chain thompson --rewards finite:values=(0,1)", "chain pays 0.2"),
    ("run grid5 fhts --rewards normal", "FHTS enumerates rewards"),
    ("run grid5 thompson --objective episodes", "did you mean 'episode'"),
    ("run gym:FrozenLake-v9 thompson", "cannot make 'FrozenLake-v9'"),
    ("run gym:FrozenLake-v1 thompson --rewards known", "are not known beforehand"),
    ("run gym:FrozenLake-v1 thompson --prior models", "several worlds"),
    ("run gym:CartPole-v1 thompson", "make them discrete"),
    ("run gym:MountainCarContinuous-v0:max_states=9 thompson", "ActionWrapper"),
    ("run gym: thompson", "write gym:ID"),
    ("solve gym:FrozenLake-v1", "is not known, and it is needed here"),
    ("run grid:size=1 thompson", "size must be at least 2"),
    ("run grid:sise=3 thompson", "did you mean 'size'"),
    ("run grid5:size=3 thompson", "takes no parameters"),
    ("run file: thompson", "write file:PATH"),
    ("run file:missing.npz thompson", "no model file missing.npz"),
    ("run file:junk.npz thompson", "junk.npz is not a model file"),
    ("run file:sums.npz thompson", "row (state 0, action 0) sums to 2"),
    ("run file:short.npz thompson", "rewards missing"),
    ("list envz", "did you mean 'envs'"),
    ("solve mazee", "did you mean 'maze'"),
    ("solve maze --discount 2", "discount must be in [0, 1)"),
    ("solve maze --steps -1", "steps must be at least 1"),
    ("warmup dss", "unknown planner 'dss'"),
    ("demo --output curve.bmp", "must end in .png"),
    ("demo --runs 0", "runs must be at least 1"),
    ("studio gird10", "did you mean 'grid10'"),
    ("studio grid10 dss", "unknown planner 'dss'"),
    ("studio grid10 dss-pi --set n_steps=0", "n_steps must be at least 1"),
    ("studio grid10 dss-pi:n_steps=3 --set n_steps=2", "given twice"),
    ("studio grid:size=99", "what can be looked at here ends"),
    ("studio grid5 dss-pi --prior models", "several worlds"),
    ("studio grid5 --port 70000", "port must be at least 0 and at most 65535"),
    ("studio grid5 --limit 0", "limit must be finite, above 0"),
    ("studio grid5 --seed -1", "seed must be at least 0"),
    ("studio file:missing.npz", "no model file missing.npz"),
    ("explain", "required: ENV"),
    ("explain chain thompson --step -1", "step must be at least 0"),
    ("explain chain thompson --out why.png", "must end in .html or .svg"),
    ("explain chain thompsen", "did you mean 'thompson'"),
    ("explain chain thompson --prior spars", "did you mean 'sparse'"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAMDP_DEBUG", raising=False)
    (tmp_path / "junk.npz").write_bytes(b"not an archive")
    np.savez(tmp_path / "sums.npz", transitions=np.ones((2, 1, 2)), rewards=np.zeros(2))
    np.savez(tmp_path / "short.npz", transitions=np.full((2, 1, 2), 0.5))
    return tmp_path


@pytest.mark.parametrize(("command", "message"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_status_2(command, message, folder, capsys):
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert "Traceback" not in err


def test_a_picture_that_cannot_be_written_is_no_traceback(folder, capsys):
    (folder / "locked").write_text("a file where a folder should be")
    assert main("demo --runs 1 --jobs 1 --output locked/curve.png".split()) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_a_search_that_is_too_large_is_one_line_and_status_1(capsys):
    command = "run double_loop fhts --set horizon=9 max_hyper_states=10 --steps 1 --runs 1"
    assert main(command.split()) == 1
    assert "needs more than 10 hyper-states" in capsys.readouterr().err.splitlines()[-1]


def test_debug_keeps_the_traceback(monkeypatch):
    monkeypatch.setenv("BAMDP_DEBUG", "1")
    with pytest.raises(ValueError, match="did you mean 'grid5'"):
        main(["solve", "gird5"])


def test_hints_to_install_work_from_a_checkout(tmp_path, monkeypatch):
    assert _checks.install_command("web") == f"pip install -e '{ROOT}[web]'"
    monkeypatch.setattr(_checks, "__file__", str(tmp_path / "site" / "bamdp" / "_checks.py"))
    source = {"url": f"file://{tmp_path}/my%20copy", "dir_info": {}}  # what pip writes for `pip install .`
    (tmp_path / "my copy").mkdir()
    (tmp_path / "my copy" / "pyproject.toml").touch()
    installed = SimpleNamespace(read_text=lambda name: json.dumps(source))
    monkeypatch.setattr(_checks.metadata, "distribution", lambda name: installed)
    assert _checks.install_command("web") == f"pip install '{tmp_path}/my copy[web]'"
    for address in ("file:///nowhere", "https://example.org/bamdp.whl"):
        source["url"] = address
        assert _checks.install_command("web") == "pip install 'bamdp[web]'"
