"""The site builds strictly (MkDocs checks every link and anchor) and asks no outside host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]* src=[\"']?(https?:)?//|rel=\"stylesheet\" href=[\"']?(https?:)?//"
)


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
    assert "n_policies" in pages["api-planners"]
    assert "--runs" in pages["cli"]
