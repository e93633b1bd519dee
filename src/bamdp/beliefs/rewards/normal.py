"""Normal rewards with unknown mean and precision, under the conjugate Normal-Gamma prior.

For each cell (a pair, or a pair with its next state), with r | μ, τ ~ N(μ, 1/τ),

    τ ~ Gamma(α, rate β),        μ | τ ~ N(m, 1/(λτ)).

An observed reward r changes (m, λ, α, β) to

    m + (r − m)/(λ+1),        λ+1,        α + ½,        β + λ (r − m)² / (2 (λ+1)),

λ and α depend only on the count, so a cell stores three numbers: n, m and β. They are updated directly, because sums of
squares would lose digits if rewards are large compared with their spread. Planners use

    next reward     m + √(β(λ+1)/(λα)) t_2α         (drawn as m + z √((1+1/λ)/τ), z standard normal)
    mean reward μ   m + √(β/(λα)) t_2α,             E[μ] = m,  Var[μ] = β/(λ(α−1))

References: DeGroot, Optimal Statistical Decisions (1970), section 9.6; Dearden, Friedman & Andre (UAI 1999), who use
it for rewards in model-based Bayesian exploration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import gamma, normal
from bamdp._parameters import choice, positive_number, real_number
from bamdp.beliefs.arrays import reward_posterior
from bamdp.beliefs.base import PAIR_OR_NEXT, RewardModel, bounds_parameter
from bamdp.beliefs.rewards.cells import (
    FREE,
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

N_SEEN, CELL_MEAN, RATE = 0, 1, 2  # statistics of a cell: n, m, β


@stored_in_cells
@reward_posterior()
class NormalPosterior(NamedTuple):
    """Posterior of Normal rewards."""

    cells: Cells
    lam: float  # prior λ
    alpha: float  # prior α
    low: float  # bounds on rewards, infinite if unknown
    high: float


@primitive
def _parameters(R, cell):
    """Return (m, λ, α, β) of a cell."""
    n = statistic(R.cells, cell, N_SEEN)
    return (
        statistic(R.cells, cell, CELL_MEAN),
        R.lam + n,
        R.alpha + 0.5 * n,
        statistic(R.cells, cell, RATE),
    )


@cell_mean.register(NormalPosterior)
def _mean(R, row, cell):
    return statistic(R.cells, cell, CELL_MEAN)


@cell_variance.register(NormalPosterior)
def _variance(R, row, cell):
    _, lam, alpha, beta = _parameters(R, cell)
    return beta / (lam * (alpha - 1.0))


@cell_sample.register(NormalPosterior)
def _sample(R, row, cell, rng):
    m, lam, alpha, beta = _parameters(R, cell)
    precision = gamma(rng, alpha) / beta
    return m + normal(rng) / math.sqrt(lam * precision)


@verbs.draw_reward.register(NormalPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    m, lam, alpha, beta = _parameters(R, cell)
    precision = gamma(rng, alpha) / beta
    return m + normal(rng) * math.sqrt((1.0 + 1.0 / lam) / precision)


@verbs.push_reward.register(NormalPosterior)
def _push(R, row, s2, r):
    cell = open_cell(R.cells, row, s2)
    if cell != FREE:
        m, lam, _, _ = _parameters(R, cell)
        R.cells.stats[cell, N_SEEN] += 1.0
        R.cells.stats[cell, CELL_MEAN] = m + (r - m) / (lam + 1.0)
        R.cells.stats[cell, RATE] += 0.5 * lam / (lam + 1.0) * (r - m) * (r - m)


@verbs.log_reward_probability.register(NormalPosterior)
def _log_probability(R, row, s2, r):
    """Return the logarithm of the Student t density with 2α degrees of freedom."""
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0 if r == 0.0 else -math.inf
    m, lam, alpha, beta = _parameters(R, cell)
    spread = 2.0 * beta * (lam + 1.0) / lam  # ν times the squared scale
    constant = math.lgamma(alpha + 0.5) - math.lgamma(alpha) - 0.5 * math.log(math.pi * spread)
    return constant - (alpha + 0.5) * math.log1p((r - m) * (r - m) / spread)


@verbs.reward_probability.register(NormalPosterior)
def _probability(R, row, s2, r):
    return math.exp(verbs.log_reward_probability(R, row, s2, r))


@is_valid.register
def _is_valid(R: NormalPosterior) -> Any:
    stats = used_statistics(R.cells)
    return (stats[:, N_SEEN] >= 0.0) & (stats[:, RATE] > 0.0)


@dataclass(frozen=True, kw_only=True)
class NormalGamma(RewardModel):
    """Normal rewards with unknown mean and variance, under a Normal-Gamma prior.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 2, rewards=NormalGamma(mu0=0.0, lam=1.0))
    >>> belief.observe(0, 1, -3.0, 0)
    >>> belief.expected_reward(0, 1)
    -1.5
    """

    mu0: float = real_number(0.0, help="m, the expected reward before data; high means optimistic")
    lam: float = positive_number(1e-3, help="λ, how many rewards the prior mean is worth")
    alpha: float = real_number(
        2.0, low=1.0, open_low=True, help="α, half the number of rewards that the prior variance is worth"
    )
    beta: float = positive_number(
        1e-3,
        help="β: a reward's variance around its mean is expected to be β/(α−1), and the mean's own spread is "
        "√(β/(λ(α−1))). By default that spread is 1 and the noise 0.03: rewards are of the order of 1, and almost "
        "certain once seen. If they turn out to be noisy, β grows with the data",
    )
    by: str = choice(
        "pair",
        PAIR_OR_NEXT,
        help='what has a mean of its own: ``"pair"``, (s, a), or ``"next"``, (s, a, s\')',
    )
    bounds: tuple[float, float] | None = bounds_parameter()

    def posterior(self, n_states: int, n_actions: int) -> NormalPosterior:
        start = [0.0, float(self.mu0), float(self.beta)]
        cells = empty_cells(n_states, n_actions, start, self.by == "next")
        return NormalPosterior(cells, float(self.lam), float(self.alpha), *self.limits)
