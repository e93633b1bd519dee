"""Known rewards, as in the paper's experiments, and rewards that are known for each model of a finite set.

If the models of :class:`~bamdp.FiniteModels` differ in their rewards and no reward model is given, rewards are
evidence, too: a reward rules out every model that does not pay it (rewards within ``SAME_REWARD`` count as equal). The
reward posterior shares its weights with the transition posterior, so that they combine both kinds of evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.jit import primitive
from bamdp.beliefs.base import RewardModel, Weights, fix_zero_reward, reward_posterior
from bamdp.beliefs.kernels import draw_weighted, normalise_weights, restore_weights, save_weights

SAME_REWARD = 1e-9


@reward_posterior(certain=True, n_outcomes=1, learned=())
class KnownPosterior(NamedTuple):
    """Known rewards: ``values[row * row_step + s2 * next_step]``."""

    values: np.ndarray  # float64 [S*A] or [S*A*S]
    row_mean: np.ndarray  # float64 [S*A]: average over next states, for the background mass
    next_step: int  # 0 if rewards do not depend on the next state
    row_step: int

    @property
    def by_next_state(self) -> bool:
        """True if rewards depend on the next state."""
        return self.next_step == 1

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and highest reward."""
        return float(self.values.min()), float(self.values.max())

    def draw_reward(R, row, s2, rng):
        return R.values[row * R.row_step + s2 * R.next_step]

    def push_reward(R, row, s2, r):
        pass

    def pop_reward(R):
        pass

    def expected_reward(R, row, index, prob, begin, end, background):
        if R.next_step == 0:
            return R.values[row]
        total = background * R.row_mean[row]
        for i in range(begin, end):
            total += prob[i] * R.values[row * R.row_step + index[i]]
        return total

    def sample_reward(R, choice, row, index, prob, begin, end, background, rng):
        return verbs.expected_reward(R, row, index, prob, begin, end, background)

    def reward_variance(R, row, index, prob, begin, end, background):
        return 0.0

    def log_reward_probability(R, row, s2, r):
        return 0.0

    def commit_reward(R, row):
        pass

    def outcome(R, row, s2, i):
        return R.values[row * R.row_step + s2 * R.next_step], 1.0


@fix_zero_reward.register(KnownPosterior)
def _fix_zero_reward(R: KnownPosterior, row: int) -> None:
    R.values[row * R.row_step : (row + 1) * R.row_step] = 0.0
    R.row_mean[row] = 0.0


@dataclass(frozen=True, eq=False)
class KnownRewards(RewardModel):
    """Known rewards, as in the paper's experiments: an array ``[S]``, ``[S, A]`` or ``[S, A, S]``.

    The array holds expectations. Observed rewards are not checked against it, because they may be noisy.

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

    def __repr__(self) -> str:
        values = f", from {self.rewards.min():g} to {self.rewards.max():g}" if self.rewards.size else ""
        return f"KnownRewards(array{list(self.rewards.shape)}{values})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownRewards) and np.array_equal(self.rewards, other.rewards)

    def __hash__(self) -> int:
        return hash(self.rewards.tobytes())

    def posterior(self, n_states: int, n_actions: int) -> KnownPosterior:
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
        return KnownPosterior(
            values=np.array(array).ravel(),
            row_mean=array.mean(axis=2).ravel() if by_next else np.array(array).ravel(),
            next_step=1 if by_next else 0,
            row_step=n_states if by_next else 1,
        )


# --- rewards that differ between the models of FiniteModels ---------------------------------------------------


@reward_posterior(
    shares_weights=True, independent_rows=False, learned=()
)  # the transition posterior saves weights
class ModelRewardsPosterior(NamedTuple):
    """Rewards of each model m: ``values[m, row * row_step + s2 * next_step]``."""

    weights: Weights  # log_p and p are shared with the transition posterior, log and top are not
    values: np.ndarray  # float64 [L, S*A] or [L, S*A*S]
    expected: np.ndarray  # float64 [L, S*A]: E_m[r | row]
    next_step: int
    row_step: int

    @property
    def by_next_state(self) -> bool:
        """True if rewards depend on the next state."""
        return self.next_step == 1

    @property
    def n_outcomes(self) -> int:
        """The number of models, since each may pay a different reward."""
        return len(self.weights.p)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and highest reward of any model."""
        return float(self.values.min()), float(self.values.max())

    def draw_reward(R, row, s2, rng):
        return _pays(R, draw_weighted(R.weights, rng), row, s2)

    def draw_model_reward(R, choice, row, s2, rng):
        return _pays(R, choice, row, s2)

    def push_reward(R, row, s2, r):
        save_weights(R.weights)
        for m in range(R.weights.log_p.shape[0]):
            if abs(_pays(R, m, row, s2) - r) > SAME_REWARD:
                R.weights.log_p[m] = -np.inf
        normalise_weights(R.weights)

    def pop_reward(R):
        restore_weights(R.weights)

    def commit_reward(R, row):
        R.weights.top[0] = 0

    def sample_reward(R, choice, row, index, prob, begin, end, background, rng):
        return R.expected[choice, row]

    def expected_reward(R, row, index, prob, begin, end, background):
        total = 0.0
        for m in range(R.weights.p.shape[0]):
            total += R.weights.p[m] * R.expected[m, row]
        return total

    def reward_variance(R, row, index, prob, begin, end, background):
        mean, square = 0.0, 0.0
        for m in range(R.weights.p.shape[0]):
            mean += R.weights.p[m] * R.expected[m, row]
            square += R.weights.p[m] * R.expected[m, row] ** 2
        return max(0.0, square - mean * mean)

    def log_reward_probability(R, row, s2, r):
        total = -np.inf
        for m in range(R.weights.log_p.shape[0]):
            if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
                total = np.logaddexp(total, R.weights.log_p[m])
        return total

    def outcome(R, row, s2, i):
        """Return the reward of model i and the total weight of all models that pay it; 0 if an earlier model does."""
        r = _pays(R, i, row, s2)
        for m in range(i):
            if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
                return r, 0.0
        return r, math.exp(verbs.log_reward_probability(R, row, s2, r))


@dataclass(frozen=True)
class ModelRewards(RewardModel):
    """Rewards of the models of :class:`~bamdp.FiniteModels`, which serve as evidence for the models."""

    comes_with_prior: ClassVar[bool] = True

    def posterior(self, n_states: int, n_actions: int) -> Any:
        raise TypeError("the rewards of models come with their prior: FiniteModels(...).belief(...)")


@primitive
def _pays(R, m, row, s2):
    return R.values[m, row * R.row_step + s2 * R.next_step]
