"""Which figures a study's results call for, each with its name and caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bamdp.lab import figures
from bamdp.lab.figures.parameters import comparable
from bamdp.lab.groups import Group, file_stem, groups
from bamdp.lab.results import TUNE, Results, Sample, differing
from bamdp.lab.tables.notes import so_far_notes, warning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS = "Lines are means over runs, bands pointwise 95% bootstrap intervals of the mean."
SMOOTH = (
    "Moving average of the reward on a log time axis, over the number of steps in the axis label (over all steps "
    "so far as long as they are fewer)."
)


@dataclass(frozen=True)
class Picture:
    """A figure to be drawn."""

    stem: str  # of its files
    caption: str
    draw: Callable[[], Figure]


class Pictures:
    """The figures of one study; an algorithm looks the same in all of them."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.looks = figures.looks(results.algorithms)
        self.warning = warning(results)

    def overview(self) -> Iterator[Picture]:
        """All environments side by side."""
        shown = [group for group in groups(self.results) if _any_runs(group)]
        if len(shown) > 1:
            caption = " ".join([SMOOTH, BANDS, *so_far_notes(shown)])
            yield Picture("learning", caption, lambda: self._learning(shown))

    def environment(self, environment: str) -> Iterator[Picture]:
        """Learning, regret and what time buys, for each horizon of an environment."""
        for group in groups(self.results):
            if group.environment == environment and _any_runs(group):
                yield from self._group(group)

    def tuning(self, environment: str) -> Iterator[Picture]:
        """Maps of pairs of parameters for each algorithm, and curves of each parameter."""
        tuned = self.results.select(TUNE, environment)
        for algorithm in dict.fromkeys(sample.algorithm for sample in tuned):
            own = comparable([sample for sample in tuned if sample.algorithm == algorithm])
            if len(differing(own)) > 1:
                yield self._heat(own)
        yield from self._ablations(tuned, f"tuning_{file_stem(environment)}", None)

    def _group(self, group: Group) -> Iterator[Picture]:
        bands = " ".join([BANDS, *so_far_notes([group])])
        yield Picture(
            f"learning_{group.stem}",
            f"{group.label}: {SMOOTH[0].lower()}{SMOOTH[1:]} {bands}",
            lambda: self._learning([group]),
        )
        if group.ceilings:
            against = (
                "the best average reward a step"
                if group.ceilings.gain is not None
                else "the optimum over the horizon"
            )
            yield Picture(
                f"regret_{group.stem}",
                f"{group.label}: regret against one who knows the model ({against}); lower is better. {bands}",
                lambda: figures.regret_curves([group], self.looks, warning=self.warning),
            )
        yield Picture(
            f"time_{group.stem}",
            f"{group.label}: total reward against processor time of a step, with bootstrap 95% intervals. The dotted "
            "line is the Pareto front: nobody is both faster and better than those on it.",
            lambda: figures.reward_against_time(
                group, self.looks, tried=self.results.select(TUNE), warning=self.warning
            ),
        )
        optimum = group.ceilings.optimum if group.ceilings else None
        yield from self._ablations(group.samples, f"ablation_{group.stem}", optimum)

    def _learning(self, shown: list[Group]) -> Figure:
        return figures.learning_curves(shown, self.looks, warning=self.warning)

    def _heat(self, own: tuple[Sample, ...]) -> Picture:
        where = f"{own[0].environment}, {own[0].algorithm}"
        return Picture(
            file_stem(f"map_{own[0].environment}_{own[0].algorithm}"),
            f"{where}: mean total reward in tuning over pairs of parameters; where others vary, too, the mean over "
            "their values, as written above each map. ★ the chosen configuration, × where all were excluded.",
            lambda: figures.heat_maps(own, warning=self.warning),
        )

    def _ablations(self, samples: tuple[Sample, ...], stem: str, optimum: float | None) -> Iterator[Picture]:
        """A figure for each parameter that some algorithm varies."""
        shown = comparable(samples)
        own = [[s for s in shown if s.algorithm == a] for a in dict.fromkeys(s.algorithm for s in shown)]
        for name in dict.fromkeys(key for held in own for key in differing(held)):
            varied = [sample for held in own if name in differing(held) for sample in held]
            yield Picture(
                f"{stem}_{file_stem(name)}",
                f"{samples[0].environment}: total reward over {name}, with 95% bootstrap bands; where other "
                "parameters vary, too, the mean over their values.",
                lambda varied=varied, name=name: figures.ablation_curves(  # type: ignore[misc]
                    varied, name, self.looks, optimum=optimum, warning=self.warning
                ),
            )


def _any_runs(group: Group) -> bool:
    return any(sample.runs for sample in group.samples)
