"""What parameters do: heat maps of two, curves of one.

Where more parameters vary than are shown, a place in the figure is the mean over the configurations that share it, and
the figure says over which. Only configurations of one horizon are shown together: that with the most of them. Where a
parameter of a part is not in all of them (``prior.beta`` where some have the flat prior), the part and its parameters
are one: ``sparse beta=6``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.figures import style
from bamdp.lab.figures.labels import label_ends
from bamdp.lab.figures.style import Look
from bamdp.lab.results import Sample, differing
from bamdp.lab.statistics import band
from bamdp.lab.tables.table import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MAPS = 6
LISTED = 5  # parameters named above a figure; a longer line would squeeze it
LIGHT, DARK = "#fefefe", "#101010"  # letters on a map, which stays as it is on a dark page


def comparable(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Those with runs of the horizon that most of them have; of equals, the longer."""
    held = [sample for sample in samples if sample.runs]
    counts = Counter(sample.horizon for sample in held)
    if not counts:
        return ()
    horizon = max(counts, key=lambda steps: (counts[steps], steps))
    return _whole_parts([sample for sample in held if sample.horizon == horizon])


def _whole_parts(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """With a part and its parameters in one, where not all samples have the same parameters of it."""
    keys = dict.fromkeys(key for sample in samples for key in sample.configuration)
    varied = differing(samples)
    for part in dict.fromkeys(key.partition(".")[0] for key in keys if "." in key):
        own = [key for key in keys if key.startswith(f"{part}.")]
        if part in keys and not all(key in sample.configuration for sample in samples for key in own):
            shown = [key for key in own if key in varied]
            samples = [_with_part(sample, part, own, shown) for sample in samples]
    return tuple(samples)


def _with_part(sample: Sample, part: str, own: Sequence[str], shown: Sequence[str]) -> Sample:
    found = sample.configuration
    words = [f"{key.partition('.')[2]}={_short(found[key])}" for key in shown if key in found]
    kept = {key: value for key, value in found.items() if key not in own}
    return replace(sample, configuration={**kept, part: " ".join([str(found.get(part, "")), *words]).strip()})


def values_of(samples: Sequence[Sample], parameter: str) -> list[Any]:
    """The distinct values of a parameter, numbers in order, words as they come."""
    found = list(dict.fromkeys(s.configuration[parameter] for s in samples if parameter in s.configuration))
    return sorted(found) if all(_is_number(value) for value in found) else found


def heat_maps(
    samples: Sequence[Sample], *, parameters: tuple[str, str] | None = None, warning: str = ""
) -> Figure:
    """Mean total reward over two parameters, of one algorithm's configurations; by default a map for each pair.

    The star marks the chosen configuration's place, a cross places where every configuration is excluded.
    """
    shown = comparable(samples)
    pairs = [parameters] if parameters else list(combinations(differing(shown), 2))[:MAX_MAPS]
    if not pairs:
        raise ValueError("a heat map needs two parameters that vary; use ablation_curves for one")
    grids = [_grid(shown, *pair) for pair in pairs]
    low, high = min(np.nanmin(grid) for grid in grids), max(np.nanmax(grid) for grid in grids)
    with style.sheet(len(pairs), (3.5, 3.1)) as (figure, all_axes):
        for axes, pair, grid in zip(all_axes, pairs, grids):
            image = _map(axes, shown, pair, grid, (low, high))
        bar = figure.colorbar(image, ax=all_axes, shrink=0.85, pad=0.02)
        bar.set_label(f"total reward, {shown[0].horizon} steps", fontsize=8)
        bar.outline.set_visible(False)
        figure.suptitle(_heading(shown, "\n" if len(pairs) == 1 else " "), fontsize=10, x=0.01, ha="left")
        style.warn(figure, warning)
    return figure


def ablation_curves(
    samples: Sequence[Sample],
    parameter: str,
    looks: Mapping[str, Look],
    *,
    optimum: float | None = None,
    warning: str = "",
) -> Figure:
    """Mean total reward over one parameter of one environment, a line with its 95% band for each algorithm."""
    shown = [sample for sample in comparable(samples) if parameter in sample.configuration]
    values = values_of(shown, parameter)
    places = (
        np.array(values, float) if all(_is_number(v) for v in values) else np.arange(len(values), dtype=float)
    )
    with style.sheet() as (figure, (axes,)):
        ends = []
        for algorithm in dict.fromkeys(sample.algorithm for sample in shown):
            own = [sample for sample in shown if sample.algorithm == algorithm]
            ends.append(_ablation_line(axes, own, parameter, dict(zip(values, places)), looks[algorithm]))
        _value_axis(axes, values, places)
        if optimum is not None:
            style.level(axes, optimum, "optimum, model known")
        axes.set(xlabel=parameter, ylabel=f"total reward, {shown[0].horizon} steps")
        style.title(axes, shown[0].environment, _over(shown, (parameter,)))
        label_ends(axes, ends, 2.8)
        style.warn(figure, warning)
    return figure


def _heading(samples: Sequence[Sample], between: str) -> str:
    runs = style.runs_text(sample.runs for sample in samples)
    where = f"{samples[0].environment}, {samples[0].algorithm}:"
    return f"{where}{between}{runs} a configuration; ★ chosen, × excluded"


def _grid(samples: Sequence[Sample], rows: str, columns: str) -> NDArray[np.float64]:
    down, across = values_of(samples, rows), values_of(samples, columns)
    grid = np.full((len(down), len(across)), np.nan)
    for i, j in np.ndindex(grid.shape):
        held = _at(samples, {rows: down[i], columns: across[j]})
        if held:
            grid[i, j] = np.mean([sample.totals.mean() for sample in held])
    return grid


def _at(samples: Sequence[Sample], place: Mapping[str, Any]) -> list[Sample]:
    return [
        s
        for s in samples
        if all(key in s.configuration and s.configuration[key] == v for key, v in place.items())
    ]


def _map(
    axes: Axes,
    samples: Sequence[Sample],
    pair: tuple[str, str],
    grid: NDArray[np.float64],
    limits: tuple[float, float],
) -> Any:
    down, across = (values_of(samples, name) for name in pair)
    image = axes.imshow(grid, cmap="cividis", vmin=limits[0], vmax=limits[1], aspect="auto", origin="lower")
    middle = np.mean(limits)
    for (i, j), value in np.ndenumerate(grid):
        held = _at(samples, {pair[0]: down[i], pair[1]: across[j]})
        if held:
            mark = " ★" if any(s.chosen for s in held) else " ×" if all(s.excluded for s in held) else ""
            colour = LIGHT if value < middle else DARK
            axes.text(j, i, f"{significant(value)}{mark}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(across)), [_short(v) for v in across])
    axes.set_yticks(range(len(down)), [_short(v) for v in down])
    axes.set(xlabel=pair[1], ylabel=pair[0])
    axes.grid(False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(_over(samples, pair), fontsize=7.5, fontweight="normal", color=style.GREY)
    return image


def _over(samples: Sequence[Sample], shown: Sequence[str]) -> str:
    """What the means are over."""
    by_algorithm = [
        [s for s in samples if s.algorithm == a] for a in dict.fromkeys(s.algorithm for s in samples)
    ]
    others = dict.fromkeys(key for own in by_algorithm for key in differing(own) if key not in shown)
    if not others:
        return style.runs_text(s.runs for s in samples)
    listed = list(others)
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"mean over {', '.join(listed[:LISTED])}{more}"


def _ablation_line(
    axes: Axes, samples: Sequence[Sample], parameter: str, places: Mapping[Any, float], look: Look
) -> tuple[str, float, str]:
    own = [value for value in places if _at(samples, {parameter: value})]
    x = np.array([places[value] for value in own])
    totals = [_mean_over_configurations(_at(samples, {parameter: value})) for value in own]
    mean = np.array([held.mean() for held in totals])
    low, high = np.array([np.concatenate(band(held[:, None])) for held in totals]).T
    axes.plot(
        x,
        mean,
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        markersize=4,
        linewidth=1.4,
        zorder=3,
    )
    axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
    return samples[0].algorithm, float(mean[-1]), look.colour


def _mean_over_configurations(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """A total for each replicate that all of them have (they share its luck); of one sample simply its totals."""
    common = set.intersection(*(set(sample.replicates.tolist()) for sample in samples))
    if not common:
        return np.array([np.mean([sample.totals.mean() for sample in samples])])
    return np.mean([sample.totals[_rows(sample, sorted(common))] for sample in samples], axis=0)


def _rows(sample: Sample, replicates: list[int]) -> list[int]:
    place = {number: row for row, number in enumerate(sample.replicates.tolist())}
    return [place[number] for number in replicates]


def _value_axis(axes: Axes, values: Sequence[Any], places: NDArray[np.float64]) -> None:
    from matplotlib.ticker import NullLocator

    if places.min() > 0 and places.max() >= 8 * places.min() and _is_number(values[0]):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(places, [_short(value) for value in values])
    axes.margins(x=0.03)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
