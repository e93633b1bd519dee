"""Policy generators, μ ↦ π: the ``generate`` verb, policy iteration and value iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic
from bamdp._kernels.rows import improve
from bamdp._kernels.solve import reward_scale, solve
from bamdp._parameters import Declared, positive_number
from bamdp.mdp.model import FiniteMDP

MAX_SWEEPS = 10_000  # maximum for value iteration


@generic
def generate(G, rows, space, discount, s, solver, rng):
    """Write a policy for the model ``rows`` into ``solver.policy`` (int32 [S]).

    ``s`` is the state from which the policy will be executed; ``solver`` is a workspace
    (:class:`bamdp._kernels.solve.Solver`). The policy is a function of the model, the state and the random numbers: the
    contents of ``solver.values``, left over from the previous model, may speed up the computation but must not affect
    the result.
    """


class Generator(Declared, ABC):
    """Hyperparameters of a policy generator, compared and stored by value.

    Increment ``result_version`` whenever a change yields a different policy for the same model and random numbers.
    ``lazy`` marks generators that read only a few rows of a model and therefore accept models sampled on demand
    (:mod:`bamdp.generators.lazy`).
    """

    result_version: ClassVar[int] = 1
    lazy: ClassVar[bool] = False

    @abstractmethod
    def parameters(self) -> Any:
        """Return the parameters as a NamedTuple for which :func:`generate` is registered."""


def register_generator(state: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a custom generator: use ``@register_generator(MyState)`` on a function like :func:`generate`.

    ``MyState`` is the NamedTuple class that your :class:`Generator`'s ``parameters()`` returns; define both in an
    importable module. The function may use anything that Numba can compile but must not allocate. It must set
    ``solver.policy`` in every state, and the actions must not depend on previously solved models.
    """
    return generate.register(state)


def python_policy(generator: Any, mdp: FiniteMDP, discount: float) -> np.ndarray:
    """Run a pure-Python generator, validate its policy and return it."""
    policy = np.asarray(generator(mdp, discount))
    if policy.shape != (mdp.n_states,) or not np.issubdtype(policy.dtype, np.integer):
        kind = f"shape {list(policy.shape)} of {policy.dtype}"
        raise ValueError(
            f"the generator must return an integer for each of {mdp.n_states} states, got {kind}"
        )
    bad = np.flatnonzero((policy < 0) | (policy >= mdp.n_actions))
    if not len(bad):
        allowed = np.asarray(mdp.action_mask)[np.arange(mdp.n_states), policy]
        bad = np.flatnonzero(~allowed & ~np.asarray(mdp.terminal))
    if len(bad):
        s = bad[0]
        raise ValueError(f"the generator chose action {policy[s]} in state {s}, which does not exist")
    return policy.astype(np.int32)


class PIParams(NamedTuple):
    """Parameters of policy iteration."""

    tol: float


class VIParams(NamedTuple):
    """Parameters of value iteration."""

    tol: float


@dataclass(frozen=True, kw_only=True)
class PI(Generator):
    """Policy iteration: the optimal policy of the sampled model.

    Parameters
    ----------
    tol
        Accuracy, relative to the range of the model's rewards. The span of the Bellman updates in the last sweep is at
        most ``tol``, so the policy loses at most γ/(1−γ)·tol. The paper uses 1e-4.
    """

    tol: float = positive_number(1e-4)

    def parameters(self) -> PIParams:
        return PIParams(float(self.tol))


@dataclass(frozen=True, kw_only=True)
class VI(Generator):
    """Value iteration: Jacobi sweeps until the span of the updates is at most ``tol`` (as for :class:`PI`)."""

    tol: float = positive_number(1e-4)

    def parameters(self) -> VIParams:
        return VIParams(float(self.tol))


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
