"""Deep sea, transition by transition, against bsuite's own environment."""

from __future__ import annotations

import numpy as np
import pytest
from bsuite.environments.deep_sea import DeepSea as Original

import bamdp
from bamdp.envs import make_env

CASES = [(2, 42), (10, 7)]


def place(original: Original, state: int, size: int) -> None:
    original._row, original._column = divmod(state, size)
    original._reset_next_step = False


def after(original: Original, size: int) -> int:
    return size * size if original._row == size else original._row * size + original._column


@pytest.mark.parametrize(("size", "seed"), CASES)
def test_every_transition_is_bsuite_s(size, seed):
    env, original = make_env("deep_sea", size=size, mapping_seed=seed), Original(size, mapping_seed=seed)
    original.reset()
    for state in range(size * size):
        for action in range(2):
            place(original, state, size)
            timestep = original.step(action)
            states, chances = env.mdp.row(state, action)
            assert states.tolist() == [after(original, size)]
            assert chances.tolist() == [1.0]
            assert env.rewards[state, action] == pytest.approx(timestep.reward, abs=1e-12)
            assert timestep.last() == bool(env.mdp.terminal[states[0]])


class Fixed:
    """A random stream that says what it is told."""

    def __init__(self, uniform: float, normal: float) -> None:
        self.uniform, self.normal, self.asked = uniform, normal, 0

    def rand(self) -> float:
        return self.uniform

    def randn(self) -> float:
        self.asked += 1
        return self.normal


@pytest.mark.parametrize(("size", "seed"), CASES)
def test_every_stochastic_transition_is_bsuite_s(size, seed):
    env = make_env("deep_sea_stochastic", size=size, mapping_seed=seed)
    original = Original(size, deterministic=False, mapping_seed=seed)
    original.reset()
    for state in range(size * size):
        for action in range(2):
            chances: dict[int, float] = {}
            for uniform, weight in ((0.5 / size, 1 / size), (1.5 / size, 1 - 1 / size)):
                original._rng = Fixed(uniform, normal=3.0)
                place(original, state, size)
                timestep = original.step(action)
                chances[after(original, size)] = chances.get(after(original, size), 0.0) + weight
                noisy = original._rng.asked > 0
                mean = timestep.reward - (3.0 if noisy else 0.0)
                assert env.rewards[state, action] == pytest.approx(mean, abs=1e-12)
                assert noisy == (state in env._noisy)
            found = dict(zip(*(part.tolist() for part in env.mdp.row(state, action))))
            assert found == pytest.approx(chances)


def test_bad_episodes_are_counted_as_bsuite_counts_them():
    env, original = make_env("deep_sea", size=4), Original(4, mapping_seed=42)
    rng = np.random.default_rng(0)
    states, actions, bad = [], [], 0
    for _ in range(200):
        state, timestep = env.reset(seed=0), original.reset()
        before = original.bsuite_info()["total_bad_episodes"]
        while not timestep.last():
            row, column = divmod(state, 4)
            action = int(env.right[row, column]) if rng.random() < 0.8 else int(rng.integers(2))
            states.append(state)
            actions.append(action)
            timestep = original.step(action)
            state = env.step(action)[0]
        bad = original.bsuite_info()["total_bad_episodes"]
        assert env.bad_episodes(states[-4:], actions[-4:]).tolist() == [bad > before]
    assert 0 < bad < 200
    assert int(env.bad_episodes(states, actions).sum()) == bad


def test_the_optimum_is_bsuite_s():
    for name, value in (("deep_sea", 1.0), ("deep_sea_stochastic", (1 - 1 / 10) ** 9)):
        env = make_env(name, size=10)
        original = Original(10, deterministic=name == "deep_sea", mapping_seed=42)
        best = bamdp.policy_iteration(env.mdp, 0.999999)
        assert original._optimal_return == pytest.approx(value - 0.01)
        saved = (
            best.values[0] - original._optimal_return
        )  # by not going right when the treasure is out of reach
        assert -1e-4 < saved < (1e-4 if value == 1.0 else 0.01)
