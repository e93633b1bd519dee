"""BayesGreedy against exact policy iteration on the posterior mean."""

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.bayes_greedy import BayesGreedy

PRIORS = {
    "dirichlet": bamdp.Dirichlet(alpha=0.3),
    "sparse": bamdp.SparseDirichlet(alpha=0.2, beta=2.0),
    "mixture": bamdp.Mixture([bamdp.Dirichlet(alpha=0.5), bamdp.SparseDirichlet()]),
}


def exact_q(agent):
    """Q of the mean model, [S, A], from its dense form and policy iteration's values."""
    mean = agent.belief.mean()
    values = bamdp.policy_iteration(mean, agent.discount).values
    P = np.array(
        [[agent.belief.predictive(s, a) for a in range(mean.n_actions)] for s in range(mean.n_states)]
    )
    return mean.expected_rewards + agent.discount * P @ values


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("rewards", ["known", "learned"])
def test_chooses_what_policy_iteration_chooses_in_the_mean_model(name, rewards):
    rng = np.random.default_rng(0)
    tol, discount = 1e-6, 0.9
    model = rng.normal(size=(8, 3)) if rewards == "known" else bamdp.BetaBernoulli()
    world = {"n_states": 8, "n_actions": 3, "rewards": model}
    agent = agent_of(BayesGreedy(tol=tol), world, prior=PRIORS[name], discount=discount)
    slack = tol / (1 - discount)
    for _ in range(5):
        q = exact_q(experience(agent, 30, seed=int(rng.integers(1000))))
        for s in range(8):
            plan = agent.plan(s)
            assert [c.value for c in plan.candidates] == pytest.approx(q[s], abs=slack)
            assert plan.value == max(c.value for c in plan.candidates)
            assert q[s, plan.action] > q[s].max() - 2 * slack
            agent.act(s)  # the next plan starts from these values


def test_in_a_bandit_it_is_the_myopic_rule():
    agent = agent_of(BayesGreedy(), {"n_states": 1, "n_actions": 2, "rewards": bamdp.BetaBernoulli()})
    agent.observe(0, 0, 0.0, 0)
    assert agent.act(0) == 1
    for r in (1.0, 0.0, 0.0):  # means 1/3 and 2/5
        agent.observe(0, 1, r, 0)
    assert agent.act(0) == 1
    for r in (0.0, 0.0):  # 1/3 and 2/7
        agent.observe(0, 1, r, 0)
    assert agent.act(0) == 0


def test_warm_starts_do_not_change_the_choice():
    warm = experience(agent_of(BayesGreedy(tol=1e-8), {}))
    for s in (0, 1, 2, 0):
        warm.act(s)
        warm.observe(s, 0, 0.0, (s + 1) % 3)
    cold = agent_of(BayesGreedy(tol=1e-8), {})
    cold.belief = warm.belief
    for s in range(3):
        values = [c.value for c in warm.plan(s).candidates]
        assert values == pytest.approx([c.value for c in cold.plan(s).candidates], abs=1e-6)


def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist():
    alpha = np.zeros((3, 2, 3))
    alpha[:, 0, 1] = alpha[:, 1, 2] = 1.0
    rewards = [[1.0, 0.0], [5.0, 5.0], [99.0, 0.5]]
    world = {
        "rewards": rewards,
        "terminal": [False, True, False],
        "action_mask": [[True, True], [True, True], [False, True]],
    }
    agent = agent_of(BayesGreedy(tol=1e-9), world, prior=bamdp.Dirichlet(alpha=alpha), discount=0.5)
    assert [c.value for c in agent.plan(0).candidates] == pytest.approx([1.0, 0.5], abs=1e-8)
    only = agent.plan(2)
    assert [c.action for c in only.candidates] == [1]
    assert only.value == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("name", PRIORS)
def test_keeps_the_promises_of_a_planner(name, tmp_path):
    check_promises(experience(agent_of(BayesGreedy(), {}, prior=PRIORS[name])), 1, tmp_path)
