"""VBRB: exact variances of every prior, and value iteration with the bonus written out."""

import math

import numpy as np
import pytest
from dense_models import action_values, mean_model, models, optimal_values, priors, variances
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.bonuses import VBRB

S, A = 6, 3
WORLD = {"n_states": S, "n_actions": A, "rewards": np.random.default_rng(5).random((S, A))}
PRIORS = priors(S, A)
KINDS = [(name, "known") for name in PRIORS if name != "finite mixture"]
KINDS += [("dirichlet", "learned"), ("finite mixture", "learned")]


def world_of(rewards):
    return {**WORLD, "rewards": WORLD["rewards"] if rewards == "known" else bamdp.BetaBernoulli(a=2.0, b=1.0)}


def reward_spreads(belief):
    """Standard deviations of Beta posteriors, from what they predict: E[p²] = P(1, 1)."""
    out = np.zeros((S, A))
    if isinstance(belief.reward_model, bamdp.BetaBernoulli):
        for s in range(S):
            for a in range(A):
                p = belief.expected_reward(s, a)
                after = belief.copy()
                after.observe(s, a, 1.0, int(belief.predictive(s, a).argmax()))
                out[s, a] = math.sqrt(p * after.expected_reward(s, a) - p * p)
    return out


@pytest.mark.parametrize("name, rewards", KINDS)
def test_solves_the_mean_model_with_a_bonus_of_exact_standard_deviations(name, rewards):
    beta_r, beta_p, discount = 0.8, 1.3, 0.9
    planner = VBRB(beta_r=beta_r, beta_p=beta_p, tol=1e-9)
    agent = agent_of(planner, world_of(rewards), prior=PRIORS[name], discount=discount)
    for n in (0, 3, 40):
        experience(agent, n, seed=n)
        spread = np.array(
            [[math.sqrt(variances(agent.belief, s, a).sum()) for a in range(A)] for s in range(S)]
        )
        bonus = beta_r * reward_spreads(agent.belief) + beta_p * spread
        P, r = mean_model(agent.belief)
        q = action_values(P, r + bonus, optimal_values(P, r + bonus, discount), discount)
        for s in range(S):
            plan = agent.plan(s)
            assert list(plan.details["bonus"].values()) == pytest.approx(bonus[s], abs=1e-7)
            assert [c.value for c in plan.candidates] == pytest.approx(q[s], abs=1e-5)
            agent.act(s)


def test_a_case_by_hand():
    # alpha = 1, one observation of outcome 0 of two: Dirichlet(2, 1), variances 2·1/(9·4) each
    world = {"n_states": 2, "n_actions": 1, "rewards": [0.0, 0.0]}
    agent = agent_of(VBRB(beta_p=3.0), world, prior=bamdp.Dirichlet(alpha=1.0))
    agent.observe(0, 0, 0.0, 0)
    assert agent.plan(0).details["bonus"][0] == pytest.approx(3 * math.sqrt(2 * 2 / 36))
    # rewards: Beta(1, 1) has variance 1/12, Beta(2, 1) 2/36
    agent = agent_of(VBRB(beta_r=2.0), {"n_states": 1, "n_actions": 2, "rewards": bamdp.BetaBernoulli()})
    agent.observe(0, 1, 1.0, 0)
    assert list(agent.plan(0).details["bonus"].values()) == pytest.approx(
        [2 * 12**-0.5, 2 * math.sqrt(2 / 36)]
    )


@pytest.mark.parametrize("name", ["dirichlet", "sparse", "finite"])
def test_the_bonus_vanishes_as_a_pair_is_tried(name):
    agent = agent_of(VBRB(beta_p=3.0), WORLD, prior=PRIORS[name])
    first = agent.plan(0).details["bonus"][1]
    rng = np.random.default_rng(0)
    row = models(S, A, 3)[0].dense()[0, 1]
    for n, share in ((100, 0.5), (2000, 0.1)):
        for _ in range(n):
            agent.observe(0, 1, 0.0, int(rng.choice(S, p=row)))
        assert agent.plan(0).details["bonus"][1] < share * first
    assert agent.plan(0).details["bonus"][0] <= first + 1e-9 if name == "finite" else True


def test_what_is_certain_gets_no_bonus_however_little_it_was_tried():
    alpha = np.zeros((S, A, S))
    alpha[:, :, 1] = 0.01
    agent = agent_of(VBRB(), WORLD, prior=bamdp.Dirichlet(alpha=alpha))
    assert list(agent.plan(0).details["bonus"].values()) == [0.0] * A
    one = bamdp.FiniteModels(models(S, A, 1, rewards=WORLD["rewards"]))
    agent = agent_of(VBRB(), WORLD, prior=one)
    assert list(agent.plan(0).details["bonus"].values()) == pytest.approx([0.0] * A, abs=1e-7)


def test_rewards_that_models_bring_along_have_a_variance():
    pair = models(S, A, 2)
    agent = agent_of(VBRB(beta_p=0.0, beta_r=2.0), {**WORLD, "rewards": None}, prior=bamdp.FiniteModels(pair))
    differ = np.abs(pair[0].expected_rewards - pair[1].expected_rewards)
    assert list(agent.plan(2).details["bonus"].values()) == pytest.approx(2 * differ[2] / 2)


@pytest.mark.parametrize("name, rewards", KINDS)
def test_keeps_the_promises_of_a_planner(name, rewards, tmp_path):
    agent = experience(agent_of(VBRB(), world_of(rewards), prior=PRIORS[name]), 20)
    check_promises(agent, 1, tmp_path)
    experience(agent, 1, seed=3)
    check_promises(agent, 2, tmp_path)
