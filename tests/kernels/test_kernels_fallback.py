"""Without Numba's private parts the package runs on plain ``numba.njit(cache=True)``, with the same results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bamdp._kernels import jit

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import bamdp
from bamdp._kernels import jit
env = bamdp.make_env("chain")
agent = bamdp.Agent(bamdp.{planner}, prior=bamdp.SparseDirichlet(), rewards=env.rewards, n_states=env.n_states,
                    n_actions=env.n_actions, discount=0.95, seed=0)
run = bamdp.simulate(agent, env, 40, seed=0)
print(jit.internals is not None, run.actions.tolist(), agent.plan(0).value.hex())
"""


def plain(*words, cwd=ROOT, cache):
    env = {**os.environ, "BAMDP_PLAIN_NUMBA": "1", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
def test_a_run_on_plain_numba_is_the_same_to_the_bit(tmp_path, capsys):
    code = RUN.format(planner="ThompsonSampling()")
    done = plain("-W", "error", "-c", code, cache=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    exec(code, {})
    assert done.stdout.startswith("False ")
    assert done.stdout.removeprefix("False") == capsys.readouterr().out.removeprefix("True")
    assert list(tmp_path.rglob("*.nbi")), "Numba's own cache was not used"


@pytest.mark.slow
@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
@pytest.mark.parametrize(
    "part",
    ["beliefs/test_beliefs_rewards.py", "planners/test_planners_dss.py", "planners/test_planners_bauct.py"],
)
def test_a_part_of_the_suite_passes_on_plain_numba(part, tmp_path):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", f"tests/{part}")
    done = plain(*words, cache=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_private_parts_are_there_with_the_numba_that_is_pinned():
    assert jit.internals is not None or os.environ.get("BAMDP_PLAIN_NUMBA")
