"""Numerical theory of DSS: bounds on its loss, exact call counts, the rule for K, and estimates of constants and
losses.

:func:`printed_loss_bound` is Theorem 1 as printed in the paper; :func:`corrected_loss_bound` is a corrected bound,
proved on the theory page of the documentation. Both take the same arguments.
"""

from bamdp.theory import bounds, counts, estimates
from bamdp.theory.bounds import *  # noqa: F403
from bamdp.theory.counts import *  # noqa: F403
from bamdp.theory.estimates import *  # noqa: F403

__all__ = sorted([*bounds.__all__, *counts.__all__, *estimates.__all__])
