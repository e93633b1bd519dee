"""A finite set of explicit models, with a posterior of one weight per model.

Rows are not independent: one transition is informative about the whole model. The posterior weight of model m is
proportional to its prior weight times the likelihood of the data under m. Weights are stored as logarithms, so that no
model is lost to underflow, and old weights are logged so that updates can be undone.

If the models differ in their rewards and no reward model is given, rewards are evidence too: a reward rules out every
model that does not pay it (rewards within ``SAME_REWARD`` count as equal). The reward posterior shares its weight
arrays with the transition posterior, so the weights combine both kinds of evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import Space
from bamdp.beliefs.arrays import reward_posterior, shared_weights, transition_posterior
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.rewards.known import KnownRewards
from bamdp.beliefs.transitions.mixture import (
    Weights,
    draw_weighted,
    log_sum,
    merge_entries,
    merge_moments,
    new_weights,
    normalise_weights,
    restore_weights,
    save_weights,
)
from bamdp.mdp.build import read_space, used_rows
from bamdp.mdp.model import FiniteMDP

SAME_REWARD = 1e-9


@transition_posterior(learned=("weights",))
class FinitePosterior(NamedTuple):
    """The concatenated rows of all models, and the weights of the models."""

    weights: Weights
    span: np.ndarray  # int64 [L, S*A, 2]
    index: np.ndarray  # type: ignore[assignment]  # int32 [entries]
    prob: np.ndarray  # float64 [entries]
    background: np.ndarray  # float64 [L, S*A]
    sums: np.ndarray  # float64 [S] scratch of mean_row
    n_states: int


@primitive
def model_probability(T, m, row, s2):
    """Return P_m(s2 | row)."""
    p = T.background[m, row] / T.n_states
    for i in range(T.span[m, row, 0], T.span[m, row, 1]):
        if T.index[i] == s2:
            p += T.prob[i]
    return p


@verbs.draw.register(FinitePosterior)
def _draw(T, row, rng):
    m = draw_weighted(T.weights, rng)
    x = uniform(rng)
    begin, end = T.span[m, row, 0], T.span[m, row, 1]
    for i in range(begin, end):
        x -= T.prob[i]
        if x < 0.0:
            return np.int64(T.index[i])
    if T.background[m, row] > 0.0:
        return below(rng, T.n_states)
    return np.int64(T.index[end - 1])


@verbs.push.register(FinitePosterior)
def _push(T, row, s2):
    save_weights(T.weights)
    for m in range(T.weights.log.shape[0]):
        p = model_probability(T, m, row, s2)
        T.weights.log[m] += math.log(p) if p > 0.0 else -np.inf
    normalise_weights(T.weights)


@verbs.pop.register(FinitePosterior)
def _pop(T):
    restore_weights(T.weights)


@verbs.probability.register(FinitePosterior)
def _probability(T, row, s2):
    p = 0.0
    for m in range(T.weights.now.shape[0]):
        p += T.weights.now[m] * model_probability(T, m, row, s2)
    return p


@verbs.log_probability.register(FinitePosterior)
def _log_probability(T, row, s2):
    total = -np.inf
    for m in range(T.weights.log.shape[0]):
        p = model_probability(T, m, row, s2)
        if p > 0.0:
            total = log_sum(total, T.weights.log[m] + math.log(p))
    return total


@verbs.choose.register(FinitePosterior)
def _choose(T, rng):
    return draw_weighted(T.weights, rng)


@verbs.sample_row.register(FinitePosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    begin, end = T.span[choice, row, 0], T.span[choice, row, 1]
    for i in range(begin, end):
        index[at + i - begin] = T.index[i]
        prob[at + i - begin] = T.prob[i]
    return at + end - begin, T.background[choice, row]


@verbs.most_entries.register(FinitePosterior)
def _most_entries(T, n_states):
    return T.weights.log.shape[0] * n_states + 1


@verbs.mean_row.register(FinitePosterior)
def _mean_row(T, row, index, prob, at):
    end = at
    background = 0.0
    for m in range(T.weights.now.shape[0]):
        weight = T.weights.now[m]
        if weight == 0.0:
            continue
        begin, stop = T.span[m, row, 0], T.span[m, row, 1]
        for i in range(begin, stop):
            index[end] = T.index[i]
            prob[end] = weight * T.prob[i]
            end += 1
        background += weight * T.background[m, row]
    return merge_entries(index, prob, at, end, T.sums), background


@verbs.moments_row.register(FinitePosterior)
def _moments_row(T, row, index, mean, variance, at):
    end = at
    rest, rest_square = 0.0, 0.0
    for m in range(T.weights.now.shape[0]):
        weight = T.weights.now[m]
        if weight == 0.0:
            continue
        begin, stop = T.span[m, row, 0], T.span[m, row, 1]
        share = T.background[m, row] / T.n_states
        for i in range(begin, stop):
            index[end] = T.index[i]
            mean[end] = weight * T.prob[i]
            variance[end] = weight * T.prob[i] * (T.prob[i] + 2.0 * share)
            end += 1
        rest += weight * share
        rest_square += weight * share * share
    return merge_moments(index, mean, variance, at, end, rest, rest_square, T.sums)


@verbs.commit.register(FinitePosterior)
def _commit(T, row):
    T.weights.top[0] = 0


@shared_weights.register(FinitePosterior)
def _shared_weights(T: FinitePosterior) -> list[Weights]:
    return [T.weights]


# --- rewards that come with the models and differ between them ------------------------------------------------


@reward_posterior(
    shares_weights=True, independent_rows=False, learned=()
)  # the weights belong to the transition posterior
class ModelRewardsPosterior(NamedTuple):
    """Rewards of each model m: ``values[m, row * row_step + s2 * next_step]``."""

    weights: Weights  # log and now are shared with the transition posterior, past and top are not
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
        return len(self.weights.now)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and highest reward of any model."""
        return float(self.values.min()), float(self.values.max())


@dataclass(frozen=True)
class ModelRewards(RewardModel):
    """Rewards of the models of :class:`~bamdp.FiniteModels`, which serve as evidence for the models."""

    comes_with_prior: ClassVar[bool] = True

    def posterior(self, n_states: int, n_actions: int) -> Any:
        raise TypeError("the rewards of models come with their prior: FiniteModels(...).belief(...)")

    def refusal(self, reward: float) -> None:
        """Return None: it is the transition together with its reward that is impossible."""
        return


@primitive
def _pays(R, m, row, s2):
    return R.values[m, row * R.row_step + s2 * R.next_step]


@verbs.draw_reward.register(ModelRewardsPosterior)
def _draw_reward(R, row, s2, rng):
    return _pays(R, draw_weighted(R.weights, rng), row, s2)


@verbs.draw_model_reward.register(ModelRewardsPosterior)
def _draw_model_reward(R, choice, row, s2, rng):
    return _pays(R, choice, row, s2)


@verbs.push_reward.register(ModelRewardsPosterior)
def _push_reward(R, row, s2, r):
    save_weights(R.weights)
    for m in range(R.weights.log.shape[0]):
        if abs(_pays(R, m, row, s2) - r) > SAME_REWARD:
            R.weights.log[m] = -np.inf
    normalise_weights(R.weights)


@verbs.pop_reward.register(ModelRewardsPosterior)
def _pop_reward(R):
    restore_weights(R.weights)


@verbs.sample_reward.register(ModelRewardsPosterior)
def _sample_reward(R, choice, row, index, prob, begin, end, background, rng):
    return R.expected[choice, row]


@verbs.expected_reward.register(ModelRewardsPosterior)
def _expected_reward(R, row, index, prob, begin, end, background):
    total = 0.0
    for m in range(R.weights.now.shape[0]):
        total += R.weights.now[m] * R.expected[m, row]
    return total


@verbs.reward_variance.register(ModelRewardsPosterior)
def _reward_variance(R, row, index, prob, begin, end, background):
    mean, square = 0.0, 0.0
    for m in range(R.weights.now.shape[0]):
        mean += R.weights.now[m] * R.expected[m, row]
        square += R.weights.now[m] * R.expected[m, row] ** 2
    return max(0.0, square - mean * mean)


@verbs.reward_probability.register(ModelRewardsPosterior)
def _reward_probability(R, row, s2, r):
    total = 0.0
    for m in range(R.weights.now.shape[0]):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            total += R.weights.now[m]
    return total


@verbs.log_reward_probability.register(ModelRewardsPosterior)
def _log_reward_probability(R, row, s2, r):
    total = -np.inf
    for m in range(R.weights.log.shape[0]):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            total = log_sum(total, R.weights.log[m])
    return total


@verbs.commit_reward.register(ModelRewardsPosterior)
def _commit_reward(R, row):
    R.weights.top[0] = 0


@verbs.outcome.register(ModelRewardsPosterior)
def _outcome(R, row, s2, i):
    """Return the reward of model i and the total weight of all models that pay it, 0 if an earlier one does."""
    r = _pays(R, i, row, s2)
    for m in range(i):
        if abs(_pays(R, m, row, s2) - r) <= SAME_REWARD:
            return r, 0.0
    return r, verbs.reward_probability(R, row, s2, r)


# --- the prior ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FiniteModels(Prior):
    """A finite set of models that contains the true one.

    Parameters
    ----------
    mdps
        Models with the same numbers of states and actions.
    weights
        Their prior probabilities, up to a common factor; equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> stay = FiniteMDP(np.eye(2)[:, None, :], np.zeros(2))
    >>> swap = FiniteMDP(np.eye(2)[::-1, None, :].copy(), np.zeros(2))
    >>> belief = FiniteModels([stay, swap]).belief(2, 1)
    >>> belief.observe(0, 0, 0.0, 1)
    >>> belief.predictive(1, 0)
    array([1., 0.])
    """

    mdps: Sequence[FiniteMDP]
    weights: Sequence[float] | None = None
    result_version: ClassVar[int] = 2  # incremented if planners' results change with this prior only

    def __post_init__(self) -> None:
        mdps = tuple(self.mdps) if isinstance(self.mdps, Iterable) else ()
        if not mdps or not all(isinstance(mdp, FiniteMDP) for mdp in mdps):
            raise TypeError("mdps must be a list of one or more FiniteMDP models")
        shapes = {(mdp.n_states, mdp.n_actions) for mdp in mdps}
        if len(shapes) > 1:
            raise ValueError(f"the models differ in their numbers of states and actions: {sorted(shapes)}")
        object.__setattr__(self, "mdps", mdps)
        object.__setattr__(self, "weights", _checks.weights(self.weights, len(mdps)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteModels) and (self.mdps, self.weights) == (other.mdps, other.weights)

    def __hash__(self) -> int:
        return hash((len(self.mdps), self.weights))

    def __repr__(self) -> str:
        return f"FiniteModels({len(self.mdps)} models, weights={self.weights})"

    def posterior(self, n_states: int, n_actions: int) -> FinitePosterior:
        first = self.mdps[0]
        if (first.n_states, first.n_actions) != (n_states, n_actions):
            raise ValueError(
                f"the models have {first.n_states} states and {first.n_actions} actions, the world has "
                f"{n_states} and {n_actions}"
            )
        sizes = [0, *np.cumsum([len(mdp.rows.index) for mdp in self.mdps])]
        return FinitePosterior(
            weights=new_weights(np.array(self.weights)),
            span=np.array([mdp.rows.span + size for mdp, size in zip(self.mdps, sizes)], np.int64),
            index=np.concatenate([mdp.rows.index for mdp in self.mdps]),
            prob=np.concatenate([mdp.rows.prob for mdp in self.mdps]),
            background=np.array([mdp.rows.background for mdp in self.mdps]),
            sums=np.zeros(n_states),
            n_states=n_states,
        )

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return the space of the models, which must agree; arguments may add terminal states and remove actions."""
        mine = self.mdps[0].space
        if any(not np.array_equal(x, y) for mdp in self.mdps for x, y in zip(mdp.space, mine)):
            raise ValueError("the models must agree on terminal states and on the actions that exist")
        terminal = mine.terminal if terminal is None else terminal
        action_mask = mine.allowed if action_mask is None else action_mask
        space = read_space(n_states, n_actions, terminal, action_mask)
        lost = np.argwhere(used_rows(space) & ~used_rows(mine))
        if len(lost):
            s, a = divmod(int(lost[0, 0]), n_actions)
            raise ValueError(
                f"the models say nothing about state {s}, action {a}; mark the state terminal or the action "
                "missing, as they do"
            )
        return space

    def rewards_of_models(self, n_states: int, n_actions: int, transitions: Any) -> tuple[RewardModel, Any]:
        """Return the rewards of the models: known rewards if all agree, otherwise rewards that serve as evidence."""
        rewards = [mdp.rewards for mdp in self.mdps]
        if any(r.ndim == 3 for r in rewards):
            full = (n_states, n_actions, n_states)
            rewards = [np.broadcast_to(r.reshape(*r.shape, *(1,) * (3 - r.ndim)), full) for r in rewards]
        known = [KnownRewards(r).posterior(n_states, n_actions) for r in rewards]
        if all(np.array_equal(k.values, known[0].values) for k in known):
            return KnownRewards(rewards[0]), known[0]
        weights = transitions.weights
        return ModelRewards(), ModelRewardsPosterior(
            weights=weights._replace(past=np.zeros_like(weights.past), top=np.zeros(1, np.int64)),
            values=np.array([k.values for k in known]),
            expected=np.array([mdp.rows.reward for mdp in self.mdps]),
            next_step=known[0].next_step,
            row_step=known[0].row_step,
        )
