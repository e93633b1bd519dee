"""Planners in plain Python: NumPy random numbers, one stream a seed, and files."""

from dataclasses import dataclass

import numpy as np
import pytest

import bamdp


@dataclass(frozen=True, kw_only=True)
class Wanderer(bamdp.Planner):
    """Any action that exists."""

    def act(self, memory, belief, state, rng):
        return rng.choice(np.flatnonzero(belief.space.allowed[state]))


@dataclass(frozen=True, kw_only=True)
class Counter(bamdp.Planner):
    """The action tried least often, by a memory that is an array; ties at random."""

    def start(self, belief, discount):
        return np.zeros((belief.n_states, belief.n_actions))

    def plan(self, memory, belief, state, rng):
        values = -memory[state] + 0.1 * rng.random(belief.n_actions)
        candidates = tuple(bamdp.Candidate(a, v) for a, v in enumerate(values.tolist()))
        return bamdp.Plan(int(values.argmax()), float(values.max()), candidates)

    def learn(self, memory, belief, seen):
        memory[seen.s, seen.a] += 1


def agent_of(planner, seed=0):
    return bamdp.Agent(planner, prior=bamdp.Dirichlet(), n_states=3, n_actions=4, discount=0.9, seed=seed)


def acting(agent, n=40):
    actions = []
    for _ in range(n):
        actions.append(agent.act(0))
        agent.observe(0, actions[-1], 0.0, 0)
    return actions


@pytest.mark.parametrize("planner", [Wanderer(), Counter()], ids=lambda planner: type(planner).__name__)
def test_the_same_seed_gives_the_same_actions_also_after_saving(planner, tmp_path):
    agent = agent_of(planner)
    first = acting(agent)
    assert first == acting(agent_of(planner)) != acting(agent_of(planner, seed=1))
    agent.save(tmp_path / "agent.npz")
    twin = bamdp.Agent.load(tmp_path / "agent.npz")
    assert [twin.plan(0).action, *acting(twin)] == [agent.plan(0).action, *acting(agent)]


def test_random_numbers_are_fresh_at_every_decision_and_planning_uses_none_up():
    agent = agent_of(Wanderer())
    actions = acting(agent, 400)
    assert np.bincount(actions, minlength=4).min() > 60  # 100 expected, 5 standard deviations
    plans = {agent.plan(0).action for _ in range(5)}
    assert plans == {agent.act(0)}


def test_a_planner_that_only_acts_has_a_plan_without_values():
    plan = agent_of(Wanderer()).plan(0)
    assert [c.action for c in plan.candidates] == [plan.action]
    assert np.isnan(plan.value)


def test_a_planner_must_decide():
    @dataclass(frozen=True)
    class Idle(bamdp.Planner):
        pass

    with pytest.raises(TypeError, match="Idle must define act"):
        agent_of(Idle()).act(0)


def test_a_horizon_changes_the_discount_of_a_memory_that_has_one():
    agent = bamdp.Agent(Counter(), prior=bamdp.Dirichlet(), n_states=3, n_actions=4, horizon=20, seed=0)
    assert len(acting(agent, 25)) == 25


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.zeros((3, 4), int)])
def test_a_memory_of_another_shape_or_type_is_refused(array):
    planner, agent = Counter(), agent_of(Counter())
    with pytest.raises(ValueError, match="memory"):
        planner.relearn(planner.start(agent.belief, 0.9), agent.belief, {"memory": array})
