"""The rule for K against trying every K."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp.theory import k_rule


@given(
    st.integers(1, 6),
    st.integers(1, 10**6),
    st.floats(0.0, 0.98),
    st.floats(0.001, 0.3),
    st.floats(0.0, 0.3),
    st.floats(0.001, 0.5),
)
@settings(max_examples=200, deadline=None)
def test_the_rule_is_what_trying_every_k_finds(N, M, discount, epsilon0, c, delta):
    rule = k_rule(N, M, discount, epsilon0=epsilon0, c=c, delta=delta)
    allowed = math.sqrt(math.log(M / delta) / (8 * N))
    f = {K: (epsilon0 + c) * K + discount**K for K in range(1, 3000)}
    good = [K for K, need in f.items() if need <= allowed + 1e-12]
    clear = [K for K, need in f.items() if need <= allowed - 1e-12]
    assert rule.allowed == pytest.approx(allowed)
    assert rule.needed == pytest.approx(min(f.values()))
    assert all(K in rule for K in clear)
    assert all(K in good for K in f if K in rule)
    assert rule.satisfiable == (rule.low is not None)
    assert rule.satisfiable or not clear


def test_without_doubt_every_long_stage_will_do():
    rule = k_rule(4, 4, 0.95)
    assert rule.high is None
    assert rule.low == math.ceil(math.log(rule.allowed) / math.log(0.95))
    assert str(rule) == "every K from 20 on"
    assert 10**9 in rule


def test_more_policies_make_the_rule_harder():
    # Appendix C reads it as "K need grow only inversely to √N"; it is an upper bound, and soon none is left.
    highs = [k_rule(N, 64, 0.5, epsilon0=0.01, c=0.01).high for N in (1, 2, 4, 8)]
    assert highs == sorted(highs, reverse=True)
    assert not k_rule(400, 64, 0.5, epsilon0=0.01, c=0.01).satisfiable


def test_it_says_when_no_k_will_do():
    rule = k_rule(4, 4, 0.95, epsilon0=0.5, c=1.0)
    assert not rule.satisfiable
    assert 1 not in rule
    assert "no K satisfies" in str(rule)


def test_extremes_are_handled():
    assert k_rule(1, 1, 0.0).low == 1
    assert k_rule(1, 10**6, 0.0, c=0.5).high == 2
    assert k_rule(1, 10**9, 1 - 1e-12).low >= 1
    assert str(k_rule(1, 8, 0.5, c=0.4)).startswith("no K")


@pytest.mark.parametrize("bad", [{"c": -1.0}, {"delta": 0.0}, {"discount": 1.0}, {"n_samples": 0}], ids=str)
def test_bad_input_is_refused(bad):
    with pytest.raises(ValueError):
        k_rule(**{"n_policies": 2, "n_samples": 2, "discount": 0.9, **bad})
