"""Pictures: their shape, what can be seen in them, and the data behind them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bamdp.envs import drawing, from_mdp, list_envs, make_env
from bamdp.envs.drawing import element, figure, group, placement, shape, text_element
from bamdp.envs.image import as_image
from bamdp.mdp import FiniteMDP

WORLDS = [info.name for info in list_envs()] + [
    "grid:size=40",
    "random_mdp:n_states=70",
    "bandit:means=[0.5]",
]


def coral(image):
    """Where the agent's colour is, as (x, y) of the middle, and how many pixels."""
    close = np.abs(image.astype(int) - np.array(drawing.rgb(drawing.LIGHT_COLOURS["agent"]))).max(axis=2) < 12
    ys, xs = np.nonzero(close)
    return (float(xs.mean()), float(ys.mean()), len(xs)) if len(xs) else (0.0, 0.0, 0)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("rich", [False, True])
def test_an_image_shows_the_agent(name, rich):
    env = make_env(name)
    env.reset(seed=0)
    if env.n_states == 1:
        env.step(0)  # before its first pull the agent is nowhere
    extra = {"policy": np.zeros(env.n_states, int), "values": np.arange(env.n_states)} if rich else {}
    image = env.render("rgb", **extra)
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert max(image.shape) <= 1000
    assert coral(image)[2] >= 10


def test_values_colour_the_cells_and_flags_fade_when_held():
    env = make_env("maze")
    env.reset(seed=0)
    plain = env.render("rgb")
    amber = np.abs(plain.astype(int) - np.array(drawing.rgb(drawing.LIGHT_COLOURS["flag"]))).max(axis=2) < 10
    env.state = 7  # the same cell with all flags
    held = (
        np.abs(env.render("rgb").astype(int) - np.array(drawing.rgb(drawing.LIGHT_COLOURS["flag"]))).max(
            axis=2
        )
        < 10
    )
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
    assert "arm 0  arm 1  [arm 2]" in bandit.render(policy=[1])
    lines = make_env("random_mdp", n_states=50, prior="flat").render(values=np.ones(50)).splitlines()
    assert lines[2].startswith("[0]  1  2")
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
    inside = [place for place, ends in zip(data["positions"], env.mdp.terminal) if not ends]
    for x, y in inside:  # an end may lie below, where nothing is drawn
        assert 0 <= x <= data["width"] - 1 + 1e-9
        assert 0 <= y <= data["height"] - 1 + 1e-9
    if data["kind"] == "grid" and (data["moves"] or data["state_moves"]):
        assert len(data["moves"] or data["state_moves"][0]) == env.n_actions
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
        ({"values": [1.0]}, ValueError, "values must have shape"),
    ],
)
def test_bad_requests_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        make_env("chain").render(**arguments)


BLACK = {"style": "fill:#000000"}
PEN = {"style": "fill:none;stroke:#000000;stroke-width:4"}


def area(*parts):
    """The area that is painted black, in units of the drawing; an image has two pixels to a unit at most."""
    image = as_image(
        figure((100.0, 80.0), element("rect", width=100.0, height=80.0, style="fill:#ffffff"), *parts)
    )
    inside = image[8:-8, 8:-8].astype(float)  # without the margin
    return float((1.0 - inside / 255)[:, :, 0].sum() / 4)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (element("circle", cx=50.0, cy=40.0, r=20.0, **BLACK), np.pi * 400),
        (element("circle", cx=50.0, cy=40.0, r=20.0, **PEN), 2 * np.pi * 20 * 4),
        (element("circle", cx=50.0, cy=40.0, r=20.0, **BLACK, opacity=0.5), np.pi * 200),
        (
            element("rect", x=10.0, y=10.0, width=30.0, height=20.0, rx=5.0, **BLACK),
            600 - (4 - np.pi) * 25,
        ),
        (shape([(20, 40), (60, 40)], closed=False, **PEN), 160 + np.pi * 4),
        (shape([(10, 10), (50, 10), (10, 50)], **BLACK), 800),
        (
            group(shape([(0, 0), (10, 0), (10, 5), (0, 5)], **BLACK), transform=placement(50, 40, 30)),
            50,
        ),
        (element("circle", cx=50.0, cy=40.0, r=20.0, **BLACK, visibility="hidden"), 0),
    ],
    ids=lambda part: str(part)[:20],
)
def test_shapes_cover_the_area_that_they_should(part, expected):
    assert area(part) == pytest.approx(expected, rel=0.03, abs=1.0)


def test_texts_are_painted_and_later_shapes_lie_over_earlier_ones():
    words = text_element(50.0, 40.0, "-1.5?", **BLACK)
    assert 20 < area(words) < 200
    white = element("rect", x=0.0, y=0.0, width=100.0, height=80.0, style="fill:#ffffff")
    assert area(words, white) == pytest.approx(0.0, abs=1.0)


def test_a_drawing_is_written_as_svg_with_everything_escaped():
    words = '<b> & "c"'
    text = text_element(1.0, 2.25, words, class_="x", data_node=3, dy=None)
    root = ET.fromstring(drawing.markup(figure((10.0, 20.5), text, label=words)))
    assert root.get("viewBox") == "0 0 10 20.5"
    assert root.get("aria-label") == root[0].text == words
    assert root[0].attrib == {"x": "1", "y": "2.25", "class": "x", "data-node": "3"}
