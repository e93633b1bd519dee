"""Q-learning: its update by hand, its choice, and where it converges."""

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience
from scipy import stats

import bamdp
from bamdp.planners.q_learning import QLearning


def test_the_update_is_watkinss_by_hand():
    agent = agent_of(QLearning(learning_rate=0.5, initial=1.0), {}, discount=0.9)
    agent.observe(0, 1, 2.0, 1)  # 1 + .5 (2 + .9·1 − 1)
    assert agent.memory.q[0].tolist() == pytest.approx([1.0, 1.95])
    agent.observe(2, 0, 0.0, 0)  # 1 + .5 (0 + .9·1.95 − 1)
    assert agent.memory.q[2].tolist() == pytest.approx([1.3775, 1.0])
    agent.observe(0, 1, -1.0, 0)  # 1.95 + .5 (−1 + .9·1.95 − 1.95)
    assert agent.memory.q[0, 1] == pytest.approx(1.3525)


def test_rates_fall_as_a_power_of_the_visits():
    agent = agent_of(QLearning(learning_rate=0.8, power=0.5), {}, discount=0.0)
    q = 0.0
    for n in range(1, 6):
        agent.observe(1, 0, float(n), 2)
        q += 0.8 / n**0.5 * (n - q)
        assert agent.memory.q[1, 0] == pytest.approx(q)
    assert agent.memory.visits.sum() == 5


def test_nothing_follows_a_terminal_state_and_missing_actions_do_not_count():
    mask = [[True, True], [False, True], [True, True]]
    agent = agent_of(QLearning(learning_rate=1.0), {"action_mask": mask}, discount=0.5)
    agent.memory.q[1] = [100.0, 4.0]
    agent.memory.q[2] = [100.0, 100.0]
    agent.observe(0, 0, 1.0, 1)
    assert agent.memory.q[0, 0] == pytest.approx(1 + 0.5 * 4)
    agent.observe(0, 1, 1.0, 2, terminated=True)
    assert agent.memory.q[0, 1] == pytest.approx(1.0)
    assert [c.action for c in agent.plan(1).candidates] == [1]


@pytest.mark.parametrize(("power", "close"), [(0.0, 1e-8), (0.7, 0.05)])
def test_converges_to_the_optimal_values_of_a_tiny_world(power, close):
    """Deterministic moves and rewards, so a constant rate converges too."""
    moves = np.array([[0, 1], [0, 2], [0, 2]])
    rewards = np.array([[0.1, 0.0], [0.0, 0.0], [0.3, 1.0]])
    P = np.zeros((3, 2, 3))
    np.put_along_axis(P, moves[:, :, None], 1.0, axis=2)
    values = bamdp.policy_iteration(bamdp.FiniteMDP(P, rewards), 0.5).values
    agent = agent_of(
        QLearning(learning_rate=0.5, power=power, epsilon=0.5, decay=0.0), {"rewards": rewards}, discount=0.5
    )
    s = 0
    for _ in range(3000):
        a = agent.act(s)
        agent.observe(s, a, float(rewards[s, a]), int(moves[s, a]))
        s = int(moves[s, a])
    np.testing.assert_allclose(agent.memory.q, rewards + 0.5 * values[moves], atol=close)


def test_with_falling_rates_noise_averages_out():
    """One pair with coin-flip rewards, γ = 0 and η_n = 1/n: Q is the sample mean exactly."""
    agent = agent_of(
        QLearning(learning_rate=1.0, power=1.0), {"rewards": bamdp.BetaBernoulli()}, discount=0.0
    )
    rewards = np.random.default_rng(0).integers(2, size=500).astype(float)
    for r in rewards:
        agent.observe(0, 0, r, 0)
    assert agent.memory.q[0, 0] == pytest.approx(rewards.mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("q", "epsilon", "p"),
    [
        ([1.0, 9.0, 2.0, 0.0], 0.3, [0.1, 0.0, 0.8, 0.1]),
        ([2.0, 9.0, 2.0, 0.0], 0.3, [0.45, 0.0, 0.45, 0.1]),
        ([0.0, 9.0, 0.0, 0.0], 0.0, [1 / 3, 0.0, 1 / 3, 1 / 3]),
    ],
)
def test_choices_are_epsilon_greedy_with_random_ties(q, epsilon, p):
    """Pearson's chi-square, fixed seed: a correct program fails one in a million. Action 1 does not exist."""
    world = {"n_actions": 4, "action_mask": [[True, False, True, True]] * 3}
    agent = agent_of(QLearning(epsilon=epsilon, decay=0.0), world)
    agent.memory.q[0] = q
    n = 10_000
    counts = np.bincount([agent.act(0) for _ in range(n)], minlength=4)
    assert counts[1] == 0
    counts, expected = np.delete(counts, 1), n * np.delete(p, 1)
    assert np.sum((counts - expected) ** 2 / expected) < stats.chi2.isf(1e-6, 2)


def test_epsilon_falls_with_the_decisions_made_in_a_state():
    agent = agent_of(QLearning(epsilon=0.8, decay=0.5), {})
    for _ in range(6):
        agent.observe(1, 0, 0.0, 0)
    assert agent.plan(1).details["epsilon"] == pytest.approx(0.2)
    assert agent.plan(0).details["epsilon"] == pytest.approx(0.8)


def test_plans_show_values_and_visits():
    agent = experience(agent_of(QLearning(epsilon=0.0), {"rewards": bamdp.BetaBernoulli()}), 30)
    for s in range(3):
        plan = agent.plan(s)
        assert [c.value for c in plan.candidates] == agent.memory.q[s].tolist()
        assert [c.count for c in plan.candidates] == agent.memory.visits[s].tolist()
        assert plan.details["greedy"]
        assert plan.value == agent.memory.q[s].max()


@pytest.mark.parametrize("rewards", [[0.0, 0.3, 1.0], bamdp.BetaBernoulli()])
def test_keeps_the_promises_of_a_planner(rewards, tmp_path):
    for seed in range(3):
        agent = agent_of(QLearning(epsilon=0.5), {"rewards": rewards}, seed=seed)
        check_promises(experience(agent, 20), 1, tmp_path)
        loaded = bamdp.Agent.load(tmp_path / "agent.npz")
        np.testing.assert_array_equal(loaded.memory.q, agent.memory.q)
