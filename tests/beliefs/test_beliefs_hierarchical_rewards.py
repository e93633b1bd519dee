"""HierarchicalNormal against batch formulas, brute-force integration, and rewards in other units."""

import doctest
import math

import numpy as np
import pytest
from beliefs_arrays import content, same
from beliefs_kernels import draw_rewards, log_density, play_rewards, row_variance, unwind
from scipy import integrate, stats

from bamdp import Dirichlet, HierarchicalNormal
from bamdp._kernels.random import new_rng
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.rewards import hierarchical
from bamdp.beliefs.rewards.hierarchical import DOUBT, EFFECT, LOCATION, NOISE, ORIGIN, SPREAD

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


def cells_of(steps, by="pair"):
    found = {}
    for s, a, r, s2 in steps:
        found.setdefault((s, a) if by == "pair" else (s, a, s2), []).append(r)
    return found


def sweeps(steps, by="pair"):
    """(m, x, y, their variances, τ², σ²) after a sweep of the batch formulas for each reward."""
    origin = steps[0][2]
    m, x, y, vx, vy = 0.0, np.zeros(S), np.zeros(A), np.zeros(S), np.zeros(A)
    scaled = False
    for n in range(1, len(steps) + 1):
        cells = {c: np.array(r) - origin for c, r in cells_of(steps[:n], by).items()}
        rewards = np.concatenate(list(cells.values()))
        equal = np.ptp(rewards) == 0
        total = (max(abs(origin), 0.0) ** 2 or 1.0) if equal else rewards.var(ddof=1)
        within = sum(((r - r.mean()) ** 2).sum() for r in cells.values())
        noise = (within + 0.5 * total) / (n - len(cells) + 1)
        if not scaled:
            spread = of_states = of_actions = total / 3
            scaled = not equal
        rate = {c: 1 / (spread + noise / len(r)) for c, r in cells.items()}
        determined = 0.0
        for axis in (1, 0):
            scale, own, other = (of_actions, y, x) if axis else (of_states, x, y)
            seen, squares = 0, 2 * total / 3
            for i in range(len(own)):
                mine = [c for c in cells if c[axis] == i]
                variance = 1 / (1 / scale + sum(rate[c] for c in mine))
                own[i] = variance * sum(rate[c] * (cells[c].mean() - m - other[c[1 - axis]]) for c in mine)
                (vy if axis else vx)[i] = variance if mine else np.nan
                if mine:
                    seen, squares, determined = (
                        seen + 1,
                        squares + own[i] ** 2 + variance,
                        determined + 1 - variance / scale,
                    )
            scale = squares / (seen + 2)
            (vy if axis else vx)[np.isnan(vy if axis else vx)] = scale
            of_states, of_actions = (of_states, scale) if axis else (scale, of_actions)
        off = np.array([r.mean() - m - x[c[0]] - y[c[1]] for c, r in cells.items()])
        m += off.mean()
        between = off.var() * len(off) - noise * sum(1 / len(r) for r in cells.values())
        spread = (max(0.0, between) + 2 * total / 3) / (max(0.0, len(off) - 1 - determined) + 2)
    return origin + m, x, y, vx, vy, spread, noise


def scales(steps, cell):
    """Location and spread of a cell, and the noise."""
    m, x, y, vx, vy, spread, noise = sweeps(steps)
    s, a = cell
    return m + x[s] + y[a], spread + vx[s] + vy[a], noise


@pytest.mark.parametrize("by", ["pair", "next"])
@pytest.mark.parametrize("n", range(1, len(STEPS) + 1))
def test_location_effects_and_scales_are_those_of_the_batch_formulas(n, by):
    R = belief_of(STEPS[:n], by=by).rewards
    m, x, y, vx, vy, spread, noise = sweeps(STEPS[:n], by)
    assert R.pooled[ORIGIN] + R.pooled[LOCATION] == pytest.approx(m, rel=1e-9, abs=1e-12)
    assert (R.pooled[SPREAD], R.pooled[NOISE]) == pytest.approx((spread, noise), rel=1e-9)
    assert R.effects[EFFECT] == pytest.approx(np.concatenate([x, y]), rel=1e-9, abs=1e-12)
    assert R.effects[DOUBT] == pytest.approx(np.concatenate([vx, vy]), rel=1e-9)


def law_of_mean(steps, cell):
    """The posterior mean and variance of a cell's expected reward by quadrature, given the three scales."""
    m, spread, noise = scales(steps, cell)
    rewards = cells_of(steps).get(cell, [])

    def weight(mu):
        return stats.norm.pdf(mu, m, math.sqrt(spread)) * np.prod(
            stats.norm.pdf(rewards, mu, math.sqrt(noise))
        )

    at = [m, *rewards]
    low, high = min(at) - 9 * math.sqrt(spread), max(at) + 9 * math.sqrt(spread)
    z, first, second = (
        integrate.quad(
            lambda mu, k: mu**k * weight(mu), low, high, args=(k,), points=at, limit=200, epsabs=0.0
        )[0]
        for k in range(3)
    )
    return first / z, second / z - (first / z) ** 2


@pytest.mark.parametrize("cell", [(0, 1), (2, 2), (3, 2)])
def test_means_and_variances_are_those_of_the_integral(cell):
    belief = belief_of()
    mean, var = law_of_mean(STEPS, cell)
    row = cell[0] * A + cell[1]
    found = row_variance(belief.transitions, belief.rewards, row, np.zeros(32, np.int32), np.zeros(32))
    assert belief.expected_reward(*cell) == pytest.approx(mean, rel=1e-7)
    assert found == pytest.approx(var, rel=1e-6)
    law = stats.norm(mean, math.sqrt(var + sweeps(STEPS)[-1]))
    for r in (-3.0, 0.0, 12.0):
        assert log_density(belief.rewards, row, 0, r) == pytest.approx(law.logpdf(r), rel=1e-6)


def test_drawn_rewards_have_the_predictive_law():
    belief, drawn = belief_of(), np.zeros(4000)
    draw_rewards(belief.rewards, 1, 0, new_rng(1), drawn)
    mean, var = law_of_mean(STEPS, (0, 1))
    assert stats.kstest(drawn, stats.norm(mean, math.sqrt(var + sweeps(STEPS)[-1])).cdf).pvalue > 0.01


def test_sampled_models_have_the_posterior_law_of_expected_rewards():
    belief, rng = belief_of(), np.random.default_rng(4)
    drawn = np.array([belief.sample(rng).expected_rewards[[0, 3], [1, 2]] for _ in range(1500)])
    for x, cell in zip(drawn.T, ((0, 1), (3, 2))):
        mean, var = law_of_mean(STEPS, cell)
        assert stats.kstest(x, stats.norm(mean, math.sqrt(var)).cdf).pvalue > 0.01


@pytest.mark.parametrize("by", ["pair", "next"])
def test_pushed_rewards_change_their_own_cell_and_are_taken_back(by):
    belief = belief_of(by=by)
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
        assert 0.3 * size < math.sqrt(pooled[SPREAD]) < size
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
    assert math.sqrt(pooled[SPREAD]) == pytest.approx(2.0, rel=0.1)
    assert math.sqrt(pooled[NOISE]) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("by", ["pair", "next"])
def test_a_restored_belief_goes_on_as_the_one_that_was_saved(by):
    one = belief_of(by=by)
    two = Belief.from_content(one.content())
    for belief in (one, two):
        belief.observe(2, 0, 7.0, 1)
    assert np.array_equal(one.rewards.pooled, two.rewards.pooled)
    assert one.expected_reward(1, 1) == two.expected_reward(1, 1)


def test_an_action_that_costs_a_fee_is_expected_to_cost_it_everywhere():
    belief = Dirichlet().belief(12, 3, rewards=HierarchicalNormal())
    for s in range(8):
        for a in range(3):
            if s != 5 or a != 2:
                belief.observe(s, a, 2.0 * s - 5.0 * (a == 2), 0)
    assert belief.expected_reward(5, 2) == pytest.approx(5.0, abs=1.0)
    assert belief.expected_reward(11, 0) - belief.expected_reward(11, 2) == pytest.approx(5.0, abs=1.0)


def test_bounds_are_kept():
    belief = belief_of([], bounds=(-1.0, 1.0))
    assert belief.rewards.reward_range == (-1.0, 1.0)
    with pytest.raises(ValueError, match=r"outside the bounds -1\.\.1 of HierarchicalNormal; widen them"):
        belief.observe(0, 0, 1.5, 0)


def test_examples():
    assert doctest.testmod(hierarchical).failed == 0
