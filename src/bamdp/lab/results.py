"""What a study came to, as tables, figures and reports read it.

A :class:`Sample` is the finished runs of one configuration of one algorithm in one environment in one phase; a
:class:`Results` is all of them, with what the environments offer to one who knows them. Nothing here computes a
statistic or touches a file: the store makes it, the rest of the laboratory reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.ceilings import Ceilings

TUNE, EVALUATE = PHASES = ("tune", "evaluate")


@dataclass(frozen=True, eq=False)
class Sample:
    """The finished runs of one configuration of one algorithm in one environment in one phase."""

    environment: str  # label in the study
    algorithm: str  # label in the study
    phase: str  # "tune" or "evaluate"
    configuration: Mapping[str, Any]  # flat: the planner's parameters, "prior", "prior.beta", "discount", ...
    horizon: int  # steps of a run, T
    replicates: NDArray[np.int64]  # [R] their numbers: equal numbers met equal luck
    totals: NDArray[np.float64]  # [R] total rewards
    ms_per_step: NDArray[np.float64]  # [R] processor time, compiling not in it
    cpu_seconds: NDArray[np.float64]  # [R]
    traces: Callable[[], NDArray[np.float64]]  # [R, T] rewards, read when asked for
    failures: tuple[str, ...] = ()  # "run 3: ..." for each run that raised or went over the limit
    chosen: bool = False  # by tuning, or because there was nothing to choose
    excluded: str = ""  # why it could not be chosen, such as being over the time limit
    asked: int = 0  # runs that a complete row has in this environment; 0: not known

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
        """How many finished, R."""
        return len(self.totals)

    @property
    def complete(self) -> bool:
        """Whether as many have finished as the environment's other algorithms are asked for."""
        return self.runs >= max(self.asked, 1)


@dataclass(frozen=True, eq=False)
class Results:
    """All samples of a study, in the study's order."""

    title: str
    samples: tuple[Sample, ...]
    ceilings: Mapping[str, Ceilings] = field(default_factory=dict)  # by environment, over its `horizon`
    quick: bool = False  # few runs, short horizons: to be marked as such wherever it is shown
    notes: tuple[str, ...] = ()
    horizons: Mapping[str, int] = field(
        default_factory=dict
    )  # by environment; what is not given is in `horizon`
    cells: tuple[
        tuple[str, str], ...
    ] = ()  # (environment, algorithm) that the study evaluates, also those without runs
    waiting: Mapping[tuple[str, str], str] = field(
        default_factory=dict
    )  # cells of which runs are missing, in a line each

    @property
    def environments(self) -> tuple[str, ...]:
        """Labels, in order of appearance."""
        return tuple(dict.fromkeys(sample.environment for sample in self.samples))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Labels, in order of appearance."""
        return tuple(dict.fromkeys(sample.algorithm for sample in self.samples))

    def select(
        self, phase: str | None = None, environment: str | None = None, algorithm: str | None = None
    ) -> tuple[Sample, ...]:
        """The samples that agree with what is given."""
        wanted = {"phase": phase, "environment": environment, "algorithm": algorithm}
        given = {name: value for name, value in wanted.items() if value is not None}
        return tuple(
            s for s in self.samples if all(getattr(s, name) == value for name, value in given.items())
        )

    def horizon(self, environment: str) -> int:
        """The environment's steps: as given, or the longest of its evaluation, or of its tuning if there is none."""
        if environment in self.horizons:
            return self.horizons[environment]
        samples = self.select(EVALUATE, environment) or self.select(environment=environment)
        return max(sample.horizon for sample in samples)

    def ceilings_of(self, sample: Sample) -> Ceilings | None:
        """What was to be had over the sample's own horizon, where that is known."""
        known = self.ceilings.get(sample.environment)
        return known if sample.horizon == self.horizon(sample.environment) else None


@dataclass(frozen=True)
class Provenance:
    """Where results come from, for a report."""

    facts: Mapping[str, str] = field(default_factory=dict)  # "bamdp": "0.2.0", "machine": ..., "seed": ...
    commands: tuple[str, ...] = ()  # what to type to get them again
    study: str = ""  # the text of the study's file


def names(samples: Iterable[Sample]) -> tuple[str, ...]:
    """A label for each sample, as short as tells them apart.

    The algorithm's own label, with those parameters behind it in which its configurations differ and, where
    horizons differ, with the steps.
    """
    held = tuple(samples)
    return tuple(_name(sample, [s for s in held if s.algorithm == sample.algorithm]) for sample in held)


def differing(samples: Iterable[Sample]) -> tuple[str, ...]:
    """The parameters that are not the same in all of them, in order of appearance."""
    held = tuple(samples)
    keys = dict.fromkeys(key for sample in held for key in sample.configuration)
    return tuple(k for k in keys if len({repr(s.configuration.get(k)) for s in held}) > 1)


def _name(sample: Sample, siblings: list[Sample]) -> str:
    parts = [f"{key}={sample.configuration.get(key, '–')}" for key in differing(siblings)]
    if len({s.horizon for s in siblings}) > 1:
        parts.append(f"{sample.horizon} steps")
    return f"{sample.algorithm} ({', '.join(parts)})" if parts else sample.algorithm
