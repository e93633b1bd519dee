"""The notebooks run, and the outputs that are stored with them are those of their code."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TIME_COLUMN = re.compile(r"ms.step|ms_per_step")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("notebooks_tool", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(notebook):
    """For each code cell, its texts (but for tables with a column of times), and the number of its pictures."""
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            data = [one.get("data", {"text/plain": one.get("text", "")}) for one in cell["outputs"]]
            texts = ["".join(one["text/plain"]) for one in data if "image/png" not in one]
            pictures = sum("image/png" in one for one in data)
            shown.append(([text for text in texts if not TIME_COLUMN.search(text)], pictures))
    return shown


def stored(path):
    return json.loads(path.read_text())


def test_notebooks_have_their_outputs_and_are_in_the_readme_and_on_the_site():
    assert len(NOTEBOOKS) >= 4
    for path in NOTEBOOKS:
        cells = [cell for cell in stored(path)["cells"] if cell["cell_type"] == "code"]
        assert all(cell["execution_count"] for cell in cells)
        assert sum(pictures for _, pictures in outputs(stored(path))) >= 1
        assert f"(notebooks/{path.name})" in (ROOT / "README.md").read_text()
        assert f"notebooks/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text()


def test_the_first_notebook_runs_and_shows_what_is_stored(tool):
    path = ROOT / "notebooks" / "first-steps.ipynb"
    assert outputs(tool.execute(path)) == outputs(stored(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [p for p in NOTEBOOKS if p.stem != "first-steps"], ids=lambda path: path.stem
)
def test_the_other_notebooks_run_and_show_what_is_stored(tool, path):
    assert outputs(tool.execute(path)) == outputs(stored(path))
