"""The solver that planners call many times a step: modified policy iteration on sampled models.

A sampled model is solved from the values of the last one. Each round (1) improves the policy by one
Gauss–Seidel optimality sweep, (2) orders the states so that the likeliest successor under the policy comes
first, (3) copies the policy's rows side by side in that order and (4) evaluates the policy by Gauss–Seidel
sweeps over the copy: along a chain of near-certain steps one sweep carries the value all the way back. Every
third evaluation sweep is extrapolated: if its changes are about ρ < 1 times those before, the geometric rest
ρ/(1−ρ) of them is added at once (Aitken). Neither trick can do harm to the result, because when a sweep changes all values by almost the same amount, a Jacobi sweep proves or refutes the bound
(:mod:`bamdp._kernels.sweeps`); ``tol`` is the spread max δ − min δ of that sweep, so the policy returned loses
at most γ/(1−γ)·tol in any state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.sweeps import average, best_action, improve
from bamdp._serial import known

EVALUATIONS = 6  # Gauss–Seidel evaluation sweeps a round, at most
REDUCTION = 0.1  # a round's evaluation stops when the changes have fallen by this factor
EXTRAPOLATE = 3  # every so many evaluation sweeps
SLOWEST = 0.98  # largest ρ that is trusted


@known
class Solver(NamedTuple):
    """Workspace of :func:`solve`. ``values`` is the warm start and the result."""

    values: np.ndarray  # float64 [S]
    policy: np.ndarray  # int32 [S]
    scratch: np.ndarray  # float64 [S]
    order: np.ndarray  # int32 [S]
    mark: np.ndarray  # bool [S]
    stack: np.ndarray  # int32 [S]
    end: np.ndarray  # int64 [S]: end of the i-th copied row
    index: np.ndarray  # int32 [capacity]: copied rows
    prob: np.ndarray  # float64 [capacity], times the discount
    background: np.ndarray  # float64 [S], times the discount
    reward: np.ndarray  # float64 [S]
    change: np.ndarray  # float64 [S]: changes of the last sweep


def new_solver(n_states: int, room: int) -> Solver:
    """A workspace for models whose policies have up to ``room`` entries."""
    return Solver(
        values=np.zeros(n_states),
        policy=np.zeros(n_states, np.int32),
        scratch=np.zeros(n_states),
        order=np.arange(n_states, dtype=np.int32),
        mark=np.zeros(n_states, bool),
        stack=np.zeros(n_states, np.int32),
        end=np.zeros(n_states, np.int64),
        index=np.zeros(room, np.int32),
        prob=np.zeros(room),
        background=np.zeros(n_states),
        reward=np.zeros(n_states),
        change=np.zeros(n_states),
    )


@kernel
def _improve_in_place(rows, space, discount, solver):
    """One Gauss–Seidel optimality sweep in the solver's order; returns (min, max) change."""
    values = solver.values
    share = 1.0 / values.shape[0]
    mean = average(values)
    low, high = np.inf, -np.inf
    for i in range(values.shape[0]):
        s = solver.order[i]
        if space.terminal[s]:
            values[s] = 0.0
            solver.policy[s] = 0
            continue
        action, best = best_action(rows, space, discount, s, values, mean)
        solver.policy[s] = action
        delta = best - values[s]
        values[s] = best
        mean += delta * share
        low = min(low, delta)
        high = max(high, delta)
    return low, high


@kernel
def _order_along_policy(rows, space, solver):
    """Order the states so that the likeliest successor under the policy stands before its predecessors."""
    n_states, n_actions = space.allowed.shape
    mark, stack, order = solver.mark, solver.stack, solver.order
    for s in range(n_states):
        mark[s] = False
    at = 0
    for start in range(n_states):
        s = start
        top = 0
        while not mark[s]:
            mark[s] = True
            stack[top] = s
            top += 1
            row = s * n_actions + solver.policy[s]
            likeliest = 0.0
            for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
                if rows.prob[i] > likeliest:
                    likeliest = rows.prob[i]
                    s = np.int64(rows.index[i])
        while top > 0:
            top -= 1
            order[at] = stack[top]
            at += 1


@kernel
def _copy_policy_rows(rows, space, discount, solver):
    """The policy's rows side by side, in order, probabilities times the discount."""
    n_states, n_actions = space.allowed.shape
    at = 0
    for i in range(n_states):
        s = solver.order[i]
        row = s * n_actions + solver.policy[s]
        for j in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
            solver.index[at] = rows.index[j]
            solver.prob[at] = discount * rows.prob[j]
            at += 1
        solver.end[i] = at
        solver.background[i] = discount * rows.background[row]
        solver.reward[i] = rows.reward[row]


@kernel
def _evaluate_copy(solver, goal):
    """Gauss–Seidel sweeps over the copied rows, until one changes all values by less than ``goal``."""
    values, order, index, prob = solver.values, solver.order, solver.index, solver.prob
    end, background, reward, change = solver.end, solver.background, solver.reward, solver.change
    share = 1.0 / values.shape[0]
    for sweep in range(1, EVALUATIONS + 1):
        mean = average(values)
        largest, product, square = 0.0, 0.0, 0.0
        begin = np.uint64(0)
        for i in range(values.shape[0]):
            stop = np.uint64(end[i])
            new = reward[i] + background[i] * mean
            for j in range(begin, stop):
                new += prob[j] * values[np.uint32(index[j])]
            begin = stop
            s = np.uint32(order[i])
            delta = new - values[s]
            values[s] = new
            mean += delta * share
            largest = max(largest, abs(delta))
            product += delta * change[i]
            square += change[i] * change[i]
            change[i] = delta
        if largest < goal:
            return
        if sweep % EXTRAPOLATE == 0 and 0.0 < product < SLOWEST * square:
            rest = product / (square - product)  # ρ/(1−ρ) with ρ = product/square
            for i in range(values.shape[0]):
                values[order[i]] += rest * change[i]


@kernel
def solve(rows, space, discount, tol, max_rounds, solver):
    """Solve a model from ``solver.values``; the optimal values and policy stand there afterwards.

    Returns (rounds, spread): the policy loses at most γ/(1−γ) times the spread, which is at most ``tol``
    unless ``max_rounds`` came first.
    """
    values = solver.values
    low, high = 0.0, np.inf
    for rounds in range(1, max_rounds + 1):
        low, high = _improve_in_place(rows, space, discount, solver)
        if high - low <= tol:
            low, high = improve(rows, space, discount, values, solver.scratch, solver.policy)
            middle = 0.5 * (high + low) * discount / (1.0 - discount)
            for s in range(values.shape[0]):
                values[s] = 0.0 if space.terminal[s] else solver.scratch[s] + middle
            if high - low <= tol:
                return rounds, high - low
        _order_along_policy(rows, space, solver)
        _copy_policy_rows(rows, space, discount, solver)
        _evaluate_copy(solver, REDUCTION * max(high, -low))
    return max_rounds, high - low
