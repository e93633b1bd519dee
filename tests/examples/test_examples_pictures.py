"""The scripts in examples/ about planning, beliefs and theory: each draws its picture, and shows what it says."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Imports an example and runs its main; returns what that returns, having looked at the picture."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def runner(name, **options):
        path = tmp_path / f"{name}.png"
        result = importlib.import_module(name).main(str(path), **options)
        pixels = matplotlib.image.imread(path)
        assert min(pixels.shape[:2]) > 300
        assert pixels[..., :3].std() > 0.02  # not blank
        return result

    yield runner
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_bandit_map(run):
    maps = run("bandit_map")
    one = np.sign(np.array([[losses - wins for losses in range(9)] for wins in range(9)]))
    assert np.array_equal(np.sign(np.round(maps[0], 12)), one)  # one step ahead the better mean wins
    assert (maps[-1] > 0).sum() > (maps[1] > 0).sum() > (maps[0] > 0).sum()  # looking further, trying pays


def test_belief_map(run):
    (goes, apart), _, (later, closer) = run("belief_map")
    assert np.allclose(goes, 1 / 25)
    assert np.median(later[:4]) > 0.5  # inside the grid right goes right with 0.8
    assert closer.mean() < 0.5 * apart.mean()


def test_plan_candidates(run):
    plans = run("plan_candidates")
    spans = [np.ptp([c.value for c in plan.candidates]) for plan in plans]
    assert spans == sorted(spans, reverse=True)


def test_k_trade_off(run):
    epsilon0, c = run("k_trade_off")
    assert 0.1 < epsilon0 < 2
    assert 0.02 < c < 0.3


def test_compare_priors(tmp_path):
    # In a process of its own: what is registered from outside belongs to the key of every compiled file after it.
    path = tmp_path / "own.png"
    done = elsewhere(EXAMPLES / "compare_priors.py", path)
    totals = {line[:24].strip(): float(line[24:]) for line in done.splitlines()}
    assert totals["Deterministic (ours)"] > 120
    assert path.read_bytes().startswith(b"\x89PNG")


def elsewhere(script, *arguments):
    """The output of a script in another process that finds the examples."""
    here = os.pathsep.join([str(EXAMPLES), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, "PYTHONPATH": here},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compare_generators(run):
    totals = run("compare_generators", runs=3, steps=120)
    assert totals["compiled PI"] == totals["PI in Python"]


def test_the_prior_of_the_example_keeps_the_promises_of_beliefs(tmp_path):
    elsewhere(Path(__file__).with_name("deterministic_promises.py"), tmp_path / "agent.npz")
