"""Reward models with conjugate posteriors, one for each cell: a pair, or a pair with its next state.

**Finitely many values**, known or discovered, under a Dirichlet prior. A cell pays one of V values, with probabilities
Dirichlet(α). If the values are known (``values``, or 0 and 1 for :class:`BetaBernoulli`), after n rewards of a cell,
n_v of them equal to v, and with c = Σ α,

    P(v) = (α_v + n_v) / (c + n).

If they are discovered, V = ``max_values`` and α = c/V for each. K values have been seen, in any cell; the others are
still unknown numbers. Then P(v) holds for each of the K values seen anywhere, and

    P(something new) = (V − K) α / (c + n)

because a Dirichlet distribution can be lumped: the seen values together with the lump of all others are Dirichlet
again. Hence a value paid by one pair is expected of all other pairs, and the probability of a new value falls with
every reward of the pair itself. A new value takes the next free slot. If no slot is left, the reward is rejected with
the advice to raise ``max_values``.

*In planning*, a new value needs a number before it has been observed: ``unseen``, which is part of the prior. If it is
high, untried actions remain worth trying for quite a while (a pair's probability of a new value falls like c/n). If it
is at the usual level of rewards, it gives no reason to explore. If an observed value equals this stand-in, the stand-in
moves to the next floating-point number, so that the two stay distinct.

*Evidence.* A new value contributes the probability of *something new*. The density of its number is left out, because
it is the same for all models under comparison.

**Normal rewards** with unknown mean and precision, under the Normal-Gamma prior. With r | μ, τ ~ N(μ, 1/τ),

    τ ~ Gamma(α, rate β),        μ | τ ~ N(m, 1/(λτ)).

An observed reward r changes (m, λ, α, β) to

    m + (r − m)/(λ+1),        λ+1,        α + ½,        β + λ (r − m)² / (2 (λ+1)),

λ and α depend only on the count, so a cell stores three numbers: n, m and β. They are updated directly, because sums of
squares would lose digits if rewards are large compared with their spread. Planners use

    next reward     m + √(β(λ+1)/(λα)) t_2α         (drawn as m + z √((1+1/λ)/τ), z standard normal)
    mean reward μ   m + √(β/(λα)) t_2α,             E[μ] = m,  Var[μ] = β/(λ(α−1))

References: DeGroot, Optimal Statistical Decisions (1970), section 9.6; Dearden, Friedman & Andre (UAI 1999), who use
the Normal-Gamma prior for rewards in model-based Bayesian exploration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.dirichlet import dirichlet
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import gamma, normal, uniform
from bamdp._parameters import WHOLE, parameter, positive_number, real_number
from bamdp.beliefs.base import RewardModel, bounds_parameter, by_parameter, reward_posterior
from bamdp.beliefs.rewards import cells
from bamdp.beliefs.rewards.cells import FREE

MOST_VALUES = 10_000
N_SEEN, CELL_MEAN, RATE = 0, 1, 2  # statistics of a cell of Normal rewards: n, m, β


# --- finitely many values ---------------------------------------------------------------------------------------------


@cells.stored_in_cells
@reward_posterior(learned=("cells", "values", "known"))
class ValuesPosterior(NamedTuple):
    """Posterior of finitely many values. A cell counts the V values, new values and all rewards."""

    cells: cells.Cells
    values: np.ndarray  # float64 [V + 1]: seen values come first; the last entry is the stand-in
    known: np.ndarray  # int64 [1]: K
    alpha: np.ndarray  # float64 [V]: prior counts
    total: float  # c
    low: float  # bounds on rewards, infinite if unknown
    high: float
    share: np.ndarray  # float64 [V + 1] scratch
    last: np.ndarray  # float64 [1] scratch: the last pushed reward
    values_given: bool  # the values are known beforehand

    @property
    def n_outcomes(self) -> int:
        """The number of values, plus one for a new value."""
        return len(self.values) - self.values_given

    @property
    def independent_rows(self) -> bool:
        """True if the values are given; otherwise a new value changes the expectations of every row."""
        return self.values_given

    def cell_mean(R, row, cell):
        size = R.alpha.shape[0]
        total = _weight(R, cell, size) * R.values[size]
        for i in range(R.known[0]):
            total += _weight(R, cell, i) * R.values[i]
        return total / _total(R, cell)

    def cell_variance(R, row, cell):
        size = R.alpha.shape[0]
        mean = cells.cell_mean(R, row, cell)
        total = _weight(R, cell, size) * (R.values[size] - mean) ** 2
        for i in range(R.known[0]):
            total += _weight(R, cell, i) * (R.values[i] - mean) ** 2
        count = _total(R, cell)
        return total / (count * (count + 1.0))

    def cell_sample(R, row, cell, rng):
        size, end, smallest = R.alpha.shape[0], R.known[0], np.inf
        for i in range(end):
            R.share[i] = _weight(R, cell, i)
            smallest = min(smallest, R.share[i])
        new = _weight(R, cell, size)
        R.share[end] = new
        if new > 0.0:
            dirichlet(R.share, 0, end + 1, min(smallest, new), rng)
            new = R.share[end]
        else:
            dirichlet(R.share, 0, end, smallest, rng)
        total = new * R.values[size]
        for i in range(end):
            total += R.share[i] * R.values[i]
        return total

    def draw_reward(R, row, s2, rng):
        cell = cells.find_cell(R.cells, row, s2)
        if cell == FREE:
            return 0.0
        size = R.alpha.shape[0]
        x = uniform(rng) * _total(R, cell)
        for i in range(R.known[0]):
            x -= _weight(R, cell, i)
            if x < 0.0:
                return R.values[i]
        return R.values[size] if _weight(R, cell, size) > 0.0 else R.values[R.known[0] - 1]

    def push_reward(R, row, s2, r):
        R.last[0] = r
        cell = cells.open_cell(R.cells, row, s2)
        if cell != FREE:
            R.cells.stats[cell, _place(R, r)] += 1.0
            R.cells.stats[cell, R.values.shape[0]] += 1.0

    def commit_reward(R, row):
        """Give a slot of its own to a value that was new when it was pushed."""
        size = R.alpha.shape[0]
        cell = R.cells.log[R.cells.top[cells.LOGGED] - 1, cells.LOGGED_CELL]
        R.cells.top[cells.LOGGED] = 0
        if cell == FREE or R.cells.stats[cell, size] == 0.0:
            return
        place = R.known[0]
        R.known[0] = place + 1
        R.values[place] = R.last[0]
        R.cells.stats[cell, place] = 1.0
        R.cells.stats[cell, size] = 0.0
        while _place(R, R.values[size]) != size:
            R.values[size] = np.nextafter(R.values[size], np.inf)

    def log_reward_probability(R, row, s2, r):
        cell = cells.find_cell(R.cells, row, s2)
        if cell == FREE:
            return 0.0 if r == 0.0 else -np.inf
        weight = _weight(R, cell, _place(R, r))
        return math.log(weight / _total(R, cell)) if weight > 0.0 else -np.inf

    def outcome(R, row, s2, i):
        """Return the i-th value and its probability; the last one is a new value."""
        cell = cells.find_cell(R.cells, row, s2)
        if cell == FREE:
            return 0.0, 1.0 if i == 0 else 0.0
        return R.values[i], _weight(R, cell, i) / _total(R, cell)


def _values_posterior(
    values: tuple[float, ...],
    alpha: np.ndarray,
    by: str,
    n_states: int,
    n_actions: int,
    unseen: float = 0.0,
    limits: tuple[float, float] | None = None,
) -> ValuesPosterior:
    """Return the posterior without data: the ``values`` are known unless there are ``limits``."""
    size = len(alpha)
    low, high = limits or (min(values), max(values))
    return ValuesPosterior(
        cells=cells.empty_cells(n_states, n_actions, [0.0] * (size + 2), by == "next"),
        values=np.array([*values, *[0.0] * (size - len(values)), unseen]),
        known=np.array([len(values)], np.int64),
        alpha=alpha,
        total=float(alpha.sum()),
        low=low,
        high=high,
        share=np.zeros(size + 1),
        last=np.zeros(1),
        values_given=limits is None,
    )


@primitive
def _weight(R, cell, i):
    """Return the posterior count of the i-th value; i = V means a new value."""
    size = R.alpha.shape[0]
    count = cells.statistic(R.cells, cell, i)
    if i == size:
        return (size - R.known[0]) * R.alpha[size - 1] + count
    return R.alpha[i] + count if i < R.known[0] else 0.0


@primitive
def _total(R, cell):
    """Return c + n."""
    return R.total + cells.statistic(R.cells, cell, R.values.shape[0])


@primitive
def _place(R, r):
    """Return the index of a reward among the values; V for a new value or the stand-in."""
    for i in range(R.known[0]):
        if R.values[i] == r:
            return i
    return R.alpha.shape[0]


@dataclass(frozen=True, kw_only=True)
class BetaBernoulli(RewardModel):
    """Rewards of 0 or 1 with unknown probabilities and a Beta(a, b) prior on each.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 2, rewards=BetaBernoulli(a=1.0, b=1.0))
    >>> belief.observe(0, 1, 1.0, 0)
    >>> round(belief.expected_reward(0, 1), 4)
    0.6667
    """

    a: float = positive_number(1.0, help="prior count of ones")
    b: float = positive_number(1.0, help="prior count of zeros")
    by: str = by_parameter("a probability")

    def posterior(self, n_states: int, n_actions: int) -> ValuesPosterior:
        return _values_posterior((1.0, 0.0), np.array([self.a, self.b], float), self.by, n_states, n_actions)

    def check(self, reward: float) -> None:
        if reward not in (0.0, 1.0):
            raise ValueError(
                f"BetaBernoulli rewards are 0 or 1, got {reward}; rescale them or use NormalGamma or FiniteRewards"
            )


@dataclass(frozen=True, kw_only=True)
class FiniteRewards(RewardModel):
    """Rewards with a few distinct values, known or discovered, and a Dirichlet prior over them.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 2, rewards=FiniteRewards(max_values=4, concentration=1.0, unseen=0.0))
    >>> belief.observe(0, 1, 8.0, 0)
    >>> belief.expected_reward(0, 1), belief.expected_reward(0, 0)
    (5.0, 2.0)
    """

    values: tuple[float, ...] | None = parameter(
        None,
        lambda value, name: None,  # checked below
        help="the values, where they are known; else they are found out",
    )
    max_values: int = parameter(
        16,
        _checks.integer,
        high=MOST_VALUES,
        kind=WHOLE,
        help="the largest number of values, where they are not known",
    )
    concentration: float = positive_number(
        1.0, help="c, how many rewards the prior is worth, spread evenly over all values"
    )
    unseen: float = real_number(
        0.0, help="what a value that was never seen is taken to pay in planning, where values are not known"
    )
    by: str = by_parameter("probabilities")
    bounds: tuple[float, float] | None = bounds_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None:
            object.__setattr__(self, "values", _distinct(self.values))
            if self.bounds is not None:
                raise ValueError("values that are known are their own bounds; drop bounds")
        if not self.limits[0] <= self.unseen <= self.limits[1]:
            raise ValueError(f"unseen={self.unseen} is outside the bounds {self.bounds}")

    def posterior(self, n_states: int, n_actions: int) -> ValuesPosterior:
        values, limits = self.values or (), None if self.values else self.limits
        size = len(values) or self.max_values
        alpha = np.full(size, self.concentration / size)
        return _values_posterior(values, alpha, self.by, n_states, n_actions, self.unseen, limits)

    def check(self, reward: float) -> None:
        if self.values is not None and reward not in self.values:
            raise ValueError(
                f"reward {reward} is none of the values {self.values}; add it or leave values=None"
            )
        super().check(reward)

    def refusal(self, reward: float) -> str:
        return (
            f"FiniteRewards has space for {self.max_values} distinct rewards, and {reward} is one more; raise "
            "max_values or use NormalGamma"
        )


def _distinct(values: Iterable[float]) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"values must be a list of numbers, got {values!r}")
    numbers = tuple(_checks.real(value, "every value") for value in values)
    if not 1 <= len(numbers) <= MOST_VALUES:
        raise ValueError(f"values must be 1 to {MOST_VALUES} numbers, got {len(numbers)}")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"values must be distinct, got {numbers}")
    return numbers


# --- Normal rewards ---------------------------------------------------------------------------------------------------


@cells.stored_in_cells
@reward_posterior()
class NormalPosterior(NamedTuple):
    """Posterior of Normal rewards."""

    cells: cells.Cells
    lam: float  # prior λ
    alpha: float  # prior α
    low: float  # bounds on rewards, infinite if unknown
    high: float

    def cell_mean(R, row, cell):
        return cells.statistic(R.cells, cell, CELL_MEAN)

    def cell_variance(R, row, cell):
        _, lam, alpha, beta = _parameters(R, cell)
        return beta / (lam * (alpha - 1.0))

    def cell_sample(R, row, cell, rng):
        m, lam, alpha, beta = _parameters(R, cell)
        precision = gamma(rng, alpha) / beta
        return m + normal(rng) / math.sqrt(lam * precision)

    def draw_reward(R, row, s2, rng):
        cell = cells.find_cell(R.cells, row, s2)
        if cell == FREE:
            return 0.0
        m, lam, alpha, beta = _parameters(R, cell)
        precision = gamma(rng, alpha) / beta
        return m + normal(rng) * math.sqrt((1.0 + 1.0 / lam) / precision)

    def push_reward(R, row, s2, r):
        cell = cells.open_cell(R.cells, row, s2)
        if cell != FREE:
            m, lam, _, _ = _parameters(R, cell)
            R.cells.stats[cell, N_SEEN] += 1.0
            R.cells.stats[cell, CELL_MEAN] = m + (r - m) / (lam + 1.0)
            R.cells.stats[cell, RATE] += 0.5 * lam / (lam + 1.0) * (r - m) * (r - m)

    def log_reward_probability(R, row, s2, r):
        """Return the logarithm of the Student t density with 2α degrees of freedom."""
        cell = cells.find_cell(R.cells, row, s2)
        if cell == FREE:
            return 0.0 if r == 0.0 else -math.inf
        m, lam, alpha, beta = _parameters(R, cell)
        spread = 2.0 * beta * (lam + 1.0) / lam  # ν times the squared scale
        constant = math.lgamma(alpha + 0.5) - math.lgamma(alpha) - 0.5 * math.log(math.pi * spread)
        return constant - (alpha + 0.5) * math.log1p((r - m) * (r - m) / spread)


@primitive
def _parameters(R, cell):
    """Return (m, λ, α, β) of a cell."""
    n = cells.statistic(R.cells, cell, N_SEEN)
    m, beta = cells.statistic(R.cells, cell, CELL_MEAN), cells.statistic(R.cells, cell, RATE)
    return m, R.lam + n, R.alpha + 0.5 * n, beta


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
    by: str = by_parameter("a mean")
    bounds: tuple[float, float] | None = bounds_parameter()

    def posterior(self, n_states: int, n_actions: int) -> NormalPosterior:
        start = [0.0, float(self.mu0), float(self.beta)]
        empty = cells.empty_cells(n_states, n_actions, start, self.by == "next")
        return NormalPosterior(empty, float(self.lam), float(self.alpha), *self.limits)
