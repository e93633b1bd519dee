"""Studies from TOML, checked: every error names the place, and a misspelt key gets the right one suggested."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp._parameters import defaults
from bamdp._specs import split_spec
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs import Environment
from bamdp.lab.identity import environment
from bamdp.lab.spaces import OUTER, Configuration, Scalar, configurations, merged
from bamdp.lab.study import Cell, Place, Study, Tuning
from bamdp.registry import DEFAULT_PRIOR, PLANNERS

TOP = ("title", "runs", "seed", "steps", "limit", "prior", "discount", "rewards", "objective", "notes",
       "environments", "algorithms", "tuning", "quick")  # fmt: skip
PLACE = ("env", "steps", "limit", "runs", "budget", "screening", "rewards", "objective")
TUNING = ("method", "runs", "configurations", "budget", "keep", "screening", "across")
QUICK = {"runs": 3, "steps": 200, "tuning_runs": 2, "configurations": 4, "budget": 20.0}  # at most
RUNS = 10
LIMIT = 1.0  # seconds a step in worlds that name none
DEFAULTS: dict[str, Any] = {"prior": DEFAULT_PRIOR, "discount": 0.95}

Table = Mapping[str, Any]


def load_study(path: str | Path, *, quick: bool = False) -> Study:
    """Read a study's file.

    With ``quick``, runs and horizons are cut down to what the file's ``[quick]`` table says, and the study is marked.
    """
    path = Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; a study is written in TOML") from None
    with _inside(str(path)):
        return parse_study(source, quick=quick, path=path)


def parse_study(source: str, *, quick: bool = False, path: Path | None = None) -> Study:
    """A study from its text.

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


def make_study(data: Table, *, quick: bool = False, source: str = "", path: Path | None = None) -> Study:
    """A study from the tables that TOML reads."""
    _keys({key for key in data if not key.startswith("prior.")}, TOP, "key")
    cut = _quick(data) if quick else {}
    seed = _number(data.get("seed", 0), "seed", low=0)
    tuning = _tuning(data, cut)
    folder = None if path is None else path.parent
    places = [_place(label, table, data, cut, folder) for label, table in _entries(data, "environments")]
    tunings = {place.label: _tuning_at(place, data, tuning, cut) for place in places}
    cells = []
    for label, table in _entries(data, "algorithms"):
        with _inside(f"algorithms.{label}"):
            planner, written = _planner(label, table)
            labels = _where(table, [place.label for place in places])
            where = _at(table, labels)
            for place in places:
                if place.label not in labels:
                    continue
                here = dict(where.get(place.label, {}))
                runs = _runs_here(here.pop("runs", place.runs), place, quick)
                found = _configurations(planner, {**written, **_own(table)}, here, data, tuning, seed)
                own = (seed, runs, tunings[place.label])
                cells.append(Cell(place, label, planner, found, *own))
    if tuning is not None and tuning.across:
        _check_across(cells)
    study = Study(
        title=str(data.get("title") or (path.stem if path else "study")),
        cells=tuple(cell for place in places for cell in cells if cell.place is place),
        runs=min(_number(data.get("runs", RUNS), "runs", low=0), cut.get("runs", 10**9)),
        tuning=tuning,
        seed=seed,
        quick=quick,
        notes=tuple(_texts(data.get("notes", []), "notes")) + _unequal(cells, tuning),
        source=source,
        path=path,
    )
    _try_all(study)
    return study


def _try_all(study: Study) -> None:
    """Whatever is wrong with a configuration is found now, not in the night."""
    for cell in study.cells:
        with _inside(f"algorithms.{cell.algorithm}, in {cell.place.label}"):
            for configuration in cell.configurations:
                cell.setting(configuration)


def _place(label: str, table: Table, data: Table, cut: Table, folder: Path | None) -> Place:
    with _inside(f"environments.{label}"):
        _keys(table, PLACE, "key")
        spec = str(table.get("env", label))
        if spec.startswith("file:") and folder is not None:  # beside the study
            spec = f"file:{folder / spec.removeprefix('file:')}"
        env = environment(spec)
        given = {**data, **table}
        steps = _number(given.get("steps", env.horizon), "steps")
        runs = _number(given.get("runs", RUNS), "runs", low=0)
        usual = env.time_limit if isinstance(env, Environment) else LIMIT
        return Place(
            label,
            spec,
            min(steps, cut.get("steps", steps)),
            _checks.real(given.get("limit", usual), "limit", low=0.0, open_low=True),
            min(runs, cut.get("runs", runs)),
            given.get("rewards"),
            _checks.one_of(given.get("objective", OBJECTIVES[0]), "objective", OBJECTIVES),
        )


def _runs_here(given: Any, place: Place, quick: bool) -> int:
    """Of an algorithm in one environment, where it is too slow for as many as the others have."""
    runs = _number(given, f"at.{place.label}.runs", low=0)
    if runs > place.runs and not quick:
        raise ValueError(
            f"at.{place.label}.runs is {runs}, more than the environment's {place.runs}; raise that for all, or drop it"
        )
    return min(runs, place.runs)


def _planner(label: str, table: Table) -> tuple[str, dict[str, str]]:
    """Its name, and the parameters that are written with it."""
    head, written = split_spec(str(table.get("planner", label)))
    known = head.lower().replace("_", "-")
    if known not in PLANNERS and "planner" not in table:
        raise ValueError(
            f"{label!r} is not a planner's name ({_nearest(known)}); say planner = ... to use a label of your own"
        )
    planner = _checks.one_of(known, "planner", PLANNERS)
    twice = [key for key in written if key in _own(table)]
    if twice:
        raise ValueError(f"{twice[0]} is given twice, in planner and by itself; drop one")
    return planner, written


def _nearest(name: str) -> str:
    try:
        _checks.one_of(name, "planner", PLANNERS)
    except ValueError as error:
        return str(error)
    return ""


def _configurations(
    planner: str, own: Table, here: Table, data: Table, tuning: Tuning | None, seed: int
) -> tuple[Configuration, ...]:
    shared = {key: value for key, value in data.items() if key in OUTER or key.startswith("prior.")}
    given = merged({**DEFAULTS, **shared}, _flat(own), _flat(_own(here)))
    include = here.get("include", own.get("include", []))
    known = [*defaults(PLANNERS[planner]), *OUTER]
    _keys({key for key in given if "." not in key} - {"include"}, known, f"parameter of {planner}")
    space = {key: _values(key, value) for key, value in given.items() if key != "include"}
    ordered = {key: space[key] for key in sorted(space, key=lambda key: key.partition(".")[0] in OUTER)}
    if not isinstance(include, list) or not all(isinstance(one, dict) for one in include):
        raise ValueError(
            "include must be a list of tables, such as include = [{n_policies = 4, n_steps = 5}]"
        )
    return configurations(
        planner,
        ordered,
        [_flat(one) for one in include],
        None if tuning is None else tuning.configurations,
        (seed, *planner.encode()),
    )


def _own(table: Table) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in ("planner", "environments", "at")}


def _where(table: Table, labels: list[str]) -> list[str]:
    """The environments that an algorithm is run in."""
    given = _texts(table.get("environments", labels), "environments")
    _keys(set(given), labels, "environment")
    return [label for label in labels if label in given]


def _at(table: Table, labels: list[str]) -> Table:
    where = table.get("at", {})
    if not isinstance(where, dict) or not all(isinstance(value, dict) for value in where.values()):
        raise ValueError("at must have a table for each environment, such as [algorithms.dss-pi.at.maze]")
    _keys(where, labels, "environment in 'at'")
    return where


def _flat(table: Table) -> dict[str, Any]:
    """Tables in tables as keys with dots."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        nested = isinstance(value, dict)
        flat |= {f"{key}.{inner}": v for inner, v in _flat(value).items()} if nested else {key: value}
    return flat


def _values(key: str, value: Any) -> tuple[Scalar, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, (str, int, float, bool)) for one in values):
        raise ValueError(f"{key} must be a value or a list of values to choose from, got {value!r}")
    return tuple(values)


def _tuning(data: Table, cut: Table) -> Tuning | None:
    table = data.get("tuning")
    if table is None:
        return None
    with _inside("tuning"):
        _keys(table, TUNING, "key")
        given = dict(table)
        for key, name in (
            ("runs", "tuning_runs"),
            ("configurations", "configurations"),
            ("budget", "budget"),
        ):
            if name in cut and (key in given or key == "configurations"):
                given[key] = min(given.get(key, cut[name]), cut[name])
        if given.get("screening") is not None and "steps" in cut:
            given["screening"] = min(given["screening"], cut["steps"])
        return Tuning(**given)


def _tuning_at(place: Place, data: Table, tuning: Tuning | None, cut: Table) -> Tuning | None:
    """The same with the budget and the screening of one environment."""
    table = dict(_entries(data, "environments"))[place.label]
    own = {key: table[key] for key in ("budget", "screening") if key in table}
    if not own:
        return tuning
    with _inside(f"environments.{place.label}"):
        if tuning is None:
            raise ValueError(f"{next(iter(own))} is about tuning; add a [tuning] table")
        replace(tuning, **own)  # checks them before they are cut
        limits = {"budget": cut.get("budget"), "screening": cut.get("steps")}
        return replace(tuning, **{k: v if limits[k] is None else min(v, limits[k]) for k, v in own.items()})


def _check_across(cells: list[Cell]) -> None:
    """One choice for all environments must be among the same values in each, judged by shares of what can be had."""
    for place in dict.fromkeys(cell.place for cell in cells):
        if not isinstance(environment(place.env), Environment):
            raise ValueError(
                f"environments.{place.label}: its best total is not known, so no share of it can be taken; choose "
                "without across = true"
            )
    for label in dict.fromkeys(cell.algorithm for cell in cells):
        own = [cell for cell in cells if cell.algorithm == label]
        keys = {key for cell in own for key in _varied(cell)}
        lists = [[{k: c.get(k) for k in keys} for c in cell.configurations] for cell in own]
        odd = next((cell for cell, listed in zip(own, lists) if listed != lists[0]), None)
        if odd is not None:
            raise ValueError(
                f"algorithms.{label}: across = true chooses once for all environments, so what is to be chosen must "
                f"be the same in each; it is not in {own[0].place.label} and {odd.place.label}"
            )


def _varied(cell: Cell) -> list[str]:
    keys = dict.fromkeys(key for one in cell.configurations for key in one)
    return [key for key in keys if len({repr(one.get(key)) for one in cell.configurations}) > 1]


def _quick(data: Table) -> dict[str, Any]:
    table = data.get("quick", {})
    _keys(table, tuple(QUICK), "key of quick")
    return QUICK | table


def _unequal(cells: list[Cell], tuning: Tuning | None) -> tuple[str, ...]:
    """Algorithms that have fewer configurations to choose from than others are named."""
    counts = {cell.algorithm: len(cell.configurations) for cell in cells}
    if tuning is None or len(set(counts.values())) < 2:
        return ()
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (f"The spaces to choose from are not of one size: {listed} configurations.",)


def _entries(data: Table, name: str) -> list[tuple[str, Table]]:
    """Tables by label, or a plain list of labels."""
    given = data.get(name)
    if isinstance(given, list) and all(isinstance(label, str) for label in given):
        given = {label: {} for label in given}
    if (
        not isinstance(given, dict)
        or not given
        or not all(isinstance(table, dict) for table in given.values())
    ):
        raise ValueError(
            f'{name} are missing; write for instance {name} = ["..."] or a table [{name}.NAME] for each'
        )
    return list(given.items())


def _keys(given: Any, known: Any, kind: str) -> None:
    if not isinstance(given, (dict, set)):
        raise ValueError(f"expected a table of values, got {given!r}")
    for key in given:
        _checks.one_of(key, kind, known)


def _number(value: Any, name: str, low: int = 1) -> int:
    return _checks.integer(value, name, low=low)


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise ValueError(f"{name} must be a list of texts")
    return value


@contextmanager
def _inside(where: str) -> Iterator[None]:
    """Say where an error is."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None
