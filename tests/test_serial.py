"""Saving and loading: every prior, belief and reward model, without pickle, with clear errors."""

import dataclasses
import importlib.util
import itertools
import json
import pickle
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "beliefs"))
from beliefs_exact import CASES, A, S

import bamdp
from bamdp import (
    Belief,
    BetaBernoulli,
    Dirichlet,
    KnownRewards,
    Mixture,
    Prior,
    RewardModel,
    SparseDirichlet,
    _serial,
)
from bamdp._serial import FORMAT


def prepared(name):
    case, kept = CASES[name], []
    for step in [(0, 0, 1.0, 1), (0, 0, 0.0, 0), (1, 1, 1.0, 2), (0, 0, 1.0, 2), (2, 0, 0.0, 3)]:
        if case.evidence([*kept, step]) > 0:
            kept.append(step)
    return case.belief(kept)


def arrays(state):
    """All arrays of nested tuples."""
    if isinstance(state, np.ndarray):
        return [state]
    return [x for part in state for x in arrays(part)] if isinstance(state, tuple) else []


@pytest.mark.parametrize("name", CASES)
def test_a_belief_goes_on_bit_for_bit(name, tmp_path):
    belief = prepared(name)
    belief.space.terminal[3] = belief.episodes.ends[3] = True
    belief.save(tmp_path / "b.npz")
    twin = Belief.load(tmp_path / "b.npz")
    assert (twin.log_evidence, twin.n_observed) == (belief.log_evidence, belief.n_observed)
    assert twin.prior == belief.prior
    assert twin.reward_model == belief.reward_model
    for x, y in zip(belief.space, twin.space):
        np.testing.assert_array_equal(x, y)
    for s, a in itertools.product(range(belief.n_states), range(belief.n_actions)):
        np.testing.assert_array_equal(twin.predictive(s, a), belief.predictive(s, a))
        assert twin.expected_reward(s, a) == belief.expected_reward(s, a)
    assert all(array.flags.writeable for array in arrays(twin.arrays))
    assert type(twin.transitions) is type(belief.transitions)
    assert type(twin.rewards) is type(belief.rewards)
    assert twin.sample(1) == belief.sample(1)
    s2 = int(np.flatnonzero(belief.predictive(0, 0))[-1])
    for one in (belief, twin):
        one.observe(0, 0, float(one.expected_reward(0, 0) > 0.5), s2)
    assert twin.log_evidence == belief.log_evidence


@pytest.mark.parametrize("name", CASES)
def test_every_prior_and_reward_model_comes_back_equal(name, tmp_path):
    case = CASES[name]
    _serial.save(tmp_path / "p.npz", case.prior)
    assert _serial.load(tmp_path / "p.npz", Prior) == case.prior
    for model in (BetaBernoulli(a=0.1), KnownRewards(np.ones((2, 3))), KnownRewards([0.1, 0.2])):
        _serial.save(tmp_path / "r.npz", model)
        assert _serial.load(tmp_path / "r.npz", RewardModel) == model


def test_beliefs_survive_pickle_for_other_processes():
    belief = prepared("nested")
    twin = pickle.loads(pickle.dumps(belief))
    assert twin.sample(1) == belief.sample(1)


def test_no_array_in_a_file_needs_pickle(tmp_path):
    prepared("nested").save(tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz", allow_pickle=False) as file:
        assert all(not file[name].dtype.hasobject for name in file.files)


def test_shared_arrays_are_shared_again(tmp_path):
    belief = prepared("own rewards")
    belief.save(tmp_path / "b.npz")
    twin = Belief.load(tmp_path / "b.npz")
    assert twin.transitions.weights.now is twin.rewards.weights.now
    assert twin.transitions.weights.log is twin.rewards.weights.log
    assert twin.transitions.weights.top is not twin.rewards.weights.top


@_serial.saveable
@dataclasses.dataclass
class Box:
    content: object


class Stranger(NamedTuple):
    x: int


PLAIN = [
    None,
    True,
    3,
    -(2**70),
    "words, ü and \u2603",
    0.1,
    float("inf"),
    5e-324,
    (1, (2.0, "x")),
    [1, [2]],
    {"a": 1, 2: [3.5], (1, 2): None, "class": "x", "float": 1},
    (),
    {},
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_come_back_equal_and_of_the_same_type(value, tmp_path):
    _serial.save(tmp_path / "x.npz", Box(value))
    found = _serial.load(tmp_path / "x.npz", Box).content
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(0),
        np.array(1.5),
        np.arange(6, dtype=np.int32).reshape(2, 3).T,
        np.array([True]),
        np.array(["ü", "xyz"]),
    ],
    ids=["empty", "scalar", "fortran", "bool", "text"],
)
def test_any_plain_array_comes_back(array, tmp_path):
    _serial.save(tmp_path / "x.npz", Box(array))
    found = _serial.load(tmp_path / "x.npz", Box).content
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    "value",
    [object(), Stranger(1), {1, 2}, np.array([None]), 1j, lambda: 0],
    ids=["object", "stranger", "set", "objects", "complex", "function"],
)
def test_what_is_not_known_is_refused_before_a_file_is_made(value, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved; make its class known first"):
        _serial.save(tmp_path / "x.npz", Box(value))
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    for value in (1, 2):
        _serial.save(tmp_path / "x.npz", Box(value))
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert _serial.load(tmp_path / "x.npz", Box).content == 2


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    _serial.save(tmp_path / "x.npz", Box(1))

    def full_disk(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space"):
        _serial.save(tmp_path / "x.npz", Box(2))
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert _serial.load(tmp_path / "x.npz", Box).content == 1


def write_tree(path, tree):
    """A file without arrays, with the right checksum where it has a value."""
    if isinstance(tree, dict):
        tree = {**tree, "checksum": _serial._checksum(tree.get("value"), {})}
    np.savez(path, tree=np.array(json.dumps(tree)))


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Belief.load(tmp_path / "no.npz")


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    contents = [b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04 nothing"]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x.npz is no file saved by bamdp"):
            Belief.load(path)
    np.savez(path, data=np.arange(3))
    with pytest.raises(ValueError, match="no file saved by bamdp"):
        Belief.load(path)
    np.savez(path, tree=np.array("not json"))
    with pytest.raises(ValueError, match="no file saved by bamdp"):
        Belief.load(path)
    write_tree(path, [1, 2])
    with pytest.raises(ValueError, match="no file saved by bamdp"):
        Belief.load(path)
    with open(path, "wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="no file saved by bamdp"):
        Belief.load(path)
    np.savez(path, tree=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="no file saved by bamdp"):
        Belief.load(path)


def test_another_format_is_named(tmp_path):
    write_tree(tmp_path / "x.npz", {"format": 99, "value": 1})
    with pytest.raises(ValueError, match=f"has format 99, this version of bamdp reads {FORMAT}"):
        Belief.load(tmp_path / "x.npz")


def test_an_unknown_class_is_named(tmp_path):
    tree = {"format": FORMAT, "value": {"class": "os.system", "parts": {"command": "true"}}}
    write_tree(tmp_path / "x.npz", tree)
    with pytest.raises(ValueError, match=r"needs the class 'os\.system'; import the module"):
        Belief.load(tmp_path / "x.npz")


def test_wrong_parts_and_missing_arrays_are_refused(tmp_path):
    box = f"{Box.__module__}.{Box.__qualname__}"
    for value in (
        {"class": box, "parts": {"other": 1}},
        {"class": box, "parts": {"content": {"array": 5}}},
        {"class": box},
        {"nonsense": 1},
    ):
        write_tree(tmp_path / "x.npz", {"format": FORMAT, "value": value})
        with pytest.raises(ValueError, match="cannot be read"):
            _serial.load(tmp_path / "x.npz", Box)


def test_an_object_of_another_class_is_refused(tmp_path):
    _serial.save(tmp_path / "x.npz", Dirichlet())
    with pytest.raises(ValueError, match="holds a Dirichlet, not a Belief"):
        Belief.load(tmp_path / "x.npz")


def test_truncated_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "b.npz"
    prepared("mixture").save(path)
    whole = path.read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"b\.npz"):
            Belief.load(path)
    rng = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with suppress(ValueError):  # nothing else; and a damaged time stamp, say, does no harm
            Belief.load(path)


def test_a_saved_belief_stays_small(tmp_path):
    belief = SparseDirichlet().belief(2000, 4)
    belief.observe(0, 0, 0.0, 1)
    belief.save(tmp_path / "b.npz")
    assert zipfile.is_zipfile(tmp_path / "b.npz")
    assert (tmp_path / "b.npz").stat().st_size < 200_000


def test_users_make_their_own_classes_known():
    assert bamdp.saveable is _serial.saveable
    assert Mixture([Dirichlet()]).belief(S, A).prior.priors == (Dirichlet(),)


FORMER_NAMES = {
    "bamdp.planners.bamcp.BAUCT": "bamdp.planners.bauct.BAUCT",
    "bamdp.planners.shared.tree_search.RolloutLearner": "bamdp.planners.shared.rollouts.RolloutLearner",
    "bamdp.beliefs.transitions.mixture.Weights": "bamdp.beliefs.transitions.weights.Weights",
}


def test_a_file_that_names_classes_by_where_they_were_before_is_read(tmp_path, monkeypatch):
    prior = Mixture([Dirichlet(), SparseDirichlet()])
    planner = bamdp.BAUCT(n_simulations=20, depth=5)
    agent = bamdp.Agent(planner, prior=prior, n_states=3, n_actions=2, discount=0.9, seed=0)
    agent.observe(0, agent.act(0), 0.0, 1)
    take = _serial._take

    def take_as_before(value, arrays):
        taken = take(value, arrays)
        named = isinstance(taken, dict) and taken.get("class") in FORMER_NAMES
        return {**taken, "class": FORMER_NAMES[taken["class"]]} if named else taken

    with monkeypatch.context() as patch:
        patch.setattr(_serial, "_take", take_as_before)
        agent.save(tmp_path / "agent.npz")
    text = str(np.load(tmp_path / "agent.npz")["tree"])
    assert all(former in text and name not in text for name, former in FORMER_NAMES.items())
    twin = bamdp.Agent.load(tmp_path / "agent.npz")
    assert (twin.plan(1).value, twin.act(1)) == (agent.plan(1).value, agent.act(1))


@pytest.mark.parametrize("former", _serial.MOVED)
def test_what_has_moved_is_where_it_is_said_to_be(former):
    assert importlib.util.find_spec(former) is None
    assert any(name.rpartition(".")[0] == _serial.MOVED[former] for name in _serial._classes)
