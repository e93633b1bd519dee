"""Policy generators, μ ↦ π: their verb, and those that ship, policy and value iteration and RTDP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, inner, primitive
from bamdp._kernels.solve import reward_scale, solve
from bamdp._kernels.sweeps import average, improve
from bamdp._parameters import Declared, choice, positive_number, whole_number
from bamdp.generators.lazy import begin_model, stage_rows, touch, value_bound
from bamdp.generators.trials import BOUNDS, RMAX, TrialTable, run_trials
from bamdp.mdp.model import FiniteMDP

MAX_SWEEPS = 10_000  # of value iteration


@generic
def generate(G, rows, space, discount, s, solver, rng):
    """Write a policy for the model ``rows`` into ``solver.policy`` (int32 [S]).

    ``s`` is the state that the policy will be run from; ``solver`` is a workspace
    (:class:`bamdp._kernels.solve.Solver`). The policy is a function of the model, the state and the random numbers:
    what stands in ``solver.values`` from the model before may make it quicker to find, but must not change it.
    """


class Generator(Declared, ABC):
    """Hyper-parameters of a policy generator; compared and stored by value.

    ``result_version`` is raised whenever a change gives another policy for the same model and random numbers. ``lazy``
    says that it looks at few rows of a model: it can be given models that are drawn as they are looked at
    (:mod:`bamdp.generators.lazy`).
    """

    result_version: ClassVar[int] = 1
    lazy: ClassVar[bool] = False

    @abstractmethod
    def parameters(self) -> Any:
        """Return the parameters as a NamedTuple that :func:`generate` is registered for."""


def register_generator(state: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a generator of your own: ``@register_generator(MyState)`` on a function like :func:`generate`.

    ``MyState`` is the NamedTuple class that your :class:`Generator`'s ``parameters()`` returns; define both in an
    importable module. The function may use what Numba compiles, allocate nothing, and must set
    ``solver.policy`` in every state, to the same actions whatever was solved before.
    """
    return generate.register(state)


def python_policy(generator: Any, mdp: FiniteMDP, discount: float) -> np.ndarray:
    """Return the policy of a generator in plain Python, checked."""
    policy = np.asarray(generator(mdp, discount))
    if policy.shape != (mdp.n_states,) or not np.issubdtype(policy.dtype, np.integer):
        raise ValueError(
            f"the generator must return one action for each of the {mdp.n_states} states (integers), got "
            f"shape {list(policy.shape)} of {policy.dtype}"
        )
    bad = np.flatnonzero((policy < 0) | (policy >= mdp.n_actions))
    if not len(bad):
        allowed = np.asarray(mdp.action_mask)[np.arange(mdp.n_states), policy]
        bad = np.flatnonzero(~allowed & ~np.asarray(mdp.terminal))
    if len(bad):
        raise ValueError(
            f"the generator chose action {policy[bad[0]]} in state {bad[0]}, which does not exist"
        )
    return policy.astype(np.int32)


class PIParams(NamedTuple):
    """Parameters of policy iteration."""

    tol: float


class VIParams(NamedTuple):
    """Parameters of value iteration."""

    tol: float


class RTDPParams(NamedTuple):
    """Parameters of real-time dynamic programming."""

    depth: int
    n_trials: int
    bound: int  # its place in BOUNDS
    tol: float


@dataclass(frozen=True, kw_only=True)
class PI(Generator):
    """Policy iteration: the optimal policy of the sampled model.

    Parameters
    ----------
    tol
        Accuracy, in units of the range of the model's rewards. The Bellman changes of the last sweep differ by at most
        ``tol``, so the policy loses at most γ/(1−γ)·tol; the paper uses 1e-4.
    """

    tol: float = positive_number(1e-4)

    def parameters(self) -> PIParams:
        return PIParams(float(self.tol))


@dataclass(frozen=True, kw_only=True)
class VI(Generator):
    """Value iteration: Jacobi sweeps until their changes differ by at most ``tol`` (as for :class:`PI`)."""

    tol: float = positive_number(1e-4)

    def parameters(self) -> VIParams:
        return VIParams(float(self.tol))


@dataclass(frozen=True, kw_only=True)
class RTDP(Generator):
    """Real-time dynamic programming (Barto, Bradtke & Singh 1995) from the state to be acted in.

    The values of every model start from an upper bound. Each trial follows the greedy policy through the model for
    ``depth`` steps and backs up the states it passes. The policy is greedy for the values so found: where no trial
    came near, it takes what pays most at once, and of equal actions the first. Few trials leave the policy optimistic:
    it goes where the model has not been looked at.

    Parameters
    ----------
    depth
        Steps of a trial: 15 in the paper, 50 for Grid10 and Maze.
    n_trials
        The largest number of trials. The paper does not state one.
    bound
        The upper bound that values start from, with r_max the highest reward of the model: ``"rmax"``, r_max/(1−γ) in
        all states; ``"rewards"``, max_a r(s,a) + γ r_max/(1−γ).
    tol
        Trials end before ``n_trials`` when the start state is settled (:mod:`bamdp.generators.trials`): a backup would
        change no state by more than ``tol`` that the policy can reach.

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


@generate.register(PIParams)
def _policy_iteration(G, rows, space, discount, s, solver, rng):
    solve(rows, space, discount, G.tol, solver, True)


@generate.register(VIParams)
def _value_iteration(G, rows, space, discount, s, solver, rng):
    tol = G.tol * reward_scale(rows, space)
    for _ in range(MAX_SWEEPS):
        low, high = improve(rows, space, discount, solver.values, solver.scratch, solver.policy)
        spread = high - low
        middle = 0.5 * (high + low) * discount / (1.0 - discount) if spread <= tol else 0.0
        for t in range(solver.values.shape[0]):
            solver.values[t] = 0.0 if space.terminal[t] else solver.scratch[t] + middle
        if spread <= tol:
            return


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
    """Return whether values start from the rewards of their own rows, which are then drawn before they are visited."""
    return G.bound != RMAX


@primitive
def generate_lazily(G, models, belief, discount, h, s, rng):
    """Begin a model at stage ``h``, and look at it until its policy from ``s`` is known."""
    begin_model(models, belief, h, rng)
    touch(models, belief, h, s)
    table = TrialTable(models.values[h], models.reached, models.seen)
    rows, space = stage_rows(models, h), belief.space
    _, models.mean[h] = run_trials(rows, space, discount, s, G, table, models.mean[h], models, belief, h, rng)


@inner
def _set_bounds(bound, rows, space, discount, values):
    """Write upper bounds of the model's optimal values into ``values``."""
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
