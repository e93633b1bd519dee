"""Pictures: their shape, what can be seen in them, and the data behind them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bamdp.envs import _canvas, _image, from_mdp, list_envs, make_env
from bamdp.mdp import FiniteMDP

WORLDS = [info.name for info in list_envs()] + [
    "grid:size=40",
    "random_mdp:n_states=70",
    "bandit:means=[0.5]",
]


def coral(image):
    """Where the agent's colour is, as (x, y) of the middle, and how many pixels."""
    close = np.abs(image.astype(int) - np.array(_image.AGENT)).max(axis=2) < 12
    ys, xs = np.nonzero(close)
    return (float(xs.mean()), float(ys.mean()), len(xs)) if len(xs) else (0.0, 0.0, 0)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("rich", [False, True])
def test_an_image_shows_the_agent(name, rich):
    env = make_env(name)
    env.reset(seed=0)
    extra = {"policy": np.zeros(env.n_states, int), "values": np.arange(env.n_states)} if rich else {}
    image = env.render("rgb", **extra)
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert max(image.shape) <= 1000
    assert coral(image)[2] >= 10


@pytest.mark.parametrize("name", ["grid5", "maze", "double_loop", "chain"])
def test_the_agent_is_drawn_where_it_is(name):
    env = make_env(name)
    env.reset(seed=0)
    places = np.array(env.layout()["positions"])
    seen = []
    for s in range(0, env.n_states, 8 if name == "maze" else 1):
        env.state = s
        seen.append((*places[s], *coral(env.render("rgb"))[:2]))
    x, y, px, py = np.array(seen).T
    assert np.corrcoef(x, px)[0, 1] > 0.999
    assert np.ptp(y) == 0 or np.corrcoef(y, py)[0, 1] > 0.999


def test_a_picture_does_not_change_the_world():
    env = make_env("maze")
    env.reset(seed=3)
    first = [env.step(2) for _ in range(20)]
    env.reset(seed=3)
    again = []
    for _ in range(20):
        env.render("rgb")
        env.render()
        env.layout()
        again.append(env.step(2))
    assert again == first


def test_values_colour_the_cells_and_flags_fade_when_held():
    env = make_env("maze")
    env.reset(seed=0)
    plain = env.render("rgb")
    amber = np.abs(plain.astype(int) - np.array(_image.FLAG)).max(axis=2) < 10
    env.state = 7  # the same cell with all flags
    held = np.abs(env.render("rgb").astype(int) - np.array(_image.FLAG)).max(axis=2) < 10
    rows = slice(plain.shape[0] // 2, None)  # away from the agent, who carries them
    assert amber[rows].sum() > 100
    assert held[rows].sum() == 0
    shaded = env.render("rgb", values=np.linspace(0, 1, 264))
    assert (shaded != plain).any(axis=2).mean() > 0.4


def test_text_of_a_grid():
    env = make_env("grid", size=3)
    env.reset(seed=0)
    assert env.render().splitlines() == [
        "grid · state 0: (0, 0)",
        "",
        "┌─────────┐",
        "│ ·  ·  G │",
        "│ ·  ·  · │",
        "│ @  ·  · │",
        "└─────────┘",
    ]
    env.state = 4
    policy = [0, 1, 2, 3, 0, 1, 2, 3, 0]
    rich = env.render("ansi", policy=policy, values=np.arange(9) / 4).splitlines()
    assert rich[3] == "│ ↓ 0.50  → 1.25  G 2.00 │"
    assert rich[4] == "│ → 0.25  @ 1.00  ← 1.75 │"
    assert rich[5] == "│ ↑ 0.00  ← 0.75  ↓ 1.50 │"


def test_text_of_a_maze_shows_the_present_flags():
    env = make_env("maze")
    assert env.render().count("⚑") == 3
    env.state = 8 * 6 + 5
    assert env.render().count("⚑") == 1
    assert "flags 1+4" in env.render()


def test_text_of_graphs_and_arms():
    env = make_env("double_loop")
    assert env.render().count("[0]") == 1
    env.state = 7
    assert "[7]" in env.render()
    assert "(0)" in env.render()
    table = env.render(policy=[0, 1] * 4 + [0], values=range(9))
    assert "7      7.0000   right  @" in table
    bandit = make_env("bandit")
    bandit.reset(seed=0)
    bandit.step(2)
    assert "@ arm 2" in bandit.render(policy=[1])
    assert "arm 1 ██████████░░░░░░░░░░ 0.50  ←" in bandit.render(policy=[1])
    lines = make_env("random_mdp", n_states=50, prior="flat").render(values=np.ones(50)).splitlines()
    assert lines[2].startswith("0 → ")
    assert lines[-1] == "  ... 10 more states"


def test_a_door_is_seen_open_or_closed():
    assert "▒" in make_env("maze_door", door="closed").render()
    assert "/" in make_env("maze_door", door="open").render()
    assert (
        make_env("maze_door", door="closed").render("rgb") != make_env("maze_door", door="open").render("rgb")
    ).any()


def test_terminal_states_are_told():
    walk = np.zeros((2, 1, 2))
    walk[:, 0, 1] = 1.0
    env = from_mdp(FiniteMDP(walk, [1.0, 0.0], terminal=[1]))
    env.reset(seed=0)
    env.step(0)
    assert "(terminated)" in env.render()
    assert coral(env.render("rgb"))[2] > 10


@pytest.mark.parametrize("name", WORLDS)
def test_layout_is_plain_data(name):
    env = make_env(name)
    data = env.layout()
    assert json.loads(json.dumps(data)) == data
    assert len(data["positions"]) == len(data["layers"]) == len(data["state_labels"]) == env.n_states
    assert len(data["action_labels"]) == env.n_actions
    assert data["kind"] in ("grid", "graph", "arms")
    for x, y in data["positions"]:
        assert 0 <= x <= data["width"] - 1 + 1e-9
        assert 0 <= y <= data["height"] - 1 + 1e-9
    if data["kind"] == "grid":
        assert len(data["moves"]) == env.n_actions
        assert not {tuple(w) for w in data["walls"]} & {tuple(p) for p in data["positions"]}


def test_edges_of_a_graph_are_the_model():
    env = make_env("river_swim")
    dense = np.zeros((6, 2, 6))
    for edge in env.layout()["edges"]:
        dense[edge["source"], :, edge["target"]] = edge["probabilities"]
    np.testing.assert_array_equal(dense, env.mdp.dense())


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mode": "png"}, ValueError, "unknown render mode"),
        ({"policy": [0, 1]}, ValueError, r"policy must have shape"),
        ({"policy": [0, 1, 2, 0, 0]}, ValueError, "policy must hold actions"),
        ({"policy": [0.5] * 5}, TypeError, "policy must hold whole numbers"),
        ({"values": [1.0]}, ValueError, "values must have shape"),
        ({"values": [np.nan] * 5}, ValueError, "values must be finite"),
        ({"values": ["a"] * 5}, TypeError, "values must hold numbers"),
    ],
)
def test_bad_requests_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        make_env("chain").render(**arguments)


def test_shapes_cover_the_area_that_they_should():
    white, black = (255.0, 255.0, 255.0), (0.0, 0.0, 0.0)

    def area(draw):
        canvas = _canvas.Canvas(100, 80, white)
        draw(canvas)
        return float((255 - canvas.image()[:, :, 0].astype(float)).sum() / 255)

    assert area(lambda c: c.disk(50, 40, 20, black)) == pytest.approx(np.pi * 400, rel=0.01)
    assert area(lambda c: c.box(10, 10, 30.5, 20, black)) == pytest.approx(610, rel=0.01)
    assert area(lambda c: c.ring(50, 40, 20, 4, black)) == pytest.approx(2 * np.pi * 20 * 4, rel=0.01)
    assert area(lambda c: c.stroke([(20, 40), (60, 40)], 6, black)) == pytest.approx(
        240 + np.pi * 9, rel=0.01
    )
    assert area(lambda c: c.polygon([(10, 10), (50, 10), (10, 50)], black)) == pytest.approx(800, rel=0.02)
    assert area(lambda c: c.disk(50, 40, 20, black, alpha=0.5)) == pytest.approx(np.pi * 200, rel=0.02)
    assert area(lambda c: c.disk(0, 0, 20, black)) == pytest.approx(np.pi * 100, rel=0.02)  # a corner of it
    assert area(lambda c: c.disk(-50, 40, 20, black)) == 0
    assert area(lambda c: c.text(50, 40, "-1.5?", 20, black)) > 50
    assert area(lambda c: c.arrow([(20, 40), (60, 40)], 4, black)) == pytest.approx(4 * 30 + 82 + 6, rel=0.15)
