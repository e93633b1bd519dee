"""What is in a run's identity, what is not, and the streams that come of it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bamdp import BetaBernoulli, Dirichlet, SparseDirichlet
from bamdp.lab import store as units
from bamdp.lab.store import EVALUATE, TUNE
from bamdp.planners import DSS
from bamdp.registry import make_rewards
from bamdp.runs import Setting, cached_world
from bamdp.simulation import Run

ENV = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}


def setting(**changes):
    env = changes.get("env", "chain")
    base = Setting(env, DSS(), SparseDirichlet(), make_rewards(None, cached_world(env)), 0.95, 100, 3)
    return dataclasses.replace(base, **changes)


def name(phase=EVALUATE, replicate=0, **changes):
    return units.units_of(setting(**changes), phase, range(replicate, replicate + 1), 1.0)[0].id


def test_everything_that_determines_a_result_is_in_the_identity():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Later(DSS):
        result_version = DSS.result_version + 1

    Later.__name__ = "DSS"
    others = [
        name(),
        name(phase=TUNE),
        name(replicate=1),
        name(env="chain:slip=0.1"),
        name(env="double_loop"),
        name(planner=DSS(n_steps=21)),
        name(planner=DSS(generator="rtdp")),
        name(planner=Later()),
        name(prior=SparseDirichlet(beta=2.0 + 1e-12)),
        name(prior=Dirichlet(alpha=0.2)),
        name(prior=Dirichlet(alpha=np.full((5, 2, 5), 0.2))),
        name(prior=Dirichlet(alpha=np.full((5, 2, 5), 0.3))),
        name(rewards=BetaBernoulli()),
        name(discount=0.9500001),
        name(steps=101),
        name(seed=4),
        name(objective="lifetime"),
        name(env="gym:FrozenLake-v1"),
        name(env="gym:FrozenLake-v1:is_slippery=False"),
        name(env="gym:FrozenLake8x8-v1"),
    ]
    assert len(set(others)) == len(others)


def test_labels_spelling_and_versions_are_not_in_it(monkeypatch):
    assert name(env="double-loop") == name(env="double_loop")
    assert name(env="chain:slip=0.2") == name()
    before = name()
    monkeypatch.setattr("bamdp.__version__", "99.0")
    assert name() == before


def test_of_a_file_the_content_counts_and_not_the_place(tmp_path):
    def model(path, reward):
        np.savez(path, transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, reward])
        return f"file:{path}"

    one, copy = model(tmp_path / "a.npz", 1.0), tmp_path / "b.npz"
    copy.write_bytes((tmp_path / "a.npz").read_bytes())
    other = model(tmp_path / "c.npz", 2.0)
    facts = [units.environment_facts(spec) for spec in (one, f"file:{copy}", other)]
    assert facts[0] == facts[1] != facts[2]


def test_names_do_not_depend_on_the_process():
    code = (
        "from bamdp.lab.study import parse_study\nfrom bamdp.lab.store import units_of\n"
        'cell = parse_study(\'environments = ["maze_door"]\\nalgorithms = ["dss-rtdp"]\').cells[0]\n'
        "print(units_of(cell.settings[0], 'tune', range(1), 1.0)[0].id)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, **ENV},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 32


@given(hnp.arrays(np.float64, 30, elements=st.floats(width=64)), st.sets(st.integers(0, 29)))
def test_every_trace_comes_back_to_the_bit(rewards, ends):
    ended = np.isin(np.arange(30), list(ends))
    cut = np.roll(ended, 1) & ~ended
    run = Run(rewards, rewards, rewards, ended, rewards, cut)
    again = units.decode_trace(units.encode_trace(run))
    assert np.array_equal(again.rewards.view(np.uint64), rewards.view(np.uint64))
    assert np.array_equal(again.terminated, ended)
    assert np.array_equal(again.truncated, cut)
