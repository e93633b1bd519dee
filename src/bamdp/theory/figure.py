"""The picture of the trade-off in K: short stages cannot see far, long ones cannot adapt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bamdp.lab.figures.style import COLOURS, STYLE
from bamdp.theory.bound import Bound

TERMS = {"anytime": COLOURS[3], "thompson": COLOURS[0], "truncation": COLOURS[4], "sampling": COLOURS[2]}


def trade_off(
    path: str | Path,
    bounds: Mapping[str, Callable[[int], Bound]],
    n_steps: int,
    *,
    note: str = "",
) -> None:
    """Write a picture of bounds and their terms against K.

    Parameters
    ----------
    path
        Where to; the ending decides the format (png, svg, pdf).
    bounds
        Title to the bound as a function of K: one panel each.
    n_steps
        The K at hand, marked by a line.
    note
        In small print at the lower left, such as the parameters.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = Path(path)
    K = grid(n_steps)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(bounds), 3.5), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(bounds), sharey=True, squeeze=False)[0]
        for axes, (title, bound) in zip(panels, bounds.items()):
            _panel(axes, K, [bound(k) for k in K], n_steps)
            axes.set_title(title)
        panels[0].set_ylabel("loss")
        handles = dict(pair for axes in panels for pair in zip(*reversed(axes.get_legend_handles_labels())))
        figure.legend(handles.values(), handles.keys(), frameon=False, loc="outside lower center", ncols=6)
        if note:
            figure.suptitle(note, fontsize=8, color="#444444")
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=200)


def grid(n_steps: int) -> list[int]:
    """At most 200 values of K, from 1 to four times the one at hand (20 at least)."""
    last = max(20, 4 * n_steps)
    return sorted({1 + round(i * (last - 1) / 199) for i in range(200)} | {n_steps})


def _panel(axes: Any, K: Sequence[int], bounds: Sequence[Bound], n_steps: int) -> None:
    for name in bounds[0].terms:
        axes.plot(K, [b.terms[name] for b in bounds], color=TERMS[name], linewidth=1.2, label=name)
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
