"""Studies as data: planners, environments, numbers of runs, and how parameters are chosen.

A study is written as a small TOML file (``docs/laboratory.md`` documents the format)::

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

A *cell* is one algorithm in one environment, together with its possible configurations (:mod:`bamdp.lab.space`).
Errors report their location in the file, and suggest corrections for typos.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp._parameters import Declared, choice, flag, parse_spec, positive_number, real_number, whole_number
from bamdp.beliefs.belief import OBJECTIVES
from bamdp.envs.ceilings import optimal_total
from bamdp.envs.environment import Environment
from bamdp.lab.space import (
    SHARED_KEYS,
    Configuration,
    list_configurations,
    merge_parameters,
    planner_parameters,
    prior_spec,
    varied_keys,
)
from bamdp.lab.store import EVALUATE, TUNE, Unit, units_of
from bamdp.planners.base import Planner
from bamdp.registry import entry_of, names
from bamdp.runs import Setting, cached_world, make_setting

GRID_SEARCH, _ = TUNING_METHODS = ("grid", "halving")
EVALUATION_SLACK = 2.0  # times the limit; runs of tuned configurations are stopped there
STUDIES = ("dss2020/published", "dss2020/fair", "dss2020/figure3", "dss2020/ablation")
STUDY_KEYS = ("title", "runs", "seed", "steps", "limit", "prior", "discount", "rewards", "objective", "notes",
              "environments", "algorithms", "tuning")  # fmt: skip
ENVIRONMENT_KEYS = ("env", "steps", "limit", "runs", "rewards", "objective")
NO_PARAMETERS = ("planner", "environments", "at", "include")  # keys that are not parameters
QUICK_RUNS, QUICK_STEPS, QUICK_CONFIGURATIONS = 3, 200, 6  # upper limits
DEFAULT_RUNS = 10
DEFAULT_LIMIT = 1.0  # seconds per step, if the environment specifies none

TomlTable = Mapping[str, Any]


@dataclass(frozen=True)
class StudyEnvironment(Declared):
    """Environment of a study."""

    label: str
    env: Any  # anything new_world accepts; a string in study files
    steps: int = whole_number(1)  # per run
    limit: float = positive_number(1.0)  # maximum mean processor seconds per step
    runs: int = whole_number(10, low=0)  # in a complete evaluation; 0 means tuning only
    rewards: Any = None  # anything make_rewards accepts
    objective: str = choice(OBJECTIVES[0], OBJECTIVES)


@dataclass(frozen=True)
class Tuning(Declared):
    """Method for selecting a configuration; see :mod:`bamdp.lab.choosing`."""

    method: str = choice(GRID_SEARCH, TUNING_METHODS)
    runs: int = whole_number(10)  # maximum number of replicates per configuration
    configurations: int | None = whole_number(None)  # per algorithm; None means the entire space
    keep: float = real_number(1 / 3, low=0.05, high=0.9)  # halving: fraction that survives each round
    across: bool = flag(False)  # make one choice for all environments together


@dataclass(frozen=True)
class StudyCell:
    """One algorithm in one environment."""

    environment: StudyEnvironment
    algorithm: str  # label
    planner: str | Planner  # a string is a name in the registry
    configurations: tuple[Configuration, ...]
    seed: int
    runs: int  # in the evaluation; fewer than the environment's for slow algorithms
    tuning: Tuning | None = None  # None: evaluate every configuration

    @property
    def tuned(self) -> bool:
        """True if there is a choice to make."""
        return self.tuning is not None and len(self.configurations) > 1

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Setting of each configuration."""
        return tuple(self._setting(configuration) for configuration in self.configurations)

    def tuning_units(self, number: int, replicates: range) -> list[Unit]:
        """Return the tuning runs of a configuration."""
        return units_of(self.settings[number], TUNE, replicates, self.environment.limit)

    def evaluation_units(self, number: int) -> list[Unit]:
        """Return the evaluation runs of a configuration.

        The time limit is doubled for configurations that tuning selected by their mean time. Otherwise only the runs
        that happen to be fast would be evaluated.
        """
        limit = self.environment.limit * (EVALUATION_SLACK if self.tuned else 1.0)
        return units_of(self.settings[number], EVALUATE, range(self.runs), limit)

    def _setting(self, configuration: Configuration) -> Setting:
        env = self.environment
        return make_setting(
            env.env,
            self.planner,
            parameters=planner_parameters(configuration),
            prior=prior_spec(configuration),
            rewards=env.rewards,
            discount=configuration["discount"],
            objective=env.objective,
            steps=env.steps,
            seed=self.seed,
            world=cached_world(env.env),
        )


@dataclass(frozen=True)
class Study:
    """Study with all its cells."""

    title: str
    cells: tuple[StudyCell, ...]
    tuning: Tuning | None = None  # None: evaluate every configuration
    seed: int = 0
    quick: bool = False  # shortened, and flagged as such in the results
    notes: tuple[str, ...] = ()
    source: str = ""  # text of the file
    path: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.cells:
            raise ValueError("a study needs at least one algorithm and one environment")
        if self.tuning is None and any(cell.runs == 0 for cell in self.cells):
            raise ValueError("runs = 0 leaves nothing to do; say how many runs, or add a [tuning] table")

    @property
    def environments(self) -> tuple[StudyEnvironment, ...]:
        """Environments in order."""
        return tuple(dict.fromkeys(cell.environment for cell in self.cells))

    def choosing_together(self, cell: StudyCell) -> tuple[StudyCell, ...]:
        """Return the cells that share one choice with this cell: itself, or its algorithm in every environment."""
        if cell.tuning is None or not cell.tuning.across:
            return (cell,)
        return tuple(one for one in self.cells if one.algorithm == cell.algorithm)

    def units(self) -> list[Unit]:
        """Return every run that the study may need, whatever tuning selects."""
        found = []
        for cell in self.cells:
            for number in range(len(cell.configurations)):
                if cell.tuned and cell.tuning is not None:
                    found += cell.tuning_units(number, range(cell.tuning.runs))
                found += cell.evaluation_units(number)
        return found


@lru_cache(maxsize=64)
def positive_optimum(env: Any, steps: int) -> float:
    """Return an environment's optimal expected total reward, which must be positive to serve as a denominator."""
    world = cached_world(env)
    if not isinstance(world, Environment):
        raise ValueError(
            f"{env}: the optimal total is not known, so no share of it can be taken; drop across = true"
        )
    optimum = optimal_total(world, steps)
    if optimum <= 0.0:
        raise ValueError(
            f"{env}: the optimal total over {steps} steps is {optimum:g}, so no share of it can be taken; drop across"
        )
    return optimum


# Reading


def load_study(path: str | Path, *, quick: bool = False) -> Study:
    """Read a study from a file or by its name in the package; ``quick`` reduces the number of runs and steps."""
    path, folder = Path(path), files("bamdp.lab")
    shipped = str(path) in STUDIES
    if not shipped and path.suffix != ".toml" and not path.exists():
        _checks.one_of(str(path), "study", [*STUDIES, "PATH.toml"])
    try:
        source = (folder / f"{path}.toml" if shipped else path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; a study is written in TOML") from None
    with _located(str(path)):
        return parse_study(source, quick=quick, path=path)


def parse_study(source: str, *, quick: bool = False, path: Path | None = None) -> Study:
    """Parse a study from text.

    Examples
    --------
    >>> study = parse_study('''
    ... environments = ["chain"]
    ... [algorithms.thompson]
    ... resample = ["step", "episode"]
    ... ''')
    >>> [dict(configuration) for configuration in study.cells[0].configurations][1]
    {'resample': 'episode', 'prior': 'sparse', 'prior.alpha': 0.2, 'prior.beta': 2, 'discount': 0.95}
    >>> parse_study('titel = "x"')
    Traceback (most recent call last):
    ...
    ValueError: unknown key 'titel'; did you mean 'title'? (known: title, runs, ...)
    """
    try:
        data = tomllib.loads(source)
        if "base" in data:  # the base is a file in the same folder
            base = tomllib.loads((Path(path or ".").parent / data.pop("base")).read_text(encoding="utf-8"))
            data = {**base, **data, "tuning": {**base.get("tuning", {}), **data.get("tuning", {})}}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from None
    return make_study(data, quick=quick, source=source, path=path)


def make_study(data: TomlTable, *, quick: bool = False, source: str = "", path: Path | None = None) -> Study:
    """Create a study from the tables of a TOML file."""
    study = _StudyReader(data, quick).read(source, path)
    for cell in study.cells:  # detect invalid configurations now, not after hours of running
        with _located(f"algorithms.{cell.algorithm}, in {cell.environment.label}"):
            assert cell.settings
    return study


class _StudyReader:
    """Reader of a study's tables: tuning and environments first, then the cells of each algorithm."""

    def __init__(self, data: TomlTable, quick: bool) -> None:
        _check_keys({key for key in data if not key.startswith("prior.")}, STUDY_KEYS, "key")
        self.data, self.quick = data, quick
        self.seed = _checks.integer(data.get("seed", 0), "seed", low=0)

    def read(self, source: str, path: Path | None) -> Study:
        data = self.data
        self.folder = None if path is None else path.parent
        with _located("tuning"):
            self.tuning = self.read_tuning(data.get("tuning"))
        tables = _labelled_tables(data, "environments")
        self.environments = [self.read_environment(label, table) for label, table in tables.items()]
        cells = []
        for label, table in _labelled_tables(data, "algorithms").items():
            with _located(f"algorithms.{label}"):
                cells += self.read_algorithm(label, table)
        if self.tuning is not None and self.tuning.across:
            _check_across(cells)
        return Study(
            title=str(data.get("title") or (path.stem if path else "study")),
            cells=tuple(cell for env in self.environments for cell in cells if cell.environment is env),
            tuning=self.tuning,
            seed=self.seed,
            quick=self.quick,
            notes=tuple(_text_list(data.get("notes", []), "notes")),
            source=source,
            path=path,
        )

    def read_tuning(self, table: TomlTable | None) -> Tuning | None:
        """Return the settings of the ``[tuning]`` table."""
        if table is None:
            return None
        tuning = Tuning(**table)
        if not self.quick:
            return tuning
        count = min(tuning.configurations or QUICK_CONFIGURATIONS, QUICK_CONFIGURATIONS)
        return replace(tuning, runs=min(tuning.runs, QUICK_RUNS - 1), configurations=count)

    def read_environment(self, label: str, table: TomlTable) -> StudyEnvironment:
        with _located(f"environments.{label}"):
            _check_keys(table, ENVIRONMENT_KEYS, "key")
            spec = table.get("env", label)  # text; in studies created in Python, whatever new_world accepts
            if isinstance(spec, str) and spec.startswith("file:") and self.folder is not None:
                spec = f"file:{self.folder / spec.removeprefix('file:')}"  # relative to the study file
            env = cached_world(spec)
            if env.system is not None:
                raise ValueError(
                    f"{env.name} has continuous observations, which studies do not support; compare planners with "
                    "bamdp run or bamdp.compare, or discretise: --bins 8, bamdp.gym.Discretize(env, bins=8)"
                )
            usual = {"steps": env.horizon, "limit": getattr(env, "time_limit", DEFAULT_LIMIT)}
            values = {"runs": DEFAULT_RUNS, **usual, **self.data, **table}
            known = {key: values[key] for key in ENVIRONMENT_KEYS if key in values}
            found = StudyEnvironment(**known | {"label": label, "env": spec})
            if not self.quick:
                return found
            return replace(found, steps=min(found.steps, QUICK_STEPS), runs=min(found.runs, QUICK_RUNS))

    def read_algorithm(self, label: str, table: TomlTable) -> list[StudyCell]:
        """Return an algorithm's cells, one for each of its environments."""
        planner, written = _read_planner(label, table)
        all_labels = [env.label for env in self.environments]
        labels = _text_list(table.get("environments", all_labels), "environments")
        _check_keys(set(labels), all_labels, "environment")
        local_tables = table.get("at", {})
        if not _is_table_of_tables(local_tables):
            raise ValueError("at must have a table for each environment, such as [algorithms.dss-pi.at.maze]")
        _check_keys(local_tables, labels, "environment in 'at'")
        own = {key: value for key, value in table.items() if key not in NO_PARAMETERS}
        shared = {k: v for k, v in self.data.items() if k in SHARED_KEYS or k.startswith("prior.")}
        values = merge_parameters(_planner_defaults(planner), shared, written, _flatten(own))
        cells = []
        for env in (env for env in self.environments if env.label in labels):
            local = dict(local_tables.get(env.label, {}))
            runs = min(_checks.integer(local.pop("runs", env.runs), f"at.{env.label}.runs", low=0), env.runs)
            include = local.pop("include", table.get("include", []))
            if not isinstance(include, list) or not all(isinstance(one, dict) for one in include):
                raise ValueError(
                    "include must be a list of tables, such as include = [{n_policies = 4, n_steps = 5}]"
                )
            here = merge_parameters(values, _flatten(local))
            # the planner's parameters first
            ordered = sorted(here, key=lambda key: key.partition(".")[0] in SHARED_KEYS)
            configurations = list_configurations(
                planner,
                {key: _value_list(key, here[key]) for key in ordered},
                list(map(_flatten, include)),
                None if self.tuning is None else self.tuning.configurations,
                (self.seed, *str(planner).encode()),
            )
            cells.append(StudyCell(env, label, planner, configurations, self.seed, runs, self.tuning))
        return cells


def _read_planner(label: str, table: TomlTable) -> tuple[str | Planner, dict[str, Any]]:
    """Return the planner's name and inline parameters; a planner object is returned unchanged."""
    if isinstance(table.get("planner"), Planner):
        return table["planner"], {}
    head, written = parse_spec(str(table.get("planner", label)))
    kind = "planner" if "planner" in table else "planner (a label of your own needs planner = ...)"
    planner = _checks.one_of(head.lower().replace("_", "-"), kind, names(Planner))
    twice = next((key for key in written if key in table), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice, in planner and by itself; drop one")
    return planner, written


def _planner_defaults(planner: str | Planner) -> dict[str, Any]:
    """Return the planner's default prior and discount, used if the study specifies none."""
    cls: Any = entry_of(planner).cls
    prior = parse_spec(cls.default_prior)
    parameters = {f"prior.{key}": value for key, value in prior.parameters.items()}
    return {"prior": prior.name, **parameters, "discount": cls.default_discount}


def _check_across(cells: list[StudyCell]) -> None:
    """Check that cells sharing one choice have the same candidates in every environment, and that optima are known."""
    first: dict[str, tuple[StudyCell, list[dict[str, Any]]]] = {}
    for cell in cells:
        with _located(f"environments.{cell.environment.label}"):
            positive_optimum(cell.environment.env, cell.environment.steps)
        varied = varied_keys(cell.configurations)
        listed = [{key: one.get(key) for key in varied} for one in cell.configurations]
        other, expected = first.setdefault(cell.algorithm, (cell, listed))
        if listed != expected:
            raise ValueError(
                f"{cell.algorithm}: across = true chooses once for all environments, so the values to choose from "
                f"must be the same in each; they are not in {other.environment.label} and {cell.environment.label}"
            )


# Pieces of a TOML file


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Prefix error messages with the location."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise ValueError(f"{where}: {error}") from None


def _check_keys(table: Any, known: Any, kind: str) -> None:
    """Check that a table contains only known keys."""
    if not isinstance(table, (dict, set)):
        raise ValueError(f"expected a table of values, got {table!r}")
    for key in table:
        _checks.one_of(key, kind, known)


def _text_list(value: Any, name: str) -> list[str]:
    """Return a list of strings; a single string becomes a list of one."""
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise ValueError(f"{name} must be a list of texts")
    return value


def _value_list(key: str, value: Any) -> tuple[Any, ...]:
    """Return one or more alternative values as a tuple."""
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(one, (dict, list)) for one in values):
        raise ValueError(f"{key} must be a value or a list of values to choose from, got {value!r}")
    return tuple(values)


def _labelled_tables(data: TomlTable, name: str) -> dict[str, TomlTable]:
    """Return tables by label; a plain list of labels denotes empty tables."""
    tables = data.get(name)
    if isinstance(tables, list) and all(isinstance(label, str) for label in tables):
        tables = {label: {} for label in tables}
    if not tables or not _is_table_of_tables(tables):
        raise ValueError(
            f'{name} are missing; write for instance {name} = ["..."] or a table [{name}.NAME] for each'
        )
    return tables


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())


def _flatten(table: TomlTable) -> dict[str, Any]:
    """Flatten nested tables into dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        nested = isinstance(value, dict)
        flat |= {f"{key}.{inner}": v for inner, v in _flatten(value).items()} if nested else {key: value}
    return flat
