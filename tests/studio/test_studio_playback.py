"""A run that is watched is the run that tables count, at any time, in any order."""

from __future__ import annotations

import pytest
from studio_runs import DSS, run_of, setting_of

from bamdp.runs import run_one
from bamdp.studio import playback
from bamdp.studio.playback import Choice, Limits, Playback, Stage


def state_of(run):
    belief = run.agent.belief
    pairs = [(s, a) for s in range(belief.n_states) for a in range(belief.n_actions)]
    learned = belief.log_evidence, [belief.predictive(*pair).tolist() for pair in pairs]
    return run.t, run.state, run.agent.rng.tolist(), learned, run.visits.tolist(), run.env.state


@pytest.mark.parametrize(
    ("env", "planner"),
    [
        ("double_loop", DSS),
        ("deep_sea:size=3", "thompson:resample=episode"),  # over ends of episodes
        ("gym:FrozenLake-v1", "thompson"),
    ],
)
def test_what_is_watched_is_what_is_run(env, planner):
    setting = setting_of(env, planner, steps=60)
    run, table = Playback(setting), run_one(setting, 0)
    assert run.seek(1000) == 60
    assert [step.action for step in run.steps] == table.actions.tolist()
    assert [step.reward for step in run.steps] == table.rewards.tolist()
    assert run.seek(33) == 33  # across ends of episodes
    assert run.state == table.states[33]


def test_going_back_and_on_again_is_the_same_life():
    run = run_of(planner=DSS, steps=80)
    seen = [state_of(run)]
    for _ in range(80):
        run.advance()
        seen.append(state_of(run))
    for t in (40, 39, 0, 79, 16, 17, 80, 1):
        assert run.seek(t) == t
        assert state_of(run) == seen[t]
    assert len(run.steps) == 80


def test_copies_are_few_and_the_first_is_kept(monkeypatch):
    monkeypatch.setattr(playback, "MAX_COPIES", 8)
    run = run_of(t=200)
    assert len(run._copies) <= 8
    assert 0 in run._copies
    assert run.seek(3) == 3


def test_under_a_time_budget_what_was_done_is_done_again():
    run = run_of(planner="bamcp:time_limit=0.0005,depth=8", steps=40, t=40)
    actions, state = [step.action for step in run.steps], run.state
    run.seek(3)
    run.seek(40)
    assert (run.state, [step.action for step in run.steps]) == (state, actions)


def test_two_runs_go_in_lock_step_for_a_time_and_one_that_is_behind_catches_up():
    stage = Stage(Choice(env="chain", planners=("thompson", "random")).settings(Limits()))
    assert [frame["t"] for frame in stage.go(40, 1e9)["frames"]] == [40, 40]
    stage.runs[0].seek(10)  # as after a pause on the way back
    assert [frame["t"] for frame in stage.go(43, 1e9)["frames"]] == [43, 43]
    run = run_of(planner="random", steps=100_000)
    playback.go([run], 100_000, seconds=0.05)
    assert 0 < run.t < 100_000
