"""Bounds on the loss of DSS: Theorem 1 as printed in the paper, a corrected bound, and the rule for K.

**Ranges.** If rewards lie in an interval of length ρ, n-step values lie in an interval of length

    ρ R_n,    R_n = 1 + γ + … + γ^(n−1) = (1 − γ^n) / (1 − γ),

and no policy loses more than ρ R_∞ = ρ / (1 − γ). A bound that exceeds this is *vacuous*: true but uninformative.

**Theorem 1 as printed** (Grover, Basu & Dimitrakakis 2020). For rewards in [0, 1], with probability 1 − δ,

    v*(s) − v^DSS(s)  ≤  2 ε₀ K ln 1/(1 − γ^K)                 Lemma 1, anytime error: a policy is used for K steps
                       + 2 (K C + γ^K) / (1 − γ)               Lemma 2, policies come from Thompson sampling
                       + √( ln(M/δ) / (2N) ) / (1 − γ)         Hoeffding, only N of them are drawn

under Assumption 1, ε_h ≤ ε₀/h for the change ε_h of the belief in stage h, and Assumption 2, β(μ) β(μ') ≤ C / D(μ, μ').
The proof has gaps, and the statement is false as printed (the theory page gives counterexamples, which the tests
check).

**The corrected bound.** For rewards in [0, 1] let S_K = Σ_{k<K} γ^k R_{K−k} ≤ K/(1 − γ). Then

    v*(s) − E v^DSS(s)  ≤  C̄ S_K  +  2 γ^K / (1 − γ)  +  X,

where C̄ = E D(μ, μ') for two independent models from the belief (:func:`bamdp.theory.estimate_c`), and X is the loss
due to comparing candidates by only M sampled returns each. With g = γ^K and c = √(ln(2N) / (2M)),

    b_H = x_H = 0,    b_h = c R_{K(H−h)} + g b_{h+1},    x_h = 2 b_h + g x_{h+1},    X = x_0       (0 for N = 1).

The expectation is over the planner's own random numbers; v^DSS is the value of following the chosen candidate for K
steps and then planning again with one stage fewer (with one stage: planning again indefinitely). Policies must be
optimal for the models from which they are computed. The bound makes no assumption about changes of the belief: it does
not need the anytime term of Theorem 1, because Lemma 2 compares Thompson sampling directly with the Bayes-optimal
policy. The theory page of the documentation contains the proof and a comparison with Theorem 1.

**Appendix C's rule for K.** The paper requires the K-dependent terms of Theorem 1 not to exceed the sampling term,
bounds ln 1/(1 − γ^K) by 1/(1 − γ), and obtains

    f(K) = (ε₀ + C) K + γ^K  ≤  B = √( ln(M/δ) / (8N) ),

"K ≤ (B − γ^K)/(ε₀ + C)", with K on both sides. The function f is convex: it first decreases and eventually increases
with slope ε₀ + C. The values of K that satisfy the rule therefore form an interval: K must be large enough for γ^K to
be negligible and small enough for the belief to change little. For most parameters the interval is empty: if the
minimum of f exceeds B, no K satisfies the rule. For ε₀ = C = 0, every K ≥ ln B / ln γ does.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bamdp import _checks

__all__ = [
    "Bound",
    "KRule",
    "corrected_anytime_error",
    "corrected_loss_bound",
    "corrected_model_error",
    "corrected_sampling_error",
    "corrected_thompson_error",
    "k_rule",
    "printed_anytime_error",
    "printed_loss_bound",
    "printed_sampling_error",
    "printed_thompson_error",
    "value_range",
]
MAX_STAGE_STEPS = 1_000_000
MAX_STAGES = 10_000
LEAST_SLOPE = 1e-17  # of f; with a smaller slope, K would exceed the largest machine integer


@dataclass(frozen=True)
class Bound:
    """An upper bound on v* − v, as a sum of named terms.

    Attributes
    ----------
    terms
        The terms by name.
    range
        The largest possible loss of any policy.

    Examples
    --------
    >>> bound = Bound({"thompson": 1.5, "sampling": 1.0}, range=2.0)
    >>> bound.total, bound.vacuous
    (2.5, True)
    """

    terms: Mapping[str, float]
    range: float

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether the bound is uninformative, because no policy can lose more."""
        return self.total >= self.range


def value_range(discount: float, n_steps: int | None = None, reward_range: float = 1.0) -> float:
    """Return ρ R_n, the length of the interval of values.

    Parameters
    ----------
    discount
        γ in [0, 1).
    n_steps
        n; None for infinitely many steps.
    reward_range
        ρ, the length of the interval of rewards.

    Examples
    --------
    >>> value_range(0.5), value_range(0.5, 3)
    (2.0, 1.75)
    """
    discount = _checks.discount(discount)
    scale = _checks.real(reward_range, "reward_range", low=0.0, open_low=True)
    if n_steps is None:
        return scale / (1.0 - discount)
    return scale * (1.0 - discount ** _check_stage_steps(n_steps)) / (1.0 - discount)


# Theorem 1 as printed


def printed_anytime_error(n_steps: int, discount: float, epsilon0: float) -> float:
    """Return the bound of Lemma 1, 2 ε₀ K ln 1/(1 − γ^K).

    Examples
    --------
    >>> round(printed_anytime_error(4, 0.5, epsilon0=1.0), 4)
    0.5163
    """
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    return -2.0 * _check_constant(epsilon0, "epsilon0") * K * math.log1p(-(discount**K))


def printed_thompson_error(n_steps: int, discount: float, c: float) -> float:
    """Return the bound of Lemma 2, 2 (K C + γ^K) / (1 − γ).

    Examples
    --------
    >>> printed_thompson_error(4, 0.5, c=0.25)
    4.25
    """
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    return 2.0 * (K * _check_constant(c, "c") + discount**K) / (1.0 - discount)


def printed_sampling_error(n_policies: int, n_samples: int, discount: float, delta: float = 0.05) -> float:
    """Return the last term, √(ln(M/δ) / (2N)) / (1 − γ). The proof has the number of nodes n instead of M."""
    N = _checks.integer(n_policies, "n_policies")
    M = _checks.integer(n_samples, "n_samples")
    discount, delta = _checks.discount(discount), _check_delta(delta)
    return math.sqrt((math.log(M) - math.log(delta)) / (2.0 * N)) / (1.0 - discount)


def printed_loss_bound(
    n_policies: int,
    n_samples: int,
    n_steps: int,
    discount: float,
    *,
    n_stages: int = 1,
    epsilon0: float = 0.0,
    c: float = 0.0,
    delta: float = 0.05,
    reward_range: float = 1.0,
) -> Bound:
    """Return the bound of Theorem 1 as printed in the paper.

    Parameters
    ----------
    n_policies, n_samples, n_steps
        N, M and K of DSS.
    discount
        γ in [0, 1).
    n_stages
        H, which is unused; it is accepted so that both bounds take the same arguments.
    epsilon0, c
        The constants ε₀ and C of the belief.
    delta
        The probability that the bound fails.
    reward_range
        The length of the interval of rewards.

    Examples
    --------
    >>> bound = printed_loss_bound(4, 4, 18, 0.95)
    >>> {name: round(term, 2) for name, term in bound.terms.items()}, bound.vacuous
    ({'anytime': 0.0, 'thompson': 15.89, 'sampling': 14.8}, True)
    """
    _check_stages(n_stages)
    scale = value_range(0.0, None, reward_range)
    terms = {
        "anytime": scale * printed_anytime_error(n_steps, discount, epsilon0),
        "thompson": scale * printed_thompson_error(n_steps, discount, c),
        "sampling": scale * printed_sampling_error(n_policies, n_samples, discount, delta),
    }
    return Bound(terms, value_range(discount, None, reward_range))


# The corrected bound


def corrected_anytime_error(n_steps: int, discount: float, epsilon0: float) -> float:
    """Return the cost of a Markov policy for K steps, ε₀ (1 + ln 1/(1 − γ^K)) γ (1 − γ^K) / (1 − γ)².

    Here ε₀/max(h, 1) bounds the change of the belief in stage h = 0, 1, …, so the first stage counts as well.

    Examples
    --------
    >>> round(corrected_anytime_error(4, 0.5, epsilon0=1.0), 4)
    1.996
    """
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    g = discount**K
    stages = 1.0 - math.log1p(-g)
    return _check_constant(epsilon0, "epsilon0") * stages * discount * (1.0 - g) / (1.0 - discount) ** 2


def corrected_model_error(n_steps: int, discount: float) -> float:
    """Return S_K = Σ_{k<K} γ^k R_{K−k}, the K-step loss per unit of D of a policy computed for another model.

    Examples
    --------
    >>> corrected_model_error(1, 0.5), corrected_model_error(2, 0.5)
    (1.0, 2.0)
    """
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    k = np.arange(K)
    return float((discount**k * (1.0 - discount ** (K - k))).sum() / (1.0 - discount))


def corrected_thompson_error(n_steps: int, discount: float, c: float) -> float:
    """Return the loss of K-step Thompson sampling relative to the Bayes-optimal policy, C̄ S_K + 2 γ^K / (1 − γ).

    Examples
    --------
    >>> corrected_thompson_error(4, 0.5, c=0.25)
    1.0625
    """
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    return _check_constant(c, "c") * corrected_model_error(K, discount) + 2.0 * discount**K / (1.0 - discount)


def corrected_sampling_error(
    n_policies: int, n_samples: int, discount: float, n_steps: int, n_stages: int = 1
) -> float:
    """Return X, the loss due to choosing among N candidates by M sampled returns each.

    Examples
    --------
    >>> corrected_sampling_error(1, 1, 0.5, n_steps=4)  # one candidate: there is no choice
    0.0
    >>> round(corrected_sampling_error(4, 64, 0.5, n_steps=4), 4)
    0.478
    """
    N = _checks.integer(n_policies, "n_policies")
    M = _checks.integer(n_samples, "n_samples")
    K, H, discount = _check_stage_steps(n_steps), _check_stages(n_stages), _checks.discount(discount)
    if N == 1:
        return 0.0
    g, spread = discount**K, math.sqrt(math.log(2 * N) / (2.0 * M))
    bias, loss = 0.0, 0.0
    for h in range(H - 1, -1, -1):  # b_h and x_h from the last stage to the first
        bias = spread * (1.0 - g ** (H - h)) / (1.0 - discount) + g * bias
        loss = 2.0 * bias + g * loss
    return loss


def corrected_loss_bound(
    n_policies: int,
    n_samples: int,
    n_steps: int,
    discount: float,
    *,
    n_stages: int = 1,
    epsilon0: float = 0.0,
    c: float = 0.0,
    delta: float = 0.05,
    reward_range: float = 1.0,
) -> Bound:
    """Return the corrected bound, which holds in expectation over the planner's random numbers.

    Parameters
    ----------
    n_policies, n_samples, n_steps, n_stages
        N, M, K and H of DSS.
    discount
        γ in [0, 1).
    c
        The constant C̄ of the belief; see :func:`estimate_c`.
    epsilon0, delta
        Unused; they are accepted so that both bounds take the same arguments.
    reward_range
        The length of the interval of rewards.

    Examples
    --------
    >>> bound = corrected_loss_bound(4, 4, 18, 0.95)
    >>> {name: round(term, 2) for name, term in bound.terms.items()}, bound.vacuous
    ({'thompson': 0.0, 'truncation': 15.89, 'sampling': 12.29}, True)
    """
    _check_constant(epsilon0, "epsilon0")
    _check_delta(delta)
    scale = value_range(0.0, None, reward_range)
    K, discount = _check_stage_steps(n_steps), _checks.discount(discount)
    terms = {
        "thompson": scale * _check_constant(c, "c") * corrected_model_error(K, discount),
        "truncation": scale * 2.0 * discount**K / (1.0 - discount),
        "sampling": scale * corrected_sampling_error(n_policies, n_samples, discount, K, n_stages),
    }
    return Bound(terms, value_range(discount, None, reward_range))


# Appendix C's rule for K


@dataclass(frozen=True)
class KRule:
    """The values of K that satisfy Appendix C's rule: an interval, possibly empty.

    Attributes
    ----------
    low, high
        The smallest and the largest K; ``high`` is None if K is unbounded, and both are None if no K satisfies the
        rule.
    allowed
        B, the right-hand side of the rule.
    best
        The K that minimises the left-hand side f.
    needed
        f at ``best``.

    Examples
    --------
    >>> print(k_rule(1, 64, 0.5, epsilon0=0.01, c=0.01))
    K from 1 to 47 (least at K = 5: 0.131 of 0.946 allowed)
    >>> print(k_rule(4, 4, 0.95, epsilon0=0.1, c=0.1))
    no K satisfies the rule: at best, for K = 1, it needs 1.15 where 0.37 is allowed
    """

    low: int | None
    high: int | None
    allowed: float
    best: int
    needed: float

    @property
    def satisfiable(self) -> bool:
        """Whether any K satisfies the rule."""
        return self.low is not None

    def __contains__(self, n_steps: object) -> bool:
        if self.low is None or not isinstance(n_steps, int):
            return False
        return self.low <= n_steps and (self.high is None or n_steps <= self.high)

    def __str__(self) -> str:
        needed, allowed = f"{self.needed:.3g}", f"{self.allowed:.3g}"
        if self.low is None:
            return (
                f"no K satisfies the rule: at best, for K = {self.best}, it needs {needed} where "
                f"{allowed} is allowed"
            )
        if self.high is None:
            return f"every K from {self.low} on"
        which = f"only K = {self.low}" if self.low == self.high else f"K from {self.low} to {self.high}"
        return f"{which} (least at K = {self.best}: {needed} of {allowed} allowed)"


def k_rule(
    n_policies: int,
    n_samples: int,
    discount: float,
    *,
    epsilon0: float = 0.0,
    c: float = 0.0,
    delta: float = 0.05,
) -> KRule:
    """Solve Appendix C's rule exactly for integer K.

    Parameters
    ----------
    n_policies, n_samples
        N and M of DSS.
    discount
        γ in [0, 1).
    epsilon0, c
        The constants ε₀ and C of the belief.
    delta
        The probability that Theorem 1 fails.

    Returns
    -------
    KRule
        The interval of K that satisfies the rule.
    """
    N, M = _checks.integer(n_policies, "n_policies"), _checks.integer(n_samples, "n_samples")
    discount, delta = _checks.discount(discount), _check_delta(delta)
    slope = _check_constant(epsilon0, "epsilon0") + _check_constant(c, "c")
    slope = 0.0 if slope < LEAST_SLOPE else slope
    allowed = math.sqrt((math.log(M) - math.log(delta)) / (8.0 * N))

    def f(K: int) -> float:
        return slope * K + discount**K

    best = _minimise_rule(f, slope, discount)
    if f(best) > allowed:
        return KRule(None, None, allowed, best, f(best))
    low = 1 + bisect_left(range(1, best), True, key=lambda K: f(K) <= allowed)
    if slope == 0.0:
        return KRule(low, None, allowed, best, f(best))
    end = max(best, math.ceil(allowed / slope)) + 1  # beyond, f(K) > slope K > allowed
    high = best - 1 + bisect_left(range(best, end), True, key=lambda K: f(K) > allowed)
    return KRule(low, high, allowed, best, f(best))


def _minimise_rule(f: Callable[[int], float], slope: float, discount: float) -> int:
    """Return the K that minimises f: a neighbour of the real root of f' = slope + γ^K ln γ."""
    if discount == 0.0:
        return 1
    if slope == 0.0:  # f has no minimum; γ^K is negligible at this K
        return max(1, math.ceil(math.log(1e-300) / math.log(discount)))
    root = math.log(slope / -math.log(discount)) / math.log(discount)
    below = max(1, math.floor(root))
    return min((below, below + 1), key=f)


# Checks


def _check_stage_steps(n_steps: int) -> int:
    """Return K after validating it."""
    return _checks.integer(n_steps, "n_steps", high=MAX_STAGE_STEPS)


def _check_stages(n_stages: int) -> int:
    """Return H after validating it."""
    return _checks.integer(n_stages, "n_stages", high=MAX_STAGES)


def _check_constant(value: float, name: str) -> float:
    """Return ε₀ or C after checking that it is at least 0."""
    return _checks.real(value, name, low=0.0)


def _check_delta(delta: float) -> float:
    """Return δ after checking that it lies in (0, 1)."""
    number = _checks.real(delta, "delta")
    if not 0.0 < number < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {number}; 0.05 means with probability 95 %")
    return number
