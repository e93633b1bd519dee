"""A world of your own from a matrix: a machine that wears out.

Three conditions (good, worn, broken), two actions (run it, service it). You know the matrix; the agent does not, only
what its actions earn. Run: python examples/own_matrix.py
"""

import numpy as np

import bamdp

RUN, SERVICE = 0, 1
transitions = np.zeros((3, 2, 3))
transitions[:, RUN] = [[0.8, 0.2, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]]
transitions[:, SERVICE] = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.7, 0.0, 0.3]]
rewards = np.array([[1.0, -0.2], [0.7, -0.2], [0.0, -0.6]])


def main() -> None:
    machine = bamdp.FiniteMDP(transitions, rewards, state_labels=["good", "worn", "broken"])
    best = bamdp.policy_iteration(machine, discount=0.95)
    print("knowing the machine:", ["run" if a == RUN else "service" for a in best.policy])

    env = bamdp.from_mdp(machine, name="machine")
    agent = bamdp.Agent(
        bamdp.DSS(n_policies=4, n_samples=4, n_steps=20),
        prior=bamdp.Dirichlet(alpha=1 / 3),
        rewards=rewards,
        n_states=3,
        n_actions=2,
        discount=0.95,
        seed=0,
    )
    run = bamdp.simulate(agent, env, steps=1000, seed=0)
    ceiling = bamdp.total_reward(machine, 0, 1000)
    print(f"learning it: {run.total_reward:.0f} in 1000 steps, of {ceiling:.0f}")
    print("believed to follow running it when worn:", agent.belief.predictive(1, RUN).round(2))


if __name__ == "__main__":
    main()
