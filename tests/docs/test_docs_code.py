"""Every code block of the documentation runs, and prints what the page says that it prints."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
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
MOST_COLUMNS = 85
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


def load_script(path):
    """Return a Python file that is in no package as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_quoted_sources_exist():
    source = load_script(ROOT / "docs" / "hooks" / "source.py")
    quotes = [found for page in PAGES for found in source.SOURCE.findall(page.read_text())]
    assert len(quotes) >= 4
    assert all("```" in source.quoted(path, name) for path, name in quotes)


def test_the_reference_has_every_public_name():
    source = load_script(ROOT / "docs" / "hooks" / "source.py")
    pages = sorted((ROOT / "docs").glob("api*.md"))
    text = "\n".join(source.on_page_markdown(page.read_text()) for page in pages)
    listed = set(re.findall(r"^::: bamdp\.([\w.]+)$", text, flags=re.M))
    assert set(bamdp.__all__) - {"__version__", "theory", "Transition"} <= listed
    assert {f"theory.{name}" for name in bamdp.theory.__all__} <= listed


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem
)
def test_code_fits_into_a_column(page):
    """Code that is written here has at most 85 columns; what is printed may be wider."""
    blocks = re.findall(
        r"^```(?:python|console|sh|toml)[^\n]*\n(.*?)^```$", page.read_text(), flags=re.M | re.S
    )
    indented = re.findall(
        r"^    (?:bamdp|python|pip|make|git|PYTHONPATH=\S+) .*$", page.read_text(), flags=re.M
    )
    lines = [line for block in blocks for line in block.splitlines()] + [line[4:] for line in indented]
    assert [line for line in lines if len(line) > MOST_COLUMNS] == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_code_of_notebooks_fits_into_a_column(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    assert lines
    assert [line for line in lines if len(line) > MOST_COLUMNS] == []


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


def test_what_makes_the_figure_of_gymnasium_tasks_runs(gym_learning, tmp_path):
    picture = gym_learning.quick(tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = gym_learning.read_rows(tmp_path / "gym-learning.csv")
    assert {row["world"] for row in rows} == set(gym_learning.WORLDS)
    assert {row["planner"] for row in rows} == {"dss-pi", "q-learning"}


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
