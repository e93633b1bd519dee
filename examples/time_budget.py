"""Act with a time limit per step: as many simulations as fit into 5 milliseconds.

Plans then depend on the machine and its load, so each plan states that it is not reproducible.
Run: python examples/time_budget.py
"""

import time

import bamdp


def main() -> None:
    env = bamdp.make_env("grid5")
    agent = bamdp.Agent(
        bamdp.BAMCP(time_limit=0.005, depth=40),
        prior=bamdp.SparseDirichlet(),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.95,
        seed=0,
    )
    state = env.reset(seed=0)
    agent.plan(state)  # the first plan compiles, or loads from the cache
    total, longest, simulations = 0.0, 0.0, []
    for _ in range(100):
        begin = time.perf_counter()
        plan = agent.plan(state)
        longest = max(longest, time.perf_counter() - begin)
        simulations.append(plan.details["simulations"])
        next_state, reward, terminated = env.step(plan.action)
        agent.observe(state, plan.action, reward, next_state, terminated)
        total += reward
        state = next_state
    print(f"reward {total:.1f} in 100 steps; longest plan {1e3 * longest:.1f} ms")
    print(
        f"simulations per plan: {min(simulations)} to {max(simulations)}; reproducible: {plan.reproducible}"
    )


if __name__ == "__main__":
    main()
