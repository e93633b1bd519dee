"""``bamdp tune``: the parameters of a planner in one environment, by grid or by successive halving."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import bamdp
from bamdp._specs import split_pair, split_values
from bamdp.cli import console, studies
from bamdp.registry import DEFAULT_PRIOR

if TYPE_CHECKING:
    from bamdp.lab.results import Results

SHOWN = 20  # configurations in the table


def do(given: argparse.Namespace) -> int:
    """The command."""
    from bamdp.lab import tables
    from bamdp.lab.collect import collect_results
    from bamdp.lab.reading import make_study
    from bamdp.lab.store import Store

    study = make_study(as_study(given))
    if len(study.cells[0].configurations) < 2:
        raise ValueError("there is nothing to choose; give several values, such as --grid n_steps=25,50,100")
    with Store(studies.store_path(study, given.store)) as store:
        studies.run(study, store, given)
        with console.compiling():
            found = collect_results(study, store)
        if given.json:
            console.print_json({**studies.results_json(found), "chosen": _chosen(found)})
            return 0
        label, algorithm = study.environments[0].label, study.cells[0].algorithm
        tried = tables.tried_configurations(found, label, algorithm)
        if len(tried.rows) > SHOWN:
            more = f"{len(tried.rows) - SHOWN} more are not shown; --json has all."
            tried = dataclasses.replace(tried, rows=tried.rows[:SHOWN], notes=(*tried.notes, more))
        studies.show([tried, *(tables.summaries(found, label) if study.runs else ())])
        studies.tell_notes(found)
        command = _command(given, found)
        if command:
            console.note(f"chosen: {command}")
    return 0


def as_study(given: argparse.Namespace) -> dict[str, Any]:
    """The arguments as the tables of a study."""
    place = {} if given.steps is None else {"steps": given.steps}
    space = _space(given.grid)
    open_prior = any(key.startswith("prior.") for key in space)
    study: dict[str, Any] = {
        "title": f"{bamdp.make_world(given.env).name}: {given.planner}",
        "runs": given.evaluate,
        "seed": given.seed,
        "prior": given.prior or ("sparse" if open_prior else DEFAULT_PRIOR),
        "discount": given.discount,
        "objective": given.objective,
        "environments": {given.env: place},
        "algorithms": {given.planner: {"planner": given.planner, **space}},
        "tuning": _tuning(given),
    }
    return study | ({} if given.rewards is None else {"rewards": given.rewards})


def _tuning(given: argparse.Namespace) -> dict[str, Any]:
    options = {
        "method": given.method,
        "runs": given.runs,
        "configurations": given.configurations,
        "budget": given.budget,
        "screening": given.screening,
    }
    return {key: value for key, value in options.items() if value is not None}


def _space(written: Sequence[str]) -> dict[str, list[str]]:
    space: dict[str, list[str]] = {}
    for part in written:
        try:
            key, values = split_pair(part, part)
        except ValueError:
            raise ValueError(
                f"--grid {part!r} is not key=value,value; write for instance n_steps=25,50"
            ) from None
        if key in space:
            raise ValueError(f"--grid gives {key} twice; drop one")
        space[key] = split_values(values)
    return space


def _chosen(results: Results) -> dict[str, Any] | None:
    return next((dict(sample.configuration) for sample in results.samples if sample.chosen), None)


def _command(given: argparse.Namespace, results: Results) -> str:
    """What to type to run the chosen configuration."""
    from bamdp.lab.search_space import planner_parameters, prior_text

    chosen = _chosen(results)
    if chosen is None:
        return ""
    own = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words = ["bamdp", "run", given.env, given.planner.partition(":")[0], *(["--set", *own] if own else [])]
    words += ["--prior", prior_text(chosen), "--discount", repr(chosen["discount"])]
    words += [] if given.steps is None else ["--steps", str(given.steps)]
    words += [] if given.rewards is None else ["--rewards", given.rewards]
    words += [] if given.objective == "episode" else ["--objective", given.objective]
    return shlex.join(words)
