"""Settings from text, and the seeds of their runs."""

from __future__ import annotations

import pickle

import pytest

import bamdp
from bamdp import seeding
from bamdp._specs import Spec
from bamdp.settings import FieldError, Setting, make_setting


def test_a_setting_is_made_from_text():
    setting = make_setting("grid5", "dss-pi:n_steps=7", parameters={"leaf": "mean"}, prior="flat", seed=3)
    assert setting == Setting(
        "grid5",
        bamdp.DSS(n_steps=7, leaf="mean", generator="pi"),
        bamdp.Dirichlet(alpha=1 / 25),
        setting.rewards,
        0.95,
        bamdp.make_env("grid5").horizon,
        3,
    )
    assert make_setting("chain", Spec("thompson", {}), prior=Spec("sparse", {"beta": "6"})).prior.beta == 6.0
    assert make_setting("gym:FrozenLake-v1", "thompson", steps=9).steps == 9


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"env": "chian"}, "env", "did you mean 'chain'"),
        ({"env": "file:/"}, "env", "/"),
        ({"planner": "tompson"}, "planner", "did you mean 'thompson'"),
        ({"parameters": {"tol": "x"}}, "planner", "tol must be a number"),
        ({"prior": "spars"}, "prior", "did you mean 'sparse'"),
        ({"rewards": "beta"}, "rewards", "pays 0.2"),
        ({"discount": 1.0}, "discount", "must be in"),
        ({"discount": "0.5"}, "discount", "must be a number"),
        ({"discount": "horizn"}, "discount", "'horizon' or 'auto'"),
        ({"objective": "life"}, "objective", "lifetime"),
        ({"steps": 0}, "steps", "at least 1"),
        ({"seed": 1.5}, "seed", "whole number"),
    ],
)
def test_an_error_names_its_field(changed, field, message):
    with pytest.raises(FieldError, match=message) as error:
        make_setting(**{"env": "chain", "planner": "thompson", **changed})
    assert error.value.field == field
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.field, str(again)) == (field, str(error.value))


def test_streams_of_environment_and_agent_differ_and_depend_on_seed_and_replicate():
    words = {tuple(s.generate_state(2)) for seed in (0, 1) for r in (0, 1) for s in seeding.seeds(seed, r)}
    assert len(words) == 8
    assert seeding.seeds(3, 2)[0].generate_state(1) == seeding.seeds(3, 2)[0].generate_state(1)


def test_streams_of_tuning_are_others():
    words = {tuple(s.generate_state(2)) for t in (False, True) for s in seeding.seeds(0, 3, tuning=t)}
    assert len(words) == 4
