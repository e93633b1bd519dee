"""Tables of tuning: what was tried, what was chosen, and the parameters of the evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from bamdp.lab.comparisons import file_stem
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, differing_parameters, steady_returns
from bamdp.lab.statistics import standard_error
from bamdp.lab.tables.table import (
    NO_VALUE,
    ResultTable,
    TableCell,
    count_cell,
    decimals,
    mean_cell,
    number_cell,
    parameters_text,
    text_cell,
)

SELECTED_NOTE = (
    "Selected by the mean total reward over the tuning runs (one choice for all environments together: by the mean of "
    "total / optimal total over them), among configurations within the time limit."
)
SHRUNK_NOTE = (
    "Where numbers of runs differ, means were compared after drawing them towards the common one, the more the fewer "
    "the runs, so the highest mean need not be the one selected."
)
CHOSEN_BY_RETURNS_NOTE = (
    "Every step pays the same, so all totals are the same; the configuration is chosen by the mean return of its "
    "episodes."
)
MIXED_STEPS_NOTE = "Means over different numbers of steps are not comparable; the longest stand first."


def tried_configurations(results: Results, environment: str, algorithm: str) -> ResultTable:
    """Return every configuration that was tried, the chosen one first, then by mean total reward."""
    samples = results.select(TUNE, environment, algorithm)
    varied = differing_parameters(samples)
    errors = {id(sample): standard_error(sample.totals) for sample in samples}
    n_decimals = decimals(errors.values())
    returns = _mean_returns(samples)
    ordered = sorted(
        samples,
        key=lambda s: (not s.chosen, -s.horizon, -_mean(s.totals, -np.inf), -returns.get(id(s), 0.0)),
    )
    fixed = samples[0].configuration if samples else {}
    same = {key: value for key, value in fixed.items() if key not in varied}
    return ResultTable(
        file_stem(f"tuning_{environment}_{algorithm}"),
        f"{environment}, {algorithm}: {_n_distinct(samples)} configurations",
        (
            *varied,
            "steps",
            "runs",
            "total reward",
            *(["mean return"] if returns else []),
            "ms/step",
            "remark",
        ),
        tuple(
            _tried_row(sample, varied, errors[id(sample)], n_decimals, returns.get(id(sample)))
            for sample in ordered
        ),
        "r" * len(varied) + "rrrr" + "r" * bool(returns) + "l",
        (
            *([CHOSEN_BY_RETURNS_NOTE] if returns else []),
            "Mean total reward ± standard error over the tuning runs, whose seeds the evaluation never sees.",
            *([MIXED_STEPS_NOTE] if len({sample.horizon for sample in samples}) > 1 else []),
            *([f"The same in all: {parameters_text(same)}."] if same else []),
        ),
        warning=results.warning,
    )


def choices(results: Results) -> ResultTable:
    """Return the chosen configuration of each algorithm in each environment, and out of how many."""
    tuned = sorted(results.select(TUNE), key=lambda s: _cell_order(results, s))
    cells = [list(samples) for _, samples in groupby(tuned, key=lambda s: _cell_order(results, s))]
    return ResultTable(
        "choices",
        "Chosen in tuning",
        ("environment", "algorithm", "tried", "excluded", "chosen", "total reward", "ms/step"),
        tuple(_choice_row(results, samples) for samples in cells),
        "llrrlrr",
        (SELECTED_NOTE, *([SHRUNK_NOTE] if any(map(_unequal_runs, cells)) else [])),
        warning=results.warning,
    )


def tuning_times(results: Results) -> ResultTable:
    """Return the processor minutes that each algorithm took to choose in each environment."""
    rows = []
    for name in results.algorithms:
        samples = [results.select(TUNE, environment, name) for environment in results.environments]
        minutes = [sum(float(s.cpu_seconds.sum()) for s in part) / 60.0 for part in samples]
        cells = (number_cell(spent) if spent else text_cell(NO_VALUE) for spent in minutes)
        rows.append((text_cell(name), *cells))
    return ResultTable(
        "tuning_times",
        "Processor minutes of tuning",
        ("algorithm", *results.environments),
        tuple(rows),
        "l" + "r" * len(results.environments),
        ("Of runs that came to their end; those that were stopped for their time are not in it.",),
        warning=results.warning,
    )


def parameters(results: Results) -> ResultTable:
    """Return the parameters with which each algorithm was evaluated."""
    samples = sorted(results.select(EVALUATE), key=lambda s: _cell_order(results, s))
    rows = [
        (
            text_cell(s.environment),
            text_cell(s.algorithm),
            count_cell(s.horizon),
            text_cell(parameters_text(s.configuration)),
        )
        for s in samples
    ]
    header = ("environment", "algorithm", "steps", "parameters")
    title = "Parameters of the evaluation"
    return ResultTable("parameters", title, header, tuple(rows), "llrl", warning=results.warning)


def environments(results: Results) -> ResultTable:
    """Return the environments with their reference values."""
    rows = []
    for name in results.environments:
        runs = max((sample.runs for sample in results.select(EVALUATE, name)), default=0)
        known = results.ceilings.get(name)
        values = (known.optimum, known.discounted, known.random) if known else (np.nan,) * 3
        gain = np.nan if known is None or known.gain is None else known.gain
        totals = [number_cell(value, f"{value:.2f}") for value in values]
        counts = count_cell(results.horizon(name)), count_cell(runs)
        rows.append((text_cell(name), *counts, *totals, number_cell(gain, f"{gain:.5f}")))
    return ResultTable(
        "environments",
        "Environments, and what an optimal policy of the known model gets",
        ("environment", "steps", "runs", "optimum", "best for the discount", "random play", "gain per step"),
        tuple(rows),
        "lrrrrrr",
        (
            "Expected totals over the steps of a run. Gain: the optimal average reward per step in the long run.",
        ),
        warning=results.warning,
    )


def troubles(results: Results) -> ResultTable:
    """Return every configuration with runs that failed, or that was excluded, and why."""
    header = ("environment", "algorithm", "phase", "parameters", "finished", "failed", "why")
    rows = tuple(_trouble_row(sample) for sample in results.samples if sample.failures or sample.excluded)
    return ResultTable("troubles", "Failed and excluded", header, rows, "llllrrl", warning=results.warning)


def _tried_row(
    sample: Sample, varied: tuple[str, ...], error: float, n_decimals: int, mean_return: float | None
) -> tuple[TableCell, ...]:
    values = [sample.configuration.get(key, NO_VALUE) for key in varied]
    failed = f"{len(sample.failures)} failed" if sample.failures else ""
    remark = "; ".join(part for part in ("chosen" if sample.chosen else "", sample.excluded, failed) if part)
    return (
        *(_parameter_cell(value) for value in values),
        count_cell(sample.horizon),
        count_cell(sample.runs),
        mean_cell(_mean(sample.totals), error, n_decimals, sample.chosen),
        *([] if mean_return is None else [number_cell(mean_return)]),
        number_cell(_mean(sample.ms_per_step)),
        text_cell(remark),
    )


def _mean_returns(samples: Sequence[Sample]) -> dict[int, float]:
    """Return the mean return of each sample, by its id, where every step pays the same; nothing elsewhere."""
    totals = (total for sample in samples for total in sample.totals.tolist())
    found = steady_returns(totals, lambda: [sample.episodes() for sample in samples])
    return {id(sample): float(returns.mean()) for sample, returns in zip(samples, found or [])}


def _mean(values: np.ndarray, empty: float = np.nan) -> float:
    return float(values.mean()) if len(values) else empty


def _parameter_cell(value: object) -> TableCell:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_cell(float(value), f"{value:g}")
    return text_cell(value)


def _cell_order(results: Results, sample: Sample) -> tuple[int, int]:
    return results.environments.index(sample.environment), results.algorithms.index(sample.algorithm)


def _choice_row(results: Results, samples: list[Sample]) -> tuple[TableCell, ...]:
    environment, algorithm = samples[0].environment, samples[0].algorithm
    first = (
        text_cell(environment),
        text_cell(algorithm),
        count_cell(_n_distinct(samples)),
        count_cell(_n_distinct([s for s in samples if s.excluded])),
    )
    chosen = [s for s in samples if s.chosen]
    if not chosen:
        decided = (environment, algorithm) not in results.waiting
        why = "none: all that were left were excluded" if decided else "none yet"
        return *first, text_cell(why), text_cell(NO_VALUE), text_cell(NO_VALUE)
    longest = max(chosen, key=lambda s: s.horizon)
    varied = [key for key in differing_parameters(samples) if key in longest.configuration]
    words = parameters_text({key: longest.configuration[key] for key in varied})
    error = standard_error(longest.totals)
    mean = mean_cell(_mean(longest.totals), error, decimals([error]))
    return *first, text_cell(words), mean, number_cell(_mean(longest.ms_per_step))


def _n_distinct(samples: Sequence[Sample]) -> int:
    """Return the number of configurations: under screening one may have runs of two lengths."""
    return len({repr(dict(sample.configuration)) for sample in samples})


def _unequal_runs(samples: Sequence[Sample]) -> bool:
    """Return whether configurations that might have been chosen were compared on different numbers of runs."""
    counts = {(s.horizon, s.runs) for s in samples if not s.excluded}
    return len(counts) > len({horizon for horizon, _ in counts})


def _trouble_row(sample: Sample) -> tuple[TableCell, ...]:
    errors = Counter(re.sub(r"^run \d+: ", "", line) for line in sample.failures)
    reasons = [f"{count} × {line}" for line, count in errors.items()]
    return (
        text_cell(sample.environment),
        text_cell(sample.algorithm),
        text_cell(sample.phase),
        text_cell(parameters_text(sample.configuration)),
        count_cell(sample.runs),
        count_cell(len(sample.failures)),
        text_cell("; ".join(([sample.excluded] if sample.excluded else []) + reasons)),
    )
