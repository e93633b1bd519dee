"""Scale-free Normal rewards, whose means share effects of states and actions.

For each cell c (a pair (s, a), or a pair with its next state)

    r | μ_c ~ N(μ_c, σ²),        μ_c ~ N(m + x_s + y_a, τ²),        x_s ~ N(0, τ_s²),        y_a ~ N(0, τ_a²),

so that after n rewards of a cell with mean r̄, for m_c = m + x̂_s + ŷ_a and v_c = τ² + Var[x_s] + Var[y_a],

    E[μ_c] = m_c + w (r̄ − m_c),        Var[μ_c] = (1 − w) v_c,        w = n v_c / (n v_c + σ²).

Hence an action that costs a fee is expected to cost it in states where it was never tried, and a crowded state is
expected to be bad under every action. The uncertainty about an untried pair reflects how much pairs differ beyond
these effects; if there are no such effects, the estimates of x and y shrink towards 0. Multiplying all rewards by a
constant multiplies all estimates; adding a constant adds it to m.

Location, effects and scales are estimated from all cells together (empirical Bayes). Let T² be the variance of all N
rewards, C the number of cells, W the sum of squares within cells and d_c = τ² + σ²/n_c. One sweep computes

    σ² = (W + ν ρ T²) / (N − C + ν),        m = Σ_c (r̄_c − x̂_s − ŷ_a) / C,
    ŷ_a = Σ_{c of a} (r̄_c − m − x̂_s)/d_c · Var[y_a],        1/Var[y_a] = 1/τ_a² + Σ_{c of a} 1/d_c,
    τ_a² = (Σ_a (ŷ_a² + Var[y_a]) + κ T²/3) / (A' + κ)         over the A' actions seen, and the same for states,
    τ² = (max(0, Σ_c (r̄_c − m − x̂_s − ŷ_a)² − σ² Σ_c 1/n_c) + κ T²/3) / (max(0, C − 1 − k) + κ),

where k = Σ (1 − Var[y_a]/τ_a²) + Σ (1 − Var[x_s]/τ_s²) is the effective number of effects that the data determine. Weak
prior terms, in units of T² itself (ν = 1, ρ = ½, κ = 2), prevent estimates of 0 for a scale from few data. A sweep
follows every reward or, if there are many cells, every C/``CELLS_PER_SWEEP`` rewards.

A pushed reward changes only its own cell: planning treats the other parameters as known, which makes rows independent.
As long as all rewards are equal they define no scale; T is then the absolute value of that reward, or 1 if it is 0. If
no episode ends, decisions do not depend on this choice. Rewards are stored relative to the first one, so that a large
constant does not cost precision.

References: Gelman et al., Bayesian Data Analysis (2013), chapters 5 and 15; Morris, "Parametric empirical Bayes
inference" (JASA 1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import normal
from bamdp._parameters import choice
from bamdp.beliefs.arrays import reward_posterior
from bamdp.beliefs.base import PAIR_OR_NEXT, RewardModel, bounds_parameter
from bamdp.beliefs.rewards.cells import (
    AFTER,
    FREE,
    LOGGED,
    LOGGED_CELL,
    USED,
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
# indices into HierarchicalPosterior.pooled: the first reward; m relative to it; τ², σ², N, N at the next sweep, τ_s²,
# τ_a², and a flag that is 1 once rewards have differed
ORIGIN, LOCATION, SPREAD, NOISE, N, DUE, OF_STATES, OF_ACTIONS, SCALED = range(9)
EFFECT, DOUBT, RATE = range(3)  # rows of HierarchicalPosterior.effects
NOISE_WEIGHT, NOISE_SHARE, SPREAD_WEIGHT = 1.0, 0.5, 2.0  # ν, ρ and κ
CELLS_PER_SWEEP = 1000.0
EQUAL = 1e-24  # variances below this, relative to squared rewards, are rounding errors
LEAST_LOG = -1e300  # replaces log densities that underflow, since the reward is not impossible


@stored_in_cells
@reward_posterior(pools=True, learned=("cells", "pooled", "effects"))
class HierarchicalPosterior(NamedTuple):
    """Posterior of rewards whose location, effects, spread and noise are learned."""

    cells: Cells
    pooled: np.ndarray  # float64 [9]: indexed by ORIGIN and following
    effects: np.ndarray  # float64 [3, S + A]: x̂ and ŷ, their variances, scratch
    low: float  # bounds on rewards, infinite if unknown
    high: float


@primitive
def _posterior(R, row, cell):
    """Return the mean and variance of a cell's expected reward."""
    n_states = R.cells.n_states
    n_actions = R.effects.shape[1] - n_states
    s, a = row // n_actions, n_states + row % n_actions
    location = R.pooled[LOCATION] + R.effects[EFFECT, s] + R.effects[EFFECT, a]
    spread = R.pooled[SPREAD] + R.effects[DOUBT, s] + R.effects[DOUBT, a]
    n, noise = statistic(R.cells, cell, N_SEEN), R.pooled[NOISE]
    total = n * spread + noise
    m = location + n * spread / total * (statistic(R.cells, cell, CELL_MEAN) - location)
    return R.pooled[ORIGIN] + m, spread * noise / total


@cell_mean.register(HierarchicalPosterior)
def _mean(R, row, cell):
    return _posterior(R, row, cell)[0]


@cell_variance.register(HierarchicalPosterior)
def _variance(R, row, cell):
    return _posterior(R, row, cell)[1]


@cell_sample.register(HierarchicalPosterior)
def _sample(R, row, cell, rng):
    m, variance = _posterior(R, row, cell)
    return m + normal(rng) * math.sqrt(variance)


@verbs.draw_reward.register(HierarchicalPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    m, variance = _posterior(R, row, cell)
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


@verbs.commit_reward.register(HierarchicalPosterior)
def _commit(R, row):
    cells, pooled = R.cells, R.pooled
    entry = cells.top[LOGGED] - 1
    cells.top[LOGGED] = 0
    if entry < 0 or cells.log[entry, LOGGED_CELL] == FREE:
        return
    if pooled[N] == 0.0:  # the very first reward is the origin of all others
        cell = cells.log[entry, LOGGED_CELL]
        pooled[ORIGIN] = cells.stats[cell, CELL_MEAN]
        cells.stats[cell, CELL_MEAN] = 0.0
    pooled[N] += 1.0
    if pooled[N] >= pooled[DUE]:
        sweep(R)
        pooled[DUE] = pooled[N] + max(1.0, cells.top[USED] / CELLS_PER_SWEEP)


# --- location, effects and scales ------------------------------------------------------------------------------


@inner
def sweep(R):
    """Update the estimates of noise, location, effects of actions and states, and their scales, once each."""
    pooled, stats, n_cells = R.pooled, R.cells.stats, R.cells.top[USED]
    n, first, second, within, inverses = 0.0, 0.0, 0.0, 0.0, 0.0
    for cell in range(n_cells):
        m = stats[cell, CELL_MEAN]
        n += stats[cell, N_SEEN]
        first += stats[cell, N_SEEN] * m
        second += stats[cell, N_SEEN] * m * m + stats[cell, SQUARES]
        within += stats[cell, SQUARES]
        inverses += 1.0 / stats[cell, N_SEEN]
    total = (second - first * first / n) / max(1.0, n - 1.0)
    size = max(abs(pooled[ORIGIN]), math.sqrt(second / n))
    equal = total <= EQUAL * size * size
    if equal:
        total = size * size if size > 0.0 else 1.0
    noise = (max(0.0, within) + NOISE_WEIGHT * NOISE_SHARE * total) / (n - n_cells + NOISE_WEIGHT)
    pooled[NOISE] = noise
    if pooled[SCALED] == 0.0:  # discard the scale of equal rewards once they differ
        pooled[SPREAD] = pooled[OF_STATES] = pooled[OF_ACTIONS] = total / 3.0
        pooled[SCALED] = 0.0 if equal else 1.0
    n_states = R.cells.n_states
    determined = _effects(R, n_states, R.effects.shape[1], OF_ACTIONS, total)
    determined += _effects(R, 0, n_states, OF_STATES, total)
    off, squares = _residuals(R)
    pooled[LOCATION] += off / n_cells
    between = max(0.0, squares - off * off / n_cells - noise * inverses)
    free = max(0.0, n_cells - 1.0 - determined)
    pooled[SPREAD] = (between + SPREAD_WEIGHT * total / 3.0) / (free + SPREAD_WEIGHT)


@inner
def _effects(R, begin, end, scale, total):
    """Estimate the effects of all states or all actions and their scale; return how many the data determine."""
    pooled, effects, stats = R.pooled, R.effects, R.cells.stats
    n_states = R.cells.n_states
    n_actions = effects.shape[1] - n_states
    for i in range(begin, end):
        effects[DOUBT, i] = effects[RATE, i] = 0.0
    for row in range(R.cells.head.shape[0]):
        s, a = row // n_actions, n_states + row % n_actions
        i, other = (s, a) if begin == 0 else (a, s)
        cell = R.cells.head[row]
        while cell >= 0:
            rate = 1.0 / (pooled[SPREAD] + pooled[NOISE] / stats[cell, N_SEEN])
            effects[DOUBT, i] += rate * (stats[cell, CELL_MEAN] - pooled[LOCATION] - effects[EFFECT, other])
            effects[RATE, i] += rate
            cell = R.cells.link[cell, AFTER]
    seen, squares, determined = 0.0, SPREAD_WEIGHT * total / 3.0, 0.0
    for i in range(begin, end):
        variance = 1.0 / (1.0 / pooled[scale] + effects[RATE, i])
        effects[EFFECT, i] = effects[DOUBT, i] * variance
        effects[DOUBT, i] = variance
        if effects[RATE, i] > 0.0:
            seen += 1.0
            squares += effects[EFFECT, i] ** 2 + variance
            determined += 1.0 - variance / pooled[scale]
    pooled[scale] = squares / (seen + SPREAD_WEIGHT)
    for i in range(begin, end):
        if effects[RATE, i] == 0.0:
            effects[DOUBT, i] = pooled[scale]
    return determined


@inner
def _residuals(R):
    """Return the sum and the sum of squares of the cell means' residuals from location and effects."""
    n_states = R.cells.n_states
    n_actions = R.effects.shape[1] - n_states
    first, second = 0.0, 0.0
    for row in range(R.cells.head.shape[0]):
        known = R.pooled[LOCATION] + R.effects[EFFECT, row // n_actions]
        known += R.effects[EFFECT, n_states + row % n_actions]
        cell = R.cells.head[row]
        while cell >= 0:
            off = R.cells.stats[cell, CELL_MEAN] - known
            first += off
            second += off * off
            cell = R.cells.link[cell, AFTER]
    return first, second


@verbs.log_reward_probability.register(HierarchicalPosterior)
def _log_probability(R, row, s2, r):
    """Return the logarithm of the Normal density; 0 for the first reward, when no scale is known."""
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0 if r == 0.0 else -math.inf
    if R.pooled[N] == 0.0:
        return 0.0
    m, variance = _posterior(R, row, cell)
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
    sums_fit = pooled[N] == stats[:, N_SEEN].sum() and (R.effects[DOUBT] >= 0.0).all()
    return cells_fit and sums_fit and pooled[SPREAD] > 0.0 and pooled[NOISE] > 0.0


@dataclass(frozen=True, kw_only=True)
class HierarchicalNormal(RewardModel):
    """Normal rewards whose location, spread across pairs and noise are learned from all observed rewards.

    The model is scale-free: multiplying all rewards by a positive constant changes no decision. Neither does adding a
    constant if no episodes end.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 3, rewards=HierarchicalNormal())
    >>> for reward in (19.0, 21.0):
    ...     belief.observe(0, 0, reward, 0)
    ...     belief.observe(0, 1, reward + 10.0, 0)
    >>> [round(belief.expected_reward(0, a), 2) for a in range(3)]
    [20.33, 29.67, 24.46]
    """

    by: str = choice(
        "pair",
        PAIR_OR_NEXT,
        help='what has a mean of its own: ``"pair"``, (s, a), or ``"next"``, (s, a, s\')',
    )
    bounds: tuple[float, float] | None = bounds_parameter()

    def posterior(self, n_states: int, n_actions: int) -> HierarchicalPosterior:
        pooled, effects = np.zeros(SCALED + 1), np.zeros((3, n_states + n_actions))
        pooled[SPREAD], pooled[NOISE] = 1.0, NOISE_SHARE
        cells = empty_cells(n_states, n_actions, [0.0, 0.0, 0.0], self.by == "next")
        return HierarchicalPosterior(cells, pooled, effects, *self.limits)
