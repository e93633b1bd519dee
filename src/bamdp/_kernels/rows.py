"""Models as arrays, whether known or sampled, and Bellman sweeps over them.

Row ``s * A + a`` is the distribution of the next state after action ``a`` in state ``s``: the entries
``index[begin:end], prob[begin:end]`` plus the mass ``background`` spread evenly over all S states. Means of
Dirichlet priors need the background; sampled models rarely do.

**Bounds.** For values V let δ(s) = max_a Q_V(s, a) − V(s), with Q_V(s, a) = r(s, a) + γ Σ p(s'|s, a) V(s'). Then
(MacQueen 1966; Porteus 1971), for the greedy policy π of V and T V = V + δ,

    T V + γ/(1−γ) min δ  ≤  V^π  ≤  V*  ≤  T V + γ/(1−γ) max δ,

so π loses at most γ/(1−γ) (max δ − min δ) for any initial values V. Terminal states have V = 0 and δ = 0, so the bounds
also hold for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import uniform

ANYWHERE = -1  # a next state drawn from the background: uniform over all states


class Rows(NamedTuple):
    """A model as arrays. Sampled models may be filled row by row; ``span[row, 0] < 0`` means "not drawn yet"."""

    span: np.ndarray  # int64 [S*A, 2]: begin and end of each row's entries
    index: np.ndarray  # type: ignore[assignment]  # int32 [capacity]: next states
    prob: np.ndarray  # float64 [capacity]
    background: np.ndarray  # float64 [S*A]: mass spread evenly over all states
    reward: np.ndarray  # float64 [S*A]: expected reward E[r | s, a]


class Space(NamedTuple):
    """Known terminal states and allowed actions of an environment."""

    terminal: np.ndarray  # bool [S]: no action is taken here, the value is 0
    allowed: np.ndarray  # bool [S, A]: actions that exist in a state


@primitive
def is_listed(index, begin, end, s2):
    """Return whether state ``s2`` is among ``index[begin:end]``."""
    listed = False
    for i in range(begin, end):
        listed = listed or index[i] == s2
    return listed


@inner
def draw_next(rows, row, rng):
    """Draw a next state from a row's distribution; return ANYWHERE if it comes from the background."""
    u = uniform(rng)
    begin, end = rows.span[row, 0], rows.span[row, 1]
    for i in range(np.uint64(begin), np.uint64(end)):
        u -= rows.prob[i]
        if u < 0.0:
            return np.int64(rows.index[i])
    if rows.background[row] > 0.0:
        return np.int64(ANYWHERE)
    while end > begin + 1 and rows.prob[end - 1] == 0.0:  # rounding made the sum less than 1
        end -= 1
    return np.int64(rows.index[end - 1])


@primitive
def row_value(rows, row, values, mean):
    """Return Σ_s' p(s' | row) V(s'); ``mean`` is the average of ``values``, used for the background mass."""
    total = rows.background[row] * mean
    # unsigned indices avoid Numba's check for negative ones, which takes a third of a sweep's time
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
