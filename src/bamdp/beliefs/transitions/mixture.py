"""A mixture of priors: each component explains all the data, and the weights follow the evidence.

ν(s'|s,a) = Σ_c w_c ν_c(s'|s,a) with w_c ∝ prior weight × evidence of component c so far. The choice of prior matters
greatly in Bayes-adaptive planning, and a mixture lets the data choose among several priors. To sample a model, draw a
component first and then all rows from it. Every component keeps its own statistics.

Weights are stored as logarithms, so that none is lost to underflow. :mod:`bamdp.beliefs.transitions.finite` also uses
them, for mixtures whose components are single models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import literal_unroll
from numpy.typing import ArrayLike

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Space
from bamdp.beliefs.arrays import longer, reserve, shared_weights, transition_posterior
from bamdp.beliefs.base import Prior
from bamdp.beliefs.statistics import ROUNDING, Arrays, Saved, restored, statistics
from bamdp.mdp.build import read_space

# --- weights of alternatives ----------------------------------------------------------------------------------


class Weights(NamedTuple):
    """Normalised weights with an undo log; all arrays are updated in place."""

    log: np.ndarray  # float64 [L]: logarithms
    now: np.ndarray  # float64 [L]: the weights themselves
    past: np.ndarray  # float64 [depth, 2, L]: logarithms and weights before each push
    top: np.ndarray  # int64 [1]


def new_weights(weights: np.ndarray) -> Weights:
    """Return normalised weights from non-negative numbers, at least one of them positive."""
    share = weights / weights.sum()
    with np.errstate(divide="ignore"):
        return Weights(np.log(share), share, np.zeros((16, 2, len(share))), np.zeros(1, np.int64))


@reserve.register(Weights)
def _reserve(weights: Weights, depth: int) -> Weights:
    return weights._replace(past=longer(weights.past, depth + int(weights.top[0])))


@statistics.register
def _weight_statistics(weights: Weights, name: str) -> Arrays:
    """Return the logarithms of the weights and the weights themselves, float64 [2, L]."""
    return {name: np.array([weights.log, weights.now])}


@restored.register
def _restored_weights(fresh: Weights, saved: Saved) -> Weights:
    log, now = saved.array(np.zeros((2, len(fresh.now))), infinite=True)
    saved.require((log < ROUNDING) & (now >= 0.0) & (np.abs(np.exp(log) - now) < ROUNDING))
    saved.require(abs(now.sum() - 1.0) < ROUNDING * len(now))
    fresh.log[...], fresh.now[...] = log, now
    return fresh


@primitive
def draw_weighted(weights, rng):
    """Draw an index with probability equal to its weight."""
    x = uniform(rng)
    last = weights.now.shape[0] - 1
    for m in range(last):
        x -= weights.now[m]
        if x < 0.0:
            return m
    while last > 0 and weights.now[last] == 0.0:  # rounding must not select weight 0
        last -= 1
    return last


@primitive
def log_sum(total, x):
    """Return log(e^total + e^x), exact for -inf."""
    if x > total:
        total, x = x, total
    if x == -np.inf:
        return total
    return total + math.log1p(math.exp(x - total))


@primitive
def save_weights(weights):
    """Log the weights before they are changed."""
    at = weights.top[0]
    for m in range(weights.log.shape[0]):
        weights.past[at, 0, m] = weights.log[m]
        weights.past[at, 1, m] = weights.now[m]
    weights.top[0] = at + 1


@primitive
def normalise_weights(weights):
    """Shift the logarithms so that the weights sum to one, and recompute the weights."""
    highest = -np.inf
    for m in range(weights.log.shape[0]):
        highest = max(highest, weights.log[m])
    total = 0.0
    for m in range(weights.log.shape[0]):
        total += math.exp(weights.log[m] - highest)
    shift = highest + math.log(total)
    for m in range(weights.log.shape[0]):
        weights.log[m] -= shift
        weights.now[m] = math.exp(weights.log[m])


@primitive
def restore_weights(weights):
    """Undo the last change."""
    at = weights.top[0] - 1
    weights.top[0] = at
    for m in range(weights.log.shape[0]):
        weights.log[m] = weights.past[at, 0, m]
        weights.now[m] = weights.past[at, 1, m]


@primitive
def merge_entries(index, prob, at, end, sums):
    """Merge the entries of each state in order of first appearance; ``sums`` is zero before and after."""
    for i in range(at, end):
        sums[index[i]] += prob[i]
    kept = at
    for i in range(at, end):
        s2 = index[i]
        if sums[s2] != 0.0:
            index[kept] = s2
            prob[kept] = sums[s2]
            sums[s2] = 0.0
            kept += 1
    return kept


@primitive
def merge_moments(index, mean, square, at, end, rest, rest_square, sums):
    """Write the means and variances of a mixture's entries; return the same as :func:`verbs.moments_row`.

    ``mean`` and ``square`` hold the weighted first and second moments of the components' entries, minus the moments
    of unlisted entries, whose sums over components are ``rest`` and ``rest_square``; ``square`` becomes the variance.
    ``sums`` is zero before and after; in between it holds the position of each state.
    """
    kept = at
    for i in range(at, end):
        s2 = index[i]
        if sums[s2] == 0.0:
            index[kept] = s2
            mean[kept] = mean[i]
            square[kept] = square[i]
            kept += 1
            sums[s2] = kept - at
        else:
            j = at + np.int64(sums[s2]) - 1
            mean[j] += mean[i]
            square[j] += square[i]
    for i in range(at, kept):
        sums[index[i]] = 0.0
        mean[i] += rest
        square[i] = max(0.0, square[i] + rest_square - mean[i] * mean[i])
    return kept, rest, max(0.0, rest_square - rest * rest)


# --- mixtures -------------------------------------------------------------------------------------------------


@transition_posterior(learned=("weights", "parts"))
class MixturePosterior(NamedTuple):
    """The weights, and the posteriors of the components."""

    weights: Weights
    parts: tuple[Any, ...]
    sums: np.ndarray  # float64 [S] scratch of mean_row

    @property
    def changes(self) -> str:
        """The rows that a transition may change in any component."""
        return max((part.changes for part in self.parts), key=("row", "state", "all").index)

    @property
    def counts_transitions(self) -> bool:
        """True if all components count transitions."""
        return all(part.counts_transitions for part in self.parts)


# The components differ in type, so the compiler unrolls each loop (`literal_unroll`), one copy per component.


@verbs.draw.register(MixturePosterior)
def _draw(T, row, rng):
    chosen = draw_weighted(T.weights, rng)
    s2 = np.int64(0)
    c = 0
    for part in literal_unroll(T.parts):
        if c == chosen:
            s2 = verbs.draw(part, row, rng)
        c += 1
    return s2


@verbs.push.register(MixturePosterior)
def _push(T, row, s2):
    save_weights(T.weights)
    c = 0
    for part in literal_unroll(T.parts):
        if T.weights.log[c] > -np.inf:
            T.weights.log[c] += verbs.log_probability(part, row, s2)
        if T.weights.log[c] > -np.inf:  # a component that is ruled out learns nothing more (until the pop)
            verbs.push(part, row, s2)
        c += 1
    normalise_weights(T.weights)


@verbs.pop.register(MixturePosterior)
def _pop(T):
    c = 0
    for part in literal_unroll(T.parts):
        if T.weights.log[c] > -np.inf:
            verbs.pop(part)
        c += 1
    restore_weights(T.weights)


@verbs.probability.register(MixturePosterior)
def _probability(T, row, s2):
    total = 0.0
    c = 0
    for part in literal_unroll(T.parts):
        if T.weights.now[c] > 0.0:
            total += T.weights.now[c] * verbs.probability(part, row, s2)
        c += 1
    return total


@verbs.log_probability.register(MixturePosterior)
def _log_probability(T, row, s2):
    total = -np.inf
    c = 0
    for part in literal_unroll(T.parts):
        if T.weights.log[c] > -np.inf:
            total = log_sum(total, T.weights.log[c] + verbs.log_probability(part, row, s2))
        c += 1
    return total


@verbs.choose.register(MixturePosterior)
def _choose(T, rng):
    """Return a component and its own choice, encoded as one number."""
    chosen = draw_weighted(T.weights, rng)
    inner = np.int64(0)
    c = 0
    for part in literal_unroll(T.parts):
        if c == chosen:
            inner = np.int64(verbs.choose(part, rng))
        c += 1
    return inner * T.weights.log.shape[0] + chosen


@verbs.sample_row.register(MixturePosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    n_parts = T.weights.log.shape[0]
    chosen, inner = choice % n_parts, choice // n_parts
    end, background = np.int64(at), 0.0
    c = 0
    for part in literal_unroll(T.parts):
        if c == chosen:
            end, background = verbs.sample_row(part, inner, row, index, prob, at, rng)
        c += 1
    return end, background


@verbs.most_entries.register(MixturePosterior)
def _most_entries(T, n_states):
    total = 0
    for part in literal_unroll(T.parts):
        total += verbs.most_entries(part, n_states)
    return total


@verbs.mean_row.register(MixturePosterior)
def _mean_row(T, row, index, prob, at):
    end = np.int64(at)
    background = 0.0
    c = 0
    for part in literal_unroll(T.parts):
        weight = T.weights.now[c]
        if weight > 0.0:
            begin = end
            end, mass = verbs.mean_row(part, row, index, prob, begin)
            for i in range(begin, end):
                prob[i] *= weight
            background += weight * mass
        c += 1
    return np.int64(merge_entries(index, prob, at, end, T.sums)), background


@verbs.moments_row.register(MixturePosterior)
def _moments_row(T, row, index, mean, variance, at):
    end = np.int64(at)
    rest, rest_square = 0.0, 0.0
    c = 0
    for part in literal_unroll(T.parts):
        weight = T.weights.now[c]
        if weight > 0.0:
            begin = end
            end, p, v = verbs.moments_row(part, row, index, mean, variance, begin)
            for i in range(begin, end):
                variance[i] = weight * (variance[i] + mean[i] * mean[i] - v - p * p)
                mean[i] = weight * (mean[i] - p)
            rest += weight * p
            rest_square += weight * (v + p * p)
        c += 1
    return merge_moments(index, mean, variance, at, end, rest, rest_square, T.sums)


@verbs.concentration.register(MixturePosterior)
def _concentration(T, row):
    inverse = 0.0
    c = 0
    for part in literal_unroll(T.parts):
        if T.weights.now[c] > 0.0:
            inverse += T.weights.now[c] / verbs.concentration(part, row)
        c += 1
    return 1.0 / inverse


@verbs.commit.register(MixturePosterior)
def _commit(T, row):
    T.weights.top[0] = 0
    for part in literal_unroll(T.parts):
        verbs.commit(part, row)


@shared_weights.register(MixturePosterior)
def _shared_weights(T: MixturePosterior) -> list[Weights]:
    return [T.weights, *(weights for part in T.parts for weights in shared_weights(part))]


@dataclass(frozen=True)
class Mixture(Prior):
    """A mixture of priors, weighted by their evidence.

    Parameters
    ----------
    priors
        The components.
    weights
        Their prior probabilities, up to a common factor; equal by default.

    Examples
    --------
    >>> from bamdp import Dirichlet, SparseDirichlet
    >>> belief = Mixture([Dirichlet(alpha=1.0), SparseDirichlet(alpha=0.2, beta=4.0)]).belief(5, 1)
    >>> for _ in range(3):
    ...     belief.observe(0, 0, 0.0, 1)
    >>> belief.weights.round(3)
    array([0.127, 0.873])
    """

    priors: Sequence[Prior]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        priors = tuple(self.priors) if isinstance(self.priors, Iterable) else ()
        if not priors or not all(isinstance(prior, Prior) for prior in priors):
            raise TypeError("priors must be a list of one or more priors")
        object.__setattr__(self, "priors", priors)
        object.__setattr__(self, "weights", _checks.weights(self.weights, len(priors)))

    def posterior(self, n_states: int, n_actions: int) -> MixturePosterior:
        return MixturePosterior(
            weights=new_weights(np.array(self.weights)),
            parts=tuple(prior.posterior(n_states, n_actions) for prior in self.priors),
            sums=np.zeros(n_states),
        )

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return the terminal states of all components, and the actions that every component allows."""
        spaces = [prior.space(n_states, n_actions, terminal, action_mask) for prior in self.priors]
        ends = np.any([space.terminal for space in spaces], axis=0)
        return read_space(n_states, n_actions, ends, np.all([space.allowed for space in spaces], axis=0))

    def movement_posterior(self, transitions: Any) -> MixturePosterior:
        """Return the mixture of the components' own movement posteriors."""
        parts = zip(self.priors, transitions.parts)
        return transitions._replace(parts=tuple(prior.movement_posterior(part) for prior, part in parts))

    def rewards_of_models(self, n_states: int, n_actions: int, transitions: Any) -> None:
        """Return None; raise if a component brings rewards of its models, which do not apply to the others."""
        parts = zip(self.priors, transitions.parts)
        if any(prior.rewards_of_models(n_states, n_actions, part) is not None for prior, part in parts):
            raise ValueError("a mixture with FiniteModels does not use their rewards; say rewards=...")
        return
