"""Tools for priors, reward models, policy generators and planners of your own.

- Parameters are fields that :func:`whole_number`, :func:`real_number`, :func:`positive_number`, :func:`choice` and
  :func:`flag` declare: they are checked, documented, and shown in forms.
- A posterior is a NamedTuple of arrays, declared by :func:`transition_posterior` or :func:`reward_posterior`, with an
  implementation of ``push``, ``pop``, ``probability`` and ``sample_row``; the other :data:`verbs` follow.
- Random numbers inside compiled code come from :func:`uniform`, :func:`below`, :func:`normal`, :func:`gamma` and
  :func:`beta`.
- A planner's own compiled code is a :func:`kernel`, called by :meth:`bamdp.Belief.run` with the belief's arrays; what
  it does to the belief are :func:`simulate_step`, :func:`push_step`, :func:`undo_steps`, :func:`sample_model` and
  :func:`mean_model`.

The page "Your own parts" of the documentation has examples of each.
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
