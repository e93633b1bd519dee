"""Agents in bsuite's experiments, through bsuite's own loop."""

from __future__ import annotations

import doctest

import dm_env
import numpy as np
import pytest
from bsuite.baselines import experiment

import bamdp
import bamdp.bsuite
from bamdp.bsuite import BsuiteAgent, load

PSRL = bamdp.ThompsonSampling(resample="episode")
SHARP = bamdp.NormalGamma(lam=0.01, beta=0.01)


def test_deep_sea_is_solved_as_in_our_own_environment():
    env = load("deep_sea/0")
    player = BsuiteAgent.for_env(
        env, PSRL, bamdp.SparseDirichlet(alpha=0.2, beta=8.0), rewards=SHARP, max_states=60, seed=0
    )
    experiment.run(player, env, num_episodes=150)
    solved = env.bsuite_info()["total_bad_episodes"]
    assert solved < 100, "of 150 episodes; random play has 150"
    before = solved
    experiment.run(player, env, num_episodes=50)
    assert env.bsuite_info()["total_bad_episodes"] - before < 15
    assert len(player.numbering.numbers) <= 55, "cells right of the diagonal never appear"


def test_more_observations_than_stated_are_refused_and_nothing_is_lost():
    env = load("mountain_car/0")
    player = BsuiteAgent.for_env(env, PSRL, max_states=20, seed=0)
    with pytest.raises(ValueError, match="new after 20 others; increase max_states"):
        experiment.run(player, env, num_episodes=1)
    assert len(player.numbering.numbers) == 20
    assert player.agent.act(3) in range(3)


def timesteps() -> list[dm_env.TimeStep]:
    def show(number: int) -> np.ndarray:
        return np.array([number], np.float32)

    return [
        dm_env.restart(show(0)),
        dm_env.transition(reward=1.0, observation=show(1)),
        dm_env.truncation(reward=2.0, observation=show(2)),
        dm_env.termination(reward=3.0, observation=show(0)),
    ]


class Two:
    """A world that only says how many actions there are."""

    def action_spec(self):
        return dm_env.specs.DiscreteArray(2)


def test_an_end_is_learned_and_a_truncation_is_not():
    first, middle, cut, end = timesteps()
    one = bamdp.NormalGamma(mu0=0.0, lam=1.0, beta=1.0)
    player = BsuiteAgent.for_env(Two(), PSRL, bamdp.Dirichlet(alpha=0.01), rewards=one, max_states=5, seed=0)
    player.select_action(first)
    player.update(first, 0, middle)
    player.update(middle, 1, cut)
    player.select_action(first)
    player.update(first, 1, end)
    belief = player.agent.belief
    assert belief.predictive(1, 1)[2] > 0.9, "where it was cut off"
    assert belief.predictive(0, 1)[5] > 0.9, "the end, although the observation is one that is known"
    assert belief.expected_reward(0, 1) == pytest.approx(
        1.5
    )  # one reward of 3 and a prior mean of 0 worth one
    assert belief.episodes.starts.tolist() == [2, 0, 0, 0, 0, 0]


def test_bad_input_is_told():
    with pytest.raises(ValueError, match="max_states"):
        BsuiteAgent.for_env(Two(), PSRL, max_states=0)
    with pytest.raises(ValueError, match="did you mean 'deep_sea/0'"):
        load("deepsea/0")
    first, middle, *_ = timesteps()
    player = BsuiteAgent.for_env(Two(), PSRL, max_states=5, seed=0)
    with pytest.raises(ValueError, match="reward"):
        player.update(first, 0, middle._replace(reward=float("nan")))
    assert player.select_action(first) in (0, 1)


def test_examples_in_docstrings_run():
    assert doctest.testmod(bamdp.bsuite, optionflags=doctest.ELLIPSIS).failed == 0
