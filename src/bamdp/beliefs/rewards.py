"""Reward models: what is believed about rewards, drawn and updated inside planning like transitions.

Learning models keep three running sums for each state-action pair (count, sum, sum of squares) in one array
layout, :class:`RewardSums`; each model reads from them what it needs. Old sums are logged before a push and
restored by the pop, so that undoing is exact to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import beta, uniform
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import RewardModel, with_room

N, SUM, SQUARES = 0, 1, 2  # columns of RewardSums.sums


@known
class KnownState(NamedTuple):
    """Rewards that are known: ``values[row * row_step + s2 * next_step]``."""

    values: np.ndarray  # float64 [S*A] or [S*A*S]
    row_mean: np.ndarray  # float64 [S*A]: average over next states, for the background mass
    next_step: int  # 0 when the reward does not depend on the next state
    row_step: int


@verbs.draw_reward.register(KnownState)
def _known_draw(R, row, s2, rng):
    return R.values[row * R.row_step + s2 * R.next_step]


@verbs.push_reward.register(KnownState)
def _known_push(R, row, s2, r):
    pass


@verbs.pop_reward.register(KnownState)
def _known_pop(R):
    pass


@primitive
def known_row(R, row, index, prob, begin, end, background):
    """E[r | row] for the transition row at ``begin:end``."""
    if R.next_step == 0:
        return R.values[row]
    total = background * R.row_mean[row]
    for i in range(begin, end):
        total += prob[i] * R.values[row * R.row_step + index[i]]
    return total


@verbs.sample_reward.register(KnownState)
def _known_sample(R, choice, row, index, prob, begin, end, background, rng):
    return known_row(R, row, index, prob, begin, end, background)


@verbs.expected_reward.register(KnownState)
def _known_expected(R, row, index, prob, begin, end, background):
    return known_row(R, row, index, prob, begin, end, background)


@verbs.reward_variance.register(KnownState)
def _known_variance(R, row):
    return 0.0


@verbs.reward_probability.register(KnownState)
def _known_probability(R, row, s2, r):
    return 1.0


@verbs.log_reward_probability.register(KnownState)
def _known_log_probability(R, row, s2, r):
    return 0.0


@verbs.commit_reward.register(KnownState)
def _known_commit(R, row):
    pass


@verbs.reward_range.register(KnownState)
def _known_range(R):
    low, high = R.values[0], R.values[0]
    for i in range(R.values.shape[0]):
        low = min(low, R.values[i])
        high = max(high, R.values[i])
    return low, high


@verbs.n_outcomes.register(KnownState)
def _known_n(R):
    return 1


@verbs.outcome.register(KnownState)
def _known_outcome(R, row, s2, i):
    return R.values[row * R.row_step + s2 * R.next_step], 1.0


@with_room.register(KnownState)
def _known_room(R: KnownState, depth: int) -> KnownState:
    return R


@known
@dataclass(frozen=True, eq=False)
class KnownRewards(RewardModel):
    """Rewards are known, as in the paper's experiments: ``[S]``, ``[S, A]`` or ``[S, A, S]``.

    Observed rewards are not checked against them: they may be noisy versions of these expectations.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(2, 1, rewards=KnownRewards([0.0, 1.0]))
    >>> belief.expected_reward(1, 0)
    1.0
    """

    rewards: Any

    def __post_init__(self) -> None:
        array = _checks.numbers(self.rewards, "rewards")
        if array.ndim not in (1, 2, 3):
            raise ValueError(f"rewards must be [S], [S, A] or [S, A, S], got {array.ndim} dimensions")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            raise ValueError(f"rewards{bad[0].tolist()} is {array[tuple(bad[0])]}; rewards must be finite")
        array.setflags(write=False)
        object.__setattr__(self, "rewards", array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownRewards) and np.array_equal(self.rewards, other.rewards)

    def __hash__(self) -> int:
        return hash(self.rewards.tobytes())

    def state(self, n_states: int, n_actions: int) -> KnownState:
        array: np.ndarray = self.rewards
        full = (n_states, n_actions, n_states)
        if array.shape != full[: array.ndim]:
            raise ValueError(
                f"rewards have shape {list(array.shape)}, which fits none of [S], [S, A], [S, A, S] for "
                f"S={n_states}, A={n_actions}"
            )
        if array.ndim == 1:
            array = np.repeat(array[:, None], n_actions, axis=1)
        by_next = array.ndim == 3
        return KnownState(
            values=np.array(array).ravel(),
            row_mean=array.mean(axis=2).ravel() if by_next else np.array(array).ravel(),
            next_step=1 if by_next else 0,
            row_step=n_states if by_next else 1,
        )


@known
class RewardSums(NamedTuple):
    """Running sums of the rewards of each pair, with an undo log."""

    sums: np.ndarray  # float64 [S*A, 3]: count, sum, sum of squares
    log: np.ndarray  # float64 [depth, 4]: row, old count, old sum, old sum of squares
    top: np.ndarray  # int64 [1]


def empty_sums(n_rows: int) -> RewardSums:
    """No reward seen."""
    return RewardSums(np.zeros((n_rows, 3)), np.zeros((64, 4)), np.zeros(1, np.int64))


def with_sums_room(sums: RewardSums, depth: int) -> RewardSums:
    """The same sums with room for ``depth`` more pushes."""
    depth += int(sums.top[0])
    if depth <= len(sums.log):
        return sums
    log = np.zeros((max(depth, 2 * len(sums.log)), 4))
    log[: len(sums.log)] = sums.log
    return sums._replace(log=log)


@primitive
def push_sums(sums, row, r):
    """Add a reward."""
    at = sums.top[0]
    sums.log[at, 0] = row
    for i in range(3):
        sums.log[at, i + 1] = sums.sums[row, i]
    sums.top[0] = at + 1
    sums.sums[row, N] += 1.0
    sums.sums[row, SUM] += r
    sums.sums[row, SQUARES] += r * r


@primitive
def pop_sums(sums):
    """Undo the last push."""
    at = sums.top[0] - 1
    sums.top[0] = at
    row = np.int64(sums.log[at, 0])
    for i in range(3):
        sums.sums[row, i] = sums.log[at, i + 1]


@known
class BetaState(NamedTuple):
    """Posterior of Bernoulli rewards, one success probability for each pair."""

    sums: RewardSums
    a: float
    b: float


@primitive
def _success(R, row):
    """The posterior mean of the success probability."""
    return (R.a + R.sums.sums[row, SUM]) / (R.a + R.b + R.sums.sums[row, N])


@primitive
def _failure(R, row):
    """One minus the posterior mean, without cancellation."""
    n = R.sums.sums[row, N]
    return (R.b + (n - R.sums.sums[row, SUM])) / (R.a + R.b + n)


@verbs.draw_reward.register(BetaState)
def _beta_draw(R, row, s2, rng):
    return 1.0 if uniform(rng) < _success(R, row) else 0.0


@verbs.push_reward.register(BetaState)
def _beta_push(R, row, s2, r):
    push_sums(R.sums, row, r)


@verbs.pop_reward.register(BetaState)
def _beta_pop(R):
    pop_sums(R.sums)


@verbs.sample_reward.register(BetaState)
def _beta_sample(R, choice, row, index, prob, begin, end, background, rng):
    wins = R.sums.sums[row, SUM]
    return beta(rng, R.a + wins, R.b + R.sums.sums[row, N] - wins)


@verbs.expected_reward.register(BetaState)
def _beta_expected(R, row, index, prob, begin, end, background):
    return _success(R, row)


@verbs.reward_variance.register(BetaState)
def _beta_variance(R, row):
    p = _success(R, row)
    return p * (1.0 - p) / (R.a + R.b + R.sums.sums[row, N] + 1.0)


@verbs.reward_probability.register(BetaState)
def _beta_probability(R, row, s2, r):
    return _success(R, row) if r == 1.0 else _failure(R, row)


@verbs.log_reward_probability.register(BetaState)
def _beta_log_probability(R, row, s2, r):
    return math.log(verbs.reward_probability(R, row, s2, r))


@verbs.commit_reward.register(BetaState)
def _beta_commit(R, row):
    R.sums.top[0] = 0


@verbs.reward_range.register(BetaState)
def _beta_range(R):
    return 0.0, 1.0


@verbs.n_outcomes.register(BetaState)
def _beta_n(R):
    return 2


@verbs.outcome.register(BetaState)
def _beta_outcome(R, row, s2, i):
    return (1.0, _success(R, row)) if i == 1 else (0.0, _failure(R, row))


@with_room.register(BetaState)
def _beta_room(R: BetaState, depth: int) -> BetaState:
    return R._replace(sums=with_sums_room(R.sums, depth))


@known
@dataclass(frozen=True, kw_only=True)
class BetaBernoulli(RewardModel):
    """Rewards are 0 or 1, each pair with its own unknown probability, Beta(a, b) before data.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet().belief(1, 2, rewards=BetaBernoulli(a=1.0, b=1.0))
    >>> belief.observe(0, 1, 1.0, 0)
    >>> round(belief.expected_reward(0, 1), 4)
    0.6667
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _checks.real(self.a, "a", low=0.0, open_low=True)
        _checks.real(self.b, "b", low=0.0, open_low=True)

    def state(self, n_states: int, n_actions: int) -> BetaState:
        return BetaState(empty_sums(n_states * n_actions), float(self.a), float(self.b))

    def check(self, reward: float) -> None:
        if reward not in (0.0, 1.0):
            raise ValueError(
                f"BetaBernoulli rewards are 0 or 1, got {reward}; rescale them or use another model"
            )


def as_reward_model(rewards: RewardModel | ArrayLike) -> RewardModel:
    """A reward model, from one or from an array of known rewards."""
    return rewards if isinstance(rewards, RewardModel) else KnownRewards(rewards)
