"""FHTS against brute-force dynamic programming in rationals, and against bandit theory."""

import os
import subprocess
import sys
from fractions import Fraction as F
from functools import lru_cache

import numpy as np
import pytest
from exact_beliefs import World, bayes_optimal, beta_bernoulli, dirichlet, finite, mixture, sparse
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.fhts import FHTS

GAMMA = F(9, 10)
REWARDS = [[F(0), F(1, 10)], [F(1), F(0)], [F(-1), F(1, 2)]]
MODELS = [
    [[[F(1, 2), F(1, 2), 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]], [[0, F(1, 4), F(3, 4)], [1, 0, 0]]],
    [[[0, 1, 0], [F(1, 3), F(1, 3), F(1, 3)]], [[0, 0, 1], [0, 1, 0]], [[0, F(1, 2), F(1, 2)], [1, 0, 0]]],
    [[[1, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, F(1, 2), F(1, 2)]], [[1, 0, 0], [F(1, 2), 0, F(1, 2)]]],
]
FULL = [[[1, 2, 0], [0, 1, 3]], [[1, 1, 1], [2, 0, 0]], [[0, 1, 1], [1, 0, 2]]]


def by_pair(s, a, s2):
    return REWARDS[s][a]


def by_next(s, a, s2):
    return REWARDS[s][a] + s2 * F(1, 4)


def table(rewards):
    return [[[float(rewards(s, a, s2)) for s2 in range(3)] for a in range(2)] for s in range(3)]


def known_models(rewards=None):
    R = rewards or [REWARDS] * len(MODELS)
    return [bamdp.FiniteMDP(np.array(P, float), np.array(r, float)) for P, r in zip(MODELS, R)]


OWN = [REWARDS, REWARDS, [[F(0), F(1, 10)], [F(2), F(0)], [F(-1), F(1, 2)]]]
half = lambda s, a, s2: F(1, 2)
SPARSE_HALF = bamdp.SparseDirichlet(alpha=0.5, beta=2.0)
CASES = {
    "dirichlet": (bamdp.Dirichlet(alpha=0.5), dirichlet(half), {"rewards": by_pair}),
    "dirichlet, a number a row": (
        bamdp.Dirichlet(alpha=[[0.25, 1.0], [0.5, 0.5], [2.0, 0.75]]),
        dirichlet(lambda s, a, s2: [[F(1, 4), F(1)], [F(1, 2), F(1, 2)], [F(2), F(3, 4)]][s][a]),
        {"rewards": by_pair},
    ),
    "dirichlet, rewards by next state": (
        bamdp.Dirichlet(alpha=0.5),
        dirichlet(half),
        {"rewards": by_next},
    ),
    "dirichlet with zeros": (
        bamdp.Dirichlet(alpha=FULL),
        dirichlet(lambda s, a, s2: F(FULL[s][a][s2])),
        {"rewards": by_next},
    ),
    "sparse": (SPARSE_HALF, sparse(F(1, 2), 2), {"rewards": by_next}),
    "models": (
        bamdp.FiniteModels(known_models()),
        finite([(P, None) for P in MODELS]),
        {"rewards": by_pair},
    ),
    "models with their own rewards": (
        bamdp.FiniteModels(known_models(OWN), weights=[1, 2, 1]),
        finite(list(zip(MODELS, OWN)), [F(1, 4), F(1, 2), F(1, 4)]),
        {"outcomes": sorted({r for R in OWN for row in R for r in row}), "own": True},
    ),
    "mixture": (
        bamdp.Mixture([bamdp.Dirichlet(alpha=0.5), SPARSE_HALF], weights=[1, 3]),
        mixture([dirichlet(half), sparse(F(1, 2), 2)], [F(1, 4), F(3, 4)]),
        {"rewards": by_pair},
    ),
}


def build(name, horizon, *, data=(), terminal=(), forbidden=()):
    prior, evidence, how = CASES[name]
    own = how.get("own", False)
    world = World(
        3,
        2,
        evidence,
        rewards=how.get("rewards"),
        outcomes=how.get("outcomes"),
        terminal=terminal,
        allowed=lambda s, a: (s, a) not in forbidden,
        data=data,
    )
    mask = np.ones((3, 2), bool)
    for pair in forbidden:
        mask[pair] = False
    rewards = None if own else table(how["rewards"])
    if rewards is not None and how["rewards"] is by_pair:
        rewards = [[r[0] for r in row] for row in rewards]
    agent = bamdp.Agent(
        FHTS(horizon),
        prior=prior,
        n_states=3,
        n_actions=2,
        rewards=rewards,
        terminal=np.isin(np.arange(3), list(terminal)),
        action_mask=mask,
        discount=float(GAMMA),
    )
    for s, a, r, s2 in data:
        agent.observe(s, a, float(r), s2)
    return agent, world


def assert_exact(agent, world, s, horizon):
    plan = agent.plan(s)
    exact, nodes = bayes_optimal(world, s, horizon, GAMMA)
    assert {c.action for c in plan.candidates} == set(exact)
    for c in plan.candidates:
        assert c.value == pytest.approx(float(exact[c.action]), abs=1e-12)
        assert c.spread == 0.0
    assert plan.value == pytest.approx(float(max(exact.values())), abs=1e-12)
    assert float(exact[plan.action]) == pytest.approx(float(max(exact.values())), abs=1e-12)
    assert plan.details["hyper_states"] == nodes
    return plan


@pytest.mark.parametrize("name", CASES)
def test_equals_brute_force_over_hyper_states(name):
    for horizon in (1, 2, 3):
        agent, world = build(name, horizon)
        for s in range(3 if horizon < 3 else 1):
            assert_exact(agent, world, s, horizon)


@pytest.mark.parametrize("name", ["dirichlet", "sparse", "models", "mixture"])
def test_equals_brute_force_after_data(name):
    data = [(0, 0, 0, 1), (1, 1, 0, 1), (0, 0, 0, 1), (2, 1, F(1, 2), 0)]
    agent, world = build(name, 3, data=data)
    assert_exact(agent, world, 0, 3)


@pytest.mark.parametrize("name", ["dirichlet", "sparse"])
def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist(name):
    agent, world = build(name, 3, terminal=[2], forbidden=[(1, 0)])
    assert_exact(agent, world, 0, 3)
    plan = assert_exact(agent, world, 1, 3)
    assert [c.action for c in plan.candidates] == [1]


def test_longer_horizons_equal_brute_force():
    prior = bamdp.Dirichlet(alpha=1.0)
    rewards = [[0.0, 0.25], [1.0, 0.0]]
    world = World(2, 2, dirichlet(lambda s, a, s2: F(1)), rewards=lambda s, a, s2: F(rewards[s][a]))
    agent = bamdp.Agent(FHTS(5), prior=prior, n_states=2, n_actions=2, rewards=rewards, discount=0.9)
    assert_exact(agent, world, 0, 5)


def test_learned_rewards_equal_brute_force():
    world = World(
        2, 2, dirichlet(lambda s, a, s2: F(1)), outcomes=[0, 1], reward_evidence=beta_bernoulli(F(1), F(2))
    )
    agent = bamdp.Agent(
        FHTS(3),
        prior=bamdp.Dirichlet(alpha=1.0),
        n_states=2,
        n_actions=2,
        rewards=bamdp.BetaBernoulli(a=1.0, b=2.0),
        discount=0.9,
    )
    assert_exact(agent, world, 0, 3)


def test_merging_leaves_values_alone_and_visits_fewer_nodes():
    world = World(2, 2, dirichlet(lambda s, a, s2: F(1)), rewards=lambda s, a, s2: F(s + a, 3))
    agent = bamdp.Agent(
        FHTS(4),
        prior=bamdp.Dirichlet(alpha=1.0),
        n_states=2,
        n_actions=2,
        rewards=[[0.0, 1 / 3], [1 / 3, 2 / 3]],
        discount=0.9,
    )
    plan = agent.plan(0)
    exact, nodes = bayes_optimal(world, 0, 4, GAMMA, merge=False)
    assert nodes == 1 + 4 + 16 + 64
    assert plan.details["hyper_states"] < nodes
    assert [c.value for c in plan.candidates] == pytest.approx([float(q) for q in exact.values()], abs=1e-12)


# --- bandits ---------------------------------------------------------------------------------------------


def bandit_values(arms, horizon, discount):
    """Q of each arm by dynamic programming over (successes, failures), arms as Beta parameters."""

    @lru_cache(None)
    def q(arms, i, steps):
        a, b = arms[i]
        p = a / (a + b)
        if steps == 1:
            return p
        won = (*arms[:i], (a + 1, b), *arms[i + 1 :])
        lost = (*arms[:i], (a, b + 1), *arms[i + 1 :])
        return p * (1 + discount * best(won, steps - 1)) + (1 - p) * discount * best(lost, steps - 1)

    @lru_cache(None)
    def best(arms, steps):
        return max(q(arms, i, steps) for i in range(len(arms)))

    return [q(tuple(arms), i, horizon) for i in range(len(arms))]


def bandit_agent(horizon, discount, *, n_arms=2, a=1.0, b=1.0, data=()):
    agent = bamdp.Agent(
        FHTS(horizon),
        prior=bamdp.Dirichlet(),
        n_states=1,
        n_actions=n_arms,
        rewards=bamdp.BetaBernoulli(a=a, b=b),
        discount=discount,
    )
    for arm, wins, losses in data:
        n = wins + losses
        rewards = np.repeat([1.0, 0.0], [wins, losses])
        agent.belief.observe_many(np.zeros(n, int), np.full(n, arm), rewards, np.zeros(n, int))
    return agent


@pytest.mark.parametrize("horizon", [1, 2, 5, 10])
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99])
def test_bernoulli_bandit_has_the_bayes_optimal_value(horizon, discount):
    plan = bandit_agent(horizon, discount).plan(0)
    exact = bandit_values([(1, 1), (1, 1)], horizon, discount)
    assert [c.value for c in plan.candidates] == pytest.approx(exact, abs=1e-12)


def test_bandits_with_data_have_the_bayes_optimal_value():
    plan = bandit_agent(7, 0.95, n_arms=3, a=0.5, b=1.5, data=[(0, 3, 1), (1, 0, 2)]).plan(0)
    exact = bandit_values([(3.5, 2.5), (0.5, 3.5), (0.5, 1.5)], 7, 0.95)
    assert [c.value for c in plan.candidates] == pytest.approx(exact, abs=1e-12)


def test_two_uniform_arms_twice_undiscounted_win_thirteen_twelfths():
    agent = bandit_agent(2, 0.9)
    memory = FHTS(2).start(agent.belief, 1.0)
    assert FHTS(2).plan(memory, agent.belief, 0, agent.rng).value == pytest.approx(13 / 12, abs=1e-12)


def test_bandit_hyper_states_are_counted_by_their_sufficient_statistics():
    plan = bandit_agent(10, 0.9).plan(0)
    expected = sum((n + 1) * (m + 1) for n in range(10) for m in range(10 - n))
    assert plan.details["hyper_states"] == expected


def test_an_unknown_arm_is_worth_its_gittins_index():
    """For Beta(1,1) and γ = 0.9 the index is 0.7029 (Gittins's table); an arm seen 10^6 times is as good as known."""
    for known_wins, choice in ((695_000, 0), (710_000, 1)):
        agent = bandit_agent(50, 0.9, data=[(1, known_wins, 1_000_000 - known_wins)])
        assert agent.act(0) == choice


def test_information_is_worth_more_the_longer_it_can_be_used():
    """A slightly better known arm is best for one step, the unknown one for many."""
    choices = [bandit_agent(h, 0.95, data=[(1, 55, 45)]).act(0) for h in (1, 2, 20)]
    assert choices[0] == 1
    assert choices[-1] == 0
    assert choices == sorted(choices, reverse=True)


# --- the table, the protocol, bad input --------------------------------------------------------------------


def test_too_many_hyper_states_are_refused_with_a_cure():
    agent = bandit_agent(10, 0.9)
    needed = agent.plan(0).details["hyper_states"]
    before = agent.belief.expected_reward(0, 0)
    memory = agent.memory
    assert FHTS(10, max_hyper_states=needed).plan(memory, agent.belief, 0, agent.rng).value > 0
    with pytest.raises(RuntimeError, match="lower the horizon"):
        FHTS(10, max_hyper_states=needed - 1).plan(memory, agent.belief, 0, agent.rng)
    assert agent.belief.expected_reward(0, 0) == before


def test_rewards_that_cannot_be_enumerated_are_refused(monkeypatch):
    belief = bamdp.Dirichlet().belief(2, 1, rewards=bamdp.BetaBernoulli())
    monkeypatch.setattr(type(belief.rewards), "n_outcomes", 0)
    with pytest.raises(ValueError, match="enumerate"):
        FHTS(2).start(belief, 0.9)
    monkeypatch.setattr(type(belief.rewards), "n_outcomes", None)
    with pytest.raises(ValueError, match="BetaBernoulli"):
        FHTS(2).start(belief, 0.9)


@pytest.mark.parametrize("name", CASES)
def test_keeps_the_promises_of_a_planner(name, tmp_path):
    agent, _ = build(name, 3, data=[(0, 0, 0, 1), (2, 1, F(1, 2), 0)])
    check_promises(agent, 1, tmp_path)


def test_ties_go_to_the_lowest_action():
    agent = agent_of(FHTS(2), {"rewards": np.zeros((3, 2))})
    assert experience(agent, 0).act(0) == 0


SCRIPT = """
import bamdp
from bamdp.planners.fhts import FHTS
world = dict(rewards=[0.0, 0.5, 1.0], n_states=3, n_actions=2)
agent = bamdp.Agent(FHTS(4), prior=bamdp.SparseDirichlet(), discount=0.9, **world)
plan = agent.plan(0)
print(plan.details["hyper_states"], *[c.value for c in plan.candidates])
"""


def test_runs_the_same_without_the_compiler():
    def run(**env):
        out = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        return [float(x) for x in out.stdout.split()]

    assert run(NUMBA_DISABLE_JIT="1") == pytest.approx(run(), abs=1e-12)
