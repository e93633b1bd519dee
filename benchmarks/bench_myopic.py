"""Compare the speed of SBOSS and BEB with Guez's C++ programs: ``python benchmarks/bench_myopic.py [steps] [repeats]``.

The C++ figures are user processor time per step of whole runs, measured on a machine of this kind (two shared cores),
of the program built with ``-O3 -march=native -DNDEBUG``; with its own flags it is up to 2.4 times slower.
Ours are the processor time of the agent's part of a run, planning and learning together, the best of several runs
with different seeds; the time of the environment is measured separately and subtracted.
"""

from __future__ import annotations

import sys
import time

from common import make_agent

import bamdp
from bamdp import BEB, BOLT, BOSS, MCBRL, SBOSS, VBRB, Planner

# (environment, prior, planner, C++ ms/step)
ROWS: list[tuple[str, str, Planner, float | None]] = [
    ("grid5", "flat", SBOSS(n_models=2, delta=3.0), 0.109),
    ("grid5", "sparse", SBOSS(n_models=2, delta=3.0), 0.070),
    ("grid10", "flat", SBOSS(n_models=2, delta=3.0), 3.53),
    ("grid10", "sparse", SBOSS(n_models=2, delta=3.0), 1.02),
    ("grid5", "flat", BEB(bonus=2.0), 0.128),
    ("grid10", "flat", BEB(bonus=2.0), 1.28),
    ("grid5", "symmetric", BEB(bonus=2.0), 0.122),  # what that program does when asked for the sparse prior
    ("grid10", "symmetric", BEB(bonus=2.0), 1.03),
    ("grid10", "sparse", BEB(bonus=2.0), None),
    ("grid10", "sparse", VBRB(), None),
    ("grid10", "sparse", BOLT(), None),
    ("grid10", "sparse", BOSS(), None),
    ("grid10", "sparse", MCBRL(n_models=4, resample="discount"), None),
    ("grid10", "sparse", MCBRL(n_models=4, policy="lower", resample="discount"), None),
]


def agent_seconds(env: bamdp.Environment, agent: bamdp.Agent, steps: int, seed: int) -> float:
    """Return the processor seconds of a run, less those of the same actions without the agent."""
    actions = []
    state = env.reset(seed=seed)
    begin = time.process_time()
    for _ in range(steps):
        action = agent.act(state)
        next_state, reward, terminated = env.step(action)
        agent.observe(state, action, reward, next_state, terminated)
        actions.append(action)
        state = next_state
    whole = time.process_time() - begin
    env.reset(seed=seed)
    begin = time.process_time()
    for action in actions:
        env.step(action)
    return whole - (time.process_time() - begin)


def main(steps: int | None, repeats: int) -> None:
    """Measure and print the table."""
    for name, prior, planner, cpp in ROWS:
        env = bamdp.make_env(name)
        length = env.horizon if steps is None else steps
        agent_seconds(env, make_agent(env, planner, prior, 0), 20, 0)  # compile, or load from the cache
        best = min(agent_seconds(env, make_agent(env, planner, prior, r), length, r) for r in range(repeats))
        text = f"{name:7} {prior:7} {planner!s:75} {1e3 * best / length:8.4f} ms/step"
        if cpp is not None:
            text += f"   C++ {cpp:6.3f}   {cpp * length / best / 1e3:6.1f} times faster"
        print(text, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
