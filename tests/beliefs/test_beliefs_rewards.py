"""Reward models: known rewards of every shape, Bernoulli rewards in closed form, rewards of finite models."""

import numpy as np
import pytest
from beliefs_exact import CASES, OWN_REWARDS, A, S
from beliefs_kernels import draw_rewards, reward_outcomes
from scipy import stats

from bamdp import BetaBernoulli, Dirichlet, FiniteMDP, FiniteModels, KnownRewards
from bamdp._kernels.random import new_rng

RNG = np.random.default_rng(0)
BY_STATE, BY_PAIR, BY_NEXT = RNG.normal(size=S), RNG.normal(size=(S, A)), RNG.normal(size=(S, A, S))


@pytest.mark.parametrize("rewards", [BY_STATE, BY_PAIR, BY_NEXT], ids=["[S]", "[S, A]", "[S, A, S]"])
@pytest.mark.parametrize("seen", [[], [1, 1, 3]], ids=["no data", "some data"])
def test_expected_reward_is_the_mean_over_the_predictive(rewards, seen):
    belief = Dirichlet(alpha=0.4).belief(S, A, rewards=rewards)
    for s2 in seen:
        belief.observe(2, 1, -5.0, s2)  # what is observed is not looked at
    full = rewards.reshape(rewards.shape + (1,) * (3 - rewards.ndim))
    full = np.broadcast_to(full, (S, A, S))
    for s in range(S):
        for a in range(A):
            want = belief.predictive(s, a) @ full[s, a]
            assert belief.expected_reward(s, a) == pytest.approx(want, rel=1e-12)
    model = belief.sample(3)
    assert np.allclose(model.expected_rewards, (model.dense() * full).sum(axis=2), atol=1e-12)


@pytest.mark.parametrize("rewards", [BY_STATE, BY_PAIR, BY_NEXT], ids=["[S]", "[S, A]", "[S, A, S]"])
def test_a_known_reward_is_drawn_and_enumerated_as_itself(rewards):
    state = KnownRewards(rewards).posterior(S, A)
    full = np.broadcast_to(rewards.reshape(rewards.shape + (1,) * (3 - rewards.ndim)), (S, A, S))
    out, drawn = np.zeros((1, 2)), np.zeros(3)
    for s, a, s2 in [(0, 0, 0), (3, 1, 2), (1, 0, 3)]:
        reward_outcomes(state, s * A + a, s2, out)
        draw_rewards(state, s * A + a, s2, new_rng(0), drawn)
        assert np.array_equal(out, [[full[s, a, s2], 1.0]])
        assert np.array_equal(drawn, np.full(3, full[s, a, s2]))
    assert state.reward_range == (rewards.min(), rewards.max())


def test_known_rewards_are_compared_by_value_and_kept_from_change():
    array = np.zeros((S, A))
    known = KnownRewards(array)
    array[0, 0] = 1.0
    assert known == KnownRewards(np.zeros((S, A)))
    assert hash(known) == hash(KnownRewards(np.zeros((S, A))))
    assert known != KnownRewards(array)
    with pytest.raises(ValueError, match="read-only"):
        known.rewards[0, 0] = 1.0


def test_bernoulli_rewards_have_their_closed_forms():
    a, b, wins, n = 0.5, 2.0, 3, 5
    belief = Dirichlet(alpha=1.0).belief(1, 2, rewards=BetaBernoulli(a=a, b=b))
    evidence = 0.0
    for i, r in enumerate([1.0, 0.0, 1.0, 1.0, 0.0]):
        p = belief.expected_reward(0, 1)
        assert p == pytest.approx((a + sum([1, 0, 1, 1, 0][:i])) / (a + b + i), rel=1e-14)
        evidence += np.log(p if r else 1.0 - p)
        belief.observe(0, 1, r, 0)
    assert belief.log_evidence == pytest.approx(evidence, rel=1e-13)
    assert belief.expected_reward(0, 1) == pytest.approx((a + wins) / (a + b + n), rel=1e-14)
    assert belief.expected_reward(0, 0) == pytest.approx(a / (a + b), rel=1e-14)
    out = np.zeros((2, 2))
    reward_outcomes(belief.rewards, 1, 0, out)
    mean = (a + wins) / (a + b + n)
    assert np.allclose(out, [[1.0, mean], [0.0, 1.0 - mean]], rtol=1e-14)


def test_sampled_bernoulli_rewards_follow_the_beta_posterior():
    """Kolmogorov and Smirnov, false alarm 1e-4."""
    belief = Dirichlet(alpha=1.0).belief(1, 1, rewards=BetaBernoulli(a=0.5, b=2.0))
    for r in (1.0, 0.0, 1.0):
        belief.observe(0, 0, r, 0)
    found = [belief.sample(seed).expected_rewards[0, 0] for seed in range(2000)]
    assert stats.kstest(found, stats.beta(2.5, 3.0).cdf).pvalue > 1e-4


def test_drawn_bernoulli_rewards_have_the_posterior_mean():
    """Binomial, false alarm 1e-4."""
    belief = Dirichlet(alpha=1.0).belief(1, 1, rewards=BetaBernoulli(a=1.0, b=3.0))
    out = np.zeros(20_000)
    draw_rewards(belief.rewards, 0, 0, new_rng(1), out)
    assert set(out) == {0.0, 1.0}
    assert stats.binomtest(int(out.sum()), len(out), 0.25).pvalue > 1e-4


def test_a_loss_that_is_almost_impossible_is_not_refused():
    belief = Dirichlet(alpha=1.0).belief(1, 1, rewards=BetaBernoulli(a=1.0, b=1e-20))
    belief.observe(0, 0, 0.0, 0)
    assert belief.log_evidence == pytest.approx(np.log(1e-20), rel=1e-12)


def test_models_that_agree_on_rewards_have_known_rewards():
    belief = CASES["models"].belief()
    assert type(belief.rewards).__name__ == "KnownPosterior"


@pytest.mark.parametrize(
    "shapes", [(1, 2), (2, 3), (3, 3)], ids=["[S] [S, A]", "[S, A] [S, A, S]", "[S, A, S]"]
)
def test_models_may_give_their_rewards_in_different_shapes(shapes):
    rewards = [RNG.normal(size=(S, A, S)[:d]) for d in shapes]
    p = RNG.dirichlet(np.ones(S), size=(S, A))
    mdps = [FiniteMDP(p, r) for r in rewards]
    belief = FiniteModels(mdps, [0.25, 0.75]).belief(S, A)
    want = 0.25 * mdps[0].expected_rewards + 0.75 * mdps[1].expected_rewards
    assert np.allclose([[belief.expected_reward(s, a) for a in range(A)] for s in range(S)], want)
    full = np.broadcast_to(rewards[1].reshape(rewards[1].shape + (1,) * (3 - rewards[1].ndim)), (S, A, S))
    belief.observe(1, 1, full[1, 1, 2], 2)
    assert np.array_equal(belief.weights, [0.0, 1.0])


def test_a_reward_rules_out_the_models_that_do_not_give_it():
    belief = CASES["own rewards"].belief()
    s, a = np.argwhere(OWN_REWARDS.min(axis=0) != OWN_REWARDS.max(axis=0))[0]
    s2 = int(np.flatnonzero(belief.predictive(s, a))[0])
    belief.observe(s, a, 1.0, s2)
    assert np.array_equal(belief.weights > 0.0, (OWN_REWARDS[:, s, a] == 1.0) & (belief.weights > 0.0))
    assert belief.weights[OWN_REWARDS[:, s, a] == 0.0].sum() == 0.0


def test_outcomes_of_own_rewards_are_distinct_and_sum_to_one():
    belief = CASES["own rewards"].belief()
    for row in range(S * A):
        out = np.zeros((3, 2))
        reward_outcomes(belief.rewards, row, 0, out)
        used = out[out[:, 1] > 0.0]
        assert len(set(used[:, 0])) == len(used)
        assert used[:, 1].sum() == pytest.approx(1.0, abs=1e-14)
        drawn = np.zeros(50)
        draw_rewards(belief.rewards, row, 0, new_rng(row), drawn)
        assert set(drawn) <= set(used[:, 0])
