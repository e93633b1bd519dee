"""Tools for writing your own priors, reward models, policy generators and planners.

- Declare parameters as fields with :func:`whole_number`, :func:`real_number`, :func:`positive_number`, :func:`choice`
  and :func:`flag`. They are then validated, documented and shown in forms.
- A posterior is a NamedTuple of arrays, declared with :func:`transition_posterior` or :func:`reward_posterior`. It
  implements ``push``, ``pop``, ``probability`` and ``sample_row``; the other :data:`verbs` are derived.
- Generate random numbers in compiled code with :func:`uniform`, :func:`below`, :func:`normal`, :func:`gamma` and
  :func:`beta`.
- Write a planner's compiled code as a :func:`kernel` and call it through :meth:`bamdp.Belief.run`, which passes the
  belief's arrays. Kernels access the belief through :func:`simulate_step`, :func:`push_step`, :func:`undo_steps`,
  :func:`sample_model` and :func:`mean_model`.

For examples, see the documentation page "Your own parts".
"""

from bamdp._kernels.jit import kernel, primitive
from bamdp._kernels.random import below, beta, gamma, normal, uniform
from bamdp._parameters import choice, flag, positive_number, real_number, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import (
    BeliefArrays,
    fix_zero_reward,
    reserve,
    reward_posterior,
    shared_weights,
    transition_posterior,
)
from bamdp.beliefs.kernels import mean_model, push_step, sample_model, simulate_step, undo_steps
from bamdp.planners.base import KernelPlanner
from bamdp.planners.shared.workspace import Workspace, workspace_for
from bamdp.planners.thompson import sample_policy

__all__ = [
    "BeliefArrays",
    "KernelPlanner",
    "Workspace",
    "below",
    "beta",
    "choice",
    "fix_zero_reward",
    "flag",
    "gamma",
    "kernel",
    "mean_model",
    "normal",
    "positive_number",
    "primitive",
    "push_step",
    "real_number",
    "reserve",
    "reward_posterior",
    "sample_model",
    "sample_policy",
    "shared_weights",
    "simulate_step",
    "transition_posterior",
    "undo_steps",
    "uniform",
    "verbs",
    "whole_number",
    "workspace_for",
]
