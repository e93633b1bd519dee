"""BAMCP against exact Bayes-optimal values, and what a planner promises.

Statistical tests use fixed seeds; a mean may be 4 standard errors away, which a correct program exceeds once in
16 000, and distributions are compared at p = 1e-4.
"""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from history_tree_checks import CASES, GAMMA, REWARDS, agent_in, check_convergence, exact, root_samples
from planner_checks import agent_of, check_promises, experience, learned
from scipy import stats

import bamdp
from bamdp.planners import bamcp, base
from bamdp.planners.bamcp import BAMCP, auto_depth
from bamdp.planners.tree import COUNT, ROOT


@pytest.mark.parametrize("case", CASES)
def test_converges_to_the_bayes_optimal_value_as_simulations_grow(case):
    check_convergence(case, BAMCP)


def test_rows_drawn_at_the_root_converge_too():
    _, value = exact("sparse", 3)
    planner = BAMCP(n_simulations=200_000, depth=3, exploration=1.0, root_sampling="rows")
    assert agent_in("sparse", planner).plan(0).value == pytest.approx(value, abs=0.01)


def test_terminal_states_and_masks_keep_the_value_exact():
    mask = np.array([[True, True], [False, True], [True, True]])
    world = {"terminal": np.array([False, False, True]), "action_mask": mask}
    for state in (0, 1):
        action, value = exact("dirichlet", 3, state, **world)
        plan = agent_in("dirichlet", BAMCP(n_simulations=200_000, depth=3, exploration=1.0), **world).plan(
            state
        )
        assert (plan.action, plan.value) == (action, pytest.approx(value, abs=0.01))
        assert [c.action for c in plan.candidates] == np.flatnonzero(mask[state]).tolist()


def test_rewards_in_the_history_are_worth_something_when_they_are_learned(monkeypatch):
    """A tree over states alone cannot adapt to rewards, so its value is lower: the control of the tests above."""
    world = {"n_states": 1, "prior": bamdp.Dirichlet(), "rewards": bamdp.BetaBernoulli(), "discount": 0.95}
    planner = BAMCP(n_simulations=100_000, depth=6, exploration=1.0)
    with_rewards = bamdp.Agent(planner, n_actions=2, seed=0, **world).plan(0)
    monkeypatch.setattr(base, "MANY_OUTCOMES", 1)
    without = bamdp.Agent(planner, n_actions=2, seed=0, **world).plan(0)
    assert without.details["nodes"] < with_rewards.details["nodes"]
    blind = 0.5 * (1 - 0.95**6) / 0.05
    assert without.value == pytest.approx(blind, abs=0.02)
    assert with_rewards.value > blind + 0.15


# --- one law, two ways to draw it ---------------------------------------------------------------------------


SIZE = {"n_simulations": 400, "depth": 8, "exploration": 0.5}  # enough to adapt, so that the law shows


def same_law(x, y):
    """Means within 4 standard errors, and the same distribution at p = 1e-4."""
    error = math.hypot(x.std() / math.sqrt(len(x)), y.std() / math.sqrt(len(y)))
    return abs(x.mean() - y.mean()) <= 4 * error and stats.ks_2samp(x, y).pvalue > 1e-4


@pytest.mark.parametrize("case", [case for case in CASES if "own" not in case])
def test_rows_at_the_root_and_predictives_along_the_branch_are_one_law(case):
    rows = root_samples(case, BAMCP(root_sampling="rows", **SIZE), 1500)
    branch = root_samples(case, BAMCP(root_sampling="predictive", **SIZE), 1500)
    for a in range(2):
        assert same_law(rows[:, a, 0], branch[:, a, 0])
        assert same_law(rows[:, a, 1], branch[:, a, 1])


def test_a_known_mean_model_is_another_law():
    """The control: without learning along the branch the values differ, and the comparison above would see it."""
    one = agent_in("dirichlet", BAMCP(**SIZE))
    mean = {"prior": bamdp.FiniteModels([one.belief.mean()]), "rewards": REWARDS}
    learned_along = root_samples("dirichlet", BAMCP(**SIZE), 1500)
    agent = bamdp.Agent(BAMCP(**SIZE), n_states=3, n_actions=2, discount=GAMMA, seed=1, **mean)
    fixed = np.empty(1500)
    for i in range(len(fixed)):
        agent.act(0)
        fixed[i] = agent.memory.tree.value[0, 0]
    assert not same_law(learned_along[:, 0, 0], fixed)


def test_how_models_are_drawn_is_chosen_by_the_belief():
    drawn = {case for case in CASES if agent_in(case, BAMCP()).memory.model is not None}
    assert drawn == {"models", "mixture"}
    assert agent_in("models", BAMCP(root_sampling="predictive")).memory.model is None


def test_rewards_that_share_the_models_weights_are_not_drawn_apart():
    with pytest.raises(ValueError, match='use "auto"'):
        agent_in("models with their own rewards", BAMCP(root_sampling="rows"))


# --- depth and plan ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount, depth", [(0.95, 89), (0.99, 458), (0.5, 6), (0.001, 1), (0.0, 1)])
def test_automatic_depth(discount, depth):
    assert auto_depth(discount) == depth
    assert agent_of(BAMCP(n_simulations=5), {}, discount=discount).plan(0).details["depth"] == depth


def test_depth_limits_tree_and_rollout_together():
    """Reward 1 a step: every return is that of exactly ``depth`` steps."""
    for depth in (1, 2, 7):
        plan = agent_of(BAMCP(n_simulations=300, depth=depth), {"rewards": np.ones(3)}).plan(0)
        for c in plan.candidates:
            assert c.value == pytest.approx((1 - 0.9**depth) / 0.1, rel=1e-12)
            assert c.spread == pytest.approx(0.0, abs=1e-6)


def test_the_plan_shows_its_evidence():
    agent = experience(agent_of(BAMCP(n_simulations=400, depth=10), {}))
    plan = agent.plan(1)
    assert sum(c.count for c in plan.candidates) == plan.details["simulations"] == 400
    assert plan.value == max(c.value for c in plan.candidates) == plan.candidates[plan.action].value
    assert all(c.spread > 0 for c in plan.candidates)
    assert 1 < plan.details["nodes"] <= 401
    assert plan.reproducible


def test_one_simulation_is_enough_to_act():
    plan = agent_of(BAMCP(n_simulations=1, depth=3), {}).plan(0)
    tried = [c for c in plan.candidates if c.count]
    assert [c.action for c in tried] == [plan.action]
    assert all(math.isnan(c.value) for c in plan.candidates if not c.count)


def test_every_tree_is_new():
    agent = agent_in("dirichlet", BAMCP(n_simulations=200, depth=8))
    for _ in range(3):
        agent.act(0)
        assert agent.memory.tree.node[ROOT, COUNT] == 200
        agent.observe(0, 0, 0.0, 0)


def test_a_search_in_several_calls_is_one_search(monkeypatch):
    whole = agent_in("sparse", BAMCP(n_simulations=300, depth=8)).plan(0)
    monkeypatch.setattr(bamcp, "CALL_STEPS", 56)
    assert repr(agent_in("sparse", BAMCP(n_simulations=300, depth=8)).plan(0)) == repr(whole)


# --- promises -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_keeps_the_promises_of_a_planner(case, tmp_path):
    agent = agent_in(case, BAMCP(n_simulations=150, depth=6))
    agent.act(0)
    agent.observe(0, 0, 0.0, 1)
    check_promises(agent, 1, tmp_path)


def test_a_saved_agent_goes_on_bit_for_bit(tmp_path):
    """The Q-learner is part of it."""
    planner = BAMCP(n_simulations=80, depth=12)

    def live(agent, env, state, steps):
        out = []
        for _ in range(steps):
            action = agent.act(state)
            following, reward, end = env.step(action)
            agent.observe(state, action, reward, following, end)
            state = following
            out.append((action, following, float(agent.memory.q.sum()), int(agent.memory.tree.used[0])))
        return state, out

    env = bamdp.make_env("chain")
    world = {"n_states": 5, "n_actions": 2, "rewards": env.rewards, "discount": 0.95}
    agent = bamdp.Agent(planner, prior=bamdp.SparseDirichlet(), seed=4, **world)
    state, _ = live(agent, env, env.reset(seed=1), 60)
    agent.save(tmp_path / "agent.npz")
    twin = bamdp.Agent.load(tmp_path / "agent.npz")
    runs = []
    for one in (agent, twin):
        other = bamdp.make_env("chain")
        other.reset(seed=2)
        other.state = state
        runs.append(live(one, other, state, 60)[1])
    assert runs[0] == runs[1]


def test_same_seed_same_plan_and_another_seed_another():
    plans = [repr(agent_in("sparse", BAMCP(n_simulations=200), seed=seed).plan(0)) for seed in (3, 3, 4)]
    assert plans[0] == plans[1] != plans[2]


def test_a_time_limit_is_kept_and_marked():
    agent = agent_in("sparse", BAMCP(time_limit=0.02, depth=10))
    before = learned(agent.belief)
    plan = agent.plan(0)
    assert not plan.reproducible
    assert plan.details["simulations"] == sum(c.count for c in plan.candidates) >= bamcp.FIRST_BATCH
    for name, array in learned(agent.belief).items():
        np.testing.assert_array_equal(array, before[name])


def test_rewards_of_any_range_are_fine():
    for shift, scale in ((0.0, 1e6), (-50.0, 1.0), (0.0, 0.0)):
        plan = agent_of(BAMCP(n_simulations=100), {"rewards": shift + scale * np.arange(3.0)}).plan(0)
        assert math.isfinite(plan.value)


def test_rewards_without_an_enumeration_are_left_out_of_the_history(monkeypatch):
    belief = bamdp.Dirichlet().belief(2, 1, rewards=bamdp.BetaBernoulli())
    assert BAMCP().start(belief, 0.9).params.by_reward
    monkeypatch.setattr(type(belief.rewards), "n_outcomes", None)
    assert not BAMCP().start(belief, 0.9).params.by_reward


SCRIPT = """
import bamdp
from bamdp.planners.bamcp import BAMCP
for sampling in ("predictive", "rows"):
    planner = BAMCP(n_simulations=60, depth=6, root_sampling=sampling)
    world = dict(rewards=[0.0, 0.5, 1.0], n_states=3, n_actions=2)
    agent = bamdp.Agent(planner, prior=bamdp.SparseDirichlet(), discount=0.9, seed=1, **world)
    agent.act(0)
    agent.observe(0, 1, 0.0, 1)
    plan = agent.plan(1)
    print(*[c.value for c in plan.candidates], plan.details["nodes"])
"""


def test_runs_the_same_without_the_compiler():
    def run(**env):
        command = [sys.executable, "-W", "error", "-c", SCRIPT]
        out = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True)
        return [float(x) for x in out.stdout.split()]

    assert run(NUMBA_DISABLE_JIT="1") == pytest.approx(run(), abs=1e-9)
