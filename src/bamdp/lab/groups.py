"""Samples that may stand beside each other: one environment, one phase, one horizon.

Every table column and every figure is of one group, so that runs of different length are never mixed. What is
computed of a group is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from bamdp.ceilings import Ceilings
from bamdp.lab import comparisons, statistics
from bamdp.lab.comparisons import LEVEL, Comparison
from bamdp.lab.results import EVALUATE, Results, Sample, names
from bamdp.lab.statistics import Summary

MANY = 8  # lines in one figure


@dataclass(frozen=True, eq=False)
class Group:
    """Comparable samples, and what is known of them."""

    environment: str
    horizon: int
    samples: tuple[Sample, ...]
    ceilings: Ceilings | None
    alone: bool  # whether the environment has this one horizon only

    @property
    def label(self) -> str:
        """The environment, with the steps where it has several horizons."""
        return self.environment if self.alone else f"{self.environment}, T={self.horizon}"

    @property
    def stem(self) -> str:
        """The same as part of a file's name."""
        return file_stem(self.label.replace(", ", "_").replace("=", ""))

    @cached_property
    def named(self) -> dict[str, Sample]:
        """The samples by labels that tell them apart."""
        return dict(zip(names(self.samples), self.samples))

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Of each sample's totals."""
        return {name: statistics.summarise(sample.totals) for name, sample in self.named.items()}

    @cached_property
    def compared(self) -> tuple[Comparison, ...]:
        """All pairs."""
        return comparisons.compare(self.samples)

    @cached_property
    def best(self) -> str | None:
        """The one with the highest mean."""
        return comparisons.best(self.samples)

    @cached_property
    def near_best(self) -> frozenset[str]:
        """The best and those that cannot be told from it."""
        return comparisons.not_distinguishable(self.samples, self.compared)

    @property
    def ranked(self) -> list[str]:
        """Labels by mean, the highest first; those without a run last."""
        return sorted(
            self.named, key=lambda name: (not self.named[name].runs, -self.summaries[name].mean.value)
        )

    @property
    def leading(self) -> dict[str, Sample]:
        """What a figure can show: all with runs, or if they are many the best configuration of each algorithm."""
        held = {name: self.named[name] for name in self.ranked if self.named[name].runs}
        if len(held) <= MANY:
            return {name: sample for name, sample in self.named.items() if sample.runs}
        first: dict[str, str] = {}
        for name, sample in held.items():
            first.setdefault(sample.algorithm, name)
        return {name: sample for name, sample in self.named.items() if name in first.values()}

    @property
    def blind(self) -> bool:
        """Whether so few runs are common to any two that no difference could pass the corrected test."""
        common = max((pair.runs for pair in self.compared), default=0)
        return (
            len(self.named) > 1
            and comparisons.least_p(common, len(self.compared)) * len(self.compared) > LEVEL
        )


def file_stem(words: str) -> str:
    """Words as a part of a file's name, on any system.

    Examples
    --------
    >>> file_stem("file:my model.npz")
    'file_my_model_npz'
    """
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in words)


@lru_cache(maxsize=4)
def groups(results: Results, phase: str = EVALUATE, algorithm: str | None = None) -> tuple[Group, ...]:
    """The groups of a phase, by environment in the study's order, the longest horizon first."""
    found = []
    for environment in results.environments:
        samples = results.select(phase, environment, algorithm)
        horizons = sorted({sample.horizon for sample in samples}, reverse=True)
        for horizon in horizons:
            members = tuple(sample for sample in samples if sample.horizon == horizon)
            known = results.ceilings_of(members[0])
            found.append(Group(environment, horizon, members, known, len(horizons) == 1))
    return tuple(found)
