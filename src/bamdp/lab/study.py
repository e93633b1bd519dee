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
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp.ceilings import optimal_total
from bamdp.envs.environment import Environment, World
from bamdp.envs.registry import new_world
from bamdp.lab.search_space import Configuration, planner_parameters, prior_spec
from bamdp.settings import Setting, make_setting

GRID_SEARCH = "grid"
TUNING_METHODS = (GRID_SEARCH, "halving")
MAX_BUDGET_SHARES = 2.0  # even shares of the budget that a configuration's first run may take


DRAW_MARK = "#"  # between an algorithm's label and the number of its draw of configurations


def draw_label(algorithm: str, draw: int) -> str:
    """Return the label of an algorithm's draw of configurations, counted from 0, as tables show it."""
    return f"{algorithm}{DRAW_MARK}{draw + 1}"


def without_draw(label: str) -> str:
    """Return the algorithm's own label, whichever draw of its configurations this is.

    Examples
    --------
    >>> draw_label("dss-pi", 1), without_draw("dss-pi#2"), without_draw("thompson")
    ('dss-pi#2', 'dss-pi', 'thompson')
    """
    return label.partition(DRAW_MARK)[0]


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
    planner: str  # name in the registry
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
        kept = [
            cell
            for cell in self.cells
            if (environments is None or cell.environment.label in environments)
            and (algorithms is None or cell.algorithm in algorithms)
        ]
        return replace(self, cells=tuple(kept))


@lru_cache(maxsize=256)
def cached_world(spec: Any) -> World:
    """Return an environment to read facts from; it is shared, so nobody may step in it."""
    return new_world(spec)


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
