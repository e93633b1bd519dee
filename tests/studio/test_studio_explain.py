"""One decision as a file: complete, self-contained, safe to pass on."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from studio_runs import run_of

import bamdp
from bamdp.cli import main
from bamdp.settings import Setting
from bamdp.studio import explain
from bamdp.studio.playback import Playback


@pytest.fixture(scope="module")
def run():
    return run_of("grid5", "dss-pi:n_steps=10", t=20)


def test_the_page_needs_nothing_from_elsewhere(run):
    page = explain.as_html(run)
    assert not re.search(r'\b(src|href)="', page)
    assert "@import" not in page
    assert set(re.findall(r"https?://[\w./-]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"^\s*(import|export) ", page, flags=re.M)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])
    assert data["why"]["t"] == 20
    assert data["details"].keys() == data["why"]["tree"]["nodes"].keys()
    assert "n_steps=10" in page


def test_the_picture_is_plain_svg(run):
    picture = explain.as_svg(run)
    root = ET.fromstring(picture)
    assert "var(" not in picture
    assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    words = " ".join(element.text or "" for element in root.iter() if element.tag.endswith("text"))
    decision = run.agent.plan(run.state)
    assert f"Why {run.env.action_label(decision.action, run.state)}?" in words
    assert f"{decision.value:.3g}" in words


@pytest.mark.parametrize("env", [info.name for info in bamdp.list_envs()])
def test_every_world_can_be_explained(env):
    run = run_of(env, "random", t=4)
    ET.fromstring(explain.as_svg(run))
    assert "<script" in explain.as_html(run)


def test_labels_cannot_break_out_of_the_file(tmp_path):
    evil = '</script><script>alert("x")</script>'
    mdp = bamdp.FiniteMDP(
        np.full((2, 2, 2), 0.5), np.zeros((2, 2)), state_labels=[evil, "b"], action_labels=[evil, "<b>"]
    )
    mdp.save(tmp_path / "evil.npz")
    name = f"file:{tmp_path / 'evil.npz'}"
    setting = Setting(
        name, bamdp.ThompsonSampling(), bamdp.Dirichlet(), bamdp.KnownRewards(mdp.rewards), 0.9, 9
    )
    run = Playback(setting)
    assert run.env.state_label(0) == evil  # labels are kept in the file
    assert evil not in explain.as_html(run)
    ET.fromstring(explain.as_svg(run))


def test_the_command_writes_what_it_says(tmp_path, capsys):
    for name in ("deep/why.html", "why.svg"):
        command = f"explain chain dss-pi --step 12 --set n_steps=6 --out {tmp_path / name}"
        assert main(command.split()) == 0
        assert (tmp_path / name).stat().st_size > 5000
        assert capsys.readouterr().err.splitlines()[-1] == f"why: {tmp_path / name}"
