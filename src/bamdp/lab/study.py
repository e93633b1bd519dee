"""A study as data: which planners, in which environments, how often, and how their parameters are chosen.

It is written as a small TOML file (``docs/laboratory.md`` has the whole language)::

    title = "Does look-ahead pay?"
    runs = 30
    prior = ["sparse:beta=2", "sparse:beta=6"]   # several values: a space to tune over

    [environments.grid5]

    [algorithms.dss-pi]
    n_policies = [2, 4, 8]
    n_steps = 25

    [algorithms.thompson]

    [tuning]
    method = "grid"
    runs = 10

This module defines the data; :mod:`bamdp.lab.reading` makes a study from a file. A *cell* is one algorithm in one
environment, with the configurations that it may have there.

A configuration is flat: the planner's parameters (those of a named component with a dot, ``generator.depth``),
``prior`` and ``prior.beta``, ``discount``. A search space gives each of these one or several values and stands for
their product, in the order in which it is written, the last one changing fastest.

Some parameters have a meaning only with some values of another: ``prior.beta`` with a sparse prior,
``generator.depth`` with RTDP. Elsewhere they are left out, and configurations that have become equal count once. A
planner that does not use the prior (R-max, Q-learning) keeps the first one.

From a space that is larger than the number asked for, configurations are drawn at random, by a seed: the same ones
every time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._specs import Spec, parse_spec, read_value
from bamdp.beliefs.base import Prior
from bamdp.ceilings import optimal_total
from bamdp.envs.environment import Environment
from bamdp.generators import GENERATORS
from bamdp.planners.base import Planner
from bamdp.registry import OF_ENVIRONMENT, PRIORS, entry_of, is_mixture, make_planner, with_parameters
from bamdp.settings import Setting, cached_world, make_setting

Scalar = Any  # text, a number, or in a study made in Python an object, such as a prior
SearchSpace = Mapping[str, tuple[Scalar, ...]]
Configuration = Mapping[str, Scalar]

SHARED_KEYS = ("prior", "discount")  # parameters that are not the planner's
MAX_LISTED = 100_000  # configurations that are listed one by one
GRID_SEARCH = "grid"
TUNING_METHODS = (GRID_SEARCH, "halving")
MAX_BUDGET_SHARES = 2.0  # even shares of the budget that a configuration's first run may take
EVALUATION_SLACK = 2.0  # times the limit: when a run of what tuning has chosen is stopped

GENERATOR = {"generator": GENERATORS}  # the parameter of planners that is a thing with parameters


def list_configurations(
    planner: str | Planner,
    space: SearchSpace,
    include: Iterable[Mapping[str, Scalar]] = (),
    count: int | None = None,
    seed: Sequence[int] = (0,),
) -> tuple[Configuration, ...]:
    """Return those of ``include``, and all of the space, or as many of it as make ``count`` in total.

    Parameters that an included one leaves out have the space's first value.

    Examples
    --------
    >>> space = {"resample": ("step", 5), "prior": ("flat", "sparse"), "prior.beta": (2, 4), "discount": (0.95,)}
    >>> for configuration in list_configurations("thompson", space):
    ...     print(dict(configuration))
    {'resample': 'step', 'prior': 'flat', 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 'step', 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    {'resample': 5, 'prior': 'flat', 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 2, 'discount': 0.95}
    {'resample': 5, 'prior': 'sparse', 'prior.beta': 4, 'discount': 0.95}
    """
    check_parameter_names(planner, space)
    include = tuple(include)
    for one in include:
        check_parameter_names(planner, {key: (value,) for key, value in one.items()})
    cls: Any = entry_of(planner).cls
    if not cls.uses_prior:  # a choice between priors would be a choice between seeds
        space = {key: values[:1] if _owner(key) == "prior" else values for key, values in space.items()}
        include = tuple({k: value for k, value in one.items() if _owner(k) != "prior"} for one in include)

    first = {key: values[0] for key, values in space.items()}
    distinct: dict[str, tuple[int, Configuration]] = {}  # by value, with the position in the space
    for one in include:
        configuration = normalise_configuration(planner, merge_parameters(first, one))
        distinct.setdefault(repr(configuration), (-1, configuration))
    if count is not None and len(distinct) > count:
        raise ValueError(f"{len(distinct)} configurations are to be included, which is more than {count}")
    for position in _positions(math.prod(len(values) for values in space.values()), count, seed):
        if count is not None and len(distinct) == count:
            break
        configuration = normalise_configuration(planner, _configuration_at(space, position))
        distinct.setdefault(repr(configuration), (position, configuration))
    return tuple(configuration for _, configuration in sorted(distinct.values(), key=lambda entry: entry[0]))


def normalise_configuration(planner: str | Planner, raw: Mapping[str, Scalar]) -> Configuration:
    """Return a configuration in its one form: values of their own types, no parameters without a meaning."""
    discount = raw["discount"]
    return {
        **_normalise_planner(planner, {k: value for k, value in raw.items() if _owner(k) not in SHARED_KEYS}),
        **_normalise_prior(raw),
        "discount": _checks.planning_discount(
            _number_or_text(discount) if isinstance(discount, str) else discount
        ),
    }


def merge_parameters(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters; later tables win, and another prior removes the parameters of the earlier one."""
    merged: dict[str, Any] = {}
    for table in tables:
        if "prior" in table:
            merged = {key: value for key, value in merged.items() if not key.startswith("prior.")}
        merged |= table
    return merged


def prior_spec(configuration: Configuration) -> str | Spec | Prior:
    """Return the prior of a configuration as :func:`bamdp.registry.make_prior` reads it; a mixture is text."""
    if isinstance(configuration["prior"], Prior):
        return configuration["prior"]
    name = str(configuration["prior"])
    written = {key[6:]: _spec_text(v) for key, v in configuration.items() if key.startswith("prior.")}
    return Spec(name, written) if written else name


def planner_parameters(configuration: Configuration) -> dict[str, str]:
    """Return the planner's parameters of a configuration as :func:`bamdp.registry.make_planner` reads them."""
    return {key: _spec_text(v) for key, v in configuration.items() if _owner(key) not in SHARED_KEYS}


def check_parameter_names(planner: str | Planner, space: SearchSpace) -> None:
    """Check that every key with a dot is a parameter of some prior or component in the space."""
    options = {
        "prior": space.get("prior", ()),
        **{part: _options(planner, part, space) for part in GENERATOR},
    }
    for key in space:
        head, dot, rest = key.partition(".")
        if dot and head in options:
            known = list(dict.fromkeys(name for one in options[head] for name in _fields_of(head, one)))
            names = ", ".join(str(option).partition(":")[0] for option in options[head])
            if known or not any("+" in str(option) for option in options[head]):
                _checks.one_of(rest, f"parameter of the {head} {names}", known)


def _owner(key: str) -> str:
    """Return what a parameter belongs to: ``prior`` of ``prior.beta``, or the key itself."""
    return key.partition(".")[0]


def _options(planner: str | Planner, part: str, space: SearchSpace) -> tuple[Scalar, ...]:
    """Return the values that a named component can have in a space."""
    named = entry_of(planner)
    default = named.fixed.get(part, getattr(named.cls, part, None))
    return space.get(part, () if default is None else (default,))


def _fields_of(head: str, option: Scalar) -> tuple[str, ...]:
    """Return the parameters of a prior or of a component, by its name; none for a mixture."""
    if not isinstance(option, str):
        return tuple(f.name for f in dataclasses.fields(option)) if dataclasses.is_dataclass(option) else ()
    name = option.partition(":")[0].strip().lower()
    if head != "prior":
        cls: Any = GENERATOR[head][_checks.one_of(name, head, GENERATOR[head])]
    elif is_mixture(str(option)) or _checks.one_of(name, "prior", PRIORS) in OF_ENVIRONMENT:
        return ()
    else:
        cls = PRIORS[name].cls
    return tuple(f.name for f in dataclasses.fields(cls))


def _normalise_planner(planner: str | Planner, parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    kept = {}
    for key, value in parameters.items():
        head, dot, rest = key.partition(".")
        if dot and head in GENERATOR:
            option = _options(planner, head, {k: (v,) for k, v in parameters.items()})
            if option and rest not in _fields_of(head, option[0]):
                continue
        kept[key] = _spec_text(value)
    instance = make_planner(planner, kept)
    return {key: _typed_value(instance, key, value) for key, value in kept.items()}


def _typed_value(instance: Any, key: str, written: str) -> Scalar:
    """Return the value as the planner holds it."""
    for name in key.split("."):
        instance = getattr(instance, name)
    return written if dataclasses.is_dataclass(instance) or instance is None else instance


def _normalise_prior(raw: Mapping[str, Scalar]) -> dict[str, Scalar]:
    if isinstance(raw["prior"], Prior):
        own = {key[6:]: value for key, value in raw.items() if key.startswith("prior.")}
        return {"prior": with_parameters(raw["prior"], own) if own else raw["prior"]}
    written = str(raw["prior"]).strip()
    if is_mixture(written):
        return {"prior": written}
    head, parameters = parse_spec(written)
    head = _checks.one_of(head.lower(), "prior", PRIORS)
    for key, value in raw.items():
        name = key.removeprefix("prior.")
        if name == key or name not in _fields_of("prior", head):
            continue
        if name in parameters:
            raise ValueError(f"{key} is given twice, in {written!r} and by itself; drop one")
        parameters[name] = _spec_text(value)
    return {"prior": head, **{f"prior.{name}": _number_or_text(v) for name, v in parameters.items()}}


def _spec_text(value: Scalar) -> Any:
    """Return a value as it is written in specs; an object stays as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _number_or_text(written: str) -> Scalar:
    """Return a written number as a number, anything else as it is."""
    value = read_value(written)
    return value if isinstance(value, (int, float)) else written


def _configuration_at(space: SearchSpace, position: int) -> dict[str, Scalar]:
    """Return the member at a position of the product."""
    indices = np.unravel_index(position, [len(values) for values in space.values()])
    return {key: values[index] for (key, values), index in zip(space.items(), indices)}


def _positions(total: int, count: int | None, seed: Sequence[int]) -> Iterator[int]:
    """Return all positions in order; or, if not all are asked for, in a random order."""
    if count is None and total > MAX_LISTED:
        raise ValueError(f"the space has {total} configurations; say configurations = N to draw N of them")
    if count is None or total <= count:
        return iter(range(total))
    rng = np.random.default_rng(np.random.SeedSequence(list(seed)))
    if total <= MAX_LISTED:
        return (int(position) for position in rng.permutation(total))
    return (int(rng.integers(total)) for _ in range(100 * count))


@dataclass(frozen=True)
class StudyEnvironment:
    """An environment of a study."""

    label: str
    env: Any  # as new_world takes it; in a file, text
    steps: int  # of a run
    limit: float  # processor seconds that a step may take on average
    runs: int  # of a complete evaluation here; 0: only tune
    rewards: Any = None  # as make_rewards reads it
    objective: str = "episode"


@dataclass(frozen=True)
class Tuning:
    """How a configuration is chosen; see :mod:`bamdp.lab.choosing`."""

    method: str = GRID_SEARCH
    runs: int = 10  # replicates of a configuration, at most
    configurations: int | None = None  # of each algorithm; None: all of its space
    budget: float | None = None  # halving: processor seconds for each cell
    keep: float = 1 / 3  # halving: the share that survives a round
    screening: int | None = None  # halving: steps of a run before the last round; None: all
    across: bool = False  # one choice for all environments together

    def __post_init__(self) -> None:
        _checks.one_of(self.method, "tuning method", TUNING_METHODS)
        _checks.integer(self.runs, "tuning.runs")
        _checks.real(self.keep, "tuning.keep", low=0.05, high=0.9)
        for name in ("configurations", "screening"):
            if getattr(self, name) is not None:
                _checks.integer(getattr(self, name), f"tuning.{name}")
        if self.budget is not None:
            _checks.real(self.budget, "tuning.budget", low=0.0, open_low=True)
        if self.method == GRID_SEARCH and (self.budget is not None or self.screening is not None):
            raise ValueError(
                'tuning.budget and tuning.screening are for method = "halving"; a grid runs everything'
            )
        if not isinstance(self.across, bool):
            raise TypeError(f"tuning.across must be true or false, got {self.across!r}")


@dataclass(frozen=True)
class StudyCell:
    """One algorithm in one environment."""

    environment: StudyEnvironment
    algorithm: str  # label
    planner: str | Planner  # name in the registry
    configurations: tuple[Configuration, ...]
    seed: int
    runs: int  # of the evaluation; fewer than the environment's where an algorithm is too slow for that
    tuning: Tuning | None = None  # None: every configuration is evaluated
    draw: int = 0  # which of the algorithm's draws of configurations, where it has several
    space_size: int = 0  # of the product that configurations are drawn from; 0: not known

    @property
    def label(self) -> str:
        """The algorithm and the environment in words."""
        return f"{self.algorithm} in {self.environment.label}"

    @property
    def replicates(self) -> range:
        """The replicates of the evaluation: every draw has its own, so that together they are independent runs."""
        first = self.draw * self.environment.runs
        return range(first, first + self.runs)

    def horizon(self, short: bool) -> int:
        """Return the steps of a run: all, or as many as screening has in the rounds before the last."""
        screening = None if self.tuning is None else self.tuning.screening
        steps = self.environment.steps
        return steps if not short or screening is None else min(screening, steps)

    @property
    def tuning_limit(self) -> float:
        """Seconds per step in tuning: the environment's limit, or twice an even share of the budget if that is less.

        That is 2B / (configurations · T). Without it a single slow configuration could use up the budget of all.
        """
        budget = None if self.tuning is None else self.tuning.budget
        if budget is None:
            return self.environment.limit
        share = budget / (len(self.configurations) * self.horizon(short=True))
        return min(self.environment.limit, MAX_BUDGET_SHARES * share)

    @property
    def evaluation_limit(self) -> float:
        """Seconds per step at which a run of the evaluation is stopped: the environment's limit, or twice that.

        Tuning chooses by the mean over runs. What it has chosen is evaluated on all its runs, the slower ones, too, or
        the evaluation would be of those that happen to be quick.
        """
        chosen = self.tuning is not None and len(self.configurations) > 1
        return self.environment.limit * (EVALUATION_SLACK if chosen else 1.0)

    def setting(self, configuration: Configuration, steps: int | None = None) -> Setting:
        """Return the setting of a configuration's runs; the only place in the laboratory that makes one."""
        return make_setting(
            self.environment.env,
            self.planner,
            parameters=planner_parameters(configuration),
            prior=prior_spec(configuration),
            rewards=self.environment.rewards,
            discount=_checks.planning_discount(configuration["discount"]),
            objective=self.environment.objective,
            steps=self.environment.steps if steps is None else steps,
            seed=self.seed,
            world=cached_world(self.environment.env),
        )


@dataclass(frozen=True)
class Study:
    """A whole study."""

    title: str
    cells: tuple[StudyCell, ...]
    runs: int = 10  # of evaluation, unless an environment or a cell says otherwise; 0: only tune
    tuning: Tuning | None = None  # None: every configuration is evaluated
    seed: int = 0
    quick: bool = False  # shortened, to be marked as such
    notes: tuple[str, ...] = ()
    source: str = ""  # the text of the file
    path: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _checks.integer(self.runs, "runs", low=0)
        _checks.integer(self.seed, "seed", low=0)
        if not self.cells:
            raise ValueError("a study needs at least one algorithm and one environment")
        if self.tuning is None and any(cell.runs == 0 for cell in self.cells):
            raise ValueError("runs = 0 leaves nothing to do; say how many runs, or add a [tuning] table")

    @property
    def environments(self) -> tuple[StudyEnvironment, ...]:
        """The environments, in order."""
        return tuple(dict.fromkeys(cell.environment for cell in self.cells))

    def choosing_together(self, cell: StudyCell) -> tuple[StudyCell, ...]:
        """Return the cells that choose one configuration with this one: itself, or its algorithm everywhere."""
        if cell.tuning is None or not cell.tuning.across:
            return (cell,)
        return tuple(one for one in self.cells if one.algorithm == cell.algorithm)

    def only(self, environments: list[str] | None = None, algorithms: list[str] | None = None) -> Study:
        """Return the part of the study with these labels; None stands for all."""
        for kind, labels, known in (
            ("environment", environments, [env.label for env in self.environments]),
            ("algorithm", algorithms, [cell.algorithm for cell in self.cells]),
        ):
            for label in labels or ():
                _checks.one_of(label, f"{kind} of the study", dict.fromkeys(known))
        if environments is not None and self.tuning is not None and self.tuning.across:
            raise ValueError(
                "this study chooses for all environments together, so none can be left out; drop --environments"
            )
        return replace(self, cells=self.select(environments, algorithms))

    def select(self, environments: list[str] | None, algorithms: list[str] | None) -> tuple[StudyCell, ...]:
        """Return the cells with these labels; None stands for all."""
        return tuple(
            cell
            for cell in self.cells
            if (environments is None or cell.environment.label in environments)
            and (algorithms is None or cell.algorithm in algorithms)
        )


@lru_cache(maxsize=64)
def positive_optimum(env: Any, steps: int) -> float:
    """Return the optimal expected total of an environment, of which shares are taken; it must be positive."""
    world = cached_world(env)
    assert isinstance(world, Environment)  # reading refuses the study otherwise
    optimum = optimal_total(world, steps)
    if optimum <= 0.0:
        raise ValueError(
            f"{env}: its best total in {steps} steps is {optimum:g}, of which no share can be taken; choose without "
            "across = true"
        )
    return optimum
