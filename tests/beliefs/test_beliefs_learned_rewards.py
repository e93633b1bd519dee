"""NormalGamma and FiniteRewards against closed forms of other hands: SciPy, enumeration, quadrature."""

import doctest
import itertools
import math

import numpy as np
import pytest
from beliefs_arrays import content, same
from beliefs_kernels import draw_rewards, log_density, play_rewards, reward_outcomes, row_variance, unwind
from scipy import integrate, stats
from scipy.special import gammaln

from bamdp import BetaBernoulli, Dirichlet, FiniteRewards, NormalGamma
from bamdp._kernels.random import new_rng
from bamdp.beliefs.rewards import conjugate, known

S, A = 3, 2
NORMAL = NormalGamma(mu0=0.5, lam=2.0, alpha=3.0, beta=1.5)
DATA = [1.0, -2.0, 0.25, 0.25, 3.5]


def belief_of(model, rewards=(), s2s=None, alpha=0.4):
    belief = Dirichlet(alpha=alpha).belief(S, A, rewards=model)
    for i, r in enumerate(rewards):
        belief.observe(0, 1, r, 0 if s2s is None else s2s[i])
    return belief


def posterior(model, rewards):
    """(m, λ, α, β) by the batch formulas, from the sample's mean and its squared deviations."""
    x = np.asarray(rewards, float)
    n, mean = len(x), x.mean() if len(x) else 0.0
    lam = model.lam + n
    m = (model.lam * model.mu0 + n * mean) / lam
    beta = model.beta + 0.5 * ((x - mean) ** 2).sum() + 0.5 * model.lam * n / lam * (mean - model.mu0) ** 2
    return m, lam, model.alpha + 0.5 * n, beta


def student(model, rewards):
    """The law of the next reward."""
    m, lam, alpha, beta = posterior(model, rewards)
    return stats.t(2.0 * alpha, m, math.sqrt(beta * (lam + 1.0) / (lam * alpha)))


def test_the_next_normal_reward_is_a_student_variable():
    for n in range(len(DATA) + 1):
        R = belief_of(NORMAL, DATA[:n]).rewards
        law = student(NORMAL, DATA[:n])
        for r in (-7.0, 0.5, 1.25, 40.0):
            assert log_density(R, 1, 0, r) == pytest.approx(law.logpdf(r), rel=1e-12)
            assert log_density(R, 0, 0, r) == pytest.approx(student(NORMAL, []).logpdf(r), rel=1e-12)


def test_normal_evidence_has_its_closed_form():
    _, lam, alpha, beta = posterior(NORMAL, DATA)
    n = len(DATA)
    want = gammaln(alpha) - gammaln(NORMAL.alpha) + 0.5 * math.log(NORMAL.lam / lam)
    want += NORMAL.alpha * math.log(NORMAL.beta) - alpha * math.log(beta) - 0.5 * n * math.log(2 * math.pi)
    alone = belief_of(NormalGamma(), [0.0] * n).log_evidence - belief_of(NormalGamma()).log_evidence
    transitions = belief_of(np.zeros((S, A)), [0.0] * n).log_evidence
    assert belief_of(NORMAL, DATA).log_evidence - transitions == pytest.approx(want, rel=1e-12)
    assert alone != pytest.approx(transitions)  # rewards are evidence
    assert belief_of(NORMAL, DATA[::-1]).log_evidence == pytest.approx(
        belief_of(NORMAL, DATA).log_evidence, rel=1e-13
    )


def test_normal_means_and_variances_are_those_of_the_posterior():
    m, lam, alpha, beta = posterior(NORMAL, DATA)
    belief = belief_of(NORMAL, DATA)
    assert belief.expected_reward(0, 1) == pytest.approx(m, rel=1e-14)
    assert belief.expected_reward(1, 1) == NORMAL.mu0
    assert belief.mean().expected_rewards[0, 1] == pytest.approx(m, rel=1e-14)
    assert variance(belief, 1) == pytest.approx(beta / (lam * (alpha - 1.0)), rel=1e-13)


def variance(belief, row):
    return row_variance(belief.transitions, belief.rewards, row, np.zeros(32, np.int32), np.zeros(32))


def test_large_rewards_do_not_lose_their_spread():
    """Sums of squares would: here they cancel in all but a few digits."""
    data = [1e8 + x for x in (-1.0, 0.0, 1.0, 2.0)]
    model = NormalGamma(mu0=1e8, lam=1.0, alpha=2.0, beta=1.0)
    shifted = NormalGamma(mu0=0.0, lam=1.0, alpha=2.0, beta=1.0)
    small = belief_of(shifted, [x - 1e8 for x in data])
    assert variance(belief_of(model, data), 1) == pytest.approx(variance(small, 1), rel=1e-7)


@pytest.mark.parametrize("n", [0, 3])
def test_drawn_and_sampled_normal_rewards_have_their_laws(n):
    """Kolmogorov and Smirnov, false alarm 1e-4 each."""
    belief = belief_of(NORMAL, DATA[:n])
    out = np.zeros(4000)
    draw_rewards(belief.rewards, 1, 0, new_rng(n), out)
    assert stats.kstest(out, student(NORMAL, DATA[:n]).cdf).pvalue > 1e-4
    m, lam, alpha, beta = posterior(NORMAL, DATA[:n])
    law = stats.t(2.0 * alpha, m, math.sqrt(beta / (lam * alpha)))
    found = [belief.sample(seed).expected_rewards[0, 1] for seed in range(2000)]
    assert stats.kstest(found, law.cdf).pvalue > 1e-4


def test_the_normal_mean_is_a_martingale():
    """Averaged over the law of the next reward, by quadrature, the mean stays."""
    law = student(NORMAL, DATA[:2])
    now = belief_of(NORMAL, DATA[:2]).expected_reward(0, 1)

    def later(q):
        r = law.ppf(q)
        return posterior(NORMAL, [*DATA[:2], r])[0]

    assert belief_of(NORMAL, [*DATA[:2], 5.0]).expected_reward(0, 1) == pytest.approx(later(law.cdf(5.0)))
    assert integrate.quad(later, 1e-9, 1.0 - 1e-9, limit=500)[0] == pytest.approx(now, abs=1e-5)


# --- finitely many values -----------------------------------------------------------------------------------

UNKNOWN = FiniteRewards(max_values=4, concentration=2.0, unseen=7.0)


def shares(model, rewards, row_rewards):
    """Posterior weights of each value seen, in order, and of something new, by definition."""
    values = list(dict.fromkeys(rewards))
    alpha = model.concentration / model.max_values
    weights = [alpha + list(row_rewards).count(v) for v in values]
    return values, np.array([*weights, (model.max_values - len(values)) * alpha]) / (
        model.concentration + len(row_rewards)
    )


def test_values_seen_anywhere_are_expected_everywhere():
    belief = belief_of(UNKNOWN, [1.0, -2.0, 1.0])
    for row, seen in ((1, [1.0, -2.0, 1.0]), (0, [])):
        values, p = shares(UNKNOWN, [1.0, -2.0, 1.0], seen)
        out = np.zeros((5, 2))
        reward_outcomes(belief.rewards, row, 0, out)
        assert np.allclose(out[[0, 1, 4]], np.c_[[*values, 7.0], p], rtol=1e-14)
        assert np.array_equal(out[2:4, 1], [0.0, 0.0])
        assert belief.expected_reward(0, row) == pytest.approx(p @ [*values, 7.0], rel=1e-14)
        second = p @ np.square([*values, 7.0])
        total = UNKNOWN.concentration + len(seen)
        want = (second - (p @ [*values, 7.0]) ** 2) / (total + 1.0)
        assert variance(belief, row) == pytest.approx(want, rel=1e-13)


def test_the_evidence_of_new_values_does_not_depend_on_their_order():
    """Products of (V−K)α/(c+n) and (α+n_v)/(c+n): here V=4, α=½, in two pairs."""
    steps = [(0, 1, 1.0, 0), (0, 1, -2.0, 0), (1, 0, 1.0, 0), (1, 0, 3.0, 0)]
    rewards = (4 * 0.5 / 2) * (3 * 0.5 / 3) * (0.5 / 2) * (2 * 0.5 / 3)
    transitions = 2 * math.log(0.4 / 1.2 * 1.4 / 2.2)
    for order in itertools.permutations(steps):
        belief = Dirichlet(alpha=0.4).belief(S, A, rewards=UNKNOWN)
        for step in order:
            belief.observe(*step)
        assert belief.log_evidence == pytest.approx(math.log(rewards) + transitions, rel=1e-12)


def test_sampled_rewards_of_values_follow_the_dirichlet():
    """Two values: Σ p v is a scaled Beta. Kolmogorov and Smirnov, false alarm 1e-4."""
    model = FiniteRewards(values=(0.0, 10.0), concentration=3.0)
    belief = belief_of(model, [10.0, 0.0, 10.0])
    found = [belief.sample(seed).expected_rewards[0, 1] / 10.0 for seed in range(2000)]
    assert stats.kstest(found, stats.beta(1.5 + 2, 1.5 + 1).cdf).pvalue > 1e-4


def test_drawn_values_have_their_probabilities():
    """Chi squared, false alarm 1e-4."""
    belief = belief_of(UNKNOWN, [1.0, -2.0, 1.0])
    values, p = shares(UNKNOWN, [1.0, -2.0, 1.0], [1.0, -2.0, 1.0])
    out = np.zeros(10_000)
    draw_rewards(belief.rewards, 1, 0, new_rng(3), out)
    found = [(out == v).sum() for v in [*values, 7.0]]
    assert sum(found) == len(out)
    assert stats.chisquare(found, p * len(out)).pvalue > 1e-4


def test_a_real_value_that_equals_the_stand_in_stays_apart_from_it():
    belief = belief_of(UNKNOWN, [7.0, 7.0])
    out = np.zeros((5, 2))
    reward_outcomes(belief.rewards, 1, 0, out)
    assert out[0, 0] == 7.0
    assert 7.0 < out[4, 0] < 7.0 + 1e-12
    assert np.allclose(out[[0, 4], 1], [2.5 / 4.0, 1.5 / 4.0])


def test_a_value_too_many_is_refused_and_nothing_is_lost(tmp_path):
    belief = belief_of(UNKNOWN, [1.0, 2.0, 3.0, 4.0])
    before = content((belief.transitions, belief.rewards))
    with pytest.raises(ValueError, match=r"space for 4 distinct rewards.*raise max_values"):
        belief.observe(0, 1, 5.0, 0)
    with pytest.raises(ValueError, match=r"transition 1: .*raise max_values"):
        belief.observe_many([0, 0], [1, 1], [1.0, 5.0], [0, 0])
    same(before, content((belief.transitions, belief.rewards)))
    belief.observe(0, 1, 4.0, 0)
    belief.save(tmp_path / "belief.npz")
    twin = type(belief).load(tmp_path / "belief.npz")
    assert twin.expected_reward(0, 1) == belief.expected_reward(0, 1)
    np.testing.assert_array_equal(twin.rewards.values, belief.rewards.values)
    with pytest.raises(ValueError, match=r"space for 4 distinct rewards"):
        twin.observe(0, 1, 5.0, 0)
    with pytest.raises(ValueError, match="none of the values"):
        belief_of(FiniteRewards(values=(0.0, 1.0)), [0.5])


# --- all of them, by pair and by next state -----------------------------------------------------------------

MODELS = {
    "normal": NORMAL,
    "normal by next": NormalGamma(mu0=0.5, lam=2.0, alpha=3.0, beta=1.5, by="next"),
    "values": UNKNOWN,
    "values by next": FiniteRewards(max_values=4, concentration=2.0, unseen=7.0, by="next"),
}
learned = pytest.mark.parametrize("name", MODELS)


@learned
def test_undoing_restores_every_array_bit_for_bit(name):
    values = np.array([1.0, -2.0, 7.0])
    belief = belief_of(MODELS[name], values[:2].tolist(), s2s=[0, 1])
    rng = np.random.default_rng(0)
    for length in (1, 5, 200):
        belief.reserve(length)
        before = content((belief.transitions, belief.rewards))
        steps = np.c_[rng.integers(0, S * A, length), rng.integers(0, S, length)]
        play_rewards(belief.transitions, belief.rewards, steps, values[rng.integers(0, len(values), length)])
        assert belief.rewards.cells.top[1] == length
        unwind(belief.transitions, belief.rewards, length)
        same(before, content((belief.transitions, belief.rewards)))


@pytest.mark.parametrize("name", [name for name in MODELS if "next" in name])
def test_rewards_by_next_state_are_a_mean_over_next_states(name):
    """E[r | s, a] = Σ ν(s') m(s') and its variance Σ ν(s')² v(s'), each cell as if it were a pair."""
    model = MODELS[name]
    alone = type(model)(**{**vars(model), "by": "pair"})
    values, s2s = (1.0, -2.0) * 2, [0, 2, 2, 2]
    belief = belief_of(model, values, s2s)
    kept = {s2: [r for r, to in zip(values, s2s) if to == s2] for s2 in range(S)}
    mean, spread = np.zeros(S), np.zeros(S)
    for s2 in range(S):
        # all values are made known first, in another pair, as they are in the belief at hand
        one = Dirichlet(alpha=0.4).belief(S, A, rewards=alone)
        for r in dict.fromkeys(values):
            one.observe(2, 0, r, 0)
        for r in kept[s2]:
            one.observe(0, 1, r, 0)
        mean[s2], spread[s2] = one.expected_reward(0, 1), variance(one, 1)
    nu = belief.predictive(0, 1)
    assert belief.expected_reward(0, 1) == pytest.approx(nu @ mean, rel=1e-12)
    assert variance(belief, 1) == pytest.approx(nu**2 @ spread, rel=1e-12)
    assert belief.mean().expected_rewards[0, 1] == pytest.approx(nu @ mean, rel=1e-12)


def test_sampled_models_pay_by_next_state_what_their_own_rows_say():
    """Mean and variance over sampled models: E = ν·m and Var = E[Var] + Var[E], z-test at 4.5 standard errors."""
    belief = belief_of(MODELS["normal by next"], [4.0, -4.0, 4.0], [0, 2, 0])
    models = [belief.sample(seed) for seed in range(3000)]
    found = np.array([m.expected_rewards[0, 1] for m in models])
    error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - belief.expected_reward(0, 1)) < 4.5 * error
    assert found.std() > math.sqrt(variance(belief, 1))


@learned
def test_a_row_that_pays_nothing_pays_nothing_for_sure(name):
    belief = Dirichlet().belief(S, A, rewards=MODELS[name], end=2, objective="lifetime")
    assert belief.expected_reward(2, 0) == 0.0
    assert variance(belief, 4) == 0.0
    out = np.ones(5)
    draw_rewards(belief.rewards, 4, 0, new_rng(0), out)
    assert not out.any()
    assert {belief.sample(seed).expected_rewards[2, 0] for seed in range(5)} == {0.0}
    before = belief.log_evidence
    belief.begin(0)
    assert belief.log_evidence == before + math.log(1 / 3)
    assert belief.expected_reward(2, 0) == 0.0


def test_bounds_are_for_planners_that_need_a_range():
    R = NormalGamma(bounds=(-1.0, 2.0)).posterior(S, A)
    assert R.reward_range == (-1.0, 2.0)
    assert NORMAL.posterior(S, A).reward_range == (-math.inf, math.inf)
    assert FiniteRewards(values=(3.0, -1.0)).posterior(S, A).reward_range == (-1.0, 3.0)
    belief = Dirichlet().belief(S, A, rewards=NormalGamma(bounds=(-1.0, 2.0)))
    with pytest.raises(ValueError, match=r"outside the bounds.*widen"):
        belief.observe(0, 0, 2.5, 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NormalGamma(alpha=1.0), "alpha must be finite, above 1"),
        (lambda: NormalGamma(beta=0.0), "beta must be finite, above 0"),
        (lambda: NormalGamma(by="state"), "unknown by 'state'"),
        (lambda: NormalGamma(bounds=(1.0, 1.0)), "lowest, highest"),
        (lambda: NormalGamma(bounds=3.0), "lowest, highest"),
        (lambda: FiniteRewards(values=()), "1 to"),
        (lambda: FiniteRewards(values=(1.0, 1.0)), "distinct"),
        (lambda: FiniteRewards(values=(1.0,), bounds=(0.0, 2.0)), "their own bounds"),
        (lambda: FiniteRewards(unseen=3.0, bounds=(0.0, 2.0)), "outside the bounds"),
        (lambda: FiniteRewards(max_values=0), "max_values must be at least 1"),
        (lambda: BetaBernoulli(by="nxt"), "did you mean 'next'"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


@pytest.mark.parametrize("module", [conjugate, known])
def test_the_examples_in_the_docstrings_hold(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert result.failed == 0
