"""A prior of your own: on a grid, an action leads to a neighbouring square or back to the start.

A prior is a few parameters and the posterior before any data. Here that is a Dirichlet on the neighbours; everything
else, including compiled planning, needs no further code. Run: python examples/own_prior.py
"""

from dataclasses import dataclass

import numpy as np

import bamdp


@dataclass(frozen=True)
class Neighbours(bamdp.Prior):
    """Each square leads to itself, to a neighbour on a square grid, or to square 0, with prior count alpha each."""

    alpha: float = 0.5

    def posterior(self, n_states, n_actions):
        size = round(n_states**0.5)
        if size * size != n_states:
            raise ValueError(f"Neighbours is for square grids, which {n_states} states are not")
        column, row = np.divmod(np.arange(n_states), size)
        distance = abs(column[:, None] - column) + abs(row[:, None] - row)
        counts = np.where(distance <= 1, self.alpha, 0.0)
        counts[:, 0] = self.alpha
        alpha = np.repeat(counts[:, None, :], n_actions, axis=1)
        return bamdp.Dirichlet(alpha=alpha).posterior(n_states, n_actions)


def main() -> None:
    env = bamdp.make_env("grid5")
    for prior in (bamdp.Dirichlet(alpha=1 / 25), bamdp.SparseDirichlet(beta=2.0), Neighbours()):
        totals = []
        for seed in range(5):
            agent = bamdp.Agent(
                bamdp.DSS(n_policies=2, n_samples=2, n_steps=25),
                prior=prior,
                rewards=env.rewards,
                n_states=env.n_states,
                n_actions=env.n_actions,
                discount=0.95,
                seed=seed,
            )
            totals.append(bamdp.simulate(agent, env, steps=300, seed=seed).total_reward)
        print(f"{type(prior).__name__}: {np.mean(totals):.1f} in 300 steps, mean of 5 runs")


if __name__ == "__main__":
    main()
