"""The scripts in examples/ run, draw their pictures, show what they say, and are in the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
NUMBER = r"(-?\d+\.?\d*)"


def numbers(pattern, text):
    return [float(x) for x in re.search(pattern.replace("#", NUMBER), text).groups()]


CLAIMS = {
    "own_matrix": lambda out: 0.9 < numbers("it: # in", out)[0] / numbers("steps, of #", out)[0] < 1.1,
    "own_function": lambda out: numbers("Sampling: #", out)[0] > numbers("Random: #", out)[0] + 0.05,
    "own_gym": lambda out: numbers("# treasures", out)[0] > 200 and numbers("average: #", out)[0] < 6.0,
    "own_prior": lambda out: numbers("Neighbours: #", out)[0] > numbers("Dirichlet: #", out)[0],
    "own_generator": lambda out: numbers("pi: #", out)[0] > 0.0,
    "save_and_resume": lambda out: "the same run: True" in out and "by now: 1000" in out,
    "time_budget": lambda out: "reproducible: False" in out,
    "compare_priors": lambda out: numbers(r"ours\) *#", out)[0] > 120,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "deterministic"])
def test_an_example_shows_what_it_says(name, tmp_path):
    draws = 'path: str = "' in EXAMPLES[name].read_text()
    words = [tmp_path / "it.png"] if draws else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, EXAMPLES[name], *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not draws or (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert CLAIMS.get(name, bool)(done.stdout or "drawn")


def test_the_documentation_names_every_example():
    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert EXAMPLES
    assert [path.name for path in EXAMPLES.values() if f"examples/{path.name}" not in text] == []
