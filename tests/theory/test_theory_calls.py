"""Counts: against trees that are walked, and against what the planners really do."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import pytest

import bamdp
from bamdp.theory import bamcp_calls, dss_calls, fhts_histories, sparse_sampling_calls


def walk(N, M, K, H):
    """(nodes, policies, calls, leaves) by walking Algorithm 2."""
    if H == 0:
        return 0, 0, 0, 1
    below = walk(N, M, K, H - 1)
    return tuple(own + N * M * under for own, under in zip((1, N, N * M * K, 0), below))


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("M", [1, 2, 4])
@pytest.mark.parametrize("H", [1, 2, 3])
def test_dss_counts_are_those_of_the_tree(N, M, H):
    tree = dss_calls(N, M, 5, H)
    assert (tree.nodes, tree.policies, tree.calls, tree.leaves) == walk(N, M, 5, H)


def test_the_planner_makes_as_many_policies_and_steps():
    planner = bamdp.DSS(n_policies=2, n_samples=3, n_steps=4, n_stages=2)
    env = bamdp.make_env("chain")
    agent = bamdp.Agent(
        planner, prior=bamdp.Dirichlet(), rewards=env.rewards, n_states=5, n_actions=2, discount=0.9, seed=0
    )
    tree, counts = agent.plan(0, tree=True).tree, dss_calls(2, 3, 4, 2)
    assert (len(tree.path), len(tree.policies)) == (counts.calls, counts.policies)


COUNT = """
import json, bamdp
from bamdp.beliefs import verbs
calls = [0]
def count(name):
    really = getattr(verbs, name)
    def counted(*arguments):
        calls[0] += 1
        return really(*arguments)
    setattr(verbs, name, counted)
count("advance")
found = {}
for name, planner in {
    "dss": bamdp.DSS(n_policies=2, n_samples=3, n_steps=4, n_stages=2),
    "sparse": bamdp.SparseSampling(width=2, depth=4),
    "bamcp": bamdp.BAMCP(n_simulations=20, depth=6, root_sampling="predictive"),
}.items():
    agent = bamdp.Agent(planner, prior=bamdp.Dirichlet(), rewards=[0.0, 1.0], n_states=2, n_actions=2,
                        discount=0.9, seed=0)
    calls[0] = 0
    agent.act(0)
    found[name] = calls[0]
print(json.dumps(found))
"""


def test_the_compiled_planners_call_the_model_exactly_as_often_as_counted():
    # Uncompiled, so that the very same source can be watched: every simulated step is one `advance`.
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "dss": dss_calls(2, 3, 4, 2).calls,
        "sparse": sparse_sampling_calls(2, 2, 4),
        "bamcp": bamcp_calls(20, 6),
    }


def test_the_exact_tree_has_as_many_histories_as_can_be_written_down():
    steps = list(itertools.product(range(3), range(2)))  # an action, a next state
    written = sum(1 for d in range(1, 5) for _ in itertools.product(steps, repeat=d))
    assert fhts_histories(n_states=2, n_actions=3, horizon=4) == written


def test_the_paper_s_count_is_of_leaves():
    tree = dss_calls(4, 4, 18, 2)
    assert tree.leaves == (4 * 4) ** 2
    assert tree.calls == 18 * 16 * (1 + 16)


def test_a_tree_that_is_too_large_to_count_is_refused():
    with pytest.raises(ValueError, match="lower the depth or the width"):
        sparse_sampling_calls(2, 4, 10**9)
    with pytest.raises(ValueError, match="cannot be searched"):
        dss_calls(4, 4, 1, 10**8)
