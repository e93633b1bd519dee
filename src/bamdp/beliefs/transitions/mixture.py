"""Mixtures: of priors, and of known models. The weights of the alternatives follow the evidence.

ν(s'|s,a) = Σ_c w_c ν_c(s'|s,a) with w_c ∝ prior weight × evidence of alternative c so far. To sample a model, draw an
alternative first and then all rows from it. Weights are stored as logarithms, so that none is lost to underflow, and
old weights are logged so that updates can be undone.

**Mixtures of priors** (:class:`Mixture`): each component explains all the data and keeps its own statistics. The choice
of prior matters greatly in Bayes-adaptive planning, and a mixture lets the data choose among several priors.

**Finite sets of models** (:class:`FiniteModels`): the alternatives are known models, stored one after another. Rows are
not independent: one transition is informative about the whole model. Rewards may be evidence, too; see
:mod:`bamdp.beliefs.rewards.known`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import literal_unroll
from numpy.typing import ArrayLike

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.jit import generic, primitive
from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import Space
from bamdp.beliefs.base import (
    Prior,
    RewardModel,
    Weights,
    posterior_part,
    register_methods,
    transition_posterior,
)
from bamdp.beliefs.kernels import (
    draw_weighted,
    new_weights,
    normalise_weights,
    restore_weights,
    save_weights,
)
from bamdp.beliefs.rewards.known import KnownRewards, ModelRewards, ModelRewardsPosterior
from bamdp.mdp.build import read_space, used_rows
from bamdp.mdp.model import FiniteMDP


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


# --- alternatives -------------------------------------------------------------------------------------------------


@generic
def n_alternatives(part):
    """Return how many alternatives a part of a mixture stands for."""


@generic
def alternative(part, m):
    """Return the posterior of the m-th alternative in a part."""


@n_alternatives.register(object)
def _one(part):
    return 1


@alternative.register(object)
def _itself(part, m):
    return part


@transition_posterior(learned=("weights", "parts"))
class MixturePosterior(NamedTuple):
    """The weights of the alternatives, and the posteriors of the parts.

    The parts differ in type, so the compiler unrolls each loop over them (``literal_unroll``), one copy per part.
    """

    weights: Weights
    parts: tuple[Any, ...]
    sums: np.ndarray  # float64 [S] scratch of mean_row

    @property
    def changes(self) -> str:
        """The rows that a transition may change in any part."""
        return max((part.changes for part in self.parts), key=("row", "state", "all").index)

    @property
    def counts_transitions(self) -> bool:
        """True if all parts count transitions."""
        return all(part.counts_transitions for part in self.parts)

    @property
    def movement(self) -> MixturePosterior:
        """The mixture of the parts' own movement posteriors."""
        return self._replace(parts=tuple(part.movement for part in self.parts))

    def draw(T, row, rng):
        chosen, s2, c = draw_weighted(T.weights, rng), np.int64(0), 0
        for part in literal_unroll(T.parts):
            if c <= chosen < c + n_alternatives(part):
                s2 = verbs.draw(alternative(part, chosen - c), row, rng)
            c += n_alternatives(part)
        return s2

    def push(T, row, s2):
        save_weights(T.weights)
        log_p, c = T.weights.log_p, 0
        for part in literal_unroll(T.parts):
            for m in range(n_alternatives(part)):
                if log_p[c] > -np.inf:
                    log_p[c] += verbs.log_probability(alternative(part, m), row, s2)
                if log_p[c] > -np.inf:  # an alternative that is ruled out learns nothing more (until the pop)
                    verbs.push(alternative(part, m), row, s2)
                c += 1
        normalise_weights(T.weights)

    def pop(T):
        c = 0
        for part in literal_unroll(T.parts):
            for m in range(n_alternatives(part)):
                if T.weights.log_p[c] > -np.inf:
                    verbs.pop(alternative(part, m))
                c += 1
        restore_weights(T.weights)

    def commit(T, row):
        T.weights.top[0] = 0
        for part in literal_unroll(T.parts):
            verbs.commit(part, row)

    def log_probability(T, row, s2):
        total, c = -np.inf, 0
        for part in literal_unroll(T.parts):
            for m in range(n_alternatives(part)):
                if T.weights.log_p[c] > -np.inf:
                    log_p = verbs.log_probability(alternative(part, m), row, s2)
                    total = np.logaddexp(total, T.weights.log_p[c] + log_p)
                c += 1
        return total

    def probability(T, row, s2):
        return math.exp(verbs.log_probability(T, row, s2))

    def choose(T, rng):
        """Return an alternative and its own choice, encoded as one number."""
        chosen, inner, c = draw_weighted(T.weights, rng), np.int64(0), 0
        for part in literal_unroll(T.parts):
            if c <= chosen < c + n_alternatives(part):
                inner = np.int64(verbs.choose(alternative(part, chosen - c), rng))
            c += n_alternatives(part)
        return inner * T.weights.p.shape[0] + chosen

    def sample_row(T, choice, row, index, prob, at, rng):
        inner, chosen = divmod(choice, T.weights.p.shape[0])
        end, background, c = np.int64(at), 0.0, 0
        for part in literal_unroll(T.parts):
            if c <= chosen < c + n_alternatives(part):
                one = alternative(part, chosen - c)
                end, background = verbs.sample_row(one, inner, row, index, prob, at, rng)
            c += n_alternatives(part)
        return end, background

    def most_entries(T, n_states):
        total = 0
        for part in literal_unroll(T.parts):
            total += n_alternatives(part) * verbs.most_entries(part, n_states)
        return total

    def mean_row(T, row, index, prob, at):
        end, background, c = np.int64(at), 0.0, 0
        for part in literal_unroll(T.parts):
            for m in range(n_alternatives(part)):
                weight, begin = T.weights.p[c], end
                if weight > 0.0:
                    end, mass = verbs.mean_row(alternative(part, m), row, index, prob, begin)
                    for i in range(begin, end):
                        prob[i] *= weight
                    background += weight * mass
                c += 1
        return np.int64(merge_entries(index, prob, at, end, T.sums)), background

    def moments_row(T, row, index, mean, variance, at):
        end, rest, rest_square, c = np.int64(at), 0.0, 0.0, 0
        for part in literal_unroll(T.parts):
            for m in range(n_alternatives(part)):
                weight, begin = T.weights.p[c], end
                if weight > 0.0:
                    end, p, v = verbs.moments_row(alternative(part, m), row, index, mean, variance, begin)
                    for i in range(begin, end):
                        variance[i] = weight * (variance[i] + mean[i] * mean[i] - v - p * p)
                        mean[i] = weight * (mean[i] - p)
                    rest += weight * p
                    rest_square += weight * (v + p * p)
                c += 1
        return merge_moments(index, mean, variance, at, end, rest, rest_square, T.sums)

    def concentration(T, row):
        inverse, c = 0.0, 0
        for part in literal_unroll(T.parts):
            if T.weights.p[c] > 0.0:
                inverse += T.weights.p[c] / verbs.concentration(part, row)
            c += n_alternatives(part)
        return 1.0 / inverse


# --- mixtures of priors -----------------------------------------------------------------------------------------------


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

    def rewards_of_models(self, n_states: int, n_actions: int, transitions: Any) -> None:
        """Return None; raise if a component has rewards for its own models, which do not apply to the others."""
        parts = zip(self.priors, transitions.parts)
        if any(prior.rewards_of_models(n_states, n_actions, part) is not None for prior, part in parts):
            raise ValueError("a mixture with FiniteModels does not use their rewards; say rewards=...")
        return


# --- finite sets of models ------------------------------------------------------------------------------------


@posterior_part()
class Model(NamedTuple):
    """The rows of one known model."""

    span: np.ndarray  # int64 [S*A, 2]
    index: np.ndarray  # type: ignore[assignment]  # int32 [entries]
    prob: np.ndarray  # float64 [entries]
    background: np.ndarray  # float64 [S*A]
    n_states: int

    def draw(T, row, rng):
        x = uniform(rng)
        begin, end = T.span[row, 0], T.span[row, 1]
        for i in range(begin, end):
            x -= T.prob[i]
            if x < 0.0:
                return np.int64(T.index[i])
        if T.background[row] > 0.0:
            return below(rng, T.n_states)
        return np.int64(T.index[end - 1])

    def push(T, row, s2):
        pass

    def pop(T):
        pass

    def probability(T, row, s2):
        p = T.background[row] / T.n_states
        for i in range(T.span[row, 0], T.span[row, 1]):
            if T.index[i] == s2:
                p += T.prob[i]
        return p

    def sample_row(T, choice, row, index, prob, at, rng):
        return verbs.mean_row(T, row, index, prob, at)

    def mean_row(T, row, index, prob, at):
        begin, end = T.span[row, 0], T.span[row, 1]
        for i in range(begin, end):
            index[at + i - begin] = T.index[i]
            prob[at + i - begin] = T.prob[i]
        return at + end - begin, T.background[row]

    def moments_row(T, row, index, mean, variance, at):
        end, background = verbs.mean_row(T, row, index, mean, at)
        share = background / T.n_states
        for i in range(at, end):
            mean[i] += share
            variance[i] = 0.0
        return end, share, 0.0


@transition_posterior(learned=())
class Models(NamedTuple):
    """The rows of all models, one after another: a part of a mixture that stands for L alternatives."""

    span: np.ndarray  # int64 [L, S*A, 2]
    index: np.ndarray  # type: ignore[assignment]  # int32 [entries]
    prob: np.ndarray  # float64 [entries]
    background: np.ndarray  # float64 [L, S*A]
    n_states: int

    def n_alternatives(part):
        return part.span.shape[0]

    def alternative(part, m):
        return Model(part.span[m], part.index, part.prob, part.background[m], part.n_states)

    def commit(part, row):
        pass


register_methods(Models, globals())


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
    result_version: ClassVar[int] = 2  # incremented when planners' results change for this prior only

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

    def posterior(self, n_states: int, n_actions: int) -> MixturePosterior:
        first = self.mdps[0]
        if (first.n_states, first.n_actions) != (n_states, n_actions):
            raise ValueError(
                f"the models have {first.n_states} states and {first.n_actions} actions, the world has "
                f"{n_states} and {n_actions}"
            )
        sizes = [0, *np.cumsum([len(mdp.rows.index) for mdp in self.mdps])]
        models = Models(
            span=np.array([mdp.rows.span + size for mdp, size in zip(self.mdps, sizes)], np.int64),
            index=np.concatenate([mdp.rows.index for mdp in self.mdps]),
            prob=np.concatenate([mdp.rows.prob for mdp in self.mdps]),
            background=np.array([mdp.rows.background for mdp in self.mdps]),
            n_states=n_states,
        )
        return MixturePosterior(new_weights(np.array(self.weights)), (models,), np.zeros(n_states))

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return the space shared by all models; arguments may add terminal states and remove actions."""
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
            weights=weights._replace(log=np.zeros_like(weights.log), top=np.zeros(1, np.int64)),
            values=np.array([k.values for k in known]),
            expected=np.array([mdp.rows.reward for mdp in self.mdps]),
            next_step=known[0].next_step,
            row_step=known[0].row_step,
        )
