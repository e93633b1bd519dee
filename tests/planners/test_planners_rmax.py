"""R-max: optimism until known, the frequencies afterwards, and a solution only when something has become known."""

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience

import bamdp
from bamdp.planners.rmax import RMax


def teach(agent, P, R, m, rng):
    """Try every pair m times in the world P [S, A, S], R [S, A]; returns the frequencies."""
    S, A, _ = P.shape
    seen = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            for _ in range(m):
                s2 = int(rng.choice(S, p=P[s, a]))
                seen[s, a, s2] += 1
                agent.observe(s, a, float(R[s, a]), s2)
    return seen / m


def random_world(S, A, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(S, 0.3), size=(S, A)), rng.uniform(size=(S, A)), rng


def test_unknown_pairs_are_worth_r_max_for_ever():
    agent = agent_of(RMax(known_after=3), {"rewards": [0.0, 0.5, 2.0]}, discount=0.9)
    for tries in range(3):
        plan = agent.plan(0)
        assert [c.value for c in plan.candidates] == pytest.approx([20.0, 20.0], abs=1e-12)
        assert [c.count for c in plan.candidates] == [tries, 0]
        assert plan.details["known"] == ()
        agent.observe(0, 0, 0.0, 0)
    plan = agent.plan(0)
    assert plan.action == 1
    assert plan.details["known"] == (0,)
    assert [c.value for c in plan.candidates] == pytest.approx([0.9 * 20.0, 20.0], abs=1e-3)


def test_optimism_draws_the_agent_through_what_it_knows():
    """States 0 and 1 known in both actions, state 2 not: the way there looks like the best there is."""
    agent = agent_of(RMax(known_after=1, tol=1e-9), {"rewards": [0.5, 0.0, 1.0]}, discount=0.9)
    agent.observe(0, 0, 0.5, 0)
    agent.observe(0, 1, 0.5, 1)
    agent.observe(1, 0, 0.0, 0)
    agent.observe(1, 1, 0.0, 2)
    assert (agent.act(0), agent.act(1)) == (1, 1)
    assert agent.plan(1).value == pytest.approx(9.0)
    assert agent.plan(0).value == pytest.approx(0.5 + 0.9 * 9.0)


@pytest.mark.parametrize("seed", range(3))
def test_once_all_is_known_it_is_optimal_for_the_frequencies(seed):
    P, R, rng = random_world(6, 3, seed)
    world = {"n_states": 6, "n_actions": 3, "rewards": R}
    agent = agent_of(RMax(known_after=7, tol=1e-9), world, discount=0.9)
    seen = teach(agent, P, R, 7, rng)
    values = bamdp.policy_iteration(bamdp.FiniteMDP(seen, R), 0.9).values
    for s in range(6):
        plan = agent.plan(s)
        assert [c.value for c in plan.candidates] == pytest.approx(R[s] + 0.9 * seen[s] @ values, abs=1e-6)
        assert plan.details["known"] == (0, 1, 2)


def test_with_many_tries_it_is_optimal_for_the_world():
    """The gap between the best and the second action is above 0.5 in every state, far above what 400 tries miss."""
    P = np.zeros((3, 2, 3))
    P[:, 0], P[:, 1] = [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]
    R = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    solution = bamdp.policy_iteration(bamdp.FiniteMDP(P, R), 0.9)
    agent = agent_of(RMax(known_after=400), {"rewards": R}, discount=0.9)
    teach(agent, P, R, 400, np.random.default_rng(0))
    assert [agent.act(s) for s in range(3)] == solution.policy.tolist()


def test_the_model_is_solved_only_when_a_pair_becomes_known():
    agent = agent_of(RMax(known_after=2), {})
    assert agent.memory.solved == 0
    solved = []
    for _ in range(4):
        for a in (0, 1):
            agent.act(0)
            agent.act(1)
            solved.append(agent.memory.solved)
            agent.observe(0, a, 0.0, 1)
    agent.act(0)
    solved.append(agent.memory.solved)
    assert solved == [1, 1, 1, 2, 3, 3, 3, 3, 3]


def test_a_known_pair_stays_as_it_became_known_unless_refined():
    kept, refined = (
        agent_of(
            RMax(known_after=2, refine=refine, tol=1e-9), {"rewards": bamdp.BetaBernoulli()}, discount=0.5
        )
        for refine in (False, True)
    )
    for agent in (kept, refined):
        for r in (1.0, 0.0, 0.0, 0.0):
            agent.observe(0, 0, r, 0)
    # the other action is unknown, so V(0) = 1/(1−γ) = 2
    assert kept.plan(0).candidates[0].value == pytest.approx(0.5 + 0.5 * 2)
    assert kept.plan(0).candidates[0].count == 2
    assert refined.plan(0).candidates[0].value == pytest.approx(0.25 + 0.5 * 2)
    assert refined.plan(0).candidates[0].count == 4


def test_rewards_are_the_mean_of_what_was_paid():
    agent = agent_of(RMax(known_after=4, tol=1e-9), {"rewards": bamdp.BetaBernoulli()}, discount=0.0)
    for a, rewards in enumerate([(1, 0, 0, 0), (1, 1, 0, 1)]):
        for r in rewards:
            agent.observe(0, a, float(r), 1)
    assert [c.value for c in agent.plan(0).candidates] == pytest.approx([0.25, 0.75])


def test_terminal_states_are_worth_nothing_and_masked_actions_do_not_exist():
    mask = [[True, True], [True, True], [False, True]]
    agent = agent_of(RMax(known_after=1, tol=1e-9), {"rewards": [0.5, 0.0, 1.0], "action_mask": mask})
    agent.observe(0, 0, 0.5, 1, terminated=True)
    agent.observe(0, 1, 0.5, 2)
    agent.observe(2, 1, 0.2, 0)
    plan = agent.plan(0)
    assert plan.action == 1
    assert [c.value for c in plan.candidates] == pytest.approx(
        [0.5, (0.5 + 0.9 * 0.2) / (1 - 0.81)], abs=1e-6
    )
    only = agent.plan(2)
    assert [c.action for c in only.candidates] == [1]


def test_optimism_never_falls_short_where_all_rewards_are_negative():
    """−1 a step until the episode ends: to end at once is worth −1, more than −1/(1−γ)."""
    agent = agent_of(RMax(known_after=1), {"rewards": [-1.0, -1.0, -1.0]}, discount=0.9)
    assert agent.plan(0).value == -1.0
    agent.observe(0, 0, -1.0, 0)
    assert agent.plan(0).candidates[0].value == pytest.approx(-1.9, abs=1e-3)
    assert agent.plan(0).action == 1


def test_does_not_depend_on_the_prior():
    agents = [
        experience(agent_of(RMax(), {"rewards": [0.0, 0.3, 1.0]}, prior=prior), 0)
        for prior in (bamdp.Dirichlet(alpha=0.1), bamdp.SparseDirichlet())
    ]
    rng = np.random.default_rng(0)
    for _ in range(40):
        s, a, s2 = (int(rng.integers(n)) for n in (3, 2, 3))
        for agent in agents:
            agent.observe(s, a, 0.5, s2)
        assert repr(agents[0].plan(s)) == repr(agents[1].plan(s))


def test_pairs_with_many_outcomes_are_learned():
    S = 60
    P, R, rng = np.full((S, 1, S), 1 / S), np.linspace(0, 1, S)[:, None], np.random.default_rng(0)
    agent = agent_of(RMax(known_after=80, tol=1e-8), {"n_states": S, "n_actions": 1, "rewards": R})
    seen = teach(agent, P, R, 80, rng)
    values = bamdp.policy_iteration(bamdp.FiniteMDP(seen, R), 0.9).values
    assert [agent.plan(s).value for s in range(S)] == pytest.approx(values, abs=1e-5)


def test_rewards_without_bounds_are_refused():
    with pytest.raises(ValueError, match="RMax needs the range of the rewards"):
        agent_of(RMax(), {"rewards": bamdp.NormalGamma()})


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("rewards", [[0.0, 0.3, 1.0], bamdp.BetaBernoulli()])
def test_keeps_the_promises_of_a_planner(refine, rewards, tmp_path):
    agent = experience(agent_of(RMax(refine=refine), {"rewards": rewards}), 25)
    check_promises(agent, 1, tmp_path)
    agent.save(tmp_path / "later.npz")
    loaded = bamdp.Agent.load(tmp_path / "later.npz")
    for one in (agent, loaded):
        one.observe(0, 0, 1.0, 2)
        one.observe(0, 0, 1.0, 2)
    assert agent.plan(0).value == pytest.approx(loaded.plan(0).value)
    assert agent.act(0) == loaded.act(0)
