"""Rewards with finitely many values, known or discovered, under a Dirichlet prior.

A cell (a pair, or a pair with its next state) pays one of V values, with probabilities Dirichlet(α, ..., α), α = c/V,
where c = ``concentration``. The values are either known (``values``) or discovered. In the second case, V =
``max_values``; K of them have been seen, in any cell, and the others are still unknown numbers. After n rewards of a
cell, n_v of them equal to v,

    P(v)              = (α + n_v) / (c + n)                 for each of the K values seen anywhere
    P(something new)  = (V − K) α / (c + n)

because a Dirichlet distribution can be lumped: the seen values together with the lump of all others are Dirichlet
again. Hence a value paid by one pair is expected of all others, and the probability of a new value falls with every
reward of the pair itself. A new value takes the next free slot. If no slot is left, the reward is rejected with the
advice to raise ``max_values``.

**In planning**, a new value needs a number before it has been observed: ``unseen``, which is part of the prior. If it
is high, untried actions remain worth trying for quite a while (a pair's probability of a new value falls like c/n). If
it is at the usual level of rewards, it gives no reason to explore. If an observed value equals this stand-in, the
stand-in moves to the next floating-point number, so that the two stay distinct.

**Evidence.** A new value counts with the probability of *something new*. The density of its number is left out, because
it is the same for all models under comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.dirichlet import dirichlet
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import uniform
from bamdp._parameters import WHOLE, choice, parameter, positive_number, real_number
from bamdp.beliefs.arrays import reward_posterior
from bamdp.beliefs.base import PAIR_OR_NEXT, RewardModel, bounds_parameter
from bamdp.beliefs.rewards.cells import (
    FREE,
    LOGGED,
    LOGGED_CELL,
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

MOST_VALUES = 10_000


@stored_in_cells
@reward_posterior(learned=("cells", "values", "known"))
class ValuesPosterior(NamedTuple):
    """Posterior of finitely many values. A cell counts the V values, new values and all rewards."""

    cells: Cells
    values: np.ndarray  # float64 [V + 1]: seen values come first; the last entry is the stand-in
    known: np.ndarray  # int64 [1]: K
    alpha: float  # c/V
    low: float  # bounds on rewards, infinite if unknown
    high: float
    share: np.ndarray  # float64 [V + 1] scratch
    last: np.ndarray  # float64 [1] scratch: the last pushed reward
    values_given: bool  # the values are known beforehand

    @property
    def n_outcomes(self) -> int:
        """The number of values, plus one for a new value."""
        return len(self.values)

    @property
    def independent_rows(self) -> bool:
        """True if the values are given; otherwise a new value changes the expectations of every row."""
        return self.values_given


@primitive
def _weight(R, cell, i):
    """Return the posterior count of the i-th value; i = V means a new value."""
    size = R.values.shape[0] - 1
    count = statistic(R.cells, cell, i)
    if i == size:
        return (size - R.known[0]) * R.alpha + count
    return R.alpha + count if i < R.known[0] else 0.0


@primitive
def _total(R, cell):
    """Return c + n."""
    size = R.values.shape[0] - 1
    return size * R.alpha + statistic(R.cells, cell, size + 1)


@primitive
def _place(R, r):
    """Return the index of a reward among the values; V for a new value or the stand-in."""
    for i in range(R.known[0]):
        if R.values[i] == r:
            return i
    return R.values.shape[0] - 1


@cell_mean.register(ValuesPosterior)
def _mean(R, row, cell):
    size = R.values.shape[0] - 1
    total = _weight(R, cell, size) * R.values[size]
    for i in range(R.known[0]):
        total += _weight(R, cell, i) * R.values[i]
    return total / _total(R, cell)


@cell_variance.register(ValuesPosterior)
def _variance(R, row, cell):
    size = R.values.shape[0] - 1
    mean = cell_mean(R, row, cell)
    total = _weight(R, cell, size) * (R.values[size] - mean) ** 2
    for i in range(R.known[0]):
        total += _weight(R, cell, i) * (R.values[i] - mean) ** 2
    count = _total(R, cell)
    return total / (count * (count + 1.0))


@cell_sample.register(ValuesPosterior)
def _sample(R, row, cell, rng):
    size = R.values.shape[0] - 1
    end = R.known[0]
    new = _weight(R, cell, size)
    smallest = new if new > 0.0 else np.inf
    for i in range(end):
        R.share[i] = _weight(R, cell, i)
        smallest = min(smallest, R.share[i])
    if new > 0.0:
        R.share[end] = new
        dirichlet(R.share, 0, end + 1, smallest, rng)
        new = R.share[end]
    else:
        dirichlet(R.share, 0, end, smallest, rng)
    total = new * R.values[size]
    for i in range(end):
        total += R.share[i] * R.values[i]
    return total


@verbs.draw_reward.register(ValuesPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    size = R.values.shape[0] - 1
    x = uniform(rng) * _total(R, cell)
    for i in range(R.known[0]):
        x -= _weight(R, cell, i)
        if x < 0.0:
            return R.values[i]
    return R.values[size] if _weight(R, cell, size) > 0.0 else R.values[R.known[0] - 1]


@verbs.push_reward.register(ValuesPosterior)
def _push(R, row, s2, r):
    R.last[0] = r
    cell = open_cell(R.cells, row, s2)
    if cell != FREE:
        R.cells.stats[cell, _place(R, r)] += 1.0
        R.cells.stats[cell, R.values.shape[0]] += 1.0


@verbs.commit_reward.register(ValuesPosterior)
def _commit(R, row):
    """Give a slot of its own to a value that was new when it was pushed."""
    size = R.values.shape[0] - 1
    cell = R.cells.log[R.cells.top[LOGGED] - 1, LOGGED_CELL]
    R.cells.top[LOGGED] = 0
    if cell == FREE or R.cells.stats[cell, size] == 0.0:
        return
    place = R.known[0]
    R.known[0] = place + 1
    R.values[place] = R.last[0]
    R.cells.stats[cell, place] = 1.0
    R.cells.stats[cell, size] = 0.0
    while _place(R, R.values[size]) != size:
        R.values[size] = np.nextafter(R.values[size], np.inf)


@verbs.reward_probability.register(ValuesPosterior)
def _probability(R, row, s2, r):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 1.0 if r == 0.0 else 0.0
    return _weight(R, cell, _place(R, r)) / _total(R, cell)


@verbs.outcome.register(ValuesPosterior)
def _outcome(R, row, s2, i):
    """Return the i-th value and its probability; the last one is a new value."""
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0, 1.0 if i == 0 else 0.0
    return R.values[i], _weight(R, cell, i) / _total(R, cell)


@is_valid.register
def _is_valid(R: ValuesPosterior) -> Any:
    stats, K, size = used_statistics(R.cells), int(R.known[0]), len(R.values) - 1
    values_fit = size >= K and len(np.unique(R.values[:K])) == K and (size == K or not R.values_given)
    counts_fit = (stats >= 0.0).all() and (stats[:, K : size + 1] == 0.0).all()
    return values_fit and counts_fit and (stats[:, : size + 1].sum(axis=1) == stats[:, size + 1]).all()


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
        lambda value, name: _distinct(value),
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
    by: str = choice(
        "pair",
        PAIR_OR_NEXT,
        help='what has probabilities of its own: ``"pair"``, (s, a), or ``"next"``, (s, a, s\')',
    )
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
        values = self.values or ()
        size = len(values) or self.max_values
        low, high = (min(values), max(values)) if values else self.limits
        numbers = np.zeros(size + 1)
        numbers[: len(values)] = values
        numbers[size] = self.unseen
        return ValuesPosterior(
            cells=empty_cells(n_states, n_actions, [0.0] * (size + 2), self.by == "next"),
            values=numbers,
            known=np.array([len(values)], np.int64),
            alpha=self.concentration / size,
            low=low,
            high=high,
            share=np.zeros(size + 1),
            last=np.zeros(1),
            values_given=self.values is not None,
        )

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
