"""Bayesian sparse sampling: the laws of its tree, its leaves by hand, and its limit.

Statistical tests use fixed seeds and allow 5 standard errors: a correct program fails one in 1.7 million.
"""

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.bayesian_sparse_sampling import BayesianSparseSampling
from bamdp.planners.fhts import FHTS
from bamdp.planners.tree import ACTION, COUNT, NO_NODE, PARENT, ROOT, SIBLING, STATE

HUGE = 10**9


def bandit(planner, data=(), n_actions=2, seed=0, discount=0.9):
    world = {"n_states": 1, "n_actions": n_actions, "rewards": bamdp.BetaBernoulli()}
    agent = agent_of(planner, world, seed=seed, discount=discount)
    for arm, reward in data:
        agent.observe(0, arm, reward, 0)
    return agent


def grown(agent, state=0):
    """The tree of one plan, its size, and the values of its nodes."""
    agent.act(state)
    tree = agent.memory.tree
    return tree, int(tree.used[0]), agent.memory.worth


def test_at_the_root_actions_are_tried_as_often_as_they_are_likely_to_be_best():
    """Beta(3, 1) against Beta(1, 1): P(first is better) = E[first] = 3/4."""
    n = 4000
    planner = BayesianSparseSampling(n_trajectories=n, depth=1, width=HUGE)
    tree, *_ = grown(bandit(planner, [(0, 1.0), (0, 1.0)]))
    assert tree.tries[ROOT].sum() == n
    assert abs(tree.tries[ROOT, 0] - 0.75 * n) < 5 * np.sqrt(n * 0.75 * 0.25)


def test_below_the_root_they_follow_the_updated_belief():
    """After a success with arm 0, Beta(2, 1) against Beta(1, 1): P(arm 0 is better) = 2/3."""
    planner = BayesianSparseSampling(n_trajectories=6000, depth=2, width=HUGE)
    tree, size, _ = grown(bandit(planner))
    after_arm_0 = (tree.node[:size, PARENT] == ROOT) & (tree.node[:size, ACTION] == 0)
    won = int(np.flatnonzero(after_arm_0 & (tree.reward[:size] == 1.0))[0])
    n = tree.tries[won].sum()
    assert n > 1000
    assert abs(tree.tries[won, 0] - n * 2 / 3) < 5 * np.sqrt(n * 2 / 9)


def test_outcomes_follow_the_predictive():
    world = {"n_states": 3, "n_actions": 1, "rewards": np.zeros(3)}
    planner = BayesianSparseSampling(n_trajectories=5000, depth=1, width=HUGE)
    agent = experience(agent_of(planner, world), 10)
    tree, size, _ = grown(agent)
    p = agent.belief.predictive(0, 0)
    assert size == 4
    for i in range(1, size):
        q = p[tree.node[i, STATE]]
        assert abs(tree.node[i, COUNT] - 5000 * q) < 5 * np.sqrt(5000 * q * (1 - q))


def test_the_tree_keeps_its_limits_and_its_books():
    planner = BayesianSparseSampling(n_trajectories=300, depth=3, width=2)
    tree, size, _ = grown(experience(agent_of(planner, {})))
    assert size <= 301
    depth = np.zeros(size, int)
    for i in range(1, size):
        assert tree.node[i, PARENT] < i
        depth[i] = depth[tree.node[i, PARENT]] + 1
        assert 1 <= tree.node[i, COUNT] <= 2
    assert depth.max() == tree.used[1] == 3
    assert tree.tries[:size].max() == 2
    for i in range(size):
        for a in range(2):
            child, total = tree.child[i, a], 0
            while child != NO_NODE:
                assert (tree.node[child, PARENT], tree.node[child, ACTION]) == (i, a)
                total += tree.node[child, COUNT]
                child = tree.node[child, SIBLING]
            assert total == tree.tries[i, a]


def test_values_are_averages_over_draws_and_maxima_over_tried_actions():
    planner = BayesianSparseSampling(n_trajectories=200, depth=4, width=3)
    agent = experience(agent_of(planner, {}))
    plan = agent.plan(0)
    tree, size, worth = grown(agent)

    def q(node, a):
        children = [i for i in range(1, size) if tree.node[i, PARENT] == node and tree.node[i, ACTION] == a]
        returns = [tree.reward[i] + 0.9 * value(i) for i in children]
        return np.average(returns, weights=tree.node[children, COUNT])

    def value(node):
        tried = np.flatnonzero(tree.tries[node])
        return max(q(node, a) for a in tried) if len(tried) else worth[node]

    assert worth[ROOT] == pytest.approx(value(ROOT))
    for c in plan.candidates:
        assert c.value == pytest.approx(q(ROOT, c.action))
        assert c.count == tree.tries[ROOT, c.action]


def test_a_leaf_is_worth_the_optimum_of_its_mean_model():
    for seed in range(5):
        agent = experience(agent_of(BayesianSparseSampling(n_trajectories=1, tol=1e-8), {}, seed=seed))
        tree, size, worth = grown(agent)
        assert size == 2
        s2, a, r = int(tree.node[1, STATE]), int(tree.node[1, ACTION]), float(tree.reward[1])
        later = agent.belief.copy()
        later.observe(0, a, r, s2)
        expected = bamdp.policy_iteration(later.mean(), 0.9).values[s2]
        assert worth[1] == pytest.approx(expected, abs=1e-6)
        assert worth[ROOT] == pytest.approx(r + 0.9 * expected, abs=1e-6)


def test_with_a_horizon_a_bandit_leaf_is_worth_its_greatest_mean_for_the_steps_left():
    for seed in range(5):
        planner = BayesianSparseSampling(n_trajectories=1, depth=4, leaf="horizon")
        tree, _, worth = grown(bandit(planner, seed=seed))
        best = 2 / 3 if tree.reward[1] == 1.0 else 1 / 2
        assert worth[1] == pytest.approx(best * (1 + 0.9 + 0.81))


def test_at_the_depth_limit_a_horizon_leaf_is_worth_nothing():
    planner = BayesianSparseSampling(n_trajectories=10, depth=1, leaf="horizon")
    _, size, worth = grown(bandit(planner))
    assert np.all(worth[1:size] == 0.0)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_converges_to_the_bayes_optimal_value_of_a_bandit(depth):
    data = [(0, 1.0), (0, 0.0), (0, 1.0)]
    exact = bandit(FHTS(depth), data).plan(0)
    planner = BayesianSparseSampling(n_trajectories=30_000, depth=depth, width=HUGE, leaf="horizon")
    plan = bandit(planner, data).plan(0)
    for c, truth in zip(plan.candidates, exact.candidates):
        assert c.value == pytest.approx(truth.value, abs=0.03)
    assert plan.action == exact.action


def test_converges_to_fhts_with_unknown_transitions():
    world = {"n_states": 2, "rewards": [[0.0, 0.3], [1.0, 0.5]]}
    exact = agent_of(FHTS(3), world).plan(0)
    planner = BayesianSparseSampling(n_trajectories=20_000, depth=3, width=HUGE, leaf="horizon")
    plan = agent_of(planner, world).plan(0)
    assert plan.value == pytest.approx(exact.value, abs=0.03)
    assert plan.action == exact.action


def test_an_action_that_is_best_in_no_model_is_never_tried():
    rewards = [[0.0, -100.0]] * 3
    plan = agent_of(BayesianSparseSampling(n_trajectories=50), {"rewards": rewards}).plan(0)
    assert [c.action for c in plan.candidates] == [0]


def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist():
    alpha = np.zeros((3, 2, 3))
    alpha[:, 0, 1] = alpha[:, 1, 2] = 1.0
    world = {
        "rewards": [[1.0, 0.6], [5.0, 5.0], [99.0, 0.5]],
        "terminal": [False, True, False],
        "action_mask": [[True, True], [True, True], [False, True]],
    }
    planner = BayesianSparseSampling(n_trajectories=20, depth=3, tol=1e-9)
    agent = agent_of(planner, world, prior=bamdp.Dirichlet(alpha=alpha), discount=0.2)
    plan = agent.plan(0)
    assert plan.value == 1.0
    assert plan.details["nodes"] == 2
    only = agent.plan(2)
    assert [c.action for c in only.candidates] == [1]
    assert only.value == pytest.approx(0.5 / 0.8, abs=1e-8)


@pytest.mark.parametrize("leaf", ["mean", "horizon"])
@pytest.mark.parametrize(
    "prior", [bamdp.Dirichlet(alpha=0.5), bamdp.SparseDirichlet()], ids=["flat", "sparse"]
)
def test_keeps_the_promises_of_a_planner(prior, leaf, tmp_path):
    planner = BayesianSparseSampling(n_trajectories=30, depth=4, leaf=leaf)
    check_promises(experience(agent_of(planner, {}, prior=prior)), 1, tmp_path)
