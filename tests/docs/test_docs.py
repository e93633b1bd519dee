"""Every code block of the documentation runs and prints what the page says; tables and the reference are current."""

from __future__ import annotations

import csv
import importlib.util
import inspect
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bamdp
from bamdp.registry import PLANNERS, PRIORS, REWARDS, make_prior
from bamdp.runs import make_setting

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ELSEWHERE = {"laboratory", "statistics", "deep-sea"}  # run by the tests of what they are about
CODE = [
    page
    for page in PAGES
    if page.stem not in ELSEWHERE and re.search(r"^```(python|console|sh)", page.read_text(), flags=re.M)
]
RUNNER = Path(__file__).with_name("run_page.py")
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]* src=[\"']?(https?:)?//|rel=\"stylesheet\" href=[\"']?(https?:)?//"
)


def run_page(page, folder):
    """The number of blocks run; in another process, since pages register parts of their own."""
    command = [sys.executable, "-W", "error", RUNNER, page, ROOT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("page", CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path):
    assert run_page(page, tmp_path) >= 1


def load_script(path):
    """Return a Python file that is in no package as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_quoted_sources_exist():
    source = load_script(ROOT / "docs" / "hooks" / "source.py")
    quotes = [found for page in PAGES for found in source.SOURCE.findall(page.read_text())]
    assert quotes
    assert all("```" in source.quoted(path, name) for path, name in quotes)


def test_the_catalogue_names_every_planner_prior_reward_model_and_environment():
    text = (ROOT / "docs" / "catalogue.md").read_text()
    for name in [*PLANNERS, *PRIORS, *REWARDS, *(info.name for info in bamdp.list_envs())]:
        assert f"`{name}`" in text, name


def test_the_reference_has_every_public_name():
    reference = load_script(ROOT / "docs" / "hooks" / "reference.py")
    text = "\n".join(reference.pages().values())
    listed = set(re.findall(r"^::: bamdp\.([\w.]+)$", text, flags=re.M))
    assert {name for name in bamdp.__all__ if not inspect.ismodule(getattr(bamdp, name))} - {
        "__version__"
    } <= listed
    assert {f"theory.{name}" for name in bamdp.theory.__all__} <= listed


def test_the_table_of_defaults_is_made_of_the_code_and_is_what_agents_use():
    source = load_script(ROOT / "docs" / "hooks" / "source.py")
    assert any("::: defaults" in page.read_text() for page in PAGES)
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", source.defaults_table(), flags=re.M))
    assert list(rows) == list(PLANNERS)
    for name in ("adaptive-dss", "thompson", "q-learning"):
        setting = make_setting("chain", name)
        prior, discount = rows[name].replace("`", "").split(" | ")
        assert discount == str(setting.discount)
        assert make_prior(prior) == setting.prior if setting.planner.uses_prior else prior == "not used"


def test_the_page_of_the_command_line_has_the_help_of_every_command():
    shown = re.findall(r"^::: help ([\w ]+)$", (ROOT / "docs" / "cli.md").read_text(), flags=re.M)
    source = load_script(ROOT / "docs" / "hooks" / "source.py")
    assert sorted(shown) == sorted(name for name, _ in source.command_parsers())


def test_parameters_described_together_get_their_own_defaults():
    roles = load_script(ROOT / "docs" / "hooks" / "roles.py")
    text = "Head.\n\nParameters\n----------\nfirst, second : int\n    What they are.\n\n    More.\nthird\n    Alone."
    expected = (
        "first : int\n    What they are.\n\n    More.\nsecond : int\n    What they are.\n\n    More.\nthird\n"
    )
    assert expected in roles.separate(text)


def test_the_table_on_the_choosing_page_is_the_data():
    choosing = load_script(ROOT / "benchmarks" / "choosing.py")
    with choosing.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert choosing.table(rows) in (ROOT / "docs" / "choosing.md").read_text()
    cells = {(row["env"], row["planner"], row["prior"]) for row in rows}
    assert cells == set(itertools.product(choosing.ENVS, choosing.PLANNERS, choosing.PRIORS))


@pytest.fixture(scope="module")
def gym_learning():
    return load_script(ROOT / "benchmarks" / "gym_learning.py")


def test_the_table_of_gymnasium_tasks_is_the_data(gym_learning):
    runs = gym_learning.runs_from(gym_learning.read_rows(), gym_learning.STEPS)
    assert gym_learning.table(runs) in (ROOT / "docs" / "environments.md").read_text()
    counts = {len(group) for parts in runs.values() for group in parts.values()}
    assert counts == {gym_learning.RUNS}


@pytest.mark.slow
def test_the_site_builds_offline_with_formulas_sources_and_docstrings(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    # A proxy that nobody listens at: a build that asks an outside host fails.
    nowhere = {f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https", "all")}
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **nowhere}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.stem: path.read_text() for path in tmp_path.glob("*.html")}
    assert [name for name, text in pages.items() if LOADED.search(text)] == []
    assert 'class="arithmatex"' in pages["theory"]
    assert "simulate_step" in pages["paper-in-code"]
    assert "--runs" in pages["cli"]
