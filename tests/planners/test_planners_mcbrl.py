"""MCBRL: both bounds against NumPy on the very models that were drawn."""

import numpy as np
import pytest
from dense_models import action_values, dense_row, models, optimal_values, priors
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.mcbrl import MCBRL

S, A, K = 6, 3, 4
WORLD = {"n_states": S, "n_actions": A, "rewards": np.random.default_rng(5).random((S, A))}
PRIORS = priors(S, A)
KINDS = [(name, "known") for name in ("dirichlet", "full", "sparse", "mixture", "finite")]
KINDS += [("dirichlet", "learned"), ("finite mixture", "learned")]
SMALL = 1e-5


def drawn(agent):
    """(P [K, S, A, S], r [K, S, A]) of the models at hand."""
    models = agent.memory.models
    P = np.array([[dense_row(rows, row, S) for row in range(S * A)] for rows in models])
    return P.reshape(-1, S, A, S), np.array([rows.reward.reshape(S, A) for rows in models])


def stages(agent):
    """The smallest T with γ^T r_max/(1−γ) <= tol, for rewards that are not negative."""
    T = 1
    while agent.discount**T * WORLD["rewards"].max() / (1 - agent.discount) > agent.planner.tol:
        T += 1
    return T


def backward_induction(P, r, discount, n_stages, low, terminal):
    """(Q of the first stage [K, S, A], the policies of all stages, first to last)."""
    V = np.where(terminal, 0.0, low) * np.ones((len(P), 1))
    policies = []
    for _ in range(n_stages):
        Q = np.array([action_values(P[k], r[k], V[k], discount) for k in range(len(P))])
        policy = Q.mean(axis=0).argmax(axis=1)
        V = np.where(terminal, 0.0, Q[:, np.arange(S), policy])
        policies.insert(0, policy)
    return Q, policies


@pytest.mark.parametrize("name", ["dirichlet", "sparse", "finite"])
def test_upper_is_the_mean_of_the_models_optimal_action_values(name):
    agent = experience(agent_of(MCBRL(n_models=K, tol=1e-9), WORLD, prior=PRIORS[name]), 30)
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        P, r = drawn(agent)
        V = np.array([optimal_values(P[k], r[k], agent.discount) for k in range(K)])
        Q = np.array([action_values(P[k], r[k], V[k], agent.discount)[s] for k in range(K)])
        assert [c.value for c in plan.candidates] == pytest.approx(Q.mean(axis=0), abs=SMALL)
        assert [c.spread for c in plan.candidates] == pytest.approx(Q.std(axis=0, ddof=1), abs=SMALL)
        assert plan.action == Q.mean(axis=0).argmax()
        assert plan.details["upper"] == pytest.approx(V[:, s].mean(), abs=SMALL)


@pytest.mark.parametrize("name", ["dirichlet", "sparse", "finite"])
def test_lower_is_backward_induction_on_all_models_at_once(name):
    agent = experience(agent_of(MCBRL(n_models=K, policy="lower", tol=1e-6), WORLD, prior=PRIORS[name]), 30)
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        P, r = drawn(agent)
        Q, _ = backward_induction(P, r, agent.discount, stages(agent), 0.0, np.zeros(S, bool))
        assert [c.value for c in plan.candidates] == pytest.approx(Q[:, s].mean(axis=0), abs=SMALL)
        assert plan.details["lower"] == pytest.approx(Q[:, s].mean(axis=0).max(), abs=SMALL)
        assert plan.action == Q[:, s].mean(axis=0).argmax()


def test_lower_is_what_its_policy_earns_on_average_over_the_models():
    agent = experience(agent_of(MCBRL(n_models=K, policy="lower", tol=1e-6), WORLD), 30)
    plan = agent.plan(2)
    agent.act(2)
    P, r = drawn(agent)
    _, policies = backward_induction(P, r, agent.discount, stages(agent), 0.0, np.zeros(S, bool))
    earned = 0.0
    for k in range(K):  # forwards: the law of the state under the policies, stage by stage
        law, weight = np.eye(S)[2], 1.0
        for policy in policies:
            earned += weight * law @ r[k][np.arange(S), policy] / K
            law = law @ P[k][np.arange(S), policy]
            weight *= agent.discount
    assert plan.details["lower"] == pytest.approx(earned, abs=SMALL)


@pytest.mark.parametrize("name", ["dirichlet", "sparse", "finite"])
@pytest.mark.parametrize("shift", [0.0, -2.0])
def test_lower_is_at_most_upper(name, shift):
    world = {**WORLD, "rewards": WORLD["rewards"] + shift}
    gaps = []
    for policy in ("upper", "lower"):
        agent = agent_of(MCBRL(n_models=K, policy=policy, tol=1e-7), world, prior=PRIORS[name])
        for n in range(8):
            experience(agent, max(0, n - 4), seed=n)
            for s in range(S):
                details = agent.plan(s).details
                gaps.append(details["upper"] - details["lower"])
            agent.act(0)
    assert min(gaps) >= -SMALL
    assert max(gaps) > 0.01


def test_a_coarse_tolerance_keeps_the_lower_bound_below():
    world = {**WORLD, "rewards": WORLD["rewards"] - 2.0}
    exact = experience(agent_of(MCBRL(n_models=K, policy="lower", tol=1e-8), world), 20)
    coarse = experience(agent_of(MCBRL(n_models=K, policy="lower", tol=1.0), world), 20)
    for s in range(S):
        assert coarse.plan(s).details["lower"] <= exact.plan(s).details["lower"] + SMALL


@pytest.mark.parametrize("policy", ["upper", "lower"])
def test_with_one_model_both_bounds_are_its_optimum(policy):
    agent = experience(agent_of(MCBRL(n_models=1, policy=policy, tol=1e-7), WORLD), 20)
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        P, r = drawn(agent)
        optimum = optimal_values(P[0], r[0], agent.discount)
        assert plan.details["lower"] == pytest.approx(optimum[s], abs=SMALL)
        assert plan.details["upper"] == pytest.approx(optimum[s], abs=SMALL)


def test_with_a_known_model_the_policy_is_optimal():
    truth = models(S, A, 1, seed=3)
    best = bamdp.policy_iteration(truth[0], 0.9)
    for policy in ("upper", "lower"):
        agent = agent_of(
            MCBRL(policy=policy, tol=1e-8), {**WORLD, "rewards": None}, prior=bamdp.FiniteModels(truth)
        )
        for s in range(S):
            assert agent.plan(s).value == pytest.approx(best.values[s], abs=SMALL)
            assert agent.act(s) == best.policy[s]


@pytest.mark.parametrize("resample, expected", [("step", 12), (5, 3), ("episode", 1)])
def test_draws_when_it_is_told_to(resample, expected):
    agent = agent_of(MCBRL(n_models=2, resample=resample), WORLD)
    streams = set()
    for _ in range(12):
        agent.act(0)
        streams.add(agent.rng.tobytes())
    assert len(streams) == expected
    agent.observe(0, 0, 0.0, 2, True)
    agent.act(0)
    assert agent.rng.tobytes() not in streams


def test_discount_draws_with_probability_one_minus_the_discount():
    agent = agent_of(MCBRL(n_models=1, resample="discount"), WORLD, discount=0.8)
    draws = 0
    for _ in range(400):
        agent.act(0)
        draws += agent.memory.age == 1
    assert 50 < draws < 110


@pytest.mark.parametrize("policy", ["upper", "lower"])
def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist(policy):
    mask = np.ones((S, A), bool)
    mask[0, 1:] = mask[4, 0] = False
    rewards = np.ones((S, A))
    rewards[~mask] = 99.0
    world = {**WORLD, "rewards": rewards, "terminal": np.arange(S) == 5, "action_mask": mask}
    agent = experience(agent_of(MCBRL(n_models=K, policy=policy, tol=1e-7), world), 40)
    assert [c.action for c in agent.plan(0).candidates] == [0]
    for s in range(5):
        plan = agent.plan(s)
        assert mask[s, agent.act(s)]
        assert plan.details["lower"] <= plan.details["upper"] + SMALL < 1 / (1 - agent.discount)


@pytest.mark.parametrize("policy", ["upper", "lower"])
@pytest.mark.parametrize("name, rewards", KINDS)
def test_keeps_the_promises_of_a_planner(policy, name, rewards, tmp_path):
    world = {**WORLD, "rewards": WORLD["rewards"] if rewards == "known" else bamdp.BetaBernoulli()}
    agent = experience(agent_of(MCBRL(n_models=3, policy=policy, resample=3), world, prior=PRIORS[name]), 20)
    check_promises(agent, 1, tmp_path)
    experience(agent, 5, seed=3)
    check_promises(agent, 2, tmp_path)


def test_a_discount_of_zero_is_the_reward_at_hand():
    for policy in ("upper", "lower"):
        agent = agent_of(MCBRL(policy=policy), WORLD, discount=0.0)
        assert agent.act(1) == WORLD["rewards"][1].argmax()
        assert agent.plan(1).value == pytest.approx(WORLD["rewards"][1].max())
