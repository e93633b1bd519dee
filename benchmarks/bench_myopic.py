"""Speed of SBOSS and BEB against Guez's C++ programs: ``python benchmarks/bench_myopic.py [steps] [repeats]``.

The C++ figures are user processor time a step of whole runs, measured on a machine of this kind (two shared cores).
Ours is the processor time of the agent's part of a run, planning and learning together, the best of several runs
with different seeds; what the loop around the agent and the environment take is left out by timing it alone.
"""

from __future__ import annotations

import sys
import time

import bamdp
from bamdp.planners.base import Planner
from bamdp.planners.beb import BEB
from bamdp.planners.bolt import BOLT
from bamdp.planners.boss import BOSS
from bamdp.planners.mcbrl import MCBRL
from bamdp.planners.sboss import SBOSS
from bamdp.planners.vbrb import VBRB

# (environment, prior, planner, C++ ms/step)
ROWS: list[tuple[str, str, Planner, float | None]] = [
    ("grid5", "flat", SBOSS(n_models=2, delta=3.0), 0.13),
    ("grid5", "sparse", SBOSS(n_models=2, delta=3.0), 0.082),
    ("grid10", "flat", SBOSS(n_models=2, delta=3.0), 5.8),
    ("grid10", "sparse", SBOSS(n_models=2, delta=3.0), 2.4),
    ("grid5", "flat", BEB(bonus=2.0), 0.15),
    ("grid10", "flat", BEB(bonus=2.0), 3.0),
    ("grid10", "sparse", BEB(bonus=2.0), None),
    ("grid10", "sparse", VBRB(), None),
    ("grid10", "sparse", BOLT(), None),
    ("grid10", "sparse", BOSS(), None),
    ("grid10", "sparse", MCBRL(n_models=4, resample="discount"), None),
    ("grid10", "sparse", MCBRL(n_models=4, policy="lower", resample="discount"), None),
]


def agent_for(env: bamdp.Environment, prior: str, planner: Planner, seed: int) -> bamdp.Agent:
    """An agent with the reference's prior, known rewards and γ = 0.95."""
    beliefs = {
        "flat": bamdp.Dirichlet(alpha=1.0 / env.n_states),
        "sparse": bamdp.SparseDirichlet(alpha=0.2, beta=2.0),
    }
    return bamdp.Agent(
        planner,
        prior=beliefs[prior],
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.95,
        seed=seed,
    )


def live(env: bamdp.Environment, agent: bamdp.Agent, steps: int, seed: int) -> float:
    """Processor seconds of a run; afterwards the same moves are made again without the agent and subtracted."""
    moves = []
    state = env.reset(seed=seed)
    begin = time.process_time()
    for _ in range(steps):
        action = agent.act(state)
        next_state, reward, terminated = env.step(action)
        agent.observe(state, action, reward, next_state, terminated)
        moves.append(action)
        state = next_state
    whole = time.process_time() - begin
    env.reset(seed=seed)
    begin = time.process_time()
    for action in moves:
        env.step(action)
    return whole - (time.process_time() - begin)


def main(steps: int | None, repeats: int) -> None:
    """The table."""
    for name, prior, planner, cpp in ROWS:
        env = bamdp.make_env(name)
        length = env.horizon if steps is None else steps
        live(env, agent_for(env, prior, planner, 0), 20, 0)  # compiles, or loads
        best = min(live(env, agent_for(env, prior, planner, r), length, r) for r in range(repeats))
        text = f"{name:7} {prior:7} {planner!s:75} {1e3 * best / length:8.4f} ms/step"
        if cpp is not None:
            text += f"   C++ {cpp:6.3f}   {cpp * length / best / 1e3:6.1f} times faster"
        print(text, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
