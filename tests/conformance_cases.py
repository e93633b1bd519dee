"""The combinations of planner, prior and reward model that conformance and loading are tested on, the same for both.

The same ones, so that each is compiled once.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

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
    "shared": bamdp.SharedSupport(alpha=0.4, beta=1.5),
    "mixture": bamdp.Mixture([bamdp.Dirichlet(alpha=1.0), bamdp.SparseDirichlet()]),
}
REWARDS = {
    "pair": BY_PAIR,
    "next": BY_NEXT,
    "beta": bamdp.BetaBernoulli(),
    "normal": bamdp.NormalGamma(bounds=(-3.0, 4.0)),
    "values": bamdp.FiniteRewards(max_values=3, by="next"),
}
OBJECTIVES = {
    "values": "lifetime"
}  # elsewhere "episode", as with models, which know nothing that follows an end
QUANTILES = {  # of rewards that are drawn
    "beta": bernoulli,
    "values": bernoulli,
    "normal": lambda mean, u: NormalDist(mean, 0.1).inv_cdf(min(max(u, 1e-9), 1.0 - 1e-9)),
}
SMALL: dict[str, dict[str, str]] = {
    "dss-pi": {"n_policies": "2", "n_samples": "2", "n_steps": "4", "n_stages": "2", "leaf": "mean"},
    "dss-rtdp": {"n_policies": "2", "n_samples": "2", "n_steps": "4"},
    "dss-vi": {"n_policies": "2", "n_samples": "2", "n_steps": "4"},
    "adaptive-dss": {"n_simulations": "24", "n_steps": "3", "n_policies": "1", "first_models": "4"},
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
# A Latin square: every planner meets every prior and every reward model, and each prior meets each reward model.
SQUARE = [
    (name, prior, list(REWARDS)[(i + j) % len(REWARDS)])
    for i, name in enumerate(PLANNERS)
    for j, prior in enumerate(PRIORS)
]
# One of these for each planner, so that priors, reward models and their pairs are all met.
COVER = [SQUARE[len(PRIORS) * i + (i + i // len(PRIORS)) % len(PRIORS)] for i in range(len(PLANNERS))]
REFUSED = {("beb", "models"), ("bolt", "models"), ("fhts", "normal")}  # combinations that planners refuse
REFUSED |= {(name, "values") for name in ("rmax", "bfs3", "bayesian-q-learning")}  # they need a range


def possible(case: tuple[str, str, str]) -> bool:
    """Whether the planner takes this prior and these rewards."""
    name, prior, rewards = case
    return (name, prior) not in REFUSED and (name, rewards) not in REFUSED


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
        objective="episode" if prior == "models" else OBJECTIVES.get(rewards, "episode"),
        seed=seed,
    )


def environment(rewards: str) -> bamdp.Environment:
    if rewards in QUANTILES:
        return bamdp.Environment(rewards, WORLD, draw_reward=QUANTILES[rewards], start=0)
    return bamdp.from_mdp(world(BY_NEXT if rewards == "next" else BY_PAIR, 1))
