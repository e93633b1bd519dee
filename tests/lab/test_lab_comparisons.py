"""Paired tests against closed forms, SciPy, a closed testing procedure, and simulations with their error rates."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_fakes import group
from pandas import Series
from scipy import stats

from bamdp.lab.comparisons import (
    ABOUT_EQUAL,
    BEST,
    EXACT_RUNS,
    TOO_FEW,
    UNDECIDED,
    WORSE,
    compare_all,
    holm,
    least_p,
    sign_flip_p,
)

probabilities = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5)


def not_distinguishable(found):
    """The best, and those that the test does not tell from it."""
    return {name for name, verdict in found.verdicts.items() if verdict != WORSE}


def scipys(d, resamples=np.inf):
    rng = np.random.default_rng(0)
    return stats.permutation_test(
        (d,),
        lambda x, axis: x.mean(axis),
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        rng=rng,
    ).pvalue


@pytest.mark.parametrize("runs", [2, 5, 10])
def test_the_exact_p_is_scipys(runs):
    rng = np.random.default_rng(runs)
    for _ in range(5):
        d = rng.integers(-5, 8, runs).astype(float)  # with ties and zeros
        assert sign_flip_p(d) == pytest.approx(min(scipys(d), 1.0))


@pytest.mark.parametrize("runs", [1, 3, EXACT_RUNS])
def test_differences_of_one_sign_have_the_smallest_p_there_is(runs):
    assert sign_flip_p(1.0 + np.arange(runs)) == 2.0 ** (1 - runs)


def test_many_runs_are_tested_on_drawn_signs_and_agree_with_scipy_and_the_t_test():
    d = np.random.default_rng(1).normal(0.35, 1.0, 40)
    found = sign_flip_p(d)
    assert found == pytest.approx(scipys(d, 20_000), abs=0.006)
    assert found == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue, abs=0.006)
    assert sign_flip_p(np.ones(40)) == 1 / (2**EXACT_RUNS + 1)


@pytest.mark.parametrize("runs", [3, EXACT_RUNS, 16, 30])
@pytest.mark.parametrize("tests", [1, 45, 1035])
def test_no_p_is_below_the_least_one(runs, tests):
    least = least_p(runs, tests)
    found = sign_flip_p(1.0 + np.arange(runs), tests)
    assert least <= found <= 3.0 * least  # drawn patterns may be the one seen


def test_many_pairs_do_not_hide_what_many_runs_show():
    """46 samples have 1035 pairs: with 16 384 patterns no p could pass the correction."""
    rng = np.random.default_rng(2)
    totals = {f"a{i}": rng.normal(0.0, 1.0, 30) + (9.0 if i == 0 else 0.0) for i in range(46)}
    assert not_distinguishable(group(totals)) == {"a0"}


def test_equal_totals_are_no_evidence_and_no_common_run_is_no_test():
    assert sign_flip_p(np.zeros(20)) == 1.0
    assert np.isnan(sign_flip_p([]))


def rejections(d):
    return np.mean([sign_flip_p(row) <= 0.05 for row in d])


@pytest.mark.parametrize("runs, trials", [(8, 2000), (25, 300)])
def test_the_test_rejects_what_is_true_no_more_often_than_it_says(runs, trials):
    """Heavy tails, unequal spreads. The bound is 5% and three standard errors of the simulation."""
    rng = np.random.default_rng(2)
    null = rng.standard_t(2, (trials, runs)) * rng.exponential(size=(trials, runs))
    assert rejections(null) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def test_pairing_sees_what_shared_noise_hides():
    rng = np.random.default_rng(4)
    shared = rng.normal(0.0, 30.0, 20)
    a, b = 300.0 + shared + rng.normal(0.0, 2.0, 20), 296.0 + shared + rng.normal(0.0, 2.0, 20)
    (found,) = compare_all({"a": Series(a), "b": Series(b)})
    assert found.adjusted < 0.001
    assert found.difference.low > 0.0
    assert stats.ttest_ind(a, b).pvalue > 0.3


@given(probabilities)
def test_holm_is_the_closed_test_by_bonferroni(p):
    """Adjusted p of i: the largest of |S|·min p over all sets S of hypotheses with i in it."""
    sets = [s for n in range(1, len(p) + 1) for s in combinations(range(len(p)), n)]
    closed = [max(min(1.0, len(s) * min(p[j] for j in s)) for s in sets if i in s) for i in range(len(p))]
    assert holm(p) == pytest.approx(closed)


def field(rng, means, runs=12):
    """Algorithms with these true means, with common random numbers."""
    shared = rng.normal(0.0, 5.0, runs)
    return {f"a{i}": Series(m + shared + rng.normal(0.0, 1.0, runs)) for i, m in enumerate(means)}


def test_alike_algorithms_are_told_apart_at_most_once_in_twenty_and_without_correction_more_often():
    rng, bound = np.random.default_rng(6), 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    trials = [compare_all(field(rng, [10.0] * 4, runs=8)) for _ in range(200)]
    assert np.mean([any(c.distinguishable for c in pairs) for pairs in trials]) <= bound
    assert np.mean([any(c.p <= 0.05 for c in pairs) for pairs in trials]) > bound


def test_the_truly_best_is_among_those_not_distinguishable_from_the_best():
    """Two that differ by a fifth of the noise, and one far behind, which is always found out."""
    rng = np.random.default_rng(7)
    fields = [field(rng, [10.0, 9.8, 5.0]) for _ in range(100)]
    marked = [not_distinguishable(group(totals)) for totals in fields]
    assert np.mean(["a0" in names for names in marked]) >= 0.95
    assert not any("a2" in names for names in marked)


def test_only_replicates_that_both_have_finished_are_compared():
    a, b = Series([10.0, 20.0, 30.0], [0, 1, 2]), Series([5.0, 1.0], [2, 0])
    (found,) = compare_all({"a": a, "b": b})
    assert (found.runs, found.difference.value, found.p) == (2, 17.0, 0.5)
    turned = found.seen_from("b")
    assert (turned.first, turned.difference.value, turned.difference.high) == (
        "b",
        -17.0,
        -found.difference.low,
    )


def test_without_common_replicates_nothing_is_claimed():
    found = group({"a": Series([10.0], [0]), "b": Series([20.0], [1])})
    assert found.compared[0].runs == 0
    assert found.verdicts == {"a": "", "b": BEST}


def test_a_noisy_row_is_undecided_and_a_quiet_one_about_equal():
    rng = np.random.default_rng(4)
    base = rng.normal(80.0, 1.0, 40)
    totals = {
        "best": base + 0.5,
        "equal": base + rng.normal(0.0, 1.0, 40) + 0.2,  # narrow: within 5 of 100
        "noisy": 78.0 + rng.normal(0.0, 40.0, 40),  # the interval reaches far below
        "worse": base - 10.0,
    }
    found = group(totals, optimum=100.0)
    other = {"best", "equal"} - {found.best}
    assert found.verdicts == {found.best: BEST, other.pop(): ABOUT_EQUAL, "noisy": UNDECIDED, "worse": WORSE}
    tight = group(totals)  # on a range of 1 these runs could see little
    assert [*tight.verdicts.values()].count(UNDECIDED) == 2


def test_few_runs_are_called_too_few_and_not_equal():
    found = group({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.1]})
    assert found.blind
    assert sorted(found.verdicts.values()) == [BEST, TOO_FEW]


def test_without_reference_values_the_best_mean_is_the_scale():
    assert group({"a": np.full(20, 100.0), "b": np.full(20, 99.0)}, optimum=None).scale == 100.0


def test_where_all_totals_are_equal_returns_are_compared():
    found = group({"a": np.full(9, 400.0), "b": np.full(9, 400.0)}, mean_return=3.0)
    assert found.by_return
    assert (found.measure, found.values["a"].tolist(), found.reference) == ("mean return", [3.0] * 9, None)
    assert not group({"a": np.full(9, 400.0), "b": np.full(9, 401.0)}, mean_return=3.0).by_return
