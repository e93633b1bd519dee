"""BOSS and SBOSS: the merged MDP, when it is drawn anew, and Thompson sampling as a special case."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from dense_models import (
    action_values,
    dense_row,
    full_alpha,
    models,
    optimal_values,
    priors,
)
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.boss import BOSS, SBOSS

S, A = 6, 3
WORLD = {"n_states": S, "n_actions": A, "rewards": np.random.default_rng(5).random((S, A))}
PRIORS = priors(S, A)
KINDS = [(name, "known") for name in ("dirichlet", "full", "sparse", "mixture", "finite")]
KINDS += [("dirichlet", "learned"), ("finite mixture", "learned")]
BOTH = {"boss": BOSS(n_models=3, known_after=2, tol=1e-8), "sboss": SBOSS(n_models=3, delta=1.0, tol=1e-8)}


def drawn(agent):
    """(P [K, S, A, S], r [K, S, A]) of the models at hand."""
    K, n_states, n_actions = agent.planner.n_models, agent.belief.n_states, agent.belief.n_actions
    rows = agent.memory.workspace.rows
    order = [
        [[(s * K + k) * n_actions + a for a in range(n_actions)] for s in range(n_states)] for k in range(K)
    ]
    P = np.array([[[dense_row(rows, row, n_states) for row in of_s] for of_s in of_k] for of_k in order])
    return P, rows.reward[np.array(order)]


# --- the merged MDP ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", BOTH)
@pytest.mark.parametrize("prior", ["dirichlet", "rows", "full", "sparse", "mixture", "finite"])
def test_the_merged_mdp_has_k_times_a_actions_and_is_worth_at_least_each_model(planner, prior):
    agent = experience(agent_of(BOTH[planner], WORLD, prior=PRIORS[prior]), 30)
    agent.act(0)
    P, r = drawn(agent)
    assert agent.memory.q.shape == (S, 3 * A)
    assert not np.isnan(agent.memory.q).any()
    np.testing.assert_allclose(P.sum(axis=-1), 1.0, atol=1e-9)
    values = agent.memory.workspace.solver.values
    for k in range(3):
        assert (values >= optimal_values(P[k], r[k], agent.discount) - 1e-6).all()
    together = optimal_values(
        P.transpose(1, 0, 2, 3).reshape(S, 3 * A, S), r.transpose(1, 0, 2).reshape(S, 3 * A), agent.discount
    )
    np.testing.assert_allclose(values, together, atol=1e-6)


@pytest.mark.parametrize("planner", BOTH)
def test_plan_shows_each_action_at_its_best_model(planner):
    agent = experience(agent_of(BOTH[planner], WORLD), 30)
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        P, r = drawn(agent)
        values = agent.memory.workspace.solver.values
        q = np.array([action_values(P[k], r[k], values, agent.discount)[s] for k in range(3)])
        assert [c.value for c in plan.candidates] == pytest.approx(q.max(axis=0), abs=1e-6)
        assert [c.spread for c in plan.candidates] == pytest.approx(q.std(axis=0, ddof=1), abs=1e-6)
        assert plan.action == q.max(axis=0).argmax()
        assert plan.details["model"] == q[:, plan.action].argmax()


def test_the_rows_of_one_model_are_drawn_together_where_they_depend_on_each_other():
    pair = models(S, A, 2)
    agent = agent_of(BOSS(n_models=8), {**WORLD, "rewards": None}, prior=bamdp.FiniteModels(pair))
    agent.act(0)
    P, _ = drawn(agent)
    truth = [m.dense() for m in pair]
    which = [[np.allclose(P[k], t) for t in truth] for k in range(8)]
    assert all(any(row) for row in which)
    assert len({tuple(row) for row in which}) == 2


# --- when models are drawn --------------------------------------------------------------------------------


def test_boss_draws_exactly_when_a_pair_becomes_known():
    agent = agent_of(BOSS(n_models=2, known_after=3), WORLD)
    rng = np.random.default_rng(0)
    visits = np.zeros((S, A), int)
    agent.act(0)
    draws = 1
    for _ in range(120):
        s, a, s2 = rng.integers(S), rng.integers(A), rng.integers(S)
        agent.observe(int(s), int(a), 0.0, int(s2))
        visits[s, a] += 1
        draws += visits[s, a] == 3
        agent.act(int(s2))
        assert agent.memory.n_draws == draws
    assert draws > 5


@pytest.mark.parametrize("planner", BOTH)
def test_between_draws_the_models_stay(planner):
    quiet = {"boss": BOSS(known_after=100), "sboss": SBOSS(delta=1e9)}[planner]
    agent = experience(agent_of(quiet, WORLD), 10)
    agent.act(0)
    before, stream = drawn(agent), agent.rng.copy()
    experience(agent, 50, seed=2)
    agent.act(3)
    assert agent.memory.n_draws == 1
    assert np.array_equal(agent.rng, stream)
    for x, y in zip(before, drawn(agent)):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("planner", BOTH)
def test_a_new_terminal_state_calls_for_a_draw(planner):
    quiet = {"boss": BOSS(known_after=100), "sboss": SBOSS(delta=1e9)}[planner]
    agent = agent_of(quiet, WORLD)
    agent.act(0)
    agent.observe(0, 1, 0.0, 2, True)
    agent.act(0)
    assert agent.memory.n_draws == 2
    assert agent.memory.workspace.solver.values[2] == 0.0
    agent.observe(0, 1, 0.0, 2, True)  # known by now
    agent.act(0)
    assert agent.memory.n_draws == 2


def dirichlet_moments(alpha):
    """Mean and standard deviation of each entry of a Dirichlet vector, from the definition."""
    total = alpha.sum()
    mean = alpha / total
    return mean, np.sqrt(mean * (1 - mean) / (total + 1))


def in_spreads(now, then, spread):
    moving = spread > 0
    return float((np.abs(now - then)[moving] / spread[moving]).sum())


@pytest.mark.parametrize("name", ["dirichlet", "full", "sparse"])
def test_sboss_measures_movement_as_computed_by_hand(name):
    alpha = {
        "dirichlet": np.full((S, A, S), 0.3),
        "full": full_alpha(S, A),
        "sparse": np.full((S, A, S), 0.2),
    }[name]
    agent = agent_of(SBOSS(delta=2.0, n_models=2), WORLD, prior=PRIORS[name])
    rng = np.random.default_rng(3)
    now, then = alpha.copy(), alpha.copy()
    agent.act(0)
    draws = 1
    for _ in range(150):
        s, a = int(rng.integers(S)), int(rng.integers(A))
        s2 = int(rng.choice(S, p=now[s, a] / now[s, a].sum()))
        agent.observe(s, a, 0.0, s2)
        now[s, a, s2] += 1
        mean, spread = dirichlet_moments(then[s, a])
        movement = in_spreads(dirichlet_moments(now[s, a])[0], mean, spread)
        assert agent.memory.movement == pytest.approx(movement, rel=1e-9)
        agent.act(s2)
        if movement >= 2.0:
            then = now.copy()
            draws += 1
        assert agent.memory.n_draws == draws
    assert 5 < draws < 75


def test_sboss_measures_movement_by_the_weights_of_a_finite_set():
    three = models(S, A, 3)
    agent = agent_of(
        SBOSS(delta=1e9), {**WORLD, "rewards": np.zeros((S, A))}, prior=bamdp.FiniteModels(three)
    )
    P = np.array([m.dense() for m in three])
    agent.act(0)
    weights, then = np.full(3, 1 / 3), np.full(3, 1 / 3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        s, a = int(rng.integers(S)), int(rng.integers(A))
        s2 = int(rng.choice(S, p=P[0, s, a]))
        agent.observe(s, a, 0.0, s2)
        weights = weights * P[:, s, a, s2]
        weights /= weights.sum()
        mean = then @ P[:, s, a]
        spread = np.sqrt(then @ P[:, s, a] ** 2 - mean**2)
        assert agent.memory.movement == pytest.approx(
            in_spreads(weights @ P[:, s, a], mean, spread), rel=1e-6
        )


def test_an_outcome_that_was_certain_adds_nothing():
    alpha = np.zeros((S, A, S))
    alpha[:, :, 1] = 0.5
    agent = agent_of(SBOSS(delta=0.1), WORLD, prior=bamdp.Dirichlet(alpha=alpha))
    agent.act(0)
    agent.observe(0, 0, 0.0, 1)
    assert agent.memory.movement == 0.0
    agent.act(1)
    assert agent.memory.n_draws == 1


def test_learned_rewards_move_too():
    world = {"n_states": 1, "n_actions": 2, "rewards": bamdp.BetaBernoulli()}
    agent = agent_of(SBOSS(delta=1.0), world)
    agent.act(0)
    agent.observe(0, 1, 1.0, 0)
    assert agent.memory.movement == pytest.approx((2 / 3 - 1 / 2) / math.sqrt(1 / 12))
    agent.observe(0, 1, 1.0, 0)
    assert agent.memory.movement == pytest.approx((3 / 4 - 1 / 2) / math.sqrt(1 / 12))
    for _ in range(8):
        agent.observe(0, 1, 1.0, 0)
    agent.act(0)
    assert agent.memory.n_draws == 2


# --- Thompson sampling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_name", ["chain", "double_loop", "grid5"])
@pytest.mark.parametrize("prior", [bamdp.Dirichlet(alpha=0.1), bamdp.SparseDirichlet()], ids=str)
def test_one_model_drawn_at_every_step_is_thompson_sampling(env_name, prior):
    env = bamdp.make_env(env_name)
    planners = bamdp.ThompsonSampling(resample="step"), SBOSS(n_models=1, delta=0.0)
    size = {"n_states": env.n_states, "n_actions": env.n_actions, "rewards": env.rewards}
    agents = [agent_of(planner, size, prior=prior, discount=0.95) for planner in planners]
    runs = [bamdp.simulate(agent, env, 100, seed=0) for agent in agents]
    assert np.array_equal(runs[0].actions, runs[1].actions)
    assert np.array_equal(agents[0].rng, agents[1].rng)
    assert agents[1].memory.n_draws == 100


# --- promises ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", BOTH)
@pytest.mark.parametrize("prior, rewards", KINDS)
def test_keeps_the_promises_of_a_planner(planner, prior, rewards, tmp_path):
    world = {**WORLD, "rewards": WORLD["rewards"] if rewards == "known" else bamdp.BetaBernoulli()}
    agent = experience(agent_of(BOTH[planner], world, prior=PRIORS[prior]), 20)
    check_promises(agent, 1, tmp_path)
    experience(agent, 5, seed=3)
    check_promises(agent, 2, tmp_path)


@pytest.mark.parametrize("planner", BOTH)
def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist(planner):
    mask = np.ones((S, A), bool)
    mask[0, 1:] = mask[4, 0] = False
    rewards = np.ones((S, A))
    rewards[~mask] = 99.0
    world = {**WORLD, "rewards": rewards, "terminal": np.arange(S) == 5, "action_mask": mask}
    agent = experience(agent_of(BOTH[planner], world), 40)
    assert [c.action for c in agent.plan(0).candidates] == [0]
    for s in range(5):
        assert mask[s, agent.act(s)]
    assert agent.memory.workspace.solver.values[5] == 0.0
    assert agent.memory.workspace.solver.values.max() < 1 / (1 - agent.discount)


SCRIPT = """
import bamdp
from bamdp.planners.boss import SBOSS
env = bamdp.make_env("double_loop")
agent = bamdp.Agent(SBOSS(), prior=bamdp.SparseDirichlet(), rewards=env.rewards, n_states=9, n_actions=2,
                    discount=0.95, seed=1)
run = bamdp.simulate(agent, env, 25, seed=0)
print(run.actions.tolist(), agent.memory.n_draws, round(agent.plan(0).value, 9))
"""


def test_runs_without_the_compiler_to_the_same_end():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 50
