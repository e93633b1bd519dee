"""The formulas: against sums written out, limits, and each other; and bad input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp.theory import (
    corrected_anytime_error,
    corrected_loss_bound,
    corrected_model_error,
    corrected_sampling_error,
    printed_anytime_error,
    printed_loss_bound,
    value_range,
)

DISCOUNTS = st.floats(0.0, 0.999)
SMALL = st.integers(1, 30)


@given(DISCOUNTS, SMALL, st.floats(0.0, 2.0))
@settings(deadline=None)
def test_the_anytime_error_is_the_sum_over_stages_that_the_proof_has(discount, K, epsilon0):
    total = sum(
        2 * epsilon0 * K * discount ** (K * h) / h for h in range(1, 60_000 if discount > 0.99 else 6000)
    )
    assert printed_anytime_error(K, discount, epsilon0) == pytest.approx(total, rel=1e-6, abs=1e-12)


def test_the_mended_anytime_error_counts_the_first_stage():
    for K, discount in ((1, 0.9), (5, 0.5), (18, 0.95)):
        stage = discount * (1 - discount**K) / (1 - discount) ** 2
        total = sum(stage * discount ** (K * h) / max(h, 1) for h in range(3000))
        assert corrected_anytime_error(K, discount, 1.0) == pytest.approx(total)


@given(DISCOUNTS, st.integers(1, 60))
@settings(deadline=None)
def test_model_error_is_its_double_sum_and_no_more_than_the_paper_s(discount, K):
    total = sum(discount**k * sum(discount**j for j in range(K - k)) for k in range(K))
    assert corrected_model_error(K, discount) == pytest.approx(total)
    assert corrected_model_error(K, discount) <= K / (1 - discount) * (1 + 1e-9)


def recursion(N, M, K, H, discount):
    """x_0 by the definition in the module, with R as a sum."""
    c = math.sqrt(math.log(2 * N) / (2 * M))

    def at(h):
        if h == H:
            return 0.0, 0.0
        bias, loss = at(h + 1)
        bias = c * sum(discount**t for t in range(K * (H - h))) + discount**K * bias
        return bias, 2 * bias + discount**K * loss

    return at(0)[1]


@given(st.integers(2, 9), SMALL, st.integers(1, 6), st.integers(1, 5), DISCOUNTS)
@settings(max_examples=60, deadline=None)
def test_the_mended_sampling_error_is_its_recursion(N, M, K, H, discount):
    found = corrected_sampling_error(N, M, discount, K, H)
    assert found == pytest.approx(recursion(N, M, K, H, discount))


@given(DISCOUNTS, SMALL, SMALL, SMALL, st.floats(0.0, 2.0), st.floats(0.1, 5.0))
@settings(deadline=None)
def test_terms_scale_with_rewards_and_go_the_right_way(discount, N, M, K, c, scale):
    for loss_bound in (printed_loss_bound, corrected_loss_bound):
        one = loss_bound(N, M, K, discount, epsilon0=c, c=c)
        scaled = loss_bound(N, M, K, discount, epsilon0=c, c=c, reward_range=scale)
        assert scaled.total == pytest.approx(scale * one.total)
        assert scaled.vacuous == one.vacuous or abs(one.total - one.range) < 1e-9 * one.range
        assert all(term >= 0.0 for term in one.terms.values())
        doubtful = loss_bound(N, M, K, discount, epsilon0=c, c=c + 0.1)
        assert doubtful.total > one.total
    assert corrected_sampling_error(N, 4 * M, discount, K) == pytest.approx(
        0.5 * corrected_sampling_error(N, M, discount, K)
    )


def test_one_candidate_leaves_nothing_to_mistake():
    assert corrected_sampling_error(1, 1, 0.95, 18, 3) == 0.0


def test_ranges():
    assert value_range(0.95) == pytest.approx(20.0)
    assert value_range(0.9, 3) == pytest.approx(1 + 0.9 + 0.81)
    assert value_range(0.0, 5, reward_range=3.0) == 3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_policies": 0}, "n_policies must be at least 1"),
        ({"n_samples": 1.5}, "n_samples must be a whole number"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"n_steps": 10**9}, "at most 1000000"),
        ({"n_stages": -1}, "n_stages must be at least 1"),
        ({"discount": 1.0}, "discount must be in"),
        ({"discount": math.nan}, "discount must be finite"),
        ({"delta": 0.0}, "delta must be above 0 and below 1"),
        ({"delta": 1.0}, "delta must be above 0 and below 1"),
        ({"epsilon0": -0.1}, "epsilon0 must be finite, at least 0"),
        ({"c": math.inf}, "c must be finite"),
        ({"reward_range": 0.0}, "reward_range must be finite, above 0"),
        ({"c": "much"}, "c must be a number"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "loss_bound", [printed_loss_bound, corrected_loss_bound], ids=["printed", "corrected"]
)
def test_bad_input_is_refused(loss_bound, changes, message):
    arguments = {"n_policies": 4, "n_samples": 4, "n_steps": 18, "discount": 0.95, **changes}
    with pytest.raises((ValueError, TypeError), match=message):
        loss_bound(**arguments)
