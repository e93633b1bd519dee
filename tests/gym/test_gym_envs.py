"""Our environments behind Gymnasium's interface."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bamdp
import bamdp.gym
from bamdp.gym import GymEnv


@pytest.mark.parametrize("name", bamdp.gym.IDS)
def test_every_environment_passes_the_checker(name):
    check_env(gymnasium.make(name).unwrapped)


def test_a_registered_environment_is_the_environment():
    ours, theirs = bamdp.make_env("grid5"), gymnasium.make("bamdp/Grid5-v0", render_mode="rgb_array")
    state = ours.reset(seed=3)
    assert theirs.reset(seed=3) == (state, {})
    rng = np.random.default_rng(0)
    for _ in range(50):
        action = int(rng.integers(4))
        assert theirs.step(action)[:3] == ours.step(action)
    assert np.array_equal(theirs.render(), ours.render())


def test_parameters_and_limits_are_passed_on():
    env = gymnasium.make("bamdp/Grid-v0", size=3, max_episode_steps=7)
    assert env.observation_space.n == 9
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]


def test_episodes_are_cut_off_at_the_horizon_of_their_own_parameters():
    def length(env):
        env.reset(seed=0)
        return next(step for step in range(1, 5000) if env.step(0)[3])

    assert length(gymnasium.make("bamdp/Grid-v0", size=2)) == 400
    assert length(gymnasium.make("bamdp/Grid-v0", size=10, episode_steps=3000)) == 3000
    assert length(GymEnv("grid5")) == 1000
    again = GymEnv("grid5", episode_steps=4)
    assert [length(again), length(again)] == [4, 4]
    with pytest.raises(ValueError, match="episode_steps"):
        GymEnv("grid5", episode_steps=0)


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
