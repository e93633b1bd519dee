"""Worlds of 10^5 states: nothing is dense (that would take 80 GB), so agents, files, Gymnasium and the studio serve."""

from __future__ import annotations

import numpy as np
import pytest

import bamdp
from bamdp.registry import make_planner, make_prior
from bamdp.studio.playback import Choice, Limits, Stage

GRID = "grid:size=316"
PLANNER = "dss-rtdp:n_policies=2,n_samples=2,n_steps=20"


@pytest.mark.slow
def test_an_agent_of_a_large_world_learns_and_its_file_goes_on_alike(tmp_path):
    env = bamdp.make_env(GRID)
    agent = bamdp.Agent(
        make_planner(PLANNER),
        prior=make_prior("local", env),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.95,
        seed=0,
    )
    bamdp.simulate(agent, env, steps=20, seed=0)
    path = tmp_path / "large.npz"
    agent.save(path)
    assert path.stat().st_size < 20e6
    again = bamdp.Agent.load(path)
    states = env.mdp.row(env.start, 0)[0]
    assert [agent.act(int(s)) for s in states] == [again.act(int(s)) for s in states]
    assert again.belief.n_observed == 20


@pytest.mark.slow
def test_the_studio_shows_a_large_world_where_its_limit_is_raised():
    choice = Choice.read({"env": GRID, "planners": [PLANNER], "prior": "local"})
    stage = Stage(choice.settings(Limits(states=200_000)))
    (world,) = stage.worlds()
    (frame,) = stage.advance(1, seconds=60.0)["frames"]
    assert (frame["t"], len(frame["value"]), len(world["truth"]["value"])) == (1, 316**2, 316**2)
    assert np.isfinite(world["optimum"])
    assert len(stage.explain(0)["candidates"]) == 2
