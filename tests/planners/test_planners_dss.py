"""DSS against a slow transcription of Algorithm 2, and the identities that it must satisfy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import bamdp
from bamdp._kernels.random import new_rng

CHAIN = bamdp.make_env("chain")


def small_world(seed: int = 5, n_states: int = 3, n_actions: int = 2) -> bamdp.FiniteMDP:
    rng = np.random.default_rng(seed)
    return bamdp.FiniteMDP(
        rng.dirichlet(np.ones(n_states), size=(n_states, n_actions)), rng.random((n_states, n_actions))
    )


def agent_of(planner, prior, mdp, *, discount=0.9, seed=0, rewards=None, **known):
    rewards = mdp.rewards if rewards is None else rewards
    return bamdp.Agent(
        planner,
        prior=prior,
        rewards=rewards,
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        discount=discount,
        seed=seed,
        **known,
    )


def transcription(belief, s, h, *, N, M, K, H, discount, rng):
    """Algorithm 2 line by line, with copied beliefs instead of undo and with the public solver."""
    if h == H:
        return 0.0, []
    q_values = []
    for _ in range(N):
        policy = bamdp.policy_iteration(belief.sample(rng), discount).policy
        total = 0.0
        for _ in range(M):
            branch, state, c = belief.copy(), s, 1.0
            for _ in range(K):
                a = int(policy[state])
                nxt = int(rng.choice(belief.n_states, p=branch.predictive(state, a)))
                if isinstance(belief.reward_model, bamdp.BetaBernoulli):
                    r = float(rng.random() < branch.expected_reward(state, a))
                else:
                    r = branch.expected_reward(state, a)
                branch.observe(state, a, r, nxt)
                total += c * r
                c *= discount
                state = nxt
            total += (
                c * transcription(branch, state, h + 1, N=N, M=M, K=K, H=H, discount=discount, rng=rng)[0]
            )
        q_values.append(total / M)
    return max(q_values), q_values


@pytest.mark.parametrize(
    ("prior", "rewards"),
    [(bamdp.Dirichlet(alpha=0.5), None), (bamdp.SparseDirichlet(), bamdp.BetaBernoulli())],
    ids=["dirichlet-known", "sparse-beta"],
)
def test_root_values_have_the_law_of_the_transcription(prior, rewards):
    # Two-sample Kolmogorov–Smirnov, false alarm 1e-4 a case. 250 draws see a shift of about 0.4 sd.
    mdp = small_world()
    size = {"N": 2, "M": 2, "K": 3, "H": 2}
    planner = bamdp.DSS(n_policies=2, n_samples=2, n_steps=3, n_stages=2)
    agent = agent_of(planner, prior, mdp, rewards=rewards)
    for s, a, s2 in [(0, 0, 1), (1, 1, 2), (2, 0, 0), (0, 1, 0)]:
        agent.observe(s, a, 1.0 if rewards else mdp.expected_rewards[s, a], s2)
    rng = np.random.default_rng(1)
    slow = [transcription(agent.belief, 0, 0, **size, discount=0.9, rng=rng)[0] for _ in range(250)]
    state = new_rng(2)
    fast = [planner.plan(agent.memory, agent.belief, 0, state).value for _ in range(2000)]
    assert stats.ks_2samp(slow, fast).pvalue > 1e-4
    wrong = bamdp.DSS(n_policies=2, n_samples=2, n_steps=3, n_stages=1)  # the test can fail: one stage less
    memory = wrong.start(agent.belief, 0.9)
    other = [wrong.plan(memory, agent.belief, 0, state).value for _ in range(2000)]
    assert stats.ks_2samp(slow, other).pvalue < 1e-4


def test_python_generators_run_the_same_algorithm():
    # KS, false alarm 1e-4
    mdp = small_world()
    args = {"n_policies": 2, "n_samples": 2, "n_steps": 3, "n_stages": 2}
    values = {}
    for name, generator in (("pi", "pi"), ("python", lambda m, g: bamdp.policy_iteration(m, g).policy)):
        planner = bamdp.DSS(generator=generator, **args)
        agent = agent_of(planner, bamdp.Dirichlet(alpha=0.5), mdp)
        rng = new_rng(3)
        values[name] = [planner.plan(agent.memory, agent.belief, 0, rng).value for _ in range(400)]
    assert stats.ks_2samp(values["pi"], values["python"]).pvalue > 1e-4


@pytest.mark.parametrize(
    "prior", [bamdp.Dirichlet(alpha=0.3), bamdp.SparseDirichlet()], ids=["flat", "sparse"]
)
def test_one_policy_is_thompson_sampling_at_every_step(prior):
    dss = bamdp.DSS(n_policies=1, n_samples=3, n_steps=4)
    for seed, state in itertools.product(range(40), range(3)):
        agents = [
            agent_of(planner, prior, small_world(), seed=seed) for planner in (dss, bamdp.ThompsonSampling())
        ]
        for agent in agents:
            agent.observe(0, 1, 0.3, 2)
            agent.observe(2, 0, 0.1, 1)
        assert agents[0].act(state) == agents[1].act(state)


def test_one_step_stages_of_constant_policies_are_sparse_sampling():
    # K = 1 and one constant policy an action: the law of Kearns's sparse sampling. KS, false alarm 1e-4 an action.
    mdp = small_world()
    width, depth = 2, 3
    actions = itertools.cycle(range(mdp.n_actions))
    planner = bamdp.DSS(
        n_policies=mdp.n_actions,
        n_samples=width,
        n_steps=1,
        n_stages=depth,
        generator=lambda m, discount: np.full(m.n_states, next(actions)),
    )
    sparse = bamdp.SparseSampling(width=width, depth=depth)
    prior = bamdp.Dirichlet(alpha=0.5)
    values = []
    for p in (planner, sparse):
        agent = agent_of(p, prior, mdp)
        rng = new_rng(4)
        plans = [p.plan(agent.memory, agent.belief, 0, rng) for _ in range(400)]
        assert all([c.action for c in plan.candidates] == [0, 1] for plan in plans)
        values.append(np.array([[c.value for c in plan.candidates] for plan in plans]))
    for a in range(2):
        assert stats.ks_2samp(values[0][:, a], values[1][:, a]).pvalue > 1e-4


@pytest.mark.parametrize(("steps", "stages"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_a_known_deterministic_world_is_valued_exactly_however_it_is_cut(steps, stages):
    env = bamdp.make_env("double_loop")
    planner = bamdp.DSS(n_policies=1, n_samples=1, n_steps=steps, n_stages=stages)
    agent = agent_of(planner, bamdp.FiniteModels([env.mdp]), env.mdp, discount=0.95)
    plan = agent.plan(5)  # 5 → 6 → 7 → 8 (reward 2) → 0 → 5
    assert plan.value == pytest.approx(2 * 0.95**3, abs=1e-12)


@pytest.mark.parametrize("leaf", ["mean", "upper", "policy"])
def test_leaves_of_a_known_world_give_its_optimal_value(leaf):
    env = bamdp.make_env("double_loop")
    exact = bamdp.policy_iteration(env.mdp, 0.95).values
    planner = bamdp.DSS(n_policies=1, n_samples=2, n_steps=3, n_stages=2, leaf=leaf)
    agent = agent_of(planner, bamdp.FiniteModels([env.mdp]), env.mdp, discount=0.95)
    for state in range(9):
        assert agent.plan(state).value == pytest.approx(exact[state], abs=0.02)  # the leaf's tolerance


def test_leaves_are_ordered_policy_below_mean_of_optima():
    # E max >= max E: "upper" averages optimal values, "policy" one policy's values, on the same beliefs
    mdp = small_world()
    value = {}
    for leaf in ("zero", "policy", "upper"):
        planner = bamdp.DSS(n_policies=2, n_samples=20, n_steps=2, leaf=leaf)
        agent = agent_of(planner, bamdp.Dirichlet(alpha=0.5), mdp)
        value[leaf] = np.mean([agent_value(planner, agent, i) for i in range(30)])
    assert value["zero"] < value["policy"] < value["upper"]


def agent_value(planner, agent, i):
    return planner.plan(agent.memory, agent.belief, 0, new_rng(i)).value


def test_terminal_states_end_a_sample_with_value_zero():
    transitions = np.zeros((2, 1, 2))
    transitions[:, :, 1] = 1.0
    mdp = bamdp.FiniteMDP(transitions, np.array([1.0, 0.0]), terminal=[False, True])
    for leaf in ("zero", "mean", "upper", "policy"):
        planner = bamdp.DSS(n_policies=2, n_samples=2, n_steps=4, n_stages=3, leaf=leaf)
        agent = agent_of(planner, bamdp.FiniteModels([mdp]), mdp)
        assert agent.plan(0).value == 1.0


@pytest.mark.parametrize("generator", ["pi", "rtdp", "vi", bamdp.RTDP(depth=30, n_trials=40)])
def test_every_generator_solves_a_known_world(generator):
    env = bamdp.make_env("grid5")
    planner = bamdp.DSS(n_policies=1, n_samples=1, n_steps=5, generator=generator)
    agent = agent_of(planner, bamdp.FiniteModels([env.mdp]), env.mdp, discount=0.95)
    run = bamdp.simulate(agent, env, 600, seed=0)
    assert run.total_reward > 45  # the optimum gets 55 in 600 steps, random play 5


def test_a_policy_is_followed_for_replan_every_steps_and_dropped_at_an_end():
    mdp = small_world()
    planner = bamdp.DSS(n_policies=2, n_samples=2, n_steps=3, replan_every=3)
    agent = agent_of(planner, bamdp.Dirichlet(alpha=0.5), mdp)
    followed = []
    for _ in range(7):
        followed.append(agent.plan(0).details["followed_from_last_plan"])
        agent.act(0)
    assert followed == [False, True, True, False, True, True, False]
    agent.observe(0, 0, 0.0, 2, terminated=True)
    assert not agent.plan(0).details["followed_from_last_plan"]


def test_spread_and_value_are_those_of_the_samples():
    # one step from a one-state world with Bernoulli(1/2)-like predictive rewards: Q samples are 0 or 1
    planner = bamdp.DSS(n_policies=1, n_samples=4000, n_steps=1)
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(),
        rewards=bamdp.BetaBernoulli(),
        n_states=1,
        n_actions=1,
        discount=0.5,
        seed=1,
    )
    (candidate,) = agent.plan(0).candidates
    mean = candidate.value
    assert candidate.spread == pytest.approx(np.sqrt(mean * (1 - mean) * 4000 / 3999), rel=1e-9)
    assert abs(mean - 0.5) < 0.04  # five standard errors
    assert candidate.count == 4000


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 1], "an integer for each of 3 states"),
        ([0, 1, 5], "action 5 in state 2"),
        ([0.0, 1.0, 1.0], "of float64"),
    ],
)
def test_a_bad_policy_of_a_users_generator_is_refused(policy, message):
    planner = bamdp.DSS(generator=lambda mdp, discount: np.array(policy))
    agent = agent_of(planner, bamdp.Dirichlet(), small_world())
    with pytest.raises(ValueError, match=message):
        agent.act(0)


@pytest.mark.parametrize("generator", ["pi", "vi", "rtdp"])
def test_a_state_that_turns_out_to_end_episodes_is_worth_nothing_from_then_on(generator):
    """Action 0 leads to what looked promising until episodes ended there; action 1 pays a little for ever."""
    rewards = np.array([[0.0, 0.1], [0.0, 0.0], [1.0, 1.0]])
    planner = bamdp.DSS(n_policies=4, n_samples=4, n_steps=20, generator=generator)
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=0.2),
        rewards=rewards,
        n_states=3,
        n_actions=2,
        discount=0.95,
        seed=0,
    )
    for _ in range(20):
        agent.observe(0, 1, 0.1, 0)
        agent.act(0)
    assert agent.memory.workspace.solver.values[1] > 1.0
    for _ in range(20):
        agent.observe(0, 0, 0.0, 1, True)
    assert {agent.act(0) for _ in range(20)} == {1}
    assert agent.memory.workspace.solver.values[1] == 0.0


@pytest.mark.parametrize("planner", ["dss-pi", "beb"])
def test_models_that_are_too_large_for_the_machine_are_refused_with_a_cure(planner, monkeypatch):
    monkeypatch.setattr("bamdp.beliefs.belief.MOST_ENTRIES", 100)
    agent = agent_of(planner, bamdp.Dirichlet(alpha=np.full((3, 2, 3), 1.0)), small_world())
    assert 0 <= agent.act(0) < 2
    monkeypatch.setattr("bamdp.beliefs.belief.MOST_ENTRIES", 10)
    agent = agent_of(planner, bamdp.Dirichlet(alpha=np.full((3, 2, 3), 1.0)), small_world())
    before = agent.belief.predictive(0, 0)
    with pytest.raises(ValueError, match="too many entries for this machine"):
        agent.act(0)
    np.testing.assert_array_equal(before, agent.belief.predictive(0, 0))
