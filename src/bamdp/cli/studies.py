"""Commands for whole studies: ``bamdp lab`` and ``bamdp reproduce``."""

from __future__ import annotations

import argparse
import dataclasses
import math
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp import _checks
from bamdp.cli import console
from bamdp.cli.arguments import TARGETS
from bamdp.envs.registry import make_world

if TYPE_CHECKING:
    from bamdp.lab.results import Results
    from bamdp.lab.store import Store
    from bamdp.lab.study import Study
    from bamdp.lab.tables import Table


def run_and_collect(study: Study, arguments: argparse.Namespace) -> Results:
    """Execute the missing runs of a study and return its results."""
    from bamdp.lab.results import collect_results
    from bamdp.lab.store import Store

    for cell in study.cells:
        setting, world = cell.settings[-1], make_world(cell.environment.env)
        console.announce(setting, world, cell.algorithm, max(1, cell.runs) * setting.steps)
    path = _store_path(study, arguments)
    if not path.exists():
        console.note(f"runs are stored in {path}")
    with Store(path) as store:
        _run(study, store, arguments)
        with console.working("", argparse.Namespace(progress=False)):
            return collect_results(study, store)


def _store_path(study: Study, arguments: argparse.Namespace) -> Path:
    """Return the path of a study's store: --store, a file next to the study, or one in a local folder."""
    if arguments.store is not None:
        return Path(arguments.store)
    if study.path is not None and study.path.suffix == ".toml":
        return study.path.with_suffix(".sqlite")
    return Path(".bamdp/runs.sqlite")


def _run(study: Study, store: Store, arguments: argparse.Namespace) -> None:
    """Execute the missing runs with a progress bar; completed runs survive Ctrl-C."""
    from bamdp.lab.runner import run_study

    if arguments.cluster and arguments.jobs is not None:
        raise ValueError("--jobs and --cluster exclude each other: a cluster has its own number of processes")
    jobs = 1 if arguments.jobs is None else _checks.integer(arguments.jobs, "jobs")
    run_all = partial(run_study, study, store, retry_failed=arguments.retry_failed)
    try:
        with console.working(study.title, arguments) as (steps, more):
            if not arguments.cluster:
                run_all(jobs=jobs, steps=steps, more=more)
                return
            from bamdp.lab.cluster import Cluster

            with Cluster(arguments.cluster, steps) as pool:
                run_all(pool=pool, steps=steps, more=more)
    except KeyboardInterrupt:
        message = f"stopped; completed runs are in {store.path}: resume with the same command"
        raise KeyboardInterrupt(message) from None


# bamdp lab


def write_template(arguments: argparse.Namespace) -> int:
    """Write a study template without overwriting an existing file."""
    target = Path(arguments.file)
    if target.suffix != ".toml":
        raise ValueError(f"the name of a study file must end in .toml, got {arguments.file!r}")
    text = files("bamdp.lab").joinpath("templates/study.toml").read_text(encoding="utf-8")
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text.replace("STUDY.toml", shlex.quote(str(target))))
    except FileExistsError:
        raise ValueError(f"{target} exists already; choose another name") from None
    console.note(f"wrote {target}; try it with: bamdp lab run {shlex.quote(str(target))} --quick")
    return 0


@contextmanager
def _open_study(arguments: argparse.Namespace, create: bool = False) -> Iterator[tuple[Study, Store]]:
    """Load the study and open its store, creating the store if necessary."""
    from bamdp.lab.store import Store
    from bamdp.lab.study import load_study

    study = load_study(arguments.study, quick=arguments.quick)
    with Store(_store_path(study, arguments), create=create) as store:
        yield study, store


def run_missing(arguments: argparse.Namespace) -> int:
    """Execute the runs missing from the store; return 1 if any run failed."""
    from bamdp.lab.results import study_status

    with _open_study(arguments, create=True) as (study, store):
        _run(study, store, arguments)
        cells = study_status(study, store)
    done, failed = (sum(cell[name] for cell in cells) for name in ("done", "failed"))
    console.note(f"{done} runs completed, {failed} failed or were stopped: {store.path}")
    broken = [cell for cell in cells if cell["error"]]
    for cell in broken:
        console.note(f"note: {cell['algorithm']} in {cell['environment']}: {cell['error']}")
    if broken:
        console.note("repeat the command with --retry-failed to run them again")
    return 1 if broken else 0


def print_status(arguments: argparse.Namespace) -> int:
    """Print the number of completed, missing and failed runs."""
    from pandas import DataFrame

    from bamdp.lab.results import study_status
    from bamdp.lab.tables import Table

    with _open_study(arguments) as (study, store):
        cells = study_status(study, store)
    if arguments.json:
        console.print_json({"title": study.title, "cells": cells})
        return 0
    names = ("environment", "algorithm", "done", "missing", "failed", "left", "chosen")
    for cell in cells:
        seconds = cell["cpu_seconds_left"]
        cell["left"] = "?" if seconds is None else console.duration(seconds) if seconds else ""
    console.show([Table("status", study.title, DataFrame(cells)[[*names]])])
    return 0


def report_study(arguments: argparse.Namespace) -> int:
    """Print the main table and write the report."""
    from bamdp.lab.comparisons import groups
    from bamdp.lab.results import collect_results
    from bamdp.lab.tables import matrix

    with _open_study(arguments) as (study, store):
        results = collect_results(study, store)
        if results.runs.empty:
            quick = len(store) > 0 and not study.quick
            hint = "for a quick run, add --quick" if quick else f"run `bamdp lab run {arguments.study}`"
            raise ValueError(f"{store.path} has no run of this study; {hint}")
    console.show([matrix(results)] if groups(results) else [], results)
    _write_report(study, results, arguments.output)
    return 0


def export_study(arguments: argparse.Namespace) -> int:
    """Write a table with one row per run."""
    from bamdp.lab.results import collect_results, export_runs

    with _open_study(arguments) as (study, store):
        results = collect_results(study, store)
    path = _path_for(study, arguments.output, ".csv")
    export_runs(results, path)
    console.note(f"{len(results.runs)} runs: {path}")
    return 0


def _write_report(study: Study, results: Results, folder: str | None = None) -> None:
    from bamdp.lab.report import write_report

    page = write_report(results, _path_for(study, folder, "-report"), study.source)
    console.note(f"report: {page}")


def _path_for(study: Study, path: str | None, ending: str) -> Path:
    """Return the given path, or by default one derived from the study's name and marked if the study is quick."""
    if path is not None:
        return Path(path)
    assert study.path is not None
    ending = f"-quick{ending}" if study.quick else ending
    stem = study.path.with_suffix("") if study.path.suffix == ".toml" else Path("-".join(study.path.parts))
    return stem.with_name(stem.name + ending)


# bamdp reproduce


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the studies required by the targets, each once, print their tables, and write their reports."""
    from bamdp.lab.comparisons import groups
    from bamdp.lab.tables import comparison, matrix

    names = {target: TARGETS[target] for target in arguments.target}
    if arguments.way == "fair":
        names = {target: name.replace("published", "fair") for target, name in names.items()}
    found = {}
    for name in dict.fromkeys(names.values()):
        study = _restricted(name, arguments)
        found[name] = run_and_collect(study, arguments)
        _write_report(study, found[name])
    for target, name in names.items():
        tables = [*map(comparison, groups(found[name]))] if target == "table2" else [matrix(found[name])]
        if target in ("table1", "table2") and not arguments.quick:
            tables += [table for table in [beside_the_paper(found[name])] if len(table.frame)]
        console.show(tables, found[name])
    return 0


def _restricted(name: str, arguments: argparse.Namespace) -> Study:
    """Return a study restricted to the selected environments and algorithms."""
    from bamdp.lab.study import load_study

    study = load_study(name, quick=arguments.quick)
    cells = study.cells
    for kind, label, chosen in (
        ("environment", lambda cell: cell.environment.label, arguments.environments),
        ("algorithm", lambda cell: cell.algorithm, arguments.algorithms),
    ):
        known = dict.fromkeys(map(label, cells))
        wanted = [_checks.one_of(one, f"{kind} of the study", known) for one in chosen or known]
        cells = tuple(cell for cell in cells if label(cell) in wanted)
    return dataclasses.replace(study, cells=cells)


def paper_numbers() -> dict[str, Any]:
    """Return the numbers printed in the paper."""
    return tomllib.loads(files("bamdp.lab").joinpath("dss2020/paper.toml").read_text(encoding="utf-8"))


def beside_the_paper(results: Results) -> Table:
    """Compare total rewards and times with the paper's Tables 1 and 2.

    The verdict uses Welch's two-sided test of the mean totals at the 5% level, with the paper's standard error over
    100 runs.
    """
    from pandas import DataFrame
    from scipy import stats

    from bamdp.lab.comparisons import groups
    from bamdp.lab.tables import Table, mean_text

    paper, rows = paper_numbers(), []
    for group in groups(results):
        for name, found in group.summaries.items():
            mean, error = paper["table1"].get(name, {}).get(group.environment, (math.nan, math.nan))
            if math.isnan(mean) or group.horizon != paper["steps"].get(group.environment):
                continue
            ours, our_error = found.mean.value, found.standard_error
            p = stats.ttest_ind_from_stats(
                ours, our_error * math.sqrt(found.runs), found.runs, mean, 10.0 * error, 100, equal_var=False
            ).pvalue
            seconds = paper["table2"].get(name, {}).get(group.environment, math.nan)
            rows.append(
                {
                    "environment": group.environment,
                    "algorithm": name,
                    "runs": found.runs,
                    "here": mean_text(ours, our_error, 2),
                    "paper": mean_text(mean, error, 2),
                    "verdict": "agrees" if p > 0.05 else "better" if ours > mean else "worse",
                    "ms/step": group.runs[group.runs.label == name].ms_per_step.mean(),
                    "paper, ms/step": 1e3 * seconds / group.horizon,
                }
            )
    note = "Verdict: Welch's test of the means, 5%, two-sided, not corrected for the number of rows. Machines differ."
    return Table("beside_the_paper", "Beside the paper's Tables 1 and 2", DataFrame(rows), [note])
