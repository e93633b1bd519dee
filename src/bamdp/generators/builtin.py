"""The generators that ship: policy iteration, value iteration, real-time dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bamdp import _checks
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import improve
from bamdp._serial import saveable
from bamdp.generators.base import Generator, generate
from bamdp.mdp.rtdp import run_trials

MAX_SWEEPS = 10_000  # of value iteration
SETTLED = 1e-6  # trials end when one changes no value by more


@saveable
class PIState(NamedTuple):
    """Parameters of policy iteration."""

    tol: float


@saveable
class VIState(NamedTuple):
    """Parameters of value iteration."""

    tol: float


@saveable
class RTDPState(NamedTuple):
    """Parameters of real-time dynamic programming."""

    depth: int
    n_trials: int


@saveable
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


@saveable
@dataclass(frozen=True, kw_only=True)
class VI(Generator):
    """Value iteration: Jacobi sweeps until their changes differ by at most ``tol`` (as for :class:`PI`)."""

    tol: float = 1e-4

    def __post_init__(self) -> None:
        _checks.real(self.tol, "tol", low=0.0, open_low=True)

    def state(self) -> VIState:
        return VIState(float(self.tol))


@saveable
@dataclass(frozen=True, kw_only=True)
class RTDP(Generator):
    """Real-time dynamic programming (Barto, Bradtke & Singh 1995) from the state to be acted in.

    Each trial follows the greedy policy through the sampled model for ``depth`` steps and backs up the states
    it passes; states that no trial reached keep the values of the model before. The policy is greedy for the
    values so found.

    Parameters
    ----------
    depth
        Steps of a trial: 15 in the paper, 50 for Grid10 and Maze.
    n_trials
        Number of trials.
    """

    depth: int = 15
    n_trials: int = 10

    def __post_init__(self) -> None:
        _checks.integer(self.depth, "depth")
        _checks.integer(self.n_trials, "n_trials")

    def state(self) -> RTDPState:
        return RTDPState(int(self.depth), int(self.n_trials))


@generate.register(PIState)
def _policy_iteration(G, rows, space, discount, s, solver, rng):
    solve(rows, space, discount, G.tol, solver, True)


@generate.register(VIState)
def _value_iteration(G, rows, space, discount, s, solver, rng):
    for _ in range(MAX_SWEEPS):
        low, high = improve(rows, space, discount, solver.values, solver.scratch, solver.policy)
        spread = high - low
        middle = 0.5 * (high + low) * discount / (1.0 - discount) if spread <= G.tol else 0.0
        for t in range(solver.values.shape[0]):
            solver.values[t] = 0.0 if space.terminal[t] else solver.scratch[t] + middle
        if spread <= G.tol:
            return


@generate.register(RTDPState)
def _real_time(G, rows, space, discount, s, solver, rng):
    for t in range(solver.values.shape[0]):  # one that turned out terminal still has its value of before
        if space.terminal[t]:
            solver.values[t] = 0.0
    run_trials(rows, space, discount, s, G.depth, G.n_trials, SETTLED, solver.values, rng)
    improve(rows, space, discount, solver.values, solver.scratch, solver.policy)
