"""The theory of DSS in numbers: bounds on its loss, exact counts of calls, the rule for K, estimates and losses.

Theorem 1 as the paper prints it is :func:`printed_loss_bound`; :func:`corrected_loss_bound` is one that holds, with its
proof on the theory page of the documentation. Both take the same arguments.
"""

from bamdp.theory.bounds import (
    Bound,
    KRule,
    corrected_anytime_error,
    corrected_loss_bound,
    corrected_model_error,
    corrected_sampling_error,
    corrected_thompson_error,
    k_rule,
    printed_anytime_error,
    printed_loss_bound,
    printed_sampling_error,
    printed_thompson_error,
    value_range,
)
from bamdp.theory.counts import (
    Calls,
    bamcp_calls,
    dss_calls,
    fhts_histories,
    sparse_sampling_calls,
)
from bamdp.theory.estimates import (
    Disagreement,
    Drift,
    Loss,
    bayes_loss,
    belief_distance,
    estimate_c,
    estimate_epsilon0,
    model_distance,
)

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
    "corrected_anytime_error",
    "corrected_loss_bound",
    "corrected_model_error",
    "corrected_sampling_error",
    "corrected_thompson_error",
    "dss_calls",
    "estimate_c",
    "estimate_epsilon0",
    "fhts_histories",
    "k_rule",
    "model_distance",
    "printed_anytime_error",
    "printed_loss_bound",
    "printed_sampling_error",
    "printed_thompson_error",
    "sparse_sampling_calls",
    "value_range",
]
