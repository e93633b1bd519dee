"""Memory grows with what was observed: 250 000 states and 100 000 observations in 600 MB.

A whole sampled model of the sparse prior has about eight million entries, which may take as much again.
"""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
import bamdp
S, A, N = 250_000, 4, 100_000
prior = {"dirichlet": bamdp.Dirichlet(alpha=1 / S), "sparse": bamdp.SparseDirichlet()}[sys.argv[1]]
belief = prior.belief(S, A, rewards=np.zeros(S))
rng = np.random.default_rng(0)
s, a = rng.integers(0, 5000, N), rng.integers(0, A, N)
s2 = (s + rng.integers(0, 4, N)) % S
belief.observe_many(s, a, np.zeros(N), s2)
wide = rng.integers(0, S, 100)
belief.observe_many(np.zeros(100, int), np.zeros(100, int), np.zeros(100), wide)  # one row with 100 outcomes
for i in range(100):
    belief.observe(int(s[i]), int(a[i]), 0.0, int(s2[i]))
belief.reserve(1000)
p = belief.predictive(int(s[0]), int(a[0]))
assert p.shape == (S,) and abs(p.sum() - 1.0) < 1e-9 and p[s2[0]] > 0.05
twin = belief.copy()
mean = belief.mean()
assert mean.rows.index.size < 2 * N
states, probs = mean.row(int(s[0]), int(a[0]))
assert np.allclose(probs, p, atol=1e-12)
belief.save(sys.argv[2])
loaded = bamdp.Belief.load(sys.argv[2])
assert loaded.log_evidence == belief.log_evidence == twin.log_evidence
assert loaded.n_observed == N + 200
del mean, twin, loaded
if sys.argv[1] == "sparse":
    model = belief.sample(0)
    assert model.n_states == S
status = Path("/proc/self/status")  # a process's own peak; the other number may begin with its parent's
if status.exists():
    print(next(int(line.split()[1]) // 1024 for line in status.open() if line.startswith("VmHWM")))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("prior", ["dirichlet", "sparse"])
def test_memory_grows_with_observations_not_with_pairs_of_states(prior, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, prior, str(tmp_path / "b.npz")]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    megabytes = int(run.stdout)
    assert megabytes < (600 if prior == "dirichlet" else 1250)
    assert (tmp_path / "b.npz").stat().st_size < 20_000_000
