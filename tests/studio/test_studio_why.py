"""Why this action: the drawing, the table and the details tell the same story as the plan."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from studio_runs import DSS, run_of

from bamdp.planners.tree import CHOICE, ROOT
from bamdp.studio import why
from bamdp.studio.tree import layout_tree
from bamdp.studio.why import Decision

CASES = {
    "dss-two-stages": ("grid5", "dss-pi:n_steps=6,n_stages=2"),
    "bamcp": ("grid5", "bamcp:n_simulations=300"),
}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def decision(request):
    return Decision(run_of(*CASES[request.param], t=25))


def test_the_drawing_has_all_root_choices_and_one_shape_a_node(decision):
    data = decision.data()
    json.dumps(data, allow_nan=False)
    tree, root = decision.plan.tree, ET.fromstring(data["tree"]["svg"])
    nodes = [int(e.get("data-node")) for e in root.iter() if "node" in e.get("class", "").split()]
    assert sorted(nodes) == sorted(data["tree"]["nodes"])
    assert len(nodes) == len(set(nodes))
    assert set(tree.children(ROOT).tolist()) <= set(nodes)
    for node in nodes:
        assert node == ROOT or int(tree.parent[node]) in nodes


def test_time_runs_to_the_right_and_nothing_lies_on_top(decision):
    tree = decision.plan.tree
    placed = {shown.node: (shown.x, shown.y) for shown in layout_tree(tree)}
    assert len(set(placed.values())) == len(placed)
    for node, (x, _) in placed.items():
        if node != ROOT:
            assert x > placed[int(tree.parent[node])][0]
    leaves = sorted(y for node, (_, y) in placed.items() if not any(tree.parent[n] == node for n in placed))
    assert np.diff(leaves).min() >= 0.99  # a row each


def test_candidates_are_those_of_the_plan(decision):
    rows = decision.candidates()
    assert [row["action"] for row in rows] == [c.action for c in decision.plan.candidates]
    assert [row["chosen"] for row in rows].count(True) == 1
    chosen = next(row for row in rows if row["chosen"])
    assert chosen["action"] == decision.plan.action
    assert chosen["value"] == pytest.approx(decision.plan.value, abs=1e-5)
    for row in rows:
        if row["node"] is not None:
            assert decision.plan.tree.action[row["node"]] == row["action"]
    assert decision.name(decision.plan.action) in decision.sentence()


def test_a_node_tells_what_its_belief_has_learned(decision):
    tree = decision.plan.tree
    deep = int(np.argmax(np.where(tree.kind == CHOICE, -1, tree.depth)))
    detail = decision.detail(deep)
    json.dumps(detail, allow_nan=False)
    assert detail["steps"] == tree.depth[deep] == len(tree.history(deep))
    assert sum(change["times"] for change in detail["changes"]) <= detail["steps"]
    posterior = decision.belief.copy()
    for step in tree.history(deep):
        posterior.observe(*step)
    change = detail["changes"][0]
    s2, before, after = change["next"][0]
    assert before == pytest.approx(
        decision.belief.predictive(change["state"], change["action"])[s2], abs=1e-3
    )
    assert after == pytest.approx(posterior.predictive(change["state"], change["action"])[s2], abs=1e-3)
    assert decision.belief.n_observed == 25
    with pytest.raises(ValueError, match="node must be in"):
        decision.detail(len(tree))


def test_a_full_tree_gets_as_deep_as_its_budget():
    assert why.full_reach(10, 10) == 1.0
    assert why.full_reach(10, 110) == 2.0
    assert why.full_reach(10, 60) == 1.5
    assert why.full_reach(400, 100) == 0.25
    assert why.full_reach(1, 7) == 7.0


def test_the_reach_counts_the_same_steps_for_both_trees():
    decision = Decision(run_of("grid5", "dss-pi:n_policies=4,n_samples=4,n_steps=10,n_stages=2", t=25))
    budget = 10 * (16 + 256)
    words = decision.reach()
    assert f"{budget:,} simulated steps" in words
    assert f"see {why.full_reach(4 * 25, budget):.3g} steps ahead" in words
    assert words.endswith("this tree sees 20.")


def test_planners_without_a_tree_show_their_candidates():
    data = Decision(run_of("chain", "thompson", t=5)).data()
    assert data["tree"] is None
    assert data["reach"] is None
    assert data["candidates"]
    assert data["sentence"].startswith("Next: ")


def test_a_planner_that_values_nothing_says_so():
    assert "no value" in Decision(run_of("chain", "random", t=2)).sentence()


def test_a_policy_that_is_followed_is_said_to_be():
    run = run_of("chain", DSS + ",replan_every=3", t=1)
    assert "still followed" in Decision(run).sentence()
