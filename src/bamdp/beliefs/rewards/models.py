"""Rewards that come with the models of a finite set and differ between them.

A reward is then evidence: a model that does not give it is ruled out (rewards within ``SAME_REWARD`` count as
equal). The weights are the very arrays of the transition belief, so both kinds of evidence meet in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.jit import primitive
from bamdp._serial import saveable
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import reward_posterior, with_room
from bamdp.beliefs.base import RewardModel
from bamdp.beliefs.rewards.known import KnownRewards
from bamdp.beliefs.transitions.weights import (
    Weights,
    draw_weighted,
    log_sum,
    normalise_weights,
    restore_weights,
    save_weights,
    with_weights_room,
)

SAME_REWARD = 1e-9


@reward_posterior(shares_weights=True, independent_rows=False)
class ModelRewardsState(NamedTuple):
    """``values[m, row * row_step + s2 * next_step]`` is what model m pays."""

    weights: Weights  # log and now are shared with the transition belief, past and top are its own
    values: np.ndarray  # float64 [L, S*A] or [L, S*A*S]
    expected: np.ndarray  # float64 [L, S*A]: E_m[r | row]
    next_step: int
    row_step: int

    @property
    def by_next_state(self) -> bool:
        """Whether rewards depend on the next state."""
        return self.next_step == 1

    @property
    def n_outcomes(self) -> int:
        """The number of models, each of which pays its own reward."""
        return len(self.weights.now)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward of any model."""
        return float(self.values.min()), float(self.values.max())


@saveable
@dataclass(frozen=True)
class ModelRewards(RewardModel):
    """Rewards are those of the models of :class:`~bamdp.FiniteModels`, and evidence for them."""

    def state(self, n_states: int, n_actions: int) -> Any:
        raise TypeError("the rewards of models come with their prior: FiniteModels(...).belief(...)")

    def refusal(self, reward: float) -> None:
        """None: what is impossible is the transition together with its reward."""
        return


def rewards_of_models(
    rewards: Sequence[np.ndarray], expected: Sequence[np.ndarray], weights: Weights
) -> tuple[RewardModel, Any]:
    """Return the reward model of models with these rewards, and its posterior; simply known rewards if all agree."""
    n_states, n_actions = expected[0].shape
    known = [KnownRewards(r).state(n_states, n_actions) for r in rewards]
    if all(np.array_equal(k.values, known[0].values) for k in known):
        return KnownRewards(rewards[0]), known[0]
    if len({k.next_step for k in known}) > 1:
        full = (n_states, n_actions, n_states)
        wide = [
            np.broadcast_to(k.values.reshape(full[: 2 + k.next_step]).reshape(n_states, n_actions, -1), full)
            for k in known
        ]
        return rewards_of_models(wide, expected, weights)
    posterior = ModelRewardsState(
        weights=weights._replace(past=np.zeros_like(weights.past), top=np.zeros(1, np.int64)),
        values=np.array([k.values for k in known]),
        expected=np.array(expected).reshape(len(known), -1),
        next_step=known[0].next_step,
        row_step=known[0].row_step,
    )
    return ModelRewards(), posterior


@primitive
def _pays(R, m, row, s2):
    return R.values[m, row * R.row_step + s2 * R.next_step]


@verbs.draw_reward.register(ModelRewardsState)
def _draw(R, row, s2, rng):
    return _pays(R, draw_weighted(R.weights, rng), row, s2)


@verbs.draw_model_reward.register(ModelRewardsState)
def _draw_of_model(R, choice, row, s2, rng):
    return _pays(R, choice, row, s2)


@verbs.push_reward.register(ModelRewardsState)
def _push(R, row, s2, r):
    save_weights(R.weights)
    for m in range(R.weights.log.shape[0]):
        if abs(_pays(R, m, row, s2) - r) > SAME_REWARD:
            R.weights.log[m] = -np.inf
    normalise_weights(R.weights)


@verbs.pop_reward.register(ModelRewardsState)
def _pop(R):
    restore_weights(R.weights)


@verbs.sample_reward.register(ModelRewardsState)
def _sample(R, choice, row, index, prob, begin, end, background, rng):
    return R.expected[choice, row]


@verbs.expected_reward.register(ModelRewardsState)
def _expected(R, row, index, prob, begin, end, background):
    total = 0.0
    for m in range(R.weights.now.shape[0]):
        total += R.weights.now[m] * R.expected[m, row]
    return total


@verbs.reward_variance.register(ModelRewardsState)
def _variance(R, row, index, prob, begin, end, background):
    mean, square = 0.0, 0.0
    for m in range(R.weights.now.shape[0]):
        mean += R.weights.now[m] * R.expected[m, row]
        square += R.weights.now[m] * R.expected[m, row] ** 2
    return max(0.0, square - mean * mean)


@verbs.reward_probability.register(ModelRewardsState)
def _probability(R, row, s2, r):
    total = 0.0
    for m in range(R.weights.now.shape[0]):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            total += R.weights.now[m]
    return total


@verbs.log_reward_probability.register(ModelRewardsState)
def _log_probability(R, row, s2, r):
    total = -np.inf
    for m in range(R.weights.log.shape[0]):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            total = log_sum(total, R.weights.log[m])
    return total


@verbs.commit_reward.register(ModelRewardsState)
def _commit(R, row):
    R.weights.top[0] = 0


@verbs.outcome.register(ModelRewardsState)
def _outcome(R, row, s2, i):
    """Return the reward of model i, with the weight of all models that give it (0 if an earlier one does)."""
    r = _pays(R, i, row, s2)
    for m in range(i):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            return r, 0.0
    return r, verbs.reward_probability(R, row, s2, r)


@with_room.register(ModelRewardsState)
def _with_room(R: ModelRewardsState, depth: int) -> ModelRewardsState:
    return R._replace(weights=with_weights_room(R.weights, depth))
