"""Generators of policies: functions of the model, the start state and the random numbers, and of nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import bamdp
from bamdp._kernels.random import new_rng
from bamdp._kernels.solve import new_solver
from bamdp.generators import BOUNDS, PI, RTDP, VI, generate
from bamdp.mdp import FiniteMDP, evaluate_policy, policy_iteration

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_generator.py"
DISCOUNT = 0.9


def users_generator():
    """The compiled generator of the example."""
    spec = importlib.util.spec_from_file_location("own_generator", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Nearsighted()


GENERATORS = {
    "pi": PI(),
    "vi": VI(),
    "rtdp": RTDP(),
    "few trials": RTDP(depth=4, n_trials=3),
    "other bound": RTDP(depth=4, n_trials=3, bound="rewards"),
    "user": users_generator(),
}


def random_model(seed, n_states=8, n_actions=3, *, ends=False, shift=0.0):
    """Rows of three outcomes, rewards without ties."""
    rng = np.random.default_rng(seed)
    transitions = np.zeros((n_states, n_actions, n_states))
    for row in transitions.reshape(-1, n_states):
        row[rng.choice(n_states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    rewards = rng.random((n_states, n_actions)) + shift
    return FiniteMDP(transitions, rewards, terminal=[n_states - 1] if ends else None)


def solver_for(mdp):
    return new_solver(mdp.n_states, len(mdp.rows.index))


def policy_of(generator, mdp, start, solver, seed=0):
    generate(generator.parameters(), mdp.rows, mdp.space, DISCOUNT, start, solver, new_rng(seed))
    return np.where(mdp.terminal, 0, solver.policy)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("name", GENERATORS)
def test_a_policy_does_not_depend_on_what_was_solved_before(name, ends):
    generator = GENERATORS[name]
    for seed in range(20):
        mdp = random_model(seed, ends=ends)
        alone = policy_of(generator, mdp, 0, solver_for(mdp), seed)
        used = solver_for(mdp)
        for other in range(3):
            policy_of(generator, random_model(100 * seed + other, ends=ends), other, used, other)
        np.testing.assert_array_equal(policy_of(generator, mdp, 0, used, seed), alone)


@pytest.mark.parametrize("generator", ["pi", "vi", "rtdp"])
def test_a_decision_does_not_depend_on_the_decisions_before(generator):
    planner = bamdp.DSS(n_policies=3, n_samples=2, n_steps=6, n_stages=2, generator=generator)
    mdp = random_model(0)
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=0.3),
        rewards=mdp.rewards,
        n_states=8,
        n_actions=3,
        discount=DISCOUNT,
        seed=0,
    )
    for step in range(30):
        agent.act(step % 8)
    rng = new_rng(1)
    used = planner.plan(agent.memory, agent.belief, 0, rng.copy())
    fresh = planner.plan(planner.start(agent.belief, DISCOUNT), agent.belief, 0, rng.copy())
    assert used == fresh


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("shift", [0.0, -5.0])
@pytest.mark.parametrize("ends", [False, True])
def test_values_of_rtdp_are_upper_bounds_from_the_start(bound, shift, ends):
    for seed in range(10):
        mdp = random_model(seed, ends=ends, shift=shift)
        solver = solver_for(mdp)
        policy_of(RTDP(depth=1, n_trials=1, bound=bound), mdp, 0, solver)
        best = policy_iteration(mdp, DISCOUNT).values
        assert (solver.values >= best - 1e-9).all()
        assert (solver.values[mdp.terminal] == 0.0).all()
        highest = mdp.expected_rewards[~mdp.terminal].max()
        largest = highest if ends and highest < 0.0 else highest / (1.0 - DISCOUNT)
        live = solver.values[~mdp.terminal]
        assert (live <= largest + 1e-9).all()
        if bound == "rmax":  # most states were not touched
            assert np.isclose(live, largest, rtol=1e-12).sum() >= 3


def test_the_bound_of_rewards_is_at_most_that_of_the_highest():
    mdp = random_model(3)
    values = {}
    for bound in BOUNDS:
        solver = solver_for(mdp)
        policy_of(RTDP(depth=1, n_trials=1, bound=bound), mdp, 0, solver)
        values[bound] = solver.values
    assert (values["rewards"] <= values["rmax"] + 1e-12).all()
    assert (values["rewards"] < values["rmax"] - 1e-3).any()


@pytest.mark.parametrize("ends", [False, True])
def test_rtdp_that_settles_is_optimal_from_its_start(ends):
    for seed in range(10):
        mdp = random_model(seed, ends=ends)
        policy = policy_of(RTDP(depth=30, n_trials=10_000, tol=1e-6), mdp, 2, solver_for(mdp))
        loss = policy_iteration(mdp, DISCOUNT).values[2] - evaluate_policy(mdp, policy, DISCOUNT).values[2]
        assert loss <= 1e-6 / (1.0 - DISCOUNT)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"depth": 0}, "depth must be at least 1"),
        ({"n_trials": 2.5}, "n_trials must be a whole number"),
        ({"bound": "rmx"}, "did you mean 'rmax'"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_bad_parameters_of_rtdp_are_refused(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RTDP(**bad)
