"""A policy generator of your own for DSS: cautious policies that plan for a nearer future than the agent does.

DSS computes a policy for every sampled model, by a function in plain Python, which is quick to write, or by one that is
compiled and some 20 times faster. (A function that is defined in the script itself is compiled each time; in a module
that you import, it is cached on disk.) Run: python examples/own_generator.py
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bamdp


def nearsighted(mdp: bamdp.FiniteMDP, discount: float) -> np.ndarray:
    """Return an action for every state of a model, in plain Python, with half the discount."""
    return bamdp.value_iteration(mdp, 0.5 * discount, tol=1e-3).policy


class NearsightedParams(NamedTuple):
    """The parameters of the generator that compiled code reads."""

    sweeps: int


@dataclass(frozen=True)
class Nearsighted(bamdp.Generator):
    """The same, compiled: a few sweeps of value iteration from zero."""

    sweeps: int = 10

    def parameters(self) -> NearsightedParams:
        return NearsightedParams(self.sweeps)


@bamdp.register_generator(NearsightedParams)
def _generate(G, rows, space, discount, s, solver, rng):
    n_states, n_actions = space.allowed.shape
    old, new = solver.values, solver.scratch
    for t in range(n_states):
        old[t] = 0.0
    for _ in range(G.sweeps):
        for t in range(n_states):
            best = -np.inf
            for a in range(n_actions):
                row = t * n_actions + a
                q = rows.reward[row]
                for i in range(rows.span[row, 0], rows.span[row, 1]):
                    q += 0.5 * discount * rows.prob[i] * old[rows.index[i]]
                if space.allowed[t, a] and q > best:
                    best = q
                    solver.policy[t] = a
            new[t] = 0.0 if space.terminal[t] else best
        for t in range(n_states):
            old[t] = new[t]


def main() -> None:
    env = bamdp.make_env("chain")
    for generator in ("pi", nearsighted, Nearsighted()):
        agent = bamdp.Agent(
            bamdp.DSS(n_policies=2, n_samples=4, n_steps=20, generator=generator),
            prior=bamdp.SparseDirichlet(),
            rewards=env.rewards,
            n_states=env.n_states,
            n_actions=env.n_actions,
            discount=0.95,
            seed=0,
        )
        run = bamdp.simulate(agent, env, steps=200, seed=0)
        name = generator if isinstance(generator, str) else getattr(generator, "__name__", "compiled")
        print(f"{name}: {run.total_reward:.1f} in 200 steps, {run.ms_per_step:.2f} ms per step")


if __name__ == "__main__":
    main()
