"""The effect of parameters on the reward: heat maps of two, curves of one.

Where more parameters vary than are shown, a value in the figure is the mean over the configurations that share it, and
the figure says over which. Only configurations of one horizon are shown together: that with the most of them. Where a
parameter of a component is not in all of them (``prior.beta`` where some have the flat prior), the component and its
parameters are shown as one: ``sparse beta=6``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.figures import style
from bamdp.lab.results import OPTIMUM_LABEL, Sample, differing_parameters, samples_by_algorithm
from bamdp.lab.tables.table import significant
from bamdp.statistics import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MAPS = 6
MAX_TITLE_PARAMETERS = 5  # parameters named above a figure; a longer line would squeeze it
LIGHT_TEXT, DARK_TEXT = "#fefefe", "#101010"  # letters on a map, which stays as it is on a dark page


def same_horizon(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the samples with runs of the horizon that most of them have; of equals, the longer."""
    matching = [sample for sample in samples if sample.runs]
    counts = Counter(sample.horizon for sample in matching)
    if not counts:
        return ()
    horizon = max(counts, key=lambda steps: (counts[steps], steps))
    return _join_components([sample for sample in matching if sample.horizon == horizon])


def _join_components(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return samples in which a component and its parameters are one, where not all have the same parameters of it."""
    keys = dict.fromkeys(key for sample in samples for key in sample.configuration)
    varied = differing_parameters(samples)
    for part in dict.fromkeys(key.partition(".")[0] for key in keys if "." in key):
        inner = [key for key in keys if key.startswith(f"{part}.")]
        if part in keys and not all(key in sample.configuration for sample in samples for key in inner):
            samples = [_join_component(sample, part, varied) for sample in samples]
    return tuple(samples)


def _join_component(sample: Sample, part: str, varied: Sequence[str]) -> Sample:
    """Return a sample with a component and those of its parameters that vary as one value."""
    kept, words = {}, [str(sample.configuration.get(part, ""))]
    for key, value in sample.configuration.items():
        head, dot, name = key.partition(".")
        if not (dot and head == part):
            kept[key] = value
        elif key in varied:
            words.append(f"{name}={_value_text(value)}")
    return replace(sample, configuration={**kept, part: " ".join(words).strip()})


def values_of(samples: Sequence[Sample], parameter: str) -> list[Any]:
    """Return the distinct values of a parameter, numbers in order, words as they come."""
    values = list(dict.fromkeys(s.configuration[parameter] for s in samples if parameter in s.configuration))
    return sorted(values) if all(_is_number(value) for value in values) else values


def heat_maps(
    samples: Sequence[Sample], *, parameters: tuple[str, str] | None = None, warning: str = ""
) -> Figure:
    """Draw the mean total reward over two parameters, of one algorithm's configurations; by default for each pair.

    The star marks the chosen configuration, a cross values at which every configuration is excluded.
    """
    shown = same_horizon(samples)
    pairs = [parameters] if parameters else list(combinations(differing_parameters(shown), 2))[:MAX_MAPS]
    if not pairs:
        raise ValueError("a heat map needs two parameters that vary; use ablation_curves for one")
    grids = [_mean_grid(shown, *pair) for pair in pairs]
    low, high = min(np.nanmin(grid) for grid in grids), max(np.nanmax(grid) for grid in grids)
    with style.new_figure(len(pairs), (3.5, 3.1)) as (figure, all_axes):
        for axes, pair, grid in zip(all_axes, pairs, grids):
            image = _draw_map(axes, shown, pair, grid, (low, high))
        bar = figure.colorbar(image, ax=all_axes, shrink=0.85, pad=0.02)
        bar.set_label(f"total reward, {shown[0].horizon} steps", fontsize=8)
        bar.outline.set_visible(False)
        figure.suptitle(_heading(shown, "\n" if len(pairs) == 1 else " "), fontsize=10, x=0.01, ha="left")
        style.add_warning(figure, warning)
    return figure


def draw_heat_map(axes: Axes, samples: Sequence[Sample], pair: tuple[str, str]) -> None:
    """Draw the map of one pair of parameters on axes, with a title."""
    shown = same_horizon(samples)
    grid = _mean_grid(shown, *pair)
    _draw_map(axes, shown, pair, grid, (float(np.nanmin(grid)), float(np.nanmax(grid))))
    note = f"mean total reward of {shown[0].horizon} steps, {_means_note(shown, pair)}; ★ chosen, × excluded"
    style.add_title(axes, f"{shown[0].algorithm} in {shown[0].environment}", note)


def ablation_curves(
    samples: Sequence[Sample],
    parameter: str,
    looks: Mapping[str, style.Look],
    *,
    optimum: float | None = None,
    warning: str = "",
) -> Figure:
    """Draw the mean total reward over one parameter of one environment, with a 95% band for each algorithm."""
    with style.new_figure() as (figure, (axes,)):
        draw_ablation(axes, samples, parameter, looks, optimum)
        style.add_warning(figure, warning)
    return figure


def draw_ablation(
    axes: Axes,
    samples: Sequence[Sample],
    parameter: str,
    looks: Mapping[str, style.Look],
    optimum: float | None = None,
) -> None:
    """Draw the curves of one parameter on axes, with labels beside them and a title."""
    shown = [sample for sample in same_horizon(samples) if parameter in sample.configuration]
    values = values_of(shown, parameter)
    numbers = all(_is_number(value) for value in values)
    places = np.array(values if numbers else range(len(values)), float)
    ends = [
        _ablation_line(axes, members, parameter, dict(zip(values, places)), looks[algorithm])
        for algorithm, members in samples_by_algorithm(shown).items()
    ]
    _value_axis(axes, values, places)
    if optimum is not None:
        style.add_level_line(axes, optimum, OPTIMUM_LABEL)
    axes.set(xlabel=parameter, ylabel=f"total reward, {shown[0].horizon} steps")
    style.add_title(axes, shown[0].environment, _means_note(shown, (parameter,)))
    style.label_ends(axes, ends, 2.8)


def _heading(samples: Sequence[Sample], between: str) -> str:
    runs = style.runs_range(sample.runs for sample in samples)
    where = f"{samples[0].environment}, {samples[0].algorithm}:"
    return f"{where}{between}{runs} a configuration; ★ chosen, × excluded"


def _mean_grid(samples: Sequence[Sample], rows: str, columns: str) -> NDArray[np.float64]:
    down, across = values_of(samples, rows), values_of(samples, columns)
    grid = np.full((len(down), len(across)), np.nan)
    for i, j in np.ndindex(grid.shape):
        matching = _samples_with(samples, {rows: down[i], columns: across[j]})
        if matching:
            grid[i, j] = np.mean([sample.mean_total for sample in matching])
    return grid


def _samples_with(samples: Sequence[Sample], values: Mapping[str, Any]) -> list[Sample]:
    return [s for s in samples if values.items() <= s.configuration.items()]


def _draw_map(
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
        matching = _samples_with(samples, {pair[0]: down[i], pair[1]: across[j]})
        if matching:
            excluded = all(s.excluded for s in matching)
            mark = " ★" if any(s.chosen for s in matching) else " ×" if excluded else ""
            colour = LIGHT_TEXT if value < middle else DARK_TEXT
            axes.text(j, i, f"{significant(value)}{mark}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(across)), [_value_text(v) for v in across])
    axes.set_yticks(range(len(down)), [_value_text(v) for v in down])
    axes.set(xlabel=pair[1], ylabel=pair[0])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(_means_note(samples, pair), fontsize=7.5, fontweight="normal", color=style.GREY_COLOUR)
    return image


def _means_note(samples: Sequence[Sample], shown: Sequence[str]) -> str:
    """Return the note that says over which parameters the means are."""
    by_algorithm = samples_by_algorithm(samples).values()
    varied = dict.fromkeys(key for members in by_algorithm for key in differing_parameters(members))
    listed = [key for key in varied if key not in shown]
    if not listed:
        return style.runs_range(s.runs for s in samples)
    more = f" and {len(listed) - MAX_TITLE_PARAMETERS} more" if len(listed) > MAX_TITLE_PARAMETERS else ""
    return f"mean over {', '.join(listed[:MAX_TITLE_PARAMETERS])}{more}"


def _ablation_line(
    axes: Axes, samples: Sequence[Sample], parameter: str, places: Mapping[Any, float], look: style.Look
) -> tuple[str, float, str]:
    present = [value for value in places if _samples_with(samples, {parameter: value})]
    x = np.array([places[value] for value in present])
    totals = [_mean_over_configurations(_samples_with(samples, {parameter: value})) for value in present]
    mean = np.array([array.mean() for array in totals])
    ends = np.array([np.concatenate(band(array[:, None])) for array in totals]).T
    style.draw_line(axes, x, mean, ends, look, marker=look.marker, markersize=4)
    return samples[0].algorithm, float(mean[-1]), look.colour


def _mean_over_configurations(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Return a total for each replicate that all samples have (common random numbers); of one sample its totals."""
    common = reduce(np.intersect1d, (sample.replicates for sample in samples))
    if not len(common):
        return np.array([np.mean([sample.mean_total for sample in samples])])
    rows = [np.intersect1d(sample.replicates, common, return_indices=True)[1] for sample in samples]
    return np.mean([sample.totals[places] for sample, places in zip(samples, rows)], axis=0)


def _value_axis(axes: Axes, values: Sequence[Any], places: NDArray[np.float64]) -> None:
    from matplotlib.ticker import NullLocator

    if places.min() > 0 and places.max() >= 8 * places.min() and _is_number(values[0]):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(places, [_value_text(value) for value in values])
    axes.margins(x=0.03)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
