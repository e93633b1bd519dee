"""Trial-based solution of a known model from one start state; :mod:`bamdp.generators.rtdp` defines the trials."""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.random import Seed, new_rng
from bamdp._kernels.rows import average
from bamdp.generators.lazy import value_bound
from bamdp.generators.rtdp import RMAX, RTDPParams, TrialTable, run_trials
from bamdp.mdp.build import used_rows
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import Solution, certify, check_model, check_tolerance, initial_values


def rtdp(
    mdp: FiniteMDP,
    discount: float,
    *,
    start: int,
    depth: int,
    n_trials: int,
    seed: Seed = None,
    initial: Any = None,
    tol: float | None = None,
) -> Solution:
    """Solve a model by trial-based dynamic programming from one start state.

    Parameters
    ----------
    mdp
        The model.
    discount
        γ in [0, 1).
    start
        The state in which each trial starts.
    depth
        Maximum number of steps per trial.
    n_trials
        Maximum number of trials.
    seed
        Seed for sampling next states.
    initial
        Initial values, a scalar or ``[S]``. The default is an upper bound on V*.
    tol
        Stop once the start state is settled to within this tolerance. By default, run all trials.

    Returns
    -------
    Solution
        Values, the greedy policy and proven bounds; ``iterations`` is the number of trials.

    Examples
    --------
    >>> from bamdp import FiniteMDP, rtdp
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 0]])
    >>> solution = rtdp(mdp, 0.9, start=0, depth=20, n_trials=100, seed=0)
    >>> solution.values.round(4), solution.policy
    (array([ 8.7805, 10.    ]), array([1, 0]))
    """
    check_model(mdp)
    discount = _checks.discount(discount)
    start = _checks.index(start, "start", mdp.n_states)
    depth = _checks.integer(depth, "depth")
    n_trials = _checks.integer(n_trials, "n_trials")
    limit = -1.0 if tol is None else check_tolerance(tol)
    values = initial_values(mdp, upper_bound(mdp, discount) if initial is None else initial)
    limits = RTDPParams(depth, n_trials, RMAX, limit)
    table = TrialTable(values, *(np.zeros(mdp.n_states, np.int32) for _ in range(2)))
    mean = float(average(values))
    rng = new_rng(seed)
    done, _ = run_trials(mdp.rows, mdp.space, discount, start, limits, table, mean, None, None, 0, rng)
    return certify(mdp, discount, values, done)


def upper_bound(mdp: FiniteMDP, discount: float) -> float:
    """Return an upper bound on V* in all nonterminal states."""
    rewards = mdp.rows.reward[used_rows(mdp.space)]
    return value_bound(float(rewards.max()), discount, bool(mdp.terminal.any()))[0] if len(rewards) else 0.0
