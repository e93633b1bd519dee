"""The theory of DSS, in numbers: Theorem 1 and its terms, exact counts, the rule for K, estimates, real losses.

:mod:`~bamdp.theory.printed` has the bound as the paper prints it, :mod:`~bamdp.theory.mended` one that holds, with
its proof on the theory page of the documentation; both are functions of the same names and arguments.
"""

from bamdp.planners.shared.tree_sizes import (
    Calls,
    bamcp_calls,
    dss_calls,
    fhts_histories,
    sparse_sampling_calls,
)
from bamdp.theory import mended, printed
from bamdp.theory.bound import Bound, value_range
from bamdp.theory.estimates import (
    Disagreement,
    Drift,
    belief_distance,
    estimate_c,
    estimate_epsilon0,
    model_distance,
)
from bamdp.theory.k_rule import KRule, k_rule
from bamdp.theory.loss import Loss, bayes_loss

__all__ = [
    "Bound",
    "Calls",
    "Disagreement",
    "Drift",
    "KRule",
    "Loss",
    "bamcp_calls",
    "bayes_loss",
    "belief_distance",
    "dss_calls",
    "estimate_c",
    "estimate_epsilon0",
    "fhts_histories",
    "k_rule",
    "mended",
    "model_distance",
    "printed",
    "sparse_sampling_calls",
    "value_range",
]
