"""Every code block of the documentation runs, and prints what the page says that it prints."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bamdp

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ELSEWHERE = {
    "laboratory",
    "statistics",
    "environments",
    "deep-sea",
}  # run by the tests of what they are about
CODE = [
    page
    for page in PAGES
    if page.stem not in ELSEWHERE and re.search(r"^```(python|console|sh)", page.read_text(), flags=re.M)
]
RUNNER = Path(__file__).with_name("run_page.py")


def run_page(page, folder):
    """The number of blocks run; in another process, since pages register parts of their own."""
    command = [sys.executable, "-W", "error", RUNNER, page, ROOT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("page", CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path):
    assert run_page(page, tmp_path) >= 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```python\nraise ValueError('x')\n```\n", "ValueError"),
        ('```python\nprint(1)\n```\n\n```text title="output"\n2\n```\n', "but it prints"),
        ("```console\n$ bamdp list nothing\n```\n", "AssertionError"),
        ("```sh\nbamdp run chain thompson --rnus 3\n```\n", "AssertionError"),
    ],
    ids=["error", "output", "console", "sh"],
)
def test_a_page_that_is_wrong_is_found_out(text, why, tmp_path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(AssertionError, match=why):
        run_page(tmp_path / "page.md", tmp_path)


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^::: bamdp\.([\w.]+)$", text, flags=re.M))
    assert set(bamdp.__all__) - {"__version__", "theory", "Transition"} <= listed
    assert {f"theory.{name}" for name in bamdp.theory.__all__} <= listed


def test_the_table_on_the_choosing_page_is_the_data():
    spec = importlib.util.spec_from_file_location("choosing", ROOT / "benchmarks" / "choosing.py")
    choosing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(choosing)
    with choosing.DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert choosing.table(rows) in (ROOT / "docs" / "choosing.md").read_text()
    cells = {(row["env"], row["planner"], row["prior"]) for row in rows}
    assert cells == set(itertools.product(choosing.ENVS, choosing.PLANNERS, choosing.PRIORS))


def test_what_builds_the_pages_is_installed_for_development():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["docs"]) <= set(extras["dev"]) or "bamdp[docs]" in extras["dev"]


@pytest.mark.slow
def test_the_planner_of_the_contributing_page_passes_its_own_tests(tmp_path):
    for name in ("src", "tests"):
        subprocess.run(["cp", "-r", ROOT / name, tmp_path / name], check=True)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    files = re.findall(
        r'^```python title="(\S+/\S+)"\n(.*?)^```$', (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M | re.S
    )
    assert len(files) == 2
    for path, code in files:
        (tmp_path / path).write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", files[1][0]]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": "src", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
