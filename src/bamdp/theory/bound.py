"""What a bound on the loss is: named terms that add up, beside the most that there is to lose.

With rewards in an interval of length ρ, values of n steps lie in an interval of length

    ρ R_n,    R_n = 1 + γ + … + γ^(n−1) = (1 − γ^n) / (1 − γ),

and no policy whatever loses more than ρ R_∞ = ρ / (1 − γ). A bound that exceeds this is *vacuous*: it is true, and
says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bamdp import _checks

MOST_STEPS = 1_000_000
MOST_STAGES = 10_000


@dataclass(frozen=True)
class Bound:
    """An upper bound on v* − v, term by term.

    Examples
    --------
    >>> bound = Bound({"thompson": 1.5, "sampling": 1.0}, range=2.0)
    >>> bound.total, bound.vacuous
    (2.5, True)
    """

    terms: Mapping[str, float]
    range: float  # the most that any policy can lose

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether the bound says less than that rewards are bounded."""
        return self.total >= self.range


def value_range(discount: float, n_steps: int | None = None, reward_range: float = 1.0) -> float:
    """ρ R_n, the length of the interval of values; of infinitely many steps by default.

    Examples
    --------
    >>> value_range(0.5), value_range(0.5, 3)
    (2.0, 1.75)
    """
    discount = _checks.discount(discount)
    scale = _checks.real(reward_range, "reward_range", low=0.0, open_low=True)
    if n_steps is None:
        return scale / (1.0 - discount)
    return scale * (1.0 - discount ** steps(n_steps)) / (1.0 - discount)


def steps(n_steps: int) -> int:
    """K, checked."""
    return _checks.integer(n_steps, "n_steps", high=MOST_STEPS)


def stages(n_stages: int) -> int:
    """H, checked."""
    return _checks.integer(n_stages, "n_stages", high=MOST_STAGES)


def not_negative(value: float, name: str) -> float:
    """ε₀ or C, checked."""
    return _checks.real(value, name, low=0.0)


def confidence(delta: float) -> float:
    """δ in (0, 1), checked."""
    number = _checks.real(delta, "delta")
    if not 0.0 < number < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {number}; 0.05 means with probability 95 %")
    return number
