"""Appendix C's rule for K, as an inequality solved for K.

The paper asks that the terms of Theorem 1 with K in them be no more than the sampling term, bounds ln 1/(1 − γ^K) by
1/(1 − γ), and comes to

    f(K) = (ε₀ + C) K + γ^K  ≤  B = √( ln(M/δ) / (8N) ),

"K ≤ (B − γ^K)/(ε₀ + C)". It has K on both sides. f is convex, falling at first and rising with slope ε₀ + C in the
end, so the K that satisfy the rule are an interval: K must be large enough for γ^K to vanish and small enough for
the belief not to move. The interval may be empty, and is for most parameters: if f exceeds B at its least, no K
satisfies the rule. For ε₀ = C = 0 every K from ln B / ln γ on does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from bamdp import _checks
from bamdp.theory import bound


@dataclass(frozen=True)
class KRule:
    """Which K satisfy the rule: low .. high (``high`` None: no end), or none at all (``low`` None, too).

    Examples
    --------
    >>> print(k_rule(1, 64, 0.5, epsilon0=0.01, c=0.01))
    K from 1 to 47 (least at K = 5: 0.131 of 0.946 allowed)
    >>> print(k_rule(4, 4, 0.95, epsilon0=0.1, c=0.1))
    no K satisfies the rule: at best, for K = 1, it needs 1.15 where 0.37 is allowed
    """

    low: int | None
    high: int | None
    allowed: float  # B
    best: int  # where f is least
    needed: float  # f there

    @property
    def satisfiable(self) -> bool:
        """Whether any K satisfies the rule."""
        return self.low is not None

    def __contains__(self, n_steps: object) -> bool:
        if self.low is None or not isinstance(n_steps, int):
            return False
        return self.low <= n_steps and (self.high is None or n_steps <= self.high)

    def __str__(self) -> str:
        figures = f"{self.needed:.3g}", f"{self.allowed:.3g}"
        if self.low is None:
            return (
                f"no K satisfies the rule: at best, for K = {self.best}, it needs {figures[0]} where "
                f"{figures[1]} is allowed"
            )
        if self.high is None:
            return f"every K from {self.low} on"
        which = f"only K = {self.low}" if self.low == self.high else f"K from {self.low} to {self.high}"
        return f"{which} (least at K = {self.best}: {figures[0]} of {figures[1]} allowed)"


def k_rule(
    n_policies: int,
    n_samples: int,
    discount: float,
    *,
    epsilon0: float = 0.0,
    c: float = 0.0,
    delta: float = 0.05,
) -> KRule:
    """Solve the rule for K, exactly, in whole numbers."""
    N, M = _checks.integer(n_policies, "n_policies"), _checks.integer(n_samples, "n_samples")
    discount, delta = _checks.discount(discount), bound.confidence(delta)
    slope = bound.not_negative(epsilon0, "epsilon0") + bound.not_negative(c, "c")
    allowed = math.sqrt((math.log(M) - math.log(delta)) / (8.0 * N))

    def f(K: int) -> float:
        return slope * K + discount**K

    best = _least(f, slope, discount)
    if f(best) > allowed:
        return KRule(None, None, allowed, best, f(best))
    low = _first(lambda K: f(K) <= allowed, 1, best)
    if slope == 0.0:
        return KRule(low, None, allowed, best, f(best))
    end = max(best, math.ceil(allowed / slope)) + 1  # f(K) > slope K > allowed beyond
    return KRule(low, _first(lambda K: f(K) > allowed, best, end) - 1, allowed, best, f(best))


def _least(f: Callable[[int], float], slope: float, discount: float) -> int:
    """The K at which f is least: a neighbour of the real root of f' = slope + γ^K ln γ."""
    if discount == 0.0:
        return 1
    if slope == 0.0:  # no least: far enough for γ^K to be nothing
        return max(1, math.ceil(math.log(1e-300) / math.log(discount)))
    root = math.log(slope / -math.log(discount)) / math.log(discount)
    below = max(1, math.floor(root))
    return min((below, below + 1), key=f)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first K in low .. high from which on ``holds`` is true, by bisection; it must be true at ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
