"""Worlds of which nothing is known: what they look like, and that they can be played and explained like others."""

from __future__ import annotations

import base64
import io
import json
import xml.etree.ElementTree as ET

import gymnasium
import numpy as np
import pytest
from PIL import Image
from studio_runs import DSS

import bamdp
from bamdp.envs.layout import GRID_MOVES
from bamdp.runs import run_one
from bamdp.settings import make_setting
from bamdp.studio import explain
from bamdp.studio.playback import Playback
from bamdp.studio.view import Watcher, describe_world, watched_world

LAKE = "gym:FrozenLake-v1:is_slippery=True"


class Painter(gymnasium.Env):
    """Six states in a ring; it paints a field of as many pixels as its state, and is cut off after five steps."""

    observation_space = gymnasium.spaces.Discrete(6)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array", "human"]}  # noqa: RUF012

    def __init__(self, render_mode=None, broken=False):
        self.render_mode, self.broken = render_mode, broken

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = int(self.np_random.integers(6)), 0
        return self.at, {}

    def step(self, action):
        self.at = (self.at + (1 if action else int(self.np_random.integers(6)))) % 6
        self.t += 1
        return self.at, float(self.at == 5), False, self.t == 5, {}

    def render(self):
        if self.broken:
            raise RuntimeError("no screen")
        return np.full((4, 10, 3), 20 * self.at, np.uint8)


gymnasium.register("Painter-v0", entry_point=Painter)


def run_of(env, planner="thompson", t=0, steps=200):
    run = Playback(make_setting(env, planner, steps=steps))
    run.seek(t)
    return run


def test_a_grid_of_gymnasium_is_drawn_as_one_with_its_actions_named():
    world = describe_world(watched_world("gym:FrozenLake-v1"), 0.95, 100)
    assert (world["width"], world["height"]) == (4, 4)
    assert world["positions"][6] == [2.0, 1.0]
    assert world["action_labels"] == ["left", "down", "right", "up"]
    assert [tuple(move) for move in world["moves"]] == [GRID_MOVES[i] for i in (3, 2, 1, 0)]
    assert world["state_labels"][16] == "end"
    assert world["terminal"] == [16]
    assert world["truth"] is world["optimum"] is None
    cliff = bamdp.make_world("gym:CliffWalking-v1").layout()
    assert (cliff["width"], cliff["height"]) == (12, 4)


def test_other_worlds_are_cells_in_a_square_with_their_numbers():
    world = describe_world(watched_world("gym:Painter-v0"), 0.95, 100)
    assert (world["width"], world["height"], world["named"]) == (3, 3, True)
    assert len({tuple(place) for place in world["positions"]}) == 7  # the end among them
    assert world["moves"] == []
    function = bamdp.from_function(lambda s, a, rng: (s, 0.0, False), n_states=5, n_actions=2)
    function.reset(seed=0)
    assert describe_world(function, 0.95, 10)["terminal"] == []


def test_its_own_picture_is_that_of_the_present_state():
    run = run_of("gym:Painter-v0", t=7)
    address = Watcher(run).frame()["picture"]
    head, _, data = address.partition(",")
    assert head == "data:image/png;base64"
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert image.shape == (4, 10, 3)
    assert (image == 20 * run.state).all()


@pytest.mark.parametrize("env", [LAKE, "gym:Painter-v0"])
def test_playback_is_the_run_and_can_go_back(env):
    run = run_of(env, t=80)
    whole = run_one(run.setting, 0)
    assert [step.state for step in run.steps] == whole.states[:80].tolist()
    assert [step.reward for step in run.steps] == whole.rewards[:80].tolist()
    after = Watcher(run).frame()
    run.seek(33)  # across ends of episodes, of which those of the painter are cut off
    assert run.state == whole.states[33]
    run.seek(80)
    again = Watcher(run).frame()
    assert {**again, "ms": 0} == {**after, "ms": 0}


@pytest.mark.parametrize("env", [LAKE, "gym:Painter-v0", "gym:Taxi-v4"])
def test_decisions_can_be_explained(env):
    run = run_of(env, DSS if env != "gym:Taxi-v4" else "random", t=20)
    ET.fromstring(explain.as_svg(run))
    page = explain.as_html(run)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["world"]["truth"] is None
    json.dumps(data, allow_nan=False)


def test_in_deep_sea_actions_are_named_by_where_they_lead():
    env = bamdp.make_env("deep_sea", size=4)
    for state in (0, 5, 10):
        names = [env.action_label(a, state) for a in range(2)]
        assert sorted(names) == ["left", "right"]
        after, _ = env.mdp.row(state, names.index("right"))
        assert after[0] == state + 5  # one down, one to the right
    moves = np.array(env.layout()["state_moves"])
    assert (moves[:, :, 1] == 1).all()
    assert [mark["kind"] for mark in env.layout()["marks"]] == ["start", "goal"]
    assert env.layout()["marks"][1]["x"] == env.layout()["marks"][1]["y"] == 3
    run = Playback(make_setting("deep_sea:size=4", "random", steps=20))
    assert {row["label"] for row in Watcher(run).frame()["expects"]} == {"left", "right"}
