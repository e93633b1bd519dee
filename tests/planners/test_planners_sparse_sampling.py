"""Sparse sampling against exact expectations of its own estimate, and against FHTS in the limit.

Statistical tests use fixed seeds and allow 5 standard errors: a correct program fails one in 1.7 million.
"""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest
from exact_beliefs import World, bayes_optimal, dirichlet
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.fhts import FHTS
from bamdp.planners.sparse_sampling import SparseSampling

REWARDS = [[[0.0, 1.0], [0.25, 0.5]], [[1.0, 0.0], [0.0, 0.75]]]
WORLD = World(2, 2, dirichlet(lambda s, a, s2: F(1)), rewards=lambda s, a, s2: F(REWARDS[s][a][s2]))


def agent(planner, seed=0):
    return bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=1.0),
        n_states=2,
        n_actions=2,
        rewards=REWARDS,
        discount=0.9,
        seed=seed,
    )


def q_values(planner, n, seed=0):
    """n independent estimates of the root's Q, [n, A]."""
    one = agent(planner, seed)
    out = np.empty((n, 2))
    for i in range(n):
        planner.act(one.memory, one.belief, 0, one.rng)
        out[i] = one.memory.tree.value
    return out


def assert_mean(samples, expected):
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert np.all(np.abs(samples.mean(axis=0) - expected) < 5 * error)


def test_one_step_ahead_the_averages_are_unbiased():
    exact, _ = bayes_optimal(WORLD, 0, 1, F(9, 10))
    for width in (1, 5):
        assert_mean(q_values(SparseSampling(width, 1), 4000), [float(q) for q in exact.values()])


def expected_with_one_draw():
    """E[Q] of width 1 and depth 2: r + γ max over a' of one draw of r' each, by enumeration."""
    out = []
    for a in range(2):
        total = F(0)
        for p, r, s2, after in WORLD.branches(WORLD.data, 0, a):
            laws = [[(x[0], x[1]) for x in WORLD.branches(after, s2, b)] for b in range(2)]
            best = sum(p0 * p1 * max(r0, r1) for (p0, r0), (p1, r1) in product(*laws))
            total += p * (r + F(9, 10) * best)
        out.append(float(total))
    return out


def test_with_one_draw_the_mean_is_that_of_the_maximum_of_draws():
    assert_mean(q_values(SparseSampling(1, 2), 20_000), expected_with_one_draw())


def test_the_bias_is_upwards_and_falls_as_the_width_grows():
    exact = agent(FHTS(3)).plan(0).value
    biases = []
    for width, n in ((1, 4000), (4, 800), (16, 40)):
        values = q_values(SparseSampling(width, 3), n).max(axis=1)
        error = values.std(ddof=1) / np.sqrt(n)
        assert values.mean() - exact > 5 * error if width < 16 else values.mean() - exact > -5 * error
        biases.append(values.mean() - exact)
    assert biases[0] > 2 * biases[1] > 2 * biases[2]


def test_converges_to_fhts_as_the_width_grows():
    exact = np.array([c.value for c in agent(FHTS(3)).plan(0).candidates])
    worst = [np.abs(q_values(SparseSampling(width, 3), 8) - exact).mean() for width in (2, 8, 32, 96)]
    assert worst == sorted(worst, reverse=True)
    assert worst[-1] < 0.03


def test_learned_rewards_converge_to_fhts():
    def bandit(planner):
        return bamdp.Agent(
            planner,
            prior=bamdp.Dirichlet(),
            n_states=1,
            n_actions=2,
            rewards=bamdp.BetaBernoulli(),
            discount=0.9,
            seed=3,
        )

    exact = bandit(FHTS(3)).plan(0).value
    one = bandit(SparseSampling(32, 3))
    values = np.empty(40)
    for i in range(len(values)):
        one.act(0)
        values[i] = one.memory.tree.value.max()
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert -5 * error < values.mean() - exact < 0.1


def test_in_a_known_world_without_chance_one_draw_is_exact():
    step = bamdp.FiniteMDP([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], rewards=[[0.0, 0.2], [1.0, 0.1]])
    one = bamdp.Agent(
        SparseSampling(1, 4), prior=bamdp.FiniteModels([step]), n_states=2, n_actions=2, discount=0.5
    )
    plan = one.plan(0)
    assert [c.value for c in plan.candidates] == [
        0.0 + 0.5 + 0.25 * 0.0 + 0.125,
        0.2 + 0.0 + 0.25 + 0.125 * 0.2,
    ]


def test_terminal_states_end_the_look_ahead():
    rewards = [[1.0, 0.0], [5.0, 5.0], [0.0, 0.0]]
    alpha = np.zeros((3, 2, 3))
    alpha[:, 0, 1] = alpha[:, 1, 2] = 1.0  # action 0 leads to state 1, where it ends
    world = {"rewards": rewards, "terminal": [False, True, False]}
    one = agent_of(SparseSampling(2, 3), world, prior=bamdp.Dirichlet(alpha=alpha), discount=0.5)
    assert [c.value for c in one.plan(0).candidates] == [1.0, 0.0]


def test_actions_that_do_not_exist_are_neither_tried_nor_planned_for():
    mask = [[True, False], [True, True], [False, True]]
    rewards = [[0.0, 99.0], [0.0, 0.0], [99.0, 0.0]]
    one = agent_of(SparseSampling(3, 3), {"action_mask": mask, "rewards": rewards})
    plan = one.plan(0)
    assert [c.action for c in plan.candidates] == [0]
    assert plan.value == 0.0


def test_candidates_carry_spread_and_count():
    plan = agent(SparseSampling(50, 1)).plan(0)
    for c, pays in zip(plan.candidates, ((0.0, 1.0), (0.25, 0.5))):
        n = 50
        high = round((c.value - pays[0]) / (pays[1] - pays[0]) * n)
        returns = np.repeat(pays, [n - high, high])
        assert c.count == n
        assert c.spread == pytest.approx(returns.std(ddof=1))
    assert all(np.isnan(c.spread) for c in agent(SparseSampling(1, 1)).plan(0).candidates)


@pytest.mark.parametrize(
    "prior",
    [
        bamdp.Dirichlet(alpha=0.5),
        bamdp.SparseDirichlet(),
        bamdp.Mixture([bamdp.Dirichlet(alpha=0.5), bamdp.SparseDirichlet()]),
    ],
    ids=["dirichlet", "sparse", "mixture"],
)
def test_keeps_the_promises_of_a_planner(prior, tmp_path):
    check_promises(experience(agent_of(SparseSampling(3, 3), {}, prior=prior)), 1, tmp_path)
