"""Read studies from TOML and check them: every error says where it is, and a misspelt key gets a suggestion.

A study is read from its file, or it ships with the package and is known by its name (:func:`paper_study`).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp._specs import parse_spec
from bamdp.beliefs.base import RewardModel
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs.environment import Environment
from bamdp.lab.study import (
    SHARED_KEYS,
    Configuration,
    Scalar,
    Study,
    StudyCell,
    StudyEnvironment,
    Tuning,
    list_configurations,
    merge_parameters,
    positive_optimum,
)
from bamdp.planners.base import Planner
from bamdp.registry import entry_of, names
from bamdp.settings import cached_world

STUDIES = (
    "dss2020/published",
    "dss2020/fair",
    "dss2020/single",
    "dss2020/fair2",
    "dss2020/single2",
    "dss2020/stated",
    "dss2020/ablation",
    "dss2020/figure3",
    "dss2020/deep-sea",
    "bbrl2016/families",
)
STUDY_KEYS = ("title", "runs", "seed", "steps", "limit", "prior", "discount", "rewards", "objective", "notes",
              "environments", "algorithms", "tuning", "quick")  # fmt: skip
ENVIRONMENT_KEYS = ("env", "steps", "limit", "runs", "budget", "screening", "rewards", "objective")
ALGORITHM_KEYS = ("planner", "environments", "at")  # of an algorithm's table that are not parameters
TUNING_KEYS = ("method", "runs", "configurations", "budget", "keep", "screening", "across", "draws")
QUICK_CUTS = {"runs": 3, "steps": 200, "tuning_runs": 2, "configurations": 4, "budget": 20.0}  # at most
TUNING_CUTS = {"runs": "tuning_runs", "screening": "steps"}  # keys of tuning that have another name there
QUICK_DRAWS = 2
DRAW_MARK = "#"  # between an algorithm's label and the number of its draw of configurations
DEFAULT_RUNS = 10
DEFAULT_LIMIT = 1.0  # seconds per step in worlds that name none

TomlTable = Mapping[str, Any]


def load_study(path: str | Path, *, quick: bool = False) -> Study:
    """Read a study's file.

    With ``quick``, runs and horizons are cut down to what the file's ``[quick]`` table says, and the study is marked.
    """
    path = Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; a study is written in TOML") from None
    with _located(str(path)):
        return parse_study(source, quick=quick, path=path)


def parse_study(source: str, *, quick: bool = False, path: Path | None = None) -> Study:
    """Return the study that is written in a text.

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
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from None
    return make_study(data, quick=quick, source=source, path=path)


def make_study(data: TomlTable, *, quick: bool = False, source: str = "", path: Path | None = None) -> Study:
    """Return the study of the tables that a TOML file holds."""
    study = _StudyReader(data, quick, source, path).read()
    # make every setting once: errors in a configuration are found now, not after hours of running
    for cell in study.cells:
        with _located(f"algorithms.{cell.algorithm}, in {cell.environment.label}"):
            for configuration in cell.configurations:
                cell.setting(configuration)
    return study


class _StudyReader:
    """Reads the tables of a study: first tuning and environments, then the cells of each algorithm."""

    def __init__(self, data: TomlTable, quick: bool, source: str, path: Path | None) -> None:
        _check_keys({key for key in data if not key.startswith("prior.")}, STUDY_KEYS, "key")
        self.data, self.quick, self.source, self.path = data, quick, source, path
        cuts = _read_quick(data.get("quick", {}))  # is checked in any case
        self.cuts = cuts if quick else {}
        self.seed = _checks.integer(data.get("seed", 0), "seed", low=0)
        self.environment_tables = _labelled_tables(data, "environments")

    def read(self) -> Study:
        data = self.data
        self.tuning = self.read_tuning()
        self.environments = [self.read_environment(*entry) for entry in self.environment_tables.items()]
        draws = self.read_draws()
        cells = []
        for label, table in _labelled_tables(data, "algorithms").items():
            for draw in range(draws):
                name = label if draws == 1 else f"{label}{DRAW_MARK}{draw + 1}"
                cells += self.read_algorithm(label, table, draw, name)
        if self.tuning is not None and self.tuning.across:
            _check_across(cells)
        runs = _checks.integer(data.get("runs", DEFAULT_RUNS), "runs", low=0)
        notes = tuple(_text_list(data.get("notes", []), "notes"))
        return Study(
            title=str(data.get("title") or (self.path.stem if self.path else "study")),
            cells=tuple(cell for env in self.environments for cell in cells if cell.environment is env),
            runs=self.cut("runs", runs),
            tuning=self.tuning,
            seed=self.seed,
            quick=self.quick,
            notes=notes + _unequal_spaces_note(cells, self.tuning),
            source=self.source,
            path=self.path,
        )

    def cut(self, name: str, value: Any) -> Any:
        """Return a value, cut down for a quick study."""
        return min(value, self.cuts.get(name, value))

    # Tuning

    def read_tuning(self) -> Tuning | None:
        """Return the ``[tuning]`` table."""
        table = self.data.get("tuning")
        if table is None:
            return None
        with _located("tuning"):
            _check_keys(table, TUNING_KEYS, "key")
            table = {key: value for key, value in table.items() if key != "draws"}
            Tuning(**table)  # checks the values before they are cut
            values = self.cut_tuning(table)
            if self.quick:
                values.setdefault("configurations", self.cuts["configurations"])
            return Tuning(**values)

    def cut_tuning(self, table: TomlTable) -> dict[str, Any]:
        """Return values of tuning, cut down for a quick study."""
        return {key: self.cut(TUNING_CUTS.get(key, key), value) for key, value in table.items()}

    def read_draws(self) -> int:
        """Return how many searches each algorithm has, every one among configurations that it draws by itself."""
        with _located("tuning"):
            table = self.data.get("tuning", {})
            draws = _checks.integer(table.get("draws", 1), "tuning.draws")
            if draws > 1 and "configurations" not in table:
                raise ValueError("draws are of so many configurations of a space; say configurations = N")
            return min(draws, QUICK_DRAWS) if self.quick else draws

    def local_tuning(self, env: StudyEnvironment) -> Tuning | None:
        """Return the tuning with the budget and the screening of one environment."""
        table = self.environment_tables[env.label]
        values = {key: table[key] for key in ("budget", "screening") if key in table}
        if not values:
            return self.tuning
        with _located(f"environments.{env.label}"):
            if self.tuning is None:
                raise ValueError(f"{next(iter(values))} is about tuning; add a [tuning] table")
            replace(self.tuning, **values)  # checks the values before they are cut
            return replace(self.tuning, **self.cut_tuning(values))

    # Environments

    def read_environment(self, label: str, table: TomlTable) -> StudyEnvironment:
        with _located(f"environments.{label}"):
            _check_keys(table, ENVIRONMENT_KEYS, "key")
            spec = table.get("env", label)  # text; in a study made in Python whatever new_world takes
            if isinstance(spec, str) and spec.startswith("file:") and self.path is not None:
                spec = f"file:{self.path.parent / spec.removeprefix('file:')}"  # relative to the study's file
            env = cached_world(spec)
            values = {**self.data, **table}
            usual = env.time_limit if isinstance(env, Environment) else DEFAULT_LIMIT
            rewards = values.get("rewards")
            named = isinstance(rewards, str) and rewards.strip()
            if rewards is not None and not isinstance(rewards, RewardModel) and not named:
                what = 'the name of a reward model, such as "normal"'
                raise ValueError(f"rewards must be {what}, got {rewards!r}")
            return StudyEnvironment(
                label,
                spec,
                self.cut("steps", _checks.integer(values.get("steps", env.horizon), "steps")),
                _checks.real(values.get("limit", usual), "limit", low=0.0, open_low=True),
                self.cut("runs", _checks.integer(values.get("runs", DEFAULT_RUNS), "runs", low=0)),
                rewards,
                _checks.one_of(values.get("objective", OBJECTIVES[0]), "objective", OBJECTIVES),
            )

    # Algorithms

    def read_algorithm(self, label: str, table: TomlTable, draw: int, name: str) -> list[StudyCell]:
        """Return the cells of one algorithm, in the environments that it is run in, under a name of its draw."""
        cells = []
        with _located(f"algorithms.{label}"):
            planner, written = _read_planner(label, table)
            all_labels = [env.label for env in self.environments]
            labels = _text_list(table.get("environments", all_labels), "environments")
            _check_keys(set(labels), all_labels, "environment")
            local_tables = _read_local_tables(table, [one for one in all_labels if one in labels])
        for env in (env for env in self.environments if env.label in labels):
            tuning = self.local_tuning(env)
            with _located(f"algorithms.{label}"):
                local = dict(local_tables.get(env.label, {}))
                runs = self.local_runs(local.pop("runs", env.runs), env)
                parameters = {**written, **_parameters_of(table)}
                configurations, size = self.read_configurations(planner, parameters, local, draw)
                cells.append(
                    StudyCell(env, name, planner, configurations, self.seed, runs, tuning, draw, size)
                )
        return cells

    def local_runs(self, value: Any, env: StudyEnvironment) -> int:
        """Return the runs of an algorithm in one environment, where it is too slow for as many as the others have."""
        runs = _checks.integer(value, f"at.{env.label}.runs", low=0)
        if runs > env.runs and not self.quick:
            raise ValueError(
                f"at.{env.label}.runs is {runs}, more than the environment's {env.runs}; raise that for all, or drop it"
            )
        return min(runs, env.runs)

    def read_configurations(
        self, planner: str | Planner, parameters: TomlTable, local: TomlTable, draw: int
    ) -> tuple[tuple[Configuration, ...], int]:
        """Return an algorithm's configurations and the size of their space; ``local`` are one environment's values."""
        shared = {k: value for k, value in self.data.items() if k in SHARED_KEYS or k.startswith("prior.")}
        named = shared, _flatten(parameters), _flatten(local)
        values = merge_parameters(_planner_defaults(planner), *named)
        include = local.get("include", parameters.get("include", []))
        if not isinstance(include, list) or not all(isinstance(one, dict) for one in include):
            raise ValueError(
                "include must be a list of tables, such as include = [{n_policies = 4, n_steps = 5}]"
            )
        values.pop("include", None)
        known, name = [*entry_of(planner).defaults(), *SHARED_KEYS], str(planner)
        _check_keys({key for key in values if "." not in key}, known, f"parameter of {name}")
        ordered = sorted(values, key=lambda key: key.partition(".")[0] in SHARED_KEYS)  # the planner's first
        space = {key: _value_list(key, values[key]) for key in ordered}
        listed = list_configurations(
            planner,
            space,
            [_flatten(one) for one in include],
            None if self.tuning is None else self.tuning.configurations,
            (self.seed, *name.encode(), *([draw] if draw else [])),
        )
        return listed, math.prod(map(len, space.values()))


def _read_planner(label: str, table: TomlTable) -> tuple[str | Planner, dict[str, str]]:
    """Return the planner's name and the parameters that are written with it; one that is an object as it is."""
    if isinstance(table.get("planner"), Planner):
        return table["planner"], {}
    head, written = parse_spec(str(table.get("planner", label)))
    name = head.lower().replace("_", "-")
    try:
        planner = _checks.one_of(name, "planner", names(Planner))
    except ValueError as error:
        if "planner" in table:
            raise
        raise ValueError(
            f"{label!r} is not a planner's name ({error}); say planner = ... to use a label of your own"
        ) from None
    twice = [key for key in written if key in _parameters_of(table)]
    if twice:
        raise ValueError(f"{twice[0]} is given twice, in planner and by itself; drop one")
    return planner, written


def _planner_defaults(planner: str | Planner) -> dict[str, Any]:
    """Return the prior and the discount of a planner for which the study names no others."""
    cls: Any = entry_of(planner).cls
    prior = parse_spec(cls.default_prior)
    parameters = {f"prior.{key}": value for key, value in prior.parameters.items()}
    return {"prior": prior.name, **parameters, "discount": cls.default_discount}


def _read_local_tables(table: TomlTable, labels: list[str]) -> TomlTable:
    """Return the tables ``[algorithms.LABEL.at.ENVIRONMENT]``, by environment."""
    tables = table.get("at", {})
    if not _is_table_of_tables(tables):
        raise ValueError("at must have a table for each environment, such as [algorithms.dss-pi.at.maze]")
    _check_keys(tables, labels, "environment in 'at'")
    for label, local in tables.items():
        for key in ALGORITHM_KEYS:
            if key in local:
                raise ValueError(
                    f"at.{label}: {key} is the algorithm's, and the same everywhere; give another one a name of its own"
                )
    return tables


def _parameters_of(table: TomlTable) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in ALGORITHM_KEYS}


def _read_quick(table: TomlTable) -> dict[str, Any]:
    """Return what ``--quick`` cuts down to."""
    _check_keys(table, tuple(QUICK_CUTS), "key of quick")
    with _located("quick"):
        for key, value in table.items():
            if key == "budget":
                _checks.real(value, key, low=0.0, open_low=True)
            else:
                _checks.integer(value, key)
    return {**QUICK_CUTS, **table}


def _check_across(cells: list[StudyCell]) -> None:
    """Check that one choice for all environments is among the same values in each, and that optima are known."""
    for env in dict.fromkeys(cell.environment for cell in cells):
        if not isinstance(cached_world(env.env), Environment):
            raise ValueError(
                f"environments.{env.label}: its best total is not known, so no share of it can be taken; choose "
                "without across = true"
            )
        with _located(f"environments.{env.label}"):
            local_cells = [cell for cell in cells if cell.environment == env]
            for steps in {cell.horizon(short) for cell in local_cells for short in (True, False)}:
                positive_optimum(env.env, steps)
    for label in dict.fromkeys(cell.algorithm for cell in cells):
        siblings = [cell for cell in cells if cell.algorithm == label]
        varied = {key for cell in siblings for key in _varied_keys(cell)}
        lists = [[{k: c.get(k) for k in varied} for c in cell.configurations] for cell in siblings]
        odd = next((cell for cell, listed in zip(siblings, lists) if listed != lists[0]), None)
        if odd is not None:
            raise ValueError(
                f"algorithms.{label}: across = true chooses once for all environments, so what is to be chosen must "
                f"be the same in each; it is not in {siblings[0].environment.label} and {odd.environment.label}"
            )


def _varied_keys(cell: StudyCell) -> list[str]:
    keys = dict.fromkeys(key for one in cell.configurations for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in cell.configurations}) > 1]


def _unequal_spaces_note(cells: list[StudyCell], tuning: Tuning | None) -> tuple[str, ...]:
    """Return a note if some algorithms have fewer configurations to choose from than others."""
    counts = {cell.algorithm: len(cell.configurations) for cell in cells}
    if tuning is None or len(set(counts.values())) < 2:
        return ()
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (f"Not all have as many configurations to choose from: {listed}.",)


# Pieces of a TOML file


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Put the place in front of the message of an error."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise ValueError(f"{where}: {error}") from None


def _check_keys(table: Any, known: Any, kind: str) -> None:
    """Check that a table has known keys only."""
    if not isinstance(table, (dict, set)):
        raise ValueError(f"expected a table of values, got {table!r}")
    for key in table:
        _checks.one_of(key, kind, known)


def _text_list(value: Any, name: str) -> list[str]:
    """Return a list of texts; one by itself is a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise ValueError(f"{name} must be a list of texts")
    return value


def _value_list(key: str, value: Any) -> tuple[Scalar, ...]:
    """Return a value, or several to choose from, as a tuple."""
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(one, (dict, list)) for one in values):
        raise ValueError(f"{key} must be a value or a list of values to choose from, got {value!r}")
    return tuple(values)


def _labelled_tables(data: TomlTable, name: str) -> dict[str, TomlTable]:
    """Return tables by label; a plain list of labels stands for empty tables."""
    tables = data.get(name)
    if isinstance(tables, list) and all(isinstance(label, str) for label in tables):
        twice = next((label for label in tables if tables.count(label) > 1), None)
        if twice is not None:
            raise ValueError(f"{name}: {twice!r} is given twice; drop one")
        tables = {label: {} for label in tables}
    if not tables or not _is_table_of_tables(tables):
        raise ValueError(
            f'{name} are missing; write for instance {name} = ["..."] or a table [{name}.NAME] for each'
        )
    return tables


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())


def _flatten(table: TomlTable) -> dict[str, Any]:
    """Return tables in tables as keys with dots."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        nested = isinstance(value, dict)
        flat |= {f"{key}.{inner}": v for inner, v in _flatten(value).items()} if nested else {key: value}
    return flat


def paper_study(name: str, *, quick: bool = False) -> Study:
    """Return the study with this name that ships with the package, shortened if ``quick``.

    One that says ``base = "other"`` is that study of the same folder with its own keys in place of the other's, and its
    own keys of tuning.
    """
    _checks.one_of(name, "study of a paper", STUDIES)
    source = _source(name)
    keys = tomllib.loads(source)
    if "base" not in keys:
        return parse_study(source, quick=quick, path=Path(name))
    folder = name.rpartition("/")[0]
    base = tomllib.loads(_source(f"{folder}/{keys.pop('base')}"))
    tuning = {**base.get("tuning", {}), **keys.pop("tuning", {})}
    return make_study({**base, **keys, "tuning": tuning}, quick=quick, source=source, path=Path(name))


@cache
def paper_cells(name: str) -> Mapping[tuple[str, str], StudyCell]:
    """Return the cells of a study that ships with the package, by the labels of environment and algorithm."""
    return {(cell.environment.label, cell.algorithm): cell for cell in paper_study(name).cells}


def _source(name: str) -> str:
    return files("bamdp.lab").joinpath(f"papers/{name}.toml").read_text(encoding="utf-8")
