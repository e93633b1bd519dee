"""A policy generator of your own: DSS with optimal policies, and with policies that look three steps ahead.

Any function ``(mdp, discount) -> policy`` can be used. Policy iteration in Python does exactly what the
compiled one does, only slower: their curves are identical.

Run it as ``python examples/compare_generators.py [picture.png]``.
"""

from __future__ import annotations

import sys

import numpy as np

import bamdp
from bamdp.plot.style import save_figure


def optimal(mdp: bamdp.FiniteMDP, discount: float) -> np.ndarray:
    """Return the policy of policy iteration, as the compiled DSS(generator="pi") does."""
    return bamdp.policy_iteration(mdp, discount).policy


def short_sighted(mdp: bamdp.FiniteMDP, discount: float) -> np.ndarray:
    """Return the policy after three sweeps of value iteration, which looks three steps ahead."""
    P, R = mdp.dense(), mdp.expected_rewards
    values = np.zeros(mdp.n_states)
    for _ in range(3):
        q = R + discount * P @ values
        values = q.max(axis=1)
    return q.argmax(axis=1)


def main(path: str = "compare-generators.png", runs: int = 8, steps: int = 300) -> dict[str, float]:
    """Draw the figure and return the mean total reward of each generator."""
    env = bamdp.make_env("chain")
    curves = {}
    for name, generator in {
        "compiled PI": "pi",
        "PI in Python": optimal,
        "three sweeps": short_sighted,
    }.items():
        rewards = []
        for seed in range(runs):
            agent = bamdp.Agent(
                bamdp.DSS(n_policies=4, n_samples=4, n_steps=5, generator=generator),
                prior=bamdp.Dirichlet(alpha=0.2),
                rewards=env.rewards,
                n_states=env.n_states,
                n_actions=env.n_actions,
                discount=0.95,
                seed=seed,
            )
            rewards.append(bamdp.simulate(agent, env, steps, seed=seed).rewards)
        curves[name] = np.array(rewards)
    title = f"Chain, three generators, mean of {runs} runs, 95% band"
    axes = bamdp.plot.learning_curve(curves, window=50, optimum=0.4096, title=title)
    save_figure(axes.figure, path)
    return {name: float(rewards.sum(axis=1).mean()) for name, rewards in curves.items()}


if __name__ == "__main__":
    for label, total in main(*sys.argv[1:]).items():
        print(f"{label:14} {total:6.1f}")
