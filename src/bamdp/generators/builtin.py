"""The generators that ship: policy iteration, value iteration, real-time dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.random import below, uniform
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import average, best_action, improve
from bamdp._serial import known
from bamdp.generators.base import Generator, generate

MAX_ROUNDS = 10_000


@known
class PIState(NamedTuple):
    """Parameters of policy iteration."""

    tol: float


@known
class VIState(NamedTuple):
    """Parameters of value iteration."""

    tol: float


@known
class RTDPState(NamedTuple):
    """Parameters of real-time dynamic programming."""

    depth: int
    n_trials: int


@known
@dataclass(frozen=True, kw_only=True)
class PI(Generator):
    """Policy iteration: the optimal policy of the sampled model.

    Parameters
    ----------
    tol
        Accuracy. The Bellman changes of the last sweep differ by at most ``tol``, so the policy loses at most
        γ/(1−γ)·tol; the paper uses 1e-4.
    """

    tol: float = 1e-4

    def __post_init__(self) -> None:
        _checks.real(self.tol, "tol", low=0.0, open_low=True)

    def state(self) -> PIState:
        return PIState(float(self.tol))


@known
@dataclass(frozen=True, kw_only=True)
class VI(Generator):
    """Value iteration: Jacobi sweeps until their changes differ by at most ``tol`` (as for :class:`PI`)."""

    tol: float = 1e-4

    def __post_init__(self) -> None:
        _checks.real(self.tol, "tol", low=0.0, open_low=True)

    def state(self) -> VIState:
        return VIState(float(self.tol))


@known
@dataclass(frozen=True, kw_only=True)
class RTDP(Generator):
    """Real-time dynamic programming (Barto, Bradtke & Singh 1995) from the state to be acted in.

    Each trial follows the greedy policy through the sampled model for ``depth`` steps and backs up the states
    it passes, on the way out and again on the way back; states that no trial reached keep the values of the
    model before. The policy is greedy for the values so found.

    Parameters
    ----------
    depth
        Steps of a trial: 15 in the paper, 50 for Grid10 and Maze.
    n_trials
        Number of trials.
    """

    depth: int = 15
    n_trials: int = 20

    def __post_init__(self) -> None:
        _checks.integer(self.depth, "depth")
        _checks.integer(self.n_trials, "n_trials")

    def state(self) -> RTDPState:
        return RTDPState(int(self.depth), int(self.n_trials))


@generate.register(PIState)
def _policy_iteration(G, rows, space, discount, s, solver, rng):
    solve(rows, space, discount, G.tol, MAX_ROUNDS, solver)


@generate.register(VIState)
def _value_iteration(G, rows, space, discount, s, solver, rng):
    spread = np.inf
    while spread > G.tol:
        low, high = improve(rows, space, discount, solver.values, solver.scratch, solver.policy)
        spread = high - low
        middle = 0.5 * (high + low) * discount / (1.0 - discount) if spread <= G.tol else 0.0
        for t in range(solver.values.shape[0]):
            solver.values[t] = 0.0 if space.terminal[t] else solver.scratch[t] + middle


@generate.register(RTDPState)
def _real_time(G, rows, space, discount, s, solver, rng):
    n_states, n_actions = space.allowed.shape
    values, path = solver.values, solver.stack
    depth = min(G.depth, n_states)
    for _ in range(G.n_trials):
        state = np.int64(s)
        mean = average(values)
        length = 0
        while length < depth and not space.terminal[state]:
            path[length] = state
            length += 1
            action, value = best_action(rows, space, discount, state, values, mean)
            values[state] = value
            row = state * n_actions + action
            u = uniform(rng)
            last = np.int64(-1)
            for i in range(rows.span[row, 0], rows.span[row, 1]):
                last = np.int64(rows.index[i])
                u -= rows.prob[i]
                if u < 0.0:
                    break
            state = below(rng, n_states) if u >= 0.0 and rows.background[row] > 0.0 else last
        for i in range(length - 1, -1, -1):
            _, value = best_action(rows, space, discount, np.int64(path[i]), values, mean)
            values[path[i]] = value
    improve(rows, space, discount, values, solver.scratch, solver.policy)
