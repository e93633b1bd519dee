"""No file, however crafted, ends the interpreter: it is refused in one line, or the agent behaves like any other.

Every array of a saved agent is cut, reshaped, retyped and filled with other numbers, and every number in its JSON is
replaced (``loading_cases.py``), each in turn, with the right checksum; a process of its own loads each file, and acts
and learns if it is accepted.
"""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bamdp
from bamdp import _serial, loading
from bamdp.registry import PLANNERS, make_planner
from conformance_cases import COVER, SQUARE, possible

CASES = Path(__file__).with_name("loading_cases.py")
FEW = list(filter(possible, COVER))[::4]


def attack(folder: Path, *case: str) -> tuple[int, int]:
    """Try all changes of an agent's file; the numbers of those that were refused and used."""
    done = subprocess.run([sys.executable, CASES, folder, *case], capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (
        f"after {lines[-1] if lines else 'nothing'}: {done.returncode} {done.stderr[-2000:]}"
    )
    refused, _, _, used, _ = lines[-1].replace(",", " ,").split()[:5]
    return int(refused), int(used)


@pytest.mark.parametrize("case", FEW, ids="-".join)
def test_a_crafted_file_is_refused_or_behaves_as_valid(case, tmp_path):
    assert attack(tmp_path, *case)[0] > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in SQUARE if possible(case) and case not in FEW], ids="-".join
)
def test_a_crafted_file_of_any_planner_and_prior_is_refused_or_behaves_as_valid(case, tmp_path):
    assert attack(tmp_path, *case)[0] > 50


def test_next_states_that_do_not_exist_are_refused(tmp_path):
    env = bamdp.make_env("grid5")
    agent = bamdp.Agent(
        bamdp.ThompsonSampling(), prior=bamdp.SparseDirichlet(), rewards=env.rewards, n_states=25, n_actions=4,
        discount=0.95, seed=0,
    )  # fmt: skip
    bamdp.simulate(agent, env, 30, seed=0)
    path = tmp_path / "agent.npz"
    pool = agent.belief.transitions.counts.pool
    pool[: agent.belief.transitions.counts.top[0], 0] = 2**30  # next states that were seen
    agent.save(path)
    with pytest.raises(ValueError, match="the counts of transitions is not as it must be"):
        bamdp.Agent.load(path)


def test_a_changed_file_without_its_checksum_is_said_to_be_damaged(tmp_path):
    path = tmp_path / "belief.npz"
    bamdp.Dirichlet().belief(3, 2).save(path)
    with open(path, "rb") as file:
        arrays = _serial.read_npz(file)
    name = next(name for name in arrays if name != "tree" and arrays[name].size)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] += 1
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="damaged, or changed after it was saved"):
        bamdp.Belief.load(path)


def test_an_array_that_says_that_it_is_larger_than_it_is_is_not_read(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tree.npy", header.getvalue() + b"\0" * 80)
    with pytest.raises(ValueError, match="has not the size that it says"):
        bamdp.Agent.load(path)


def test_a_file_that_would_fill_the_machine_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "belief.npz"
    bamdp.Dirichlet().belief(30, 2).save(path)
    monkeypatch.setattr(_serial, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="at most 0 are read"):
        bamdp.Belief.load(path)


def test_every_planner_of_the_library_has_its_memory_checked_by_its_own_rules():
    belief = bamdp.Dirichlet().belief(3, 2, rewards=np.arange(3.0))
    for name in PLANNERS:
        memory = make_planner(name).start(belief, 0.9)
        if memory is not None:
            assert loading.fields_of(memory) is not None, name


@dataclasses.dataclass
class OwnMemory:
    visits: np.ndarray


@pytest.mark.parametrize(
    "saved",
    [OwnMemory(np.zeros(3, np.int32)), OwnMemory(np.zeros((2, 3), np.int64)), np.zeros(3), None],
    ids=["type", "shape", "class", "nothing"],
)
def test_memories_of_ones_own_are_compared_with_a_new_one(saved):
    fresh, belief = OwnMemory(np.zeros(3, np.int64)), bamdp.Dirichlet().belief(3, 2)
    assert loading.restore_memory(fresh, OwnMemory(np.ones(3, np.int64)), None, belief).visits.sum() == 3
    with pytest.raises(ValueError, match="OwnMemory is not as it must be"):
        loading.restore_memory(fresh, saved, None, belief)
