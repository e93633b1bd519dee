"""Planners with learned rewards: two reward models that are the same law in other clothes give the same plan."""

from __future__ import annotations

import numpy as np
import pytest

import bamdp

BETA = bamdp.BetaBernoulli(a=1.0, b=1.0)
VALUES = bamdp.FiniteRewards(values=(0.0, 1.0), concentration=2.0)  # Dirichlet(1, 1) is Beta(1, 1)


def agent_of(planner, rewards, by="pair", **options):
    model = type(rewards)(**{**vars(rewards), "by": by})
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=0.5),
        rewards=model,
        n_states=2,
        n_actions=2,
        discount=0.9,
        seed=0,
        **options,
    )
    for step in ((0, 0, 1.0, 1), (1, 1, 0.0, 0), (0, 0, 0.0, 0), (0, 1, 1.0, 1)):
        agent.observe(*step)
    return agent


@pytest.mark.parametrize("by", ["pair", "next"])
def test_exact_look_ahead_does_not_see_the_clothes(by):
    one, two = (agent_of(bamdp.FHTS(horizon=4), rewards, by) for rewards in (BETA, VALUES))
    for s in (0, 1):
        found = [[c.value for c in agent.plan(s).candidates] for agent in (one, two)]
        assert np.allclose(*found, rtol=1e-12)
    assert one.plan(0).details["hyper_states"] == two.plan(0).details["hyper_states"]


def by_hand(belief, s, horizon, discount=0.9):
    """Bayes-optimal action values by plain recursion; the rewards of a step are enumerated from the evidence."""
    values = []
    for a in range(belief.n_actions):
        q = belief.expected_reward(s, a)
        for s2 in range(belief.n_states) if horizon > 1 else ():
            for r in (0.0, 1.0):
                after = belief.copy()
                after.observe(s, a, r, s2)
                p = np.exp(after.log_evidence - belief.log_evidence)
                q += discount * p * max(by_hand(after, s2, horizon - 1))
        values.append(q)
    return values


@pytest.mark.parametrize("by", ["pair", "next"])
def test_exact_look_ahead_is_the_recursion_by_hand(by):
    agent = agent_of(bamdp.FHTS(horizon=3), VALUES, by)
    found = [c.value for c in agent.plan(0).candidates]
    assert np.allclose(found, by_hand(agent.belief, 0, 3), rtol=1e-12)


def test_what_a_bandit_might_pay_is_worth_finding_out():
    """Two arms, one known to pay 0.05, one unknown: looking ahead tries the one that is expected to pay less."""
    rewards = bamdp.NormalGamma(mu0=0.0, lam=1.0, alpha=2.0, beta=1.0)
    planner = bamdp.SparseSampling(width=6, depth=3)
    agent = bamdp.Agent(
        planner, prior=bamdp.Dirichlet(), rewards=rewards, n_states=1, n_actions=2, discount=0.95, seed=0
    )
    agent.belief.observe_many([0] * 400, [0] * 400, [0.05] * 400, [0] * 400)
    assert agent.belief.expected_reward(0, 0) > agent.belief.expected_reward(0, 1)
    assert agent.plan(0).action == 1
