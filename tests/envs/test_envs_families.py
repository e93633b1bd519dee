"""Families of worlds: what their worlds have in common, what is drawn, and the prior that is right."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import bamdp
from bamdp.envs import make_env, make_world
from bamdp.envs.ceilings import ceilings, expected_total
from bamdp.envs.families import family_gc, family_gdl, family_grid, family_random
from bamdp.registry import make_prior

DIRICHLET = {"family_gc": family_gc, "family_gdl": family_gdl, "family_grid": family_grid}


def model_of(env, seed):
    """The model of the run with a seed."""
    ((weight, model),) = env.models([np.random.SeedSequence(seed)])
    assert weight == 1.0
    return model


def possible(mdp):
    """The possible next states of every pair."""
    return {
        (s, a): set(np.flatnonzero(mdp.dense()[s, a]).tolist())
        for s, a in itertools.product(range(mdp.n_states), range(mdp.n_actions))
    }


def test_the_generalised_chain_leads_on_or_back_and_pays_arrivals():
    env = family_gc()
    assert possible(env.mdp) == {(s, a): {0, min(s + 1, 4)} for s in range(5) for a in range(3)}
    assert env.rewards.tolist() == [[[2.0, 0.0, 0.0, 0.0, 10.0]] * 3] * 5


def test_the_generalised_double_loop_has_one_loop_that_holds_and_one_that_may_be_left():
    env = family_gdl()
    holds = {0: {1, 5}, 1: {2}, 2: {3}, 3: {4}, 4: {0}, 8: {0}}
    left = {5: {0, 6}, 6: {0, 7}, 7: {0, 8}}
    assert possible(env.mdp) == {(s, a): (holds | left)[s] for s in range(9) for a in range(2)}
    assert env.rewards.tolist() == [[0, 0]] * 4 + [[1, 1]] + [[0, 0]] * 3 + [[2, 2]]


@pytest.mark.parametrize("size", [2, 5])
def test_a_step_of_the_grid_is_taken_or_fails_and_the_goal_leads_to_the_start(size):
    env = family_grid(size=size)
    goal = size * size - 1
    found = possible(env.mdp)
    for (s, a), outcomes in found.items():
        x, y = s % size + (-1, 1, 0, 0)[a], s // size + (0, 0, -1, 1)[a]
        inside = 0 <= x < size and 0 <= y < size
        ahead = y * size + x if inside else s
        assert outcomes == {s, 0 if ahead == goal and s != goal else ahead}
    before = {(goal - 1, 1), (goal - size, 3)}  # left of the goal and above it
    assert {(s, a) for s, a in found if env.rewards[s, a].any()} == before
    for s, a in before:
        assert env.rewards[s, a].tolist() == [10.0] + [0.0] * goal
    others = [t for (s, _), outcomes in found.items() if s != goal for t in outcomes]
    assert goal not in others


@pytest.mark.parametrize("name", DIRICHLET)
def test_probabilities_are_uniform_and_independent(name):
    """Kolmogorov and Smirnov's test of the first two pairs with two outcomes, and their rank correlation, 600 worlds.

    Three tests at 0.1 % for each of three families: a right family fails in one of 110 choices of the worlds.
    """
    env = DIRICHLET[name]()
    pairs = [pair for pair, outcomes in possible(env.mdp).items() if len(outcomes) == 2][:2]
    tables = [DIRICHLET[name](world=i).mdp.dense() for i in range(600)]
    rows = np.array([[table[pair][max(possible_of(env, pair))] for pair in pairs] for table in tables])
    for values in rows.T:
        assert stats.kstest(values, "uniform").pvalue > 0.001
    assert stats.spearmanr(*rows.T).pvalue > 0.001
    assert stats.kstest(rows[:, 0] ** 1.3, "uniform").pvalue < 0.001  # and would notice another law


def possible_of(env, pair):
    return np.flatnonzero(env.mdp.dense()[pair]).tolist()


@pytest.mark.parametrize("name", [*DIRICHLET, "family_random"])
def test_every_run_has_a_world_of_its_own_and_the_seed_says_which(name):
    env, twin = make_env(name), make_env(name)
    worlds = []
    for seed in range(4):
        env.reset(seed=seed)
        twin.reset(seed=seed)
        assert env.mdp == twin.mdp == model_of(make_env(name), seed)
        worlds.append(env.mdp.dense())
        for action in (0, 1, 0):  # what is done does not change the world of the run
            env.step(action)
        assert env.mdp == twin.mdp
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(worlds, 2))
    env.reset()
    assert not any(np.array_equal(env.mdp.dense(), world) for world in worlds)
    assert np.array_equal(env.rewards, make_env(name).rewards)


def test_one_world_of_a_family_can_be_asked_for_by_its_number():
    env = family_gc(world=7)
    first = env.mdp
    assert first != family_gc(world=8).mdp
    for seed in range(3):
        env.reset(seed=seed)
        assert env.mdp == first
    assert env.parameters == {"world": 7}
    with pytest.raises(ValueError, match="world must be"):
        family_gc(world=-1)


def test_a_family_may_be_written_with_a_colon():
    assert make_env("family:gdl").name == "family_gdl"
    assert make_env("Family: grid:size=3").parameters == {"size": 3, "world": None}
    assert make_world("family:random:n_states=4,world=2").n_states == 4
    with pytest.raises(ValueError, match="did you mean 'family_gdl'"):
        make_env("family:gdk")
    with pytest.raises(ValueError, match="unknown environment 'family_'"):
        make_world("family:")


@pytest.mark.parametrize("name", DIRICHLET)
def test_the_law_is_the_prior_that_the_worlds_come_from(name):
    env = DIRICHLET[name]()
    prior = make_prior("law", env)
    assert set(prior.alpha.alpha.tolist()) == {1.0}
    belief = prior.belief(env.n_states, env.n_actions, rewards=env.rewards)
    np.testing.assert_array_equal(belief.mean().dense() > 0, env.mdp.dense() > 0)
    average = np.mean([DIRICHLET[name](world=i).mdp.dense() for i in range(500)], axis=0)
    # the error of a mean of 500 uniform numbers is 0.013: five of them
    np.testing.assert_allclose(belief.mean().dense(), average, atol=0.065)


def test_the_law_of_random_models_is_the_prior_they_are_drawn_from():
    assert make_prior("law", family_random(alpha=0.3, beta=4)) == bamdp.SparseDirichlet(alpha=0.3, beta=4)
    assert make_prior("law", family_random(prior="flat", alpha=0.3)) == bamdp.Dirichlet(alpha=0.3)


def test_reference_values_are_means_over_drawn_worlds():
    env = family_gdl()
    found = ceilings(env, 0.95, steps=20)
    drawn = env.models()
    assert len(drawn) == 64
    assert found.optimum == pytest.approx(np.mean([expected_total(one, 0, 20) for _, one in drawn]))
    assert found.optimum > found.random
    seeds = [np.random.SeedSequence(i) for i in range(3)]
    of_runs = ceilings(env, 0.95, steps=20, seeds=seeds)
    models = [model_of(env, i) for i in range(3)]
    assert of_runs.optimum == pytest.approx(np.mean([expected_total(one, 0, 20) for one in models]))
    with pytest.raises(ValueError, match="family_gdl has none"):  # a prior over 64 of them would be wrong
        make_prior("models", env)
