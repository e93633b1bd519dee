"""Random play: uniform over what is allowed, and nothing else."""

import math

import numpy as np
from planner_checks import agent_of, check_promises, experience

from bamdp.planners.q_learning import Random


def test_every_allowed_action_is_as_likely():
    """Five standard errors, fixed seed: a correct program fails one in 1.7 million per action."""
    agent = agent_of(Random(), {"n_actions": 5, "action_mask": [[True, False, True, True, True]] * 3})
    n = 20_000
    counts = np.bincount([agent.act(1) for _ in range(n)], minlength=5)
    assert counts[1] == 0
    p = np.array([0.25, 0.0, 0.25, 0.25, 0.25])
    assert np.all(np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p)))


def test_does_not_care_what_was_seen():
    fresh, old = agent_of(Random(), {}), experience(agent_of(Random(), {}))
    assert [fresh.act(0) for _ in range(50)] == [old.act(0) for _ in range(50)]


def test_its_plans_list_what_is_allowed_without_values():
    plan = agent_of(Random(), {"action_mask": [[True, True], [False, True], [True, True]]}).plan(1)
    assert plan.action == 1
    assert [c.action for c in plan.candidates] == [1]
    assert math.isnan(plan.value)
    assert math.isnan(plan.candidates[0].value)


def test_keeps_the_promises_of_a_planner(tmp_path):
    check_promises(experience(agent_of(Random(), {})), 0, tmp_path)
