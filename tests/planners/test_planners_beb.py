"""BEB against value iteration on the mean model with the bonus written out by hand."""

from fractions import Fraction as F
from math import comb

import numpy as np
import pytest
from dense_models import action_values, dense_row, mean_model, models, optimal_values, priors
from exact_beliefs import rising
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.bayes_greedy import EVERY_ROW, BayesGreedy
from bamdp.planners.bonuses import BEB

S, A = 6, 3
WORLD = {"n_states": S, "n_actions": A, "rewards": np.random.default_rng(5).random((S, A))}
PRIORS = {name: prior for name, prior in priors(S, A).items() if "finite" not in name}
KINDS = [(name, "known") for name in PRIORS] + [("dirichlet", "learned")]


def visits(agent, history):
    out = np.zeros((agent.belief.n_states, agent.belief.n_actions, agent.belief.n_states), int)
    for s, a, s2 in history:
        out[s, a, s2] += 1
    return out


def lived(agent, n, seed=0):
    """Random transitions that the prior allows; returns their counts [S, A, S]."""
    rng = np.random.default_rng(seed)
    history = []
    for _ in range(n):
        s, a = int(rng.integers(S)), int(rng.integers(A))
        s2 = int(rng.choice(S, p=agent.belief.predictive(s, a)))
        agent.observe(s, a, 1.0, s2)
        history.append((s, a, s2))
    return visits(agent, history)


def sparse_count(alpha, beta, counts):
    """1/E[1/(kα+n)] under the posterior of the support's size, in rationals."""
    k0, n = int((counts > 0).sum()), int(counts.sum())
    size = len(counts)
    m = [
        F(1, k**beta) * F(comb(size - k0, k - k0), comb(size, k)) / rising(k * alpha, n) if k >= k0 else F(0)
        for k in range(1, size + 1)
    ]
    return float(sum(m) / sum(w / (k * alpha + n) for k, w in enumerate(m, 1)))


def concentrations(prior, counts):
    """n₀ + n of each pair, [S, A]."""
    n = counts.sum(axis=2)
    if isinstance(prior, bamdp.SparseDirichlet):
        alpha = F(prior.alpha).limit_denominator(100)
        return np.array([[sparse_count(alpha, int(prior.beta), x) for x in row] for row in counts])
    if hasattr(prior.alpha, "start"):  # listed counts, row by row
        n0 = np.add.reduceat(prior.alpha.alpha, prior.alpha.start[:-1]).reshape(S, A)
    else:
        n0 = S * np.broadcast_to(np.asarray(prior.alpha), (S, A))
    return n0 + n


def mixed(belief, prior, counts):
    weights = belief.weights
    return 1.0 / sum(w / concentrations(part, counts) for w, part in zip(weights, prior.priors))


@pytest.mark.parametrize("name, rewards", KINDS)
def test_solves_the_mean_model_with_the_bonus(name, rewards):
    b, discount = 1.7, 0.9
    world = {**WORLD, "rewards": WORLD["rewards"] if rewards == "known" else bamdp.BetaBernoulli()}
    agent = agent_of(BEB(bonus=b, tol=1e-9), world, prior=PRIORS[name], discount=discount)
    counts = np.zeros((S, A, S), int)
    for seed in range(4):
        prior = agent.belief.prior
        n = mixed(agent.belief, prior, counts) if name == "mixture" else concentrations(prior, counts)
        P, r = mean_model(agent.belief)
        r = r + b / (1 + n)
        q = action_values(P, r, optimal_values(P, r, discount), discount)
        for s in range(S):
            plan = agent.plan(s)
            assert [c.value for c in plan.candidates] == pytest.approx(q[s], abs=1e-6)
            assert [plan.details["bonus"][a] for a in range(A)] == pytest.approx(b / (1 + n[s]), rel=1e-9)
            assert agent.act(s) == plan.action == q[s].argmax()
        counts += lived(agent, 15, seed)


def test_a_case_by_hand():
    # one state, two actions, discount 1/2: V = max(0 + 2/(1+1), 0.1 + 2/(1+2)) * 2 = 2
    agent = agent_of(
        BEB(bonus=2.0, tol=1e-12),
        {"n_states": 1, "n_actions": 2, "rewards": [[0.0, 0.1]]},
        prior=bamdp.Dirichlet(alpha=1.0),
        discount=0.5,
    )
    agent.observe(0, 1, 0.1, 0)
    plan = agent.plan(0)
    assert plan.action == 0
    assert [c.value for c in plan.candidates] == pytest.approx([1 + 1, 0.1 + 2 / 3 + 1])


def test_the_bonus_is_not_truncated():
    agent = agent_of(BEB(bonus=2.5), WORLD, prior=bamdp.Dirichlet(alpha=1 / S))
    assert agent.plan(0).details["bonus"][0] == pytest.approx(2.5 / 2)


@pytest.mark.parametrize("name", ["dirichlet", "sparse"])
def test_the_bonus_vanishes_as_a_pair_is_tried(name):
    agent = agent_of(BEB(bonus=3.0), WORLD, prior=PRIORS[name])
    last = np.inf
    for _ in range(5):
        bonus = agent.plan(0).details["bonus"][1]
        assert bonus < last
        last = bonus
        for s2 in (2, 3, 2, 2):
            agent.observe(0, 1, 0.0, s2)
    agent.belief.observe_many([0] * 5000, [1] * 5000, [0.0] * 5000, [2] * 5000)
    assert agent.plan(0).details["bonus"][1] == pytest.approx(3.0 / 5021, rel=0.01)


def test_without_a_bonus_it_is_greedy():
    plain, greedy = (
        experience(agent_of(p, WORLD), 40) for p in (BEB(bonus=0.0, tol=1e-9), BayesGreedy(tol=1e-9))
    )
    for s in range(S):
        values = [c.value for c in greedy.plan(s).candidates]
        assert [c.value for c in plain.plan(s).candidates] == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("name", ["dirichlet", "full", "sparse"])
def test_a_model_kept_row_by_row_is_the_model_written_at_once(name):
    agent = agent_of(BEB(), WORLD, prior=PRIORS[name])
    rng = np.random.default_rng(0)
    s, one_by_one = 0, 0
    for _ in range(200):
        a = agent.act(s)
        a = a if rng.random() < 0.5 else int(rng.integers(A))
        s2 = int(rng.choice(S, p=agent.belief.predictive(s, a)))
        agent.observe(s, a, 0.0, s2)
        one_by_one += agent.memory.changed == s * A + a
        s = s2
    assert one_by_one == 200
    agent.act(s)
    rows = agent.memory.workspace.rows
    kept = [[dense_row(rows, row, S) for row in range(S * A)], rows.reward.copy()]
    agent.memory.changed = EVERY_ROW
    agent.act(s)
    rows = agent.memory.workspace.rows
    written = [[dense_row(rows, row, S) for row in range(S * A)], rows.reward]
    for x, y in zip(kept, written):
        assert np.array_equal(x, y)


def test_what_a_belief_learns_from_elsewhere_is_noticed():
    agent = experience(agent_of(BEB(tol=1e-9), WORLD), 10)
    agent.act(0)
    agent.belief.observe(0, 0, 0.0, 3)
    fresh = agent_of(BEB(tol=1e-9), WORLD)
    fresh.belief = agent.belief
    for s in range(S):
        values = [c.value for c in fresh.plan(s).candidates]
        assert [c.value for c in agent.plan(s).candidates] == pytest.approx(values, abs=1e-6)
    agent.act(0)
    P, _ = mean_model(agent.belief)
    assert dense_row(agent.memory.workspace.rows, 0, S) == pytest.approx(P[0, 0])


def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist():
    alpha = np.zeros((3, 2, 3))
    alpha[:, 0, 1] = alpha[:, 1, 2] = 1.0
    world = {
        "rewards": [[1.0, 0.0], [5.0, 5.0], [99.0, 0.5]],
        "terminal": [False, True, False],
        "action_mask": [[True, True], [True, True], [False, True]],
    }
    agent = agent_of(BEB(bonus=2.0, tol=1e-9), world, prior=bamdp.Dirichlet(alpha=alpha), discount=0.5)
    assert [c.value for c in agent.plan(0).candidates] == pytest.approx([1 + 1, 0 + 1 + 0.5 * 3], abs=1e-8)
    only = agent.plan(2)  # 0.5 + 2/(1+1) a step for ever
    assert [c.action for c in only.candidates] == [1]
    assert only.value == pytest.approx(3.0, abs=1e-8)


def test_a_new_terminal_state_is_taken_in():
    agent = agent_of(BEB(tol=1e-9), {**WORLD, "rewards": np.ones((S, A))})
    agent.act(0)
    agent.observe(0, 1, 1.0, 4, True)
    agent.act(0)
    assert agent.memory.workspace.solver.values[4] == 0.0
    assert agent.memory.workspace.rows.reward[4 * A : 5 * A].tolist() == [0.0] * A


@pytest.mark.parametrize("name, rewards", KINDS)
def test_keeps_the_promises_of_a_planner(name, rewards, tmp_path):
    world = {**WORLD, "rewards": WORLD["rewards"] if rewards == "known" else bamdp.BetaBernoulli()}
    agent = experience(agent_of(BEB(), world, prior=PRIORS[name]), 20)
    check_promises(agent, 1, tmp_path)
    experience(agent, 1, seed=3)
    check_promises(agent, 2, tmp_path)


def test_priors_without_counts_are_refused():
    finite = bamdp.FiniteModels(models(S, A, 2))
    for prior in (finite, bamdp.Mixture([bamdp.Dirichlet(), finite])):
        with pytest.raises(ValueError, match="counts"):
            agent_of(BEB(), WORLD, prior=prior)
