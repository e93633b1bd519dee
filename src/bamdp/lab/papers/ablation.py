"""The ablation: what each parameter of DSS does around Appendix C's values, and what it costs.

A *sweep* is an algorithm's label in ``dss2020/ablation``; the *base* is Appendix C's configuration in an environment,
which most sweeps contain. Every configuration is compared with the base on common random numbers, by the sign-flip test
of :mod:`bamdp.lab.comparisons`, with Holm's correction over all configurations of the environment.

A *trend* is one half of a sweep, from its smallest value up to the base or from there to its largest. A sweep that
rises up to the base and not beyond has its plateau there. For sweeps that do not contain the base, the middle value
takes its place. That value is fixed beforehand: if it were the best of the sweep, chance alone would make the others
look worse. The ends are taken from the study, not from what has been run so far; a half without them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bamdp.lab.comparisons import SIGNIFICANCE_LEVEL, differences, file_stem, holm, sign_flip_p
from bamdp.lab.figures import Picture, style
from bamdp.lab.figures.curves import log_time_axis
from bamdp.lab.reading import paper_cells
from bamdp.lab.results import EVALUATE, Results, Sample
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    decimals,
    make_table,
    mean_cell,
    parameters_text,
    rules_between,
    value_interval_cell,
)
from bamdp.statistics import Estimate, estimate, standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SWEPT_PARAMETERS = {
    "N": "n_policies",
    "M": "n_samples",
    "K": "n_steps",
    "H": "n_stages",
    "N-one-stage": "n_policies",
    "M-one-stage": "n_samples",
    "leaf": "leaf",
    "prior": "prior",
    "beta": "prior.beta",
    "gamma": "discount",
    "trials": "generator.n_trials",
    "depth": "generator.depth",
    "bound": "generator.bound",
}
SHAPE_PARAMETERS = ("n_policies", "n_samples", "n_steps", "n_stages")
PLANNER_DEFAULTS = {"leaf": "zero"}  # what dss2020/published leaves to the planner
ORDERED_SWEEPS = ("N", "M", "K", "H", "N-one-stage", "M-one-stage", "trials", "depth")  # that have trends
RISES, FALLS, NO_DIFFERENCE = "rises", "falls", "no difference seen"
PERHAPS_RISES, PERHAPS_FALLS = "perhaps rises", "perhaps falls"
UP_TO, BEYOND = "up to", "beyond"
TIME_SWEEPS = {
    "N": "N policies",
    "M": "M samples",
    "K": "K steps",
    "H": "H stages",
    "N-one-stage": "N policies, one stage",
    "trade": "width against depth",
    "trials": "trials of RTDP",
}  # what changes the time per step, with the names in the figure
BELIEF_SWEEPS = {
    "beta": "prior's sparsity β",
    "gamma": "discount γ",
    "M-one-stage": "samples M with one stage (M-one-stage)",
}
LOGARITHMIC_SWEEPS = ("M-one-stage",)
BASE_NOTE = (
    "Bold: Appendix C's configuration. Difference to it on common replicates, with the bootstrap 95% interval of that "
    "pair. Different: paired sign-flip test, Holm's correction over all configurations of the environment, 5%."
)
TREND_NOTE = (
    "Paired on common random numbers, bootstrap 95% interval. Verdict: sign-flip test, Holm's correction over all "
    "rows, 5%; perhaps: only the interval, which is not corrected for the number of rows, excludes 0."
)


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One configuration of a sweep."""

    sweep: str
    sample: Sample
    value: Any  # of the parameter that the sweep changes; for trades (N, M, K, H) as text
    is_base: bool
    minus_base: Estimate  # mean paired difference to the base; NaN without common runs
    different: bool

    @property
    def label(self) -> str:
        """The value as short text."""
        return f"{self.value:g}" if isinstance(self.value, int | float) else str(self.value)


@lru_cache(maxsize=8)
def sweep_points(results: Results, environment: str) -> tuple[SweepPoint, ...]:
    """Return the complete configurations of an environment, sweep by sweep, each in the order of its values."""
    evaluated = [s for s in results.select(EVALUATE, environment) if s.complete and s.runs]
    samples = [(s, full_configuration(s.configuration)) for s in evaluated]
    home = base_configuration(environment)
    base = next((s for s, whole in samples if whole == home), None)
    # Sweeps share configurations, each of which is tested once.
    others = {repr(whole): s for s, whole in samples if whole != home}
    gaps = {key: differences(s, base) for key, s in others.items()} if base is not None else {}
    adjusted = dict(zip(gaps, holm([sign_flip_p(gap, len(gaps)) for gap in gaps.values()])))
    points = []
    for sample, whole in samples:
        key = repr(whole)
        points.append(
            SweepPoint(
                sample.algorithm,
                sample,
                swept_value(sample.algorithm, sample.configuration),
                whole == home,
                estimate(np.mean, gaps[key]) if key in gaps else Estimate(np.nan, np.nan, np.nan),
                bool(key in gaps and adjusted[key] <= SIGNIFICANCE_LEVEL),
            )
        )
    return tuple(points)


def base_configuration(environment: str) -> Mapping[str, Any]:
    """Return Appendix C's configuration of DSS-PI."""
    return full_configuration(paper_cells("dss2020/published")[environment, "dss-pi"].configurations[0])


def full_configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with what sweeps leave to the planner, so that equal ones compare equal."""
    return dict(sorted({**PLANNER_DEFAULTS, **configuration}.items()))


def swept_value(sweep: str, configuration: Mapping[str, Any]) -> Any:
    """Return the value of the parameter that a sweep changes, or (N, M, K, H) as text if it changes several."""
    whole = full_configuration(configuration)
    if sweep in SWEPT_PARAMETERS:
        return whole.get(SWEPT_PARAMETERS[sweep])
    return "(" + ",".join(str(whole[key]) for key in SHAPE_PARAMETERS) + ")"


@dataclass(frozen=True, eq=False)
class Trend:
    """One half of a sweep: from its smallest value up to the reference, or from there to its largest."""

    environment: str
    sweep: str
    half: str
    low: str
    high: str
    difference: Estimate  # high − low, paired
    different: bool  # with Holm's correction over all trends

    @property
    def word(self) -> str:
        """Rises or falls; perhaps so if only the interval says it; or no difference seen."""
        if self.different:
            return RISES if self.difference.value > 0 else FALLS
        if self.difference.low <= 0 <= self.difference.high:
            return NO_DIFFERENCE
        return PERHAPS_RISES if self.difference.low > 0 else PERHAPS_FALLS


def sweep_trends(results: Results) -> list[Trend]:
    """Return the trends of all ordered sweeps whose ends have been run."""
    halves = [half for environment in results.environments for half in _halves(results, environment)]
    gaps = [differences(high.sample, low.sample) for _, low, high in halves]
    adjusted = holm([sign_flip_p(gap, len(gaps)) for gap in gaps])
    return [
        Trend(
            low.sample.environment,
            low.sweep,
            half,
            low.label,
            high.label,
            estimate(np.mean, gap),
            bool(p <= SIGNIFICANCE_LEVEL),
        )
        for (half, low, high), gap, p in zip(halves, gaps, adjusted)
    ]


def _halves(results: Results, environment: str) -> Iterator[tuple[str, SweepPoint, SweepPoint]]:
    """Iterate over the halves of all sweeps: which half, its lower end, its upper end."""
    base = base_configuration(environment)
    for sweep in ORDERED_SWEEPS:
        cell = paper_cells("dss2020/ablation").get((environment, sweep))
        planned = [] if cell is None else [full_configuration(one) for one in cell.configurations]
        values = sorted(swept_value(sweep, configuration) for configuration in planned)
        if len(values) < 2:
            continue
        run = {point.value: point for point in _points_of(results, environment, sweep)}
        middle = swept_value(sweep, base) if base in planned else values[len(values) // 2]
        for half, low, high in ((UP_TO, values[0], middle), (BEYOND, middle, values[-1])):
            if low != high and {low, high} <= set(run):
                yield half, run[low], run[high]


def ablation_tables(results: Results) -> list[ResultTable]:
    """Return a table of all configurations for each environment."""
    made = []
    for environment in results.environments:
        points = sweep_points(results, environment)
        shown = decimals(standard_error(point.sample.totals) for point in points)
        made.append(
            make_table(
                f"ablation_{file_stem(environment)}",
                f"{environment}, {results.horizon(environment)} steps: DSS around Appendix C's values",
                (
                    "sweep",
                    "value",
                    "runs",
                    "total reward",
                    "ms/step",
                    "difference to Appendix C",
                    "different",
                ),
                [_configuration_row(point, shown) for point in points],
                (f"Appendix C: {parameters_text(base_configuration(environment))}.", BASE_NOTE),
                "llrrrrl",
                rules_between([point.sweep for point in points]),
                results.warning,
            )
        )
    return made


def _configuration_row(point: SweepPoint, shown: int) -> tuple[Entry, ...]:
    sample = point.sample
    total = mean_cell(sample.totals, shown, point.is_base)
    difference: Entry = value_interval_cell(point.minus_base, shown)
    if point.is_base:
        difference = "Appendix C"
    word = ("better" if point.minus_base.value > 0 else "worse") if point.different else ""
    return point.sweep, point.label, sample.runs, total, sample.mean_ms, difference, word


def trend_tables(results: Results) -> list[ResultTable]:
    """Return a table of the trends, if there are any."""
    rows = [
        (
            t.environment,
            t.sweep,
            t.half,
            f"{t.high} less {t.low}",
            value_interval_cell(t.difference, 2),
            t.word,
        )
        for t in sweep_trends(results)
    ]
    title = (
        "Does more of it pay, up to Appendix C's value (of sweeps without it: the middle one), and beyond?"
    )
    header = ("environment", "sweep", "range", "compared", "difference of totals", "verdict")
    table = make_table("trends", title, header, rows, [TREND_NOTE], "lllrrl", warning=results.warning)
    return [table] if rows else []


def ablation_pictures(results: Results) -> list[Picture]:
    """Return the ablation's figures for which there are runs."""
    timed = [e for e in results.environments if any(_points_of(results, e, s) for s in TIME_SWEEPS)]
    beliefs = [s for s in BELIEF_SWEEPS if any(_points_of(results, e, s) for e in results.environments)]
    pictures = []
    if timed:
        caption = (
            "Total reward of DSS-PI against processor time per step: each line changes one parameter, its values "
            "beside the points (trials: of DSS-RTDP); the ring is Appendix C's configuration. Bars: standard errors."
        )
        pictures.append(Picture("ablation", caption, lambda: _time_figure(results, timed)))
    if beliefs:
        caption = (
            "DSS-PI with Appendix C's N, M, K and H: total reward as a share of the known-model optimum over the "
            "same steps, against the prior's sparsity and the discount; and against the number of samples with one "
            "stage, a sparser prior and a larger discount. Bars: standard errors."
        )
        pictures.append(Picture("ablation_beliefs", caption, lambda: _belief_figure(results, beliefs)))
    return pictures


def _time_figure(results: Results, environments: Sequence[str]) -> Figure:
    """Draw total reward against time per step, a panel for each environment."""
    looks = style.looks(TIME_SWEEPS)
    with style.new_figure(len(environments), (4.6, 4.4)) as (figure, panels):
        for axes, environment in zip(panels, environments):
            for sweep in TIME_SWEEPS:
                _draw_sweep(axes, _points_of(results, environment, sweep), sweep, looks[sweep])
            _mark_base(axes, sweep_points(results, environment))
            log_time_axis(axes)
            axes.set(xlabel="processor time per step, ms (log)", ylabel="total reward")
            axes.margins(x=0.1)
            style.add_title(axes, environment, _panel_note(results, environment))
        style.add_legend_below(figure, panels, results.warning)
    return figure


def _panel_note(results: Results, environment: str) -> str:
    """Say how many runs and steps there are and, as it is far above most points, what the optimum is."""
    counts = [point.sample.runs for point in sweep_points(results, environment)]
    known = results.ceilings.get(environment)
    optimum = f"; optimum, model known: {known.optimum:.4g}" if known is not None else ""
    return f"{style.runs_range(counts)}, {results.horizon(environment)} steps each{optimum}"


def _draw_sweep(axes: Axes, points: Sequence[SweepPoint], sweep: str, look: style.Look) -> None:
    """Draw a sweep as a line in the order of its values; trades have no order, so no line."""
    from matplotlib.patheffects import withStroke

    if not points:
        return
    line = replace(look, line="none") if sweep == "trade" else look
    times = [point.sample.mean_ms for point in points]
    label = TIME_SWEEPS[sweep]
    _draw_points(axes, times, points, 1.0, line, linewidth=1.2, elinewidth=0.8, label=label, zorder=3)
    stroke = [withStroke(linewidth=1.6, foreground=style.PAPER_COLOUR)]
    text: dict[str, Any] = {"fontsize": 6.5, "color": look.colour, "zorder": 5, "path_effects": stroke}
    for point in points:
        if not point.is_base:  # the base is in nearly all sweeps, and has its ring
            place = point.sample.mean_ms, point.sample.mean_total
            axes.annotate(point.label, place, xytext=(3, 3), textcoords="offset points", **text)


def _draw_points(
    axes: Axes, x: list[float], points: Sequence[SweepPoint], unit: float, look: style.Look, **options: Any
) -> None:
    """Draw the mean totals in some unit, with their standard errors."""
    means = [point.sample.mean_total / unit for point in points]
    errors = [np.nan_to_num(standard_error(point.sample.totals)) / unit for point in points]
    shape: dict[str, Any] = {"linestyle": look.line, "marker": look.marker, "markersize": 4}
    axes.errorbar(x, means, yerr=errors, color=look.colour, **shape, **options)


def _mark_base(axes: Axes, points: Sequence[SweepPoint]) -> None:
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": style.TEXT_COLOUR, "zorder": 4}
    ring |= {"linestyle": "none", "markersize": 12, "label": "Appendix C"}
    for sample in [point.sample for point in points if point.is_base][:1]:
        axes.plot(sample.mean_ms, sample.mean_total, "o", **ring)


def _belief_figure(results: Results, sweeps: Sequence[str]) -> Figure:
    """Draw the share of the optimum against a parameter, a panel for each sweep."""
    looks = style.looks(results.environments)
    with style.new_figure(len(sweeps), (4.6, 3.4)) as (figure, panels):
        for axes, sweep in zip(panels, sweeps):
            for environment, look in looks.items():
                known, points = results.ceilings.get(environment), _points_of(results, environment, sweep)
                if known is not None and points:
                    values = [float(point.value) for point in points]
                    _draw_points(axes, values, points, known.optimum, look, linewidth=1.3, label=environment)
            if sweep in LOGARITHMIC_SWEEPS:
                log_time_axis(axes)
            axes.set(xlabel=BELIEF_SWEEPS[sweep], ylabel="share of the optimum")
            style.add_title(axes, BELIEF_SWEEPS[sweep])
        style.add_legend_below(figure, panels, results.warning)
    return figure


def _points_of(results: Results, environment: str, sweep: str) -> list[SweepPoint]:
    return [point for point in sweep_points(results, environment) if point.sweep == sweep]
