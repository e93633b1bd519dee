"""Learned rewards have no units: planners act alike when all rewards are multiplied or, where nothing ends, shifted."""

from __future__ import annotations

import numpy as np
import pytest

import bamdp

S, A, STEPS = 4, 3, 20
RNG = np.random.default_rng(11)
NEXT = RNG.dirichlet(np.full(S, 0.5), (S, A))
PAID = RNG.normal(size=(S, A))
PLANNERS = {
    "bayes-greedy": "bayes-greedy",
    "optimism": "optimism",
    "adaptive-dss": "adaptive-dss",
    "thompson": "thompson",
    "dss-pi": "dss-pi:n_policies=2,n_samples=2,n_steps=4,n_stages=2",
    "dss-rtdp": "dss-rtdp:n_policies=2,n_samples=2,n_steps=4",
    "dss-vi": "dss-vi:n_policies=2,n_samples=2,n_steps=4",
    "boss": "boss:n_models=2,known_after=3",
    "sboss": "sboss:n_models=2",
    "mcbrl": "mcbrl",
    "bolt": "bolt",
    "bayesian-sparse-sampling": "bayesian-sparse-sampling:n_trajectories=6,depth=3",
    "sparse-sampling": "sparse-sampling:width=2,depth=2",
}


def actions(planner, scale=1.0, add=0.0):
    """What an agent does in a small world without ends, whose rewards are noisy and in other units."""
    agent = bamdp.Agent(
        planner, prior="sparse", rewards="hierarchical", n_states=S, n_actions=A, discount=0.9, seed=1
    )
    rng, s, taken = np.random.default_rng(5), 0, []
    for _ in range(STEPS):
        a = agent.act(s)
        s2 = int(rng.choice(S, p=NEXT[s, a]))
        agent.observe(s, a, scale * (PAID[s, a] + 0.3 * rng.normal()) + add, s2)
        taken.append(a)
        s = s2
    return taken


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_actions_do_not_depend_on_the_unit_of_rewards(planner):
    usual = actions(planner)
    assert len(set(usual)) > 1
    assert actions(planner, scale=2.0**10) == usual
    assert actions(planner, scale=1e-3) == usual


@pytest.mark.parametrize("planner", PLANNERS.values(), ids=PLANNERS)
def test_actions_do_not_depend_on_a_constant_where_nothing_ends(planner):
    assert actions(planner, add=64.0) == actions(planner)


@pytest.mark.parametrize("add, goes_on", [(1.0, True), (-1.0, False)])
def test_where_episodes_end_a_constant_changes_the_best_policy(add, goes_on):
    """Action 0 stays, action 1 ends the episode; both pay the constant."""
    agent = bamdp.Agent(
        "bayes-greedy", prior="flat", rewards="hierarchical", n_states=2, n_actions=2, discount=0.9, seed=0
    )
    for _ in range(5):
        agent.observe(0, 0, add, 0)
        agent.observe(0, 1, add, 1, terminated=True)
    assert (agent.act(0) == 0) == goes_on


@pytest.mark.parametrize("planner", ["optimism", "thompson", "bayes-greedy"])
def test_an_end_that_never_comes_is_not_planned_for(planner):
    """Gymnasium's worlds may end anywhere: while none has, a constant changes nothing."""

    def acted(add):
        agent = bamdp.Agent(
            planner,
            prior="hierarchical",
            rewards="hierarchical",
            n_states=S + 1,
            n_actions=A,
            end=S,
            discount=0.9,
            seed=1,
        )
        rng, s, taken = np.random.default_rng(5), 0, []
        for _ in range(STEPS):
            a = agent.act(s)
            s2 = int(rng.choice(S, p=NEXT[s, a]))
            agent.observe(s, a, PAID[s, a] + add, s2)
            taken.append(a)
            s = s2
        return taken

    assert acted(-64.0) == acted(64.0) == acted(0.0)
