"""The figure of the trade-off in K: short stages do not look far ahead, long ones do not adapt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bamdp.lab.figures.style import COLOURS, STYLE
from bamdp.theory.bounds import Bound

TERM_COLOURS = {
    "anytime": COLOURS[3],
    "thompson": COLOURS[0],
    "truncation": COLOURS[4],
    "sampling": COLOURS[2],
}


def trade_off(
    path: str | Path,
    bounds: Mapping[str, Callable[[int], Bound]],
    n_steps: int,
    *,
    note: str = "",
) -> None:
    """Write a figure of bounds and their terms against K.

    Parameters
    ----------
    path
        The file; its suffix decides the format (png, svg, pdf).
    bounds
        The bound as a function of K for each title; each has a panel of its own.
    n_steps
        The K to mark by a line.
    note
        Small print above the panels, such as the parameters.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = Path(path)
    K = k_grid(n_steps)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(bounds), 3.5), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(bounds), sharey=True, squeeze=False)[0]
        for axes, (title, bound) in zip(panels, bounds.items()):
            _draw_bounds(axes, K, [bound(k) for k in K], n_steps)
            axes.set_title(title)
        panels[0].set_ylabel("loss")
        handles = dict(pair for axes in panels for pair in zip(*reversed(axes.get_legend_handles_labels())))
        figure.legend(handles.values(), handles.keys(), frameon=False, loc="outside lower center", ncols=6)
        if note:
            figure.suptitle(note, fontsize=8, color="#444444")
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=200)


def k_grid(n_steps: int) -> list[int]:
    """Return at most 200 values of K, from 1 to four times ``n_steps`` (at least 20), with ``n_steps`` among them."""
    last = max(20, 4 * n_steps)
    return sorted({1 + round(i * (last - 1) / 199) for i in range(200)} | {n_steps})


def _draw_bounds(axes: Any, K: Sequence[int], bounds: Sequence[Bound], n_steps: int) -> None:
    """Draw the terms of a bound, their sum, and the region in which it is vacuous."""
    for name in bounds[0].terms:
        axes.plot(K, [b.terms[name] for b in bounds], color=TERM_COLOURS[name], linewidth=1.2, label=name)
    axes.plot(K, [b.total for b in bounds], color="#222222", linewidth=1.8, label="sum")
    most = bounds[0].range
    axes.axhspan(most, 3.0 * most, color="#bbbbbb", alpha=0.35, linewidth=0, label="vacuous")
    axes.axvline(n_steps, color="#444444", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        f"K = {n_steps}", (n_steps, 2.9 * most), (3, 0), textcoords="offset points", fontsize=8, va="top"
    )
    axes.set_ylim(0.0, 3.0 * most)
    axes.set_xlim(K[0], K[-1])
    axes.set_xlabel("K, steps of a stage")
