"""The policies that DSS tries: of a model that is drawn whole, or of one that is drawn where it is looked at.

Which it is follows from the workspace. ``tree.state[h]`` is the state that a policy of stage ``h`` starts from.
"""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import generic, primitive
from bamdp.beliefs.kernels import sample_model
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.generators import generate
from bamdp.generators.builtin import RMAX
from bamdp.generators.lazy import ROWS, ROWS_AHEAD, UNKNOWN, LazyModels, generate_lazily, lazy_action
from bamdp.planners.shared.workspace import LeafWorkspaceArrays, WorkspaceArrays


@generic
def draw_policy(workspace, belief, params, tree, h, rng):
    """Draw a model and make it the policy of stage ``h``; DONE or NO_ROOM."""


@generic
def policy_action(workspace, belief, params, tree, h, s, rng):
    """Return the action of stage ``h``'s policy in state ``s``, or NO_ROOM."""


@generic
def keep_policy(workspace, belief, params, tree, rng):
    """Keep the root's policy in ``tree.best``, UNKNOWN where its model was not looked at."""


@draw_policy.register(WorkspaceArrays)
@draw_policy.register(LeafWorkspaceArrays)
def _draw_whole(workspace, belief, params, tree, h, rng):
    rows, solver = workspace.rows, workspace.solver
    if sample_model(belief, rows, rng) == NO_ROOM:
        return NO_ROOM
    generate(params.generator, rows, belief.space, params.discount, tree.state[h], solver, rng)
    for t in range(solver.policy.shape[0]):
        tree.policy[h, t] = solver.policy[t]
    return DONE


@policy_action.register(WorkspaceArrays)
@policy_action.register(LeafWorkspaceArrays)
def _look_up(workspace, belief, params, tree, h, s, rng):
    return tree.policy[np.uint64(h), np.uint64(s)]


@keep_policy.register(WorkspaceArrays)
@keep_policy.register(LeafWorkspaceArrays)
def _copy_whole(workspace, belief, params, tree, rng):
    for t in range(tree.best.shape[0]):
        tree.best[t] = tree.policy[0, t]


@draw_policy.register(LazyModels)
def _draw_in_part(models, belief, params, tree, h, rng):
    return generate_lazily(params.generator, models, belief, params.discount, h, tree.state[h], rng)


@policy_action.register(LazyModels)
def _work_out(models, belief, params, tree, h, s, rng):
    return lazy_action(params.generator, models, belief, params.discount, h, s, rng)


@keep_policy.register(LazyModels)
def _copy_what_is_known(models, belief, params, tree, rng):
    for i in range(models.n_known[0]):
        tree.best[models.known[i]] = UNKNOWN
    needed = ROWS if params.generator.bound == RMAX else ROWS_AHEAD  # then an action draws nothing
    n = 0
    for at in range(models.begin[0], models.end[0]):
        if models.drawn[at] >= needed:
            s = np.int64(models.state[at])
            tree.best[s] = lazy_action(params.generator, models, belief, params.discount, np.int64(0), s, rng)
            models.known[n] = s
            n += 1
    models.n_known[0] = n


# generic functions as compiled code calls them, for callers outside of it


@primitive
def call_draw_policy(workspace, belief, params, tree, h, rng):
    """Call :func:`draw_policy` from outside of kernels."""
    return draw_policy(workspace, belief, params, tree, h, rng)


@primitive
def call_policy_action(workspace, belief, params, tree, h, s, rng):
    """Call :func:`policy_action` from outside of kernels."""
    return policy_action(workspace, belief, params, tree, h, s, rng)


@primitive
def call_keep_policy(workspace, belief, params, tree, rng):
    """Call :func:`keep_policy` from outside of kernels."""
    keep_policy(workspace, belief, params, tree, rng)
