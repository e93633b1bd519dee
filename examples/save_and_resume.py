"""Save and resume: the whole agent, or only its belief, with another planner.

Run: python examples/save_and_resume.py
"""

import tempfile
from pathlib import Path

import numpy as np

import bamdp


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    env = bamdp.make_env("grid5")
    agent = bamdp.Agent(
        bamdp.ThompsonSampling(),
        prior=bamdp.SparseDirichlet(),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.95,
        seed=0,
    )
    print("today:", bamdp.simulate(agent, env, steps=500, seed=0).total_reward)
    agent.save(folder / "agent.npz")
    agent.belief.save(folder / "belief.npz")

    same = bamdp.Agent.load(folder / "agent.npz")  # bit for bit
    one = bamdp.simulate(agent, env, steps=500, seed=1)
    two = bamdp.simulate(same, env, steps=500, seed=1)
    print("tomorrow:", two.total_reward, "- the same run:", np.array_equal(one.actions, two.actions))

    belief = bamdp.Belief.load(folder / "belief.npz")
    other = bamdp.Agent.with_belief(bamdp.DSS(n_steps=25), belief, discount=0.95, seed=0)
    print("with DSS instead:", bamdp.simulate(other, env, steps=500, seed=1).total_reward)
    print("transitions in the belief by now:", belief.n_observed)


if __name__ == "__main__":
    main()
