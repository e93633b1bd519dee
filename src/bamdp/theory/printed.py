"""Theorem 1 as Grover, Basu & Dimitrakakis (2020) print it, term by term.

For rewards in [0, 1], with probability 1 − δ,

    v*(s) − v^DSS(s)  ≤  2 ε₀ K ln 1/(1 − γ^K)                 Lemma 1, anytime error: the policy is held for K steps
                       + 2 (K C + γ^K) / (1 − γ)               Lemma 2, policies come from Thompson sampling
                       + √( ln(M/δ) / (2N) ) / (1 − γ)         Hoeffding, only N of them are drawn

under Assumption 1, ε_h ≤ ε₀/h (how much the belief changes in stage h), and Assumption 2, β(μ) β(μ') ≤ C / D(μ, μ').
The proof has gaps, and as printed the statement is false (the theory page has counterexamples, and the tests check
them); :mod:`bamdp.theory.mended` has what remains true.
"""

from __future__ import annotations

import math

from bamdp import _checks
from bamdp.theory import bound
from bamdp.theory.bound import Bound


def anytime_error(n_steps: int, discount: float, epsilon0: float) -> float:
    """Lemma 1: 2 ε₀ K ln 1/(1 − γ^K).

    Examples
    --------
    >>> round(anytime_error(4, 0.5, epsilon0=1.0), 4)
    0.5163
    """
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    return -2.0 * bound.not_negative(epsilon0, "epsilon0") * K * math.log1p(-(discount**K))


def thompson_error(n_steps: int, discount: float, c: float) -> float:
    """Lemma 2: 2 (K C + γ^K) / (1 − γ).

    Examples
    --------
    >>> thompson_error(4, 0.5, c=0.25)
    4.25
    """
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    return 2.0 * (K * bound.not_negative(c, "c") + discount**K) / (1.0 - discount)


def sampling_error(n_policies: int, n_samples: int, discount: float, delta: float = 0.05) -> float:
    """The last term: √(ln(M/δ) / (2N)) / (1 − γ). The proof has the number of nodes n where this has M."""
    N = _checks.integer(n_policies, "n_policies")
    M = _checks.integer(n_samples, "n_samples")
    discount, delta = _checks.discount(discount), bound.confidence(delta)
    return math.sqrt((math.log(M) - math.log(delta)) / (2.0 * N)) / (1.0 - discount)


def loss_bound(
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
    """Theorem 1. ``n_stages`` does not appear in it; it is taken so that both bounds are called alike.

    Examples
    --------
    >>> bound = loss_bound(4, 4, 18, 0.95)
    >>> {name: round(term, 2) for name, term in bound.terms.items()}, bound.vacuous
    ({'anytime': 0.0, 'thompson': 15.89, 'sampling': 14.8}, True)
    """
    bound.stages(n_stages)
    scale = bound.value_range(0.0, None, reward_range)
    terms = {
        "anytime": scale * anytime_error(n_steps, discount, epsilon0),
        "thompson": scale * thompson_error(n_steps, discount, c),
        "sampling": scale * sampling_error(n_policies, n_samples, discount, delta),
    }
    return Bound(terms, bound.value_range(discount, None, reward_range))
