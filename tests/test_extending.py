"""Parts of one's own work by name everywhere: in Python, on the command line, in studies and in the studio."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bamdp

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"
STUDY = """\
title = "own"
runs = 2
prior = "neighbours"
environments = {river_swim = {steps = 20}}
algorithms = {sampler = {gamma = [0.9]}, thompson = {}}
"""
STUDIO = """
from bamdp.studio.playback import Stage
from bamdp.studio.playback import Choice, Limits
stage = Stage(Choice("river_swim", ("sampler:gamma=0.9",), prior="neighbours").settings(Limits()))
print(stage.go(5, 1e9)["frames"][0]["t"], stage.explain(0)["sentence"])
"""


@pytest.fixture
def package(tmp_path):
    """A folder in which the page's parts are installed as pip would: a module, and its entry points."""
    page = PAGE.read_text()
    module, points = (
        re.search(rf"^```{head}\n(.*?)^```", page, flags=re.M | re.S)[1]
        for head in (r'python title="my_parts.py"', "toml")
    )
    (tmp_path / "my_parts.py").write_text(module.replace('@bamdp.register("sampler")\n', ""))
    info = tmp_path / "my_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    names = points.replace("[project.entry-points.bamdp]", "[bamdp]").replace('"', "")
    (info / "entry_points.txt").write_text(names)
    return tmp_path


def run(package, *words):
    path = os.pathsep.join([str(package), str(Path(bamdp.__file__).parents[1])])
    command = [sys.executable, *words]
    done = subprocess.run(
        command,
        cwd=package,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_is_short():
    assert len(PAGE.read_text().split()) <= 800


def test_entry_points_are_known_to_all_commands_and_the_studio(package):
    command = ["-m", "bamdp"]
    listed = run(package, *command, "list")
    assert "gamma=0.95" in listed
    options = ["--prior", "neighbours", "--runs", "2", "--steps", "20"]
    out = run(
        package, *command, "compare", "river_swim", "sampler:gamma=0.9", "thompson", *options, "--jobs", "2"
    )
    assert "sampler:gamma=0.9" in out
    assert "gamma" in run(
        package, *command, "tune", "river_swim", "sampler", "--grid", "gamma=.9,.99", *options
    )
    (package / "own.toml").write_text(STUDY)
    run(package, *command, "lab", "run", "own.toml")
    assert run(package, "-c", STUDIO).startswith("5 Next: ")
