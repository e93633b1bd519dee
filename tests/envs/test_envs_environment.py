"""What every environment promises: steps by the table, one stream a seed, clear errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

from bamdp.envs import Environment, from_mdp, list_envs, make_env
from bamdp.mdp import FiniteMDP

NAMES = [info.name for info in list_envs()]


def step(env, action):
    """A step, in the next episode if one has ended."""
    if env.terminated:
        env.reset()
    return env.step(action)


def run(env, seed, steps=200):
    actions = np.random.default_rng(7).integers(env.n_actions, size=steps).tolist()
    return [env.reset(seed=seed), *(step(env, a) for a in actions)]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name):
    env = make_env(name)
    first = run(env, 11)
    assert run(env, 11) == first
    assert run(make_env(name), 11) == first
    assert run(make_env(name), np.random.SeedSequence(11)) == first
    if name not in ("double_loop", "deep_sea"):  # deterministic: nothing to tell seeds apart
        assert any(run(env, seed) != first for seed in (12, 13, 14))


@pytest.mark.parametrize("name", NAMES)
def test_pickles_and_copies_go_on_alike(name):
    env = make_env(name)
    run(env, 3, steps=77)
    twins = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    actions = [t % env.n_actions for t in range(1200)]  # beyond a block of the stream
    expected = [step(env, a) for a in actions]
    for twin in twins:
        assert [step(twin, a) for a in actions] == expected


def test_two_agents_are_compared_under_common_random_numbers():
    """Step t uses the t-th number of the stream, whatever was done before."""
    uniforms = np.random.default_rng(21).random(600)
    for policy in (lambda s, t: 1, lambda s, t: t % 2, lambda s, t: 0):
        env = make_env("chain")
        state = env.reset(seed=21)
        for t, u in enumerate(uniforms.tolist()):
            action = policy(state, t)
            states, chances = env.mdp.row(state, action)
            expected = int(states[np.searchsorted(np.cumsum(chances)[:-1], u, side="right")])
            state, _, _ = env.step(action)
            assert state == expected


@pytest.mark.parametrize("rewards", [[0.0, 2.0, 0.0], "action", "next"])
def test_rewards_of_every_shape_are_paid(rewards):
    turn = np.zeros((3, 2, 3))
    turn[[0, 1, 2], :, [1, 2, 0]] = 1.0
    if rewards == "action":
        rewards = np.array([[0, 0], [0, 2.0], [0, 0]])
    elif rewards == "next":
        rewards = np.zeros((3, 2, 3))
        rewards[1, 1, 2] = 2.0
    env = from_mdp(FiniteMDP(turn, rewards))
    env.reset(seed=0)
    assert [env.step(1)[1] for _ in range(6)] == [0.0, 2.0, 0.0, 0.0, 2.0, 0.0]


def test_uniform_background_is_drawn_too():
    from bamdp._kernels.rows import Rows, Space

    rows = Rows(np.zeros((4, 2), np.int64), np.zeros(0, np.int32), np.zeros(0), np.ones(4), np.zeros(4))
    env = from_mdp(FiniteMDP.from_rows(rows, Space(np.zeros(4, bool), np.ones((4, 1), bool))))
    env.reset(seed=0)
    counts = np.bincount([env.step(0)[0] for _ in range(4000)], minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-4


def episodic():
    """Action 0 of two leads on, 1 is masked in state 0; state 2 ends."""
    walk = np.zeros((3, 2, 3))
    walk[0, 0, 1] = walk[1, :, 2] = 1.0
    return FiniteMDP(
        walk, np.ones((3, 2)), terminal=[2], action_mask=[[True, False], [True, True], [True, True]]
    )


def test_a_terminal_state_ends_the_episode():
    env = from_mdp(episodic(), name="walk")
    env.reset(seed=0)
    assert env.step(0) == (1, 1.0, False)
    assert env.step(1) == (2, 1.0, True)
    assert env.terminated
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"walk has terminated in state 2; call reset\(\)"):
            env.step(0)
    assert env.reset() == 0
    assert not env.terminated
    assert env.step(0) == (1, 1.0, False)


def test_a_drawn_start_follows_its_probabilities():
    env = from_mdp(make_env("chain").mdp, start=[0, 0.25, 0, 0.75, 0])
    starts = [env.reset(seed=seed) for seed in range(2000)]
    assert starts == [env.reset(seed=seed) for seed in range(2000)]
    assert set(starts) == {1, 3}
    assert abs(starts.count(1) - 500) < 100  # five standard deviations
    assert env.start == env.state


def test_misuse_is_refused_with_a_reason():
    env = make_env("chain")
    with pytest.raises(RuntimeError, match="has not been reset"):
        env.step(0)
    env.reset(seed=0)
    for wrong in (2, -1):
        with pytest.raises(ValueError, match=r"action must be in 0\.\.1"):
            env.step(wrong)
    for wrong in (0.0, "1", None, True, np.float64(1)):
        with pytest.raises(TypeError, match="action must be a whole number"):
            env.step(wrong)
    masked = from_mdp(episodic())
    masked.reset(seed=0)
    with pytest.raises(ValueError, match=r"action 1 is not allowed in state 0; allowed there: \[0\]"):
        masked.step(1)


def test_a_terminal_start_and_a_model_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="terminal state"):
        from_mdp(episodic(), start=2)
    with pytest.raises(ValueError, match="terminal state"):
        from_mdp(episodic(), start=[0.5, 0, 0.5])
    with pytest.raises(TypeError, match="FiniteMDP"):
        Environment("x", np.ones((1, 1, 1)))
