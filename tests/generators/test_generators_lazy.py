"""Models that are drawn where they are looked at: the law of whole ones, whatever the size of the world."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import bamdp
from bamdp._kernels.random import new_rng
from bamdp._kernels.rows import Rows
from bamdp.generators import RTDP, lazy
from bamdp.generators.lazy import (
    END,
    N_TOUCHED,
    UNKNOWN,
    begin_model,
    draw_rows,
    new_lazy_models,
    open_state,
)
from bamdp.planners import dss

DISCOUNT = 0.95
GRID = bamdp.make_env("grid5")


@pytest.fixture
def always_lazy(monkeypatch):
    monkeypatch.setattr(dss, "WHOLE_MODELS", 0)


def agent_in(env, generator, prior=None, *, seed=0, **shape):
    shape = {"n_policies": 2, "n_samples": 2, "n_steps": 10, "n_stages": 2, **shape}
    return bamdp.Agent(
        bamdp.DSS(generator=generator, **shape),
        prior=prior or bamdp.SparseDirichlet(),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=DISCOUNT,
        seed=seed,
    )


def is_lazy(agent):
    return agent.memory.workspace.lazy is not None


def with_experience(agent, env, steps=150):
    rng = np.random.default_rng(0)
    transitions, s = env.mdp.dense(), 0
    for _ in range(steps):
        a = int(rng.integers(env.n_actions))
        s2 = int(rng.choice(env.n_states, p=transitions[s, a]))
        agent.belief.observe(s, a, float(env.mdp.expected_rewards[s, a]), s2)
        s = s2
    return agent


def drawn_model(belief, rng, order):
    """All rows of a lazily drawn model as dense arrays, looked at in this order; and its bundle."""
    models = new_lazy_models(belief, 1, DISCOUNT)
    rows = Rows(models.span[0], models.index, models.prob, models.background[0], models.reward[0])
    S, A = belief.n_states, belief.n_actions
    transitions, rewards = np.zeros((S, A, S)), np.zeros((S, A))
    begin_model(models, belief.arrays, 0, rng)
    for s in order:
        draw_rows(models, belief.arrays, 0, s, rng)
        for a in range(A):
            begin, end = rows.span[s * A + a]
            np.add.at(transitions[s, a], rows.index[begin:end], rows.prob[begin:end])
            transitions[s, a] += rows.background[s * A + a] / S
            rewards[s, a] = rows.reward[s * A + a]
    return transitions, rewards, models


def test_all_rows_are_of_the_one_model_that_was_chosen():
    """By enumeration: three models, weights 0.5, 0.3, 0.2; χ² on 3000 draws, false alarm 1e-4."""
    rng = np.random.default_rng(0)
    truth = [bamdp.FiniteMDP(rng.dirichlet(np.ones(4), size=(4, 2)), rng.random((4, 2))) for _ in range(3)]
    belief = bamdp.FiniteModels(truth, [0.5, 0.3, 0.2]).belief(4, 2)
    state = new_rng(1)
    counts = np.zeros(3)
    for _ in range(3000):
        transitions, rewards, _ = drawn_model(belief, state, rng.permutation(4).tolist())
        which = [
            i
            for i, mdp in enumerate(truth)
            if np.allclose(mdp.dense(), transitions) and np.allclose(mdp.expected_rewards, rewards)
        ]
        assert len(which) == 1
        counts[which[0]] += 1
    assert stats.chisquare(counts, 3000 * np.array([0.5, 0.3, 0.2])).pvalue > 1e-4
    assert stats.chisquare(counts, 3000 * np.array([0.4, 0.3, 0.3])).pvalue < 1e-4  # it can fail


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_rows_and_rewards_have_the_law_of_whole_models_and_are_independent(order):
    """KS on a probability and a reward of each state, and correlations between rows: false alarm 1e-3 in all."""
    belief = bamdp.Dirichlet(alpha=0.7).belief(3, 1, rewards=bamdp.BetaBernoulli())
    for s, r, s2 in ((0, 1.0, 1), (0, 0.0, 2), (1, 1.0, 1), (2, 1.0, 0)):
        belief.observe(s, 0, r, s2)
    n, state = 2000, new_rng(2)
    lazily = [drawn_model(belief, state, order)[:2] for _ in range(n)]
    whole = [belief.sample(state) for _ in range(n)]
    columns = []
    for s in range(3):
        columns += [[P[s, 0, 1] for P, _ in lazily], [R[s, 0] for _, R in lazily]]
        others = [[m.dense()[s, 0, 1] for m in whole], [m.expected_rewards[s, 0] for m in whole]]
        for ours, theirs in zip(columns[-2:], others):
            assert stats.ks_2samp(ours, theirs).pvalue > 1e-4
    assert stats.ks_2samp(columns[0], columns[2]).pvalue < 1e-4  # it can fail: other rows have other laws
    correlations = np.corrcoef(columns)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < stats.norm.isf(1e-4 / 30) / np.sqrt(n)


def test_a_row_that_is_looked_at_twice_is_the_same():
    belief = bamdp.SparseDirichlet().belief(6, 2)
    rng = new_rng(3)
    _, _, models = drawn_model(belief, rng, range(6))
    end = int(models.number[0, END])
    before = [models.prob[:end].copy(), models.index[:end].copy(), models.span.copy(), rng.copy()]
    for s in range(6):
        open_state(models, belief.arrays, DISCOUNT, False, 0, s, rng)
    after = [models.prob[:end], models.index[:end], models.span, rng]
    assert models.number[0, END] == end
    assert all(np.array_equal(x, y) for x, y in zip(before, after))


@pytest.mark.parametrize("bound", ["rmax", "rewards"])
def test_plans_have_the_law_of_plans_with_whole_models(bound, monkeypatch):
    """KS on root values, 1500 plans each, false alarm 1e-4 a case."""
    values = {}
    for name, whole, n_trials in (("lazy", 0, 6), ("whole", 1000, 6), ("other", 1000, 60)):
        monkeypatch.setattr(dss, "WHOLE_MODELS", whole)
        agent = with_experience(agent_in(GRID, RTDP(depth=8, n_trials=n_trials, bound=bound)), GRID)
        assert is_lazy(agent) == (name == "lazy")
        rng = new_rng(len(name))
        plan = agent.planner.plan
        values[name] = [plan(agent.memory, agent.belief, 0, rng).value for _ in range(1500)]
    assert stats.ks_2samp(values["lazy"], values["whole"]).pvalue > 1e-4
    if bound == "rmax":  # it can fail
        assert stats.ks_2samp(values["lazy"], values["other"]).pvalue < 1e-4


def test_a_recorded_plan_is_the_plan_and_changes_no_belief(always_lazy):
    agent = with_experience(agent_in(GRID, RTDP(depth=8, n_trials=5)), GRID)
    before = [agent.belief.predictive(s, a) for s in range(25) for a in range(4)]
    for state in range(0, 25, 4):
        plan, recorded = agent.plan(state), agent.plan(state, tree=True)
        assert plan.candidates == recorded.candidates
        assert plan.action == recorded.action
        tree = recorded.tree
        for node in range(len(tree.parent)):  # actions along every path are known
            assert all(step.a >= 0 for step in tree.history(node))
        agent.act(state)
    after = [agent.belief.predictive(s, a) for s in range(25) for a in range(4)]
    np.testing.assert_array_equal(before, after)


def test_what_is_touched_does_not_depend_on_the_size_of_the_world():
    found = []
    for size in (40, 80):
        env = bamdp.make_env(f"grid:size={size}")
        agent = agent_in(env, "rtdp", bamdp.Dirichlet.local(env.mdp), seed=5, n_stages=1)
        start = (size // 2) * size + size // 2  # far from all walls
        plan, models = agent.plan(start), agent.memory.workspace.lazy
        agent.act(start)
        where = models.touched[0, : models.number[0, N_TOUCHED]]
        found.append((plan.candidates, len(where), sorted((where // size - size // 2).tolist())))
        assert len(where) < 1000
    assert found[0] == found[1]


def test_a_policy_is_followed_where_it_is_known(always_lazy):
    agent = agent_in(GRID, RTDP(depth=5, n_trials=3), replan_every=4, n_stages=1)
    agent.act(0)
    best = agent.memory.tree.best
    known = np.flatnonzero(best != UNKNOWN)
    assert 0 in known
    assert len(known) > 0
    assert agent.plan(int(known[-1])).details["followed_from_last_plan"]
    unknown = int(np.flatnonzero(best == UNKNOWN)[0])
    assert not agent.plan(unknown).details["followed_from_last_plan"]
    action = agent.act(unknown)
    assert 0 <= action < 4


def test_a_saved_agent_goes_on_as_if_nothing_had_happened(always_lazy, tmp_path):
    agent = with_experience(agent_in(GRID, RTDP(depth=5, n_trials=3), replan_every=3, n_stages=1), GRID)
    agent.act(0)
    agent.save(tmp_path / "agent.npz")
    again = bamdp.Agent.load(tmp_path / "agent.npz")
    assert [agent.act(s) for s in range(25)] == [again.act(s) for s in range(25)]


def test_rewards_without_a_bound_have_whole_models():
    env = bamdp.make_env("grid:size=40")
    known = {"n_states": env.n_states, "n_actions": 4, "discount": DISCOUNT}
    planner = bamdp.DSS(generator="rtdp")
    for rewards, expected in ((bamdp.NormalGamma(), False), (bamdp.BetaBernoulli(), True)):
        agent = bamdp.Agent(planner, prior=bamdp.SparseDirichlet(), rewards=rewards, **known)
        assert is_lazy(agent) == expected


def test_a_state_that_turns_out_to_end_episodes_is_worth_nothing(always_lazy):
    """Action 0 leads to what looked promising until episodes ended there; action 1 pays a little for ever."""
    rewards = np.array([[0.0, 0.1], [0.0, 0.0], [1.0, 1.0]])
    agent = bamdp.Agent(
        bamdp.DSS(n_policies=4, n_samples=4, n_steps=20, generator="rtdp"),
        prior=bamdp.SparseDirichlet(),
        rewards=rewards,
        n_states=3,
        n_actions=2,
        discount=DISCOUNT,
        seed=0,
    )
    for _ in range(20):
        agent.observe(0, 1, 0.1, 0)
        agent.observe(0, 0, 0.0, 1, True)
    assert {agent.act(0) for _ in range(20)} == {1}


def test_costs_are_bounded_by_what_an_end_is_worth():
    mdp = bamdp.FiniteMDP([[[0.5, 0.5]], [[0.0, 1.0]]], rewards=[[-2.0], [-1.0]], terminal=[1])
    belief = bamdp.Dirichlet().belief(2, 1, rewards=mdp.rewards, terminal=[1])
    bound = new_lazy_models(belief, 1, 0.9).bound
    assert bound[: lazy.MEAN].tolist() == [-1.0, 0.0]
    again = bamdp.Dirichlet().belief(2, 1, rewards=mdp.rewards)
    assert new_lazy_models(again, 1, 0.9).bound[0] == pytest.approx(-10.0)


def test_sparse_prior_counts_are_the_dense_ones():
    rng = np.random.default_rng(0)
    alpha = rng.random((5, 2, 5)) * (rng.random((5, 2, 5)) < 0.5)
    alpha[:, :, 0] += 0.1
    priors = [bamdp.Dirichlet(alpha=alpha), bamdp.Dirichlet(alpha=csr_array(alpha.reshape(10, 5)))]
    models = [prior.belief(5, 2).sample(0) for prior in priors]
    np.testing.assert_allclose(models[0].dense(), models[1].dense(), rtol=1e-12)
    assert priors[1] == bamdp.Dirichlet(alpha=csr_array(alpha.reshape(10, 5)))
    assert priors[1] == priors[0]
    assert priors[1] != bamdp.Dirichlet(alpha=alpha + 0.1)
    assert hash(priors[1]) == hash(bamdp.Dirichlet(alpha=csr_array(alpha.reshape(10, 5))))


def test_a_local_prior_allows_the_neighbours_and_nothing_else(tmp_path):
    belief = bamdp.Dirichlet.local(GRID.mdp, 0.5).belief(25, 4)
    reachable = GRID.mdp.dense().sum(axis=1) > 0.0
    for s in range(25):
        for a in range(4):
            expected = reachable[s] / reachable[s].sum()
            np.testing.assert_allclose(belief.predictive(s, a), expected)
    belief.observe(0, 0, 0.0, 1)
    belief.save(tmp_path / "belief.npz")
    again = bamdp.Belief.load(tmp_path / "belief.npz")
    np.testing.assert_array_equal(again.predictive(0, 0), belief.predictive(0, 0))
    assert again.prior == belief.prior


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (csr_array([[1.0, -1.0], [1.0, 0.0]]), "alpha of row 0, state 1 must be at least 0"),
        (csr_array([[1.0, np.nan], [1.0, 0.0]]), "alpha of row 0, state 1 must be at least 0"),
        (csr_array([[1.0, 1.0], [0.0, 0.0]]), "alpha of row 1 is all zero"),
    ],
)
def test_bad_sparse_counts_are_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        bamdp.Dirichlet(alpha=alpha)


def test_sparse_counts_of_another_size_are_refused():
    prior = bamdp.Dirichlet(alpha=csr_array(np.ones((4, 2))))
    with pytest.raises(ValueError, match=r"does not fit \[S\*A, S\] for S=3, A=2"):
        prior.belief(3, 2)
