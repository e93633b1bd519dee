"""BFS3 against the exhaustive solution of the very tree that it samples, and against FHTS in the limit.

Statistical tests use fixed seeds and allow 5 standard errors: a correct program fails one in 1.7 million.
"""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from history_tree_checks import CASES, agent_in, exact
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp._kernels import random as streams
from bamdp.beliefs import verbs
from bamdp.planners.bfs3 import BFS3
from bamdp.planners.fhts import FHTS

MANY = 100_000  # trajectories: all bounds meet long before


def branch(stream, number):
    """What leaves compiled code as a Python integer goes back as a word."""
    return np.uint64(streams.branch(np.uint64(stream), number))


def drawn(belief, stream, s, a, C):
    """The distinct successors {(s2, r): how often} of a pair at the present belief, in the order of drawing."""
    row, rng = s * belief.n_actions + a, np.zeros(4, np.uint64)
    streams.open_stream(branch(stream, a), rng)
    out = {}
    for _ in range(C):
        s2 = int(verbs.advance(belief.transitions, row, rng))
        r = float(verbs.draw_reward(belief.rewards, row, s2, rng))
        verbs.pop(belief.transitions)
        out[s2, r] = out.get((s2, r), 0) + 1
    return out


def solve(belief, stream, s, steps, C, discount, leaf):
    """The value of a node of the sampled tree, by recursion through all of it."""
    if belief.space.terminal[s]:
        return 0.0
    if steps == 0:
        return leaf
    best = -math.inf
    for a in np.flatnonzero(belief.space.allowed[s]).tolist():
        total, row = 0.0, s * belief.n_actions + a
        for i, ((s2, r), n) in enumerate(drawn(belief, stream, s, a, C).items()):
            below = branch(branch(stream, a), C + i)
            verbs.push(belief.transitions, row, s2)
            verbs.push_reward(belief.rewards, row, s2, r)
            total += n * (r + discount * solve(belief, below, s2, steps - 1, C, discount, leaf))
            verbs.pop_reward(belief.rewards)
            verbs.pop(belief.transitions)
        best = max(best, total / C)
    return best


def solve_root(agent, s, leaf=0.0):
    """r + γV of every root successor that the agent's last plan drew, [A, C]; NaN for actions that do not exist."""
    roots, belief, planner = agent.memory.roots, agent.belief, agent.planner
    out = np.full(roots.state.shape, np.nan)
    for a in np.flatnonzero(belief.space.allowed[s]).tolist():
        row = s * belief.n_actions + a
        for c in range(planner.n_successors):
            s2, r, stream = int(roots.state[a, c]), float(roots.reward[a, c]), roots.stream[a, c]
            verbs.push(belief.transitions, row, s2)
            verbs.push_reward(belief.rewards, row, s2, r)
            value = solve(belief, stream, s2, planner.depth - 1, planner.n_successors, agent.discount, leaf)
            verbs.pop_reward(belief.rewards)
            verbs.pop(belief.transitions)
            out[a, c] = r + agent.discount * value
    return out


def bounds(agent, s):
    """(L, U) [A, C] of one plan."""
    agent.planner.act(agent.memory, agent.belief, s, agent.rng)
    return agent.memory.roots.lower.copy(), agent.memory.roots.upper.copy()


ENDING = {
    "terminal": np.array([False, False, True]),
    "action_mask": np.array([[True, True], [False, True], [True, True]]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("world", [{}, ENDING], ids=["continuing", "ending"])
def test_bounds_bracket_the_solution_of_the_same_tree_and_meet_in_it(case, world):
    C, depth, s = 3, 4, 1 if world else 0
    truth = None
    before_low, before_high = -math.inf, math.inf
    for n in (1, 2, 4, 8, 16, 64, MANY):
        planner = BFS3(n_successors=C, n_trajectories=n, depth=depth, leaf="zero")
        agent = agent_in(case, planner, **world)
        low, high = bounds(agent, s)
        if truth is None:
            truth = solve_root(agent, s)
            real = ~np.isnan(truth)
        assert np.all(low[real] <= truth[real] + 1e-12)
        assert np.all(truth[real] <= high[real] + 1e-12)
        if n > 1:  # more trajectories look at more of the same tree
            assert np.all(low[real] >= before_low[real] - 1e-12)
            assert np.all(high[real] <= before_high[real] + 1e-12)
        before_low, before_high = low, high
    np.testing.assert_allclose(low[real], truth[real], atol=1e-12)
    np.testing.assert_allclose(high[real], truth[real], atol=1e-12)


@pytest.mark.parametrize("case", ["dirichlet", "rewards by next state", "sparse"])
def test_optimistic_leaves_give_bounds_for_every_continuation(case):
    planner = BFS3(n_successors=3, n_trajectories=40, depth=3)
    agent = agent_in(case, planner)
    plan = agent.planner.plan(agent.memory, agent.belief, 0, agent.rng)
    ends = [r / (1 - agent.discount) for r in agent.memory.reward_range]
    np.testing.assert_allclose(agent.memory.roots.upper, solve_root(agent, 0, ends[1]), atol=1e-12)
    for leaf in (ends[0], 0.3 * ends[0] + 0.7 * ends[1], ends[1]):
        for c in plan.candidates:
            value = solve_root(agent, 0, leaf)[c.action].mean()
            assert plan.details["lower"][c.action] <= value + 1e-12
            assert value <= c.value + 1e-12


def test_the_sampled_tree_depends_on_the_seed_alone():
    agents = [agent_in("dirichlet", BFS3(n_trajectories=n, depth=5), seed=3) for n in (1, 50)]
    for agent in agents:
        bounds(agent, 0)
    for name in ("state", "reward", "stream"):
        first, second = (getattr(agent.memory.roots, name) for agent in agents)
        np.testing.assert_array_equal(first, second)


def test_successors_drawn_late_are_those_drawn_at_once():
    """With rewards by pair drawing waits for a trajectory; a table over next states, same numbers, does not."""
    rewards = np.array([[0.0, 0.1], [1.0, 0.0], [-1.0, 0.5]])
    plans = []
    for table in (rewards, np.repeat(rewards[:, :, None], 3, axis=2)):
        planner = BFS3(n_successors=4, n_trajectories=MANY, depth=4, leaf="zero")
        agent = agent_of(planner, {"rewards": table})
        assert planner._params(agent.memory, agent.belief).by_action == (table.ndim == 2)
        plans.append(bounds(agent, 0)[1])
    np.testing.assert_allclose(*plans, atol=1e-12)


@pytest.mark.parametrize("case", ["dirichlet", "models", "learned rewards"])
def test_approaches_the_bayes_optimal_value_as_successors_grow(case):
    """Sparse sampling errs by chance, and upwards (the maximum of averages); both fall with C."""
    action, value = exact(case, 3)
    errors = []
    for C, n in ((1, 300), (4, 100), (40, 12)):
        agent = agent_in(case, BFS3(n_successors=C, n_trajectories=MANY, depth=3, leaf="zero"))
        samples = np.array([bounds(agent, 0)[1].mean(axis=1)[action] for _ in range(n)]) - value
        assert samples.mean() > -5 * samples.std(ddof=1) / math.sqrt(n)
        errors.append(math.sqrt(np.mean(samples**2)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.25 * errors[0]


def test_long_searches_find_an_action_that_is_nearly_bayes_optimal():
    for case in ("dirichlet", "sparse", "mixture"):
        truth = agent_in(case, FHTS(3)).plan(0)
        planner = BFS3(n_successors=60, n_trajectories=MANY, depth=3, leaf="zero")
        plan = agent_in(case, planner).plan(0)
        assert {c.action: c.value for c in truth.candidates}[plan.action] > truth.value - 0.05
        assert plan.value == pytest.approx(truth.value, abs=0.15)


def test_optimism_is_paid_off_by_trajectories():
    """Few trajectories leave U near V_max, many bring it down."""
    values = [agent_in("sparse", BFS3(n_trajectories=n, depth=8)).plan(0).value for n in (1, 30, 1000)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[2]


def test_depth_one_is_the_mean_reward():
    rewards = np.array([[0.2, 0.7], [0.0, 0.0], [0.0, 0.0]])
    for leaf, beyond in (("zero", 0.0), ("upper", 0.9 * 0.7 / 0.1)):
        plan = agent_of(BFS3(depth=1, leaf=leaf), {"rewards": rewards}).plan(0)
        assert [c.value for c in plan.candidates] == pytest.approx([0.2 + beyond, 0.7 + beyond])


def test_values_that_may_stop_are_bounded_by_zero_too():
    """Costs only, and a way out: V_max = R_max/(1−γ) < 0 would not be a bound."""
    world = {"rewards": np.full(3, -1.0), "terminal": np.array([False, False, True])}
    agent = agent_of(BFS3(n_successors=3, n_trajectories=200, depth=3), world)
    plan = agent.planner.plan(agent.memory, agent.belief, 0, agent.rng)
    for leaf in (-10.0, -1.0, 0.0):
        for c, value in zip(plan.candidates, solve_root(agent, 0, leaf).mean(axis=1)):
            assert plan.details["lower"][c.action] - 1e-12 <= value <= c.value + 1e-12
    assert plan.value <= -1.0 + 1e-12


def test_the_plan_shows_its_evidence():
    agent = experience(agent_of(BFS3(n_successors=6, n_trajectories=20, depth=5), {}))
    plan = agent.plan(1)
    assert plan.value == max(c.value for c in plan.candidates)
    assert all(c.count == 6 for c in plan.candidates)
    assert all(plan.details["lower"][c.action] <= c.value for c in plan.candidates)
    assert 2 * 6 <= plan.details["trajectories"] <= 2 * 6 * 20  # fewer where bounds have met
    assert plan.details["nodes"] >= 2 * 6
    assert plan.reproducible


@pytest.mark.parametrize("case", CASES)
def test_keeps_the_promises_of_a_planner(case, tmp_path):
    agent = agent_in(case, BFS3(n_successors=4, n_trajectories=10, depth=5))
    check_promises(agent, 1, tmp_path)


def test_masked_actions_are_not_candidates():
    plan = agent_of(BFS3(), ENDING).plan(1)
    assert [c.action for c in plan.candidates] == [1]
    assert plan.action == 1


def test_same_seed_same_plan_and_another_seed_another():
    plans = [repr(agent_in("sparse", BFS3(), seed=seed).plan(0)) for seed in (3, 3, 4)]
    assert plans[0] == plans[1] != plans[2]


def test_rewards_without_a_range_are_refused(monkeypatch):
    belief = bamdp.Dirichlet().belief(2, 1, rewards=bamdp.BetaBernoulli())
    monkeypatch.setattr(type(belief.rewards), "reward_range", (-math.inf, math.inf))
    with pytest.raises(ValueError, match="BetaBernoulli"):
        BFS3().start(belief, 0.9)


SCRIPT = """
import bamdp
from bamdp.planners.bfs3 import BFS3
for rewards in ([0.0, 0.5, 1.0], bamdp.BetaBernoulli()):
    world = dict(rewards=rewards, n_states=3, n_actions=2)
    planner = BFS3(n_successors=3, n_trajectories=4, depth=4)
    agent = bamdp.Agent(planner, prior=bamdp.SparseDirichlet(), discount=0.9, seed=1, **world)
    plan = agent.plan(0)
    print(*[c.value for c in plan.candidates], *plan.details["lower"].values(), plan.details["nodes"])
"""


def test_runs_the_same_without_the_compiler():
    def run(**env):
        command = [sys.executable, "-W", "error", "-c", SCRIPT]
        out = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True)
        return [float(x) for x in out.stdout.split()]

    assert run(NUMBA_DISABLE_JIT="1") == pytest.approx(run(), abs=1e-9)
