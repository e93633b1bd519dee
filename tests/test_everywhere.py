"""Replicate r of seed s is the same run, and one rule of defaults holds, whatever asks: Python, commands, studies."""

from __future__ import annotations

import csv
import doctest
import json

import numpy as np
import pytest

import bamdp
from bamdp import seeding
from bamdp.cli import main
from bamdp.runs import make_setting, new_agent, run_one
from bamdp.studio.playback import Playback

RUNS, STEPS, SEED = 3, 40, 7
NAMED = {"prior": "sparse:beta=3", "discount": 0.9}
CASES = {  # environment, planner, what is named
    "defaults": ("chain", "thompson", {}),
    "own defaults": ("chain", "adaptive-dss:n_simulations=8", {}),
    "named": ("maze_door", "thompson", NAMED),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def expected(case):
    """The runs of seed 7 as ``simulate`` makes them: replicate r has the seed (7, r) twice."""
    env, planner, named = case
    horizon = {} if "discount" in named else {"horizon": STEPS}
    runs = []
    for r in range(RUNS):
        default = bamdp.make_planner(planner).default_discount
        own = {"discount": default} if not named else {}
        needs = horizon if isinstance(own.get("discount"), str) else {}
        agent = bamdp.Agent.for_env(env, planner, seed=(SEED, r), **named, **own, **needs)
        runs.append(bamdp.simulate(agent, env, STEPS, seed=(SEED, r)))
    return runs


def words_of(case):
    env, planner, named = case
    numbers = ["--runs", str(RUNS), "--steps", str(STEPS), "--seed", str(SEED)]
    return [
        env,
        planner,
        *numbers,
        *(word for key, value in named.items() for word in (f"--{key}", str(value))),
    ]


def test_run_many_and_a_single_replicate(case, expected):
    env, planner, named = case
    batch = bamdp.run_many(env, planner, runs=RUNS, steps=STEPS, seed=SEED, **named)
    assert list(batch.runs) == expected
    assert run_one(make_setting(env, planner, steps=STEPS, seed=SEED, **named), 2) == expected[2]
    assert len({run.states.tobytes() for run in expected}) == RUNS


def test_compare_whatever_else_is_compared(case, expected):
    env, planner, named = case
    found = bamdp.compare(env, ["random", planner], runs=RUNS, steps=STEPS, seed=SEED, **named)
    assert np.array_equal(found.rewards[planner], [run.rewards for run in expected])


def test_the_evaluation_of_tune_and_no_run_of_its_choice(case):
    env, planner, named = case
    grid = {"tol": [1e-4, 1e-5]}
    found = bamdp.tune(env, planner, grid, runs=RUNS, evaluate=RUNS, steps=STEPS, seed=SEED, **named)
    runs = found.results.runs[found.results.runs.chosen]
    totals = {phase: runs[runs.phase == phase].total.tolist() for phase in ("tune", "evaluate")}
    setting = make_setting(env, found.planner, steps=STEPS, seed=SEED, **named)
    assert totals["evaluate"] == [run_one(setting, r).total_reward for r in range(RUNS)] != totals["tune"]


def test_the_commands_and_studies(case, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env, planner, named = case
    totals = [run.total_reward for run in expected]
    for command in ("run", "compare"):
        assert main([command, *words_of(case), "--json"]) == 0
        assert [run["total"] for run in json.loads(capsys.readouterr().out)["runs"]] == totals
    shared = "\n".join(f"{key} = {value!r}" for key, value in {"runs": RUNS, "seed": SEED, **named}.items())
    study = f"{shared}\nenvironments = {{{env} = {{steps = {STEPS}}}}}\nalgorithms = ['{planner}']\n"
    (tmp_path / "study.toml").write_text(study)
    assert main(["lab", "run", "study.toml"]) == main(["lab", "export", "study.toml"]) == 0
    with open("study.csv", newline="") as file:
        assert [float(row["total"]) for row in csv.DictReader(file)] == pytest.approx(totals)


def test_the_studio(case, expected):
    env, planner, named = case
    playback = Playback(make_setting(env, planner, steps=STEPS, seed=SEED, **named))
    playback.seek(STEPS)
    assert [step.reward for step in playback.steps] == expected[0].rewards.tolist()


@pytest.mark.parametrize("discount", [None, 0.9, "horizon", "auto"])
def test_a_setting_and_for_env_plan_for_the_same(discount):
    env = bamdp.make_env("grid5")
    for planner in ("adaptive-dss", "thompson"):
        agent = bamdp.Agent.for_env(env, planner, discount=discount)
        same = new_agent(make_setting(env, planner, discount=discount), env)
        assert (agent.discount, agent.horizon, agent.reach) == (same.discount, same.horizon, same.reach)


def test_streams_differ_by_seed_replicate_and_purpose():
    assert doctest.testmod(seeding).failed == 0
    asked = [(seed, r, tuning) for seed in (0, 1) for r in (0, 1) for tuning in (False, True)]
    words = {tuple(s.generate_state(2)) for seed, r, t in asked for s in seeding.seeds(seed, r, tuning=t)}
    assert len(words) == 2 * len(asked)
