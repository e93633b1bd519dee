"""The results of a study, as tables, figures and reports read them.

A :class:`Sample` is the finished runs of one configuration of one algorithm in one environment in one phase; a
:class:`Results` is all samples of a study, with the reference values of its environments. Nothing here computes a
statistic or touches a file: :mod:`bamdp.lab.collect` makes results from the store, the rest of the laboratory reads
them.

Only evaluations with as many runs as the environment asks for are compared with each other. An environment in which
no evaluation is complete yet has its rows so far, all marked, so that a running study can be looked at
(:func:`comparable_results`); what is published has complete evaluations only (:func:`complete_results`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.ceilings import Ceilings

if TYPE_CHECKING:
    from bamdp.simulation import Run

TUNE, EVALUATE = PHASES = ("tune", "evaluate")
QUICK_WARNING = "Quick run: few runs and short horizons, to see that it works. These numbers are not results."
OPTIMUM_LABEL = "optimum, model known"
MAX_REMARKS = 5  # incomplete cells that are named one by one


Returns = list[NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class EpisodeSummary:
    """The completed episodes of a sample, of which there is at least one."""

    runs: tuple[Run, ...]  # rewards and ends; a trace has neither states and actions nor times

    @property
    def per_run(self) -> float:
        """The mean number of episodes of a run."""
        return sum(len(run.ends) for run in self.runs) / len(self.runs)

    @property
    def mean_return(self) -> float:
        """The mean return of all episodes."""
        return float(np.concatenate([run.episode_returns for run in self.runs]).mean())

    @property
    def returns(self) -> NDArray[np.float64]:
        """The mean return of each run that has completed an episode."""
        return np.array([run.episode_returns.mean() for run in self.runs if len(run.ends)])

    @property
    def success(self) -> float | None:
        """The mean share of successes of the runs that have one, see :attr:`bamdp.Run.success`."""
        shares = [run.success for run in self.runs if run.success is not None]
        return float(np.mean(shares)) if shares else None


def steady_returns(
    totals: Iterable[float], episodes: Callable[[], Iterable[EpisodeSummary | None]]
) -> Returns | None:
    """Return the mean returns of runs, group by group, where every step pays the same; None elsewhere.

    There, as in CartPole, all totals are the same and say nothing. Episodes are read only if totals are the same.
    """
    if len(set(totals)) != 1:
        return None
    found = list(episodes())
    rewards = {
        reward for one in found if one for run in one.runs for reward in np.unique(run.rewards).tolist()
    }
    if len(rewards) != 1 or any(one is None for one in found):
        return None
    return [one.returns for one in found if one]


@dataclass(frozen=True, eq=False)
class Sample:
    """The finished runs of one configuration of one algorithm in one environment in one phase."""

    environment: str  # label in the study
    algorithm: str  # label in the study
    phase: str  # "tune" or "evaluate"
    configuration: Mapping[str, Any]  # flat: the planner's parameters, "prior", "prior.beta", "discount", ...
    horizon: int  # steps of a run, T
    replicates: NDArray[np.int64]  # [R] their numbers: equal numbers have common random numbers
    totals: NDArray[np.float64]  # [R] total rewards
    ms_per_step: NDArray[np.float64]  # [R] processor time, compiling excluded
    cpu_seconds: NDArray[np.float64]  # [R]
    traces: Callable[[], NDArray[np.float64]]  # [R, T] rewards, read when asked for
    episodes: Callable[[], EpisodeSummary | None] = lambda: None  # None where no episode was recorded
    failures: tuple[str, ...] = ()  # "run 3: ..." for each run that raised or went over the limit
    chosen: bool = False  # by tuning, or because there was nothing to choose
    excluded: str = ""  # why it could not be chosen, such as being over the time limit
    asked: int = 0  # runs that a complete evaluation has in this environment; 0: not known

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}, got {self.phase!r}")
        shapes = {np.shape(a) for a in (self.replicates, self.totals, self.ms_per_step, self.cpu_seconds)}
        if shapes != {(self.runs,)}:
            raise ValueError(f"a sample's arrays need one entry for each run, got shapes {sorted(shapes)}")
        if len(np.unique(self.replicates)) != self.runs:
            raise ValueError("a sample holds each replicate once; two runs have the same number")

    @property
    def runs(self) -> int:
        """The number of finished runs, R."""
        return len(self.totals)

    @property
    def mean_total(self) -> float:
        """The mean total reward; NaN without runs."""
        return float(self.totals.mean()) if self.runs else np.nan

    @property
    def mean_ms(self) -> float:
        """The mean processor time per step in milliseconds; NaN without runs."""
        return float(self.ms_per_step.mean()) if self.runs else np.nan

    @property
    def complete(self) -> bool:
        """Whether as many runs have finished as the environment asks for."""
        return self.runs >= max(self.asked, 1)


@dataclass(frozen=True, eq=False)
class Results:
    """All samples of a study, in the study's order."""

    title: str
    samples: tuple[Sample, ...]
    ceilings: Mapping[str, Ceilings] = field(default_factory=dict)  # by environment, over its `horizon`
    quick: bool = False  # few runs, short horizons: to be marked as such wherever it is shown
    notes: tuple[str, ...] = ()
    horizons: Mapping[str, int] = field(default_factory=dict)  # by environment; others are in `horizon`
    # (environment, algorithm) to be evaluated, also those without runs
    cells: tuple[tuple[str, str], ...] = ()
    # cells with missing runs: a line each
    waiting: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def environments(self) -> tuple[str, ...]:
        """Labels, in order of appearance."""
        return tuple(dict.fromkeys(sample.environment for sample in self.samples))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Labels, in order of appearance."""
        return tuple(dict.fromkeys(sample.algorithm for sample in self.samples))

    @property
    def warning(self) -> str:
        """The text that must stand above everything that shows these results; empty if there is none."""
        return QUICK_WARNING if self.quick else ""

    @property
    def remarks(self) -> list[str]:
        """The study's notes, and what is missing: cell by cell, or in one line if many are incomplete."""
        waiting = list(self.waiting.values())
        if len(waiting) > MAX_REMARKS:
            waiting = [f"{len(waiting)} cells are not complete, see the table."]
        return [*self.notes, *waiting]

    def select(
        self, phase: str | None = None, environment: str | None = None, algorithm: str | None = None
    ) -> tuple[Sample, ...]:
        """Return the samples of this phase, environment and algorithm; None stands for all."""
        conditions = {"phase": phase, "environment": environment, "algorithm": algorithm}
        required = {name: value for name, value in conditions.items() if value is not None}
        return tuple(
            s for s in self.samples if all(getattr(s, name) == value for name, value in required.items())
        )

    def horizon(self, environment: str) -> int:
        """Return the environment's steps: as given, or the longest of its evaluation (or tuning, without one)."""
        if environment in self.horizons:
            return self.horizons[environment]
        samples = self.select(EVALUATE, environment) or self.select(environment=environment)
        return max(sample.horizon for sample in samples)

    def ceilings_of(self, sample: Sample) -> Ceilings | None:
        """Return the reference values over the sample's own horizon, where they are known."""
        known = self.ceilings.get(sample.environment)
        return known if sample.horizon == self.horizon(sample.environment) else None


@dataclass(frozen=True)
class Provenance:
    """Where results come from, for a report."""

    facts: Mapping[str, str] = field(default_factory=dict)  # "bamdp": "0.2.0", "machine": ..., "seed": ...
    commands: tuple[str, ...] = ()  # that reproduce them
    study: str = ""  # the text of the study's file


def merge_results(parts: Sequence[Results]) -> Results:
    """Return several studies of the same environments as one."""
    if not parts:
        raise ValueError("there is nothing to merge")
    lengths: dict[str, int] = {}
    for part in parts:
        for label, steps in part.horizons.items():
            if lengths.setdefault(label, steps) != steps:
                raise ValueError(f"studies with different steps in {label} cannot stand in one table")
    return Results(
        parts[0].title,
        tuple(chain.from_iterable(part.samples for part in parts)),
        {label: known for part in parts for label, known in part.ceilings.items()},
        any(part.quick for part in parts),
        tuple(dict.fromkeys(chain.from_iterable(part.notes for part in parts))),
        lengths,
        tuple(chain.from_iterable(part.cells for part in parts)),
        {cell: line for part in parts for cell, line in part.waiting.items()},
    )


def complete_results(results: Results) -> Results:
    """Return the results without evaluations that have fewer runs than they should."""
    kept = tuple(s for s in results.samples if s.phase != EVALUATE or s.complete)
    return replace(results, samples=kept)


def comparable_results(results: Results) -> Results:
    """Return the complete evaluations of each environment, or all of its evaluations so far if none is complete."""
    settled = {s.environment for s in results.select(EVALUATE) if s.complete}
    kept = (s for s in results.samples if s.phase != EVALUATE or s.complete or s.environment not in settled)
    return replace(results, samples=tuple(kept))


def sample_labels(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return a label for each sample, as short as tells them apart.

    It is the algorithm's own label, with those parameters behind it in which its configurations differ and, where
    horizons differ, with the steps.
    """
    listed = tuple(samples)
    siblings = samples_by_algorithm(listed)
    return tuple(_label(sample, siblings[sample.algorithm]) for sample in listed)


def samples_by_algorithm(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the samples of each algorithm, in order of appearance."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(sample.algorithm, []).append(sample)
    return grouped


def differing_parameters(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return the parameters that do not have the same value in all samples, in order of appearance."""
    listed = tuple(samples)
    keys = dict.fromkeys(key for sample in listed for key in sample.configuration)
    return tuple(k for k in keys if len({repr(s.configuration.get(k)) for s in listed}) > 1)


def _label(sample: Sample, siblings: list[Sample]) -> str:
    parts = [f"{key}={sample.configuration.get(key, '–')}" for key in differing_parameters(siblings)]
    if len({s.horizon for s in siblings}) > 1:
        parts.append(f"{sample.horizon} steps")
    return f"{sample.algorithm} ({', '.join(parts)})" if parts else sample.algorithm
