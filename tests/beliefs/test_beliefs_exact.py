"""Equation 2 against exact enumeration in rationals, on sequences of transitions found by Hypothesis."""

import itertools
import math
from fractions import Fraction

import beliefs_exact as exact
import numpy as np
import pytest
from beliefs_exact import CASES, A, S
from beliefs_kernels import draw_many, moments
from hypothesis import given, settings
from hypothesis import strategies as st

from bamdp import Dirichlet, FiniteMDP, FiniteModels, Mixture, SparseDirichlet
from bamdp._kernels.random import new_rng

fast = settings(max_examples=15, deadline=None, derandomize=True)
steps = st.tuples(
    st.integers(0, S - 1), st.integers(0, A - 1), st.sampled_from([0.0, 1.0]), st.integers(0, S - 1)
)
few_rows = st.tuples(st.integers(0, 1), st.just(0), st.sampled_from([0.0, 1.0]), st.integers(0, S - 1))
sequences = st.lists(st.one_of(steps, few_rows), max_size=12)
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def possible(case, data):
    """The longest part of the data that the prior allows, one transition after another."""
    kept = []
    for step in data:
        if case.evidence([*kept, step]) > 0:
            kept.append(step)
    return kept


def close(x, y, rel=1e-12):
    return math.isclose(x, float(y), rel_tol=rel, abs_tol=1e-300)


@every
@given(data=sequences)
@fast
def test_log_evidence_is_that_of_exact_enumeration(case, data):
    data = possible(case, data)
    belief = case.belief(data)
    want = case.evidence(data)
    log = math.log(want.numerator) - math.log(want.denominator)
    assert belief.log_evidence == pytest.approx(log, rel=1e-11, abs=1e-12)
    assert belief.n_observed == len(data)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c is not CASES["own rewards"]])
@given(data=sequences)
@fast
def test_predictive_is_that_of_exact_enumeration(case, data):
    data = possible(case, data)
    belief = case.belief(data)
    for s, a in {(0, 0), (1, 1), *((s, a) for s, a, _, _ in data)}:
        found = belief.predictive(s, a)
        want = case.predictive(data, s, a)
        assert all(close(x, y) for x, y in zip(found, want)), (found, [float(y) for y in want])
        assert found.sum() == pytest.approx(1.0, abs=1e-14)


@given(data=sequences)
@fast
def test_rewards_of_finite_models_are_evidence_for_transitions_and_rewards_elsewhere(data):
    case = CASES["own rewards"]
    data = possible(case, data)
    belief = case.belief(data)
    before = case.evidence(data)
    for s, a in itertools.product(range(S), range(A)):
        both = [[case.evidence([*data, (s, a, r, s2)]) / before for r in (0.0, 1.0)] for s2 in range(S)]
        assert np.allclose(belief.predictive(s, a), [float(p + q) for p, q in both], rtol=1e-12, atol=0)
        assert close(belief.expected_reward(s, a), sum(q for _, q in both))


@every
@given(data=sequences, shuffle=st.randoms(use_true_random=False))
@fast
def test_the_order_of_observations_does_not_matter(case, data, shuffle):
    data = possible(case, data)
    other = list(data)
    shuffle.shuffle(other)
    one, two = case.belief(data), case.belief(other)
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-11, abs=1e-12)
    for s, a in itertools.product(range(S), range(A)):
        assert np.allclose(one.predictive(s, a), two.predictive(s, a), rtol=1e-12, atol=0)
        assert one.expected_reward(s, a) == pytest.approx(two.expected_reward(s, a), rel=1e-12)


@every
@given(data=sequences)
@fast
def test_evidence_is_the_product_of_predictives(case, data):
    belief = case.belief()
    total = 0.0
    for s, a, r, s2 in possible(case, data):
        p = belief.predictive(s, a)[s2]
        if case is CASES["bernoulli"]:
            mean = belief.expected_reward(s, a)
            p *= mean if r == 1.0 else 1.0 - mean
        if case is CASES["own rewards"] or getattr(case.rewards, "by", "") == "next":
            twin = belief.copy()
            twin.observe(s, a, r, s2)
            p = math.exp(twin.log_evidence - belief.log_evidence)
        belief.observe(s, a, r, s2)
        total += math.log(p)
        assert belief.log_evidence == pytest.approx(total, rel=1e-11, abs=1e-12)


@every
@given(data=sequences)
@fast
def test_the_predictive_is_a_martingale(case, data):
    """The mean of the updated predictive over the next outcome is the predictive, in every row."""
    belief = case.belief(possible(case, data))
    pairs = [(0, 0), (1, 0), (3, 1)]
    for s, a in pairs:
        now = {pair: belief.predictive(*pair) for pair in pairs}
        later = {pair: np.zeros(S) for pair in pairs}
        for s2, r in itertools.product(range(S), (0.0, 1.0)):
            twin = belief.copy()
            try:
                twin.observe(s, a, r, s2)
            except ValueError:
                continue
            weight = math.exp(twin.log_evidence - belief.log_evidence)
            if case.exact_rewards is None and case is not CASES["own rewards"]:
                weight /= 2.0  # known rewards are not looked at: each was counted twice
            for pair in pairs:
                later[pair] += weight * twin.predictive(*pair)
        for pair in pairs:
            assert np.allclose(now[pair], later[pair], rtol=0, atol=1e-12)


@every
@given(data=sequences)
@fast
def test_the_mean_model_is_made_of_predictives_and_expected_rewards(case, data):
    belief = case.belief(possible(case, data))
    mean = belief.mean()
    for s, a in itertools.product(range(S), range(A)):
        assert np.allclose(mean.dense()[s, a], belief.predictive(s, a), rtol=1e-13, atol=1e-16)
        assert mean.expected_rewards[s, a] == pytest.approx(belief.expected_reward(s, a), rel=1e-13)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c is not CASES["own rewards"]])
@given(data=sequences)
@fast
def test_second_moments_are_those_of_exact_enumeration(case, data):
    """E[p_i²] is the probability of outcome i twice in a row; also of rows never seen."""
    data = possible(case, data)
    belief = case.belief(data)
    before = case.exact(data)
    for s, a in {(0, 0), (3, 1)}:
        index, mean, variance = np.zeros(64, np.int32), np.zeros(64), np.zeros(64)
        end, rest_mean, rest_variance = moments(belief.transitions, s * A + a, index, mean, variance)
        means, variances = np.full(S, rest_mean), np.full(S, rest_variance)
        means[index[:end]], variances[index[:end]] = mean[:end], variance[:end]
        for s2, first in enumerate(case.predictive(data, s, a)):
            second = case.exact([*data, *[(s, a, 0.0, s2)] * 2]) / before
            assert close(means[s2], first)
            assert variances[s2] == pytest.approx(float(second - first**2), rel=1e-10, abs=1e-15)


@every
@given(data=sequences)
@fast
def test_observing_many_is_observing_one_by_one(case, data):
    data = possible(case, data)
    one, many = case.belief(data), case.belief()
    s, a, r, s2 = ([step[i] for step in data] for i in range(4))
    many.observe_many(s, a, r, s2)
    assert many.n_observed == one.n_observed
    assert many.log_evidence == pytest.approx(one.log_evidence, rel=1e-14)
    for pair in itertools.product(range(S), range(A)):
        assert np.array_equal(many.predictive(*pair), one.predictive(*pair))


@pytest.mark.parametrize(
    ("k0", "n", "again"), [(1, 1, 0.909971), (1, 4, 0.982039), (2, 2, 0.856632), (2, 8, 0.969379)]
)
def test_the_probability_of_a_seen_outcome_has_the_reference_values(k0, n, again):
    """REFERENCE.md, section 2: S=9, α=.2, β=2; and the page itself against enumeration."""
    counts = {0: n - k0 + 1, **dict.fromkeys(range(1, k0), 1)}
    p_k = [Fraction(1, k * k) for k in range(1, 10)]
    alpha = Fraction(1, 5)
    before = exact.sparse_row(9, alpha, p_k, counts)
    seen = sum(exact.sparse_row(9, alpha, p_k, {**counts, i: counts[i] + 1}) for i in counts) / before
    assert float(seen) == pytest.approx(again, abs=5e-7)
    belief = SparseDirichlet(alpha=0.2, beta=2.0).belief(9, 1)
    for s2, times in counts.items():
        for _ in range(times):
            belief.observe(0, 0, 0.0, s2)
    assert belief.predictive(0, 0)[:k0].sum() == pytest.approx(float(seen), rel=1e-12)
    assert np.allclose(belief.predictive(0, 0)[k0:], float(1 - seen) / (9 - k0), rtol=1e-12)


def test_before_data_the_sparse_predictive_is_uniform():
    assert np.array_equal(
        SparseDirichlet(alpha=0.2, beta=2.0).belief(9, 1).predictive(3, 0), np.full(9, 1 / 9)
    )


@pytest.mark.parametrize("beta", [-1.0, 0.0, 1.0, 30.0])
def test_any_beta_is_its_p_k(beta):
    data = [(0, 0, 0.0, 1), (0, 0, 0.0, 2), (0, 0, 0.0, 1)]
    p_k = tuple(float(k) ** -beta for k in range(1, 7))
    one, two = (prior.belief(6, 1) for prior in (SparseDirichlet(beta=beta), SparseDirichlet(p_k=p_k)))
    for step in data:
        one.observe(*step)
        two.observe(*step)
    assert np.allclose(one.predictive(0, 0), two.predictive(0, 0), rtol=1e-12)
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-12)


def test_with_a_single_state_a_row_is_one_without_a_draw():
    belief = Dirichlet(alpha=0.04).belief(1, 2)
    for seed in range(20):
        assert belief.sample(seed).dense().tolist() == [[[1.0], [1.0]]]


def test_where_the_support_is_known_nothing_else_is_drawn():
    belief = SparseDirichlet(alpha=0.2, p_k=(0.5, 0.5)).belief(9, 1)
    belief.observe_many([0, 0], [0, 0], [0.0, 0.0], [3, 7])
    assert belief.predictive(0, 0)[[3, 7]].tolist() == [0.5, 0.5]
    assert all(set(np.flatnonzero(belief.sample(seed).dense()[0, 0])) == {3, 7} for seed in range(20))
    counts = np.zeros(10, np.int64)
    counts[0] = 100_000
    draw_many(belief.transitions, 0, new_rng(0), counts)
    assert counts[1:][[3, 7]].sum() == 100_000


def test_all_weight_on_size_S_is_the_flat_dirichlet():
    sparse = SparseDirichlet(alpha=0.7, p_k=(0.0, 0.0, 0.0, 0.0, 1.0)).belief(5, 1)
    flat = Dirichlet(alpha=0.7).belief(5, 1)
    for s2 in (3, 3, 1, 4, 0, 2, 2):
        sparse.observe(0, 0, 0.0, s2)
        flat.observe(0, 0, 0.0, s2)
        assert np.allclose(sparse.predictive(0, 0), flat.predictive(0, 0), rtol=1e-12)
    assert sparse.log_evidence == pytest.approx(flat.log_evidence, rel=1e-12)


def test_the_sparse_sum_may_stop_early_without_loss():
    """2000 sizes and many counts: the pass over k ends long before S, and C agrees with the full sum."""
    import mpmath

    S, alpha, beta = 2000, 0.2, 2.0
    belief = SparseDirichlet(alpha=alpha, beta=beta).belief(S, 1)
    belief.observe_many([0] * 60, [0] * 60, [0.0] * 60, [0, 1, 2] * 20)
    with mpmath.workdps(40):
        gamma = mpmath.loggamma
        m = [
            mpmath.exp(
                gamma(k + 1) - gamma(k - 2) + gamma(k * mpmath.mpf(alpha)) - gamma(k * mpmath.mpf(alpha) + 60)
            )
            / k**2
            for k in range(3, S + 1)
        ]
        new = sum(x * (k - 3) * alpha / (k * mpmath.mpf(alpha) + 60) for k, x in enumerate(m, 3)) / sum(m)
    assert belief.predictive(0, 0)[3:].sum() == pytest.approx(float(new), rel=1e-11)


def test_an_outcome_that_is_all_but_excluded_keeps_its_tiny_probability():
    """With a large α a long run of one outcome makes 1 - C far smaller than one rounding of C."""
    belief = SparseDirichlet(alpha=50.0, p_k=(1.0, 1.0)).belief(3, 1)
    belief.observe_many([0] * 300, [0] * 300, [0.0] * 300, [1] * 300)
    two = Fraction(1, 2) * 2 / 3 * exact.rising(Fraction(50), 300) / exact.rising(Fraction(100), 300)
    one = Fraction(1, 2) / 3
    want = two / (one + two) * Fraction(50, 400) / 2
    assert float(want) < 1e-18
    assert belief.predictive(0, 0)[0] == pytest.approx(float(want), rel=1e-10)
    belief.observe(0, 0, 0.0, 0)
    assert belief.predictive(0, 0)[2] == 0.0


def stay_and_slip():
    stay = np.eye(2)[:, None, :]
    slip = np.full((2, 1, 2), 0.5)
    return [FiniteMDP(p, np.zeros(2)) for p in (stay, slip)]


@pytest.mark.parametrize(
    "prior",
    [
        FiniteModels(stay_and_slip()),
        Mixture([FiniteModels(stay_and_slip()[:1]), FiniteModels(stay_and_slip()[1:])]),
        Mixture([FiniteModels(stay_and_slip())]),
    ],
    ids=["models", "mixture", "inside a mixture"],
)
def test_an_alternative_whose_weight_underflows_comes_back_when_the_others_fall(prior):
    """2000 stays leave the slippery model a weight of 2^-2000; one slip then makes it certain."""
    belief = prior.belief(2, 1, rewards=np.zeros(2))
    belief.observe_many([0] * 2000, [0] * 2000, [0.0] * 2000, [0] * 2000)
    belief.observe(0, 0, 0.0, 1)
    assert np.array_equal(belief.predictive(0, 0), [0.5, 0.5])
    assert belief.log_evidence == pytest.approx(-2002 * math.log(2.0), rel=1e-12)


def test_a_model_whose_weight_underflows_comes_back_by_its_reward():
    stay, slip = stay_and_slip()
    models = [FiniteMDP(stay.dense(), np.ones(2)), FiniteMDP(slip.dense(), np.array([1.0, 0.0]))]
    belief = FiniteModels(models).belief(2, 1)
    belief.observe_many([0] * 2000, [0] * 2000, [1.0] * 2000, [0] * 2000)
    belief.observe(1, 0, 0.0, 1)
    assert np.array_equal(belief.weights, [0.0, 1.0])


def test_a_component_that_becomes_impossible_has_weight_zero_and_stays_out():
    belief = CASES["mixture"].belief()
    for s2 in (0, 1, 2):
        belief.observe(0, 0, 0.0, s2)
    assert (belief.weights > 0.0).all()
    belief.observe(0, 0, 0.0, 3)  # a fourth outcome: the sparse component allows three
    assert np.array_equal(belief.weights, [1.0, 0.0])
    alone = Dirichlet(alpha=0.3).belief(S, A)
    for s2 in (0, 1, 2, 3, 3):
        alone.observe(0, 0, 0.0, s2)
    belief.observe(0, 0, 0.0, 3)
    assert np.allclose(belief.predictive(0, 0), alone.predictive(0, 0), rtol=1e-14)
    assert np.array_equal(belief.predictive(1, 1), np.full(S, 0.25))


def test_mixture_weights_follow_the_evidence():
    case = CASES["nested"]
    data = [(0, 0, 0.0, 1), (0, 0, 0.0, 1), (1, 0, 0.0, 1)]
    parts = [exact.models(exact.TABLES, exact.MODEL_WEIGHTS), exact.dirichlet(exact.FULL)]
    inner = exact.mixture([exact.dirichlet(0.3), exact.dirichlet(2.0)], [Fraction(1, 2)] * 2)
    shares = [parts[0](data), inner(data), parts[1](data)]
    assert np.allclose(case.belief(data).weights, [float(x / sum(shares)) for x in shares], rtol=1e-12)
