"""Planners, priors and reward models by name, and their written parameters."""

from __future__ import annotations

import doctest

import pytest

import bamdp
from bamdp import _specs, ceilings, registry, runs, settings
from bamdp._specs import Spec, parse_spec, read_value
from bamdp.registry import (
    OF_ENVIRONMENT,
    PLANNERS,
    PRIORS,
    describe_planner,
    describe_prior,
    make_planner,
    make_prior,
    planner_spec,
)

GRID = bamdp.make_env("grid5")


@pytest.mark.parametrize("module", [_specs, ceilings, registry, runs, settings])
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
    assert describe_planner(planner).keys() == plain.keys()


@pytest.mark.parametrize("name", [name for name in PRIORS if name not in OF_ENVIRONMENT])
def test_every_prior_is_made_by_name_and_described_so_that_it_can_be_made_again(name):
    prior = make_prior(name, GRID)
    assert make_prior(describe_prior(prior), GRID) == prior


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


def test_priors_joined_by_a_plus_are_a_mixture():
    mixture = make_prior("flat:alpha=1e+0 + sparse:beta=6", GRID)
    assert mixture == bamdp.Mixture([bamdp.Dirichlet(alpha=1.0), bamdp.SparseDirichlet(beta=6.0)])
    assert describe_prior(mixture) == "dirichlet:alpha=1+sparse:alpha=0.2,beta=6"


def test_weights_of_a_mixture_are_written_before_its_priors():
    mixture = make_prior("3*flat:alpha=1e+0 + sparse:beta=6 + 1e-1 * sparse:beta=2", GRID)
    assert mixture.weights == pytest.approx((3 / 4.1, 1 / 4.1, 0.1 / 4.1))
    again = make_prior(describe_prior(mixture), GRID)
    assert again.priors == mixture.priors
    assert again.weights == pytest.approx(mixture.weights, rel=1e-15)
    nested = bamdp.Mixture([mixture, bamdp.Dirichlet(alpha=2.0)], [0.5, 0.5])
    assert make_prior(describe_prior(nested), GRID).weights == pytest.approx(
        (3 / 8.2, 1 / 8.2, 0.1 / 8.2, 0.5)
    )
    assert make_prior("3*flat", GRID) == make_prior("flat", GRID)
    with pytest.raises(ValueError, match=r"'x' in 'x\*flat' is not a weight"):
        make_prior("x*flat + sparse", GRID)
    with pytest.raises(ValueError, match="weight"):
        make_prior("0*flat + 0*sparse", GRID)


def test_descriptions_lose_no_digit():
    prior = bamdp.SparseDirichlet(alpha=0.1234567890123, beta=1 / 3)
    assert make_prior(describe_prior(prior), GRID) == prior


def test_a_door_is_a_prior_of_two_models():
    env = bamdp.make_env("maze_door")
    prior = make_prior("models", env)
    assert prior.mdps == bamdp.maze_door_models()
    assert describe_prior(prior) == "models"


def test_parts_are_described_with_their_own_parameters():
    assert describe_planner(make_planner("dss-pi"))["generator"] == {"name": "pi", "tol": 1e-4}


def test_a_parsed_spec_is_as_good_as_its_text():
    for text in ("dss-rtdp:n_steps=100,generator.depth=50", "thompson"):
        spec = parse_spec(text)
        assert str(spec) == text
        assert parse_spec(spec) is spec
        assert make_planner(spec) == make_planner(text)
    assert make_prior(Spec("sparse", {"beta": "6"}), GRID) == make_prior("sparse:beta=6", GRID)


def test_a_parameter_that_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="beta is given twice in 'sparse:beta=1,beta=2'"):
        parse_spec("sparse:beta=1,beta=2")
    with pytest.raises(ValueError, match="n_steps is given twice, in 'dss-pi:n_steps=1' and as a parameter"):
        make_planner("dss-pi:n_steps=1", {"n_steps": "2"})


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1_000", int, 1000),
        ("12345678901234567890", int, 12345678901234567890),
        ("7", int | str, 7),
        ("episode", int | str, "episode"),
        ("None", float | None, None),
        ("TRUE", bool, True),
        ("3", tuple[float, ...], (3.0,)),
        ("[1, 2]", tuple[float, ...] | None, (1.0, 2.0)),
    ],
)
def test_values_are_read_by_their_type(text, kind, value):
    found = read_value(text, kind)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("2.5", int, "x must be a whole number, got '2.5'"),
        ("yes", bool, "x must be true or false, got 'yes'"),
        ("few", float | None, "x must be a number or none, got 'few'"),
    ],
)
def test_values_of_another_type_are_refused(text, kind, message):
    with pytest.raises(ValueError, match=message):
        read_value(text, kind, "x")


@pytest.mark.parametrize("name", PLANNERS)
def test_the_spec_of_a_planner_makes_it_again(name):
    for parameters in ({}, *({key: other_value(v)} for key, v in registry.default_parameters(name).items())):
        try:
            planner = make_planner(name, parameters)
        except ValueError:  # the other value is none for this parameter
            continue
        assert describe_planner(make_planner(planner_spec(planner))) == describe_planner(planner)


def other_value(value):
    """A value of the same kind."""
    return str(value + 1 if isinstance(value, int) else value / 2 if isinstance(value, float) else value)


def test_a_planner_that_is_none_of_the_list_has_no_spec():
    class Own(bamdp.Random):
        pass

    with pytest.raises(ValueError, match="cannot be written as text"):
        planner_spec(Own())
    assert registry.planner_label(Own()) == repr(Own())


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
    with pytest.raises(ValueError, match="has its parameters already"):
        make_planner(planner, {"n_steps": 3})


def test_parameters_may_be_values():
    assert make_planner("dss-pi", {"n_steps": 7, "leaf_tol": 0.5}) == bamdp.DSS(n_steps=7, leaf_tol=0.5)
