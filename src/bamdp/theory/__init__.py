"""The theory of DSS in numbers: bounds on its loss, exact counts of calls, the rule for K, estimates and losses.

Theorem 1 as the paper prints it is :func:`printed_loss_bound`; :func:`corrected_loss_bound` is one that holds, with its
proof on the theory page of the documentation. Both take the same arguments.
"""

from bamdp.theory import bounds, counts, estimates
from bamdp.theory.bounds import *  # noqa: F403
from bamdp.theory.counts import *  # noqa: F403
from bamdp.theory.estimates import *  # noqa: F403

__all__ = sorted([*bounds.__all__, *counts.__all__, *estimates.__all__])
