"""The two constants of Theorem 1, from a belief.

**C.** What the proof of Lemma 2 needs of Assumption 2 is that C bounds the expected disagreement

    C̄ = E D(μ, μ'),    D(μ, μ') = max_{s,a} ‖P_μ(·|s,a) − P_μ'(·|s,a)‖₁,    μ, μ' independent draws of the belief,

which is estimated by the mean over sampled pairs. Where rewards are learned, too, 2 |r_μ(s,a) − r_μ'(s,a)| is added
inside the maximum: the distance of the joint law of a reward of 0 or 1 and the next state is no more than that.

**ε₀.** In stage h of a simulated episode a policy is drawn by Thompson sampling and run for K steps, and the belief
moves from β to β'. By Bayes' rule β'(μ) = w(μ) β(μ) with w(μ) = P_μ(what was seen) / P_β(what was seen), so

    ‖β' − β‖₁ = E_β |w − 1| = 2 E_β max(0, 1 − w),

the second form because E_β w = 1. Its terms lie in [0, 2] however long the stage is, where those of the first have
no bound; the denominator is the belief's exact evidence. Since w is a martingale, the expected change is largest at
the end of the stage. ε₀ is the least number with ε_h ≤ ε₀ / max(h, 1) for the means ε_h over episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._kernels.random import as_state
from bamdp.beliefs import Belief, BetaBernoulli, FiniteModels
from bamdp.beliefs.kernels import undo_steps
from bamdp.mdp import FiniteMDP, policy_iteration
from bamdp.mdp.validate import entry_positions
from bamdp.theory.step import check_start, push_step

Seen = tuple[int, int, float, int]  # s, a, r, s2


@dataclass(frozen=True)
class Disagreement:
    """How much models of a belief differ."""

    distances: NDArray[np.float64]  # [pairs]

    @property
    def mean(self) -> float:
        """The estimate of C̄."""
        return float(self.distances.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN for a single pair."""
        n = len(self.distances)
        return float(self.distances.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan


@dataclass(frozen=True)
class Drift:
    """How much a belief changes along simulated episodes."""

    changes: NDArray[np.float64]  # [episodes, H]: ‖β_{h+1} − β_h‖₁ in each stage

    @property
    def stages(self) -> NDArray[np.float64]:
        """ε_h, mean over episodes, [H]."""
        means: NDArray[np.float64] = self.changes.mean(axis=0)
        return means

    @property
    def epsilon0(self) -> float:
        """The least ε₀ with ε_h ≤ ε₀ / max(h, 1) in the mean."""
        return float((self.stages * self._ages()).max())

    @property
    def largest(self) -> float:
        """The least ε₀ with which the assumption holds in every simulated stage."""
        return float((self.changes * self._ages()).max())

    def _ages(self) -> NDArray[np.int64]:
        return np.maximum(np.arange(self.changes.shape[1]), 1)


def model_distance(
    first: FiniteMDP, second: FiniteMDP, *, rewards: bool = False, reward_range: float = 1.0
) -> float:
    """D(μ, μ'), from 0 to 2; with ``rewards`` 2|r − r'|/ρ is added inside the maximum, ρ being ``reward_range``.

    Examples
    --------
    >>> stay, swap = (FiniteMDP(p[:, None, :], [0.0, 1.0]) for p in (np.eye(2), np.eye(2)[::-1]))
    >>> model_distance(stay, swap)
    2.0
    """
    if first.space.allowed.shape != second.space.allowed.shape:
        raise ValueError(
            f"the models differ in size: {first.space.allowed.shape} and {second.space.allowed.shape} states, actions"
        )
    S = first.n_states
    difference = _entries(first) - _entries(second)
    level = (first.rows.background - second.rows.background) / S  # of what is not listed
    listed = np.diff(difference.indptr)
    row = np.repeat(np.arange(len(listed)), listed)
    sums = np.bincount(row, np.abs(difference.data + level[row]), len(listed)) + (S - listed) * np.abs(level)
    if rewards:
        scale = _checks.real(reward_range, "reward_range", low=0.0, open_low=True)
        sums = sums + 2.0 * np.abs(first.rows.reward - second.rows.reward) / scale
    return float(sums.max())


def estimate_c(
    belief: Belief, *, pairs: int = 200, reward_range: float = 1.0, rng: Any = None
) -> Disagreement:
    """C̄ from ``pairs`` independent pairs of models.

    Where rewards are learned, ``reward_range`` must be the one that the bound is then asked for.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> found = estimate_c(Dirichlet(alpha=1.0).belief(2, 1), pairs=500, rng=0)
    >>> bool(abs(found.mean - 14 / 15) < 4 * found.standard_error)  # E max of two |U − U'|, doubled
    True
    """
    pairs, state = _checks.integer(pairs, "pairs"), as_state(rng)
    learned = not belief.rewards.certain
    drawn = ((belief.sample(state), belief.sample(state)) for _ in range(pairs))
    distances = [model_distance(*pair, rewards=learned, reward_range=reward_range) for pair in drawn]
    return Disagreement(np.array(distances))


def estimate_epsilon0(
    belief: Belief,
    state: int,
    discount: float,
    *,
    n_steps: int,
    n_stages: int = 4,
    episodes: int = 20,
    models: int = 200,
    rng: Any = None,
) -> Drift:
    """ε₀ from simulated episodes of ``n_stages`` stages of ``n_steps``, beginning in ``state``."""
    K, H = _checks.integer(n_steps, "n_steps"), _checks.integer(n_stages, "n_stages")
    start, discount = check_start(belief, state), _checks.discount(discount)
    stream = as_state(rng)
    changes = np.zeros((_checks.integer(episodes, "episodes"), H))
    for episode in changes:
        now, s = belief.copy(), start
        for h in range(H):
            if now.space.terminal[s]:  # the belief has come to rest
                break
            policy = policy_iteration(now.sample(stream), discount).policy
            seen = _walk(now, policy.astype(np.int32), s, K, stream)
            episode[h] = belief_distance(now, seen, models=models, rng=stream)
            for transition in seen:
                now.observe(*transition)
            s = seen[-1][3]
    return Drift(changes)


def belief_distance(belief: Belief, seen: Iterable[Seen], *, models: int = 200, rng: Any = None) -> float:
    """‖β' − β‖₁ for β' = β after the transitions ``seen`` (s, a, r, s2): exact for a finite set of models.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet(alpha=1.0).belief(2, 1)  # one uniform p: |2p − 1| is 1/2 on average
    >>> bool(abs(belief_distance(belief, [(0, 0, 0.0, 1)], models=2000, rng=0) - 0.5) < 0.06)
    True
    """
    seen = list(seen)
    after = belief.copy()
    for transition in seen:
        after.observe(*transition)
    if isinstance(belief.prior, FiniteModels) and (belief.rewards.certain or belief.rewards.shares_weights):
        return float(np.abs(after.weights - belief.weights).sum())
    evidence = after.log_evidence - belief.log_evidence
    state, counts = as_state(rng), Counter(seen)
    _check_rewards(belief)
    short = [
        max(0.0, 1.0 - math.exp(min(0.0, _log_likelihood(belief, belief.sample(state), counts) - evidence)))
        for _ in range(_checks.integer(models, "models"))
    ]
    return 2.0 * float(np.mean(short))


def _walk(belief: Belief, policy: NDArray[np.int32], s: int, steps: int, rng: np.ndarray) -> list[Seen]:
    """Transitions of a policy in the belief, which is left as it was."""
    belief.reserve(steps)
    seen: list[Seen] = []
    while len(seen) < steps and not belief.space.terminal[s]:
        s2, r = push_step(belief, policy, s, rng)
        seen.append((s, int(policy[s]), r, s2))
        s = s2
    undo_steps(belief.arrays, len(seen))
    return seen


def _log_likelihood(belief: Belief, model: FiniteMDP, counts: Counter[Seen]) -> float:
    total = 0.0
    for (s, a, r, s2), n in counts.items():
        states, probs = model.row(s, a)
        p = float(probs[states == s2].sum())
        if isinstance(belief.reward_model, BetaBernoulli):
            win = float(model.expected_rewards[s, a])
            p *= win if r == 1.0 else 1.0 - win
        if p <= 0.0:
            return -math.inf
        total += n * math.log(p)
    return total


def _check_rewards(belief: Belief) -> None:
    model = belief.reward_model
    by_pair = isinstance(model, BetaBernoulli) and model.by == "pair"
    if not belief.rewards.certain and not by_pair:
        raise ValueError(
            f"the distance of beliefs is computed for rewards that are known or BetaBernoulli by pair, not for "
            f"{model}"
        )


def _entries(mdp: FiniteMDP) -> Any:
    """The listed entries as a sparse matrix [S*A, S]."""
    from scipy import sparse

    row, position = entry_positions(mdp.rows.span)
    shape = (len(mdp.rows.reward), mdp.n_states)
    return sparse.csr_matrix((mdp.rows.prob[position], (row, mdp.rows.index[position])), shape=shape)
