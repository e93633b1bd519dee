"""Read and validate studies in TOML, reporting the location of every error and suggesting corrections for typos.

A study is read from a file or, if it is included in the package, found by name (:data:`STUDIES`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp._parameters import parse_spec
from bamdp.lab.study import (
    SHARED_KEYS,
    Study,
    StudyCell,
    StudyEnvironment,
    Tuning,
    list_configurations,
    merge_parameters,
    positive_optimum,
    varied_keys,
)
from bamdp.planners.base import Planner
from bamdp.registry import entry_of, names
from bamdp.runs import cached_world

STUDIES = ("dss2020/published", "dss2020/fair", "dss2020/figure3", "dss2020/ablation")
STUDY_KEYS = ("title", "runs", "seed", "steps", "limit", "prior", "discount", "rewards", "objective", "notes",
              "environments", "algorithms", "tuning")  # fmt: skip
ENVIRONMENT_KEYS = ("env", "steps", "limit", "runs", "rewards", "objective")
NO_PARAMETERS = ("planner", "environments", "at", "include")  # keys that are not parameters
QUICK_RUNS, QUICK_STEPS, QUICK_CONFIGURATIONS = 3, 200, 6  # upper limits
DEFAULT_RUNS = 10
DEFAULT_LIMIT = 1.0  # seconds per step, if the environment specifies none

TomlTable = Mapping[str, Any]


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
            ordered = sorted(
                here, key=lambda key: key.partition(".")[0] in SHARED_KEYS
            )  # the planner's parameters first
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
    try:
        planner = _checks.one_of(head.lower().replace("_", "-"), "planner", names(Planner))
    except ValueError as error:
        if "planner" in table:
            raise
        raise ValueError(
            f"{label!r} is not a planner's name ({error}); say planner = ... to use a label of your own"
        ) from None
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
    """Flatten nested tables into dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        nested = isinstance(value, dict)
        flat |= {f"{key}.{inner}": v for inner, v in _flatten(value).items()} if nested else {key: value}
    return flat
