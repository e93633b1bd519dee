"""The studio's form: an environment, a prior, one planner or two, as text, with every field checked.

An error is a :class:`~bamdp.settings.FieldError`, which names its field so that the form can point at it.

How much is asked for is told before anything is built, and :class:`Limits` says how much a tab may ask for. The numbers
are known beforehand where parameters determine them: states and actions of the environments that have a name, the
simulated steps of a decision, the large arrays of an environment or a planner. They are estimates that keep honest
requests honest. Behind them stand walls: the memory limit of a session's process, and the seconds of one answer, after
which the process is ended (:mod:`bamdp.studio.sessions`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from bamdp import _checks
from bamdp._specs import parse_spec, read_value
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs.environment import World
from bamdp.envs.registry import list_envs, make_env, make_world
from bamdp.generators import GENERATORS
from bamdp.planners import (
    BFS3,
    BOSS,
    DSS,
    FHTS,
    MCBRL,
    SBOSS,
    AdaptiveDSS,
    BayesianSparseSampling,
    BootstrappedDQN,
    Planner,
    SparseSampling,
)
from bamdp.planners.dss import WHOLE_MODELS
from bamdp.planners.shared.tree_search import TreeSearch, auto_depth
from bamdp.registry import DEFAULT_PRIOR, make_planner
from bamdp.runs import new_agent
from bamdp.settings import FieldError, Setting, in_field, make_setting

BYTES_PER_ENTRY = 64.0  # of a transition that is listed, while the model is being made
BYTES_PER_GB = 1 << 30
MOST_STEPS = 100_000
LONGEST = 400  # characters of one field
MOST_SEED = 2**53  # what a browser can count to
FIELDS = ("env", "prior", "rewards", "discount", "objective", "seed", "steps", "planners")


class Size(NamedTuple):
    """How large an environment is; ``entries`` are its listed transitions, at least."""

    states: int
    actions: int
    entries: int


@dataclass(frozen=True)
class Limits:
    """What a tab may ask for, and how many tabs there may be."""

    sessions: int = 6  # open at a time, each with a process of its own
    states: int = 2_500  # that can be drawn and looked at
    actions: int = 24
    work: float = 1e9  # simulated steps of one decision, where they can be counted beforehand
    memory: float = 4.0  # GB of each session's process
    seconds: float = 60.0  # of a single decision before its process is ended

    def __post_init__(self) -> None:
        _checks.integer(self.sessions, "max-sessions", high=1000)
        _checks.integer(self.states, "max-states", high=10**9)
        _checks.integer(self.actions, "max-actions", high=10**6)
        _checks.real(self.work, "max-work", low=1.0)
        _checks.real(self.memory, "memory", low=1.0, high=1e6)
        _checks.real(self.seconds, "limit", low=0.0, high=1e6, open_low=True)  # poll counts in ms

    def check_size(self, env: str, size: Size) -> None:
        """Refuse an environment with too many states or actions, or one that would not fit into memory."""
        if size.states > self.states or size.actions > self.actions:
            raise ValueError(
                f"{env} has {_count(size.states)} states and {_count(size.actions)} actions; what can be looked at "
                f"here ends at {self.states} states and {self.actions} actions: choose smaller ones, use bamdp run, or "
                "start the studio with larger --max-states and --max-actions"
            )
        self._check_memory(env, size.entries * BYTES_PER_ENTRY)

    def check_planner(self, name: str, planner: Planner, size: Size, discount: float) -> None:
        """Refuse a planner whose single decision would take too long, or whose arrays would not fit into memory."""
        seconds = getattr(planner, "time_limit", None)
        if seconds is not None and seconds > self.seconds:
            raise ValueError(
                f"time_limit must be at most {self.seconds:g} here, the seconds that a decision may take, got "
                f"{seconds:g}; lower it, or start the studio with a larger --limit"
            )
        work = decision_work(planner, size, discount)
        if work > self.work:
            raise ValueError(
                f"a decision of {name} would take about {_count(work)} simulated steps in {size.states} states; what "
                f"is done here ends at {self.work:.4g}: lower its parameters, or start the studio with a larger "
                "--max-work"
            )
        self._check_memory(name, planner_bytes(planner, size))

    def _check_memory(self, name: str, n_bytes: float) -> None:
        if n_bytes > self.memory * BYTES_PER_GB:
            raise ValueError(
                f"{name} would need about {n_bytes / BYTES_PER_GB:.3g} GB of memory; a session may have "
                f"{self.memory:g} GB: choose smaller parameters, or start the studio with a larger --memory"
            )


def _count(number: float) -> str:
    """Write a number for people: all digits where they are few."""
    return "more than 1e+300" if number > 1e300 else f"{number:.0f}" if number < 1e9 else f"{number:.2g}"


# --- environments -------------------------------------------------------------------------------------------------


def _random_size(p: Mapping[str, Any]) -> Size:
    rows = p["n_states"] * p["n_actions"]
    return Size(p["n_states"], p["n_actions"], rows * (p["n_states"] if p["prior"] == "flat" else 1))


# By name, from the parameters: states, actions, listed transitions. What is not here is small.
SIZES: dict[str, Callable[[Mapping[str, Any]], Size]] = {
    "chain": lambda p: Size(p["n_states"], 2, 4 * p["n_states"]),
    "river_swim": lambda p: Size(p["n_states"], 2, 4 * p["n_states"]),
    "grid": lambda p: Size(p["size"] ** 2, 4, 12 * p["size"] ** 2),
    "deep_sea": lambda p: Size(p["size"] ** 2 + 1, 2, 2 * p["size"] ** 2),
    "deep_sea_stochastic": lambda p: Size(p["size"] ** 2 + 1, 2, 3 * p["size"] ** 2),
    "random_mdp": _random_size,
    "family_grid": lambda p: Size(p["size"] ** 2, 4, 8 * p["size"] ** 2),
    "family_random": _random_size,
}


def expected_size(env: str) -> Size | None:
    """Return how large a named environment will be; None where a parameter of its size is no number that counts.

    Examples
    --------
    >>> expected_size("grid:size=2500").states
    6250000
    """
    spec = parse_spec(env)
    name = spec.name.lower().replace("-", "_")
    if name not in SIZES:
        return _fixed_size(name)
    defaults = next(info.parameters for info in list_envs() if info.name == name)
    values = {**defaults, **{key: read_value(text) for key, text in spec.parameters.items()}}
    sizes = [values[key] for key in ("size", "n_states", "n_actions") if key in values]
    if any(type(value) is not int or value < 1 for value in sizes):
        return None  # the environment refuses it and says why
    return SIZES[name](values)


@cache
def _fixed_size(name: str) -> Size:
    """Return the size of an environment that has the same whatever its parameters are (of a bandit: as it comes)."""
    env = make_env(name)
    return Size(env.n_states, env.n_actions, 1)


# --- planners -----------------------------------------------------------------------------------------------------


def decision_work(planner: Planner, size: Size, discount: float) -> float:
    """Return about how many steps one decision simulates; a model that is solved counts as one step for each pair.

    Examples
    --------
    >>> decision_work(SparseSampling(width=4, depth=3), Size(5, 2, 0), 0.95)
    584.0
    """
    S, A = size.states, size.actions
    pairs = S * A
    match planner:
        case DSS():
            generator = planner.generator
            if isinstance(generator, str):
                generator = GENERATORS[generator]()
            trials = getattr(generator, "depth", 0) * getattr(generator, "n_trials", 0)
            leaves = 0 if planner.leaf == "zero" else planner.leaf_samples
            # whether models are drawn only where they are looked at
            lazy = S > WHOLE_MODELS and planner.leaf == "zero" and getattr(generator, "lazy", False)
            per_policy = (min(pairs, trials * A) if lazy else pairs) + trials
            rollouts = _tree(planner.n_policies * planner.n_samples, planner.n_stages)
            return rollouts * (planner.n_steps + per_policy + leaves * pairs)
        case FHTS():
            return min(_tree(pairs, planner.horizon), planner.max_hyper_states)
        case SparseSampling():
            return _tree(planner.width * A, planner.depth)
        case AdaptiveDSS():
            n_trials = 1 if planner.time_limit is not None else planner.budget(S, A)
            trial = planner.n_stages * planner.n_steps + (planner.n_stages + 1) * pairs
            return n_trials * trial + (1 + planner.n_bonuses + planner.n_policies) * pairs
        case BayesianSparseSampling():
            return planner.n_trajectories * (planner.depth + pairs)
        case BFS3():
            return planner.n_trajectories * planner.depth * planner.n_successors * A
        case TreeSearch():
            depth = auto_depth(discount) if isinstance(planner.depth, str) else planner.depth
            return (1 if planner.time_limit is not None else planner.n_simulations) * depth
        case BOSS() | SBOSS() | MCBRL():
            return planner.n_models * pairs
        case BootstrappedDQN():  # the numbers that a decision multiplies are many, but quick
            return planner.n_networks * planner.batch_size * planner.n_hidden
        case _:
            return pairs


def planner_bytes(planner: Planner, size: Size) -> float:
    """Return about how many bytes the arrays of a planner take that its parameters make large."""
    match planner:
        case BOSS() | SBOSS() | MCBRL():
            return 48 * planner.n_models * size.states * size.actions
        case BootstrappedDQN():
            weights = planner.n_networks * planner.n_hidden * (size.states + planner.n_hidden)
            return 40 * (weights + planner.replay_size)
        case DSS():
            return 4 * planner.n_stages * size.states + 24 * planner.n_policies
        case FHTS():
            return 16 * planner.horizon * size.states
        case _:
            return 0


def _tree(branching: int, depth: int) -> float:
    """Return the edges of a tree with so many below each node; infinite where no float holds them."""
    if branching <= 1:
        return depth
    try:
        return (float(branching) ** (depth + 1) - branching) / (branching - 1)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Choice:
    """A form as it is written; :meth:`settings` checks it."""

    env: str = "grid10"
    planners: tuple[str, ...] = ("dss-pi",)  # name:key=value,...
    prior: str = DEFAULT_PRIOR
    rewards: str | None = None
    discount: float = 0.95
    objective: str = "episode"
    seed: int = 0
    steps: int | None = None
    # environments from files that may be opened
    files: frozenset[str] = field(default=frozenset(), repr=False)

    @staticmethod
    def read(form: Any, files: Iterable[str] = ()) -> Choice:
        """Read a form from JSON; unknown and misshapen fields are refused, missing ones have their defaults."""
        if not isinstance(form, Mapping):
            raise FieldError("env", "expected an object with the fields " + ", ".join(FIELDS))
        for name in form:
            with in_field(name):
                _checks.one_of(name, "field", FIELDS)
        values = {"planners": ["dss-pi"], **form}
        for name in ("rewards", "objective"):
            if values.get(name) in (None, ""):  # the usual ones
                values.pop(name, None)
        planners = values["planners"]
        if not isinstance(planners, list) or not 1 <= len(planners) <= 2:
            raise FieldError("planners", f"planners must be a list of one or two, got {_shown(planners)}")
        values["planners"] = tuple(_check_text(f"planner {i}", spec) for i, spec in enumerate(planners))
        for name in ("env", "prior", "rewards"):
            if name in values:
                values[name] = _check_text(name, values[name])
        return Choice(**values, files=frozenset(files))

    def __post_init__(self) -> None:
        """Refuse what is wrong without regard to an environment: discount, objective, seed, steps."""
        with in_field("discount"):
            _checks.discount(self.discount)
        with in_field("objective"):
            _checks.one_of(self.objective, "objective", OBJECTIVES)
        with in_field("seed"):
            _checks.integer(self.seed, "seed", low=0, high=MOST_SEED)
        if self.steps is not None:
            with in_field("steps"):
                _checks.integer(self.steps, "steps", high=MOST_STEPS)

    def check_beforehand(self, limits: Limits) -> None:
        """Refuse what can be told to be wrong, too large or too much work without building anything."""
        size = None
        head = self.env.partition(":")[0].strip()
        with in_field("env"):
            if head not in ("file", "gym"):
                known = [info.name for info in list_envs()]
                _checks.one_of(head.lower().replace("-", "_"), "environment", known)
                size = expected_size(self.env)
            elif self.env not in self.files:
                raise ValueError(
                    "files and Gymnasium's environments can only be opened from the command line: bamdp studio "
                    "file:model.npz, or bamdp studio gym:FrozenLake-v1"
                )
            if size is not None:
                limits.check_size(self.env, size)
        self._check_planners(limits, size or Size(1, 1, 1))

    def _check_planners(self, limits: Limits, size: Size) -> None:
        for i, spec in enumerate(self.planners):
            with in_field(f"planner {i}"):
                limits.check_planner(spec, make_planner(spec), size, self.discount)

    def settings(self, limits: Limits | None = None) -> list[Setting]:
        """Return one setting for each planner, after checking everything."""
        limits = limits or Limits()
        self.check_beforehand(limits)
        with in_field("env"):
            env = make_world(self.env)
            size = Size(env.n_states, env.n_actions, 1)
            limits.check_size(self.env, size)
        steps = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        self._check_planners(limits, size)
        return [self._setting(f"planner {i}", spec, env, steps) for i, spec in enumerate(self.planners)]

    def _setting(self, name: str, planner: str, env: World, steps: int) -> Setting:
        try:
            values = {
                key: getattr(self, key) for key in ("prior", "rewards", "discount", "objective", "seed")
            }
            setting = make_setting(self.env, planner, steps=steps, world=env, **values)
            with in_field("planner"):
                new_agent(setting, env)  # the planner may refuse the belief
            return setting
        except FieldError as error:  # the form has several planners
            raise FieldError(name if error.field == "planner" else error.field, str(error)) from error

    def data(self) -> dict[str, Any]:
        """Return the form as plain data for JSON."""
        return {**{name: getattr(self, name) for name in FIELDS}, "planners": list(self.planners)}


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
        raise FieldError(name, f"{name} must be a word of at most {LONGEST} characters, got {_shown(value)}")
    return value.strip()


def _shown(value: Any) -> str:
    """Write the beginning of a value from JSON, for a message."""
    return json.dumps(value)[:60]
