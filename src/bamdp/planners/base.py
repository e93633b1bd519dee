"""The planner protocol.

A planner is hyper-parameters only, a frozen dataclass. What an algorithm must remember between steps (a
workspace, the current policy, a warm start) is its *memory*, made by ``start`` and owned by the agent. The
agent hands memory, belief, state and random numbers to ``act`` and ``plan``; ``plan`` gets copies, so that asking does
not change the agent. Simulated transitions are pushed on the belief and popped again, never left there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bamdp._parameters import Declared

MANY_OUTCOMES = 1_000_000  # more rewards than that are as good as infinitely many
STEP_SECONDS = 25e-9  # of a simulated step
OUTCOME_STEPS = (
    120.0  # simulated steps that one in a tree whose values are bounded or sampled on the way costs
)
PAIR_SECONDS = 250e-9  # of drawing and solving a model, for each pair of state and action
PAIR_BYTES = 400  # what an agent keeps for each pair

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief
    from bamdp.planners.tree import Tree


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
    """One of the choices that a planner weighed at the root.

    Examples
    --------
    >>> print(Candidate(1, 2.5, spread=0.5, count=16), Candidate(1, 2.5, spread=0.0), sep="\\n")
    action 1: 2.5 ± 0.5 (16 samples)
    action 1: 2.5 (exact)
    """

    action: int
    value: float
    spread: float = float("nan")  # standard deviation of the sampled returns behind the value
    count: int = 0  # how many returns, or how often the action was tried

    @property
    def exact(self) -> bool:
        """Whether the value was computed, not sampled."""
        return self.spread == 0.0 and self.count == 0

    def __str__(self) -> str:
        spread = "" if self.exact or np.isnan(self.spread) else f" ± {self.spread:.2g}"
        samples = f" ({self.count} sample{'s' * (self.count != 1)})" if self.count else ""
        return f"action {self.action}: {self.value:.4g}{spread}{' (exact)' if self.exact else samples}"


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

    def __str__(self) -> str:
        """Return the decision in a line, and each candidate in another."""
        lines = [f"action {self.action}, value {self.value:.4g}", *map(str, self.candidates)]
        return "\n  ".join(lines)


def greedy(values: np.ndarray) -> int:
    """Return the first of the highest; NaN is an action that does not exist (several times faster than nanargmax).

    Examples
    --------
    >>> greedy(np.array([np.nan, 1.0, 3.0, 3.0]))
    2
    """
    return int((values == np.fmax.reduce(values)).argmax())


def candidates(
    actions: Any, values: Any, spreads: Any = float("nan"), counts: Any = 0
) -> tuple[Candidate, ...]:
    """Return candidates from arrays of one length, or from numbers that all of them share.

    Examples
    --------
    >>> print(*candidates([0, 2], np.array([2.5, 1.0]), counts=4), sep="\\n")
    action 0: 2.5 (4 samples)
    action 2: 1 (4 samples)
    """
    columns = np.broadcast_arrays(actions, values, spreads, counts)
    return tuple(Candidate(*row) for row in zip(*(column.tolist() for column in columns)))


def exact_candidates(values: np.ndarray) -> tuple[Candidate, ...]:
    """Actions with exact values as candidates; NaN stands for an action that does not exist."""
    actions = np.flatnonzero(~np.isnan(values))
    return candidates(actions, values[actions], spreads=0.0)


def auto_reach(steps: int, n_states: int, n_actions: int) -> int:
    """Return how many steps ahead ``"auto"`` plans at most: ten for each datum that a pair will have, at least 100."""
    return max(100, 10 * steps // (n_states * n_actions))


def horizon_discount(steps_left: int, reach: int | None) -> float:
    """Return the discount under which as many steps count as are left, but no more than ``reach``."""
    return 1.0 - 1.0 / (steps_left if reach is None else min(steps_left, reach))


class Cost(NamedTuple):
    """About what a planner takes, right within a factor of ten or so: enough to tell a second from a year."""

    seconds: float  # for one decision
    bytes: float  # of an agent, before it has seen anything


def estimate(
    n_states: int, n_actions: int, *, models: float = 1.0, steps: float = 0.0, bytes: float = 0.0
) -> Cost:
    """Return the cost of drawing and solving models and of simulating steps, in addition to an agent's tables."""
    pairs = float(n_states) * n_actions
    return Cost(PAIR_SECONDS * models * pairs + STEP_SECONDS * (1.0 + steps), PAIR_BYTES * pairs + bytes)


def n_branches(branching: float, depth: int) -> float:
    """Return b + b² + … + b^depth; infinite where no float holds it."""
    try:
        return depth if branching <= 1 else branching * (float(branching) ** depth - 1) / (branching - 1)
    except OverflowError:
        return math.inf


def checked_array(name: str, array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return an array of a file, which must have the dtype and shape of ``like``."""
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{name} is not {like.dtype} {list(like.shape)}, the array that this planner keeps")
    if array.dtype.kind == "f" and np.isnan(array).any() and not np.isnan(like).any():
        raise ValueError(f"{name} has entries that are not numbers")
    return array


def put_array(memory: Any, name: str, array: np.ndarray) -> None:
    """Write an array of a file into the part of a memory with this dotted name."""
    *path, last = name.split(".")
    owner = reduce(getattr, path, memory)
    old = getattr(owner, last)
    array = checked_array(name, array, np.asarray(old))
    if isinstance(old, np.ndarray):
        old[...] = array
    else:
        setattr(owner, last, array.item())


class Planner(Declared):
    """Hyper-parameters of a planning algorithm, and what it does with an agent's belief.

    A planner of your own is a frozen dataclass that defines :meth:`act`, or :meth:`plan` if it can show its evidence.
    Everything else is optional:

    - :meth:`start` returns the memory, an object of any class in which the planner may keep things between steps;
    - :meth:`learn` takes note of a real transition, :meth:`begin` of the start of an episode;
    - ``keeps`` names the attributes of the memory that a saved agent needs. A memory that is an array is saved whole.

    ``rng`` is a :class:`numpy.random.Generator`, seeded from the agent's stream at every decision: the same seed gives
    the same actions, also after saving and loading. Ask the ``belief`` with its methods; leave it as it was.

    The hyper-parameters are declared as fields, checked by the functions of :mod:`bamdp._parameters` or not at all.
    ``result_version`` is raised whenever a change makes the same seed give another result.

    Examples
    --------
    >>> import bamdp
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Sampler(Planner):
    ...     "Thompson sampling."
    ...     gamma: float = 0.9
    ...     def act(self, memory, belief, state, rng):
    ...         return bamdp.policy_iteration(belief.sample(rng), self.gamma).policy[state]
    >>> len(bamdp.simulate(bamdp.Agent.for_env("chain", Sampler(), seed=0), "chain", steps=20, seed=0).rewards)
    20
    """

    result_version: ClassVar[int] = 2
    uses_prior: ClassVar[bool] = True  # False where the prior over transitions makes no difference
    default_prior: ClassVar[str] = "sparse:alpha=0.2,beta=2"  # where an agent is not told another
    default_discount: ClassVar[float | str] = (
        0.95  # the same; or "auto" or "horizon", where the steps are known
    )
    keeps: ClassVar[tuple[str, ...]] = ()  # dotted names of what a memory has learned, which goes into files
    policies: ClassVar[tuple[str, ...]] = ()  # which of these hold actions, or -1 for none
    one_discount: ClassVar[str] = ""  # why the discount cannot change between decisions, where that is so

    def start(self, belief: Belief, discount: float) -> Any:
        """Return the memory of a new agent; refuse beliefs that the algorithm cannot handle."""
        return None

    def act(self, memory: Any, belief: Belief, state: int, rng: Any) -> int:
        """Choose an action: that of :meth:`plan`, without the evidence where that is cheaper."""
        return self.plan(memory, belief, state, rng).action

    def plan(self, memory: Any, belief: Belief, state: int, rng: Any) -> Plan:
        """Choose, and show the evidence. Changes ``memory`` and ``rng`` exactly as :meth:`act` does."""
        if type(self).act is Planner.act:
            raise TypeError(f"{type(self).__name__} must define act(memory, belief, state, rng), or plan")
        action = int(self.act(memory, belief, state, rng))
        return Plan(action, math.nan, (Candidate(action, math.nan),))

    def explain(self, memory: Any, belief: Belief, state: int, rng: Any) -> Plan:
        """Return the same as :meth:`plan`, with the tree behind it where the algorithm grows one."""
        return self.plan(memory, belief, state, rng)

    def learn(self, memory: Any, belief: Belief, seen: Transition) -> None:
        """Take note of a real transition, which the belief has just learned."""

    def begin(self, memory: Any, belief: Belief, state: int) -> None:
        """Take note that an episode begins in ``state``: the first, or one after an end or a truncation."""

    def on_space_changed(self, memory: Any, belief: Belief) -> None:
        """Take note that a state ends episodes or an action does not exist: solutions may be out of date."""

    def warm_up(self, memory: Any, belief: Belief, state: int, rng: Any) -> None:
        """Call what only some decisions reach, so that it is compiled before time is measured; nothing by default."""

    def random(self, words: np.ndarray) -> Any:
        """Return the random numbers of one decision, and advance the agent's stream, uint64 [4]."""
        generator = np.random.default_rng(words)
        words[:] = generator.integers(0, 2**64, size=4, dtype=np.uint64)
        return generator

    def learned(self, memory: Any) -> dict[str, np.ndarray]:
        """Return what a memory has learned and a file must hold; :meth:`start` makes the rest."""
        if isinstance(memory, np.ndarray):
            return {"memory": memory}
        return {name: np.array(attrgetter(name)(memory)) for name in self.keeps}

    def relearn(self, memory: Any, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        """Write what :meth:`learned` has returned into a memory that :meth:`start` has just made."""
        if isinstance(memory, np.ndarray):
            memory[...] = checked_array("memory", arrays["memory"], memory)
        for name in self.keeps:
            put_array(memory, name, arrays[name])
            if name in self.policies and not ((arrays[name] >= -1) & (arrays[name] < belief.n_actions)).all():
                raise ValueError(f"{name} has actions that do not exist")

    def set_discount(self, memory: Any, discount: float) -> None:
        """Plan with another discount from the next decision on; refused with ``one_discount`` where that is set.

        It is the ``discount`` of the memory, or of the memory's ``params``.
        """
        if self.one_discount:
            raise ValueError(
                f"{type(self).__name__} cannot plan for a horizon: {self.one_discount}; give it a discount"
            )
        if hasattr(memory, "params"):
            memory.params = memory.params._replace(discount=discount)
        elif hasattr(memory, "discount"):
            memory.discount = discount

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        """Return about how long a decision takes and how much memory; by default one model is solved, if any."""
        return estimate(n_states, n_actions, models=float(self.uses_prior))

    def parameters(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


class KernelPlanner(Planner):
    """A planner whose kernels draw from the agent's stream itself: ``rng`` is uint64 [4]."""

    def random(self, words: np.ndarray) -> np.ndarray:
        return words
