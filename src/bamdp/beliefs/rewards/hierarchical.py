"""Scale-free Normal rewards: sums of effects whose sizes are learned.

For each cell c, a triple (s, a, s'),

    r | μ_c ~ N(μ_c, σ²),        μ_c = m + y_a + x_s + z_s' + w_{a, s'-s} + v_{s, a} + e_c,

with effects of the action, the state, the next state, the action's displacement and the pair, and a residual of the
cell. The effects of a group g are N(0, τ_g²), the residuals N(0, τ²). A fee shows in y, a crowded state in x, a crash
or a goal in z, a sale in w, and whatever is particular to a pair in v. The data decide how much each group matters: if
rewards depend on the pair alone, τ_z, τ_w and τ shrink, and a single crash does not discredit an action once the same
action has paid as usual elsewhere. Given the effects, n rewards of a cell with mean r̄ lead to

    E[μ_c] = b (m + Σ effects) + (1 − b) r̄,        b = σ² / (n τ² + σ²).

For the expected reward of a row, Σ P(s') μ_c, let ρ = Σ P(s') b_c:

    Var = ρ² Var[y_a + x_s + v_sa] + Σ P(s')² (b_c² Var[z_s' + w] + b_c τ²).

Uncertainty about an untried pair thus reflects how much pairs differ. Multiplying all rewards by a constant multiplies
all estimates; adding a constant adds it to m.

Location, effects and scales are estimated from all cells together (empirical Bayes). Let T² be the variance of all N
rewards, C the number of cells, W the sum of squares within cells, d_c = τ² + σ²/n_c, and o_c the sum of m and of all
effects on c but the one in question. One sweep computes, for each group in turn,

    σ² = (W + ν ρ T²) / (N − C + ν),
    ŷ_a = Var[y_a] Σ_{c of a} (r̄_c − o_c)/d_c,        1/Var[y_a] = 1/τ_y² + Σ_{c of a} 1/d_c,
    τ_y² = (Σ_a (ŷ_a² + Var[y_a]) + κ T²/6) / (A' + κ)         over the A' actions seen, likewise for all groups,
    m = Σ_c (r̄_c − Σ effects) / C,
    τ² = (max(0, Σ_c (r̄_c − m − Σ effects)² − σ² Σ_c 1/n_c) + κ T²/6) / (max(0, C − 1 − k) + κ),

where k = Σ (1 − Var[effect]/τ_g²) is the effective number of effects that the data determine. Weak prior terms, in
units of T² itself (ν = 1, ρ = ½, κ = 2), prevent a scale from being estimated as 0 from few data. A sweep follows
every reward or, if there are many cells, every C/``CELLS_PER_SWEEP`` rewards.

A pushed reward changes only its own cell: planning treats the other parameters as known, which makes rows independent.
Next states that a row does not list have the average effect of a next state. As long as all rewards are equal they
define no scale; T is then the absolute value of that reward, or 1 if it is 0. If no episode ends, decisions do not
depend on this choice. Rewards are stored relative to the first one, so that a large constant does not cost precision.

References: Gelman et al., Bayesian Data Analysis (2013), chapters 5 and 15; Searle, Casella & McCulloch, Variance
Components (1992); Morris, "Parametric empirical Bayes inference" (JASA 1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import normal
from bamdp._kernels.rows import is_listed
from bamdp.beliefs.base import RewardModel, bounds_parameter, reward_posterior
from bamdp.beliefs.rewards.cells import (
    AFTER,
    FREE,
    LOGGED,
    LOGGED_CELL,
    NEXT_STATE,
    NO_CELL,
    SMALL_MASS,
    USED,
    Cells,
    empty_cells,
    find_cell,
    open_cell,
    statistic,
    stored_in_cells,
)

# statistics of a cell: n, r̄ − origin, the sum of squares around r̄, and the sum of its effects (scratch of a sweep)
N_SEEN, CELL_MEAN, SQUARES, SHARED = range(4)
# indices into HierarchicalPosterior.pooled: the first reward; m relative to it; τ², σ², N, N at the next sweep, a flag
# that is 1 once rewards have differed, the mean of ẑ over all states, and the five scales τ_y² … τ_v²
ORIGIN, LOCATION, SPREAD, NOISE, N, DUE, SCALED, MEAN_NEXT, SCALES = range(9)
OF_ACTION, OF_STATE, OF_NEXT, OF_MOVE, OF_PAIR = GROUPS = 0, 1, 2, 3, 4
EFFECT, DOUBT, RATE = range(3)  # rows of HierarchicalPosterior.effects
NOISE_WEIGHT, NOISE_SHARE, SPREAD_WEIGHT = 1.0, 0.5, 2.0  # ν, ρ and κ
PARTS = 6.0  # groups of effects, and the residuals, which share T² at first
CELLS_PER_SWEEP = 1000.0
EQUAL = 1e-24  # variances below this, relative to squared rewards, are rounding errors
LEAST_LOG = -1e300  # replaces log densities that underflow, since the reward is not impossible


@stored_in_cells
@reward_posterior(pools=True, learned=("cells", "pooled", "effects"))
class HierarchicalPosterior(NamedTuple):
    """Posterior of rewards whose location, effects, spread and noise are learned."""

    cells: Cells
    pooled: np.ndarray  # float64 [13]: indexed by ORIGIN and following
    effects: np.ndarray  # float64 [3, A + 2S + A(2S − 1) + S·A]: estimates, variances, scratch
    n_actions: int
    low: float  # bounds on rewards, infinite if unknown
    high: float


@primitive
def first_effect(R, group):
    """Return where a group begins in ``effects``; for the number of groups, where the last one ends."""
    S, A = R.cells.n_states, R.n_actions
    if group <= OF_STATE:
        return A * group
    if group <= OF_MOVE:
        return A + S * (group - 1)
    return A + 2 * S + A * (2 * S - 1) + (group - OF_PAIR) * S * A


@primitive
def effect_of(R, group, row, s2):
    """Return the position in ``effects`` of a group's effect on the reward of ``row`` → ``s2``."""
    S, s, a = R.cells.n_states, row // R.n_actions, row % R.n_actions
    if group == OF_ACTION:
        i = a
    elif group == OF_STATE:
        i = s
    elif group == OF_NEXT:
        i = s2
    elif group == OF_MOVE:
        i = a * (2 * S - 1) + s2 - s + S - 1
    else:
        i = row
    return first_effect(R, group) + i


@primitive
def _of_row(R, row):
    """Return the mean and variance of what the rewards of a row have in common."""
    m, variance = R.pooled[LOCATION], 0.0
    for group in (OF_ACTION, OF_STATE, OF_PAIR):
        i = effect_of(R, group, row, 0)
        m += R.effects[EFFECT, i]
        variance += R.effects[DOUBT, i]
    return m, variance


@primitive
def _first_move(R, row):
    """Return the position of the effect of the action's displacement from the row's state to state 0."""
    return effect_of(R, OF_MOVE, row, 0)


@primitive
def _of_next(R, first_move, s2):
    """Return the mean and variance of the effects of the next state and of the displacement."""
    i, j = R.n_actions + R.cells.n_states + s2, first_move + s2
    return R.effects[EFFECT, i] + R.effects[EFFECT, j], R.effects[DOUBT, i] + R.effects[DOUBT, j]


@primitive
def _doubt(R, cell):
    """Return σ²/(n τ² + σ²), the weight of the effects in a cell's expected reward."""
    noise = R.pooled[NOISE]
    return noise / (statistic(R.cells, cell, N_SEEN) * R.pooled[SPREAD] + noise)


@primitive
def _cell_mean(R, common, first_move, s2, cell):
    """Return a cell's expected reward relative to the first, given what the rewards of its row have in common."""
    b = _doubt(R, cell)
    return b * (common + _of_next(R, first_move, s2)[0]) + (1.0 - b) * statistic(R.cells, cell, CELL_MEAN)


@primitive
def _posterior(R, row, s2, cell):
    """Return the mean and variance of the expected reward of ``row`` → ``s2``."""
    (m, v), first_move, b = _of_row(R, row), _first_move(R, row), _doubt(R, cell)
    variance = b * b * (v + _of_next(R, first_move, s2)[1]) + b * R.pooled[SPREAD]
    return R.pooled[ORIGIN] + _cell_mean(R, m, first_move, s2, cell), variance


def row_mean(R, row, index, prob, begin, end, background):
    """Return E[r | row] for the distribution at ``begin:end`` plus background."""
    head = R.cells.head[row]
    if head == FREE:
        return 0.0
    common, first_move = _of_row(R, row)[0], _first_move(R, row)
    unseen = R.pooled[ORIGIN] + common + R.pooled[MEAN_NEXT]
    total = unseen
    for i in range(begin, end):
        s2 = np.int64(index[i])
        m = R.pooled[ORIGIN] + _cell_mean(R, common, first_move, s2, find_cell(R.cells, row, s2))
        total += prob[i] * (m - unseen)
    if background > 0.0:
        cell = head
        while cell != NO_CELL:
            m = R.pooled[ORIGIN] + _cell_mean(R, common, first_move, R.cells.link[cell, NEXT_STATE], cell)
            total += background / R.cells.n_states * (m - unseen)
            cell = R.cells.link[cell, AFTER]
    return total


def row_variance(R, row, index, prob, begin, end, background):
    """Return the variance of E[r | row] for the distribution at ``begin:end`` plus background."""
    if R.cells.head[row] == FREE:
        return 0.0
    of_row, first_move = _of_row(R, row)[1], _first_move(R, row)
    share, spread = background / R.cells.n_states, R.pooled[SPREAD]
    of_next = R.pooled[SCALES + OF_NEXT] + R.pooled[SCALES + OF_MOVE]
    first = background - share * (end - begin)
    total = first * share * (of_next + spread)
    for i in range(begin, end):
        s2, p = np.int64(index[i]), prob[i] + share
        b = _doubt(R, find_cell(R.cells, row, s2))
        first += p * b
        total += p * p * (b * b * _of_next(R, first_move, s2)[1] + b * spread)
    return total + first * first * of_row


def row_sample(R, choice, row, index, prob, begin, end, background, rng):
    """Return E[r | row] in a sampled model with the distribution at ``begin:end`` plus background."""
    if R.cells.head[row] == FREE:
        return 0.0
    (m, v), first_move = _of_row(R, row), _first_move(R, row)
    common = m + normal(rng) * math.sqrt(v)
    everywhere = background > SMALL_MASS
    share = background / R.cells.n_states if everywhere else 0.0
    total = 0.0 if everywhere else background * (common + R.pooled[MEAN_NEXT])
    for i in range(begin, end):
        total += (prob[i] + share) * _sample_cell(R, row, common, first_move, np.int64(index[i]), rng)
    if everywhere:
        for s2 in range(R.cells.n_states):
            if not is_listed(index, begin, end, s2):
                total += share * _sample_cell(R, row, common, first_move, s2, rng)
    return R.pooled[ORIGIN] + total


@primitive
def _sample_cell(R, row, common, first_move, s2, rng):
    """Draw the expected reward of ``row`` → ``s2``, given what the rewards of its row have in common."""
    cell = find_cell(R.cells, row, s2)
    b, v = _doubt(R, cell), _of_next(R, first_move, s2)[1]
    m = _cell_mean(R, common, first_move, s2, cell)
    return m + normal(rng) * math.sqrt(b * b * v + b * R.pooled[SPREAD])


verbs.expected_reward.register(HierarchicalPosterior)(row_mean)
verbs.reward_variance.register(HierarchicalPosterior)(row_variance)
verbs.sample_reward.register(HierarchicalPosterior)(row_sample)


@verbs.draw_reward.register(HierarchicalPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    m, variance = _posterior(R, row, s2, cell)
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
    """Update the estimates of noise, location, effects and their scales, once each."""
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
        pooled[SPREAD] = total / PARTS
        for group in GROUPS:
            pooled[SCALES + group] = total / PARTS
        pooled[SCALED] = 0.0 if equal else 1.0
    determined = 0.0
    for group in GROUPS:
        determined += _effects(R, group, total)
    off, squares = _residuals(R)
    pooled[LOCATION] += off / n_cells
    between = max(0.0, squares - off * off / n_cells - noise * inverses)
    free = max(0.0, n_cells - 1.0 - determined)
    pooled[SPREAD] = (between + SPREAD_WEIGHT * total / PARTS) / (free + SPREAD_WEIGHT)


@inner
def _effects(R, group, total):
    """Estimate the effects of a group and their scale; return how many the data determine."""
    pooled, effects, stats = R.pooled, R.effects, R.cells.stats
    begin, end = first_effect(R, group), first_effect(R, group + 1)
    for i in range(begin, end):
        effects[DOUBT, i] = effects[RATE, i] = 0.0
    for row in range(R.cells.head.shape[0]):
        cell = R.cells.head[row]
        while cell >= 0:
            s2 = R.cells.link[cell, NEXT_STATE]
            if group == GROUPS[0]:
                stats[cell, SHARED] = _of_row(R, row)[0] + _of_next(R, _first_move(R, row), s2)[0]
            i = effect_of(R, group, row, s2)
            rate = 1.0 / (pooled[SPREAD] + pooled[NOISE] / stats[cell, N_SEEN])
            stats[cell, SHARED] -= effects[EFFECT, i]
            effects[DOUBT, i] += rate * (stats[cell, CELL_MEAN] - stats[cell, SHARED])
            effects[RATE, i] += rate
            cell = R.cells.link[cell, AFTER]
    seen, squares, determined, mean = 0.0, SPREAD_WEIGHT * total / PARTS, 0.0, 0.0
    for i in range(begin, end):
        variance = 1.0 / (1.0 / pooled[SCALES + group] + effects[RATE, i])
        effects[EFFECT, i] = effects[DOUBT, i] * variance
        effects[DOUBT, i] = variance
        if effects[RATE, i] > 0.0:
            seen += 1.0
            squares += effects[EFFECT, i] ** 2 + variance
            determined += 1.0 - variance / pooled[SCALES + group]
            mean += effects[EFFECT, i]
    pooled[SCALES + group] = squares / (seen + SPREAD_WEIGHT)
    if group == OF_NEXT:
        pooled[MEAN_NEXT] = mean / R.cells.n_states
    for i in range(begin, end):
        if effects[RATE, i] == 0.0:
            effects[DOUBT, i] = pooled[SCALES + group]
    for row in range(R.cells.head.shape[0]):
        cell = R.cells.head[row]
        while cell >= 0:
            stats[cell, SHARED] += effects[EFFECT, effect_of(R, group, row, R.cells.link[cell, NEXT_STATE])]
            cell = R.cells.link[cell, AFTER]
    return determined


@inner
def _residuals(R):
    """Return the sum and the sum of squares of the cell means' residuals from location and effects."""
    first, second = 0.0, 0.0
    for cell in range(R.cells.top[USED]):
        off = R.cells.stats[cell, CELL_MEAN] - R.cells.stats[cell, SHARED]
        first += off
        second += off * off
    return first, second


@verbs.log_reward_probability.register(HierarchicalPosterior)
def _log_probability(R, row, s2, r):
    """Return the logarithm of the Normal density; 0 for the first reward, when no scale is known."""
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0 if r == 0.0 else -math.inf
    if R.pooled[N] == 0.0:
        return 0.0
    m, variance = _posterior(R, row, s2, cell)
    variance += R.pooled[NOISE]
    z = (r - m) / math.sqrt(variance)
    return max(LEAST_LOG, -0.5 * (z * z + math.log(2.0 * math.pi * variance)))


@dataclass(frozen=True, kw_only=True)
class HierarchicalNormal(RewardModel):
    """Normal rewards, sums of effects of action, state, next state, displacement and pair, whose sizes are learned.

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
    [20.59, 29.41, 23.64]
    """

    result_version: ClassVar[int] = 2
    bounds: tuple[float, float] | None = bounds_parameter()

    def posterior(self, n_states: int, n_actions: int) -> HierarchicalPosterior:
        pooled = np.zeros(SCALES + len(GROUPS))
        pooled[SPREAD:NOISE], pooled[SCALES:], pooled[NOISE] = 1.0 / PARTS, 1.0 / PARTS, NOISE_SHARE
        n_effects = n_actions + 2 * n_states + n_actions * (3 * n_states - 1)
        effects = np.zeros((3, n_effects))
        effects[DOUBT] = 1.0 / PARTS
        cells = empty_cells(n_states, n_actions, [0.0] * (SHARED + 1), True)
        return HierarchicalPosterior(cells, pooled, effects, n_actions, *self.limits)
