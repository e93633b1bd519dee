"""Figures of the ablation: reward against the time of a step, and what prior and discount do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bamdp.lab.figures import style
from bamdp.lab.figures.curves import log_time_axis
from bamdp.lab.papers.sweeps import Point, points
from bamdp.lab.pictures import Picture
from bamdp.lab.results import Results
from bamdp.lab.statistics import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTLY = ("N", "M", "K", "H", "N-one-stage", "trade")  # what changes the time of a step
NAMES = {"N": "N policies", "M": "M samples", "K": "K steps", "H": "H stages", "N-one-stage": "N policies, one stage",
         "trade": "width against depth"}  # fmt: skip
BELIEFS = {
    "beta": "prior's sparsity β",
    "gamma": "discount γ",
    "M-one-stage": "samples M with one stage (M-one-stage)",
}
LOGARITHMIC = ("M-one-stage",)


def ablation_pictures(results: Results) -> list[Picture]:
    """Those for which there are runs."""
    costly = [e for e in results.environments if _any(results, e, COSTLY)]
    believing = [name for name in BELIEFS if any(_any(results, e, (name,)) for e in results.environments)]
    found = []
    if costly:
        caption = (
            "Total reward of DSS-PI against processor time of a step: each line changes one parameter, its values "
            "beside the points; the ring is Appendix C's configuration. Bars: standard errors."
        )
        found.append(Picture("ablation", caption, lambda: _against_time(results, costly)))
    if believing:
        caption = (
            "DSS-PI with Appendix C's N, M, K and H: total reward as a share of the known-model optimum over the "
            "same steps, against the prior's sparsity and the discount; and against the number of samples with one "
            "stage, a sparser prior and a longer view. Bars: standard errors."
        )
        found.append(Picture("ablation_beliefs", caption, lambda: _beliefs(results, believing)))
    return found


def _against_time(results: Results, environments: Sequence[str]) -> Figure:
    looks = style.looks(COSTLY)
    with style.new_figure(len(environments), (4.6, 4.4)) as (figure, panels):
        for axes, environment in zip(panels, environments):
            for sweep in COSTLY:
                _line(axes, _of(results, environment, sweep), sweep, looks[sweep])
            _ring(axes, points(results, environment))
            log_time_axis(axes)
            axes.set(xlabel="processor time of a step, ms (log)", ylabel="total reward")
            axes.margins(x=0.1)
            style.add_title(axes, environment, _facts(results, environment))
        style.add_legend_below(figure, panels, results.warning)
    return figure


def _facts(results: Results, environment: str) -> str:
    """Runs, steps and, as it is far above most of them, the optimum."""
    counts = [p.sample.runs for p in points(results, environment)]
    known = results.ceilings.get(environment)
    best = f"; optimum, model known: {known.optimum:.4g}" if known is not None else ""
    return f"{style.runs_range(counts)}, {results.horizon(environment)} steps each{best}"


def _line(axes: Axes, held: Sequence[Point], sweep: str, look: style.Look) -> None:
    """A sweep in the order of its values; trades have no order, so no line."""
    from matplotlib.patheffects import withStroke

    if not held:
        return
    line = "none" if sweep == "trade" else look.line
    axes.errorbar(
        [p.ms for p in held],
        [p.mean for p in held],
        yerr=[np.nan_to_num(standard_error(p.sample.totals)) for p in held],
        color=look.colour,
        linestyle=line,
        marker=look.marker,
        markersize=4,
        linewidth=1.2,
        elinewidth=0.8,
        label=NAMES[sweep],
        zorder=3,
    )
    for p in (p for p in held if not p.base):  # the base is in nearly all of them, and has its ring
        axes.annotate(
            p.label,
            (p.ms, p.mean),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=6.5,
            color=look.colour,
            zorder=5,
            path_effects=[withStroke(linewidth=1.6, foreground=style.PAPER_COLOUR)],
        )


def _ring(axes: Axes, held: Sequence[Point]) -> None:
    base = next((point for point in held if point.base), None)
    if base is not None:
        axes.plot(
            base.ms,
            base.mean,
            "o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor=style.TEXT_COLOUR,
            zorder=4,
            label="Appendix C",
            linestyle="none",
        )


def _beliefs(results: Results, names: Sequence[str]) -> Figure:
    looks = style.looks(results.environments)
    with style.new_figure(len(names), (4.6, 3.4)) as (figure, panels):
        for axes, name in zip(panels, names):
            for environment in results.environments:
                known, held = results.ceilings.get(environment), _of(results, environment, name)
                if known is None or not held:
                    continue
                look = looks[environment]
                axes.errorbar(
                    [float(p.value) for p in held],
                    [p.mean / known.optimum for p in held],
                    yerr=[np.nan_to_num(standard_error(p.sample.totals)) / known.optimum for p in held],
                    color=look.colour,
                    linestyle=look.line,
                    marker=look.marker,
                    markersize=4,
                    linewidth=1.3,
                    label=environment,
                )
            if name in LOGARITHMIC:
                log_time_axis(axes)
            axes.set(xlabel=BELIEFS[name], ylabel="share of the optimum")
            style.add_title(axes, BELIEFS[name])
        style.add_legend_below(figure, panels, results.warning)
    return figure


def _of(results: Results, environment: str, sweep: str) -> list[Point]:
    return [point for point in points(results, environment) if point.sweep == sweep]


def _any(results: Results, environment: str, sweeps: Sequence[str]) -> bool:
    return any(point.sweep in sweeps for point in points(results, environment))
