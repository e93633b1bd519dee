"""EpsilonGreedy: how often it explores, and what it does when it does not."""

import copy

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience
from scipy import stats

import bamdp
from bamdp.planners.bayes_greedy import BayesGreedy, EpsilonGreedy

MASKED = {
    "n_actions": 4,
    "action_mask": [[True, False, True, True]] * 3,
    "rewards": [[0.0, 9.0, 1.0, 0.5]] * 3,
}


def chi_square(counts, p):
    expected = counts.sum() * np.array(p)
    return float(np.sum((counts - expected) ** 2 / expected))


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.0])
def test_explores_uniformly_with_probability_epsilon(epsilon):
    """Pearson's chi-square, fixed seed: a correct program fails one in a million."""
    agent = agent_of(EpsilonGreedy(epsilon=epsilon, decay=0.0), MASKED)
    counts = np.bincount([agent.act(1) for _ in range(10_000)], minlength=4)
    assert counts[1] == 0
    p = [epsilon / 3, 1 - epsilon + epsilon / 3, epsilon / 3]
    assert chi_square(counts[[0, 2, 3]], p) < stats.chi2.isf(1e-6, 2)


def test_epsilon_falls_with_the_decisions_made_in_a_state():
    """ε / (1 + decay · n) in the plans, and in the frequencies (five standard errors)."""
    agent = agent_of(EpsilonGreedy(epsilon=0.8, decay=0.5), MASKED)
    for _ in range(6):
        agent.observe(1, 0, 0.0, 0)
    assert agent.plan(1).details["epsilon"] == pytest.approx(0.2)
    assert agent.plan(0).details["epsilon"] == pytest.approx(0.8)
    n = 5000
    for state, epsilon in ((1, 0.2), (0, 0.8)):
        p = 2 / 3 * epsilon
        others = sum(agent.act(state) != 2 for _ in range(n))
        assert abs(others - n * p) < 5 * np.sqrt(n * p * (1 - p))


def test_without_epsilon_it_is_bayes_greedy():
    pair = [
        experience(agent_of(planner, {"rewards": bamdp.BetaBernoulli()}), 40)
        for planner in (EpsilonGreedy(epsilon=0.0), BayesGreedy())
    ]
    for s in (0, 1, 2, 1, 0):
        mine, theirs = (agent.plan(s) for agent in pair)
        assert mine.action == theirs.action
        assert [c.value for c in mine.candidates] == [c.value for c in theirs.candidates]
        for agent in pair:
            agent.observe(s, agent.act(s), 1.0, (s + 1) % 3)


def test_plans_explain_the_step_at_hand():
    agent = experience(agent_of(EpsilonGreedy(epsilon=0.5, decay=0.0), {}), 20)
    seen = set()
    for _ in range(40):
        plan = agent.plan(0)
        values = {c.action: c.value for c in plan.candidates}
        assert plan.details["greedy_action"] == max(values, key=values.get)
        assert plan.value == values[plan.action]
        assert [c.count for c in plan.candidates] == agent.memory.visits[0].tolist()
        assert plan.details["explored"] or plan.action == plan.details["greedy_action"]
        seen.add(plan.details["explored"])
        assert agent.act(0) == plan.action
    assert seen == {True, False}


def test_planning_and_acting_leave_the_same_memory():
    planner = EpsilonGreedy(epsilon=0.5, decay=0.0)
    agent = experience(agent_of(planner, {}), 20)
    for _ in range(20):
        memories = [copy.deepcopy(agent.memory) for _ in range(2)]
        streams = [agent.rng.copy() for _ in range(2)]
        planner.act(memories[0], agent.belief, 0, streams[0])
        planner.plan(memories[1], agent.belief, 0, streams[1])
        np.testing.assert_array_equal(*streams)
        np.testing.assert_array_equal(*(m.workspace.solver.values for m in memories))
        agent.observe(0, agent.act(0), 0.0, 1)


@pytest.mark.parametrize("rewards", [[0.0, 0.3, 1.0], bamdp.BetaBernoulli()])
def test_keeps_the_promises_of_a_planner(rewards, tmp_path):
    for seed in range(3):
        agent = agent_of(EpsilonGreedy(epsilon=0.5), {"rewards": rewards}, seed=seed)
        check_promises(experience(agent, 20), 1, tmp_path)
