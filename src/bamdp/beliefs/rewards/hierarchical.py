"""Real rewards without units: Normal around means that are Normal themselves, both scales learned from all rewards.

For each cell c (a pair, or a pair with its next state)

    r | μ_c ~ N(μ_c, σ²),        μ_c ~ N(m, τ²),

so that after n rewards of a cell with mean r̄

    E[μ_c] = m + w (r̄ − m),        Var[μ_c] = (1 − w) τ²,        w = n τ² / (n τ² + σ²),        next reward: Var + σ².

Given (m, τ², σ²) this is exact. These three are estimated from all cells together (empirical Bayes, by moments). With C
cells, N rewards, B = Σ_c (r̄_c − m)², W the sum of squares within cells, and T² the variance of all rewards,

    m = Σ_c r̄_c / C,        σ² = (W + ν ρ T²) / (N − C + ν),
    τ² = (max(0, B − σ² (C−1) Σ_c 1/(C n_c)) + κ T²) / (C − 1 + κ),

since E[B] = (C−1) (τ² + σ² Σ_c 1/(C n_c)): unbiased but for weak prior terms in units of T² itself (ν = 1, ρ = ½,
κ = 2), which keep either scale from being taken for 0 on few data. So a pair that was never tried is expected to pay
what others do, and is as uncertain as they differ. Multiplying all rewards by a constant multiplies m, τ and σ; adding
one adds it to m.

The sums behind the three are updated when a reward is committed, in O(1). A reward that is only pushed changes its own
cell: planning takes the three as known, and rows are independent while it does.

While all rewards are equal they have no scale: T is then the size of that reward, or 1. Where nothing ends, no decision
depends on which. Rewards are counted from the first one, so that large constants do not cost precision.

References: Gelman et al., Bayesian Data Analysis (2013), chapter 5; Morris, "Parametric empirical Bayes
inference" (JASA 1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import normal
from bamdp._parameters import choice
from bamdp.beliefs.arrays import reward_posterior
from bamdp.beliefs.base import PAIR_OR_NEXT, RewardModel, bounds_parameter
from bamdp.beliefs.rewards.cells import (
    FREE,
    LOGGED,
    LOGGED_CELL,
    LOGGED_ROW,
    NO_CELL,
    Cells,
    cell_mean,
    cell_sample,
    cell_variance,
    empty_cells,
    find_cell,
    open_cell,
    statistic,
    stored_in_cells,
    used_statistics,
)
from bamdp.beliefs.statistics import is_valid

N_SEEN, CELL_MEAN, SQUARES = 0, 1, 2  # statistics of a cell: n, r̄ − origin, sum of squares around r̄
# places in ``pooled``: the first reward; estimates, m without the origin; sums over rewards; over cells
ORIGIN, LOCATION, SPREAD, NOISE, N, SUM, SUM_SQUARES, C, MEANS, MEAN_SQUARES, INVERSES, WITHIN = range(12)
NOISE_WEIGHT, NOISE_SHARE, SPREAD_WEIGHT = 1.0, 0.5, 2.0  # ν, ρ and κ
EQUAL = 1e-24  # squares that are smaller, in units of the rewards', are of rounding
LEAST_LOG = -1e300  # logarithm of a density that would underflow: the reward is not impossible


@stored_in_cells
@reward_posterior(pools=True, learned=("cells", "pooled"))
class HierarchicalPosterior(NamedTuple):
    """Posterior of rewards whose location, spread and noise are learned."""

    cells: Cells
    pooled: np.ndarray  # float64 [12], see ORIGIN
    low: float  # what rewards are known to lie between; infinite if nothing is
    high: float


@primitive
def _posterior(R, cell):
    """Return the mean and variance of a cell's expected reward."""
    n, spread, noise = statistic(R.cells, cell, N_SEEN), R.pooled[SPREAD], R.pooled[NOISE]
    total = n * spread + noise
    m = R.pooled[LOCATION] + n * spread / total * (statistic(R.cells, cell, CELL_MEAN) - R.pooled[LOCATION])
    return R.pooled[ORIGIN] + m, spread * noise / total


@cell_mean.register(HierarchicalPosterior)
def _mean(R, cell):
    return _posterior(R, cell)[0]


@cell_variance.register(HierarchicalPosterior)
def _variance(R, cell):
    return _posterior(R, cell)[1]


@cell_sample.register(HierarchicalPosterior)
def _sample(R, cell, rng):
    m, variance = _posterior(R, cell)
    return m + normal(rng) * math.sqrt(variance)


@verbs.draw_reward.register(HierarchicalPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    m, variance = _posterior(R, cell)
    return m + normal(rng) * math.sqrt(variance + R.pooled[NOISE])


@verbs.push_reward.register(HierarchicalPosterior)
def _push(R, row, s2, r):
    cell = open_cell(R.cells, row, s2)
    if cell != FREE:
        stats = R.cells.stats
        off = r - R.pooled[ORIGIN] - stats[cell, CELL_MEAN]
        stats[cell, N_SEEN] += 1.0
        stats[cell, CELL_MEAN] += off / stats[cell, N_SEEN]
        stats[cell, SQUARES] += off * off * (1.0 - 1.0 / stats[cell, N_SEEN])


@primitive
def _count_cell(pooled, sign, n, mean, squares):
    """Add a cell with these statistics to the sums over cells, or take it out."""
    pooled[C] += sign
    pooled[MEANS] += sign * mean
    pooled[MEAN_SQUARES] += sign * mean * mean
    pooled[INVERSES] += sign / n
    pooled[WITHIN] += sign * squares


@primitive
def estimate(pooled):
    """Estimate m, τ² and σ² from the sums."""
    n, n_cells = pooled[N], pooled[C]
    total = (pooled[SUM_SQUARES] - pooled[SUM] ** 2 / n) / max(1.0, n - 1.0)
    size = max(abs(pooled[ORIGIN]), math.sqrt(pooled[SUM_SQUARES] / n))
    if total <= EQUAL * size * size:
        total = size * size if size > 0.0 else 1.0
    m = pooled[MEANS] / n_cells
    noise = max(0.0, pooled[WITHIN]) + NOISE_WEIGHT * NOISE_SHARE * total
    noise /= n - n_cells + NOISE_WEIGHT
    between = pooled[MEAN_SQUARES] - m * pooled[MEANS] - noise * (n_cells - 1.0) * pooled[INVERSES] / n_cells
    pooled[LOCATION] = m
    pooled[SPREAD] = (max(0.0, between) + SPREAD_WEIGHT * total) / (n_cells - 1.0 + SPREAD_WEIGHT)
    pooled[NOISE] = noise


@verbs.commit_reward.register(HierarchicalPosterior)
def _commit(R, row):
    """Take the reward that was pushed last into the sums: a reward is committed before the next one is observed."""
    cells, pooled, stats = R.cells, R.pooled, R.cells.stats
    entry = cells.top[LOGGED] - 1
    cells.top[LOGGED] = 0
    if entry < 0 or cells.log[entry, LOGGED_CELL] == FREE:
        return
    cell = cells.log[entry, LOGGED_CELL]
    r = stats[cell, CELL_MEAN]
    if cells.log[entry, LOGGED_ROW] == NO_CELL:
        n, mean = cells.old[entry, N_SEEN], cells.old[entry, CELL_MEAN]
        _count_cell(pooled, -1.0, n, mean, cells.old[entry, SQUARES])
        r = mean + (n + 1.0) * (r - mean)
    elif pooled[N] == 0.0:  # the very first reward: all are counted from it
        pooled[ORIGIN] = r
        stats[cell, CELL_MEAN] = r = 0.0
    _count_cell(pooled, 1.0, stats[cell, N_SEEN], stats[cell, CELL_MEAN], stats[cell, SQUARES])
    pooled[N] += 1.0
    pooled[SUM] += r
    pooled[SUM_SQUARES] += r * r
    estimate(pooled)


@verbs.log_reward_probability.register(HierarchicalPosterior)
def _log_probability(R, row, s2, r):
    """Return the logarithm of the Normal density; 0 for the first reward, when there is no scale."""
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0 if r == 0.0 else -math.inf
    if R.pooled[N] == 0.0:
        return 0.0
    m, variance = _posterior(R, cell)
    variance += R.pooled[NOISE]
    z = (r - m) / math.sqrt(variance)
    return max(LEAST_LOG, -0.5 * (z * z + math.log(2.0 * math.pi * variance)))


@verbs.reward_probability.register(HierarchicalPosterior)
def _probability(R, row, s2, r):
    return math.exp(verbs.log_reward_probability(R, row, s2, r))


@is_valid.register
def _is_valid(R: HierarchicalPosterior) -> Any:
    stats, pooled = used_statistics(R.cells), R.pooled
    cells_fit = ((stats[:, N_SEEN] >= 1.0) & (stats[:, SQUARES] >= 0.0)).all()
    sums_fit = pooled[C] == len(stats) and pooled[N] == stats[:, N_SEEN].sum()
    return cells_fit and sums_fit and pooled[SPREAD] > 0.0 and pooled[NOISE] > 0.0


@dataclass(frozen=True, kw_only=True)
class HierarchicalNormal(RewardModel):
    """Rewards are Normal; location, spread across pairs and noise are learned from all of them.

    It has no units: multiplied rewards are planned for like the ones before, and so are rewards with a constant added,
    where no episodes end.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 3, rewards=HierarchicalNormal())
    >>> for reward in (19.0, 21.0):
    ...     belief.observe(0, 0, reward, 0)
    ...     belief.observe(0, 1, reward + 10.0, 0)
    >>> [round(belief.expected_reward(0, a), 2) for a in range(3)]
    [20.42, 29.58, 25.0]
    """

    by: str = choice(
        "pair",
        PAIR_OR_NEXT,
        help='what has a mean of its own: ``"pair"``, (s, a), or ``"next"``, (s, a, s\')',
    )
    bounds: tuple[float, float] | None = bounds_parameter()

    def posterior(self, n_states: int, n_actions: int) -> HierarchicalPosterior:
        pooled = np.zeros(WITHIN + 1)
        pooled[SPREAD], pooled[NOISE] = 1.0, NOISE_SHARE
        cells = empty_cells(n_states, n_actions, [0.0, 0.0, 0.0], self.by == "next")
        return HierarchicalPosterior(cells, pooled, *self.limits)
