"""A prior of your own at work: Thompson sampling in a deterministic world, with three priors.

``Deterministic`` is defined in ``deterministic.py``. It fits the double loop exactly; the sparse prior with β = 6 comes
close to it, and is as good. Run it as ``python examples/compare_priors.py [picture.png]``.
"""

from __future__ import annotations

import sys

import numpy as np
from deterministic import Deterministic

import bamdp
from bamdp.plot.style import save_figure

PRIORS = {
    "Deterministic (ours)": Deterministic(),
    "SparseDirichlet, β = 6": bamdp.SparseDirichlet(alpha=0.2, beta=6.0),
    "Dirichlet, 1/S": bamdp.Dirichlet(alpha=1 / 9),
}


def main(path: str = "compare-priors.png", runs: int = 20, steps: int = 400) -> dict[str, float]:
    """Draw the figure and return the mean total reward of each prior."""
    env = bamdp.make_env("double_loop")
    curves = {}
    for name, prior in PRIORS.items():
        rewards = []
        for seed in range(runs):
            agent = bamdp.Agent(
                bamdp.ThompsonSampling(resample=5),
                prior=prior,
                rewards=env.rewards,
                n_states=env.n_states,
                n_actions=env.n_actions,
                discount=0.95,
                seed=seed,
            )
            rewards.append(bamdp.simulate(agent, env, steps, seed=seed).rewards)
        curves[name] = np.array(rewards)
    title = f"Double loop, three priors, mean of {runs} runs, 95% band"
    axes = bamdp.plot.learning_curve(curves, window=45, optimum=0.4, title=title)
    save_figure(axes.figure, path)
    return {name: float(rewards.sum(axis=1).mean()) for name, rewards in curves.items()}


if __name__ == "__main__":
    for label, total in main(*sys.argv[1:]).items():
        print(f"{label:24} {total:6.1f}")
