"""Tools for writing your own priors, reward models, policy generators and planners.

- Declare parameters as fields with :func:`whole_number`, :func:`real_number`, :func:`positive_number`, :func:`choice`
  and :func:`flag`. They are then validated, documented and shown in forms.
- A posterior is a NamedTuple of arrays, declared with :func:`transition_posterior` or :func:`reward_posterior`. It has
  the methods ``push``, ``pop``, ``probability`` and ``sample_row``; the other :data:`verbs` are derived.
- Generate random numbers in compiled code with :func:`uniform`, :func:`below`, :func:`normal`, :func:`gamma` and
  :func:`beta`.
- Write a planner's compiled code as a :func:`kernel` and call it through :meth:`bamdp.Belief.run`, which passes the
  belief's arrays. Kernels access the belief through :func:`simulate_step`, :func:`push_step`, :func:`undo_steps`,
  :func:`sample_model` and :func:`mean_model`.

For examples, see the documentation page "Your own parts".
"""

from bamdp._kernels.jit import kernel as kernel
from bamdp._kernels.jit import primitive as primitive
from bamdp._kernels.random import below as below
from bamdp._kernels.random import beta as beta
from bamdp._kernels.random import gamma as gamma
from bamdp._kernels.random import normal as normal
from bamdp._kernels.random import uniform as uniform
from bamdp._parameters import choice as choice
from bamdp._parameters import flag as flag
from bamdp._parameters import positive_number as positive_number
from bamdp._parameters import real_number as real_number
from bamdp._parameters import whole_number as whole_number
from bamdp.beliefs import verbs as verbs
from bamdp.beliefs.base import BeliefArrays as BeliefArrays
from bamdp.beliefs.base import fix_zero_reward as fix_zero_reward
from bamdp.beliefs.base import reserve as reserve
from bamdp.beliefs.base import reward_posterior as reward_posterior
from bamdp.beliefs.base import shared_weights as shared_weights
from bamdp.beliefs.base import transition_posterior as transition_posterior
from bamdp.beliefs.kernels import mean_model as mean_model
from bamdp.beliefs.kernels import push_step as push_step
from bamdp.beliefs.kernels import sample_model as sample_model
from bamdp.beliefs.kernels import simulate_step as simulate_step
from bamdp.beliefs.kernels import undo_steps as undo_steps
from bamdp.planners.base import KernelPlanner as KernelPlanner
from bamdp.planners.shared.workspace import Workspace as Workspace
from bamdp.planners.shared.workspace import workspace_for as workspace_for
from bamdp.planners.thompson import sample_policy as sample_policy
