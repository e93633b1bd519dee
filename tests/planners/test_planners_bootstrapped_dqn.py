"""Bootstrapped DQN: gradients against finite differences, Adam by its formulas, the original's learning curve."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bamdp
from bamdp.planners import bootstrapped_dqn
from bamdp.planners.base import Transition
from bamdp.planners.bootstrapped_dqn import (
    BootstrappedDQN,
    adam,
    backward,
    draw_parameters,
    forward,
    n_parameters,
    parts,
)

DATA = Path(__file__).parent / "data"
SMALL = BootstrappedDQN(n_networks=3, n_hidden=8, batch_size=16, min_replay=16, replay_size=50)


def agent_in(env: bamdp.Environment, planner: BootstrappedDQN, seed: int = 0, **more) -> bamdp.Agent:
    return bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=0.1),
        rewards=bamdp.NormalGamma(),
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.99,
        terminal=env.mdp.terminal,
        seed=seed,
        **more,
    )


def test_gradients_are_those_of_finite_differences():
    rng, sizes, states = np.random.default_rng(0), (5, 3, 4), np.array([0, 3, 4])
    flat = rng.normal(scale=0.5, size=(2, n_parameters(*sizes)))  # biases, too: no kinks at 0
    direction = rng.normal(size=(2, 3, 3))
    networks, gradient = parts(flat, *sizes), np.zeros_like(flat)
    x1, x2, _ = forward(networks, states)
    backward(networks, states, x1, x2, direction, parts(gradient, *sizes))
    numeric, step = np.empty_like(flat), 1e-6
    for at in np.ndindex(flat.shape):
        kept, sums = flat[at], []
        for sign in (1, -1):
            flat[at] = kept + sign * step
            sums.append((forward(networks, states)[2] * direction).sum())
        flat[at] = kept
        numeric[at] = (sums[0] - sums[1]) / (2 * step)
    assert np.allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_training_lowers_the_loss_of_the_batch_by_its_own_gradient(monkeypatch):
    """The gradient that Adam is given is that of the loss at the head of the file, by finite differences."""
    env = bamdp.make_env("deep_sea", size=4)
    agent = agent_in(env, SMALL)
    bamdp.simulate(agent, env, steps=60, seed=0)
    memory, allowed, slots = agent.memory, agent.belief.space.allowed, np.arange(16)
    memory.target_q[:], memory.up_to_date[:] = SMALL._values(memory, memory.target, np.arange(17)), True

    def loss():
        s, a, s2 = memory.index[slots].T
        best = np.where(allowed[s2], memory.target_q[:, s2], -np.inf).max(axis=2)
        target = memory.reward[slots] + np.where(memory.goes_on[slots] > 0, 0.99 * best, 0.0)
        values = SMALL._values(memory, memory.now, np.arange(17))
        return ((target - values[:, s, a]).astype(float) ** 2).mean(axis=1).sum()

    given = []
    monkeypatch.setattr(bootstrapped_dqn, "adam", lambda *args: given.append(args[3].copy()))
    SMALL._train(memory, slots, allowed)
    gradient = given[0].reshape(memory.now.shape)
    assert np.abs(gradient).max() > 1e-3
    memory.now, rng = memory.now.astype(float), np.random.default_rng(1)
    for _ in range(5):
        direction = rng.normal(size=memory.now.shape) * (gradient != 0)
        kept, sums, step = memory.now.copy(), [], 1e-6
        for sign in (1, -1):
            memory.now[...] = kept + sign * step * direction
            sums.append(loss())
        memory.now[...] = kept
        assert (gradient * direction).sum() == pytest.approx((sums[0] - sums[1]) / (2 * step), rel=1e-3)


def test_adam_is_kingma_and_ba_s_and_leaves_what_never_had_a_gradient():
    rng = np.random.default_rng(2)
    w, m, v = rng.normal(size=8).astype(np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    first, second, expected, before = np.zeros(8), np.zeros(8), w.astype(float), w.copy()
    for t in range(1, 6):
        g = rng.normal(size=8).astype(np.float32) if t <= 3 else np.zeros(8, np.float32)
        g[4:] = 0.0
        root = np.sqrt(1 - 0.999**t)
        adam(w, m, v, g, np.float32(0.1 * root / (1 - 0.9**t)), np.float32(1e-8 * root))
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g.astype(float) ** 2
        expected -= 0.1 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    assert np.allclose(w, expected, rtol=1e-4)
    assert np.array_equal(w[4:], before[4:])


def test_weights_are_normal_cut_at_two_deviations():
    drawn = parts(draw_parameters(20, 100, 2, 50, 100, np.random.default_rng(3)), 100, 2, 50)
    scaled = drawn.w1 * 10.0
    assert np.abs(scaled).max() <= 2.0 + 1e-6
    assert abs(scaled.mean()) < 0.02  # 100 000 draws: five standard errors are 0.014
    assert abs(scaled.std() - 0.8796) < 0.01
    assert all((bias == 0).all() for bias in (drawn.b1, drawn.b2, drawn.b3))


def test_an_episode_is_played_by_one_network_as_it_was_when_the_episode_began():
    env = bamdp.make_env("deep_sea", size=4)
    agent = agent_in(env, SMALL)
    bamdp.simulate(agent, env, steps=41, seed=0)
    memory = agent.memory
    head, played = memory.head_index, memory.head.copy()
    for s, s2 in ((4, 8), (8, 12)):
        agent.act(s)
        agent.observe(s, 0, 0.0, s2)
    assert memory.head_index == head
    assert np.array_equal(memory.head, played)
    agent.act(12)
    assert not np.array_equal(memory.now[head], played[0]), "training goes on meanwhile"
    q = forward(parts(memory.head, 17, 2, 8), np.array([12]))[2][0, 0] + memory.prior[head, 12]
    assert agent.plan(12).action == int(np.argmax(q))


def test_the_last_transitions_are_remembered():
    memory = SMALL.start(agent_in(bamdp.make_env("deep_sea", size=4), SMALL).belief, 0.9)
    belief = agent_in(bamdp.make_env("deep_sea", size=4), SMALL).belief
    for i in range(60):
        SMALL.learn(memory, belief, Transition(i % 16, i % 2, float(i), 16, True))
    assert memory.n_seen == 60
    assert sorted(memory.reward.tolist()) == list(map(float, range(10, 60)))
    assert not memory.goes_on.any()


def test_an_end_goes_on_under_the_lifetime_objective():
    env = bamdp.make_env("deep_sea", size=2)
    for objective, worth, more in (("episode", 0.0, 0), ("lifetime", 1.0, 1)):
        agent = agent_in(env, SMALL, objective=objective)
        replay = agent.memory
        agent.begin(0)
        agent.observe(0, 0, 0.0, 3)
        agent.observe(3, 0, 0.0, 4, True)
        seen = replay.n_seen
        assert replay.goes_on[seen - 1] == worth
        agent.begin(0)
        assert replay.n_seen == seen + more
        assert replay.index[seen].tolist() == ([4, 0, 0] if more else [0, 0, 0]), "from the end to the start"


def test_examples_in_docstrings_run():
    assert doctest.testmod(bootstrapped_dqn).failed == 0


SCRIPT = """
import bamdp
env = bamdp.make_env("deep_sea", size=3)
planner = bamdp.BootstrappedDQN(n_networks=3, n_hidden=4, batch_size=8, min_replay=8)
agent = bamdp.Agent(planner, prior=bamdp.Dirichlet(), rewards=bamdp.NormalGamma(), n_states=10, n_actions=2,
                    discount=0.9, terminal=env.mdp.terminal, seed=1)
run = bamdp.simulate(agent, env, 40, seed=0)
print(run.actions.tolist(), round(agent.plan(0).value, 3))
"""


def test_runs_without_the_compiler_to_the_same_end():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 50


@pytest.mark.slow
def test_the_learning_curve_is_the_original_s():
    """Bad episodes among the first 150, ours in 12 runs, those of bsuite's own agent from the file.

    The file is what ``paper/original_bdqn.py`` has written (its head says how). Welch's test at level 0.001,
    two-sided, with fixed seeds.
    """
    from scipy import stats

    lines = (DATA / "boot_dqn_deep_sea_10.jsonl").read_text().splitlines()
    theirs = [sum(episode < 150 for episode in json.loads(line)["bad"]) for line in lines]
    ours = []
    for seed in range(12):
        env = bamdp.make_env("deep_sea", size=10)
        run = bamdp.simulate(agent_in(env, BootstrappedDQN(), seed=seed), env, 1500, seed=seed)
        ours.append(int(env.bad_episodes(run.states, run.actions).sum()))
    assert len(theirs) > 1
    assert stats.ttest_ind(ours, theirs, equal_var=False).pvalue > 0.001, (ours, theirs)
    assert max(ours) < 140, "every run finds the treasure for good"
