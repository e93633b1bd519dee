"""The verb of this room: from a sampled model to a policy, μ ↦ π."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bamdp._kernels.jit import generic


@generic
def generate(G, rows, space, discount, s, solver, rng):
    """Write a policy for the model ``rows`` into ``solver.policy`` (int32 [S]).

    ``s`` is the state that the policy will be run from; ``solver`` is a workspace
    (:class:`bamdp._kernels.solve.Solver`) whose ``values`` come from the last model and may serve as a warm start.
    """


class Generator(ABC):
    """Hyper-parameters of a policy generator; compared and stored by value."""

    @abstractmethod
    def state(self) -> Any:
        """The parameters as a NamedTuple that :func:`generate` is registered for."""


def register_generator(state: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a generator of your own: ``@register_generator(MyState)`` on a function like :func:`generate`.

    ``MyState`` is the NamedTuple class that your :class:`Generator`'s ``state()`` returns; define both in an
    importable module. The function may use what Numba compiles, allocate nothing, and must set
    ``solver.policy`` in every state.
    """
    return generate.register(state)
