"""Logs, forgetting, and what an agent's data say: against direct computation."""

import numpy as np
import pytest

import bamdp
from bamdp.mdp import policy_iteration, total_reward, uniform_policy

S, A = 3, 2
RNG = np.random.default_rng(2)
P, PAID = RNG.dirichlet(np.ones(S), (S, A)), RNG.normal(size=(S, A))


def log(n, P=P, noise=0.2, seed=0):
    rng, s, rows = np.random.default_rng(seed), 0, []
    for _ in range(n):
        a = int(rng.integers(A))
        s2 = int(rng.choice(S, p=P[s, a]))
        rows.append((s, a, float(PAID[s, a] + noise * rng.normal()), s2, False))
        s = s2
    return dict(zip(("state", "action", "reward", "next_state", "terminated"), map(np.array, zip(*rows))))


def agent_of(planner="adaptive-dss", prior="hierarchical", rewards="hierarchical", **options):
    options = {"discount": 0.9, "seed": 0} | options
    return bamdp.Agent(planner, prior=prior, rewards=rewards, n_states=S, n_actions=A, **options)


@pytest.mark.parametrize("planner", ["adaptive-dss", "q-learning"])
def test_a_log_teaches_what_its_steps_would_have(planner):
    pandas = pytest.importorskip("pandas")
    data, agents = log(40), [agent_of(planner) for _ in range(4)]
    for step in zip(*(column.tolist() for column in data.values())):
        agents[0].observe(*step)
    agents[1].observe_many(data)
    agents[2].observe_many(pandas.DataFrame(data))
    agents[3].observe_many(*data.values())
    for agent in agents[1:]:
        assert agent.belief.n_observed == 40
        assert [agent.act(s) for s in range(S)] == [agents[0].act(s) for s in range(S)]


def test_a_log_does_not_use_up_the_horizon_and_is_learned_as_a_whole_or_not_at_all():
    agent, data = agent_of(discount=None, horizon=50), log(10)
    agent.observe_many(data)
    assert agent.steps_left == 50
    bad = {**data, "next_state": np.append(data["next_state"][:-1], 7)}
    with pytest.raises(ValueError, match="transition 9: next state"):
        agent.observe_many(bad)
    assert agent.belief.n_observed == 10
    assert len(agent.history) == 10
    for wrong, words in (({"state": [0]}, "no column 'action'"), ({**data, "reward": [1.0]}, "one length")):
        with pytest.raises(ValueError, match=words):
            agent.observe_many(wrong)


def test_what_was_learned_is_that_of_the_mean_model():
    agent = agent_of()
    agent.observe_many(log(60))
    model = agent.mean_model()
    solution = policy_iteration(model, 0.9)
    assert np.allclose(model.dense()[1, 0], agent.belief.predictive(1, 0))
    assert np.allclose(agent.q_values(), solution.q_values, atol=1e-6)
    assert np.array_equal(agent.policy(), solution.policy)


@pytest.mark.parametrize("planner", ["adaptive-dss", "q-learning"])
def test_forgetting_leaves_an_agent_that_saw_only_what_is_kept(planner):
    data, agent, twin = log(50), agent_of(planner), agent_of(planner)
    agent.observe_many(data)
    agent.forget(keep=20)
    twin.observe_many({name: column[-20:] for name, column in data.items()})
    assert np.array_equal(agent.belief.predictive(0, 0), twin.belief.predictive(0, 0))
    assert agent.belief.expected_reward(1, 1) == twin.belief.expected_reward(1, 1)
    assert [agent.act(s) for s in range(S)] == [twin.act(s) for s in range(S)]


def test_the_check_is_silent_for_systems_of_the_prior_and_speaks_where_it_does_not_fit():
    fitting = agent_of(prior="dirichlet")
    fitting.observe_many(log(150))
    assert fitting.check().fits
    drifting, first, second = agent_of(prior="dirichlet"), log(75), log(75, P=P[:, ::-1], seed=1)
    drifting.observe_many({name: np.concatenate([first[name], second[name]]) for name in first})
    assert not drifting.check().fits
    assert "changes over time" in str(drifting.check())
    model = bamdp.FiniteMDP(np.tile([0.8, 0.1, 0.1], (S, A, 1)), PAID)
    wrong = agent_of(prior=bamdp.FiniteModels([model]), rewards=None)
    for _ in range(60):
        wrong.observe(0, 0, PAID[0, 0], 1)
    assert not wrong.check().fits
    assert "surprise" in str(wrong.check())
    assert "too few" in str(agent_of().check())


def test_exploring_is_worth_what_enumeration_says():
    """One state; action 0 is known to pay 0.5, action 1 pays 0 or 1, Beta(1, 1): one try, then the better one."""
    discount = 0.9
    agent = bamdp.Agent(
        "thompson",
        prior="flat",
        rewards=bamdp.BetaBernoulli(),
        n_states=1,
        n_actions=2,
        discount=discount,
    )
    for r in [1.0, 0.0] * 2000:
        agent.observe(0, 0, r, 0)
    mean = 0.5
    after = [max(m, mean) / (1 - discount) for m in ((1 + 1) / 3, 1 / 3)]
    explore = 0.5 + discount * np.mean(after)
    exploit = mean / (1 - discount)
    assert agent.value_of_exploring(0) == pytest.approx(explore - exploit, abs=0.1)
    for r in [1.0, 0.0] * 2000:
        agent.observe(0, 1, r, 0)
    assert agent.value_of_exploring(0) == pytest.approx(0.0, abs=0.02)


def test_a_summary_counts_what_was_not_tried_and_warns_below_random_play():
    env = bamdp.make_env("machine")
    lazy = bamdp.simulate(
        bamdp.Agent.for_env(env, "random", rewards="hierarchical", seed=0), env, 2000, seed=0
    )
    summary = lazy.summary()
    visited = 3 * len(set(lazy.states.tolist()))
    assert summary.pairs == visited
    assert summary.untried == visited - len(set(zip(lazy.states.tolist(), lazy.actions.tolist())))
    expected = total_reward(env.mdp, 0, 2000, uniform_policy(env.mdp))
    assert summary.random_total == pytest.approx(expected, rel=0.1)
    good = bamdp.simulate(bamdp.Agent.for_env(env, seed=0), env, 500, seed=0)
    assert not good.summary().below_random
    assert "warning" not in str(good.summary())
    assert "\n" not in repr(good)
    bad = bamdp.Run(*_bad_run())
    assert bad.summary().below_random
    assert "warning: this is less than random play" in str(bad.summary())


def _bad_run():
    """Two arms, each tried; the worse one is kept."""
    actions = np.array([1] * 10 + [0] * 90)
    return np.zeros(100, int), actions, np.where(actions == 1, 1.0, 0.0), np.zeros(100, bool), np.zeros(100)
