"""An agent that knows how many steps are left."""

import numpy as np
import pytest

import bamdp
from bamdp.planners import PLANNERS
from bamdp.registry import make_planner
from bamdp.runs import make_setting


def agent_of(planner, seed=0, **plans_for):
    return bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=0.5),
        rewards=[[0.2, 0.0], [0.0, 1.0]],
        n_states=2,
        n_actions=2,
        seed=seed,
        **plans_for,
    )


def test_it_counts_the_steps_that_are_left_and_begins_again_after_the_last():
    agent = agent_of(bamdp.BayesGreedy(), horizon=3)
    assert agent.steps_left == 3
    assert agent.discount == pytest.approx(2 / 3)
    for left in (2, 1, 3, 2):
        agent.observe(0, 0, 0.2, 0)
        assert agent.steps_left == left
        assert agent.discount == 1.0 - 1.0 / left
        assert set(discounts(agent.memory)) == {agent.discount}


def test_each_decision_is_that_of_an_agent_with_this_discount():
    """The same belief, the same random numbers: the same plan as with 1 - 1/steps_left."""
    for planner in (
        bamdp.BayesGreedy(),
        bamdp.BEB(),
        bamdp.DSS(),
        bamdp.AdaptiveDSS(n_simulations=30),
        bamdp.BOSS(),
    ):
        agent = agent_of(planner, horizon=50)
        for t in range(12):
            twin = bamdp.Agent.with_belief(planner, agent.belief.copy(), discount=1.0 - 1.0 / (50 - t))
            twin.rng[:] = agent.rng
            if isinstance(planner, (bamdp.BayesGreedy, bamdp.BEB)):  # others keep warm starts or models
                assert agent.plan(0).value == pytest.approx(twin.plan(0).value, abs=0.01)
            action = agent.act(0)
            agent.observe(0, action, 0.0, t % 2)
        assert agent.steps_left == 38


def test_a_long_horizon_explores_where_a_short_one_does_not():
    """State 0 pays 0.2 for staying; going to look for the better state pays if there is time."""
    planner = bamdp.AdaptiveDSS(n_simulations=2000, n_steps=4, n_stages=3, first_models=100)
    for horizon, action in ((200, 1), (11, 0)):
        agent = agent_of(planner, horizon=horizon)
        for _ in range(10):
            agent.observe(0, 0, 0.2, 0)
        assert agent.act(0) == action


def test_saving_and_copying_keep_the_steps_that_are_left(tmp_path):
    agent = agent_of(bamdp.DSS(n_steps=5), horizon=40)
    for _ in range(5):
        agent.observe(0, agent.act(0), 0.0, 1)
    agent.save(tmp_path / "agent.npz")
    for other in (bamdp.Agent.load(tmp_path / "agent.npz"), agent.copy()):
        assert other.steps_left == 35
        assert other.discount == agent.discount
        twin = agent.copy()
        for _ in range(5):
            action = other.act(0)
            assert action == twin.act(0)
            other.observe(0, action, 0.0, 0)
            twin.observe(0, action, 0.0, 0)


@pytest.mark.parametrize("name", ["q-learning", "bayesian-q-learning", "bootstrapped-dqn"])
def test_planners_whose_values_are_learned_under_one_discount_refuse(name):
    with pytest.raises(
        ValueError, match="cannot plan for a horizon: its values are learned under one discount"
    ):
        agent_of(make_planner(name), horizon=10)


@pytest.mark.parametrize("name", sorted(PLANNERS))
def test_the_discount_reaches_every_other_planner(name):
    """What a memory holds after :meth:`set_discount` is what it holds when it is made for that discount."""
    planner = make_planner(name)
    if planner.one_discount:
        return
    belief = agent_of(bamdp.Random(), discount=0.9).belief
    memory = planner.start(belief, 0.5)
    planner.set_discount(memory, 0.9)
    assert discounts(memory) == discounts(planner.start(belief, 0.9))


def discounts(memory):
    """All numbers called discount, wherever they are in a memory."""
    if memory is None or isinstance(memory, np.ndarray):
        return []
    parts = memory._asdict() if hasattr(memory, "_asdict") else getattr(memory, "__dict__", {})
    found = [value for name, value in parts.items() if name == "discount"]
    return found + [x for value in parts.values() for x in discounts(value)]


def test_either_a_discount_or_a_horizon():
    for plans_for in ({}, {"discount": 0.9, "horizon": 10}, {"discount": "auto"}):
        with pytest.raises(TypeError, match="either a discount or a horizon"):
            agent_of(bamdp.Random(), **plans_for)


def test_auto_plans_no_further_ahead_than_there_are_data():
    """Ten steps for each datum that a pair of state and action will have, at least 100, at most those that are left."""
    for horizon, reach in ((50, 50), (300, 300), (10_000, 10_000)):  # 2 states and 2 actions
        agent = agent_of(bamdp.BayesGreedy(), horizon=horizon, discount="auto")
        assert agent.discount == pytest.approx(1.0 - 1.0 / min(horizon, reach))
    env = bamdp.make_env("grid5")  # 100 pairs
    for horizon, reach in ((50, 50), (1000, 100), (5000, 500)):
        agent = bamdp.Agent.for_env(env, "bayes-greedy", horizon=horizon, discount="auto")
        assert agent.discount == pytest.approx(1.0 - 1.0 / reach)
        assert make_setting(
            "grid5", "bayes-greedy", discount="auto", steps=horizon
        ).first_discount == pytest.approx(1.0 - 1.0 / reach)
    agent = bamdp.Agent.for_env(env, "bayes-greedy", horizon=102, discount="auto")
    discounts_on_the_way = []
    for _ in range(4):
        agent.observe(0, 0, 0.0, 0)
        discounts_on_the_way.append(agent.discount)
    assert discounts_on_the_way == pytest.approx([0.99, 0.99, 1.0 - 1.0 / 99, 1.0 - 1.0 / 98])


def test_auto_is_kept_in_a_file_and_by_a_copy(tmp_path):
    agent = bamdp.Agent.for_env("grid5", "bayes-greedy", horizon=5000, discount="auto")
    agent.observe(0, 0, 0.0, 0)
    agent.save(tmp_path / "agent.npz")
    for other in (bamdp.Agent.load(tmp_path / "agent.npz"), agent.copy()):
        other.observe(0, 0, 0.0, 0)
        assert (other.steps_left, other.reach) == (4998, 500)
        assert other.discount == pytest.approx(1.0 - 1.0 / 500)
