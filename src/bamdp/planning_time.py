"""How much of a tree a planner grows, and about how long it takes to choose an action.

The counts are exact where the paper has O((NM)^{T/K}) and O((|A|M)^T). DSS branches N·M ways once in K steps. With
b = N M and H = T/K stages,

    decision nodes     n = 1 + b + … + b^{H−1}
    policies           N n            models drawn and solved
    calls              K b n          simulated steps, calls to the generative model
    leaves             b^H

so the O((NM)^{T/K}) of the paper counts leaves; the calls are K b/(b−1) times as many. Sparse sampling with M draws
an action takes (A M) + (A M)² + … + (A M)^T calls, and the exact tree has (A S)^d histories of length d. These are
the counts for worlds without terminal states, which would cut the trees short.

The time multiplies the simulated steps and the solved models by what one of each takes on an ordinary machine. It is
right within a factor of ten or so, which is enough to tell a second from a year.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bamdp import _checks, planners
from bamdp.planners.base import Planner
from bamdp.planners.shared.tree_search import TreeSearch, auto_depth

MOST_DIGITS = 10_000  # larger counts are no use to anybody and take for ever
STEP_SECONDS = 25e-9  # of a simulated step
OUTCOME_SECONDS = 3e-6  # of a step in a tree of outcomes, whose values are bounded or sampled on the way
RESOLVING = 0.25  # of the time of a solution, for one in a trial of AdaptiveDSS, which starts near its end
PAIR_SECONDS = 250e-9  # of drawing and solving a model, for each pair of state and action


@dataclass(frozen=True)
class Calls:
    """The size of a DSS tree."""

    nodes: int  # n, decision nodes
    policies: int  # models drawn and solved
    calls: int  # simulated steps
    leaves: int


def dss_calls(n_policies: int, n_samples: int, n_steps: int, n_stages: int = 1) -> Calls:
    """Exact counts for DSS.

    Examples
    --------
    >>> dss_calls(4, 4, 18, n_stages=2)
    Calls(nodes=17, policies=68, calls=4896, leaves=256)
    """
    N = _checks.integer(n_policies, "n_policies")
    b = N * _checks.integer(n_samples, "n_samples")
    K = _checks.integer(n_steps, "n_steps")
    H = _checks.integer(n_stages, "n_stages")
    nodes = 1 + _powers(b, H - 1)
    return Calls(nodes=nodes, policies=N * nodes, calls=K * b * nodes, leaves=b**H)


def sparse_sampling_calls(n_actions: int, width: int, depth: int) -> int:
    """Return the number of simulated steps of sparse sampling: Σ_{d=1..T} (A M)^d.

    Examples
    --------
    >>> sparse_sampling_calls(n_actions=2, width=4, depth=3)
    584
    """
    A = _checks.integer(n_actions, "n_actions")
    M = _checks.integer(width, "width")
    return _powers(A * M, _checks.integer(depth, "depth"))


def fhts_histories(n_states: int, n_actions: int, horizon: int) -> int:
    """Return the number of histories in the exact tree, Σ_{d=1..T} (A S)^d: none merged, all next states possible."""
    S = _checks.integer(n_states, "n_states")
    A = _checks.integer(n_actions, "n_actions")
    return _powers(A * S, _checks.integer(horizon, "horizon"))


def bamcp_calls(n_simulations: int, depth: int) -> int:
    """Return the number of simulated steps of BAMCP, tree and rollout together."""
    return _checks.integer(n_simulations, "n_simulations") * _checks.integer(depth, "depth")


def _powers(b: int, n: int) -> int:
    """Return b + b² + … + b^n."""
    if n * len(str(b)) > MOST_DIGITS:
        raise ValueError(
            f"the tree has about {b}^{n} leaves, more than {MOST_DIGITS} digits: nobody will ever grow it; "
            "lower the depth or the width"
        )
    return n if b == 1 else (b ** (n + 1) - b) // (b - 1)


def planning_seconds(planner: Planner, n_states: int, n_actions: int, discount: float) -> float:
    """Return about how long a planner takes to choose one action; infinite if that cannot even be counted."""
    solve = PAIR_SECONDS * n_states * n_actions  # one model
    try:
        match planner:
            case planners.DSS():
                sizes = planner.n_policies, planner.n_samples, planner.n_steps, planner.n_stages
                tree = dss_calls(*sizes)
                return float(tree.calls) * STEP_SECONDS + float(tree.policies) * solve
            case planners.FHTS():  # it gives up at so many hyper-states
                few = n_states * n_actions * planner.horizon < MOST_DIGITS
                most = planner.max_hyper_states
                histories = fhts_histories(n_states, n_actions, planner.horizon) if few else most
                return float(min(histories, most)) * STEP_SECONDS
            case planners.SparseSampling():
                calls = sparse_sampling_calls(n_actions, planner.width, planner.depth)
                return float(calls) * STEP_SECONDS
            case TreeSearch() | planners.AdaptiveDSS() if planner.time_limit is not None:
                return planner.time_limit
            case TreeSearch():
                depth = auto_depth(discount) if isinstance(planner.depth, str) else planner.depth
                return float(bamcp_calls(planner.n_simulations, depth)) * STEP_SECONDS
            case planners.AdaptiveDSS():
                steps = planner.n_stages * planner.n_steps
                trial = (planner.n_stages + 1) * RESOLVING * solve + steps * STEP_SECONDS
                return float(planner.budget(n_states, n_actions)) * trial
            case planners.BFS3() | planners.BayesianSparseSampling():
                return solve + float(planner.n_trajectories) * planner.depth * OUTCOME_SECONDS
            case _ if not getattr(planner, "uses_prior", True):  # it learns values, and solves nothing
                return STEP_SECONDS
            case _:
                return float(getattr(planner, "n_models", 1)) * solve
    except (ValueError, OverflowError):  # too many digits, or more than the largest float
        return math.inf
