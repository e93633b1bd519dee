"""Plots of the tuning reward: a map over two parameters or a curve over one.

If more parameters vary than are shown, each value is the mean over all configurations that share it. The colour scale
of a map spans at least a fifth of its largest mean, so that small differences look small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame

from bamdp.plot import style
from bamdp.statistics import estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_SPAN = 0.2  # minimum span of a map's colour scale, as a fraction of the largest mean


def draw_map(axes: Axes, runs: DataFrame, first: str, second: str) -> None:
    """Plot the mean total reward over two parameters, marking the selected configuration with a star."""
    totals = _with_parameters(runs, first, second)
    grid = totals.pivot_table(index=second, columns=first, values="total", sort=False, dropna=False)
    grid = grid.sort_index(key=_numbers).sort_index(axis=1, key=_numbers)
    means = grid.to_numpy(float)
    high = float(np.nanmax(means))
    low = min(float(np.nanmin(means)), high - LEAST_SPAN * abs(high))
    image = axes.imshow(means, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    axes.figure.colorbar(image, ax=axes, label="total reward")
    chosen = totals[totals.chosen].iloc[:1][[first, second]].to_numpy().tolist()
    for (i, j), mean in np.ndenumerate(means):
        star = " ★" if [[grid.columns[j], grid.index[i]]] == chosen else ""
        text = "" if np.isnan(mean) else f"{mean:.4g}{star}"
        axes.text(j, i, text, ha="center", va="center", color="black" if mean > (low + high) / 2 else "white")
    axes.set_xticks(range(len(grid.columns)), grid.columns)
    axes.set_yticks(range(len(grid.index)), grid.index)
    axes.set(xlabel=first, ylabel=second, title=_title(runs))
    axes.grid(False)


def draw_curve(axes: Axes, runs: DataFrame, name: str) -> None:
    """Plot the mean total reward over one parameter, with bootstrap 95% intervals."""
    totals = _with_parameters(runs, name)
    values = sorted(totals[name].unique(), key=lambda value: (isinstance(value, str), value))
    means = [estimate(np.mean, totals.loc[totals[name] == value, "total"]) for value in values]
    look: dict[str, Any] = style.look(0)
    axes.plot(range(len(values)), [mean.value for mean in means], **look)
    axes.vlines(range(len(values)), [m.low for m in means], [m.high for m in means], color=look["color"])
    axes.set_xticks(range(len(values)), values)
    axes.set(xlabel=name, ylabel="total reward", title=_title(runs))


def _with_parameters(runs: DataFrame, *names: str) -> DataFrame:
    """Return the runs with a column for each of these parameters, using a dash where one does not apply."""
    return runs.assign(**{name: [one.get(name, "–") for one in runs.configuration] for name in names})


def _numbers(values: Any) -> Any:
    """Return sort keys for values that may be text."""
    return [value if isinstance(value, (int, float)) else np.inf for value in values]


def _title(runs: DataFrame) -> str:
    return (
        f"{runs.algorithm.iloc[0]} in {runs.environment.iloc[0]}: {runs.replicate.nunique()} tuning runs each"
    )
