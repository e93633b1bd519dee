"""Means, IQMs and intervals against closed forms, SciPy and simulations."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bamdp import statistics
from bamdp.lab import comparisons, runner, space, store, study, tables
from bamdp.statistics import Estimate, band, estimate, iqm, pooled_iqm, standard_error, summarise

numbers = st.floats(-1e3, 1e3, allow_nan=False)


@pytest.mark.parametrize("module", [statistics, comparisons, runner, space, store, study, tables])
def test_examples(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_the_examples_of_the_documentation():
    page = Path(__file__).parents[2] / "docs" / "statistics.md"
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.attempted
    assert found.failed == 0


def mean(x, axis):
    return x.mean(axis)


@given(st.lists(numbers, min_size=2, max_size=30))
def test_the_standard_error_is_scipys(values):
    assert standard_error(values) == pytest.approx(stats.sem(values), abs=1e-9)


@given(st.lists(numbers, min_size=4, max_size=40).filter(lambda x: len(x) % 4 == 0))
def test_the_iqm_of_a_multiple_of_four_is_the_trimmed_mean(values):
    assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-8)


@given(st.lists(numbers, min_size=1, max_size=11))
def test_the_iqm_is_the_integral_of_the_quantile_function(values):
    """By repeating every value four times, after which the middle half has no parts of values."""
    assert iqm(values) == pytest.approx(stats.trim_mean(np.repeat(values, 4), 0.25), abs=1e-8)


@given(st.lists(st.tuples(numbers, st.integers(1, 4)), min_size=1, max_size=8))
def test_a_weight_in_the_iqm_is_a_number_of_copies(pairs):
    values, weights = (np.array(x) for x in zip(*pairs))
    assert iqm(values, weights) == pytest.approx(iqm(np.repeat(values, weights)), abs=1e-8)


def test_the_iqm_does_not_feel_one_stuck_run():
    usual = np.array([50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0, 57.0])
    stuck = np.where(usual == 50.0, 0.0, usual)
    assert iqm(stuck) == iqm(usual)
    assert stuck.mean() < usual.mean() - 6.0


def test_runs_that_agree_give_an_interval_of_no_width():
    found = summarise([3.0, 3.0, 3.0])
    assert found.mean == found.iqm == Estimate(3.0, 3.0, 3.0)
    assert found.standard_error == 0.0


def test_one_run_gives_a_value_without_an_interval_and_none_gives_nothing():
    one, none = summarise([3.0]), summarise([])
    assert (one.runs, one.mean.value, one.iqm.value) == (1, 3.0, 3.0)
    assert np.isnan([one.standard_error, one.mean.low, one.mean.high, one.iqm.low]).all()
    assert none.runs == 0
    assert np.isnan([none.mean.value, none.standard_error, none.iqm.value]).all()


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 0.0, 1.0], [5.0] * 9 + [6.0]])
def test_small_and_nearly_constant_samples_have_finite_intervals_around_the_value(values):
    for found in (summarise(values).mean, summarise(values).iqm):
        assert found.low <= found.value <= found.high


def coverage(draw, truth, interval, trials=400):
    rng = np.random.default_rng(3)
    found = [interval(draw(rng)) for _ in range(trials)]
    return np.mean([one.low <= truth <= one.high for one in found])


@pytest.mark.parametrize(
    "draw, truth",
    [(lambda g: g.normal(size=30), 0.0), (lambda g: g.exponential(size=30), 1.0)],
    ids=["normal", "exponential"],
)
def test_the_95_percent_interval_of_30_runs_covers_the_mean_at_least_9_times_in_10(draw, truth):
    """BCa covers 92 to 94% here; fewer than 88% of 400 has a chance below 1% if it covers 91.5%."""
    assert coverage(draw, truth, lambda x: estimate(mean, x, resamples=999)) > 0.88


def test_the_interval_of_the_iqm_covers_it():
    assert coverage(lambda g: g.normal(size=32), 0.0, lambda x: estimate(iqm, x, resamples=999), 200) > 0.87


def test_a_band_is_as_wide_as_normal_theory_says_and_covers_each_point():
    rng = np.random.default_rng(4)
    curves = rng.normal(size=(60, 200)) + np.linspace(0.0, 5.0, 200)
    low, high = band(curves)
    theory = 2 * 1.96 * curves.std(axis=0, ddof=1) / np.sqrt(60)
    assert (high - low) / theory == pytest.approx(np.ones(200), abs=0.12)
    inside = (low <= np.linspace(0.0, 5.0, 200)) & (np.linspace(0.0, 5.0, 200) <= high)
    assert 0.87 < inside.mean() < 0.995  # 200 independent points at about 94%


def test_a_band_of_one_run_is_nothing_and_of_equal_runs_a_line():
    assert np.isnan(band(np.ones((1, 3)))).all()
    assert np.array_equal(band(np.full((4, 3), 0.1)), np.full((2, 3), 0.1))


def test_environments_weigh_the_same_however_many_runs_they_have():
    few, many = np.full(3, 0.2), np.full(300, 0.8)
    assert pooled_iqm([few, many]).value == pytest.approx(0.5)
    assert iqm(np.concatenate([few, many])) == pytest.approx(0.8)


def test_resampling_within_environments_does_not_count_their_differences_as_noise():
    rng = np.random.default_rng(5)
    parts = [level + 0.01 * rng.normal(size=20) for level in (0.1, 0.4, 0.6, 0.9)]
    inside, across = pooled_iqm(parts), estimate(iqm, np.concatenate(parts))
    assert inside.value == pytest.approx(across.value)
    assert inside.high - inside.low < 0.2 * (across.high - across.low)
