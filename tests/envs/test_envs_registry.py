"""Names, parameters and files."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import bamdp.envs
from bamdp.envs import list_envs, make_env
from bamdp.envs.registry import ENVIRONMENTS

INFOS = list_envs()
SECTIONS = ("Description", "States", "Actions", "Transitions", "Rewards", "Start", "Reference")


def test_all_names_are_known_with_help_and_defaults():
    assert [info.name for info in INFOS] == [
        *("bandit", "chain", "deep_sea", "deep_sea_stochastic", "double_loop"),
        *("family_gc", "family_gdl", "family_grid", "family_random", "grid", "grid10", "grid5"),
        *("inventory", "machine", "maze", "maze_door", "pricing", "queue", "random_mdp", "river_swim"),
    ]
    for info in INFOS:
        assert info.help.endswith(".")
        assert len(info.help) < 110
        assert all(default is not inspect.Parameter.empty for default in info.parameters.values())


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)
def test_name_and_parameters_make_the_same_environment_again(info):
    env = make_env(info.name)
    again = make_env(env.name, **env.parameters)
    assert env.name == info.name
    assert env.parameters == info.parameters
    assert again.mdp == env.mdp
    assert repr(again) == repr(env)


@pytest.mark.parametrize("name", [info.name for info in INFOS if info.name not in ("grid5", "grid10")])
def test_docstrings_have_the_fixed_sections(name):
    text = inspect.getdoc(ENVIRONMENTS[name]) or ""
    places = [text.index(f"\n{section}\n{'-' * len(section)}\n") for section in SECTIONS]
    assert places == sorted(places)


def test_spelling_is_forgiving_and_helpful():
    assert make_env("Double-Loop").name == "double_loop"
    assert make_env("river-swim").name == "river_swim"
    with pytest.raises(ValueError, match="did you mean 'double_loop'"):
        make_env("doubleloop")
    with pytest.raises(ValueError, match="did you mean 'size'"):
        make_env("grid", sise=3)
    with pytest.raises(ValueError, match="grid5 takes no parameters"):
        make_env("grid5", size=3)
    with pytest.raises(TypeError, match="name"):
        make_env(3)


def test_parameters_in_the_name():
    assert make_env("grid:size=7").n_states == 49
    assert make_env("grid: size = 3 , slip = 0.5").parameters == {"size": 3, "slip": 0.5}
    assert make_env("chain:rewards=effect").rewards.ndim == 3
    assert make_env("bandit:means=[0.2,0.4,0.9]").n_actions == 3
    assert make_env("bandit:means=(0.2,0.4)").rewards.tolist() == [[0.2, 0.4]]
    assert make_env("chain:").n_states == 5
    assert make_env("chain:n_states=7", slip=0.0).parameters == {
        "rewards": "action",
        "n_states": 7,
        "slip": 0.0,
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grid:7", "is not key=value"),
        ("grid:size=3,size=4", "given twice"),
        ("grid:size=1", "size must be at least 2"),
        ("grid:size=2.5", "size must be a whole number"),
        ("grid:slip=1.5", "slip must be"),
        ("chain:rewards=both", "unknown rewards 'both'"),
        ("maze_door:door=ajar", "unknown door 'ajar'"),
        ("bandit:means=[0.5,1.5]", r"means\[1\] must be"),
        ("random_mdp:alpha=0", "alpha must be"),
        ("file:", "file"),
    ],
)
def test_bad_values_are_refused_with_the_cure(name, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make_env(name)


def test_a_model_from_a_file(tmp_path):
    path = tmp_path / "model, the=first.npz"
    make_env("chain").mdp.save(path, start=2)
    env = make_env(f"file:{path}")
    assert env.mdp == make_env("chain").mdp
    assert (env.start, env.horizon) == (2, 1000)
    assert make_env(f"file:{path}", start=1, horizon=50).start == 1
    again = make_env(env.name, **env.parameters)
    assert (again.mdp, again.start, again.horizon) == (env.mdp, env.start, env.horizon)
    assert again.render().dtype == np.uint8


def test_bad_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make_env("file:nowhere.npz")
    wrong = tmp_path / "wrong.npz"
    wrong.write_text("no archive")
    with pytest.raises(ValueError, match=r"wrong\.npz"):
        make_env(f"file:{wrong}")
    with pytest.raises(ValueError, match="unknown parameter of file 'horison'; did you mean 'horizon'"):
        make_env(f"file:{wrong}", horison=3)


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(bamdp.envs.__path__)])
def test_examples_in_docstrings_run(module):
    found = importlib.import_module(f"bamdp.envs.{module}")
    result = doctest.testmod(found, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
