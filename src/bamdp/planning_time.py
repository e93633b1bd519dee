"""About how long a planner takes to choose an action.

The estimate counts the steps that a planner simulates and the models that it solves
(:mod:`bamdp.planners.shared.tree_sizes`), and multiplies by what one of each takes on an ordinary machine. It is right
within a factor of ten or so, which is enough to tell a second from a year.
"""

from __future__ import annotations

import math

from bamdp import planners
from bamdp.planners.base import Planner
from bamdp.planners.shared import tree_sizes
from bamdp.planners.shared.tree_search import TreeSearch, auto_depth

STEP_SECONDS = 25e-9  # of a simulated step
OUTCOME_SECONDS = 3e-6  # of a step in a tree of outcomes, whose values are bounded or sampled on the way
PAIR_SECONDS = 250e-9  # of drawing and solving a model, for each pair of state and action


def planning_seconds(planner: Planner, n_states: int, n_actions: int, discount: float) -> float:
    """Return about how long a planner takes to choose one action; infinite if that cannot even be counted."""
    solve = PAIR_SECONDS * n_states * n_actions  # one model
    try:
        match planner:
            case planners.DSS():
                sizes = planner.n_policies, planner.n_samples, planner.n_steps, planner.n_stages
                tree = tree_sizes.dss_calls(*sizes)
                return float(tree.calls) * STEP_SECONDS + float(tree.policies) * solve
            case planners.FHTS():  # it gives up at so many hyper-states
                few = n_states * n_actions * planner.horizon < tree_sizes.MOST_DIGITS
                most = planner.max_hyper_states
                histories = tree_sizes.fhts_histories(n_states, n_actions, planner.horizon) if few else most
                return float(min(histories, most)) * STEP_SECONDS
            case planners.SparseSampling():
                calls = tree_sizes.sparse_sampling_calls(n_actions, planner.width, planner.depth)
                return float(calls) * STEP_SECONDS
            case TreeSearch():
                if planner.time_limit is not None:
                    return planner.time_limit
                depth = auto_depth(discount) if isinstance(planner.depth, str) else planner.depth
                return float(tree_sizes.bamcp_calls(planner.n_simulations, depth)) * STEP_SECONDS
            case planners.AdaptiveDSS():
                if planner.time_limit is not None:
                    return planner.time_limit
                trial = (planner.n_stages + 1) * solve + planner.n_stages * planner.n_steps * STEP_SECONDS
                return float(planner.n_simulations) * trial
            case planners.BFS3() | planners.BayesianSparseSampling():
                return solve + float(planner.n_trajectories) * planner.depth * OUTCOME_SECONDS
            case _ if not getattr(planner, "uses_prior", True):  # it learns values, and solves nothing
                return STEP_SECONDS
            case _:
                return float(getattr(planner, "n_models", 1)) * solve
    except (ValueError, OverflowError):  # too many digits, or more than the largest float
        return math.inf
