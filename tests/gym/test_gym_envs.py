"""Our environments behind Gymnasium's interface."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bamdp
import bamdp.gym
from bamdp.envs.gym_env import GymEnv


def test_every_environment_is_registered():
    assert len(bamdp.gym.IDS) == len(bamdp.list_envs())
    assert "bamdp/Grid5-v0" in bamdp.gym.IDS
    assert set(bamdp.gym.IDS) <= set(gymnasium.registry)


@pytest.mark.parametrize("name", bamdp.gym.IDS)
def test_every_environment_passes_the_checker(name):
    check_env(gymnasium.make(name).unwrapped)


def test_a_registered_environment_is_the_environment():
    ours, theirs = bamdp.make_env("grid5"), gymnasium.make("bamdp/Grid5-v0", render_mode="ansi")
    state = ours.reset(seed=3)
    assert theirs.reset(seed=3) == (state, {})
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = int(rng.integers(4))
        assert theirs.step(action)[:3] == ours.step(action)
    assert theirs.render() == ours.render()


def test_parameters_limits_and_starts_are_passed_on():
    env = gymnasium.make("bamdp/Grid-v0", size=3, max_episode_steps=7)
    assert env.observation_space.n == 9
    assert env.reset(seed=0, options={"state": 5})[0] == 5
    cuts = [env.step(0)[3] for _ in range(7)]
    assert cuts == [False] * 6 + [True]
    with pytest.raises(ValueError, match=r"state must be in 0\.\.8"):
        env.reset(options={"state": 9})


def test_masks_and_ends_are_told():
    mask = np.array([[True, False], [True, True]])
    mdp = bamdp.FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros(2), action_mask=mask)
    env = GymEnv(bamdp.from_mdp(mdp))
    assert env.reset(seed=0)[1]["action_mask"].tolist() == [1, 0]
    ends = bamdp.FiniteMDP([[[0.0, 1.0]], [[0.0, 1.0]]], np.ones(2), terminal=[1])
    env = GymEnv(bamdp.from_mdp(ends), render_mode="rgb_array")
    env.reset(seed=0)
    assert env.step(0) == (1, 1.0, True, False, {})
    assert env.render().dtype == np.uint8
    with pytest.raises(ValueError, match="terminal; choose another"):
        env.reset(options={"state": 1})


def test_an_agent_plays_ours_through_gymnasium():
    env = gymnasium.make("bamdp/Chain-v0")
    one = bamdp.GymAgent.for_env(env, bamdp.ThompsonSampling(), seed=0)
    run = one.play(steps=300, seed=0)
    assert run.total_reward > 0.0
    assert not one.agent.belief.space.terminal[:-1].any()
