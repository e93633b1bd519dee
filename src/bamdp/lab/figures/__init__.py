"""Figures of a study's results, as Matplotlib figures and as PNG, SVG and PDF files.

:class:`Pictures` has those of a study, each with the name of its files and its caption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bamdp.lab.comparisons import Group, file_stem, groups, groups_in
from bamdp.lab.figures.curves import learning_curves, regret_curves, reward_against_time, reward_figure
from bamdp.lab.figures.parameters import ablation_curves, heat_maps, same_horizon
from bamdp.lab.figures.style import COLOURS, FIGURE_FORMATS, STYLE, looks, save_figure
from bamdp.lab.results import TUNE, Results, Sample, differing_parameters, samples_by_algorithm
from bamdp.lab.tables.evaluation import incomplete_note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "FIGURE_FORMATS",
    "STYLE",
    "Picture",
    "Pictures",
    "looks",
    "reward_figure",
    "save_figure",
]

BANDS_CAPTION = "Lines are means over runs, bands pointwise 95% bootstrap intervals of the mean."
MOVING_AVERAGE_CAPTION = (
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
        self.looks = looks(results.algorithms)
        self.warning = results.warning

    def overview(self) -> Iterator[Picture]:
        """Yield the figure of all environments side by side."""
        shown = [group for group in groups(self.results) if group.leading]
        if len(shown) > 1:
            yield self.learning("learning", MOVING_AVERAGE_CAPTION, shown)

    def learning(self, stem: str, words: str, shown: Sequence[Group]) -> Picture:
        """Return the learning curves of groups side by side, and what is to be said of them."""
        caption = " ".join(filter(None, [words, BANDS_CAPTION, incomplete_note(shown)]))
        return Picture(stem, caption, lambda: learning_curves(shown, self.looks, warning=self.warning))

    def environment(self, environment: str) -> Iterator[Picture]:
        """Yield learning curves, regret and reward against time, for each horizon of an environment."""
        for group in groups_in(self.results, environment):
            if group.leading:
                yield from self._group(group)

    def tuning(self, environment: str) -> Iterator[Picture]:
        """Yield maps of pairs of parameters for each algorithm, and curves of each parameter."""
        tuned = self.results.select(TUNE, environment)
        for algorithm, samples in samples_by_algorithm(tuned).items():
            tried = same_horizon(samples)
            if len(differing_parameters(tried)) > 1:
                yield Picture(
                    file_stem(f"map_{environment}_{algorithm}"),
                    f"{environment}, {algorithm}: mean total reward in tuning over pairs of parameters; where others "
                    "vary, too, the mean over their values, as written above each map. ★ the chosen configuration, × "
                    "where all were excluded.",
                    partial(heat_maps, tried, warning=self.warning),
                )
        yield from self._ablations(tuned, f"tuning_{file_stem(environment)}", None)

    def _group(self, group: Group) -> Iterator[Picture]:
        what = f"{group.label}: {MOVING_AVERAGE_CAPTION[0].lower()}{MOVING_AVERAGE_CAPTION[1:]}"
        yield self.learning(f"learning_{group.stem}", what, [group])
        known = group.ceilings
        if known:
            long_run = known.gain is not None
            against = "the optimal average reward per step" if long_run else "the optimum over the horizon"
            bands = f"{BANDS_CAPTION} {incomplete_note([group])}".strip()
            yield Picture(
                f"regret_{group.stem}",
                f"{group.label}: regret against the optimum of the known model ({against}); lower is better. {bands}",
                lambda: regret_curves([group], self.looks, warning=self.warning),
            )
        yield Picture(
            f"time_{group.stem}",
            f"{group.label}: total reward against processor time per step, with bootstrap 95% intervals. The dotted "
            "line is the Pareto front: no other is both faster and better than those on it.",
            lambda: reward_against_time(
                group, self.looks, tried=self.results.select(TUNE), warning=self.warning
            ),
        )
        yield from self._ablations(group.samples, f"ablation_{group.stem}", known.optimum if known else None)

    def _ablations(self, samples: tuple[Sample, ...], stem: str, optimum: float | None) -> Iterator[Picture]:
        """Yield a figure for each parameter that some algorithm varies."""
        varied_by: dict[str, list[Sample]] = {}  # parameter: samples of the algorithms that vary it
        for members in samples_by_algorithm(same_horizon(samples)).values():
            for name in differing_parameters(members):
                varied_by.setdefault(name, []).extend(members)
        for name, varied in varied_by.items():
            yield Picture(
                f"{stem}_{file_stem(name)}",
                f"{samples[0].environment}: total reward over {name}, with 95% bootstrap bands; where other "
                "parameters vary, too, the mean over their values.",
                partial(ablation_curves, varied, name, self.looks, optimum=optimum, warning=self.warning),
            )
