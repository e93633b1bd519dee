"""Figures, drawn with matplotlib, which is imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)  # Okabe & Ito: safe for the colour-blind
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.edgecolor": "#444444",
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
}


def moving_average(rewards: ArrayLike, window: int) -> NDArray[np.float64]:
    """Means over the last ``window`` steps, [..., T - window + 1], of rewards [..., T].

    Examples
    --------
    >>> moving_average([0.0, 1.0, 1.0, 0.0], window=2)
    array([0.5, 1. , 0.5])
    """
    array = np.asarray(rewards, float)
    window = _checks.integer(window, "window", high=array.shape[-1])
    sums = np.cumsum(array, axis=-1)
    sums = np.concatenate([np.zeros((*array.shape[:-1], 1)), sums], axis=-1)
    return (sums[..., window:] - sums[..., :-window]) / window


def learning_curves(
    path: str | Path,
    curves: Mapping[str, ArrayLike],
    *,
    window: int,
    optimum: float | None = None,
    title: str = "",
    note: str = "",
) -> None:
    """Write a picture of moving-average rewards against time.

    Parameters
    ----------
    path
        Where to; the ending decides the format (png, svg, pdf).
    curves
        Label to rewards ``[runs, T]``. The line is the mean over runs, the band one standard error around it.
    window
        Steps that are averaged.
    optimum
        The known-model optimum's average reward per step, drawn as a line.
    title, note
        Above the picture, at the left and, smaller, at the right.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = Path(path)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        end = 0
        for colour, (label, rewards) in zip(COLOURS * 3, curves.items()):
            smooth = moving_average(np.atleast_2d(np.asarray(rewards, float)), window)
            steps = np.arange(window, window + smooth.shape[1])
            mean = smooth.mean(axis=0)
            axes.plot(steps, mean, color=colour, linewidth=1.4, label=label, zorder=3)
            if len(smooth) > 1:
                error = smooth.std(axis=0, ddof=1) / np.sqrt(len(smooth))
                axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.25, linewidth=0)
            end = max(end, int(steps[-1]))
        if optimum is not None:
            axes.axhline(optimum, color="#222222", linewidth=1.0, linestyle=(0, (5, 3)), zorder=2)
            axes.annotate(
                "optimum of the known model",
                (0.005, optimum),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=8,
                color="#222222",
            )
        axes.set_xlim(window, end)
        axes.set_ylim(bottom=0.0, top=None if optimum is None else 1.12 * optimum)
        axes.set_xlabel("step")
        axes.set_ylabel(f"reward per step, mean of the last {window}")
        axes.set_title(title)
        axes.set_title(note, loc="right", fontsize=8, fontweight="normal", color="#444444")
        axes.legend(frameon=False, loc="lower right")
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=200)
