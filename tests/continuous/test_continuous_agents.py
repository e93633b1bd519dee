"""Agents for continuous observations: decisions, determinism, files, and known optima."""

import gymnasium
import numpy as np
import pytest

import bamdp
from bamdp.continuous import (
    ContinuousAgent,
    KnownDynamics,
    LinearGaussian,
    Mean,
    RandomFeatures,
    Thompson,
    known,
)
from bamdp.continuous.cem import Objective, Outputs, Search, optimise
from bamdp.continuous.models import KnownModel
from bamdp.continuous.system import System
from bamdp.continuous.tasks import GainSolution

FEW = "plans=8,iterations=2,elites=3"
SPECS = [
    f"mean:{FEW}",
    f"thompson:{FEW}",
    f"open-loop:models=2,{FEW}",
    f"dss:n_policies=2,n_samples=2,n_leaf=2,{FEW}",
]
CASES = [("Pendulum-v1", None), ("Pendulum-v1", "known"), ("CartPole-v1", None), ("Acrobot-v1", "known")]


def agent_of(env, spec, rewards=None, seed=0, **options):
    return bamdp.Agent.for_env(gymnasium.make(env), spec, rewards=rewards, seed=seed, **options)


def linear(state, action):
    return state + action


def cost(obs, action, next_obs):
    return -(next_obs[:, 0] ** 2) - 0.5 * action[:, 0] ** 2


def never(obs, action, next_obs):
    return np.zeros(len(obs), bool)


def scalar(bound=3.0):
    return System(
        np.array([-9.0]),
        np.array([9.0]),
        np.array([-bound]),
        np.array([bound]),
        reward=cost,
        terminated=never,
    )


@pytest.mark.parametrize("env, rewards", CASES)
@pytest.mark.parametrize("spec", SPECS)
def test_same_seed_same_run_and_asking_changes_nothing(env, rewards, spec):
    runs = []
    for ask in (False, True):
        world, agent = gymnasium.make(env), agent_of(env, spec, rewards)
        callback = (
            (lambda agent, world, step: agent.plan(step.next_state) and None) if ask else lambda *_: None
        )
        runs.append(bamdp.simulate(agent, world, steps=8, seed=1, callbacks=[callback]))
    assert runs[0] == runs[1]
    assert (
        bamdp.simulate(agent_of(env, spec, rewards, seed=5), gymnasium.make(env), steps=8, seed=1) != runs[0]
    )
    assert all(world.action_space.contains(a) for a in runs[0].actions)


@pytest.mark.parametrize("spec", SPECS)
def test_a_plan_is_what_the_agent_does_next(spec):
    agent, env = agent_of("Pendulum-v1", spec, "known"), gymnasium.make("Pendulum-v1")
    bamdp.simulate(agent, env, steps=7, seed=0)
    s, _ = env.reset(seed=4)
    plan = agent.plan(s)
    assert plan.action == agent.act(s)
    assert plan.reproducible
    assert plan.actions.shape == (30, 1)
    assert plan.states.shape == (31, 3)
    assert plan.states[0] == pytest.approx(s, abs=1e-5)
    assert plan.candidates[0].value == plan.value == max(choice.value for choice in plan.candidates)
    assert "value" in str(plan)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("rewards", [None, "known"])
def test_an_agent_from_a_file_goes_on_as_the_one_that_was_saved(tmp_path, spec, rewards):
    agent, env = agent_of("Pendulum-v1", spec, rewards), gymnasium.make("Pendulum-v1")
    bamdp.simulate(agent, env, steps=9, seed=0)
    agent.save(tmp_path / "agent.npz")
    loaded = bamdp.Agent.load(tmp_path / "agent.npz")
    runs = [bamdp.simulate(a, gymnasium.make("Pendulum-v1"), steps=8, seed=2) for a in (agent, loaded)]
    assert runs[0] == runs[1]
    with np.load(tmp_path / "agent.npz", allow_pickle=False) as file:
        assert file.files


def test_functions_without_a_name_cannot_be_saved(tmp_path):
    agent = ContinuousAgent.for_env(gymnasium.make("Pendulum-v1"), reward=lambda s, a, s2: s[:, 0])
    with pytest.raises(TypeError, match="define it at the top of a module"):
        agent.save(tmp_path / "agent.npz")


def test_copies_are_independent():
    agent, env = agent_of("Pendulum-v1", SPECS[1]), gymnasium.make("Pendulum-v1")
    bamdp.simulate(agent, env, steps=6, seed=0)
    copy, s = agent.copy(), env.reset(seed=1)[0]
    assert copy.act(s) == agent.act(s)
    copy.observe(s, [0.0], 0.0, s)
    assert (agent.belief.n, copy.belief.n) == (6, 7)


def test_the_search_finds_the_optimal_control_of_a_known_linear_system():
    # minimise Σ x'² + u²/2 over 3 steps of x' = x + u: the Riccati recursion gives the cost of x = 1
    value = 0.0
    for _ in range(3):
        value = 0.5 * (1.0 + value) / (1.5 + value)
    system, search = scalar(), Search(3, discount=1.0)
    objective = Objective(
        KnownModel(system, linear), np.zeros((1, 1), int), np.ones((1, 1)), search, Outputs(system)
    )
    _, found = optimise(objective, np.zeros((1, 1, 3, 1)), np.random.default_rng(0), False)
    assert -found[0] == pytest.approx(value, rel=0.01)


def test_plans_of_discrete_actions_are_simulated_with_these_actions():
    seen = []

    class Recorder:
        search = Search(4, plans=60, iterations=6, elites=6)

        def values(self, plans):
            seen.append(plans)
            return plans[..., 1].sum(2)

    plans, values = optimise(Recorder(), np.zeros((2, 1, 4, 3)), np.random.default_rng(0), True)
    assert all((np.sort(part, -1) == [0, 0, 1]).all() for part in seen)
    assert (plans.argmax(-1) == 1).all()
    assert (values == 4).all()


def test_known_dynamics_are_a_prior():
    agent = ContinuousAgent(Mean(), KnownDynamics(step=linear).belief(scalar()), horizon=3, seed=0)
    value = 0.0
    for _ in range(3):
        first, value = (1.0 + value) / (1.5 + value), 0.5 * (1.0 + value) / (1.5 + value)
    assert agent.act([1.0]) == pytest.approx([-first], abs=0.1)


def test_the_horizon_counts_down_and_shortens_plans():
    agent = ContinuousAgent(Mean(), LinearGaussian().belief(scalar()), horizon=3, seed=0)
    lengths = []
    for _ in range(4):
        lengths.append(len(agent.plan([1.0]).actions))
        agent.observe([1.0], [0.5], 0.0, [1.4])
    assert lengths == [3, 2, 1, 3]


def test_controls_are_held_for_blocks_of_steps():
    agent, env = agent_of("MountainCarContinuous-v0", SPECS[1]), gymnasium.make("MountainCarContinuous-v0")
    run = bamdp.simulate(agent, env, steps=40, seed=0)
    later = run.actions[5:40, 0].reshape(-1, 5)
    assert (later == later[:, :1]).all()
    assert len(np.unique(later[:, 0])) > 2


def test_thompson_keeps_its_draw_for_an_episode():
    agent = ContinuousAgent(Thompson(plans=4, elites=2), RandomFeatures().belief(scalar()), seed=0)
    draws = []
    for _ in range(2):
        agent.begin([1.0])
        for _ in range(3):
            agent.act([1.0])
            draws.append(agent.memory.draw)
    assert len(set(draws[:3])) == len(set(draws[3:])) == 1
    assert draws[0] != draws[3]


def test_a_time_limit_is_kept_to_and_said():
    agent = agent_of("Pendulum-v1", "mean:milliseconds=5", "known")
    plan = agent.plan(gymnasium.make("Pendulum-v1").reset(seed=0)[0])
    assert not plan.reproducible


def test_what_is_not_continuous_says_so():
    with pytest.raises(ValueError, match="rewards"):
        bamdp.Agent.for_env("grid5", reward=cost)
    with pytest.raises(ValueError, match="unknown planner for continuous observations"):
        bamdp.Agent.for_env(gymnasium.make("Pendulum-v1"), "bamcp")
    with pytest.raises(ValueError, match="must return n numbers"):
        ContinuousAgent.for_env(gymnasium.make("Pendulum-v1"), reward=lambda s, a, s2: 1.0)
    with pytest.raises(ValueError, match="other observations"):
        bamdp.simulate(bamdp.Agent.for_env("grid5"), gymnasium.make("Pendulum-v1"), steps=1)
    with pytest.raises(ValueError, match="other observations"):
        bamdp.simulate(agent_of("Pendulum-v1", "mean"), gymnasium.make("Acrobot-v1"), steps=1)


@pytest.mark.slow
def test_the_pendulum_swings_up_in_few_steps():
    env, solved = gymnasium.make("Pendulum-v1"), 0
    for seed in range(3):
        agent = ContinuousAgent.for_env(env, seed=seed, **known(env))
        run = bamdp.simulate(agent, env, steps=400, seed=seed)
        solved += run.episode_returns[1] > -400
    assert solved == 3


@pytest.mark.slow
def test_dss_pays_for_knowledge_where_the_mean_model_never_acts():
    """Loss against the Bayes-optimal policy by dynamic programming, added up over the steps of a life."""
    solution, losses = GainSolution(), {}
    for spec in ("mean", "thompson", "dss"):
        total = []
        for seed in range(12):
            env = gymnasium.make("bamdp/UnknownGain-v0")
            prior = LinearGaussian(state=0, bias=0, noise=1.0)
            agent = ContinuousAgent.for_env(env, spec, prior=prior, horizon=4, seed=seed, **known(env))
            s, _ = env.reset(seed=seed)
            mean, variance, loss = 0.0, 1.0, 0.0
            for left in (4, 3, 2):
                action = agent.act(s)
                x, u = float(s[0]), float(action[0])
                least = float(solution.cost(x, mean, variance, left))
                loss += float(solution.action_cost(x, u, mean, variance, left)) - least
                after, r, *_ = env.step(action)
                agent.observe(s, action, r, after)
                mean, variance = (float(v) for v in solution.learn(x, u, float(after[0]), mean, variance))
                s = after
            total.append(loss)
        losses[spec] = np.mean(total)
    assert min(losses.values()) > -0.05
    assert losses["dss"] < 0.5 * min(losses["mean"], losses["thompson"])
