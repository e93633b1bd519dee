"""What was tried in tuning, what was chosen, and with which parameters the evaluation was done."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from bamdp.lab.groups import file_stem
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, differing
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables.notes import warning
from bamdp.lab.tables.table import MISSING, Cell, Table, decimals, mean_error, number, settings, text

SELECTED = (
    "Selected by the mean total reward over the tuning runs (one choice for all environments together: by the mean of "
    "total / optimal total over them), among configurations within the time limit."
)
SHRUNK = (
    "Where numbers of runs differ, means were compared after drawing them towards the common one, the more the fewer "
    "the runs, so the highest mean need not be the one selected."
)
MIXED = "Means over different numbers of steps are not comparable; the longest stand first."


def configurations(results: Results, environment: str, algorithm: str) -> Table:
    """Every configuration that was tried, the chosen one first, then by mean total reward."""
    samples = results.select(TUNE, environment, algorithm)
    varied, count = differing(samples), _distinct(samples)
    errors = {id(sample): standard_error(sample.totals) for sample in samples}
    shown = decimals(errors.values())
    rows = [_tried(sample, varied, errors[id(sample)], shown) for sample in sorted(samples, key=_order)]
    same = (
        {key: value for key, value in samples[0].configuration.items() if key not in varied}
        if samples
        else {}
    )
    return Table(
        file_stem(f"tuning_{environment}_{algorithm}"),
        f"{environment}, {algorithm}: {count} configurations",
        (*varied, "steps", "runs", "total reward", "ms/step", "remark"),
        tuple(rows),
        "r" * len(varied) + "rrrrl",
        (
            "Mean total reward ± standard error over the tuning runs, whose seeds the evaluation never sees.",
            *([MIXED] if len({sample.horizon for sample in samples}) > 1 else []),
            *([f"The same in all: {settings(same)}."] if same else []),
        ),
        (),
        warning(results),
    )


def choices(results: Results) -> Table:
    """The chosen configuration of each algorithm in each environment, and out of how many."""
    tuned = sorted(results.select(TUNE), key=lambda s: _place(results, s))
    cells = [list(held) for _, held in groupby(tuned, key=lambda s: _place(results, s))]
    return Table(
        "choices",
        "Chosen in tuning",
        ("environment", "algorithm", "tried", "excluded", "chosen", "total reward", "ms/step"),
        tuple(_choice(samples, _decided(results, samples[0])) for samples in cells),
        "llrrlrr",
        (SELECTED, *([SHRUNK] if any(map(_uneven, cells)) else [])),
        (),
        warning(results),
    )


def tuning_times(results: Results) -> Table:
    """Processor minutes that each algorithm took to choose in each environment."""
    spent = {
        (name, place): sum(float(s.cpu_seconds.sum()) for s in results.select(TUNE, place, name)) / 60.0
        for name in results.algorithms
        for place in results.environments
    }
    shown = {key: number(minutes) if minutes else text(MISSING) for key, minutes in spent.items()}
    rows = [
        (text(name), *(shown[name, place] for place in results.environments)) for name in results.algorithms
    ]
    return Table(
        "tuning_times",
        "Processor minutes of tuning",
        ("algorithm", *results.environments),
        tuple(rows),
        "l" + "r" * len(results.environments),
        ("Of runs that came to their end; those that were stopped for their time are not in it.",),
        (),
        warning(results),
    )


def parameters(results: Results) -> Table:
    """With what each algorithm was evaluated."""
    samples = sorted(results.select(EVALUATE), key=lambda s: _place(results, s))
    rows = [
        (
            text(s.environment),
            text(s.algorithm),
            number(s.horizon, str(s.horizon)),
            text(settings(s.configuration)),
        )
        for s in samples
    ]
    header = ("environment", "algorithm", "steps", "parameters")
    return Table(
        "parameters", "Parameters of the evaluation", header, tuple(rows), "llrl", (), (), warning(results)
    )


def environments(results: Results) -> Table:
    """Where it was run, and what there was to be had."""
    rows = []
    for name in results.environments:
        runs = [sample.runs for sample in results.select(EVALUATE, name)]
        known, steps = results.ceilings.get(name), results.horizon(name)
        figures = (known.optimum, known.discounted, known.random) if known else (np.nan,) * 3
        gain = np.nan if known is None or known.gain is None else known.gain
        totals = [number(value, f"{value:.2f}") for value in figures]
        counts = number(max(runs, default=0), str(max(runs, default=0)))
        rows.append((text(name), number(steps, str(steps)), counts, *totals, number(gain, f"{gain:.5f}")))
    return Table(
        "environments",
        "Environments, and what one who knows the model gets",
        ("environment", "steps", "runs", "optimum", "best for the discount", "random play", "gain a step"),
        tuple(rows),
        "lrrrrrr",
        ("Totals over the steps of a run, expected. Gain: the best average reward a step in the long run.",),
        (),
        warning(results),
    )


def troubles(results: Results) -> Table:
    """Every configuration with runs that failed, or that was excluded, and why."""
    header = ("environment", "algorithm", "phase", "parameters", "finished", "failed", "why")
    rows = tuple(_trouble(sample) for sample in results.samples if sample.failures or sample.excluded)
    return Table("troubles", "Failed and excluded", header, rows, "llllrrl", (), (), warning(results))


def _tried(sample: Sample, varied: tuple[str, ...], error: float, shown: int) -> tuple[Cell, ...]:
    values = [sample.configuration.get(key, MISSING) for key in varied]
    failed = f"{len(sample.failures)} failed" if sample.failures else ""
    remark = "; ".join(part for part in ("chosen" if sample.chosen else "", sample.excluded, failed) if part)
    mean = sample.totals.mean() if sample.runs else np.nan
    return (
        *(_setting(value) for value in values),
        number(sample.horizon, str(sample.horizon)),
        number(sample.runs, str(sample.runs)),
        mean_error(mean, error, shown, sample.chosen),
        number(sample.ms_per_step.mean() if sample.runs else np.nan),
        text(remark),
    )


def _setting(value: object) -> Cell:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(float(value), f"{value:g}")
    return text(value)


def _order(sample: Sample) -> tuple[bool, int, float]:
    mean = sample.totals.mean() if sample.runs else -np.inf
    return not sample.chosen, -sample.horizon, -float(mean)


def _place(results: Results, sample: Sample) -> tuple[int, int]:
    return results.environments.index(sample.environment), results.algorithms.index(sample.algorithm)


def _decided(results: Results, sample: Sample) -> bool:
    return (sample.environment, sample.algorithm) not in results.waiting


def _choice(samples: list[Sample], decided: bool) -> tuple[Cell, ...]:
    varied, chosen = differing(samples), [s for s in samples if s.chosen]
    out, tried = _distinct([s for s in samples if s.excluded]), _distinct(samples)
    first = (
        text(samples[0].environment),
        text(samples[0].algorithm),
        number(tried, str(tried)),
        number(out, str(out)),
    )
    if not chosen:
        return (
            *first,
            text("none: all that were left were excluded" if decided else "none yet"),
            text(MISSING),
            text(MISSING),
        )
    best = max(chosen, key=lambda s: s.horizon)
    words = settings({key: best.configuration[key] for key in varied if key in best.configuration})
    error = standard_error(best.totals)
    mean = mean_error(best.totals.mean() if best.runs else np.nan, error, decimals([error]))
    return *first, text(words), mean, number(best.ms_per_step.mean() if best.runs else np.nan)


def _distinct(samples: Sequence[Sample]) -> int:
    """How many configurations: under screening one may have runs of two lengths."""
    return len({repr(dict(sample.configuration)) for sample in samples})


def _uneven(samples: Sequence[Sample]) -> bool:
    """Whether configurations that might have been chosen were compared on different numbers of runs."""
    held = [(s.horizon, s.runs) for s in samples if not s.excluded]
    return len(set(held)) > len({horizon for horizon, _ in held})


def _trouble(sample: Sample) -> tuple[Cell, ...]:
    errors = Counter(re.sub(r"^run \d+: ", "", line) for line in sample.failures)
    reasons = [f"{count} × {line}" for line, count in errors.items()]
    return (
        text(sample.environment),
        text(sample.algorithm),
        text(sample.phase),
        text(settings(sample.configuration)),
        number(sample.runs, str(sample.runs)),
        number(len(sample.failures), str(len(sample.failures))),
        text("; ".join(([sample.excluded] if sample.excluded else []) + reasons)),
    )
