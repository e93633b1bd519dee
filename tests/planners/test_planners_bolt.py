"""BOLT against value iteration over every choice of (action, hoped-for successor)."""

import numpy as np
import pytest
from dense_models import full_alpha, mean_model, models, priors
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.bayes_greedy import BayesGreedy
from bamdp.planners.bolt import BOLT

S, A = 6, 3
RNG = np.random.default_rng(5)
WORLD = {"n_states": S, "n_actions": A, "rewards": RNG.random((S, A))}
BY_NEXT = {**WORLD, "rewards": RNG.normal(size=(S, A, S))}
PRIORS = {name: prior for name, prior in priors(S, A).items() if "finite" not in name}


def brute_force(belief, rewards, c, eta, discount):
    """Q [S, A]: value iteration over all pairs (action, successor that the posterior allows)."""
    P, _ = mean_model(belief)
    weight = (eta / (c + eta))[:, :, None]
    terminal, allowed = belief.space.terminal, belief.space.allowed
    V = np.zeros(S)
    while True:
        worth = (
            np.broadcast_to(rewards if rewards.ndim == 3 else rewards[:, :, None], (S, A, S)) + discount * V
        )
        hope = np.where(P > 0, worth, -np.inf).max(axis=2)
        q = (1 - weight[:, :, 0]) * (P * worth).sum(axis=2) + weight[:, :, 0] * hope
        q = np.where(allowed, q, -np.inf)
        new = np.where(terminal, 0.0, q.max(axis=1))
        if np.abs(new - V).max() < 1e-12:
            return q
        V = new


def check(agent, rewards, c, tol=1e-5):
    q = brute_force(agent.belief, np.asarray(rewards), c, agent.planner.eta, agent.discount)
    for s in np.flatnonzero(~agent.belief.space.terminal):
        plan = agent.plan(int(s))
        assert [k.value for k in plan.candidates] == pytest.approx(q[s][np.isfinite(q[s])], abs=tol)
        assert agent.act(int(s)) == plan.action == q[s].argmax()
    return q


@pytest.mark.parametrize("world", [WORLD, BY_NEXT], ids=["R(s,a)", "R(s,a,s')"])
@pytest.mark.parametrize("name", ["dirichlet", "full"])
def test_solves_the_optimistic_model_exactly(name, world):
    for eta in (0.5, 3.0, 20.0):
        agent = agent_of(BOLT(eta=eta, tol=1e-8), world, prior=PRIORS[name])
        alpha = full_alpha(S, A) if name == "full" else np.full((S, A, S), 0.3)
        for n in (0, 10, 60):
            experience(agent, n, seed=n)
            c = alpha.sum(axis=2) + agent_counts(agent)
            check(agent, world["rewards"], c)


def agent_counts(agent):
    """Observations of each pair, as the belief keeps them."""
    return agent.belief.transitions.counts.rows[:, 3].reshape(S, A)


def test_for_dirichlet_rows_a_hope_is_as_good_as_the_observations():
    eta = 4
    agent = experience(agent_of(BOLT(eta=eta, tol=1e-9), WORLD), 30)
    for s in range(S):
        plan = agent.plan(s)
        agent.act(s)
        values = agent.memory.workspace.solver.values
        for candidate in plan.candidates:
            best = -np.inf
            for s2 in range(S):
                after = agent.belief.copy()
                for _ in range(eta):
                    after.observe(s, candidate.action, 0.0, s2)
                best = max(best, after.predictive(s, candidate.action) @ values)
            reward = WORLD["rewards"][s, candidate.action]
            assert candidate.value == pytest.approx(reward + agent.discount * best, abs=1e-6)
            assert plan.details["hopes"][candidate.action]["state"] == values.argmax()


def test_the_count_of_the_sparse_prior_is_the_harmonic_mean_over_support_sizes():
    agent = experience(agent_of(BOLT(eta=2.0, tol=1e-8), WORLD, prior=PRIORS["sparse"]), 40)
    alpha = agent.belief.prior.alpha
    c = np.zeros((S, A))
    for row, (start, k0, _, n) in enumerate(agent.belief.transitions.counts.rows):
        p = agent.belief.predictive(row // A, row % A)
        if n:  # ν(i seen) = (α + n_i) E[1/(kα+n)]
            s2, n_i = agent.belief.transitions.counts.pool[start]
            c[row // A, row % A] = (alpha + n_i) / p[s2]
        else:
            weights = np.arange(1, S + 1.0) ** -2
            c[row // A, row % A] = weights.sum() / (weights / (alpha * np.arange(1, S + 1))).sum()
        assert 0 < k0 <= n or n == 0
    check(agent, WORLD["rewards"], c)


def test_a_case_by_hand():
    # alpha = 1 on two states, nothing seen, eta = 2: hoped-for state 1 pays 1 for ever.
    world = {"n_states": 2, "n_actions": 1, "rewards": [0.0, 1.0]}
    agent = agent_of(BOLT(eta=2.0, tol=1e-10), world, prior=bamdp.Dirichlet(alpha=1.0), discount=0.5)
    # P~(1) = (1 + 2)/(2 + 2) = 3/4 in both: V0 = E/2, V1 = 1 + E/2 with E = V0/4 + 3 V1/4 = 3/2
    assert agent.plan(0).value == pytest.approx(0.75)
    assert agent.plan(1).value == pytest.approx(1.75)
    assert agent.plan(0).details["hopes"][0] == {"state": 1, "weight": 0.5}


def test_without_artificial_observations_it_is_greedy_and_with_them_never_below():
    greedy = experience(agent_of(BayesGreedy(tol=1e-9), WORLD), 40)
    none = experience(agent_of(BOLT(eta=0.0, tol=1e-9), WORLD), 40)
    some = experience(agent_of(BOLT(eta=1.0, tol=1e-9), WORLD), 40)
    more = experience(agent_of(BOLT(eta=5.0, tol=1e-9), WORLD), 40)
    for s in range(S):
        q = [[c.value for c in agent.plan(s).candidates] for agent in (greedy, none, some, more)]
        assert q[0] == pytest.approx(q[1], abs=1e-6)
        assert (np.array(q[2]) > np.array(q[1])).all()
        assert (np.array(q[3]) > np.array(q[2])).all()


def test_optimism_vanishes_as_pairs_are_tried():
    greedy, agent = (agent_of(p, WORLD) for p in (BayesGreedy(tol=1e-9), BOLT(eta=3.0, tol=1e-9)))
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(S), size=(S, A))
    gaps = []
    for n in (0, 30, 3000):
        for s in range(S):
            for a in range(A):
                nexts = rng.choice(S, size=n, p=P[s, a])
                for x in (greedy, agent):
                    x.belief.observe_many([s] * n, [a] * n, [0.0] * n, nexts)
        gaps.append(agent.plan(0).value - greedy.plan(0).value)
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 0.02 * gaps[0]


def test_impossible_successors_are_not_hoped_for():
    alpha = np.zeros((3, 2, 3))
    alpha[0, 0, 0] = alpha[0, 0, 1] = alpha[0, 1, 0] = alpha[1, :, 1] = alpha[2, :, 2] = 1.0
    world = {"rewards": [0.0, 1.0, 100.0]}
    agent = agent_of(BOLT(eta=9.0, tol=1e-9), world, prior=bamdp.Dirichlet(alpha=alpha), discount=0.5)
    hopes = agent.plan(0).details["hopes"]
    assert hopes[0]["state"] == 1
    assert hopes[1]["state"] == 0


def test_a_hope_that_turned_out_impossible_is_given_up():
    only_one = bamdp.SparseDirichlet(alpha=1.0, p_k=(1.0,))
    agent = agent_of(BOLT(eta=2.0), {"rewards": [0.0, 0.0, 1.0]}, prior=only_one)
    agent.act(0)
    assert agent.plan(0).details["hopes"][0]["state"] == 2
    agent.observe(0, 0, 0.0, 1)
    assert agent.plan(0).details["hopes"][0]["state"] == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist(sign):
    mask = np.ones((S, A), bool)
    mask[0, 1:] = mask[4, 0] = False
    rewards = sign * WORLD["rewards"]
    rewards[~mask] = 99.0
    world = {**WORLD, "rewards": rewards, "terminal": np.arange(S) == 5, "action_mask": mask}
    agent = experience(agent_of(BOLT(eta=3.0, tol=1e-8), world), 40)
    check(agent, rewards, S * 0.5 + agent_counts(agent))
    assert [c.action for c in agent.plan(0).candidates] == [0]
    if sign < 0:  # to end is then the best that can happen
        assert agent.plan(0).details["hopes"][0]["state"] == 5


@pytest.mark.parametrize("name", PRIORS)
def test_keeps_the_promises_of_a_planner(name, tmp_path):
    agent = experience(agent_of(BOLT(), WORLD, prior=PRIORS[name]), 20)
    check_promises(agent, 1, tmp_path)
    experience(agent, 5, seed=3)
    check_promises(agent, 2, tmp_path)


def test_learned_rewards_enter_by_their_mean():
    agent = agent_of(BOLT(), {"n_states": 1, "n_actions": 2, "rewards": bamdp.BetaBernoulli()}, discount=0.5)
    agent.observe(0, 0, 1.0, 0)
    plan = check_promises(agent, 0)
    assert [c.value for c in plan.candidates] == pytest.approx([2 / 3 + 2 / 3, 1 / 2 + 2 / 3], abs=1e-3)


def test_priors_without_counts_are_refused():
    with pytest.raises(ValueError, match="counts"):
        agent_of(BOLT(), WORLD, prior=bamdp.FiniteModels(models(S, A, 2)))
