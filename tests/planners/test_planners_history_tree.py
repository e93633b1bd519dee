"""The tree of histories, what UCT does in it, and the rollouts below it, against hand-made cases."""

import math

import numpy as np
import pytest
from history_tree_checks import agent_in
from planner_checks import agent_of

import bamdp
from bamdp._kernels.jit import zeros
from bamdp._kernels.random import new_rng
from bamdp.planners import bamcp
from bamdp.planners.bamcp import BAMCP, rollout_action, rollout_policy, ucb_action
from bamdp.planners.tree import (
    COUNT,
    NO_NODE,
    ROOT,
    HistoryTree,
    append_node,
    find_child,
    open_node,
    plant_root,
)


def small_space(allowed=None, terminal=None):
    return bamdp.Dirichlet().belief(3, 3, action_mask=allowed, terminal=terminal).space


def test_actions_in_the_tree_maximise_the_upper_confidence_bound():
    tree, space, rng = zeros(HistoryTree, A=3, M=4), small_space(), new_rng(1)
    tree.node[2, COUNT] = 30
    tree.tries[2] = [10, 15, 5]
    tree.value[2] = [1.0, 1.2, 0.1]
    for c in (0.0, 0.5, 2.0, 5.0):
        score = tree.value[2] + c * np.sqrt(np.log(30) / tree.tries[2])
        assert ucb_action(tree, space, 2, 0, c, rng) == np.argmax(score)


def test_big_counts_leave_the_tables_and_stay_exact():
    tree, space, rng = zeros(HistoryTree, A=3, M=1), small_space(), new_rng(1)
    for n in (4000, 4096, 4097, 100_000):
        tree.node[ROOT, COUNT] = 3 * n
        tree.tries[ROOT] = n
        tree.tries[ROOT, 1] = n - 1
        assert ucb_action(tree, space, ROOT, 0, 1.0, rng) == 1
        bonus = math.sqrt(math.log(3 * n) / n)
        tree.value[ROOT] = [0.0, -1.0, 0.0]
        tree.value[ROOT, 0] = 1e-9 * bonus
        assert ucb_action(tree, space, ROOT, 0, 1.0, rng) == 0
        tree.value[ROOT] = 0.0
        assert bamcp.root_log(n) * bamcp.inverse_root(n) == pytest.approx(
            math.sqrt(math.log(n) / n), rel=1e-12
        )


def test_untried_actions_come_first_and_ties_are_broken_evenly():
    mask = np.array([[True, True, True], [True, False, True], [True, True, True]])
    tree, space, rng = zeros(HistoryTree, A=3, M=1), small_space(mask), new_rng(2)
    tree.node[ROOT, COUNT] = 50
    tree.tries[ROOT] = [50, 0, 0]
    tree.value[ROOT] = 100.0
    picks = np.bincount([ucb_action(tree, space, ROOT, 0, 1.0, rng) for _ in range(4000)], minlength=3)
    assert picks[0] == 0
    assert abs(picks[1] - 2000) < 4 * math.sqrt(1000)
    assert {ucb_action(tree, space, ROOT, 1, 1.0, rng) for _ in range(50)} == {2}


def test_the_rollout_policy_is_epsilon_greedy_with_even_ties():
    mask = np.array([[True, True, True], [True, False, True], [False, True, False]])
    q = np.array([[1.0, 1.0, 0.0], [0.0, 9.0, 2.0], [0.0, 0.0, 0.0]])
    policy, rng = rollout_policy(q, mask, 0.4), new_rng(3)
    expected = {0: [0.4 / 3 + 0.3, 0.4 / 3 + 0.3, 0.4 / 3], 1: [0.2, 0.0, 0.8], 2: [0.0, 1.0, 0.0]}
    for s, p in expected.items():
        n = np.bincount([rollout_action(policy, s, rng) for _ in range(5000)], minlength=3)
        assert np.all(np.abs(n - 5000 * np.array(p)) <= 4 * np.sqrt(5000 * np.array(p) * (1 - np.array(p))))


def test_the_learner_is_q_learning_from_real_transitions():
    agent = agent_of(BAMCP(n_simulations=20, depth=4), {"terminal": np.array([False, False, True])})
    q = np.zeros((3, 2))
    for s, a, r, s2 in [(0, 1, 0.0, 1), (1, 0, 0.3, 0), (0, 1, 0.0, 1), (1, 0, 0.3, 2), (0, 0, 0.0, 0)]:
        agent.act(s)
        agent.observe(s, a, r, s2)
        future = 0.0 if s2 == 2 else q[s2].max()
        q[s, a] += 0.2 * (r + 0.9 * future - q[s, a])
        np.testing.assert_allclose(agent.memory.q, q, rtol=1e-12)


def test_children_are_found_by_action_state_and_reward():
    tree = zeros(HistoryTree, A=3, M=200)
    open_node(tree, plant_root(tree, 0), 0.0)
    made = {}
    order = np.random.default_rng(0).permutation(7 * 3 * 4)
    for parent in (0, 1, 2):
        for i in order[:60]:
            edge = parent, int(i) % 3, int(i) // 3 % 7, float(int(i) // 21)
            made[edge] = node = append_node(tree, *edge)
            open_node(tree, node, 0.0)
    assert sorted(made.values()) == list(range(1, len(made) + 1))
    for (parent, a, s, r), node in made.items():
        assert find_child(tree, parent, a, s, r, True) == node
        assert find_child(tree, parent, a, s, r + 0.5, True) == NO_NODE
        assert find_child(tree, parent, a, s, r + 0.5, False) != NO_NODE


def test_a_full_tree_goes_on_by_rollouts(monkeypatch):
    monkeypatch.setattr(bamcp, "TREE_BYTES", 5 * bamcp.node_bytes(2))
    plan = agent_in("sparse", BAMCP(n_simulations=2000, depth=10)).plan(0)
    assert plan.details["nodes"] == 5
    assert sum(c.count for c in plan.candidates) == 2000
    assert math.isfinite(plan.value)


def test_a_node_takes_the_bytes_that_are_promised():
    tree = zeros(HistoryTree, A=4, M=1000)
    assert sum(array.nbytes for array in tree) == pytest.approx(1000 * bamcp.node_bytes(4), abs=16)
