"""Rewards of 0 or 1, with a Beta posterior for each success probability.

After n rewards of a cell, w of them 1,

    p ~ Beta(a + w, b + n − w),        P(next is 1) = (a + w) / (a + b + n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import beta, uniform
from bamdp._parameters import choice, positive_number
from bamdp.beliefs.arrays import reward_posterior
from bamdp.beliefs.base import PAIR_OR_NEXT, RewardModel
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

N_TRIALS, N_WINS = 0, 1  # statistics of a cell


@stored_in_cells
@reward_posterior(n_outcomes=2, reward_range=(0.0, 1.0))
class BetaPosterior(NamedTuple):
    """Posterior of Bernoulli rewards."""

    cells: Cells
    a: float
    b: float


@primitive
def _success(R, cell):
    """Return the posterior mean of the success probability."""
    return (R.a + statistic(R.cells, cell, N_WINS)) / (R.a + R.b + statistic(R.cells, cell, N_TRIALS))


@primitive
def _failure(R, cell):
    """Return one minus the posterior mean, computed without cancellation."""
    n = statistic(R.cells, cell, N_TRIALS)
    return (R.b + (n - statistic(R.cells, cell, N_WINS))) / (R.a + R.b + n)


@cell_mean.register(BetaPosterior)
def _mean(R, row, cell):
    return _success(R, cell)


@cell_variance.register(BetaPosterior)
def _variance(R, row, cell):
    p = _success(R, cell)
    return p * (1.0 - p) / (R.a + R.b + statistic(R.cells, cell, N_TRIALS) + 1.0)


@cell_sample.register(BetaPosterior)
def _sample(R, row, cell, rng):
    wins = statistic(R.cells, cell, N_WINS)
    return beta(rng, R.a + wins, R.b + statistic(R.cells, cell, N_TRIALS) - wins)


@verbs.draw_reward.register(BetaPosterior)
def _draw(R, row, s2, rng):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return 0.0
    return 1.0 if uniform(rng) < _success(R, cell) else 0.0


@verbs.push_reward.register(BetaPosterior)
def _push(R, row, s2, r):
    cell = open_cell(R.cells, row, s2)
    if cell != FREE:
        R.cells.stats[cell, N_TRIALS] += 1.0
        R.cells.stats[cell, N_WINS] += r


@verbs.reward_probability.register(BetaPosterior)
def _probability(R, row, s2, r):
    return verbs.outcome(R, row, s2, 1 if r == 1.0 else 0)[1]


@verbs.outcome.register(BetaPosterior)
def _outcome(R, row, s2, i):
    cell = find_cell(R.cells, row, s2)
    if cell == FREE:
        return (1.0, 0.0) if i == 1 else (0.0, 1.0)
    return (1.0, _success(R, cell)) if i == 1 else (0.0, _failure(R, cell))


@is_valid.register
def _is_valid(R: BetaPosterior) -> Any:
    n, wins = used_statistics(R.cells).T
    return (wins >= 0.0) & (wins <= n)


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
    by: str = choice(
        "pair",
        PAIR_OR_NEXT,
        help='what has a probability of its own: ``"pair"``, (s, a), or ``"next"``, (s, a, s\')',
    )

    def posterior(self, n_states: int, n_actions: int) -> BetaPosterior:
        cells = empty_cells(n_states, n_actions, [0.0, 0.0], self.by == "next")
        return BetaPosterior(cells, float(self.a), float(self.b))

    def check(self, reward: float) -> None:
        if reward not in (0.0, 1.0):
            raise ValueError(
                f"BetaBernoulli rewards are 0 or 1, got {reward}; rescale them or use NormalGamma or FiniteRewards"
            )
