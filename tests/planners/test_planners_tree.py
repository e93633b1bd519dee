"""The tree of a plan explains its decision: same candidates, values that follow from those below, every node there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience, learned

import bamdp
from bamdp.planners.tree import CHOICE, HYPER_STATE, NO_NODE, ROOT

ENDS = {"terminal": [False, False, True]}
BETA = {"rewards": bamdp.BetaBernoulli()}
DSS = {"n_policies": 3, "n_samples": 2, "n_steps": 4, "n_stages": 2}
CASES = {
    "dss-pi": (bamdp.DSS(**DSS), {}),
    "dss-rtdp-ends": (bamdp.DSS(**DSS, generator="rtdp"), ENDS),
    "dss-vi-one-sample": (bamdp.DSS(n_policies=4, n_samples=1, n_steps=6, generator="vi"), {}),
    "dss-mean-leaf": (bamdp.DSS(**DSS, leaf="mean"), {}),
    "dss-upper-leaf": (bamdp.DSS(**DSS, leaf="upper"), {}),
    "dss-beta": (bamdp.DSS(**DSS), BETA),
    "bamcp": (bamdp.BAMCP(n_simulations=200, depth=12), {}),
    "bamcp-ends": (bamdp.BAMCP(n_simulations=100, depth=12), ENDS),
    "bauct-beta": (bamdp.BAUCT(n_simulations=200, depth=8), BETA),
    "bfs3": (bamdp.BFS3(n_successors=3, n_trajectories=6, depth=5), {}),
    "bfs3-zero-beta": (bamdp.BFS3(n_successors=2, n_trajectories=4, depth=4, leaf="zero"), BETA),
    "fhts": (bamdp.FHTS(horizon=3), {}),
    "fhts-ends": (bamdp.FHTS(horizon=3), ENDS),
    "fhts-beta": (bamdp.FHTS(horizon=2), BETA),
    "sparse-sampling": (bamdp.SparseSampling(width=3, depth=2), {}),
    "sparse-sampling-ends": (bamdp.SparseSampling(width=2, depth=3), ENDS),
    "bayesian-sparse-sampling": (bamdp.BayesianSparseSampling(n_trajectories=30, depth=4, width=3), {}),
}


def make(case):
    planner, world = CASES[case]
    return experience(agent_of(planner, world, seed=7))


def same(x, y):
    """Equal to the bit, NaN or not."""
    return np.array_equal(np.array(x, float).view(np.uint64), np.array(y, float).view(np.uint64))


@pytest.mark.parametrize("case", CASES)
def test_the_tree_is_that_of_the_decision(case):
    agent = make(case)
    before, stream = learned(agent.belief), agent.rng.copy()
    plain = agent.plan(0)
    plan = agent.plan(0, tree=True)
    assert repr(plan) == repr(plain)
    assert plain.tree is None
    assert np.array_equal(agent.rng, stream)
    for name, array in learned(agent.belief).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)

    tree = plan.tree
    choices = tree.children(ROOT)
    tried = [c for c in plan.candidates if not np.isnan(c.value)]
    assert [int(a) for a in tree.action[choices]] == [c.action for c in tried]
    assert same(tree.value[choices], [c.value for c in tried])
    assert same(tree.spread[choices], [c.spread for c in tried])
    assert [c.action for c in plan.candidates if c.value == plan.value].count(plan.action) >= 1
    chosen = choices[tree.chosen[choices]]
    assert tree.action[chosen].tolist() == [plan.action]
    assert tree.value[chosen[0]] == plan.value
    assert agent.act(0) == plan.action
    assert agent.plan(1, tree=True).tree.state[ROOT] == 1  # and it goes on


@pytest.mark.parametrize("case", CASES)
def test_nodes_fit_together(case):
    tree = make(case).plan(0, tree=True).tree
    n = len(tree)
    assert tree.complete
    assert tree.parent[ROOT] == NO_NODE
    parent = tree.parent[1:]
    assert (parent < np.arange(1, n)).all()
    assert (parent >= 0).all()
    assert (tree.kind[parent] != tree.kind[1:]).all()
    for node in range(1, n):
        above, path = tree.parent[node], tree.path_of(node)
        if tree.kind[node] == CHOICE:
            assert len(path) == 0
            assert (tree.state[node], tree.depth[node]) == (tree.state[above], tree.depth[above])
        else:
            assert path[-1] == tree.state[node]
            assert tree.depth[node] == tree.depth[above] + len(path)
            assert tree.action[node] == tree.action[above]
    inner = np.unique(parent)
    for node in inner[tree.kind[inner] == HYPER_STATE]:
        below = tree.children(node)
        assert tree.chosen[below].sum() == (1 if tree.chosen[node] else 0)


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith(("bamcp", "bauct"))])
def test_values_are_backed_up(case):
    agent = make(case)
    tree, discount = agent.plan(0, tree=True).tree, agent.discount
    for node in np.unique(tree.parent[1:]):
        below = tree.children(node)
        if tree.kind[node] == HYPER_STATE:
            assert tree.value[node] == pytest.approx(tree.value[below].max(), rel=1e-12)
            continue
        steps = agent.planner.n_steps if isinstance(agent.planner, bamdp.DSS) else 1
        worth = tree.share[below] * (tree.reward[below] + discount**steps * tree.value[below])
        missing = 0.0
        if isinstance(
            agent.planner, bamdp.FHTS
        ):  # next states that end the episode are worth only their reward
            s, a = int(tree.state[node]), int(tree.action[node])
            posterior = agent.belief.copy()
            for step in tree.history(int(node)):
                posterior.observe(*step)
            missing = posterior.expected_reward(s, a) - (tree.share[below] * tree.reward[below]).sum()
        assert tree.value[node] == pytest.approx(worth.sum() + missing, rel=1e-9)


@pytest.mark.parametrize("name", ["bamcp", "bauct-beta"])
def test_visits_of_a_history_are_those_of_its_actions(name):
    tree = make(name).plan(0, tree=True).tree
    for node in np.flatnonzero(tree.kind == HYPER_STATE):
        below = tree.children(node)
        assert tree.count[node] == tree.count[below].sum()
        if len(below):
            mean = (tree.count[below] * tree.value[below]).sum() / tree.count[node]
            assert tree.value[node] == pytest.approx(mean)
    assert tree.count[ROOT] == 200


def test_node_counts_are_those_of_the_formulas():
    def nodes(case):
        tree = make(case).plan(0, tree=True).tree
        return tree.n_hyper_states, len(tree) - tree.n_hyper_states

    N, M, H = 3, 2, 2
    assert nodes("dss-pi") == (
        sum((N * M) ** h for h in range(H + 1)),
        N * sum((N * M) ** h for h in range(H)),
    )
    A, C = 2, 3
    assert nodes("sparse-sampling") == (1 + A * C + (A * C) ** 2, A + A * C * A)
    S = 3  # every next state is possible under a Dirichlet prior
    merged = (
        make("fhts").plan(0).details["merged"]
    )  # met before, in another order: they have nothing below them
    assert nodes("fhts") == (1 + A * S + (A * S) ** 2, A * (1 + A * S + (A * S) ** 2 - merged))
    agent = make("bamcp")
    plan = agent.plan(0, tree=True)
    assert plan.tree.n_hyper_states == plan.details["nodes"]


def test_a_rollout_is_k_steps_of_its_policy():
    agent = make("dss-pi")
    tree = agent.plan(0, tree=True).tree
    assert tree.policies.shape == (3 * (1 + 6), 3)
    for node in np.flatnonzero(tree.kind == HYPER_STATE)[1:]:
        assert len(tree.path_of(node)) == 4
        steps = tree.history(int(node))
        assert [step.s2 for step in steps[-4:]] == tree.path_of(node).tolist()
        assert len(steps) == tree.depth[node]
        discounted = sum(agent.discount**k * step.r for k, step in enumerate(steps[-4:]))
        assert tree.reward[node] == pytest.approx(discounted)
        assert all(later.s == step.s2 for step, later in pairwise(steps))


def test_the_history_of_a_node_gives_its_belief():
    agent = make("fhts-beta")
    tree = agent.plan(0, tree=True).tree
    node = int(np.flatnonzero(tree.depth == 1)[5])
    belief = agent.belief.copy()
    for step in tree.history(node):
        belief.observe(*step)
    assert belief.n_observed == agent.belief.n_observed + 1
    below = tree.children(node)
    expected = [belief.expected_reward(int(tree.state[node]), int(a)) for a in tree.action[below]]
    assert tree.value[below] == pytest.approx(expected)  # one step is left, so Q is the expected reward


def test_merged_hyper_states_have_one_value():
    agent = bamdp.Agent(
        bamdp.FHTS(horizon=3),
        prior=bamdp.Dirichlet(),
        rewards=bamdp.BetaBernoulli(),
        n_states=1,
        n_actions=2,
        discount=0.9,
        seed=0,
    )
    plan = agent.plan(0, tree=True)
    tree = plan.tree
    values: dict[tuple, set[float]] = {}
    for node in np.flatnonzero(tree.kind == HYPER_STATE):
        values.setdefault(tuple(sorted(tree.history(int(node)))), set()).add(float(tree.value[node]))
    assert len(values) == plan.details["hyper_states"] == 15
    assert all(len(found) == 1 for found in values.values())


def test_a_tree_too_large_to_keep_says_how_large_it_is(monkeypatch):
    monkeypatch.setattr("bamdp.planners.tree.MAX_NODES", 40)
    tree = make("fhts").plan(0, tree=True).tree
    assert not tree.complete
    assert 40 <= len(tree) <= 42 < tree.total
    assert "of " in repr(tree)


def test_a_plan_that_is_only_followed_has_no_tree():
    agent = experience(agent_of(bamdp.DSS(**DSS, replan_every=2), {}, seed=7))
    assert agent.plan(0, tree=True).tree is not None
    agent.act(0)
    plan = agent.plan(1, tree=True)
    assert plan.tree is None
    assert plan.details["followed_from_last_plan"]


def test_planners_without_a_tree_say_none():
    assert experience(agent_of(bamdp.ThompsonSampling(), {})).plan(0, tree=True).tree is None


def test_generators_in_python_have_trees_too():
    def solve(mdp, discount):
        return bamdp.policy_iteration(mdp, discount).policy

    agent = experience(agent_of(bamdp.DSS(**DSS, generator=solve), {}, seed=3))
    plan = agent.plan(0, tree=True)
    assert repr(plan) == repr(agent.plan(0))
    assert len(plan.tree.children(ROOT)) == 3


def test_a_copy_of_an_agent_goes_on_bit_for_bit():
    agent = make("dss-pi")
    twin = agent.copy()
    trace = [agent.act(s) for s in (0, 1, 2, 0)]
    agent.observe(0, 1, 0.0, 2)
    assert [twin.act(s) for s in (0, 1, 2, 0)] == trace
    assert twin.belief.n_observed == agent.belief.n_observed - 1
    check_promises(twin, 0)


@pytest.mark.parametrize(
    "planner", [bamdp.DSS(**DSS), bamdp.SparseSampling(width=3, depth=2), bamdp.FHTS(horizon=3)]
)
def test_what_there_was_to_choose_from_is_in_every_tree_however_small(planner, monkeypatch):
    """Nodes come depth first: without that, the choice that was made might be beyond the limit."""
    agent = experience(agent_of(planner, {}, seed=7))
    whole = agent.plan(0, tree=True)
    monkeypatch.setattr("bamdp.planners.tree.MAX_NODES", 2)
    small = agent.plan(0, tree=True)
    assert (small.action, small.value) == (whole.action, whole.value)
    choices = small.tree.children(ROOT)
    assert len(choices) == len(whole.tree.children(ROOT))
    assert small.tree.action[choices[small.tree.chosen[choices]]].tolist() == [small.action]
    assert not small.tree.complete
