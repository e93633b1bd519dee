"""One rule of defaults: what is named applies to all planners, and otherwise each uses its own."""

from __future__ import annotations

import numpy as np
import pytest

import bamdp
from bamdp.lab.reading import make_study
from bamdp.runs import new_agent
from bamdp.settings import make_setting

RUNS, STEPS = 2, 30


@pytest.mark.parametrize("planner", ["adaptive-dss", "thompson", "bayes-greedy"])
def test_a_planner_uses_its_own_defaults_everywhere(planner):
    env = bamdp.from_mdp(bamdp.make_env("chain").mdp, start=0, horizon=STEPS, name="short")
    totals = []
    for r in range(RUNS):
        agent = bamdp.Agent.for_env(env, planner, seed=(0, r))
        totals.append(bamdp.simulate(agent, env, seed=(0, r)).total_reward)
    assert bamdp.run_many(env, planner, runs=RUNS).totals.tolist() == totals
    found = bamdp.compare(env, [planner, "random"], runs=RUNS)
    assert found.totals[planner].tolist() == totals


def test_what_is_named_applies_to_all():
    planners = ["adaptive-dss:n_simulations=8", "thompson"]
    found = bamdp.compare("chain", planners, runs=RUNS, steps=STEPS, prior="flat", discount=0.9)
    for planner in planners:
        one = bamdp.run_many("chain", planner, runs=RUNS, steps=STEPS, prior="flat", discount=0.9)
        assert np.array_equal(found.totals[planner], one.totals)


def test_studies_follow_it_and_parameters_of_the_prior_change_the_planners_own():
    tables = {"environments": ["chain"], "algorithms": {"adaptive-dss": {}, "thompson": {"prior.beta": 9}}}
    priors = [dict(cell.configurations[0]) for cell in make_study(tables).cells]
    assert priors == [
        {"prior": "sparse", "prior.alpha": 0.5, "prior.beta": 4, "discount": "auto"},
        {"prior": "sparse", "prior.alpha": 0.2, "prior.beta": 9, "discount": 0.95},
    ]


@pytest.mark.parametrize("discount", [None, 0.9, "horizon", "auto"])
def test_a_setting_and_for_env_plan_for_the_same(discount):
    env = bamdp.make_env("grid5")
    for planner in ("adaptive-dss", "thompson"):
        agent = bamdp.Agent.for_env(env, planner, discount=discount)
        same = new_agent(make_setting(env, planner, discount=discount), env)
        assert (agent.discount, agent.horizon, agent.reach) == (same.discount, same.horizon, same.reach)
