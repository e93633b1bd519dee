"""Known models (:class:`FiniteMDP`) and their solvers."""

from bamdp.mdp.average import Gain, gain
from bamdp.mdp.evaluation import evaluate_policy, total_reward, uniform_policy
from bamdp.mdp.model import FiniteMDP, load_model
from bamdp.mdp.solution import Solution
from bamdp.mdp.solvers import policy_iteration, value_iteration

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
