"""Real-time dynamic programming (Barto, Bradtke & Singh 1995).

A trial starts in a given state and lasts at most ``depth`` steps. In each state that it visits it backs up
that state alone, V(s) ← max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], takes the greedy action (the lowest of several
equal ones) and draws the next state from the model; a terminal state ends it. Only states that greedy policies
visit from the start are ever touched: a trial costs O(depth · A · entries of a row), whatever the number of
states.

The initial values must be an upper bound of V* for exploration to be driven towards what is unknown; V then
remains an upper bound and falls. The default is max r/(1−γ).

**Stopping.** RTDP stops after ``n_trials`` or, with ``tol``, when the start state is *settled* (the test of labelled
RTDP; Bonet & Geffner 2003): a backup would change none of the states by more than ``tol`` that the greedy policy can
reach from the start. If the initial values were an upper bound, that policy then loses at most tol/(1−γ) at the start.
It is tested after a trial that has changed nothing by more; where it fails, the states looked at are backed up, those
found last first. At most ``ENVELOPE · depth`` states are looked at, and a row that may lead anywhere is never settled.
Otherwise ``values[start]`` is an upper bound, and :func:`~bamdp.mdp.evaluate_policy` of the policy gives a lower one.
``error_bound`` of the result is proven for all states, visited or not, and therefore usually wide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, kernel, primitive
from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import best_action

ENVELOPE = 10  # times depth: so many states are looked at to see whether the start is settled


class TrialTable(NamedTuple):
    """What trials write to."""

    values: np.ndarray  # float64 [S]
    reached: np.ndarray  # int32 [S]: scratch
    seen: np.ndarray  # int32 [S]: scratch, 0 before and after


@primitive
def value_bound(highest: float, discount: float, ends: bool) -> tuple[float, float]:
    """Return upper bounds of V* in a state that is not terminal, and of what follows a step from it.

    ``highest`` is the highest reward, ``ends`` whether there are terminal states. With costs only, an end
    after one step is the best that there can be.
    """
    if highest < 0.0 and ends:
        return highest, 0.0
    return highest / (1.0 - discount), highest / (1.0 - discount)


class Drawn(NamedTuple):
    """Where rows come from that all stand in the model already."""

    n_states: int
    rows: Rows
    space: Space


@generic
def open_state(source: Any, s: int, rng: np.ndarray) -> bool:  # type: ignore[empty-body]
    """Make sure that the rows of state ``s`` stand in the model; returns whether they fit."""


@generic
def any_state(source: Any, rng: np.ndarray) -> int:  # type: ignore[empty-body]
    """Draw a state evenly from all; negative if it does not fit in the model."""


@open_state.register(Drawn)
def _nothing_to_open(source: Drawn, s: int, rng: np.ndarray) -> bool:
    return True


@any_state.register(Drawn)
def _any_of_all(source: Drawn, rng: np.ndarray) -> int:
    return below(rng, source.n_states)


@kernel
def run_trials(source, discount, start, limits, table, mean, rng):
    """Run trials, which change the values of ``table``, until the start is settled or there were enough.

    ``source`` has the model, ``rows`` and ``space``, and the number of all states, ``n_states``; ``limits`` the steps
    of a trial, ``depth``, the trials at most, ``n_trials``, and ``tol`` of the test for a settled start, negative if
    that is not tested.
    Returns their number, negative if rows did not fit, and the mean of the values, which was ``mean``. If rows did not
    fit, ``table.seen`` is left as it is.
    """
    rows, space, n_states, values = source.rows, source.space, source.n_states, table.values
    n_actions = space.allowed.shape[1]
    for trial in range(limits.n_trials):
        s = start
        change = 0.0
        for _ in range(limits.depth):
            at = np.uint64(s)
            if space.terminal[at]:
                break
            if not open_state(source, s, rng):
                return -1, mean
            action, best = best_action(rows, space, discount, s, values, mean)
            delta = best - values[at]
            values[at] = best
            mean += delta / n_states
            change = max(change, abs(delta))
            s = draw_next(rows, s * n_actions + action, rng)
            if s < 0:
                s = any_state(source, rng)
                if s < 0:
                    return -1, mean
        if change <= limits.tol:
            settled, mean = settle(source, discount, start, limits, table, mean, rng)
            if settled < 0:
                return -1, mean
            if settled == 1:
                return trial + 1, mean
    return limits.n_trials, mean


@primitive
def settle(source, discount, start, limits, table, mean, rng):
    """Return whether ``start`` is settled, and the mean of the values.

    It is 1 if so, 0 if not, and negative if rows did not fit. If it is not settled, the states looked at are backed up.
    """
    rows, space, n_states = source.rows, source.space, source.n_states
    n_actions = space.allowed.shape[1]
    values, reached, seen = table.values, table.reached, table.seen
    most = ENVELOPE * limits.depth
    settled = 1
    reached[0] = start
    seen[start] = 1
    n, i = 1, 0
    while i < n:
        s = np.int64(reached[i])
        i += 1
        if space.terminal[s]:
            continue
        if not open_state(source, s, rng):
            return -1, mean
        action, best = best_action(rows, space, discount, s, values, mean)
        row = s * n_actions + action
        if abs(best - values[s]) > limits.tol or rows.background[row] > 0.0:
            settled = 0
            continue
        for j in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
            s2 = np.int64(rows.index[j])
            if seen[s2] == 0 and rows.prob[j] > 0.0:
                if n == most:
                    settled = 0
                    break
                seen[s2] = 1
                reached[n] = s2
                n += 1
    while n > 0:
        n -= 1
        s = np.int64(reached[n])
        seen[s] = 0
        if settled == 0 and not space.terminal[s]:
            best = best_action(rows, space, discount, s, values, mean)[1]
            mean += (best - values[s]) / n_states
            values[s] = best
    return settled, mean


@inner
def draw_next(rows: Rows, row: int, rng: np.ndarray) -> int:
    """Draw a next state from a row's entries in order; negative where it may be any state, evenly."""
    u = uniform(rng)
    last = 0
    for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):  # as in row_value
        last = rows.index[i]
        u -= rows.prob[i]
        if u < 0.0:
            return last
    if rows.background[row] > 0.0:
        return -1
    return last
