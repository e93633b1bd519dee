"""Planners, priors and reward models by name, and their written parameters."""

from __future__ import annotations

import doctest

import pytest

import bamdp
from bamdp import _parameters, registry, runs
from bamdp._parameters import parse_spec
from bamdp.envs import ceilings
from bamdp.registry import OF_ENVIRONMENT, PLANNERS, PRIORS, label, make_planner, make_prior, text_of

GRID = bamdp.make_env("grid5")


@pytest.mark.parametrize("module", [_parameters, ceilings, registry, runs])
def test_examples(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL).failed == 0


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_is_made_by_name_with_what_the_list_says(name):
    info = next(info for info in registry.list_planners() if info.name == name)
    planner = make_planner(name)
    plain = {key: value for key, value in info.parameters.items() if "." not in key}
    assert planner.parameters() == plain
    for key, value in info.parameters.items():
        if value is not None:
            assert make_planner(name, {key: str(value)}).parameters().keys() == plain.keys()


@pytest.mark.parametrize("name", [name for name in PRIORS if name not in OF_ENVIRONMENT])
def test_every_prior_is_made_by_name_and_described_so_that_it_can_be_made_again(name):
    prior = make_prior(name, GRID)
    assert make_prior(text_of(prior), GRID) == prior


def test_numbers_words_and_parts_are_read_by_the_types_of_the_fields():
    planner = make_planner("DSS_RTDP", {"n_steps": "1e2", "leaf": "mean", "generator.depth": "50"})
    assert planner == bamdp.DSS(n_steps=100, leaf="mean", generator=bamdp.RTDP(depth=50))
    assert make_planner("dss-pi", {"generator": "vi"}).generator == "vi"
    assert make_planner("dss-pi", {"generator": "rtdp", "generator.n_trials": "3"}).generator == bamdp.RTDP(
        n_trials=3
    )
    assert make_planner("thompson", {"resample": "7"}).resample == 7
    assert make_planner("thompson", {"resample": "episode"}).resample == "episode"
    assert make_prior("sparse:p_k=(2, 1),alpha=1", GRID) == bamdp.SparseDirichlet(alpha=1.0, p_k=(2.0, 1.0))
    assert make_prior("sparse:p_k=none", GRID).p_k is None
    assert make_prior("dirichlet:alpha=2/S", GRID) == bamdp.Dirichlet(alpha=2 / 25)


def test_priors_joined_by_a_plus_are_a_mixture_with_weights_before_them():
    mixture = make_prior("flat:alpha=1e+0 + sparse:beta=6", GRID)
    assert mixture == bamdp.Mixture([bamdp.Dirichlet(alpha=1.0), bamdp.SparseDirichlet(beta=6.0)])
    assert text_of(mixture) == "dirichlet+sparse:beta=6"
    mixture = make_prior("3*flat:alpha=1e+0 + sparse:beta=6 + 1e-1 * sparse:beta=2", GRID)
    assert mixture.weights == pytest.approx((3 / 4.1, 1 / 4.1, 0.1 / 4.1))
    again = make_prior(text_of(mixture), GRID)
    assert again.priors == mixture.priors
    assert again.weights == pytest.approx(mixture.weights, rel=1e-15)
    nested = bamdp.Mixture([mixture, bamdp.Dirichlet(alpha=2.0)], [0.5, 0.5])
    assert text_of(nested) is None
    assert make_prior("3*flat", GRID) == make_prior("flat", GRID)
    with pytest.raises(ValueError, match=r"'x' in 'x\*flat' is not a weight"):
        make_prior("x*flat + sparse", GRID)
    with pytest.raises(ValueError, match="weight"):
        make_prior("0*flat + 0*sparse", GRID)


def test_a_parameter_that_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="beta is given twice in 'sparse:beta=1,beta=2'"):
        parse_spec("sparse:beta=1,beta=2")
    with pytest.raises(ValueError, match="n_steps is given twice, in 'dss-pi:n_steps=1' and as a parameter"):
        make_planner("dss-pi:n_steps=1", {"n_steps": "2"})


@pytest.mark.parametrize("name", PLANNERS)
def test_the_text_of_a_planner_makes_it_again(name):
    for parameters in ({}, *({key: other_value(v)} for key, v in PLANNERS[name].parameters.items())):
        try:
            planner = make_planner(name, parameters)
        except ValueError:  # the other value is none for this parameter
            continue
        again = make_planner(text_of(planner))
        assert text_of(again) == text_of(planner)
        assert registry.describe_planner(again) == registry.describe_planner(planner)


def other_value(value):
    """A value of the same kind."""
    return str(value + 1 if isinstance(value, int) else value / 2 if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dss-pi:n_step=2", "unknown parameter of dss-pi 'n_step'; did you mean 'n_steps'"),
        ("dss-pi:n_steps=few", "n_steps must be a whole number, got 'few'"),
        ("dss-pi:n_steps=2.5", "n_steps must be a whole number, got 2.5"),
        ("thompson:tol=inf", "tol must be"),
        ("rmax:refine=yes", "refine must be True or False, got 'yes'"),
        ("dss-pi:generator=rtd", "unknown generator 'rtd'; did you mean 'rtdp'"),
        ("dss-rtdp:generator.dept=3", "unknown parameter of the generator rtdp 'dept'; did you mean 'depth'"),
        ("random:n=3", "random takes no parameters, got 'n'"),
        ("tompson", "unknown planner 'tompson'; did you mean 'thompson'"),
        ("dss", "did you mean 'dss-pi'"),
    ],
)
def test_what_is_wrong_in_a_text_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        make_planner(text)


def test_classes_of_ones_own_have_names_and_labels():
    class Own(bamdp.Random):
        pass

    assert text_of(Own()) is None
    assert label(Own()) == "Own()"
    try:
        bamdp.register("own-planner")(Own)
        assert isinstance(make_planner("own_planner"), Own)
        assert text_of(Own()) == "own-planner"
        assert "own-planner" in [info.name for info in bamdp.list_planners()]
        with pytest.raises(ValueError, match="'own-planner' is already used by Own"):
            bamdp.register("own-planner")(bamdp.DSS)
    finally:
        del PLANNERS["own-planner"]
    with pytest.raises(TypeError, match="not a subclass of bamdp"):
        bamdp.register("text")(str)
    with pytest.raises(ValueError, match="lower-case letters"):
        bamdp.register("My Planner")


def test_entry_points_of_other_packages_are_registered(monkeypatch):
    class Point:
        name = "from-elsewhere"

        def load(self):
            return type("Elsewhere", (bamdp.SparseDirichlet,), {})

    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()] if group == "bamdp" else [])
    registry._load_entry_points.cache_clear()
    try:
        assert make_prior("from-elsewhere:beta=3").beta == 3.0
    finally:
        del PRIORS["from-elsewhere"]


def test_objects_are_taken_as_they_are_and_priors_need_no_environment():
    planner, prior, rewards = bamdp.DSS(), bamdp.Dirichlet(), bamdp.NormalGamma()
    assert make_planner(planner) is planner
    assert make_prior(prior) is prior
    assert registry.make_rewards(rewards) is rewards
    assert make_prior("sparse:beta=6") == make_prior("sparse:beta=6", GRID)
    assert make_prior("flat", n_states=25) == make_prior("flat", GRID)
    assert registry.make_rewards([0.0, 1.0]) == bamdp.KnownRewards([0.0, 1.0])
    with pytest.raises(ValueError, match="give the environment, or n_states"):
        make_prior("flat")
