"""Every planner under both objectives: a world in which the best action is another one.

In the world's one state action 0 pays 1 and ends the episode, action 1 pays 0.36 and goes on. With γ = 0.7 staying is
worth 0.36/0.3 = 1.2, more than the 1 that ending pays if nothing follows. If the next episode follows, one step later,
ending again and again is worth 1/(1 − γ²) = 1.96, more than staying.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bamdp
from bamdp.registry import PLANNERS, make_planner

END, FINISH, STAY = 1, 0, 1
REWARDS = np.array([[1.0, 0.36], [0.0, 0.0]])
DISCOUNT = 0.7
ENOUGH: dict[str, dict[str, str]] = {
    "dss-pi": {"n_steps": "15"},
    "dss-rtdp": {"n_steps": "15"},
    "dss-vi": {"n_steps": "15"},
    "fhts": {"horizon": "7"},
    "sparse-sampling": {"width": "2", "depth": "7"},
    "epsilon-greedy": {"epsilon": "0"},
    "q-learning": {"epsilon": "0"},
    "bootstrapped-dqn": {"n_networks": "5", "learning_rate": "0.01"},
    "bayesian-q-learning": {"update": "moment", "mu0": "1", "beta": "1"},
}
BEST = {"episode": (STAY, 1.2), "lifetime": (FINISH, 1.0 / (1.0 - DISCOUNT**2))}
SURE = (
    "bayes-greedy",
    "epsilon-greedy",
    "thompson",
    "mcbrl",
    "boss",
    "sboss",
    "rmax",
    "dss-pi",
)  # values, too


def experienced(name: str, objective: str, episodes: int = 150) -> bamdp.Agent:
    """An agent that has tried both actions often, and knows the rewards."""
    agent = bamdp.Agent(
        make_planner(name, ENOUGH.get(name, {})),
        prior=bamdp.Dirichlet(alpha=0.05),
        rewards=REWARDS,
        n_states=2,
        n_actions=2,
        discount=DISCOUNT,
        end=END,
        objective=objective,
        seed=1,
    )
    for _ in range(episodes):
        agent.begin(0)
        agent.observe(0, STAY, 0.36, 0)
        agent.observe(0, FINISH, 1.0, 0, terminated=True)
    agent.begin(0)
    return agent


@pytest.mark.parametrize("objective", BEST)
@pytest.mark.parametrize("name", [name for name in PLANNERS if name != "random"])
def test_every_planner_finds_what_is_best_for_the_objective(name, objective):
    agent = experienced(name, objective)
    action, value = BEST[objective]
    plan = agent.plan(0)
    assert plan.action == action == agent.act(0)
    if name in SURE:
        assert plan.value == pytest.approx(value, rel=0.03)


def by_hand(belief: bamdp.Belief, s: int, horizon: int) -> list[float]:
    """Bayes-optimal action values by plain recursion over copies of the belief."""
    values = []
    for a in np.flatnonzero(belief.space.allowed[s]).tolist():
        q = belief.expected_reward(s, a)
        for s2, p in enumerate(belief.predictive(s, a).tolist()):
            if horizon > 1 and not belief.space.terminal[s2]:
                after = belief.copy()
                after._learn(s, a, float(belief.expected_reward(s, a)), s2)
                q += DISCOUNT * p * max(by_hand(after, s2, horizon - 1))
        values.append(q)
    return values


@pytest.mark.parametrize("objective", BEST)
def test_exact_look_ahead_is_that_of_the_recursion_by_hand(objective):
    """Three states, few data: the start's law and the ends are being learned inside the plan."""
    S, A = 3, 2
    agent = bamdp.Agent(
        bamdp.FHTS(horizon=4),
        prior=bamdp.Dirichlet(alpha=0.3),
        rewards=np.arange(6.0).reshape(S, A),
        n_states=S,
        n_actions=A,
        discount=DISCOUNT,
        end=2,
        objective=objective,
    )
    agent.begin(0)
    agent.observe(0, 0, 0.0, 1)
    agent.observe(1, 1, 3.0, 0, terminated=True)
    agent.begin(1)
    for s in (0, 1):
        found = [c.value for c in agent.plan(s).candidates]
        assert np.allclose(found, by_hand(agent.belief, s, 4), rtol=1e-12)


def test_the_two_objectives_differ_in_the_value_of_an_end_alone():
    """The same data, solved by an independent method: the model with and without a way on from the end."""
    episode, lifetime = (experienced("bayes-greedy", objective) for objective in BEST)
    p, q = episode.belief.mean().dense(), lifetime.belief.mean().dense()
    assert np.allclose(p[0], q[0])
    assert not p[END].any()
    assert q[END, 0].sum() == pytest.approx(1.0)
    for agent, model in ((episode, p), (lifetime, q)):
        values = np.zeros(2)
        for _ in range(300):
            values = (REWARDS + DISCOUNT * model @ values).max(axis=1)
            values[END] = 0.0 if agent is episode else DISCOUNT * model[END, 0] @ values
        assert agent.plan(0).value == pytest.approx(values[0], rel=1e-4)


@pytest.mark.parametrize("name", ["thompson", "dss-pi", "mcbrl"])
def test_a_truncation_ends_what_was_decided_for_the_episode(name):
    settings = {"thompson": {"resample": "episode"}, "mcbrl": {"resample": "episode"}}
    planner = make_planner(name, settings.get(name, {"replan_every": "50"}))
    agent = bamdp.Agent(
        planner, prior=bamdp.Dirichlet(), rewards=np.eye(4, 2), n_states=4, n_actions=2, discount=0.9, seed=0
    )
    rng = []
    for step in range(6):
        before = agent.rng.copy()
        agent.act(0)
        rng.append(not np.array_equal(before, agent.rng))
        agent.observe(0, 0, 0.0, 1)
        if step == 3:
            agent.begin(2)
    assert rng == [True, False, False, False, True, False]


@pytest.mark.parametrize("name", [name for name in PLANNERS if name != "fhts"])
def test_actions_that_turn_out_not_to_exist_are_not_taken(name):
    """The mask of each state becomes known when the state is entered, as in Taxi; decisions are kept for long."""
    keep = {"thompson": {"resample": "episode"}, "mcbrl": {"resample": "episode"}}
    keep |= {f"dss-{kind}": {"replan_every": "50"} for kind in ("pi", "rtdp", "vi")}
    small = {"n_simulations": "50"} if name in ("bamcp", "bauct") else {}
    agent = bamdp.Agent(
        make_planner(name, {**keep.get(name, {}), **small}),
        prior=bamdp.Dirichlet(),
        rewards=np.random.default_rng(0).random((5, 3)),
        n_states=5,
        n_actions=3,
        discount=0.8,
        seed=0,
    )
    rng = np.random.default_rng(1)
    masks = np.eye(3, dtype=int)[[0, 1, 2, 0, 1]]
    state = 0
    agent.begin(state)
    for _ in range(20):
        agent.allow(state, masks[state])
        action = agent.act(state)
        assert masks[state, action]
        after = int(rng.integers(5))
        agent.observe(state, action, 0.5, after)
        state = after


def test_ends_learned_by_state_reach_the_planner():
    """Starts that were seen before a state turned out to be an end are not lost on a learner without a belief."""
    agent = bamdp.Agent(
        bamdp.RMax(known_after=2, tol=1e-8),
        prior=bamdp.Dirichlet(),
        rewards=[[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        n_states=3,
        n_actions=2,
        discount=0.5,
        action_mask=[[True, True], [False, True], [True, True]],
        objective="lifetime",
    )
    for _, a in itertools.product(range(4), range(2)):
        agent.begin(0)
        agent.observe(0, a, 0.0, 1)
        agent.observe(1, 1, 1.0, 2, terminated=True)
    agent.begin(0)
    begun_again = sum(n for outcome, n in agent.memory.counts.items() if outcome // 3 == 4)
    assert begun_again == 2  # (end, begin again) is known
    plan = agent.plan(0)
    assert plan.value == pytest.approx(0.5 / (1.0 - 0.5**3), rel=1e-6)
