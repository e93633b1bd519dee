"""Run what one gets within a time per step, chosen from the tuning runs of both fair studies.

    python tools/time_study.py [--from results/dss2020] [--jobs 2]     # runs what is missing in time.runs.xz

For every algorithm, environment and time τ, of all configurations that were tried there and took at most τ per step on
average, the one is taken whose mean total reward is highest, the means being shrunk towards the common one, since
configurations have from one to fifty runs (:func:`bamdp.lab.choosing.shrunk_means`). Configurations of both studies
count as one where they are equal. What was taken is then run anew, on random numbers that no choice was made by. So
the study is a function of the exported runs of two others: where those grow, choices may change, and what is missing
then is run.

Nothing that was tried takes more than some 40 ms. For longer times, 100 ms and the limits of the paper, algorithms that
can use more of it have the choice for 10 ms with more simulations, trajectories or policies, as many as should take 0.4
of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from searches import without_draw

from bamdp.envs.registry import make_env
from bamdp.lab.choosing import shrunk_means
from bamdp.lab.collect import collect_results
from bamdp.lab.exports import export_name, export_runs, import_runs, open_exports
from bamdp.lab.papers import paper_study
from bamdp.lab.reading import parse_study
from bamdp.lab.results import TUNE, Results, Sample
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.study import Study

SOURCES = ("dss2020/fair", "dss2020/fair2")
NAME = "dss2020/time"
STORE = ".bamdp/time.sqlite"
STEPS = {"chain": 1000, "double_loop": 1000, "grid5": 1000, "grid10": 2000}
TIMES = {"10us": 0.01, "100us": 0.1, "1ms": 1.0, "10ms": 10.0}  # ms per step, of what was tried
PAPER_LIMIT = "limit"
ALL_IN = ("chain", "double_loop", "grid5")  # environments with all times up to 100 ms
LONGER = {"100ms": ALL_IN, PAPER_LIMIT: ("chain", "double_loop")}  # where a run takes two minutes or less
RUNS, SLOW_RUNS, LONGER_RUNS = 20, 10, 4  # slow: more than SLOW_MS per step
SLOW_MS = 1.0
FILL = 0.4  # of a longer time: it grows with the budget, but not in proportion
BUDGETS = {  # what of an algorithm is multiplied to use more time
    "bamcp": ("n_simulations",),
    "bfs3": ("n_trajectories",),
    "adaptive-dss": ("n_simulations",),
    "dss-pi": ("n_policies", "n_samples"),
    "dss-rtdp": ("n_policies", "n_samples"),
}
HEAD = f"""\
title = "What one gets within a time per step"
runs = {RUNS}
seed = 20262
"""

Configuration = Mapping[str, Any]


def times_in(environment: str) -> dict[str, float]:
    """Return the times in an environment, in ms per step; the last is its time limit, which is the paper's.

    Examples
    --------
    >>> times_in("grid5")
    {'10us': 0.01, '100us': 0.1, '1ms': 1.0, '10ms': 10.0, '100ms': 100.0, 'limit': 1000.0}
    """
    return {**TIMES, "100ms": 100.0, PAPER_LIMIT: 1000.0 * make_env(environment).time_limit}


@dataclass(frozen=True, eq=False)
class Tried:
    """A configuration with all its tuning runs."""

    configuration: Configuration
    totals: NDArray[np.float64]
    ms: float  # per step, on average


def merged(samples: Sequence[Sample]) -> list[Tried]:
    """Return each configuration once, with the runs of all samples of it."""
    by_configuration: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.runs:
            by_configuration.setdefault(repr(sorted(sample.configuration.items())), []).append(sample)
    return [
        Tried(
            same[0].configuration,
            np.concatenate([sample.totals for sample in same]),
            float(np.concatenate([sample.ms_per_step for sample in same]).mean()),
        )
        for same in by_configuration.values()
    ]


def best_within(tried: Sequence[Tried], times: Mapping[str, float]) -> dict[str, Tried]:
    """Return the best configuration within each time, as far as there is one.

    Examples
    --------
    >>> quick = Tried({"n": 1}, np.array([1.0, 2.0]), 0.05)
    >>> slow, worse = Tried({"n": 9}, np.array([8.0, 9.0]), 5.0), Tried({"n": 5}, np.array([0.0, 1.0]), 0.5)
    >>> found = best_within([quick, slow, worse], {"10us": 0.01, "100us": 0.1, "1ms": 1.0, "10ms": 10.0})
    >>> {word: one.configuration["n"] for word, one in found.items()}
    {'100us': 1, '1ms': 1, '10ms': 9}
    """
    means = shrunk_means({number: one.totals for number, one in enumerate(tried)})
    found = {}
    for word, ms in times.items():
        able = [number for number in means if tried[number].ms <= ms]
        if able:
            found[word] = tried[max(able, key=means.__getitem__)]
    return found


def with_more(tried: Tried, budgets: Sequence[str], ms: float) -> Configuration:
    """Return the configuration with so much more of its budgets that it takes about ``ms`` per step.

    Examples
    --------
    >>> tried = Tried({"n_policies": 8, "n_samples": 4, "leaf": "mean"}, np.ones(1), 1.0)
    >>> with_more(tried, ("n_policies", "n_samples"), 9.0)
    {'n_policies': 24, 'n_samples': 12, 'leaf': 'mean'}
    """
    factor = max(ms / tried.ms, 1.0) ** (1.0 / len(budgets))
    return {
        key: round(factor * value) if key in budgets else value for key, value in tried.configuration.items()
    }


def study_text(tried: Mapping[str, Mapping[str, Sequence[Tried]]]) -> str:
    """Return the study of what was tried, by algorithm and environment."""
    lines = [HEAD]
    for environment, steps in STEPS.items():
        lines += [f"[environments.{environment}]", f"steps = {steps}"]
    for algorithm, by_environment in tried.items():
        chosen = {environment: best_within(found, TIMES) for environment, found in by_environment.items()}
        for word in TIMES:
            settings = {e: _choice(found[word]) for e, found in chosen.items() if word in found}
            lines += _algorithm_lines(algorithm, word, settings)
        last = {e: found["10ms"] for e, found in chosen.items() if "10ms" in found}
        for word, environments in LONGER.items():
            settings = {
                e: _longer_choice(algorithm, last[e], times_in(e)[word]) for e in environments if e in last
            }
            lines += _algorithm_lines(algorithm, word, settings)
    return "\n".join(lines) + "\n"


def _choice(tried: Tried) -> Configuration:
    """Return the parameters of the study's table."""
    return {**_with_whole_prior(tried.configuration), "runs": RUNS if tried.ms <= SLOW_MS else SLOW_RUNS}


def _longer_choice(algorithm: str, tried: Tried, ms: float) -> Configuration:
    """Return the same with more of its budget; where an algorithm has none, more time changes nothing."""
    if algorithm not in BUDGETS:
        return _choice(tried)
    more = with_more(tried, BUDGETS[algorithm], FILL * ms)
    return {**_with_whole_prior(more), "runs": LONGER_RUNS}


def _algorithm_lines(algorithm: str, word: str, settings: Mapping[str, Configuration]) -> list[str]:
    if not settings:
        return []
    label = f"{algorithm}-{word}"
    lines = [
        f"[algorithms.{label}]",
        f'planner = "{algorithm}"',
        f"environments = {json.dumps(list(settings))}",
    ]
    for environment, parameters in settings.items():
        lines.append(f"[algorithms.{label}.at.{environment}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in parameters.items()]
    return lines


def _with_whole_prior(configuration: Configuration) -> dict[str, Any]:
    """Return the configuration with its prior in one text."""
    rest = {key: value for key, value in configuration.items() if not key.startswith("prior")}
    inner = [f"{k[6:]}={v:g}" for k, v in configuration.items() if k.startswith("prior.")]
    return {**rest, "prior": ":".join([configuration["prior"], *([",".join(inner)] if inner else [])])}


def time_study(sources: Sequence[Results]) -> Study:
    """Return the study, of what was tried in these results."""
    samples: dict[str, dict[str, list[Sample]]] = {}
    for results in sources:
        for environment in STEPS:
            for sample in results.select(TUNE, environment):
                by_environment = samples.setdefault(without_draw(sample.algorithm), {})
                by_environment.setdefault(environment, []).append(sample)
    tried = {
        algorithm: {environment: merged(found) for environment, found in by_environment.items()}
        for algorithm, by_environment in samples.items()
    }
    return parse_study(study_text(tried))


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, and export it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--from", dest="folder", default="results/dss2020", metavar="FOLDER", help="exported runs"
    )
    parser.add_argument("--store", default=STORE, metavar="PATH", help=f"file of the runs (default: {STORE})")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    arguments = parser.parse_args(argv)
    folder = Path(arguments.folder)
    with open_exports([folder / export_name(name) for name in SOURCES]) as exports:
        study = time_study([collect_results(paper_study(n), exports.store_of(n)) for n in SOURCES])
    path = folder / export_name(NAME)
    with Store(arguments.store) as store:
        if path.exists():
            import_runs(store, path)
        run_study(study, store, jobs=arguments.jobs)
        print(f"{export_runs(study, store, path, thin=True)} runs: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
