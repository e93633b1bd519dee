"""What is shown is what is so: of worlds, of beliefs, and of decisions on pages and in files."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET

import gymnasium
import numpy as np
import pytest
from PIL import Image
from scipy import stats
from studio_runs import DSS, run_of

import bamdp
from bamdp.envs import drawing
from bamdp.envs.picture import GRID_MOVES, draw_world
from bamdp.planners.tree import CHOICE, ROOT
from bamdp.studio import explain, view
from bamdp.studio.explain import Decision
from bamdp.studio.tree import layout_tree


class Painter(gymnasium.Env):
    """Six states in a ring; it paints a field of as many pixels as its state, and is cut off after five steps."""

    observation_space = gymnasium.spaces.Discrete(6)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array", "human"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = int(self.np_random.integers(6)), 0
        return self.at, {}

    def step(self, action):
        self.at = (self.at + (1 if action else int(self.np_random.integers(6)))) % 6
        self.t += 1
        return self.at, float(self.at == 5), False, self.t == 5, {}

    def render(self):
        return np.full((4, 10, 3), 20 * self.at, np.uint8)


gymnasium.register("Painter-v0", entry_point=Painter)


@pytest.mark.parametrize("prior", ["sparse", "flat", "flat+sparse"])
def test_entropy_is_that_of_the_predictive(prior):
    belief = run_of("grid5", "random", prior=prior, t=60).agent.belief
    entropy = view.row_entropy(belief.mean())
    for s in range(0, 25, 3):
        for a in range(4):
            expected = stats.entropy(belief.predictive(s, a), base=2)
            assert entropy[s, a] == pytest.approx(expected, abs=1e-9)


def test_a_frame_says_what_the_agent_believes():
    run = run_of("grid5", DSS, t=80)
    frame = view.Watcher(run).frame()
    assert (frame["t"], frame["total"]) == (80, sum(step.reward for step in run.steps))
    best = bamdp.policy_iteration(run.agent.belief.mean(), 0.95)
    assert np.allclose(frame["value"], best.values, atol=2e-3)
    assert frame["curve"][-1] == [80, pytest.approx(frame["total"])]
    for row in frame["expects"]:
        chances = run.agent.belief.predictive(run.state, row["action"])
        assert row["next"][0][1] == pytest.approx(chances.max(), abs=1e-4)
        assert sum(p for _, p in row["next"]) + row["rest"] == pytest.approx(1.0, abs=1e-3)
        assert row["visits"] == run.visits[run.state, row["action"]]
    weights = view.Watcher(run_of("maze_door", "random", prior="models", t=3)).frame()["weights"]
    assert [entry["name"] for entry in weights] == ["door open", "door closed"]


@pytest.mark.parametrize("name", [info.name for info in bamdp.list_envs()])
def test_every_world_has_a_drawing_with_a_place_for_every_state_and_can_be_explained(name):
    run = run_of(name, "random", t=4)
    data = view.describe_world(run.env, 0.95, 100)
    drawn = draw_world(data)
    json.dumps({**data, "scene": drawn.data()}, allow_nan=False)
    assert len(drawn.place) == run.env.n_states
    assert "style=" not in drawing.markup(drawn.figure)  # the page's policy allows none
    ET.fromstring(explain.as_svg(run))
    assert "<script" in explain.as_html(run)


def test_the_optimum_is_the_gain():
    assert view.optimum_rate(bamdp.make_env("grid5")) == pytest.approx(0.092530, abs=1e-6)


def test_a_grid_of_gymnasium_is_drawn_as_one_with_its_actions_named():
    world = view.describe_world(view.watched_world("gym:FrozenLake-v1"), 0.95, 100)
    assert (world["width"], world["height"]) == (4, 4)
    assert world["action_labels"] == ["left", "down", "right", "up"]
    assert [tuple(move) for move in world["moves"][0]] == [GRID_MOVES[i] for i in (3, 2, 1, 0)]
    assert (world["state_labels"][16], world["terminal"]) == ("end", [16])
    assert world["truth"] is world["optimum"] is None


def test_other_worlds_are_cells_in_a_square_with_their_own_picture_beside_them():
    world = view.describe_world(view.watched_world("gym:Painter-v0"), 0.95, 100)
    assert (world["width"], world["height"], world["moves"]) == (3, 3, None)
    assert len({tuple(place) for place in world["positions"]}) == 7  # the end among them
    run = run_of("gym:Painter-v0", t=7)
    head, _, data = view.Watcher(run).frame()["picture"].partition(",")
    assert head == "data:image/png;base64"
    assert (np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) == 20 * run.state).all()


# --- why this action ---


@pytest.fixture(scope="module", params=["dss-pi:n_steps=6,n_stages=2", "bamcp:n_simulations=300"])
def decision(request):
    return Decision(run_of("grid5", request.param, t=25))


def test_the_drawing_has_all_root_choices_and_one_shape_a_node(decision):
    data = decision.data()
    json.dumps(data, allow_nan=False)
    tree, root = decision.plan.tree, ET.fromstring(data["tree"]["svg"])
    nodes = [int(e.get("data-node")) for e in root.iter() if "node" in e.get("class", "").split()]
    assert sorted(nodes) == sorted(set(data["tree"]["nodes"]))
    assert set(tree.children(ROOT).tolist()) <= set(nodes)
    placed = {shown.node: (shown.x, shown.y) for shown in layout_tree(tree)}
    assert len(set(placed.values())) == len(placed)
    for node, (x, _) in placed.items():  # time runs to the right
        assert node == ROOT or x > placed[int(tree.parent[node])][0]


def test_candidates_are_those_of_the_plan(decision):
    rows = decision.candidates()
    assert [row["action"] for row in rows] == [c.action for c in decision.plan.candidates]
    (chosen,) = [row for row in rows if row["chosen"]]
    assert chosen["action"] == decision.plan.action
    assert chosen["value"] == pytest.approx(decision.plan.value, abs=1e-5)
    assert decision.name(decision.plan.action) in decision.sentence()


def test_a_node_tells_what_its_belief_has_learned(decision):
    tree = decision.plan.tree
    deep = int(np.argmax(np.where(tree.kind == CHOICE, -1, tree.depth)))
    detail = decision.detail(deep)
    assert detail["steps"] == tree.depth[deep] == len(tree.history(deep))
    posterior = decision.belief.copy()
    for step in tree.history(deep):
        posterior.observe(*step)
    change = detail["changes"][0]
    pair, (s2, before, after) = (change["state"], change["action"]), change["next"][0]
    assert before == pytest.approx(decision.belief.predictive(*pair)[s2], abs=1e-3)
    assert after == pytest.approx(posterior.predictive(*pair)[s2], abs=1e-3)
    assert decision.belief.n_observed == 25


def test_planners_without_a_tree_show_their_candidates():
    data = Decision(run_of("chain", "thompson", t=5)).data()
    assert data["tree"] is None
    assert data["candidates"]
    assert "no values" in Decision(run_of("chain", "random", t=2)).sentence()
    assert "still follows" in Decision(run_of("chain", DSS + ",replan_every=3", t=1)).sentence()


def test_the_files_need_nothing_from_elsewhere_and_say_what_the_plan_says():
    run = run_of("grid5", "dss-pi:n_steps=10", t=20)
    page, picture = explain.as_html(run), explain.as_svg(run)
    assert not re.search(r'\b(src|href)="|@import|^\s*(import|export) ', page, flags=re.M)
    assert set(re.findall(r"https?://[\w./-]+", page)) == {"http://www.w3.org/2000/svg"}
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])
    assert data["details"].keys() == data["why"]["tree"]["nodes"].keys()
    assert "var(" not in picture
    words = " ".join(element.text or "" for element in ET.fromstring(picture).iter())
    decision = run.agent.plan(run.state)
    assert f"Why {run.env.action_label(decision.action, run.state)}?" in words
    assert view.short(decision.value) in words


def test_labels_cannot_break_out_of_the_file(tmp_path):
    evil = '</script><script>alert("x")</script>'
    mdp = bamdp.FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), state_labels=[evil, "b"])
    mdp.save(tmp_path / "evil.npz")
    run = run_of(f"file:{tmp_path / 'evil.npz'}")
    assert run.env.state_label(0) == evil  # labels are kept in the file
    assert evil not in explain.as_html(run)
    ET.fromstring(explain.as_svg(run))
