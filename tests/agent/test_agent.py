"""Agents and the loop that lets them act."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import bamdp
from bamdp.simulation import Interaction


def grid_agent(planner=None, **changes):
    env = bamdp.make_env("grid5")
    arguments = {
        "prior": bamdp.SparseDirichlet(alpha=0.2, beta=6.0),
        "rewards": env.rewards,
        "n_states": env.n_states,
        "n_actions": env.n_actions,
        "discount": 0.95,
        "seed": 0,
    }
    return env, bamdp.Agent(**{"planner": planner or bamdp.ThompsonSampling(), **arguments, **changes})


def test_environment_and_agent_have_separate_streams():
    env, agent = grid_agent(seed=1)
    one = bamdp.simulate(agent, env, 50, seed=7)
    two = bamdp.simulate(grid_agent(seed=2)[1], env, 50, seed=7)
    assert not np.array_equal(one.actions, two.actions)
    three = bamdp.simulate(grid_agent(seed=1)[1], env, 50, seed=8)
    assert not np.array_equal(one.states, three.states)


def test_a_seed_is_the_first_replicate_of_it_everywhere():
    batch = bamdp.run_many("grid5", "thompson", steps=30, runs=2, seed=7)
    run = bamdp.simulate(bamdp.Agent.for_env("grid5", "thompson", seed=7), "grid5", 30, seed=7)
    assert run == batch.runs[0]
    assert run != batch.runs[1]
    streams = [np.random.SeedSequence(7, spawn_key=(1, stream)) for stream in (0, 1)]
    second = bamdp.simulate(
        bamdp.Agent.for_env("grid5", "thompson", seed=streams[1]), "grid5", 30, seed=streams[0]
    )
    assert second == batch.runs[1]


def test_an_agent_that_cannot_fit_is_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "1")
    with pytest.raises(
        ValueError, match=r"an agent of random for 10000000 states and 4 actions would need about"
    ):
        grid_agent(bamdp.Random(), n_states=10**7)
    with pytest.raises(ValueError, match=r"an agent of boss:n_models=1000000000 for 25 states"):
        grid_agent(bamdp.BOSS(n_models=10**9))


def test_callbacks_see_every_step_and_can_end_the_run(capsys):
    env, agent = grid_agent(bamdp.Random())
    seen, ticks = [], []
    ending = lambda agent, env, step: step.t < 9
    observing = lambda agent, env, step: seen.append(step)
    run = bamdp.simulate(agent, env, 50, seed=0, callbacks=[observing, ending], progress=ticks.append)
    assert sum(ticks) == len(seen) == len(run.rewards) == 10
    assert [step.t for step in seen] == list(range(10))
    assert all(step.next_state == later.state for step, later in itertools.pairwise(seen))
    bamdp.simulate(agent, env, 5, seed=0, progress=True)
    assert capsys.readouterr().out == ""


def test_an_episode_that_ends_is_followed_by_the_next():
    transitions = np.zeros((2, 1, 2))
    transitions[:, :, 1] = 1.0
    mdp = bamdp.FiniteMDP(transitions, [1.0, 0.0], terminal=[False, True])
    agent = bamdp.Agent(
        bamdp.ThompsonSampling(resample="episode"),
        prior=bamdp.Dirichlet(),
        rewards=mdp.rewards,
        n_states=2,
        n_actions=1,
        discount=0.9,
        seed=0,
    )
    run = bamdp.simulate(agent, bamdp.from_mdp(mdp), 5, seed=0)
    assert run.total_reward == 5.0
    assert run.terminated.all()
    assert agent.belief.space.terminal[1]
    with pytest.raises(ValueError, match="terminal"):
        agent.act(1)


@pytest.mark.parametrize(("resample", "oldest"), [("step", 1), (7, 7), ("episode", 41)])
def test_thompson_keeps_a_draw_for_as_long_as_its_parameter_says(resample, oldest):
    agent, ages = bamdp.Agent.for_env("chain", bamdp.ThompsonSampling(resample=resample), seed=0), []
    note = lambda agent, env, step: ages.append(agent.plan(step.state).details["age_of_draw"])
    bamdp.simulate(agent, "chain", 40, seed=0, callbacks=[note])
    assert max(ages) == oldest  # after 40 steps, the next decision is the 41st


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": 1.0}, r"discount must be in \[0, 1\)"),
        ({"discount": -0.1}, "discount"),
        ({"discount": float("nan")}, "discount"),
        ({"n_states": 0}, "n_states must be at least 1"),
        ({"n_actions": 2}, "rewards have shape"),
        ({"prior": 3}, "prior must be an object such as SparseDirichlet"),
        ({"planner": 3}, "planner must be an object"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"prior": "spars"}, "unknown prior 'spars'; did you mean 'sparse'"),
        ({"prior": "models"}, "give the environment with it"),
        ({"rewards": "known"}, "not known in advance; choose"),
        ({"rewards": np.full((25, 4), np.nan)}, "rewards must be finite"),
        ({"terminal": [True]}, r"terminal must have shape \[25\]"),
        ({"action_mask": np.zeros((25, 4), bool)}, "state 0 has every action masked"),
    ],
)
def test_bad_arguments_are_refused_when_the_agent_is_made(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        grid_agent(**changes)


def test_an_agent_for_an_environment_is_told_what_that_tells():
    env = bamdp.make_env("deep_sea", size=4)
    agent = bamdp.Agent.for_env(env, "thompson", discount=0.9, seed=0)
    by_hand = bamdp.Agent(
        bamdp.ThompsonSampling(),
        prior=bamdp.SparseDirichlet(alpha=0.2, beta=2.0),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        terminal=env.mdp.terminal,
        action_mask=env.mdp.action_mask,
        discount=0.9,
        seed=0,
    )
    assert bamdp.simulate(agent, env, 60, seed=2) == bamdp.simulate(by_hand, env, 60, seed=2)


def test_an_agent_for_a_gymnasium_environment_plays_as_a_gym_agent_does():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    agent = bamdp.Agent.for_env(env, "thompson", discount=0.9, seed=0)
    player = bamdp.GymAgent.for_env(env, bamdp.ThompsonSampling(), discount=0.9, seed=0)
    assert bamdp.simulate(agent, env, 100, seed=3) == player.play(steps=100, seed=3)
    by_name = bamdp.Agent.for_env("gym:FrozenLake-v1:is_slippery=False", "thompson", discount=0.9, seed=0)
    again = bamdp.simulate(by_name, "gym:FrozenLake-v1:is_slippery=False", 100, seed=3)
    assert again == bamdp.simulate(
        bamdp.Agent.for_env(env, "thompson", discount=0.9, seed=0), env, 100, seed=3
    )


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("FrozenLake-v1", "write gym:FrozenLake-v1"),
        (gymnasium.Env, "an environment is a name"),
        (bamdp.make_env("chain").mdp, "from_mdp"),
        (gymnasium.make_vec("FrozenLake-v1", 2), "one environment at a time"),
    ],
)
def test_what_is_no_environment_is_told_how_to_become_one(env, words):
    with pytest.raises((ValueError, TypeError), match=words):
        bamdp.Agent.for_env(env, "thompson")


def test_a_gym_agent_plays_by_itself():
    player = bamdp.GymAgent.for_env("FrozenLake-v1", "thompson", "sparse:beta=6", rewards="normal", seed=0)
    with pytest.raises(TypeError, match=r"player\.play"):
        bamdp.simulate(player, player.world, 5)


def test_a_run_prints_in_a_line_and_is_a_frame():
    env, agent = grid_agent(bamdp.ThompsonSampling())
    run = bamdp.simulate(agent, env, 1000, seed=0)
    assert re.fullmatch(r"Run: 1000 steps, total \d+, [\d.]+ ms per step", repr(run))
    frame = run.to_frame()
    assert frame.reward.sum() == run.total_reward
    assert frame.state.tolist() == run.states.tolist()
    cut = bamdp.Run(*(np.zeros(4, int),) * 2, np.ones(4), np.array([0, 1, 0, 0], bool), np.zeros(4))
    assert repr(cut) == "Run: 4 steps, total 4, 1 episode with mean return 2, 0 ms per step"
    assert cut.to_frame().episode.tolist() == [0, 0, 1, 1]


def test_an_agent_of_another_size_is_refused():
    _, agent = grid_agent()
    with pytest.raises(ValueError, match="25 and 4"):
        bamdp.simulate(agent, bamdp.make_env("chain"), 10, seed=0)


def test_a_refused_observation_changes_nothing():
    _, agent = grid_agent()
    agent.observe(0, 0, 0.0, 1)
    before = agent.belief.predictive(0, 0)
    for bad in [(0, 0, float("nan"), 1), (0, 9, 0.0, 1), (25, 0, 0.0, 1), (0, 0, 0.0, -1)]:
        with pytest.raises(ValueError, match="must be"):
            agent.observe(*bad)
    assert np.array_equal(before, agent.belief.predictive(0, 0))


SCRIPT = """
import bamdp
env = bamdp.make_env("chain")
agent = bamdp.Agent(bamdp.DSS(n_policies=2, n_samples=2, n_steps=4, n_stages=2), prior=bamdp.SparseDirichlet(),
                    rewards=env.rewards, n_states=5, n_actions=2, discount=0.95, seed=3)
run = bamdp.simulate(agent, env, 12, seed=4)
print(run.actions.tolist(), [round(c.value, 9) for c in agent.plan(0).candidates])
"""


def test_results_agree_with_the_compiler_switched_off():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for flag in ("0", "1")
    ]
    assert outputs[0] == outputs[1]


def test_small_integers_of_numpy_are_converted(monkeypatch):
    """90 · 4 + 1 does not fit into eight bits, so a planner would count another pair."""
    seen = []
    monkeypatch.setattr(bamdp.RMax, "learn", lambda planner, memory, belief, step: seen.append(step))
    _, agent = grid_agent(bamdp.RMax(), n_states=100, rewards=np.zeros(100))
    agent.observe(np.uint8(90), np.uint8(1), np.float32(0.0), np.uint8(91))
    assert seen == [bamdp.Transition(90, 1, 0.0, 91, False)]
    assert list(map(type, seen[0][:4])) == [int, int, float, int]


@pytest.mark.parametrize(
    "planner",
    [
        bamdp.ThompsonSampling(resample="episode"),
        bamdp.MCBRL(n_models=3, resample="episode"),
        bamdp.BOSS(n_models=2),
    ],
)
def test_an_action_that_comes_to_exist_is_not_thought_to_be_free(planner):
    """Draws that are kept say nothing of it; action 1 costs five times as much, and that is known."""
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(alpha=1.0),
        rewards=np.array(3 * [[-1.0, -5.0]]),
        n_states=3,
        n_actions=2,
        action_mask=np.array([[True, False], [True, True], [True, True]]),
        discount=0.9,
        seed=0,
    )
    agent.begin(0)
    assert agent.act(0) == 0
    agent.allow(0, [True, True])
    assert [agent.act(0) for _ in range(3)] == [0, 0, 0]
    assert agent.plan(0).value == pytest.approx(-10.0)


def test_an_interaction_is_the_loop_of_simulate_one_step_at_a_time():
    run = bamdp.simulate(grid_agent(bamdp.Random())[1], "grid5", steps=60, seed=4)
    env, agent = grid_agent(bamdp.Random())
    loop = Interaction(agent, env, seed=4)
    for t in range(60):
        step = loop.step()
        assert (step.t, step.state, step.action) == (t, run.states[t], run.actions[t])
        assert (step.reward, step.next_state) == (run.rewards[t], loop.state)
        loop.proceed()
    assert loop.t == 60


def test_a_repeated_action_is_taken_and_the_random_stream_advances_all_the_same():
    env, agent = grid_agent()
    chosen = [Interaction(agent, env, seed=4).step().action, agent.rng.tolist()]
    env, agent = grid_agent()
    other = (chosen[0] + 1) % 4
    step = Interaction(agent, env, seed=4).step(repeated_action=other)
    assert step.action == other
    assert agent.rng.tolist() == chosen[1]
    assert agent.belief.n_observed == 1
