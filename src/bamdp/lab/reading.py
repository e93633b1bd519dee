"""Studies from TOML, checked: every error names the place, and a misspelt key gets the right one suggested."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from bamdp import _checks
from bamdp._specs import parse_spec
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs import Environment
from bamdp.lab.identity import environment
from bamdp.lab.reading_tuning import check_across, quick_cut, read_tuning, tuning_at, unequal
from bamdp.lab.spaces import OUTER, Configuration, configurations, merged
from bamdp.lab.study import Cell, Place, Study, Tuning
from bamdp.lab.toml_tables import Table, entries, flat, inside, keys, number, texts, values
from bamdp.registry import DEFAULT_PRIOR, PLANNERS, default_parameters

TOP = ("title", "runs", "seed", "steps", "limit", "prior", "discount", "rewards", "objective", "notes",
       "environments", "algorithms", "tuning", "quick")  # fmt: skip
PLACE = ("env", "steps", "limit", "runs", "budget", "screening", "rewards", "objective")
RUNS = 10
LIMIT = 1.0  # seconds a step in worlds that name none
DEFAULTS: dict[str, Any] = {"prior": DEFAULT_PRIOR, "discount": 0.95}


def load_study(path: str | Path, *, quick: bool = False) -> Study:
    """Read a study's file.

    With ``quick``, runs and horizons are cut down to what the file's ``[quick]`` table says, and the study is marked.
    """
    path = Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; a study is written in TOML") from None
    with inside(str(path)):
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
    keys({key for key in data if not key.startswith("prior.")}, TOP, "key")
    cut = quick_cut(data)  # is checked in any case
    cut = cut if quick else {}
    seed = number(data.get("seed", 0), "seed", low=0)
    tuning = read_tuning(data, cut)
    folder = None if path is None else path.parent
    places = [_place(label, table, data, cut, folder) for label, table in entries(data, "environments")]
    cells = [
        cell
        for label, table in entries(data, "algorithms")
        for cell in _cells(label, table, places, data, tuning, cut, seed)
    ]
    if tuning is not None and tuning.across:
        check_across(cells)
    study = Study(
        title=str(data.get("title") or (path.stem if path else "study")),
        cells=tuple(cell for place in places for cell in cells if cell.place is place),
        runs=min(number(data.get("runs", RUNS), "runs", low=0), cut.get("runs", 10**9)),
        tuning=tuning,
        seed=seed,
        quick=quick,
        notes=tuple(texts(data.get("notes", []), "notes")) + unequal(cells, tuning),
        source=source,
        path=path,
    )
    _try_all(study)
    return study


def _cells(
    label: str, table: Table, places: list[Place], data: Table, tuning: Tuning | None, cut: Table, seed: int
) -> list[Cell]:
    """Of one algorithm, in the environments that it is run in."""
    cells = []
    with inside(f"algorithms.{label}"):
        planner, written = _planner(label, table)
        labels = _where(table, [place.label for place in places])
        where = _at(table, labels)
    for place in (place for place in places if place.label in labels):
        at_place = tuning_at(place, data, tuning, cut)
        with inside(f"algorithms.{label}"):
            here = dict(where.get(place.label, {}))
            runs = _runs_here(here.pop("runs", place.runs), place, bool(cut))
            found = _configurations(planner, {**written, **_own(table)}, here, data, tuning, seed)
            cells.append(Cell(place, label, planner, found, seed, runs, at_place))
    return cells


def _try_all(study: Study) -> None:
    """Whatever is wrong with a configuration is found now, not in the night."""
    for cell in study.cells:
        with inside(f"algorithms.{cell.algorithm}, in {cell.place.label}"):
            for configuration in cell.configurations:
                cell.setting(configuration)


def _place(label: str, table: Table, data: Table, cut: Table, folder: Path | None) -> Place:
    with inside(f"environments.{label}"):
        keys(table, PLACE, "key")
        spec = str(table.get("env", label))
        if spec.startswith("file:") and folder is not None:  # beside the study
            spec = f"file:{folder / spec.removeprefix('file:')}"
        env = environment(spec)
        given = {**data, **table}
        steps = number(given.get("steps", env.horizon), "steps")
        runs = number(given.get("runs", RUNS), "runs", low=0)
        usual = env.time_limit if isinstance(env, Environment) else LIMIT
        return Place(
            label,
            spec,
            min(steps, cut.get("steps", steps)),
            _checks.real(given.get("limit", usual), "limit", low=0.0, open_low=True),
            min(runs, cut.get("runs", runs)),
            _rewards(given.get("rewards")),
            _checks.one_of(given.get("objective", OBJECTIVES[0]), "objective", OBJECTIVES),
        )


def _rewards(given: Any) -> str | None:
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    raise ValueError(f'rewards must be the name of a reward model, such as "normal", got {given!r}')


def _runs_here(given: Any, place: Place, quick: bool) -> int:
    """Of an algorithm in one environment, where it is too slow for as many as the others have."""
    runs = number(given, f"at.{place.label}.runs", low=0)
    if runs > place.runs and not quick:
        raise ValueError(
            f"at.{place.label}.runs is {runs}, more than the environment's {place.runs}; raise that for all, or drop it"
        )
    return min(runs, place.runs)


def _planner(label: str, table: Table) -> tuple[str, dict[str, str]]:
    """Its name, and the parameters that are written with it."""
    head, written = parse_spec(str(table.get("planner", label)))
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
    given = merged({**DEFAULTS, **shared}, flat(own), flat(_own(here)))
    include = here.get("include", own.get("include", []))
    known = [*default_parameters(planner), *OUTER]
    keys({key for key in given if "." not in key} - {"include"}, known, f"parameter of {planner}")
    space = {key: values(key, value) for key, value in given.items() if key != "include"}
    ordered = {key: space[key] for key in sorted(space, key=lambda key: key.partition(".")[0] in OUTER)}
    if not isinstance(include, list) or not all(isinstance(one, dict) for one in include):
        raise ValueError(
            "include must be a list of tables, such as include = [{n_policies = 4, n_steps = 5}]"
        )
    return configurations(
        planner,
        ordered,
        [flat(one) for one in include],
        None if tuning is None else tuning.configurations,
        (seed, *planner.encode()),
    )


def _own(table: Table) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in ("planner", "environments", "at")}


def _where(table: Table, labels: list[str]) -> list[str]:
    """The environments that an algorithm is run in."""
    given = texts(table.get("environments", labels), "environments")
    keys(set(given), labels, "environment")
    return [label for label in labels if label in given]


def _at(table: Table, labels: list[str]) -> Table:
    where = table.get("at", {})
    if not isinstance(where, dict) or not all(isinstance(value, dict) for value in where.values()):
        raise ValueError("at must have a table for each environment, such as [algorithms.dss-pi.at.maze]")
    keys(where, labels, "environment in 'at'")
    for label, own in where.items():
        for key in ("planner", "environments", "at"):
            if key in own:
                raise ValueError(
                    f"at.{label}: {key} is the algorithm's, and the same everywhere; give another one a name of its own"
                )
    return where
