"""A bound on the loss of DSS that holds, with the same parameters.

For rewards in [0, 1] let R_n = (1 − γ^n)/(1 − γ) and S_K = Σ_{k<K} γ^k R_{K−k} ≤ K/(1 − γ). Then

    v*(s) − E v^DSS(s)  ≤  C̄ S_K  +  2 γ^K / (1 − γ)  +  X,

where C̄ = E D(μ, μ') for two independent models of the belief (:func:`bamdp.theory.estimate_c`), and X is what is
lost because candidates are compared by M sampled returns each. With g = γ^K and c = √(ln(2N) / (2M)),

    b_H = x_H = 0,    b_h = c R_{K(H−h)} + g b_{h+1},    x_h = 2 b_h + g x_{h+1},    X = x_0       (0 for N = 1).

The expectation is over the planner's own random numbers; v^DSS is the policy that follows the chosen candidate for
K steps and then plans again with one stage less (for one stage: plans again for ever). Policies must be optimal for
the models that they come from. No assumption is made on how the belief changes: the anytime term of Theorem 1 is not
needed, because Lemma 2 compares Thompson sampling with the Bayes-optimal policy itself.

The proof, and how this differs from Theorem 1, is on the theory page of the documentation.
"""

from __future__ import annotations

import math

import numpy as np

from bamdp import _checks
from bamdp.theory import bound
from bamdp.theory.bound import Bound


def anytime_error(n_steps: int, discount: float, epsilon0: float) -> float:
    """What holding K-step Markov policies costs: ε₀ (1 + ln 1/(1 − γ^K)) γ (1 − γ^K) / (1 − γ)².

    Here ε₀/max(h, 1) bounds the change of the belief in stage h = 0, 1, …; the first stage counts, too.

    Examples
    --------
    >>> round(anytime_error(4, 0.5, epsilon0=1.0), 4)
    1.996
    """
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    g = discount**K
    stages = 1.0 - math.log1p(-g)
    return bound.not_negative(epsilon0, "epsilon0") * stages * discount * (1.0 - g) / (1.0 - discount) ** 2


def model_error(n_steps: int, discount: float) -> float:
    """S_K = Σ_{k<K} γ^k R_{K−k}: the loss in K steps of a policy made for another model, for each unit of D.

    Examples
    --------
    >>> model_error(1, 0.5), model_error(2, 0.5)
    (1.0, 2.0)
    """
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    k = np.arange(K)
    return float((discount**k * (1.0 - discount ** (K - k))).sum() / (1.0 - discount))


def thompson_error(n_steps: int, discount: float, c: float) -> float:
    """What K-step Thompson sampling loses against the Bayes-optimal policy: C̄ S_K + 2 γ^K / (1 − γ).

    Examples
    --------
    >>> thompson_error(4, 0.5, c=0.25)
    1.0625
    """
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    return bound.not_negative(c, "c") * model_error(K, discount) + 2.0 * discount**K / (1.0 - discount)


def sampling_error(
    n_policies: int, n_samples: int, discount: float, n_steps: int, n_stages: int = 1
) -> float:
    """X: what is lost because M sampled returns decide between N candidates.

    Examples
    --------
    >>> sampling_error(1, 1, 0.5, n_steps=4)  # one candidate: nothing to mistake
    0.0
    >>> round(sampling_error(4, 64, 0.5, n_steps=4), 4)
    0.478
    """
    N = _checks.integer(n_policies, "n_policies")
    M = _checks.integer(n_samples, "n_samples")
    K, H, discount = bound.steps(n_steps), bound.stages(n_stages), _checks.discount(discount)
    if N == 1:
        return 0.0
    g, spread = discount**K, math.sqrt(math.log(2 * N) / (2.0 * M))
    bias, loss = 0.0, 0.0
    for h in range(H - 1, -1, -1):
        bias = spread * (1.0 - g ** (H - h)) / (1.0 - discount) + g * bias
        loss = 2.0 * bias + g * loss
    return loss


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
    """The bound; ``epsilon0`` and ``delta`` do not appear in it, and are taken so that both are called alike.

    Examples
    --------
    >>> bound = loss_bound(4, 4, 18, 0.95)
    >>> {name: round(term, 2) for name, term in bound.terms.items()}, bound.vacuous
    ({'thompson': 0.0, 'truncation': 15.89, 'sampling': 12.29}, True)
    """
    bound.not_negative(epsilon0, "epsilon0")
    bound.confidence(delta)
    scale = bound.value_range(0.0, None, reward_range)
    K, discount = bound.steps(n_steps), _checks.discount(discount)
    terms = {
        "thompson": scale * bound.not_negative(c, "c") * model_error(K, discount),
        "truncation": scale * 2.0 * discount**K / (1.0 - discount),
        "sampling": scale * sampling_error(n_policies, n_samples, discount, K, n_stages),
    }
    return Bound(terms, bound.value_range(discount, None, reward_range))
