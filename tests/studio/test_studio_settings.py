"""What is asked for is checked, field by field."""

from __future__ import annotations

import pytest

from bamdp.settings import FieldError
from bamdp.studio.settings import Choice

BAD = [
    ({"env": "gird5"}, "env", "did you mean 'grid5'"),
    ({"env": "grid:size=1"}, "env", "size must be at least 2"),
    ({"env": "grid:size=60"}, "env", "3600 states"),
    ({"env": "grid:size=2500"}, "env", "6250000 states"),
    ({"env": "grid:size=100000000"}, "env", "1e+16 states"),
    ({"env": "chain:n_states=" + "9" * 380}, "env", "more than 1e+300 states"),
    ({"env": "chain:n_states=1e400"}, "env", "n_states must be a whole number"),
    ({"env": "chain:n_states=-7"}, "env", "n_states must be at least 2"),
    ({"env": "deep-sea:size=3000"}, "env", "9000001 states"),
    ({"env": "random_mdp:n_states=2500,n_actions=24,prior=flat"}, "env", "GB of memory"),
    ({"env": "random_mdp:n_actions=99"}, "env", "99 actions"),
    ({"env": "file:/etc/passwd"}, "env", "from the command line"),
    ({"env": "gym:FrozenLake-v1"}, "env", "from the command line"),
    ({"env": "gym:os:Evil-v0"}, "env", "from the command line"),
    ({"env": ""}, "env", "must be a word"),
    ({"env": 3}, "env", "must be a word"),
    ({"env": "x" * 1000}, "env", "at most 400 characters"),
    ({"planners": ["tompson"]}, "planner 0", "did you mean 'thompson'"),
    ({"planners": ["thompson", "dss-pi:n_steps=0"]}, "planner 1", "n_steps must be at least 1"),
    ({"planners": ["dss-pi:n_stepz=3"]}, "planner 0", "did you mean 'n_steps'"),
    ({"planners": ["bamcp:n_simulations=1e12"]}, "planner 0", "--max-work"),
    ({"planners": ["bamcp:n_simulations=" + "9" * 200]}, "planner 0", "below 2^63"),
    ({"planners": ["bamcp:time_limit=61"]}, "planner 0", "--limit"),
    ({"planners": ["random", "dss-pi:n_stages=1000"]}, "planner 1", "--max-work"),
    ({"planners": ["dss-rtdp:generator.depth=1e10"]}, "planner 0", "--max-work"),
    ({"planners": ["sparse-sampling:depth=30"]}, "planner 0", "--max-work"),
    ({"planners": ["boss:n_models=1e8"]}, "planner 0", "--max-work"),
    ({"planners": ["bfs3:depth=1e10"]}, "planner 0", "--max-work"),
    ({"planners": ["bayesian-sparse-sampling:n_trajectories=1e10"]}, "planner 0", "--max-work"),
    ({"planners": ["bootstrapped-dqn:replay_size=1e10"]}, "planner 0", "GB of memory"),
    ({"planners": ["fhts:horizon=1e10"]}, "planner 0", "GB of memory"),
    ({"planners": []}, "planners", "one or two"),
    ({"planners": ["random"] * 3}, "planners", "one or two"),
    ({"planners": "random"}, "planners", "one or two"),
    ({"prior": "spars"}, "prior", "did you mean 'sparse'"),
    ({"prior": "models"}, "prior", "several worlds"),
    ({"rewards": "betta"}, "rewards", "did you mean 'beta'"),
    ({"rewards": "beta", "env": "chain"}, "rewards", "pays 0.2"),
    ({"discount": 1}, "discount", "discount must be in [0, 1)"),
    ({"discount": "0.5"}, "discount", "must be a number"),
    ({"discount": None}, "discount", "must be a number"),
    ({"seed": -1}, "seed", "at least 0"),
    ({"seed": 1.5}, "seed", "whole number"),
    ({"steps": 10**9}, "steps", "at most 100000"),
    ({"sede": 1}, "sede", "did you mean 'seed'"),
    (["grid5"], "env", "expected an object"),
    (
        {"env": "bandit", "planners": ["bauct"], "prior": "sparse", "rewards": "known", "seed": True},
        "seed",
        "whole",
    ),
]


@pytest.mark.parametrize(("form", "field", "message"), BAD, ids=[str(form)[:50] for form, _, _ in BAD])
def test_bad_fields_are_named_and_explained(form, field, message):
    with pytest.raises(FieldError) as error:
        Choice.read(form).settings()
    assert error.value.field == field
    assert message in str(error.value)


def test_a_form_becomes_settings():
    choice = Choice.read({"env": "grid:size=4", "planners": ["thompson", "dss-pi:n_steps=7"], "seed": 5})
    first, second = choice.settings()
    assert (first.env, first.seed, first.steps) == ("grid:size=4", 5, 800)
    assert second.planner.n_steps == 7
    assert first.prior == second.prior


def test_files_are_opened_only_if_named_beforehand(tmp_path):
    import numpy as np

    np.savez(tmp_path / "m.npz", transitions=np.full((2, 1, 2), 0.5), rewards=np.zeros(2))
    name = f"file:{tmp_path / 'm.npz'}"
    with pytest.raises(FieldError, match="command line"):
        Choice.read({"env": name, "planners": ["thompson"]}).settings()
    assert Choice.read({"env": name, "planners": ["thompson"]}, files=[name]).settings()


def test_seeds_are_not_sizes():
    assert Choice(env="deep_sea:size=4,mapping_seed=4242").settings()
    with pytest.raises(FieldError, match="17994565 states"):
        Choice(env="deep_sea:size=4242").settings()
