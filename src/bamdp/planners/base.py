"""The planner protocol.

A planner is hyper-parameters only, a frozen dataclass. What an algorithm must remember between steps (a
workspace, the current policy, a warm start) is its *memory*, made by ``start`` and owned by the agent. The
agent hands belief, memory and random state to ``act`` and ``plan``; ``plan`` gets copies, so that asking does
not change the agent. Simulated transitions are pushed on the belief and popped again, never left there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bamdp.beliefs.belief import Belief

if TYPE_CHECKING:
    from bamdp.planners.views.tree import Tree


class Transition(NamedTuple):
    """A real step: in ``s`` took ``a``, got ``r``, came to ``s2``, which ended the episode or not.

    An end is worth 0 only if ``belief.space.terminal[s2]``: with the objective "lifetime" a start follows it.
    """

    s: int
    a: int
    r: float
    s2: int
    terminated: bool


@dataclass(frozen=True)
class Candidate:
    """One of the choices that a planner weighed at the root."""

    action: int
    value: float
    spread: float = float("nan")  # standard deviation of the sampled returns behind the value
    count: int = 0  # how many returns

    def __str__(self) -> str:
        return f"action {self.action}: {self.value:.4g} ± {self.spread:.2g} ({self.count} samples)"


@dataclass(frozen=True)
class Plan:
    """A decision with its evidence.

    ``candidates`` are the root's choices in the order in which they were made: policies for DSS (several may
    begin with the same action), actions for most others.
    """

    action: int
    value: float
    candidates: tuple[Candidate, ...]
    reproducible: bool = True  # False when a time budget decided how much was computed
    details: Mapping[str, Any] = field(default_factory=dict)
    tree: Tree | None = field(
        default=None, repr=False, compare=False
    )  # the whole search, where it was asked for


def greedy(values: np.ndarray) -> int:
    """The first of the highest; NaN stands for an action that does not exist (several times faster than nanargmax).

    Examples
    --------
    >>> greedy(np.array([np.nan, 1.0, 3.0, 3.0]))
    2
    """
    return int((values == np.fmax.reduce(values)).argmax())


def action_candidates(values: np.ndarray) -> tuple[Candidate, ...]:
    """Actions with exact values as candidates; NaN stands for an action that does not exist."""
    return tuple(Candidate(a, float(q), spread=0.0) for a, q in enumerate(values) if not np.isnan(q))


class Planner(ABC):
    """Hyper-parameters of a planning algorithm.

    Subclasses are frozen dataclasses that check themselves when made. ``result_version`` is raised whenever a
    change makes the same seed give another result.
    """

    result_version: ClassVar[int] = 2
    uses_prior: ClassVar[bool] = True  # False where the prior over transitions makes no difference

    @abstractmethod
    def start(self, belief: Belief, discount: float) -> Any:
        """The memory to begin with; refuses beliefs that the algorithm cannot handle."""

    @abstractmethod
    def plan(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        """Decide, with evidence. Advances ``memory`` and ``rng`` exactly as :meth:`act` does."""

    def act(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> int:
        """Decide: the action of :meth:`plan`, without the evidence where that is cheaper."""
        return self.plan(memory, belief, state, rng).action

    def explain(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        """The same plan as :meth:`plan`, bit for bit, with the tree behind it where the algorithm grows one."""
        return self.plan(memory, belief, state, rng)

    def learn(self, memory: Any, belief: Belief, seen: Transition) -> None:
        """Take note of a real transition that the belief has just learned."""

    def begin(self, memory: Any, belief: Belief, state: int) -> None:
        """An episode begins in ``state``: the first, or one after an end or a truncation."""

    def respace(self, memory: Any, belief: Belief) -> None:
        """A state has turned out to end episodes, or an action not to exist: what was solved may be out of date."""

    def parameters(self) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
