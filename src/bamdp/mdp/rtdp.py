"""Real-time dynamic programming (Barto, Bradtke & Singh 1995).

A trial starts in a given state and lasts at most ``depth`` steps. In each state that it visits it backs up
that state alone, V(s) ← max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], takes the greedy action (the lowest of several
equal ones) and draws the next state from the model; a terminal state ends it. Only states that greedy policies
visit from the start are ever touched: a trial costs O(depth · A · entries of a row), whatever the number of
states.

The initial values must be an upper bound of V* for exploration to be driven towards what is unknown; V then
remains an upper bound and falls. The default is max r/(1−γ).

**Stopping.** RTDP stops after ``n_trials`` or, with ``tol``, after the first trial whose largest change is at most
``tol``. Neither proves anything; ``error_bound`` of the result is proven, but for all states, visited or not, and
therefore usually wide. For the start state, ``values[start]`` is an upper bound (if the initial values were) and
:func:`~bamdp.mdp.evaluate_policy` of the policy gives a lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import inner, kernel
from bamdp._kernels.random import Seed, below, new_state, uniform
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import average, best_action
from bamdp.mdp.build import used_rows
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import (
    Solution,
    certify,
    check_model,
    check_tolerance,
    discounted_sum,
    initial_values,
    row_sum_error,
)


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
        The largest number of steps of a trial.
    n_trials
        The largest number of trials.
    seed
        The seed of the draws of next states.
    initial
        Initial values, a number or ``[S]``; an upper bound of V* by default.
    tol
        Stop after a trial that changes no value by more than this.

    Returns
    -------
    Solution
        Values, their greedy policy, and proven bounds; ``iterations`` is the number of trials.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, rtdp
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
    done, _ = run_trials(
        mdp.rows, mdp.space, discount, start, depth, n_trials, limit, values, new_state(seed)
    )
    return certify(mdp, discount, values, done)


def upper_bound(mdp: FiniteMDP, discount: float) -> float:
    """Return an upper bound of V* in all states that are not terminal."""
    used = used_rows(mdp.space)
    if not used.any():
        return 0.0
    best = float(mdp.rows.reward[used].max())
    if best < 0.0 and mdp.terminal.any():
        return best  # at least one step is taken, and the episode may end after it
    return discounted_sum(best, discount, row_sum_error(mdp))


@kernel
def run_trials(
    rows: Rows,
    space: Space,
    discount: float,
    start: int,
    depth: int,
    n_trials: int,
    tol: float,
    values: np.ndarray,
    rng: np.ndarray,
) -> tuple[int, float]:
    """Trials on ``values`` in place, until one changes nothing by more than ``tol`` (never if negative).

    Returns the number of trials and the last one's largest change. ``rng`` is the generator's state.
    """
    n_states, n_actions = space.allowed.shape
    mean = average(values)
    change = 0.0
    for trial in range(n_trials):
        s = start
        change = 0.0
        for _ in range(depth):
            at = np.uint64(s)
            if space.terminal[at]:
                break
            action, best = best_action(rows, space, discount, s, values, mean)
            delta = best - values[at]
            values[at] = best
            mean += delta / n_states
            change = max(change, abs(delta))
            s = draw_next(rows, s * n_actions + action, n_states, rng)
        if change <= tol:
            return trial + 1, change
    return n_trials, change


@inner
def draw_next(rows: Rows, row: int, n_states: int, rng: np.ndarray) -> int:
    """A next state from a row: entries in order, the rest of the mass evenly over all states."""
    u = uniform(rng)
    last = 0
    for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):  # as in row_value
        last = rows.index[i]
        u -= rows.prob[i]
        if u < 0.0:
            return last
    if rows.background[row] > 0.0:
        return below(rng, n_states)
    return last
