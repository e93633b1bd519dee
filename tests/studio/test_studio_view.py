"""What is shown is what is so: entropies, values, counts, and a drawing of every world."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from studio_runs import DSS, run_of

import bamdp
from bamdp.envs import drawing
from bamdp.envs.layout import MAX_NODES_WITH_EDGES
from bamdp.envs.picture import draw_world
from bamdp.studio import view

ENVS = [info.name for info in bamdp.list_envs()]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("prior", ["sparse", "flat", "flat+sparse"])
def test_entropy_is_that_of_the_predictive(prior):
    run = run_of("grid5", "random", prior=prior, t=60)  # nothing to compile but the belief
    belief = run.agent.belief
    entropy = view.row_entropy(belief.mean())
    for s in range(0, 25, 3):
        for a in range(4):
            expected = stats.entropy(belief.predictive(s, a), base=2)
            assert entropy[s, a] == pytest.approx(expected, abs=1e-9)


def test_a_frame_says_what_the_agent_believes():
    run = run_of("grid5", DSS, t=80)
    frame = view.Watcher(run).frame()
    assert frame["t"] == 80
    assert frame["total"] == sum(step.reward for step in run.steps)
    assert sum(frame["visits"]) == 80
    best = bamdp.policy_iteration(run.agent.belief.mean(), 0.95)
    assert np.allclose(frame["value"], best.values, atol=2e-3)
    assert frame["curve"][0] == [0, 0.0]
    assert frame["curve"][-1] == [80, pytest.approx(frame["total"])]
    for row in frame["expects"]:
        chances = run.agent.belief.predictive(run.state, row["action"])
        assert row["next"][0][1] == pytest.approx(chances.max(), abs=1e-4)
        assert sum(p for _, p in row["next"]) + row["rest"] == pytest.approx(1.0, abs=1e-3)
        assert row["visits"] == run.visits[run.state, row["action"]]


def test_the_curve_is_thinned_out_and_ends_now():
    run = run_of(t=200, steps=5000)
    run.seek(4200)
    points = view.reward_curve(run)
    assert len(points) <= view.MAX_CURVE_POINTS
    assert points[-1] == [4200, pytest.approx(run.total_reward)]
    assert all(a[0] < b[0] for a, b in pairwise(points))


@pytest.mark.parametrize("name", ENVS)
def test_every_world_has_a_drawing_with_a_place_for_every_state(name):
    env = bamdp.make_env(name)
    env.reset(seed=0)
    data = view.describe_world(env, 0.95, 100)
    drawn = draw_world(data)
    json.dumps({**data, "scene": drawn.data()}, allow_nan=False)
    root = ET.fromstring(drawing.markup(drawn.figure))
    assert len(drawn.place) == env.n_states
    cells = [e for e in root.iter() if "cell" in e.get("class", "").split()]
    arms = data["kind"] == "arms"
    assert {int(cell.get("data-place")) for cell in cells} == set(range(3) if arms else drawn.place)
    assert len(cells) == (3 if arms else len({tuple(p) for p in data["positions"]}))
    edges = [e for e in root.iter() if "edge" in e.get("class", "").split()]
    assert bool(edges) == (data["kind"] == "graph" and env.n_states <= MAX_NODES_WITH_EDGES)
    assert "style=" not in drawing.markup(drawn.figure)  # the page's policy allows none


def test_the_optimum_is_the_gain():
    assert view.optimum_rate(bamdp.make_env("grid5")) == pytest.approx(0.092530, abs=1e-6)
    assert view.optimum_rate(bamdp.make_env("bandit")) == pytest.approx(
        bamdp.make_env("bandit").mdp.expected_rewards.max()
    )


def test_weights_of_alternatives_are_shown():
    run = run_of("maze_door", "random", prior="models", t=3)
    named = view.Watcher(run).frame()["weights"]
    assert [entry["name"] for entry in named] == ["door open", "door closed"]
    assert sum(entry["weight"] for entry in named) == pytest.approx(1.0)
    assert view.Watcher(run_of(t=3)).frame()["weights"] is None


def test_both_themes_have_all_colours_and_text_can_be_read():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        high, low = sorted((light(a), light(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert drawing.LIGHT_COLOURS.keys() == drawing.DARK_COLOURS.keys()
    for theme in drawing.THEMES:
        for back in ("card", "paper", "sunken"):
            assert contrast(theme["ink"], theme[back]) > 7
            assert contrast(theme["muted"], theme[back]) > 4.5
        assert contrast(theme["on-accent"], theme["accent"]) > 4.5
        assert contrast(theme["danger"], theme["card"]) > 4.5
