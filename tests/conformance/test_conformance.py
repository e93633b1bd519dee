"""Every planner on every kind of belief: the promises that hold for all of them.

`make test` gives each planner one combination of prior and reward model, so that every prior and every reward
model is met by several planners; in `make test-all` every planner meets every prior and every reward model. A planner
may refuse a belief, but then when the agent is made and with a message.
"""

from __future__ import annotations

import numpy as np
import pytest

import bamdp
from bamdp.registry import PLANNERS, make_planner
from bamdp.testing import _facts, check_planner
from conformance_cases import (
    BY_PAIR,
    COVER,
    MASK,
    OBJECTIVES,
    PRIORS,
    REWARDS,
    SMALL,
    SQUARE,
    TERMINAL,
    A,
    S,
    agent_of,
    environment,
    possible,
)


def check(name: str, prior: str, rewards: str) -> None:
    refusal = None
    try:
        agent = agent_of(name, prior, rewards)
    except (ValueError, TypeError) as error:
        refusal = str(error)
    if refusal is not None:
        assert len(refusal) > 40, f"{name} refuses {prior}/{rewards} without saying why"
        return
    check_planner(
        agent.planner,
        environment(rewards),
        prior=PRIORS[prior],
        rewards=REWARDS[rewards],
        objective="episode" if prior == "models" else OBJECTIVES.get(rewards, "episode"),
    )
    with pytest.raises(ValueError, match="terminal"):
        agent.act(3)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        agent.plan(4)


@pytest.mark.parametrize(("name", "prior", "rewards"), COVER)
def test_planner_keeps_its_promises(name, prior, rewards):
    check(name, prior, rewards)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prior", "rewards"), [case for case in SQUARE if case not in COVER])
def test_planner_keeps_its_promises_everywhere(name, prior, rewards):
    check(name, prior, rewards)


TREES = (
    "adaptive-dss",
    "dss-pi",
    "dss-rtdp",
    "fhts",
    "sparse-sampling",
    "bayesian-sparse-sampling",
    "bamcp",
    "bauct",
    "bfs3",
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prior", "rewards"), [c for c in filter(possible, SQUARE) if c[0] in TREES])
def test_the_tree_of_a_plan_is_that_of_the_decision_whatever_is_believed(name, prior, rewards):
    agent = agent_of(name, prior, rewards)
    bamdp.simulate(agent, environment(rewards), 15, seed=5)
    before = _facts(agent.belief)
    plan = agent.plan(0, tree=True)
    assert repr(plan) == repr(agent.plan(0))
    values = [c.value for c in plan.candidates if not np.isnan(c.value)]
    assert plan.tree.value[plan.tree.children(0)].tolist() == values
    for old, new in zip(before, _facts(agent.belief)):
        assert np.array_equal(old, new), "looking leaves the belief as it was"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if named.cls.uses_prior else [])
        for name, named in PLANNERS.items()
    ],
)
def test_a_planner_says_whether_it_looks_at_the_prior(name):
    def actions(alpha: float) -> list[list[int]]:
        agents = (
            bamdp.Agent(
                make_planner(name, SMALL.get(name, {})),
                prior=bamdp.Dirichlet(alpha=alpha),
                rewards=BY_PAIR,
                n_states=S,
                n_actions=A,
                discount=0.9,
                terminal=TERMINAL,
                action_mask=MASK,
                seed=seed,
            )
            for seed in range(5)
        )
        return [bamdp.simulate(agent, environment("pair"), 40, seed=1).actions.tolist() for agent in agents]

    assert (actions(0.02) != actions(20.0)) == PLANNERS[name].cls.uses_prior
