"""Real-time dynamic programming (Barto, Bradtke & Singh 1995).

A trial starts in a given state and lasts at most ``depth`` steps. In each visited state it backs up only that state,
V(s) ← max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], takes the greedy action (the lowest one in case of ties) and draws the next
state from the model. The trial ends in a terminal state. Only states that greedy policies visit from the start are ever
touched, so a trial costs O(depth · A · entries per row), independent of the number of states.

The initial values must be an upper bound on V* for trials to seek out unexplored states. V then remains an upper bound
and decreases. The default is max r/(1−γ).

**Stopping.** RTDP stops after ``n_trials`` trials or, with ``tol``, when the start state is *settled* in the sense of
labelled RTDP (Bonet & Geffner 2003): a backup would change no state that the greedy policy can reach from the start by
more than ``tol``. If the initial values were an upper bound, the policy then loses at most tol/(1−γ) at the start. The
test runs after any trial that has changed no value by more than ``tol``. If it fails, the inspected states are backed
up in reverse order of discovery. At most ``ENVELOPE · depth`` states are inspected, and a row with background mass on
all states never counts as settled. Otherwise, ``values[start]`` is an upper bound, and evaluating the policy with
:func:`~bamdp.mdp.evaluate_policy` gives a lower bound. The result's ``error_bound`` holds for all states, visited or
not, and is therefore usually loose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import inner
from bamdp._kernels.random import below
from bamdp._kernels.rows import ANYWHERE, best_action, draw_next
from bamdp.generators.lazy import open_state

BOUNDS = ("rmax", "rewards")  # upper bounds available as initial values
RMAX = BOUNDS.index("rmax")
ENVELOPE = 10  # times depth: maximum number of states inspected when testing whether the start is settled


class TrialTable(NamedTuple):
    """Arrays written by trials."""

    values: np.ndarray  # float64 [S]
    reached: np.ndarray  # int32 [S]: scratch
    seen: np.ndarray  # int32 [S]: scratch, 0 before and after


@inner
def run_trials(rows, space, discount, start, limits, table, mean, models, belief, h, rng):
    """Run up to ``limits.n_trials`` trials from ``start``, stopping once it is settled.

    ``limits`` is an RTDPParams and ``mean`` the mean of the values. If ``models`` is None, the rows are those of a
    complete model; otherwise they are the rows of stage ``h`` of ``models`` (:mod:`bamdp.generators.lazy`), drawn from
    ``belief``. Returns the number of trials and the updated mean of the values.
    """
    n_states, n_actions = space.allowed.shape
    values = table.values
    ahead = limits.bound != RMAX
    for trial in range(limits.n_trials):
        s = start
        change = 0.0
        for _ in range(limits.depth):
            at = np.uint64(s)
            if space.terminal[at]:
                break
            open_state(models, belief, discount, ahead, h, s, rng)
            action, best = best_action(rows, space, discount, s, values, mean)
            delta = best - values[at]
            values[at] = best
            mean += delta / n_states
            change = max(change, abs(delta))
            s = draw_next(rows, s * n_actions + action, rng)
            if s == ANYWHERE:
                s = below(rng, n_states)
        if change <= limits.tol:
            settled, mean = settle(rows, space, discount, start, limits, table, mean, models, belief, h, rng)
            if settled:
                return trial + 1, mean
    return limits.n_trials, mean


@inner
def settle(rows, space, discount, start, limits, table, mean, models, belief, h, rng):
    """Return whether ``start`` is settled, and the mean value; if it is not, back up the inspected states."""
    n_states, n_actions = space.allowed.shape
    values, reached, seen = table.values, table.reached, table.seen
    most = ENVELOPE * limits.depth
    settled = True
    reached[0] = start
    seen[start] = 1
    n, i = 1, 0
    while i < n:
        s = np.int64(reached[i])
        i += 1
        if space.terminal[s]:
            continue
        open_state(models, belief, discount, limits.bound != RMAX, h, s, rng)
        action, best = best_action(rows, space, discount, s, values, mean)
        row = s * n_actions + action
        if abs(best - values[s]) > limits.tol or rows.background[row] > 0.0:
            settled = False
            continue
        for j in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
            s2 = np.int64(rows.index[j])
            if seen[s2] == 0 and rows.prob[j] > 0.0:
                if n == most:
                    settled = False
                    break
                seen[s2] = 1
                reached[n] = s2
                n += 1
    while n > 0:
        n -= 1
        s = np.int64(reached[n])
        seen[s] = 0
        if not settled and not space.terminal[s]:
            best = best_action(rows, space, discount, s, values, mean)[1]
            mean += (best - values[s]) / n_states
            values[s] = best
    return settled, mean
