"""Threads: each its own agent, and no two threads in one agent."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import bamdp


def agent(planner=None, seed=0):
    env = bamdp.make_env("chain")
    world = {"rewards": env.rewards, "n_states": env.n_states, "n_actions": env.n_actions}
    prior = bamdp.SparseDirichlet()
    return bamdp.Agent(planner or bamdp.ThompsonSampling(), prior=prior, discount=0.95, seed=seed, **world)


def test_agents_in_threads_of_their_own_do_what_they_do_alone():
    alone = [bamdp.simulate(agent(seed=seed), bamdp.make_env("chain"), 300, seed=seed) for seed in range(4)]
    runs: dict[int, bamdp.Run] = {}

    def live(seed):
        runs[seed] = bamdp.simulate(agent(seed=seed), bamdp.make_env("chain"), 300, seed=seed)

    threads = [threading.Thread(target=live, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [runs[seed] for seed in range(4)] == alone


@pytest.mark.parametrize("ask", ["act", "plan", "observe", "begin", "copy", "save"])
def test_a_second_thread_is_refused_and_nothing_is_lost(ask, tmp_path):
    inside, leave, errors = threading.Event(), threading.Event(), []

    def wait(mdp, discount):
        inside.set()
        assert leave.wait(30)
        return np.zeros(5, np.int64)

    one = agent(bamdp.DSS(n_policies=1, n_samples=1, n_steps=2, generator=wait))
    first = threading.Thread(target=one.act, args=(0,))
    first.start()
    assert inside.wait(30)
    calls = {
        "act": lambda: one.act(0),
        "plan": lambda: one.plan(0),
        "observe": lambda: one.observe(0, 0, 0.2, 0),
        "begin": lambda: one.begin(0),
        "copy": one.copy,
        "save": lambda: one.save(tmp_path / "agent.npz"),
    }
    try:
        calls[ask]()
    except RuntimeError as error:
        errors.append(str(error))
    leave.set()
    first.join()
    assert len(errors) == 1
    assert "another thread" in errors[0]
    one.observe(0, 0, 0.2, 0)
    assert one.belief.n_observed == 1
