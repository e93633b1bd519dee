"""Optimism: its equations in NumPy, its uncertainty against sampled models, and what it earns."""

import numpy as np
import pytest

import bamdp
from bamdp import Optimism
from bamdp.mdp import total_reward, uniform_policy

S, A, DISCOUNT = 5, 3, 0.9


def learned_agent(prior="dirichlet", rewards="hierarchical", planner=None, n=60, seed=3):
    rng = np.random.default_rng(seed)
    P, paid = rng.dirichlet(np.full(S, 0.5), (S, A)), rng.normal(size=(S, A))
    agent = bamdp.Agent(
        planner or Optimism(tol=1e-10),
        prior=prior,
        rewards=rewards,
        n_states=S,
        n_actions=A,
        discount=DISCOUNT,
        seed=0,
    )
    s = 0
    for _ in range(n):
        a, before = int(rng.integers(A)), s
        s = int(rng.choice(S, p=P[s, a]))
        agent.observe(before, a, float(paid[before, a] + 0.3 * rng.normal()), s)
    return agent


def optimal(P, R):
    """Q* by value iteration."""
    q = np.zeros((S, A))
    for _ in range(2000):
        q = R + DISCOUNT * P @ q.max(axis=1)
    return q


def backups(belief, values, n=4000):
    """r + γ P V of every pair in sampled models."""
    rng = np.random.default_rng(0)
    models = [belief.sample(rng) for _ in range(n)]
    return np.array([m.expected_rewards.reshape(S, A) + DISCOUNT * m.dense() @ values for m in models])


CASES = [("dirichlet", "normal", 0.06), ("sparse", "normal", 0.35), ("hierarchical", "hierarchical", 0.4)]
CASES += [("dirichlet + sparse:beta=4", "normal", 0.35)]


@pytest.mark.parametrize("prior, rewards, within", CASES)
def test_uncertainty_is_the_deviation_of_backups_in_sampled_models(prior, rewards, within):
    agent = learned_agent(prior, rewards)
    agent.act(0)
    mean = agent.belief.mean()
    values = optimal(mean.dense(), mean.expected_rewards.reshape(S, A)).max(axis=1)
    drawn = backups(agent.belief, values)
    found = agent.memory.uncertainty.reshape(S, A)
    assert found == pytest.approx(drawn.std(axis=0), rel=within)


def test_rewards_that_depend_on_the_next_state_are_as_uncertain_as_the_next_state():
    rewards = np.random.default_rng(2).normal(size=(S, A, S))
    agent = learned_agent("dirichlet", rewards, n=2000)
    agent.act(0)
    mean = agent.belief.mean()
    values = optimal(mean.dense(), mean.expected_rewards.reshape(S, A)).max(axis=1)
    drawn = backups(agent.belief, values)
    found = agent.memory.uncertainty.reshape(S, A)
    assert found == pytest.approx(drawn.std(axis=0), rel=0.12)


def test_actions_are_optimal_for_the_mean_model_with_uncertainty_paid():
    agent = learned_agent()
    mean = agent.belief.mean()
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        u = agent.memory.uncertainty.reshape(S, A)
        q = optimal(mean.dense(), mean.expected_rewards.reshape(S, A) + u)
        assert plan.action == q[s].argmax()
        assert [c.value for c in plan.candidates] == pytest.approx(q[s], abs=1e-6)
        assert list(plan.details["uncertainty"].values()) == pytest.approx(u[s], abs=1e-6)


def test_without_optimism_it_is_bayes_greedy():
    greedy, other = (
        learned_agent(planner=bamdp.BayesGreedy(tol=1e-10)),
        learned_agent(planner=Optimism(optimism=0.0, tol=1e-10)),
    )
    for s in range(S):
        assert other.plan(s).action == greedy.plan(s).action
        assert other.plan(s).value == pytest.approx(greedy.plan(s).value, abs=1e-6)


def test_what_is_known_or_makes_no_difference_is_not_uncertain():
    model = bamdp.FiniteMDP(np.random.default_rng(1).dirichlet(np.ones(S), (S, A)), np.ones((S, A)))
    for prior, rewards in ((bamdp.FiniteModels([model]), None), ("dirichlet", np.ones((S, A)))):
        agent = bamdp.Agent("optimism", prior=prior, rewards=rewards, n_states=S, n_actions=A, discount=0.9)
        agent.act(0)
        agent.act(0)
        assert agent.memory.uncertainty == pytest.approx(0.0, abs=1e-6)


def test_it_goes_far_to_where_it_is_known_to_pay():
    """A corridor of six states whose far end pays ten times what the near end does; the way is unknown."""
    n = 6
    rewards = np.array([0.1, 0.0, 0.0, 0.0, 0.0, 1.0])
    agent = bamdp.Agent(
        "optimism", prior="hierarchical", rewards=rewards, n_states=n, n_actions=2, discount=0.95
    )
    s, visited = 0, []
    for _ in range(200):
        a = agent.act(s)
        s2 = min(s + 1, n - 1) if a == 1 else max(s - 1, 0)
        agent.observe(s, a, rewards[s], s2)
        visited.append(s2)
        s = s2
    assert np.mean(np.array(visited[-100:]) == n - 1) > 0.9


@pytest.mark.parametrize(
    "name, share", [("inventory", 0.6), ("machine", 0.9), ("queue", 0.6), ("pricing", 0.4)]
)
def test_textbook_problems_with_learned_rewards_and_nothing_else_said(name, share):
    env = bamdp.make_env(name)
    best, random = (
        total_reward(env.mdp, env.start, 1000),
        total_reward(env.mdp, env.start, 1000, uniform_policy(env.mdp)),
    )
    batch = bamdp.run_many(env, "optimism", rewards="hierarchical", runs=5, steps=1000, seed=77)
    assert (batch.mean - random) / (best - random) > share
