"""Kernels have no bounds checks; compiled with them, a good part of the suite finds nothing out of bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bamdp._kernels import jit

ROOT = Path(__file__).resolve().parents[2]
INDEX = """
import numpy as np
from bamdp.extend import uniform
uniform(np.zeros({words}, np.uint64))
"""


def with_bounds_checks(cache, *words):
    """Run Python with kernels compiled anew, with bounds checks."""
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.fixture
def shared_cache(tmp_path_factory):
    """A folder for what the parts compile, which they largely have in common, whichever worker runs them."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "bounds-checked"


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
def test_an_index_out_of_bounds_would_be_found(tmp_path):
    assert with_bounds_checks(tmp_path, "-c", INDEX.format(words=4)).returncode == 0
    done = with_bounds_checks(tmp_path, "-c", INDEX.format(words=2))
    assert "IndexError" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
@pytest.mark.parametrize(
    "part",
    [
        "conformance/test_conformance.py",
        "beliefs/test_beliefs_undo.py",
        "planners/test_planners_objectives.py",
        "kernels/test_kernels_random.py",
    ],
)
def test_no_index_of_the_suite_is_out_of_bounds(part, shared_cache):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", f"tests/{part}")
    done = with_bounds_checks(shared_cache, *words)
    assert done.returncode == 0, done.stdout[-3000:]
