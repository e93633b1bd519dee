"""With the compiler off every belief gives the same numbers, and nothing warns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import beliefs_script
import numpy as np
import pytest
from beliefs_exact import CASES


@pytest.fixture(scope="module")
def interpreted():
    """The script's output in a process without the compiler, warnings being errors."""
    script = Path(beliefs_script.__file__)
    env = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(script.parent), *sys.path]),
    }
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", CASES)
def test_compiled_and_interpreted_beliefs_agree(name, interpreted):
    compiled = beliefs_script.numbers(name)
    assert len(compiled) == len(interpreted[name])
    assert np.allclose(compiled, interpreted[name], rtol=1e-12, atol=1e-14)
