"""Exact sizes of planners' trees, for which the paper gives O((NM)^{T/K}) and O((|A|M)^T).

DSS branches N·M ways every K steps. With b = N M and H = T/K stages,

    decision nodes     n = 1 + b + … + b^{H−1}
    policies           N n            models drawn and solved
    calls              K b n          simulated steps, calls to the generative model
    leaves             b^H

so the paper's O((NM)^{T/K}) counts leaves; there are about K b/(b−1) times as many calls. Sparse sampling with M draws
per action takes (A M) + (A M)² + … + (A M)^T calls, and the exact tree has (A S)^d histories of length d. These counts
are for MDPs without terminal states, which would make the trees smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

from bamdp import _checks

__all__ = ["Calls", "bamcp_calls", "dss_calls", "fhts_histories", "sparse_sampling_calls"]
MOST_DIGITS = 10_000  # larger counts are useless and take too long to compute


@dataclass(frozen=True)
class Calls:
    """The size of a DSS tree."""

    nodes: int  # n, decision nodes
    policies: int  # models drawn and solved
    calls: int  # simulated steps
    leaves: int


def dss_calls(n_policies: int, n_samples: int, n_steps: int, n_stages: int = 1) -> Calls:
    """Return the exact counts of a DSS tree.

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
    """Return the number of histories in the exact tree, Σ_{d=1..T} (A S)^d, if all next states are possible."""
    S = _checks.integer(n_states, "n_states")
    A = _checks.integer(n_actions, "n_actions")
    return _powers(A * S, _checks.integer(horizon, "horizon"))


def bamcp_calls(n_simulations: int, depth: int) -> int:
    """Return the number of simulated steps of BAMCP, in the tree and in rollouts."""
    return _checks.integer(n_simulations, "n_simulations") * _checks.integer(depth, "depth")


def _powers(b: int, n: int) -> int:
    """Return b + b² + … + b^n."""
    if n * len(str(b)) > MOST_DIGITS:
        raise ValueError(
            f"the tree has about {b}^{n} leaves, more than {MOST_DIGITS} digits: it cannot be searched; "
            "lower the depth or the width"
        )
    return n if b == 1 else (b ** (n + 1) - b) // (b - 1)
