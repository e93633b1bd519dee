"""Settings from text."""

from __future__ import annotations

import pytest

import bamdp
from bamdp._parameters import Spec
from bamdp.runs import Setting, make_setting


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
    ("changed", "message"),
    [
        ({"env": "chian"}, "did you mean 'chain'"),
        ({"planner": "tompson"}, "did you mean 'thompson'"),
        ({"parameters": {"tol": "x"}}, "tol must be a number"),
        ({"prior": "spars"}, "did you mean 'sparse'"),
        ({"rewards": "beta"}, "pays 0.2"),
        ({"discount": 1.0}, "discount must be in"),
        ({"discount": "horizn"}, "'horizon' or 'auto'"),
        ({"objective": "life"}, "lifetime"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_setting(**{"env": "chain", "planner": "thompson", **changed})
