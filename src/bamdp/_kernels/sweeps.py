"""Bellman sweeps over :class:`~bamdp._kernels.rows.Rows`.

For values V let δ(s) = max_a Q_V(s, a) − V(s), with Q_V(s, a) = r(s, a) + γ Σ p(s'|s, a) V(s'). Then
(MacQueen 1966; Porteus 1971), for the greedy policy π of V and T V = V + δ,

    T V + γ/(1−γ) min δ  ≤  V^π  ≤  V*  ≤  T V + γ/(1−γ) max δ,

so π loses at most γ/(1−γ) (max δ − min δ) for any initial values V. Terminal states have V = 0 and δ = 0, so the bounds
also hold for them.

Planners use the solver :func:`bamdp._kernels.solve.solve`.
"""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import inner, primitive


@primitive
def row_value(rows, row, values, mean):
    """Return Σ_s' p(s' | row) V(s'); ``mean`` is the average of ``values``, used for the background mass."""
    total = rows.background[row] * mean
    # unsigned indices avoid Numba's check for negative ones, a third of a sweep's time
    for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
        total += rows.prob[i] * values[np.uint32(rows.index[i])]
    return total


@primitive
def average(values):
    """Return the mean of ``values``, in index order."""
    total = 0.0
    for s in range(values.shape[0]):
        total += values[s]
    return total / values.shape[0]


@primitive
def best_action(rows, space, discount, s, values, mean):
    """Return (greedy action, its value) in state ``s``; the lowest index wins a tie."""
    n_actions = space.allowed.shape[1]
    best = -np.inf
    action = np.uint64(0)
    state = np.uint64(s)
    for a in range(np.uint64(n_actions)):
        if space.allowed[state, a]:
            row = state * np.uint64(n_actions) + a
            q = rows.reward[row] + discount * row_value(rows, row, values, mean)
            if q > best:
                best = q
                action = a
    return np.int64(action), best


@primitive
def action_values(rows, space, discount, values, s, q):
    """Write Q_V(s, ·) to ``q`` [A], with NaN for nonexistent actions; return the greedy action."""
    n_actions = space.allowed.shape[1]
    mean = average(values)
    best, action = -np.inf, 0
    for a in range(n_actions):
        row = s * n_actions + a
        q[a] = np.nan
        if space.allowed[s, a]:
            q[a] = rows.reward[row] + discount * row_value(rows, row, values, mean)
            if q[a] > best:
                best, action = q[a], a
    return action


@inner
def improve(rows, space, discount, values, new_values, policy):
    """Run one Jacobi optimality sweep, writing T V to ``new_values`` and the greedy policy of V to ``policy``.

    Return (min δ, max δ); see the module docstring. ``values`` and ``new_values`` must be different arrays.
    """
    mean = average(values)
    low, high = np.inf, -np.inf
    for s in range(values.shape[0]):
        if space.terminal[s]:
            policy[s] = 0
            new_values[s] = 0.0
            delta = -values[s]
        else:
            action, best = best_action(rows, space, discount, s, values, mean)
            policy[s] = action
            new_values[s] = best
            delta = best - values[s]
        low = min(low, delta)
        high = max(high, delta)
    return low, high


@inner
def policy_sweep(rows, space, discount, policy, values, new_values):
    """Run one Jacobi sweep of a policy π, writing T_π V to ``new_values``; return (min δ, max δ)."""
    n_states, n_actions = space.allowed.shape
    mean = average(values)
    low, high = np.inf, -np.inf
    for s in range(n_states):
        new = 0.0
        if not space.terminal[s]:
            row = s * n_actions + policy[s]
            new = rows.reward[row] + discount * row_value(rows, row, values, mean)
        new_values[s] = new
        low = min(low, new - values[s])
        high = max(high, new - values[s])
    return low, high
