"""A run that is watched is the run that tables count, at any time, in any order."""

from __future__ import annotations

import pytest
from studio_runs import DSS, run_of, setting_of

import bamdp
from bamdp.runs import run_one
from bamdp.settings import Setting
from bamdp.studio import playback
from bamdp.studio.playback import Playback, Stage
from bamdp.studio.settings import Choice, Limits


def state_of(run):
    belief = run.agent.belief
    pairs = [(s, a) for s in range(belief.n_states) for a in range(belief.n_actions)]
    return [
        run.t,
        run.state,
        run.agent.rng.tolist(),
        belief.log_evidence,
        [belief.predictive(*pair).tolist() for pair in pairs],
        run.visits.tolist(),
        run.total_reward,
        run.env.state,
    ]


@pytest.mark.parametrize("planner", ["thompson", DSS])
def test_what_is_watched_is_what_is_run(planner):
    setting = setting_of("double_loop", planner, steps=60)
    run, table = Playback(setting), run_one(setting, 0)
    assert run.seek(1000) == 60
    assert [step.action for step in run.steps] == table.actions.tolist()
    assert [step.reward for step in run.steps] == table.rewards.tolist()
    assert run.total_reward == table.total_reward


@pytest.mark.parametrize("planner", ["thompson:resample=episode", "bootstrapped-dqn:n_networks=3"])
def test_what_is_watched_is_what_is_run_over_episodes(planner):
    setting = setting_of("deep_sea:size=3", planner, steps=40)
    run = Playback(setting)
    run.seek(40)
    assert sum(step.terminated for step in run.steps) > 5
    assert [step.action for step in run.steps] == run_one(setting, 0).actions.tolist()


def test_going_back_and_on_again_is_the_same_life():
    run = run_of(planner=DSS, steps=80)
    seen = [state_of(run)]
    for _ in range(80):
        run.advance()
        seen.append(state_of(run))
    for t in (40, 39, 0, 79, 16, 17, 80, 1):
        assert run.seek(t) == t
        assert state_of(run) == seen[t]
    run.seek(80)
    assert state_of(run) == seen[80]
    assert len(run.steps) == 80


def test_copies_are_few_and_the_first_is_kept(monkeypatch):
    monkeypatch.setattr(playback, "MAX_COPIES", 8)
    run = run_of(t=200)
    assert len(run._copies) <= 8
    assert 0 in run._copies
    assert run._spacing > playback.COPY_SPACING
    assert run.seek(3) == 3


def test_under_a_time_budget_what_was_done_is_done_again():
    planner = bamdp.BAMCP(time_limit=0.0005, depth=8)
    setting = setting_of(steps=40)
    run = Playback(Setting("chain", planner, setting.prior, setting.rewards, 0.95, 40, 0))
    run.seek(40)
    actions, state = [step.action for step in run.steps], run.state
    run.seek(3)
    run.seek(40)
    assert run.state == state
    assert [step.action for step in run.steps] == actions
    assert run.visits.sum() == 40


def test_two_runs_go_in_lock_step_and_one_that_is_behind_catches_up():
    stage = Stage(Choice(env="chain", planners=("thompson", "random")).settings(Limits()))
    assert [frame["t"] for frame in stage.go(40, 1e9)["frames"]] == [40, 40]
    stage.runs[0].seek(10)  # as after a pause on the way back
    assert [frame["t"] for frame in stage.go(43, 1e9)["frames"]] == [43, 43]
    assert [frame["t"] for frame in stage.go(17, 1e9)["frames"]] == [17, 17]


def test_work_is_bounded_by_time():
    run = run_of(planner="random", steps=100_000)
    playback.go([run], 100_000, seconds=0.05)
    assert 0 < run.t < 100_000
