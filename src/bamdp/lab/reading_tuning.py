"""How a study tunes, from TOML: for all environments, in one of them, across them, and cut down for a first look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bamdp import _checks
from bamdp.envs import Environment
from bamdp.lab.identity import environment
from bamdp.lab.protocol import optimum
from bamdp.lab.study import Cell, Place, Tuning
from bamdp.lab.toml_tables import Table, entries, inside, keys

TUNING = ("method", "runs", "configurations", "budget", "keep", "screening", "across")
QUICK = {"runs": 3, "steps": 200, "tuning_runs": 2, "configurations": 4, "budget": 20.0}  # at most


def read_tuning(data: Table, cut: Table) -> Tuning | None:
    """The ``[tuning]`` table."""
    table = data.get("tuning")
    if table is None:
        return None
    with inside("tuning"):
        keys(table, TUNING, "key")
        given = dict(table)
        Tuning(**given)  # checks them before they are cut
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


def tuning_at(place: Place, data: Table, tuning: Tuning | None, cut: Table) -> Tuning | None:
    """The same with the budget and the screening of one environment."""
    table = dict(entries(data, "environments"))[place.label]
    own = {key: table[key] for key in ("budget", "screening") if key in table}
    if not own:
        return tuning
    with inside(f"environments.{place.label}"):
        if tuning is None:
            raise ValueError(f"{next(iter(own))} is about tuning; add a [tuning] table")
        replace(tuning, **own)  # checks them before they are cut
        limits = {"budget": cut.get("budget"), "screening": cut.get("steps")}
        return replace(tuning, **{k: v if limits[k] is None else min(v, limits[k]) for k, v in own.items()})


def check_across(cells: list[Cell]) -> None:
    """One choice for all environments must be among the same values in each, judged by shares of what can be had."""
    for place in dict.fromkeys(cell.place for cell in cells):
        if not isinstance(environment(place.env), Environment):
            raise ValueError(
                f"environments.{place.label}: its best total is not known, so no share of it can be taken; choose "
                "without across = true"
            )
        with inside(f"environments.{place.label}"):
            for steps in {
                cell.horizon(short) for cell in cells if cell.place == place for short in (True, False)
            }:
                optimum(place.env, steps)
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


def quick_cut(data: Table) -> dict[str, Any]:
    """What ``--quick`` cuts down to."""
    table = data.get("quick", {})
    keys(table, tuple(QUICK), "key of quick")
    with inside("quick"):
        for key, value in table.items():
            if key == "budget":
                _checks.real(value, key, low=0.0, open_low=True)
            else:
                _checks.integer(value, key)
    return QUICK | table


def unequal(cells: list[Cell], tuning: Tuning | None) -> tuple[str, ...]:
    """Algorithms that have fewer configurations to choose from than others are named."""
    counts = {cell.algorithm: len(cell.configurations) for cell in cells}
    if tuning is None or len(set(counts.values())) < 2:
        return ()
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (f"Not all have as many configurations to choose from: {listed}.",)
