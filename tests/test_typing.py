"""What a type checker makes of the public names: classes are themselves, also those that are imported later."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
from typing import assert_type

from matplotlib.axes import Axes

import bamdp

env = bamdp.make_env("grid5")
assert_type(env, bamdp.Environment)
agent = bamdp.Agent.for_env("gym:FrozenLake-v1", "thompson", prior=bamdp.Dirichlet(), rewards="normal")
assert_type(agent, bamdp.Agent)
run = bamdp.simulate(agent, env, steps=3)
assert_type(run, bamdp.Run)
assert_type(run.plot(), Axes)
assert_type(bamdp.plot.values(env, agent), Axes)
assert_type(bamdp.run_many("grid5", bamdp.DSS(), runs=2), bamdp.Batch)
found = bamdp.compare("grid5", ["thompson", bamdp.DSS()])
assert_type(found, bamdp.ComparisonResult)
assert_type(bamdp.tune("grid5", "dss-pi", {"n_steps": [1, 2]}).planner, bamdp.Planner)
assert_type(bamdp.make_prior("sparse"), bamdp.Prior)
assert_type(bamdp.make_planner("dss-pi"), bamdp.Planner)
bamdp.Agent.for_env(env, 3)  # error: a planner is no number
"""


@pytest.mark.slow
def test_public_names_have_types(tmp_path):
    (tmp_path / "code.py").write_text(CODE)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", "code.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if line.startswith("code.py") and "error:" in line]
    assert len(errors) == 1, done.stdout
    assert f"code.py:{CODE.count(chr(10))}:" in errors[0]
    assert "arg-type" in errors[0]
