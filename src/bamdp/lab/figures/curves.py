"""Reward and regret as time goes by.

The learning curve at step t is the mean of the last min(t, w) rewards, w the window: the paper's Figure 2 (w = 200, 500
in the maze), drawn from before t = w so that the beginning, where planners differ most, is not cut off. Regret is t·g
less the rewards so far, g the best average reward a step that one who knows the model can have. Lines are means over
runs, bands pointwise 95% bootstrap intervals of them, whole runs resampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.lab.figures import style
from bamdp.lab.figures.labels import label_ends
from bamdp.lab.figures.style import Look
from bamdp.lab.groups import Group
from bamdp.lab.statistics import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ends = list[tuple[str, float, str]]  # of lines: label, height, colour

OPTIMUM = "optimum, model known"


def trailing_mean(rewards: ArrayLike, window: int, at: ArrayLike | None = None) -> NDArray[np.float64]:
    """Means of the last ``window`` rewards, or of all so far if they are fewer, after each step (or the steps ``at``).

    Examples
    --------
    >>> trailing_mean([0.0, 1.0, 1.0, 0.0], window=2)
    array([0. , 0.5, 1. , 0.5])
    """
    array = np.asarray(rewards, float)
    window = _checks.integer(window, "window")
    end = np.arange(1, array.shape[-1] + 1) if at is None else np.asarray(at)
    begin = np.maximum(end - window, 0)
    sums = np.concatenate([np.zeros((*array.shape[:-1], 1)), np.cumsum(array, axis=-1)], axis=-1)
    return (sums[..., end] - sums[..., begin]) / (end - begin)


def default_window(horizon: int) -> int:
    """The paper's: 200 steps, 500 in the maze's 20 000; at most a fifth of a run.

    Examples
    --------
    >>> default_window(1000), default_window(20_000), default_window(50)
    (200, 500, 10)
    """
    return min(500 if horizon >= 10_000 else 200, max(1, horizon // 5))


def learning_curves(
    groups: Sequence[Group], looks: Mapping[str, Look], *, window: int | None = None, warning: str = ""
) -> Figure:
    """Moving-average reward on a log time axis, a panel for each group."""

    def panel(axes: Axes, group: Group) -> Ends:
        w = window or default_window(group.horizon)
        steps = style.points(group.horizon, first=max(1, w // 20))
        curves = {name: trailing_mean(s.traces(), w, steps) for name, s in group.leading.items()}
        return draw_learning(
            axes, steps, curves, style.variants(group.leading, looks), w, best_per_step(group)
        )

    return _panels(groups, panel, warning)


def reward_figure(
    curves: Mapping[str, ArrayLike],
    *,
    window: int,
    optimum: float | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """The same of rewards [R, T] by label, without a study.

    Parameters
    ----------
    curves
        Label to rewards ``[R, T]``.
    window
        Steps that are averaged.
    optimum
        The known-model optimum's average reward a step, drawn as a line.
    title, note
        Above the picture, and smaller under it.
    """
    rewards = {label: np.atleast_2d(np.asarray(held, float)) for label, held in curves.items()}
    horizon = max(held.shape[1] for held in rewards.values())
    steps = style.points(horizon, first=max(1, window // 20))
    smooth = {label: trailing_mean(held, window, steps) for label, held in rewards.items()}
    with style.sheet() as (figure, (axes,)):
        ends = draw_learning(axes, steps, smooth, style.looks(curves), window, optimum)
        style.title(axes, title, note)
        label_ends(axes, ends, 2.8)
    return figure


def regret_curves(groups: Sequence[Group], looks: Mapping[str, Look], *, warning: str = "") -> Figure:
    """Regret against one who knows the model, a panel for each group; all must have ceilings."""

    def panel(axes: Axes, group: Group) -> Ends:
        steps = np.unique(np.linspace(1, group.horizon, 240).round().astype(int))
        best = best_per_step(group)
        if best is None:
            raise ValueError(f"no optimum of {group.label} is known, so there is no regret to draw")
        curves = {
            name: best * steps - s.traces().cumsum(axis=-1)[:, steps - 1] for name, s in group.leading.items()
        }
        ends = _lines(axes, steps, curves, style.variants(group.leading, looks))
        axes.axhline(0.0, color=style.GREY, linewidth=0.8)
        axes.set(xlim=(0, group.horizon), xlabel="step", ylabel="regret, total reward")
        return ends

    return _panels(groups, panel, warning)


def draw_learning(
    axes: Axes,
    steps: NDArray[np.int64],
    curves: Mapping[str, NDArray[np.float64]],
    looks: Mapping[str, Look],
    window: int,
    optimum: float | None,
) -> Ends:
    """Smoothed curves [R, P] at ``steps`` [P] on a log axis; returns where the lines end."""
    from matplotlib.ticker import LogFormatter

    ends = _lines(axes, steps, curves, looks)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(2, 0.5)))
    axes.set(xlim=(steps[0], steps[-1]), xlabel="step (log)", ylabel=f"reward a step, last {window}")
    if optimum is not None:
        style.level(axes, optimum, OPTIMUM)
    if all((curve >= 0.0).all() for curve in curves.values()):
        axes.set_ylim(bottom=0.0)
    return ends


def best_per_step(group: Group) -> float | None:
    """The optimal average reward a step: the gain, or where that is not one number the optimum over the horizon."""
    if group.ceilings is None:
        return None
    return group.ceilings.optimum / group.horizon if group.ceilings.gain is None else group.ceilings.gain


def _lines(
    axes: Axes, steps: NDArray[np.int64], curves: Mapping[str, NDArray[np.float64]], looks: Mapping[str, Look]
) -> Ends:
    ends = []
    for name, curve in curves.items():
        look, mean = looks[name], curve.mean(axis=0)
        axes.plot(steps, mean, color=look.colour, linestyle=look.line, linewidth=1.4, label=name, zorder=3)
        axes.fill_between(steps, *band(curve), color=look.colour, alpha=0.18, linewidth=0)
        ends.append((name, float(mean[-1]), look.colour))
    return ends


def _panels(groups: Sequence[Group], panel: Callable[[Axes, Group], Ends], warning: str) -> Figure:
    """One panel with labels beside the lines, or several with a legend below."""
    size = (6.2, 3.5) if len(groups) == 1 else (3.6, 2.8)
    with style.sheet(len(groups), size) as (figure, all_axes):
        for axes, group in zip(all_axes, groups):
            ends = panel(axes, group)
            style.title(axes, group.label, _note(group))
            if len(groups) == 1:
                label_ends(axes, ends, 0.8 * size[1])
        if len(groups) > 1:
            style.legend_below(figure, all_axes, warning)
        else:
            style.warn(figure, warning)
        return figure


def _note(group: Group) -> str:
    runs = style.runs_text(sample.runs for sample in group.leading.values())
    hidden = sum(bool(sample.runs) for sample in group.samples) > len(group.leading)
    return f"{runs}, 95% band" + (", the best configuration of each algorithm" if hidden else "")
