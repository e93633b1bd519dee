"""Pictures: what can be seen in them, and the data behind them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bamdp.envs import drawing, list_envs, make_env
from bamdp.envs.drawing import as_image, element, figure, group, placement, shape, text_element
from bamdp.envs.picture import draw_world

WORLDS = [info.name for info in list_envs()] + ["grid:size=20", "random_mdp:n_states=70"]


def pixels(image, colour):
    """The pixels of a colour."""
    return np.abs(image.astype(int) - np.array(drawing.rgb(drawing.LIGHT_COLOURS[colour]))).max(axis=2) < 12


@pytest.mark.parametrize("name", WORLDS)
def test_an_image_shows_the_agent_and_the_layout_is_plain_data(name):
    env = make_env(name)
    env.reset(seed=0)
    if env.n_states == 1:
        env.step(0)  # before its first pull the agent is nowhere
    image = env.render()
    assert image.dtype == np.uint8
    assert max(image.shape) <= 1000
    assert pixels(image, "agent").sum() >= 10
    data = env.layout()
    assert json.loads(json.dumps(data)) == data
    assert len(data["positions"]) == len(data["layers"]) == len(data["state_labels"]) == env.n_states
    inside = np.array(data["positions"])[~env.mdp.terminal]  # an end may lie below, where nothing is drawn
    assert (inside >= 0).all()
    assert (inside <= np.array([data["width"], data["height"]]) - 1 + 1e-9).all()
    assert not {tuple(w) for w in data["walls"]} & {tuple(p) for p in data["positions"]}


def test_flags_fade_when_held():
    env = make_env("maze")
    env.reset(seed=0)
    plain = pixels(env.render(), "flag")
    env.state = 7  # the same cell with all flags
    rows = slice(plain.shape[0] // 2, None)  # away from the agent, who carries them
    assert plain[rows].sum() > 100
    assert pixels(env.render(), "flag")[rows].sum() == 0


def test_values_and_policy_are_in_the_drawing():
    world = make_env("grid5").layout()
    drawn = draw_world(world, 0, np.arange(25.0), np.ones(25, int), visited=np.arange(25) < 10)
    fills = [part.get("fill") for part in drawn.figure.iter() if part.get("class") == "cell"]
    assert len(set(fills)) == 25
    assert drawn.range == (0.0, 24.0)
    arrows = [part for part in drawn.figure.iter() if part.get("class") == "arrow"]
    assert [one.get("visibility") for one in arrows].count(None) == 24  # all but the goal's
    assert all("rotate(0)" in one.get("transform") for one in arrows)
    assert sum(one.get("opacity") == "0.22" for one in arrows) == 15


def test_a_notebook_shows_the_picture_in_its_own_colours():
    svg = make_env("maze_door")._repr_svg_()
    assert ET.fromstring(svg).get("width") == "272"
    assert "var(" not in svg
    assert drawing.LIGHT_COLOURS["agent"] in svg


BLACK, PEN = {"fill": "#000000"}, {"fill": "none", "stroke": "#000000", "stroke_width": 4}
CIRCLE = {"cx": 50.0, "cy": 40.0, "r": 20.0}


def area(*parts):
    """The area that is painted black, in units of the drawing, on which an image has two pixels along each side."""
    paper = element("rect", width=100.0, height=80.0, fill="#ffffff")
    inside = as_image(figure((100.0, 80.0), paper, *parts)).astype(float)
    return float((1.0 - inside / 255)[:, :, 0].sum() / 4)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (element("circle", **CIRCLE, **BLACK), np.pi * 400),
        (element("circle", **CIRCLE, **PEN), 2 * np.pi * 20 * 4),
        (element("circle", **CIRCLE, **BLACK, opacity=0.5), np.pi * 200),
        (element("circle", **CIRCLE, **BLACK, visibility="hidden"), 0),
        (element("rect", x=10.0, y=10.0, width=30.0, height=20.0, rx=5.0, **BLACK), 600 - (4 - np.pi) * 25),
        (shape([(20, 40), (60, 40)], closed=False, **PEN), 160 + np.pi * 4),
        (shape([(10, 10), (50, 10), (10, 50)], **BLACK), 800),
        (group(shape([(0, 0), (10, 0), (10, 5), (0, 5)], **BLACK), transform=placement(50, 40, 30)), 50),
    ],
)
def test_shapes_cover_the_area_that_they_should(part, expected):
    assert area(part) == pytest.approx(expected, rel=0.03, abs=1.0)


def test_a_drawing_is_written_as_svg_with_everything_escaped():
    words = '<b> & "c"'
    text = text_element(1.0, 2.25, words, class_="wall", fill="wall", data_node=3, dy=None)
    root = ET.fromstring(drawing.markup(figure((10.0, 20.5), text, label=words)))
    assert root.get("viewBox") == "0 0 10 20.5"
    assert root.get("aria-label") == root[0].text == words
    assert root[0].attrib == {
        "x": "1",
        "y": "2.25",
        "class": "wall",
        "fill": "var(--wall)",
        "data-node": "3",
    }
