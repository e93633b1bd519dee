"""Spaces of configurations."""

from __future__ import annotations

import pytest

from bamdp.lab.study import list_configurations, planner_parameters, prior_spec

BELIEF = {"prior": ("sparse",), "discount": (0.95,)}


def test_a_space_is_a_product_in_the_order_in_which_it_is_written():
    found = list_configurations("dss-pi", {"n_policies": (2, 4), "n_steps": (5, 10), **BELIEF})
    assert [(c["n_policies"], c["n_steps"]) for c in found] == [(2, 5), (2, 10), (4, 5), (4, 10)]


def test_values_have_the_types_of_the_parameters_whether_written_as_text_or_numbers():
    words = list_configurations("sboss", {"n_models": ("8",), "delta": ("3",), **BELIEF})
    numbers = list_configurations("sboss", {"n_models": (8,), "delta": (3,), **BELIEF})
    assert words == numbers
    assert isinstance(numbers[0]["n_models"], int)
    assert isinstance(numbers[0]["delta"], float)


def test_parameters_without_meaning_are_left_out_and_equal_configurations_count_once():
    space = {"generator": ("pi", "rtdp"), "generator.depth": (15, 50), **BELIEF}
    found = list_configurations("dss-pi", space)
    assert [(c["generator"], c.get("generator.depth")) for c in found] == [
        ("pi", None),
        ("rtdp", 15),
        ("rtdp", 50),
    ]
    priors = list_configurations(
        "bayes-greedy", {"prior": ("flat", "sparse"), "prior.beta": (2, 4, 6), "discount": (0.9,)}
    )
    assert [c.get("prior.beta") for c in priors] == [None, 2, 4, 6]


def test_a_prior_written_with_its_parameters_is_the_same_as_one_in_parts():
    one = list_configurations("random", {"prior": ("sparse:alpha=0.2,beta=6",), "discount": (0.9,)})
    two = list_configurations(
        "random", {"prior": ("sparse",), "prior.alpha": (0.2,), "prior.beta": (6,), "discount": (0.9,)}
    )
    assert one == two
    assert str(prior_spec(one[0])) == "sparse:alpha=0.2,beta=6"


def test_a_mixture_stays_as_it_is():
    found = list_configurations("random", {"prior": ("flat+sparse:beta=4",), "discount": (0.9,)})
    assert prior_spec(found[0]) == "flat+sparse:beta=4"
    weighted = list_configurations("random", {"prior": ("sparse + 3*flat",), "discount": (0.9,)})
    assert prior_spec(weighted[0]) == "sparse + 3*flat"


def test_so_many_are_drawn_as_are_wanted_the_same_ones_every_time_and_included_ones_always():
    space = {"n_policies": tuple(range(1, 11)), "n_samples": tuple(range(1, 11)), **BELIEF}
    one = {"n_policies": 77, "n_samples": 3}
    found = list_configurations("dss-pi", space, [one], count=12, seed=(5,))
    assert len(found) == len({repr(c) for c in found}) == 12
    assert (found[0]["n_policies"], found[0]["n_samples"]) == (77, 3)
    assert found == list_configurations("dss-pi", space, [one], count=12, seed=(5,))
    assert found != list_configurations("dss-pi", space, [one], count=12, seed=(6,))


def test_every_configuration_of_a_space_is_drawn_equally_often():
    """400 seeds, 5 of 20: each 100 times ± 8.7; the furthest of 20 is beyond 40 once in 10^4 or less."""
    space = {"n_policies": tuple(range(1, 21)), **BELIEF}
    counts = dict.fromkeys(range(1, 21), 0)
    for seed in range(400):
        for c in list_configurations("dss-pi", space, count=5, seed=(seed,)):
            counts[c["n_policies"]] += 1
    assert max(abs(count - 100) for count in counts.values()) <= 40


def test_a_space_too_large_to_list_can_be_drawn_from():
    space = {
        name: tuple(range(1, 101)) for name in ("n_policies", "n_samples", "n_steps", "n_stages")
    } | BELIEF
    assert len(list_configurations("dss-pi", space, count=7)) == 7
    with pytest.raises(ValueError, match="100000000 configurations; say configurations = N"):
        list_configurations("dss-pi", space)


def test_what_an_included_one_leaves_out_has_the_first_value():
    space = {"n_models": (2, 4), "prior": ("sparse", "flat"), "prior.beta": (2, 4), "discount": (0.95, 0.99)}
    found = list_configurations("sboss", space, [{"n_models": 16, "prior": "flat"}], count=1)
    assert found == ({"n_models": 16, "prior": "flat", "discount": 0.95},)


def test_text_of_a_configuration_makes_the_planner():
    found = list_configurations("bamcp", {"depth": ("auto",), "root_sampling": ("rows",), **BELIEF})[0]
    assert planner_parameters(found) == {"depth": "auto", "root_sampling": "rows"}


@pytest.mark.parametrize(
    ("planner", "space", "message"),
    [
        ("dss-pi", {"prior.beat": (2,), **BELIEF}, "did you mean 'beta'"),
        ("random", {"prior.beta": (2,), "prior": ("flat",), "discount": (0.9,)}, "unknown parameter of the prior flat"),
        ("dss-rtdp", {"generator.dept": (2,), **BELIEF}, "did you mean 'depth'"),
        ("random", {"prior": ("sparse:beta=2",), "prior.beta": (2,), "discount": (0.9,)}, "given twice"),
        ("random", {"prior": ("sprase",), "discount": (0.9,)}, "did you mean 'sparse'"),
        ("random", {"prior": ("sparse",), "discount": (1.0,)}, "discount must be in"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(planner, space, message):
    with pytest.raises(ValueError, match=message):
        list_configurations(planner, space)


def test_a_planner_that_does_not_look_at_the_prior_has_no_choice_of_one():
    space = {"epsilon": (0.1, 0.2), "prior": ("sparse", "flat"), "prior.beta": (2, 4), "discount": (0.9,)}
    found = list_configurations("q-learning", space, [{"epsilon": 0.3, "prior": "flat"}])
    assert [(c["epsilon"], c["prior"], c["prior.beta"]) for c in found] == [
        (0.3, "sparse", 2),
        (0.1, "sparse", 2),
        (0.2, "sparse", 2),
    ]
