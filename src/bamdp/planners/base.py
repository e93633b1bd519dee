"""The planner protocol.

A planner is a frozen dataclass that holds only hyperparameters. Everything an algorithm must remember between steps (a
workspace, the current policy, a warm start) is in its *memory*, created by ``start`` and owned by the agent. The agent
passes memory, belief, state and random numbers to ``act`` and ``plan``; ``plan`` receives copies, so calling it does
not change the agent. Planners push simulated transitions onto the belief and always pop them again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.jit import primitive
from bamdp._kernels.random import below, uniform
from bamdp._parameters import Declared

MANY_OUTCOMES = 1_000_000  # larger numbers of rewards count as infinite
STEP_SECONDS = 25e-9  # per simulated step
OUTCOME_STEPS = (
    120.0  # simulated steps taking as long as one in a tree that bounds or samples values on the way
)
PAIR_SECONDS = 250e-9  # to draw and solve a model, per state-action pair
PAIR_BYTES = 400  # memory of an agent per pair

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief
    from bamdp.planners.tree import Tree


class Transition(NamedTuple):
    """A real step: action ``a`` in state ``s`` yielded reward ``r`` and next state ``s2``, possibly ending the episode.

    The continuation has value 0 only if ``belief.space.terminal[s2]``: under the objective "lifetime", a new episode
    follows.
    """

    s: int
    a: int
    r: float
    s2: int
    terminated: bool


@dataclass(frozen=True)
class Candidate:
    """One of the choices that a planner evaluated at the root.

    Examples
    --------
    >>> print(Candidate(1, 2.5, spread=0.5, count=16), Candidate(1, 2.5, spread=0.0), sep="\\n")
    action 1: 2.5 ± 0.5 (16 samples)
    action 1: 2.5 (exact)
    """

    action: int
    value: float
    spread: float = float("nan")  # standard deviation of the sampled returns behind the value
    count: int = 0  # number of returns, or of times the action was tried

    @property
    def exact(self) -> bool:
        """Return whether the value was computed exactly rather than sampled."""
        return self.spread == 0.0 and self.count == 0

    def __str__(self) -> str:
        spread = "" if self.exact or np.isnan(self.spread) else f" ± {self.spread:.2g}"
        samples = f" ({self.count} sample{'s' * (self.count != 1)})" if self.count else ""
        return f"action {self.action}: {self.value:.4g}{spread}{' (exact)' if self.exact else samples}"


@dataclass(frozen=True)
class Plan:
    """A decision together with its evidence.

    ``candidates`` are the choices at the root in order of creation: policies for DSS (several may start with the same
    action), actions for most other planners.
    """

    action: int
    value: float
    candidates: tuple[Candidate, ...]
    reproducible: bool = True  # False if a time limit determined the amount of computation
    details: Mapping[str, Any] = field(default_factory=dict)
    tree: Tree | None = field(default=None, repr=False, compare=False)  # the whole search tree, if requested

    def __str__(self) -> str:
        """Return the decision and the candidates, one per line."""
        lines = [f"action {self.action}, value {self.value:.4g}", *map(str, self.candidates)]
        return "\n  ".join(lines)


def greedy(values: np.ndarray) -> int:
    """Return the first maximiser, where NaN marks missing actions (several times faster than nanargmax).

    Examples
    --------
    >>> greedy(np.array([np.nan, 1.0, 3.0, 3.0]))
    2
    """
    return int((values == np.fmax.reduce(values)).argmax())


@primitive
def any_best(scores, rng):
    """Return the index of the highest score, breaking ties at random; NaN and −∞ are never chosen.

    ``scores`` is [A]. One random number is used for each score that equals the running maximum.
    """
    best, place, ties = -np.inf, 0, 1
    for i in range(scores.shape[0]):
        if scores[i] > best:
            best, place, ties = scores[i], i, 1
        elif scores[i] == best and best > -np.inf:
            ties += 1
            if below(rng, ties) == 0:
                place = i
    return place


def best_of(actions: np.ndarray, scores: np.ndarray, rng: np.ndarray) -> int:
    """Return the action with the highest score, breaking ties by one random number."""
    top = scores.max()
    best = [a for a, score in zip(actions.tolist(), scores.tolist()) if score == top]
    return best[below(rng, len(best))] if len(best) > 1 else best[0]


def random_action(allowed: np.ndarray, rng: np.ndarray) -> int:
    """Draw one of the actions that are ``allowed``, bool [A], with equal probability."""
    actions = np.flatnonzero(allowed)
    return int(actions[below(rng, len(actions))])


def exploring_action(allowed: np.ndarray, epsilon: float, rng: np.ndarray) -> int | None:
    """Return a uniformly random action with probability ``epsilon``, else None."""
    return random_action(allowed, rng) if uniform(rng) < epsilon else None


def candidates(
    actions: Any, values: Any, spreads: Any = float("nan"), counts: Any = 0
) -> tuple[Candidate, ...]:
    """Return candidates from arrays of equal length; scalars apply to all candidates.

    Examples
    --------
    >>> print(*candidates([0, 2], np.array([2.5, 1.0]), counts=4), sep="\\n")
    action 0: 2.5 (4 samples)
    action 2: 1 (4 samples)
    """
    columns = np.broadcast_arrays(actions, values, spreads, counts)
    return tuple(Candidate(*row) for row in zip(*(column.tolist() for column in columns)))


def spread_of(n: np.ndarray, mean: np.ndarray, squares: np.ndarray) -> NDArray[np.float64]:
    """Return the standard deviation of n samples with this mean and sum of squares; NaN for fewer than two."""
    variance = np.maximum(0.0, squares / np.maximum(1, n) - mean * mean) * n / np.maximum(1, n - 1)
    return np.where(n > 1, np.sqrt(variance), np.nan)


def exact_candidates(values: np.ndarray) -> tuple[Candidate, ...]:
    """Return actions with exact values as candidates; NaN marks actions that do not exist."""
    actions = np.flatnonzero(~np.isnan(values))
    return candidates(actions, values[actions], spreads=0.0)


def enumerable_rewards(belief: Belief) -> bool:
    """Return whether a transition has finitely many possible rewards, and not too many to enumerate."""
    return 1 <= (belief.rewards.n_outcomes or 0) <= MANY_OUTCOMES


def known_range(belief: Belief, name: str, otherwise: str) -> tuple[float, float]:
    """Return the lowest and the highest possible reward; raise an error for planner ``name`` if there are none."""
    low, high = map(float, belief.rewards.reward_range)
    if not (math.isfinite(low) and math.isfinite(high)):
        text = f"{name} needs the range of the rewards, and {belief.reward_model} has none; give it bounds=(low, high)"
        raise ValueError(f"{text}, in text for instance normal:bounds=(0,1), or {otherwise}")
    return low, high


def auto_reach(steps: int, n_states: int, n_actions: int) -> int:
    """Return the maximum planning horizon for ``"auto"``: ten steps per expected visit to a pair, at least 100."""
    return max(100, 10 * steps // (n_states * n_actions))


def horizon_discount(steps_left: int, reach: int | None) -> float:
    """Return the discount whose effective horizon is the number of steps left, capped at ``reach``."""
    return 1.0 - 1.0 / (steps_left if reach is None else min(steps_left, reach))


class Cost(NamedTuple):
    """Rough cost of a planner, accurate to about a factor of ten: enough to tell a second from a year."""

    seconds: float  # per decision
    bytes: float  # size of a new agent


def estimate(
    n_states: int, n_actions: int, *, models: float = 1.0, steps: float = 0.0, bytes: float = 0.0
) -> Cost:
    """Return the cost of drawing and solving models and of simulating steps, plus an agent's tables."""
    pairs = float(n_states) * n_actions
    return Cost(PAIR_SECONDS * models * pairs + STEP_SECONDS * (1.0 + steps), PAIR_BYTES * pairs + bytes)


def n_branches(branching: float, depth: int) -> float:
    """Return b + b² + … + b^depth; infinity on overflow."""
    try:
        return depth if branching <= 1 else branching * (float(branching) ** depth - 1) / (branching - 1)
    except OverflowError:
        return math.inf


def checked_array(name: str, array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return an array loaded from a file after checking that its dtype and shape match ``like``."""
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{name} is not {like.dtype} {list(like.shape)}, the array that this planner keeps")
    return array


def put_array(memory: Any, name: str, array: np.ndarray) -> None:
    """Copy an array loaded from a file into the memory attribute with this dotted name."""
    *path, last = name.split(".")
    owner = reduce(getattr, path, memory)
    old = getattr(owner, last)
    array = checked_array(name, array, np.asarray(old))
    if isinstance(old, np.ndarray):
        old[...] = array
    else:
        setattr(owner, last, array.item())


class Planner(Declared):
    """Hyperparameters of a planning algorithm and its interface to an agent.

    To write your own planner, define a frozen dataclass with :meth:`act`, or with :meth:`plan` if it can report its
    evidence. Everything else is optional:

    - :meth:`start` returns the memory, an object of any class that stores the planner's state between steps;
    - :meth:`learn` processes a real transition, :meth:`begin` the start of an episode;
    - ``keeps`` names the memory attributes that are saved with an agent. If the memory is an array, all of it is saved.

    ``rng`` is a :class:`numpy.random.Generator`, seeded from the agent's stream at every decision: the same seed gives
    the same actions, even after saving and loading. Query the ``belief`` through its methods and leave it unchanged.

    Hyperparameters are dataclass fields, optionally validated by the functions of :mod:`bamdp._parameters`. Increment
    ``result_version`` whenever a change alters the results for a given seed.

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
    uses_prior: ClassVar[bool] = True  # False if the prior over transitions has no effect
    default_prior: ClassVar[str] = "sparse:alpha=0.2,beta=2"  # used if an agent specifies none
    default_discount: ClassVar[float | str] = 0.95  # or "auto" or "horizon" if the number of steps is known
    keeps: ClassVar[tuple[str, ...]] = ()  # dotted names of learned memory attributes, which are saved
    one_discount: ClassVar[str] = ""  # reason why the discount is fixed, if it is

    def start(self, belief: Belief, discount: float) -> Any:
        """Return the memory of a new agent; reject beliefs that the algorithm cannot handle."""
        return None

    def act(self, memory: Any, belief: Belief, state: int, rng: Any) -> int:
        """Return the action of :meth:`plan`, skipping the evidence if that is cheaper."""
        return self.plan(memory, belief, state, rng).action

    def plan(self, memory: Any, belief: Belief, state: int, rng: Any) -> Plan:
        """Choose an action and report the evidence, changing ``memory`` and ``rng`` exactly as :meth:`act` does."""
        if type(self).act is Planner.act:
            raise TypeError(f"{type(self).__name__} must define act(memory, belief, state, rng), or plan")
        action = int(self.act(memory, belief, state, rng))
        return Plan(action, math.nan, (Candidate(action, math.nan),))

    def explain(self, memory: Any, belief: Belief, state: int, rng: Any) -> Plan:
        """Return the same as :meth:`plan`, plus the search tree if the algorithm builds one."""
        return self.plan(memory, belief, state, rng)

    def learn(self, memory: Any, belief: Belief, seen: Transition) -> None:
        """Process a real transition; the belief has already been updated with it."""

    def begin(self, memory: Any, belief: Belief, state: int) -> None:
        """Process the start of an episode in ``state``: the first one, or one after a termination or truncation."""

    def on_space_changed(self, memory: Any, belief: Belief) -> None:
        """React to a newly discovered terminal state or missing action, which may invalidate solutions."""

    def warm_up(self, memory: Any, belief: Belief, state: int, rng: Any) -> None:
        """Call kernels that only some decisions reach, to compile them before timing; no-op by default."""

    def random(self, words: np.ndarray) -> Any:
        """Return the random generator for one decision and advance the agent's stream, uint64 [4]."""
        generator = np.random.default_rng(words)
        words[:] = generator.integers(0, 2**64, size=4, dtype=np.uint64)
        return generator

    def learned(self, memory: Any) -> dict[str, np.ndarray]:
        """Return the learned part of a memory, which must be saved; :meth:`start` recreates the rest."""
        if isinstance(memory, np.ndarray):
            return {"memory": memory}
        return {name: np.array(attrgetter(name)(memory)) for name in self.keeps}

    def relearn(self, memory: Any, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the result of :meth:`learned` into a memory freshly created by :meth:`start`."""
        if isinstance(memory, np.ndarray):
            memory[...] = checked_array("memory", arrays["memory"], memory)
        for name in self.keeps:
            put_array(memory, name, arrays[name])

    def set_discount(self, memory: Any, discount: float) -> None:
        """Change the discount from the next decision on; raise an error citing ``one_discount`` if that is set.

        The discount is stored as ``discount`` in the memory or in its ``params``.
        """
        if self.one_discount:
            name = type(self).__name__
            raise ValueError(f"{name} cannot plan for a horizon: {self.one_discount}; give it a discount")
        if hasattr(memory, "params"):
            memory.params = memory.params._replace(discount=discount)
        elif hasattr(memory, "discount"):
            memory.discount = discount

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        """Estimate time per decision and memory use; by default for ``n_models`` models, or one if it has a prior."""
        models = float(getattr(self, "n_models", self.uses_prior))
        return estimate(n_states, n_actions, models=models, bytes=48.0 * models * n_states * n_actions)

    def parameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


class KernelPlanner(Planner):
    """A planner whose kernels draw directly from the agent's stream: ``rng`` is uint64 [4]."""

    def random(self, words: np.ndarray) -> np.ndarray:
        return words
