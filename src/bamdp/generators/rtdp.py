"""Real-time dynamic programming (Barto, Bradtke & Singh 1995).

A trial starts in a given state and lasts at most ``depth`` steps. At each visited state, it backs up only that state,
V(s) ← max_a [r(s,a) + γ Σ p(s'|s,a) V(s')], takes the greedy action (ties go to the lowest number) and draws the
next state from the model. The trial ends in a terminal state. Only states that greedy policies visit from the start
are ever touched, so a trial costs O(depth · A · entries per row), independent of the number of states.

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

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import below
from bamdp._kernels.rows import ANYWHERE, average, best_action, draw_next, improve
from bamdp._kernels.solve import reward_scale
from bamdp._parameters import choice, positive_number, whole_number
from bamdp.generators.builtin import Generator, generate
from bamdp.generators.lazy import begin_model, open_state, stage_rows, touch, value_bound

BOUNDS = ("rmax", "rewards")  # upper bounds available as initial values
RMAX = BOUNDS.index("rmax")
ENVELOPE = 10  # times depth: maximum number of states inspected when testing whether the start is settled


class RTDPParams(NamedTuple):
    """Parameters of real-time dynamic programming."""

    depth: int
    n_trials: int
    bound: int  # index into BOUNDS
    tol: float


@dataclass(frozen=True, kw_only=True)
class RTDP(Generator):
    """Real-time dynamic programming (Barto, Bradtke & Singh 1995) from the current state.

    The values of each model are initialised to an upper bound. Each trial follows the greedy policy through the model
    for ``depth`` steps and backs up the visited states. The returned policy is greedy with respect to these values:
    in states far from all trials, it maximises the immediate reward, with ties going to the lowest action. With few
    trials the policy remains optimistic and heads for unexplored parts of the model.

    Parameters
    ----------
    depth
        Number of steps per trial. The paper uses 15, and 50 for Grid10 and Maze.
    n_trials
        Maximum number of trials. The paper does not state this number.
    bound
        The upper bound used as initial values: ``"rmax"`` uses r_max/(1−γ) in all states, ``"rewards"`` uses max_a
        r(s,a) + γ r_max/(1−γ), where r_max is the highest reward of the model.
    tol
        Stop before ``n_trials`` once the start state is settled: a backup would change no state reachable under the
        policy by more than ``tol``.

    Examples
    --------
    >>> RTDP(depth=50).n_trials
    100
    """

    result_version: ClassVar[int] = 2
    lazy: ClassVar[bool] = True

    depth: int = whole_number(15)
    n_trials: int = whole_number(100)
    bound: str = choice("rmax", BOUNDS)
    tol: float = positive_number(1e-4)

    def parameters(self) -> RTDPParams:
        return RTDPParams(int(self.depth), int(self.n_trials), BOUNDS.index(self.bound), float(self.tol))


# --- trials --------------------------------------------------------------------------------------------------


class TrialTable(NamedTuple):
    """Arrays written by trials."""

    values: np.ndarray  # float64 [S]
    reached: np.ndarray  # int32 [S]: scratch
    seen: np.ndarray  # int32 [S]: scratch, 0 before and after


@inner
def run_trials(rows, space, discount, start, limits, table, mean, models, belief, h, rng):
    """Run up to ``limits.n_trials`` trials from ``start``, stopping once ``start`` is settled.

    ``limits`` is an RTDPParams and ``mean`` the mean of the values. If ``models`` is None, the rows are those of a
    complete model; otherwise they are the rows of stage ``h`` of ``models`` (:mod:`bamdp.generators.lazy`), drawn
    from ``belief``. Return the number of trials and the updated mean of the values.
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


# --- in DSS --------------------------------------------------------------------------------------------------


@generate.register(RTDPParams)
def _real_time(G, rows, space, discount, s, solver, rng):
    _set_bounds(G.bound, rows, space, discount, solver.values)
    table = TrialTable(solver.values, solver.order, solver.level)
    n_states = table.seen.shape[0]
    for t in range(n_states):
        table.seen[t] = 0
    tol = G.tol * reward_scale(rows, space)
    trials = RTDPParams(G.depth, G.n_trials, G.bound, tol)
    run_trials(rows, space, discount, s, trials, table, average(table.values), None, None, 0, rng)
    improve(rows, space, discount, solver.values, solver.scratch, solver.policy)


@primitive
def ahead(G):
    """Return whether initial values depend on each state's own rewards, so that rows must be drawn one step ahead."""
    return G.bound != RMAX


@primitive
def generate_lazily(G, models, belief, discount, h, s, rng):
    """Start a model at stage ``h`` and explore it until its policy from ``s`` is known."""
    begin_model(models, belief, h, rng)
    touch(models, belief, h, s)
    table = TrialTable(models.values[h], models.reached, models.seen)
    rows, space = stage_rows(models, h), belief.space
    _, models.mean[h] = run_trials(rows, space, discount, s, G, table, models.mean[h], models, belief, h, rng)


@inner
def _set_bounds(bound, rows, space, discount, values):
    """Write upper bounds on the model's optimal values into ``values``."""
    n_states, n_actions = space.allowed.shape
    highest, ends = -np.inf, False
    for t in range(n_states):
        ends |= space.terminal[t]
        values[t] = -np.inf  # the state's own best reward
        for a in range(n_actions):
            if space.allowed[t, a] and not space.terminal[t]:
                values[t] = max(values[t], rows.reward[t * n_actions + a])
        highest = max(highest, values[t])
    largest, later = value_bound(highest, discount, ends)
    for t in range(n_states):
        if space.terminal[t]:
            values[t] = 0.0
        elif bound == RMAX:
            values[t] = largest
        else:
            values[t] = min(largest, values[t] + discount * later)


# --- for a known model ---------------------------------------------------------------------------------------
