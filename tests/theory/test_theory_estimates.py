"""Estimates of C and ε₀: closed forms, exact enumeration, dense arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import bamdp
from bamdp.theory import belief_distance, corrected_loss_bound, estimate_c, estimate_epsilon0, model_distance


def test_the_distance_of_models_is_that_of_dense_arrays():
    belief = bamdp.SparseDirichlet().belief(6, 2, rewards=np.arange(6.0))
    for s, a, s2 in [(0, 0, 1), (0, 0, 2), (3, 1, 3)]:
        belief.observe(s, a, float(s), s2)
    models = [belief.sample(i) for i in range(10)] + [
        belief.mean(),
        bamdp.Dirichlet(alpha=0.3).belief(6, 2).mean(),
    ]
    assert models[-1].rows.background.any()
    for first in models:
        for second in models:
            rows = np.abs(first.dense() - second.dense()).sum(axis=-1)
            assert model_distance(first, second) == pytest.approx(rows.max(), abs=1e-12)
            rewards = 2 * np.abs(first.expected_rewards - second.expected_rewards)
            assert model_distance(first, second, rewards=True) == pytest.approx(
                (rows + rewards).max(), abs=1e-12
            )


def test_models_of_different_sizes_have_no_distance():
    with pytest.raises(ValueError, match="differ in size"):
        model_distance(bamdp.make_env("chain").mdp, bamdp.make_env("grid5").mdp)


def test_c_of_a_finite_set_is_the_weighted_mean_of_distances():
    # 4 s.e.: false alarm 6e-5
    rng = np.random.default_rng(0)
    models = [bamdp.FiniteMDP(rng.dirichlet(np.ones(3), size=(3, 2)), np.zeros(3)) for _ in range(3)]
    weights = np.array([0.5, 0.3, 0.2])
    exact = sum(
        weights[i] * weights[j] * model_distance(models[i], models[j]) for i in range(3) for j in range(3)
    )
    found = estimate_c(bamdp.FiniteModels(models, weights).belief(3, 2), pairs=2000, rng=1)
    assert abs(found.mean - exact) < 4 * found.standard_error
    assert len(found.samples) == 2000


def test_c_of_a_bandit_is_in_its_rewards():
    # One arm, uniform chance of pay: 2 E|U − U'| = 2/3. 4 s.e.
    belief = bamdp.Dirichlet().belief(1, 1, rewards=bamdp.BetaBernoulli())
    found = estimate_c(belief, pairs=1500, rng=0)
    assert abs(found.mean - 2 / 3) < 4 * found.standard_error


def test_c_falls_as_the_belief_learns():
    belief = bamdp.Dirichlet(alpha=1.0).belief(3, 2)
    before = estimate_c(belief, pairs=100, rng=0).mean
    rng = np.random.default_rng(0)
    n = 2000
    belief.observe_many(
        rng.integers(3, size=n), rng.integers(2, size=n), np.zeros(n), rng.integers(3, size=n)
    )
    assert estimate_c(belief, pairs=100, rng=0).mean < 0.3 * before


@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_distance_of_beliefs_is_the_integral(n):
    # One row of two outcomes, uniform; n times the same: ∫ |(n+1) pⁿ − 1| dp. Binomial noise, 5 s.e.
    belief = bamdp.Dirichlet(alpha=1.0).belief(2, 1)
    exact = integrate.quad(lambda p: abs(stats.beta.pdf(p, n + 1, 1) - 1), 0, 1, limit=200)[0]
    models = 4000
    found = belief_distance(belief, [(0, 0, 0.0, 1)] * n, models=models, rng=0)
    assert abs(found - exact) < 5 / math.sqrt(models)
    assert belief.n_observed == 0


def test_the_distance_of_beliefs_about_rewards_is_the_integral():
    belief = bamdp.Dirichlet().belief(1, 2, rewards=bamdp.BetaBernoulli())
    seen = [(0, 0, 1.0, 0), (0, 0, 0.0, 0), (0, 1, 1.0, 0)]
    density = lambda q, p: abs(6 * p * (1 - p) * 2 * q - 1)
    exact = integrate.dblquad(density, 0, 1, 0, 1)[0]
    assert abs(belief_distance(belief, seen, models=4000, rng=0) - exact) < 5 / math.sqrt(4000)


def test_the_distance_of_finite_beliefs_is_exact():
    stay, swap = (
        bamdp.FiniteMDP(p[:, None, :], np.zeros(2))
        for p in (np.array([[0.9, 0.1], [0.5, 0.5]]), np.full((2, 2), 0.5))
    )
    belief = bamdp.FiniteModels([stay, swap]).belief(2, 1)
    after = 0.9**2 / (0.9**2 + 0.5**2)
    assert belief_distance(belief, [(0, 0, 0.0, 0)] * 2) == pytest.approx(2 * (after - 0.5))


def test_a_certain_belief_does_not_drift_and_does_not_disagree():
    env = bamdp.make_env("chain")
    belief = bamdp.FiniteModels([env.mdp]).belief(5, 2)
    drift = estimate_epsilon0(belief, 0, 0.9, n_steps=3, episodes=3, rng=0)
    assert drift.epsilon0 == 0.0
    assert estimate_c(belief, pairs=5, rng=0).mean == 0.0


def test_epsilon0_falls_as_the_belief_learns_and_keeps_its_promise():
    env = bamdp.make_env("chain")
    found = {}
    for after in (0, 1000):
        agent = bamdp.Agent(
            bamdp.ThompsonSampling(),
            prior=bamdp.Dirichlet(alpha=0.5),
            rewards=env.rewards,
            n_states=5,
            n_actions=2,
            discount=0.9,
            seed=0,
        )
        bamdp.simulate(agent, env, after, seed=0)
        observed = agent.belief.n_observed
        drift = estimate_epsilon0(agent.belief, 0, 0.9, n_steps=4, n_stages=3, episodes=8, models=60, rng=0)
        assert agent.belief.n_observed == observed
        assert drift.changes.shape == (8, 3)
        assert np.all((drift.changes >= 0) & (drift.changes <= 2))
        assert all(e <= drift.epsilon0 / max(h, 1) + 1e-12 for h, e in enumerate(drift.stages))
        found[after] = drift.epsilon0
    assert found[1000] < 0.7 * found[0]


def test_an_episode_that_ends_leaves_the_belief_at_rest():
    mdp = bamdp.FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), np.zeros(2), terminal=[False, True])
    belief = bamdp.Dirichlet().belief(2, 1, terminal=mdp.terminal)
    drift = estimate_epsilon0(belief, 0, 0.9, n_steps=50, n_stages=3, episodes=4, models=50, rng=0)
    assert (drift.changes[:, 0] > 0).any()
    assert (drift.changes[:, 2] == 0).all()


def test_rewards_of_another_kind_are_refused_with_a_cure():
    belief = bamdp.Dirichlet().belief(2, 1, rewards=bamdp.NormalGamma())
    with pytest.raises(ValueError, match="known or BetaBernoulli"):
        belief_distance(belief, [(0, 0, 1.0, 1)])


def test_c_of_learned_rewards_is_in_units_of_their_range():
    """The same bandit paid in cents: the bound is a hundredth, and so still holds."""
    euros, cents = (
        bamdp.Dirichlet().belief(1, 2, rewards=bamdp.FiniteRewards(values=(0.0, unit)))
        for unit in (1.0, 0.01)
    )
    c = estimate_c(euros, pairs=50, rng=0).mean
    assert estimate_c(cents, pairs=50, reward_range=0.01, rng=0).mean == pytest.approx(c)
    whole = corrected_loss_bound(1, 1, 20, 0.5, c=c)
    assert corrected_loss_bound(1, 1, 20, 0.5, c=c, reward_range=0.01).total == pytest.approx(
        0.01 * whole.total
    )
    with pytest.raises(ValueError, match="reward_range"):
        estimate_c(cents, pairs=1, reward_range=0.0)


def test_rewards_that_are_learned_beside_a_finite_set_count_too():
    # Beta(1, 1) after one win: the density moves by |2p − 1|, 1/2 on average; 4000 models, 4 s.e. is below 0.04
    models = [bamdp.FiniteMDP([[[1.0]]], [0.0])] * 2
    belief = bamdp.FiniteModels(models).belief(1, 1, rewards=bamdp.BetaBernoulli())
    assert belief_distance(belief, [(0, 0, 1.0, 0)], models=4000, rng=0) == pytest.approx(0.5, abs=0.04)


def test_rewards_by_next_state_are_refused():
    belief = bamdp.Dirichlet().belief(2, 1, rewards=bamdp.BetaBernoulli(by="next"))
    with pytest.raises(ValueError, match="BetaBernoulli by pair"):
        belief_distance(belief, [(0, 0, 1.0, 1)])
