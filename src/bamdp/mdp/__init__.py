"""Known models (:class:`FiniteMDP`) and their solvers."""

from bamdp.mdp.average import Gain, gain
from bamdp.mdp.model import FiniteMDP, load_model
from bamdp.mdp.solvers import (
    Solution,
    evaluate_policy,
    policy_iteration,
    total_reward,
    uniform_policy,
    value_iteration,
)

__all__ = [
    "FiniteMDP",
    "Gain",
    "Solution",
    "evaluate_policy",
    "gain",
    "load_model",
    "policy_iteration",
    "total_reward",
    "uniform_policy",
    "value_iteration",
]
