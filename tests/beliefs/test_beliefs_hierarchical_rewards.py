"""HierarchicalNormal against batch formulas, brute-force integration, and rewards in other units."""

import doctest
import math
from itertools import product

import numpy as np
import pytest
from beliefs_arrays import content, same
from beliefs_kernels import draw_rewards, log_density, play_rewards, unwind
from scipy import stats

from bamdp import Dirichlet, FiniteMDP, FiniteModels, HierarchicalNormal
from bamdp._kernels.random import new_rng
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.rewards import hierarchical
from bamdp.beliefs.rewards.hierarchical import DOUBT, EFFECT, LOCATION, NOISE, ORIGIN, SCALES, SPREAD

S, A = 4, 3
STEPS = [
    (0, 1, 1.0, 0),
    (0, 1, -2.0, 1),
    (1, 0, 0.25, 0),
    (0, 1, 0.25, 1),
    (2, 2, 3.5, 3),
    (1, 0, 0.5, 2),
    (3, 0, 9.0, 0),
]


def belief_of(steps=STEPS, scale=1.0, add=0.0, **parameters):
    belief = Dirichlet(alpha=0.4).belief(S, A, rewards=HierarchicalNormal(**parameters))
    for s, a, r, s2 in steps:
        belief.observe(s, a, scale * r + add, s2)
    return belief


def cells_of(steps):
    found = {}
    for s, a, r, s2 in steps:
        found.setdefault((s, a, s2), []).append(r)
    return found


def effects_of(s, a, s2):
    """The effects on the reward of a transition, as (group, member)."""
    return ("y", a), ("x", s), ("z", s2), ("w", (a, s2 - s)), ("v", (s, a))


GROUPS = "yxzwv"


def left(cells, m, effect, c, but=None):
    """What m and the effects other than ``but`` leave of a cell's mean."""
    return cells[c].mean() - m - sum(effect.get(e, 0.0) for e in effects_of(*c) if e != but)


def sweeps(steps):
    """(m, effects, their variances, scales, τ², σ²) after a sweep of the batch formulas for each reward."""
    origin = steps[0][2]
    m, effect, doubt, scales, scaled = 0.0, {}, {}, dict.fromkeys(GROUPS, 1 / 6), False
    for n in range(1, len(steps) + 1):
        cells = {c: np.array(r) - origin for c, r in cells_of(steps[:n]).items()}
        rewards = np.concatenate(list(cells.values()))
        equal = np.ptp(rewards) == 0
        total = (max(abs(origin), 0.0) ** 2 or 1.0) if equal else rewards.var(ddof=1)
        within = sum(((r - r.mean()) ** 2).sum() for r in cells.values())
        noise = (within + 0.5 * total) / (n - len(cells) + 1)
        if not scaled:
            spread, scales = total / 6, dict.fromkeys(GROUPS, total / 6)
            scaled = not equal
        rate = {c: 1 / (spread + noise / len(r)) for c, r in cells.items()}
        determined = 0.0

        for g in GROUPS:
            seen = {e for c in cells for e in effects_of(*c) if e[0] == g}
            found = {}
            for e in seen:
                mine = [c for c in cells if e in effects_of(*c)]
                doubt[e] = 1 / (1 / scales[g] + sum(rate[c] for c in mine))
                found[e] = doubt[e] * sum(rate[c] * left(cells, m, effect, c, but=e) for c in mine)
            effect |= found
            determined += sum(1 - doubt[e] / scales[g] for e in seen)
            squares = sum(effect[e] ** 2 + doubt[e] for e in seen)
            scales[g] = (squares + 2 * total / 6) / (len(seen) + 2)
        off = np.array([left(cells, m, effect, c) for c in cells])
        m += off.mean()
        between = off.var() * len(off) - noise * sum(1 / len(r) for r in cells.values())
        spread = (max(0.0, between) + 2 * total / 6) / (max(0.0, len(off) - 1 - determined) + 2)
    return origin + m, effect, doubt, scales, spread, noise


@pytest.mark.parametrize("n", range(1, len(STEPS) + 1))
def test_location_effects_and_scales_are_those_of_the_batch_formulas(n):
    R = belief_of(STEPS[:n]).rewards
    m, effect, doubt, scales, spread, noise = sweeps(STEPS[:n])
    assert R.pooled[ORIGIN] + R.pooled[LOCATION] == pytest.approx(m, rel=1e-9, abs=1e-12)
    assert (R.pooled[SPREAD], R.pooled[NOISE]) == pytest.approx((spread, noise), rel=1e-9)
    assert R.pooled[SCALES:] == pytest.approx([scales[g] for g in GROUPS], rel=1e-9)
    for s in range(S):
        for a in range(A):
            for s2 in range(S):
                for group, e in enumerate(effects_of(s, a, s2)):
                    i = hierarchical.effect_of(R, group, s * A + a, s2)
                    assert R.effects[EFFECT, i] == pytest.approx(effect.get(e, 0.0), rel=1e-9, abs=1e-12)
                    assert R.effects[DOUBT, i] == pytest.approx(doubt.get(e, scales[e[0]]), rel=1e-9)


def laws(steps, s, a):
    """Mean vector and covariance of μ for all next states of a pair, given effects and scales, by linear algebra."""
    m, effect, doubt, scales, spread, noise = sweeps(steps)
    found = cells_of(steps)
    mean = np.array([m + sum(effect.get(e, 0.0) for e in effects_of(s, a, s2)) for s2 in range(S)])
    v = [[doubt.get(e, scales[e[0]]) for e in effects_of(s, a, s2)] for s2 in range(S)]
    cov = (v[0][0] + v[0][1] + v[0][4]) * np.ones((S, S))
    cov += np.diag([v[s2][2] + v[s2][3] for s2 in range(S)])
    n = np.array([len(found.get((s, a, s2), ())) for s2 in range(S)])
    b = noise / (
        n * spread + noise
    )  # given its effects, a cell's mean is theirs times b plus its rewards' share
    own = np.array([np.mean(found.get((s, a, s2), [0.0])) for s2 in range(S)])
    return b * mean + (1 - b) * own, b[:, None] * cov * b + np.diag(b * spread), noise


PAIRS = [(0, 1), (2, 2), (3, 2)]


@pytest.mark.parametrize("s, a", PAIRS)
def test_means_and_variances_of_rows_follow_from_the_effects(s, a):
    belief = Dirichlet(alpha=0.4).belief(S, A, rewards=HierarchicalNormal())
    for step in STEPS:
        belief.observe(*step)
    mean, cov, noise = laws(STEPS, s, a)
    row, p = s * A + a, belief.predictive(s, a)
    R = belief.rewards
    index, prob = np.arange(S, dtype=np.int32), p.copy()
    assert hierarchical.row_mean(R, row, index, prob, 0, S, 0.0) == pytest.approx(p @ mean, rel=1e-9)
    assert hierarchical.row_variance(R, row, index, prob, 0, S, 0.0) == pytest.approx(p @ cov @ p, rel=1e-9)
    for s2 in range(S):
        law = stats.norm(mean[s2], math.sqrt(cov[s2, s2] + noise))
        for r in (-3.0, 0.0, 12.0):
            assert log_density(belief.rewards, row, s2, r) == pytest.approx(law.logpdf(r), rel=1e-6)


def test_drawn_rewards_have_the_predictive_law():
    belief, drawn = belief_of(), np.zeros(4000)
    draw_rewards(belief.rewards, 1, 0, new_rng(1), drawn)
    mean, cov, noise = laws(STEPS, 0, 1)
    assert stats.kstest(drawn, stats.norm(mean[0], math.sqrt(cov[0, 0] + noise)).cdf).pvalue > 0.01


def test_sampled_models_have_the_posterior_law_of_expected_rewards():
    """Transitions are certain, so that a row's expected reward is that of one next state."""
    model, rng = (
        FiniteMDP(np.tile(np.eye(S), (A, 1, 1)).swapaxes(0, 1), np.zeros((S, A))),
        np.random.default_rng(4),
    )
    steps = [(s, a, r, s) for s, a, r, _ in STEPS]
    belief = FiniteModels([model]).belief(S, A, rewards=HierarchicalNormal())
    for step in steps:
        belief.observe(*step)
    drawn = np.array([belief.sample(rng).expected_rewards[[0, 3], [1, 2]] for _ in range(1500)])
    for x, (s, a) in zip(drawn.T, ((0, 1), (3, 2))):
        mean, cov, _ = laws(steps, s, a)
        assert stats.kstest(x, stats.norm(mean[s], math.sqrt(cov[s, s])).cdf).pvalue > 0.01


def test_pushed_rewards_change_their_own_cell_and_are_taken_back():
    belief = belief_of()
    belief.reserve(8)
    before = content(belief.arrays)
    rows = np.array([[1, 1], [11, 0], [1, 1], [2, 3]])
    untouched = belief.expected_reward(3, 0)
    play_rewards(belief.transitions, belief.rewards, rows, np.array([3.0, -4.0, 2.0, 9.0]))
    assert belief.expected_reward(3, 0) == untouched
    unwind(belief.transitions, belief.rewards, len(rows))
    same(content(belief.arrays), before)


@pytest.mark.parametrize("scale, add", [(128.0, 0.0), (1.0, 1024.0), (0.25, -64.0), (1e-9, 3.0), (1.0, 1e9)])
def test_rewards_in_other_units_are_expected_and_drawn_in_those_units(scale, add):
    one, other = belief_of(), belief_of(scale=scale, add=add)
    within = 1e-5 * scale if add > 1e3 * scale else 1e-12 * scale
    for s in range(S):
        for a in range(A):
            assert other.expected_reward(s, a) == pytest.approx(
                scale * one.expected_reward(s, a) + add, abs=within
            )
    drawn = [b.sample(np.random.default_rng(2)).expected_rewards for b in (one, other)]
    assert np.allclose(scale * drawn[0] + add, drawn[1], rtol=0.0, atol=within)


def test_equal_rewards_have_their_size_as_scale_and_zeros_have_1():
    for r, size in ((0.0, 1.0), (-3.0, 3.0)):
        pooled = belief_of([(0, 0, r, 1), (1, 0, r, 2)]).rewards.pooled
        assert 0.1 * size < math.sqrt(pooled[SPREAD]) < size
        assert pooled[NOISE] > 0.0
    fresh = belief_of([])
    assert fresh.expected_reward(0, 0) == 0.0
    assert log_density(fresh.rewards, 0, 0, 7.0) == 0.0


def test_noise_and_spread_are_found_in_simulated_rewards():
    rng = np.random.default_rng(3)
    means = rng.normal(5.0, 2.0, (40, 10))
    belief = Dirichlet().belief(40, 10, rewards=HierarchicalNormal())
    for i in rng.permutation(np.repeat(np.arange(400), 4)):
        belief.observe(i // 10, i % 10, rng.normal(means[i // 10, i % 10], 0.5), 0)
    pooled = belief.rewards.pooled
    assert pooled[ORIGIN] + pooled[LOCATION] == pytest.approx(5.0, abs=0.3)
    assert math.sqrt(pooled[SPREAD] + pooled[SCALES:].sum()) == pytest.approx(2.0, rel=0.15)
    assert math.sqrt(pooled[NOISE]) == pytest.approx(0.5, rel=0.05)


def test_a_restored_belief_goes_on_as_the_one_that_was_saved():
    one = belief_of()
    two = Belief.from_content(one.content())
    for belief in (one, two):
        belief.observe(2, 0, 7.0, 1)
    assert np.array_equal(one.rewards.pooled, two.rewards.pooled)
    assert one.expected_reward(1, 1) == two.expected_reward(1, 1)


def test_an_action_that_costs_a_fee_is_expected_to_cost_it_everywhere():
    belief = Dirichlet().belief(12, 3, rewards=HierarchicalNormal())
    for s, a, _ in product(range(8), range(3), range(4)):
        if s != 5 or a != 2:
            belief.observe(s, a, 2.0 * s - 5.0 * (a == 2), 0)
    assert belief.expected_reward(5, 2) == pytest.approx(5.0, abs=1.0)
    assert belief.expected_reward(11, 0) - belief.expected_reward(11, 2) == pytest.approx(5.0, abs=1.0)


def test_a_crash_is_blamed_on_the_place_where_it_happens_and_not_on_the_action():
    """A grid of four columns in which entering state 5 costs 5, whatever led there."""
    belief = Dirichlet().belief(16, 4, rewards=HierarchicalNormal())
    for s in range(16):
        for a, move in enumerate((-4, 1, 4, -1)):
            if 0 <= s + move < 16 and (s, a) not in ((1, 2), (2, 2)):
                belief.observe(s, a, -5.0 * (s + move == 5), s + move)
    into, past = (
        hierarchical.row_mean(belief.rewards, row, np.array([s2]), np.ones(1), 0, 1, 0.0)
        for row, s2 in ((1 * 4 + 2, 5), (2 * 4 + 2, 6))
    )
    assert into < -3.5
    assert past > -0.3


def test_bounds_are_kept():
    belief = belief_of([], bounds=(-1.0, 1.0))
    assert belief.rewards.reward_range == (-1.0, 1.0)
    with pytest.raises(ValueError, match=r"outside the bounds -1\.\.1 of HierarchicalNormal; widen them"):
        belief.observe(0, 0, 1.5, 0)


def test_examples():
    assert doctest.testmod(hierarchical).failed == 0
