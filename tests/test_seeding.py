"""One seeding: replicate r of seed s is the same run, whatever asks for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bamdp
from bamdp.cli import main
from bamdp.runs import run_one
from bamdp.settings import make_setting
from bamdp.studio.playback import Playback

ENV, PLANNER, STEPS, SEED, RUNS = "maze_door", "thompson", 40, 7, 3
AGENT = {"prior": "sparse", "discount": 0.95}


@pytest.fixture(scope="module")
def expected():
    """The runs of seed 7 as ``simulate`` makes them: replicate r has the seed (7, r) twice."""
    env = bamdp.make_env(ENV)
    agents = [bamdp.Agent.for_env(env, PLANNER, seed=(SEED, r), **AGENT) for r in range(RUNS)]
    return [bamdp.simulate(agent, env, STEPS, seed=(SEED, r)) for r, agent in enumerate(agents)]


def test_a_number_is_its_replicate_0(expected):
    agent = bamdp.Agent.for_env(ENV, PLANNER, seed=SEED, **AGENT)
    assert bamdp.simulate(agent, ENV, STEPS, seed=SEED) == expected[0]


def test_replicates_differ(expected):
    assert len({run.states.tobytes() for run in expected}) == RUNS


def test_run_many(expected):
    assert list(bamdp.run_many(ENV, PLANNER, runs=RUNS, steps=STEPS, seed=SEED, **AGENT).runs) == expected


def test_a_single_replicate(expected):
    assert run_one(make_setting(ENV, PLANNER, steps=STEPS, seed=SEED, **AGENT), 2) == expected[2]


def test_compare(expected):
    found = bamdp.compare(ENV, [PLANNER, "random"], runs=RUNS, steps=STEPS, seed=SEED, **AGENT)
    assert np.array_equal(found.rewards[PLANNER], [run.rewards for run in expected])


def test_the_evaluation_of_tune_and_no_run_of_its_choice(expected):
    grid = {"resample": ["step"], "tol": [1e-4, 1e-5]}
    options = {"runs": RUNS, "evaluate": RUNS, "steps": STEPS, "seed": SEED}
    found = bamdp.tune(ENV, PLANNER, grid, **options, **AGENT)
    evaluated = {sample.phase: sample for sample in found.results.samples if sample.chosen}
    setting = make_setting(ENV, found.planner, steps=STEPS, seed=SEED, **AGENT)
    assert evaluated["evaluate"].totals.tolist() == [run_one(setting, r).total_reward for r in range(RUNS)]
    assert not np.array_equal(evaluated["evaluate"].traces(), evaluated["tune"].traces())


def test_the_commands(expected, capsys, tmp_path):
    words = [ENV, PLANNER, "--runs", str(RUNS), "--steps", str(STEPS), "--seed", str(SEED), "--json"]
    words += ["--prior", AGENT["prior"], "--discount", "0.95"]
    assert main(["run", *words]) == 0
    run = json.loads(capsys.readouterr().out)
    assert main(["compare", *words, "--store", str(tmp_path / "runs.sqlite")]) == 0
    compare = json.loads(capsys.readouterr().out)
    totals = [run.total_reward for run in expected]
    assert run["total_reward"]["values"] == compare["samples"][0]["totals"] == totals


def test_the_studio(expected):
    playback = Playback(make_setting(ENV, PLANNER, steps=STEPS, seed=SEED, **AGENT))
    for _ in range(STEPS):
        playback.advance()
    assert [step.reward for step in playback.steps] == expected[0].rewards.tolist()
