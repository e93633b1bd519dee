"""The prior of a known rule and an unknown disturbance; test_beliefs_exact tests what is exact, with other priors."""

import itertools

import numpy as np
import pytest
from beliefs_exact import disturbance as brute_force

import bamdp
from bamdp.mdp import total_reward, uniform_policy

PLANNERS = [
    "adaptive-dss",
    "dss-pi:n_steps=5",
    "dss-rtdp:n_steps=5",
    "thompson",
    "beb",
    "bayes-greedy",
    "bamcp",
]


def sale(s, a, w):
    """A customer who would pay for w of 3 prices buys at price a, or does not."""
    return max(s - (w > a), 0)


def test_censored_sets_that_are_no_tail_give_almost_the_exact_predictive():
    """No sale says that w is at most a, which no tail is: near the sum over all disturbances that fit."""
    alpha, rng = np.full(4, 0.5), np.random.default_rng(0)
    exact = brute_force(sale, alpha)
    errors = []
    for _ in range(10):
        law, data = rng.dirichlet(np.ones(4)), []
        belief = bamdp.DisturbancePrior(sale, (3, 3, 4), alpha).belief(3, 3)
        for _ in range(15):
            a = int(rng.integers(3))
            after = sale(2, a, int(rng.choice(4, p=law)))
            belief.observe(2, a, 0.0, after)
            data.append((2, a, 0.0, after))
        evidence = exact(data)
        for a, s2 in itertools.product(range(3), (1, 2)):
            right = float(exact([*data, (2, a, 0.0, s2)]) / evidence)
            errors.append(abs(belief.predictive(2, a)[s2] - right))
    assert np.mean(errors) < 0.02
    assert max(errors) < 0.05


def stock(s, a, w):
    return max(min(s + 2 * a, 5) - w, 0)


def observed(n=60, seed=1):
    belief = bamdp.DisturbancePrior(stock, (6, 3, 6)).belief(6, 3)
    rng, s = np.random.default_rng(seed), 0
    for _ in range(n):
        a = int(rng.integers(3))
        after = stock(s, a, int(rng.poisson(2.0)))
        belief.observe(s, a, 0.0, min(after, 5))
        s = after
    return belief


def test_sampled_models_have_the_moments_that_the_belief_tells():
    from bamdp.beliefs import verbs

    belief, T = observed(15), observed(15).transitions
    dense = np.array([belief.sample(seed).dense() for seed in range(2000)])
    index, mean, variance = np.zeros(7, np.int32), np.zeros(7), np.zeros(7)
    for s, a in itertools.product(range(6), range(3)):
        end = verbs.moments_row(T, s * 3 + a, index, mean, variance, 0)[0]
        rows = dense[:, s, a, index[:end]]
        assert np.allclose(rows.mean(axis=0), mean[:end], atol=5 * rows.std() / 2000**0.5)
        assert np.allclose(rows.var(axis=0), variance[:end], rtol=0.2, atol=1e-4)
        assert np.allclose(belief.predictive(s, a)[index[:end]], mean[:end])


def test_all_rows_of_a_sampled_model_have_one_law():
    dense = observed().sample(3).dense()
    by_stock = [dense[s, 0, s::-1][:s] for s in range(1, 6)]  # of the demands 0 .. s-1
    for s, row in enumerate(by_stock):
        assert np.allclose(row, by_stock[-1][: s + 1])


def test_a_sampled_model_stays_the_same_while_simulated_transitions_come_and_go():
    from bamdp.beliefs import verbs

    belief, rng = observed(20), np.arange(1, 5, dtype=np.uint64)
    belief.reserve(5)
    T, index, prob = belief.transitions, np.zeros(7, np.int32), np.zeros((3, 7))
    verbs.push(T, 0, 0)
    choice = verbs.choose(T, rng)
    verbs.sample_row(T, choice, 16, index, prob[0], 0, rng)
    verbs.push(T, 15, 1)
    verbs.sample_row(T, verbs.choose(T, rng), 16, index, prob[1], 0, rng)
    verbs.sample_row(T, choice, 16, index, prob[2], 0, rng)
    assert (prob[0] == prob[2]).all()
    assert (prob[0] != prob[1]).any()


@pytest.mark.parametrize("planner", PLANNERS)
def test_planners_use_it_and_files_keep_it(planner, tmp_path):
    env = bamdp.make_env("inventory:capacity=5,n_orders=3,demand=2")
    agent = bamdp.Agent.for_env(env, planner, prior="disturbance", discount=0.9, seed=0)
    bamdp.simulate(agent, env, 30, seed=0)
    agent.save(tmp_path / "agent")
    twin = bamdp.Agent.load(tmp_path / "agent")
    assert twin.belief.prior == agent.belief.prior == env.disturbance
    assert np.allclose(twin.belief.predictive(3, 1), agent.belief.predictive(3, 1), atol=1e-12)
    assert [twin.act(s) for s in range(6)] == [agent.act(s) for s in range(6)]


def test_a_thousand_days_of_an_inventory_are_almost_as_good_as_if_the_demand_were_known():
    env = bamdp.make_env("inventory")
    batch = bamdp.run_many("inventory", "optimism", prior="disturbance", runs=3, steps=1000, seed=5)
    best, random = total_reward(env.mdp, 0, 1000), total_reward(env.mdp, 0, 1000, uniform_policy(env.mdp))
    assert (batch.mean - random) / (best - random) > 0.9


def test_bad_rules_are_refused():
    for make, words in (
        (lambda: bamdp.DisturbancePrior(stock), "give shape="),
        (
            lambda: bamdp.DisturbancePrior(lambda s, a, w: s + w, (3, 1, 2)),
            r"from \(2, 0\) by 1 to 3, which is no state",
        ),
        (lambda: bamdp.DisturbancePrior(stock, (6, 3, 6), alpha=0.0), "alpha must be above 0"),
        (lambda: bamdp.DisturbancePrior(stock, (6, 3, 6), known=np.full((6, 3, 6), 0.5)), "sum to 1"),
        (lambda: bamdp.DisturbancePrior(stock, (6, 3, 6)).belief(5, 3), "6 states and 3 actions"),
        (lambda: bamdp.make_prior("disturbance", bamdp.make_env("chain")), "part of an environment"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            make()
    with pytest.raises(ValueError, match="probability 0"):
        observed(0).observe(0, 0, 0.0, 4)
