"""Tables of tuning: what was tried, what was chosen, and the parameters of the evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from bamdp.lab.comparisons import file_stem
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, differing_parameters, steady_returns
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    decimals,
    make_table,
    mean_cell,
    number_cell,
    parameters_text,
)
from bamdp.statistics import standard_error

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
    shown = decimals(standard_error(sample.totals) for sample in samples)
    returns = _mean_returns(samples)

    def order(sample: Sample) -> tuple[float, ...]:
        total = sample.mean_total if sample.runs else -np.inf
        return not sample.chosen, -sample.horizon, -total, -returns.get(id(sample), 0.0)

    fixed = samples[0].configuration if samples else {}
    same = {key: value for key, value in fixed.items() if key not in varied}
    returned = ("mean return",) if returns else ()
    return make_table(
        file_stem(f"tuning_{environment}_{algorithm}"),
        f"{environment}, {algorithm}: {_n_distinct(samples)} configurations",
        (*varied, "steps", "runs", "total reward", *returned, "ms/step", "remark"),
        [_tried_row(sample, varied, shown, returns) for sample in sorted(samples, key=order)],
        (
            CHOSEN_BY_RETURNS_NOTE if returns else "",
            "Mean total reward ± standard error over the tuning runs, whose seeds the evaluation never sees.",
            MIXED_STEPS_NOTE if len({sample.horizon for sample in samples}) > 1 else "",
            f"The same in all: {parameters_text(same)}." if same else "",
        ),
        "r" * (len(varied) + 4 + len(returned)) + "l",
        warning=results.warning,
    )


def choices(results: Results) -> ResultTable:
    """Return the chosen configuration of each algorithm in each environment, and out of how many."""
    cells = list(_by_cell(results, TUNE))
    return make_table(
        "choices",
        "Chosen in tuning",
        ("environment", "algorithm", "tried", "excluded", "chosen", "total reward", "ms/step"),
        [_choice_row(results, samples) for samples in cells],
        (SELECTED_NOTE, SHRUNK_NOTE if any(map(_unequal_runs, cells)) else ""),
        "llrrlrr",
        warning=results.warning,
    )


def parameters(results: Results) -> ResultTable:
    """Return the parameters with which each algorithm was evaluated."""
    samples = (sample for cell in _by_cell(results, EVALUATE) for sample in cell)
    rows = [(s.environment, s.algorithm, s.horizon, parameters_text(s.configuration)) for s in samples]
    header = ("environment", "algorithm", "steps", "parameters")
    title = "Parameters of the evaluation"
    return make_table("parameters", title, header, rows, align="llrl", warning=results.warning)


def environments(results: Results) -> ResultTable:
    """Return the environments with their reference values."""
    rows: list[tuple[Entry, ...]] = []
    for name in results.environments:
        runs = max((sample.runs for sample in results.select(EVALUATE, name)), default=0)
        known = results.ceilings.get(name)
        values = (known.optimum, known.discounted, known.random) if known else (np.nan,) * 3
        gain = np.nan if known is None or known.gain is None else known.gain
        totals = [number_cell(value, f"{value:.2f}") for value in values]
        rows.append((name, results.horizon(name), runs, *totals, number_cell(gain, f"{gain:.5f}")))
    return make_table(
        "environments",
        "Environments, and what an optimal policy of the known model gets",
        ("environment", "steps", "runs", "optimum", "best for the discount", "random play", "gain per step"),
        rows,
        [
            "Expected totals over the steps of a run. Gain: the optimal average reward per step in the long run."
        ],
        warning=results.warning,
    )


def troubles(results: Results) -> ResultTable:
    """Return every configuration with runs that failed, or that was excluded, and why."""
    rows: list[tuple[Entry, ...]] = []
    for sample in results.samples:
        errors = Counter(re.sub(r"^run \d+: ", "", line) for line in sample.failures)
        reasons = [sample.excluded, *(f"{count} × {line}" for line, count in errors.items())]
        why = "; ".join(filter(None, reasons))
        if why:
            where = sample.environment, sample.algorithm, sample.phase, parameters_text(sample.configuration)
            rows.append((*where, sample.runs, len(sample.failures), why))
    header = ("environment", "algorithm", "phase", "parameters", "finished", "failed", "why")
    title = "Failed and excluded"
    return make_table("troubles", title, header, rows, align="llllrrl", warning=results.warning)


def _tried_row(
    sample: Sample, varied: tuple[str, ...], shown: int, returns: dict[int, float]
) -> tuple[Entry, ...]:
    failed = f"{len(sample.failures)} failed" if sample.failures else ""
    return (
        *(_parameter_entry(sample.configuration.get(key)) for key in varied),
        sample.horizon,
        sample.runs,
        mean_cell(sample.totals, shown, sample.chosen),
        *([returns[id(sample)]] if returns else []),
        sample.mean_ms,
        "; ".join(filter(None, ("chosen" if sample.chosen else "", sample.excluded, failed))),
    )


def _mean_returns(samples: Sequence[Sample]) -> dict[int, float]:
    """Return the mean return of each sample, by its id, where every step pays the same; nothing elsewhere."""
    totals = (total for sample in samples for total in sample.totals.tolist())
    found = steady_returns(totals, lambda: [sample.episodes() for sample in samples])
    return {id(sample): float(returns.mean()) for sample, returns in zip(samples, found or [])}


def _parameter_entry(value: object) -> Entry:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_cell(float(value), f"{value:g}")
    return None if value is None else str(value)


def _by_cell(results: Results, phase: str) -> Iterator[list[Sample]]:
    """Yield the samples of each algorithm in each environment, in the order of the results' labels."""
    environments, algorithms = results.environments, results.algorithms

    def order(sample: Sample) -> tuple[int, int]:
        return environments.index(sample.environment), algorithms.index(sample.algorithm)

    for _, samples in groupby(sorted(results.select(phase), key=order), key=order):
        yield list(samples)


def _choice_row(results: Results, samples: list[Sample]) -> tuple[Entry, ...]:
    where = samples[0].environment, samples[0].algorithm
    first = (*where, _n_distinct(samples), _n_distinct([s for s in samples if s.excluded]))
    chosen = [s for s in samples if s.chosen]
    if not chosen:
        decided = where not in results.waiting
        return *first, "none: all that were left were excluded" if decided else "none yet", None, None
    longest = max(chosen, key=lambda s: s.horizon)
    varied = [key for key in differing_parameters(samples) if key in longest.configuration]
    words = parameters_text({key: longest.configuration[key] for key in varied})
    return *first, words, mean_cell(longest.totals), longest.mean_ms


def _n_distinct(samples: Sequence[Sample]) -> int:
    """Return the number of configurations: under screening one may have runs of two lengths."""
    return len({repr(dict(sample.configuration)) for sample in samples})


def _unequal_runs(samples: Sequence[Sample]) -> bool:
    """Return whether configurations that might have been chosen were compared on different numbers of runs."""
    counts = {(s.horizon, s.runs) for s in samples if not s.excluded}
    return len(counts) > len({horizon for horizon, _ in counts})
