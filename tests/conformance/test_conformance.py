"""Every planner on every kind of belief: the promises that hold for all of them.

`make test` gives each planner one combination of prior and reward model, so that every prior and every reward
model is met by several planners; `make test-all` runs the product. A planner may refuse a belief, but
then when the agent is made and with a message.
"""

from __future__ import annotations

import itertools
import pickle
from statistics import NormalDist

import numpy as np
import pytest

import bamdp
from bamdp.envs.environment import bernoulli
from bamdp.registry import PLANNERS, make_planner

S, A = 4, 3
RNG = np.random.default_rng(20)
BY_PAIR = RNG.random((S, A))
BY_NEXT = RNG.random((S, A, S))
MASK = np.ones((S, A), bool)
MASK[1, 2] = MASK[2, 0] = False
TERMINAL = np.array([False, False, False, True])  # the last state ends an episode


def world(rewards: np.ndarray, seed: int) -> bamdp.FiniteMDP:
    transitions = 0.7 * np.random.default_rng(seed).dirichlet(np.ones(S), size=(S, A))
    transitions[:, :, 3] += 0.3  # episodes are short
    return bamdp.FiniteMDP(transitions, rewards, terminal=TERMINAL, action_mask=MASK)


WORLD = world(BY_PAIR, 1)
PRIORS = {
    "sparse": bamdp.SparseDirichlet(alpha=0.3, beta=1.5),
    "flat": bamdp.Dirichlet(alpha=0.4),
    "full": bamdp.Dirichlet(alpha=RNG.random((S, A, S)) + 0.1),
    "models": bamdp.FiniteModels([WORLD, world(BY_PAIR, 2)]),
    "mixture": bamdp.Mixture([bamdp.Dirichlet(alpha=1.0), bamdp.SparseDirichlet()]),
}
REWARDS = {
    "pair": BY_PAIR,
    "next": BY_NEXT,
    "beta": bamdp.BetaBernoulli(),
    "normal": bamdp.NormalGamma(bounds=(-3.0, 4.0)),
    "values": bamdp.FiniteRewards(max_values=3, by="next"),
}
OBJECTIVES = {"values": "lifetime"}  # elsewhere "episode"
QUANTILES = {  # of rewards that are drawn
    "beta": bernoulli,
    "values": bernoulli,
    "normal": lambda mean, u: NormalDist(mean, 0.1).inv_cdf(min(max(u, 1e-9), 1.0 - 1e-9)),
}
SMALL: dict[str, dict[str, str]] = {
    "dss-pi": {"n_policies": "2", "n_samples": "2", "n_steps": "4", "n_stages": "2", "leaf": "mean"},
    "dss-rtdp": {"n_policies": "2", "n_samples": "2", "n_steps": "4"},
    "dss-vi": {"n_policies": "2", "n_samples": "2", "n_steps": "4"},
    "fhts": {"horizon": "2"},
    "sparse-sampling": {"width": "2", "depth": "2"},
    "bamcp": {"n_simulations": "30"},
    "bauct": {"n_simulations": "30"},
    "bayesian-sparse-sampling": {"n_trajectories": "6", "depth": "3"},
    "bootstrapped-dqn": {
        "n_networks": "3",
        "n_hidden": "4",
        "batch_size": "8",
        "min_replay": "8",
        "replay_size": "20",
    },
    "bfs3": {"n_successors": "2", "n_trajectories": "5", "depth": "4"},
}
# Rewards by pair and by next state are one compiled type, and beta, normal and values share what is done with a row
# (beliefs/cells.py): they need not all meet every prior again.
FULL = ("pair", "beta")
ONCE = {name: ("normal", "values")[i % 2] for i, name in enumerate(PLANNERS)}
PRODUCT = [
    (name, prior, rewards)
    for name, prior, rewards in itertools.product(PLANNERS, PRIORS, REWARDS)
    if rewards in FULL or (prior == "sparse" and rewards in ("next", ONCE[name]))
]
_pairs = list(itertools.product(PRIORS, REWARDS))
COVER = {(name, *_pairs[(4 * i) % len(_pairs)]) for i, name in enumerate(PLANNERS)}


def agent_of(name: str, prior: str, rewards: str, seed: int = 3) -> bamdp.Agent:
    return bamdp.Agent(
        make_planner(name, SMALL.get(name, {})),
        prior=PRIORS[prior],
        rewards=REWARDS[rewards],
        n_states=S,
        n_actions=A,
        discount=0.9,
        terminal=TERMINAL,
        action_mask=MASK,
        objective=OBJECTIVES.get(rewards, "episode"),
        seed=seed,
    )


def environment(rewards: str) -> bamdp.Environment:
    if rewards in QUANTILES:
        return bamdp.Environment(rewards, WORLD, draw_reward=QUANTILES[rewards], start=0)
    return bamdp.from_mdp(world(BY_NEXT if rewards == "next" else BY_PAIR, 1))


def belief_arrays(belief: bamdp.Belief) -> list[np.ndarray]:
    """What a belief says: all predictives, expected rewards, terminal states."""
    pairs = list(itertools.product(range(S), range(A)))
    return [
        np.array([belief.predictive(s, a) for s, a in pairs]),
        np.array([belief.expected_reward(s, a) for s, a in pairs]),
        belief.space.terminal.copy(),
        np.array([belief.log_evidence]),
    ]


def check(name: str, prior: str, rewards: str, tmp_path) -> None:
    refusal = None
    try:
        agent = agent_of(name, prior, rewards)
    except (ValueError, TypeError) as error:
        refusal = str(error)
    if refusal is not None:
        assert len(refusal) > 40, f"{name} refuses {prior}/{rewards} without saying why"
        return
    env = environment(rewards)
    steps = 25

    run = bamdp.simulate(agent, env, steps, seed=5)
    again = bamdp.simulate(agent_of(name, prior, rewards), env, steps, seed=5)
    assert np.array_equal(run.actions, again.actions), "same seed, same actions"
    assert np.array_equal(run.rewards, again.rewards)
    assert MASK[run.states, run.actions].all(), "only allowed actions"
    assert run.terminated.any(), "the test must pass through ends of episodes"

    before = belief_arrays(agent.belief)
    plan = agent.plan(0)
    assert repr(plan) == repr(agent.plan(0)), "asking changes nothing"  # repr, since NaN is not itself
    assert plan.candidates
    assert all(MASK[0, c.action] for c in plan.candidates)
    assert name == "random" or np.isfinite(plan.value)

    path = tmp_path / "agent.npz"
    agent.save(path)
    twin = bamdp.Agent.load(path)
    assert agent.act(0) == plan.action == twin.act(0), "the plan is what is done"
    for old, new in zip(before, belief_arrays(agent.belief)):
        assert np.array_equal(old, new), "planning leaves the belief as it was"
    later = bamdp.simulate(agent, environment(rewards), steps, seed=6)
    resumed = bamdp.simulate(twin, environment(rewards), steps, seed=6)
    assert np.array_equal(later.actions, resumed.actions), "a saved agent goes on bit for bit"

    assert pickle.loads(pickle.dumps(agent.planner)) == agent.planner
    with pytest.raises(ValueError, match="terminal"):
        agent.act(3)
    with pytest.raises(ValueError, match=r"0\.\.3"):
        agent.plan(4)


@pytest.mark.parametrize(("name", "prior", "rewards"), sorted(COVER))
def test_planner_keeps_its_promises(name, prior, rewards, tmp_path):
    check(name, prior, rewards, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prior", "rewards"), [case for case in PRODUCT if case not in COVER])
def test_planner_keeps_its_promises_everywhere(name, prior, rewards, tmp_path):
    check(name, prior, rewards, tmp_path)


TREES = (
    "dss-pi",
    "dss-rtdp",
    "fhts",
    "sparse-sampling",
    "bayesian-sparse-sampling",
    "bamcp",
    "bauct",
    "bfs3",
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prior"), list(itertools.product(TREES, PRIORS)))
def test_the_tree_of_a_plan_is_that_of_the_decision_whatever_is_believed(name, prior):
    agent = agent_of(name, prior, "pair")
    bamdp.simulate(agent, environment("pair"), 15, seed=5)
    before = belief_arrays(agent.belief)
    plan = agent.plan(0, tree=True)
    assert repr(plan) == repr(agent.plan(0))
    values = [c.value for c in plan.candidates if not np.isnan(c.value)]
    assert plan.tree.value[plan.tree.children(0)].tolist() == values
    for old, new in zip(before, belief_arrays(agent.belief)):
        assert np.array_equal(old, new), "looking leaves the belief as it was"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if named.cls.uses_prior else [])
        for name, named in PLANNERS.items()
    ],
)
def test_a_planner_says_whether_it_looks_at_the_prior(name):
    def actions(alpha: float) -> list[list[int]]:
        agents = (
            bamdp.Agent(
                make_planner(name, SMALL.get(name, {})),
                prior=bamdp.Dirichlet(alpha=alpha),
                rewards=BY_PAIR,
                n_states=S,
                n_actions=A,
                discount=0.9,
                terminal=TERMINAL,
                action_mask=MASK,
                seed=seed,
            )
            for seed in range(5)
        )
        return [bamdp.simulate(agent, environment("pair"), 40, seed=1).actions.tolist() for agent in agents]

    assert (actions(0.02) != actions(20.0)) == PLANNERS[name].cls.uses_prior
