"""Reward against planning time: what is bought with a millisecond.

A point is an algorithm's mean total reward over its mean processor time of a step (log axis), with 95% bootstrap
intervals of both. The Pareto front joins those that nobody beats in both at once; they are filled, the others hollow.
Small dots are configurations that were tried in tuning over the same number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.lab.figures import style
from bamdp.lab.figures.labels import Box, name_points
from bamdp.lab.figures.style import GREY, PAPER, Look
from bamdp.lab.groups import Group
from bamdp.lab.results import Sample
from bamdp.lab.statistics import Estimate, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY = "bars 95%, filled: Pareto front"


def pareto(costs: ArrayLike, gains: ArrayLike) -> NDArray[np.bool_]:
    """Which points no other point beats: none is as cheap and as good, and better in one of both.

    Examples
    --------
    >>> pareto([1.0, 2.0, 3.0], [5.0, 4.0, 6.0]).tolist()
    [True, False, True]
    """
    c, g = np.asarray(costs, float), np.asarray(gains, float)
    no_worse = (c[:, None] <= c) & (g[:, None] >= g)
    better = (c[:, None] < c) | (g[:, None] > g)
    return np.asarray(~(no_worse & better).any(axis=0))


def reward_against_time(
    group: Group, looks: Mapping[str, Look], *, tried: Sequence[Sample] = (), warning: str = ""
) -> Figure:
    """The trade-off in one environment; ``tried`` are the tuning samples to show as dots."""
    shown = {name: sample for name, sample in group.named.items() if sample.runs}
    times = {name: summarise(sample.ms_per_step).mean for name, sample in shown.items()}
    rewards = {name: group.summaries[name].mean for name in shown}
    own = style.variants(shown, looks)
    with style.sheet() as (figure, (axes,)):
        dots = _dots(axes, group, tried, looks)
        front = pareto([t.value for t in times.values()], [r.value for r in rewards.values()])
        for name, on_front in zip(shown, front):
            _point(axes, times[name], rewards[name], own[name], on_front)
        steps = _front(axes, [(times[n].value, rewards[n].value) for n, held in zip(shown, front) if held])
        if group.ceilings:
            style.level(axes, group.ceilings.optimum, "optimum, model known")
        log_axis(axes)
        axes.set(xlabel="processor time of a step, ms (log)", ylabel=f"total reward, {group.horizon} steps")
        axes.margins(x=0.12, y=0.12)
        style.title(axes, group.label, f"{style.runs_text(s.runs for s in shown.values())}; {KEY}{dots}")
        style.warn(figure, warning)
        named = [
            (w, times[n].value, rewards[n].value, own[n].colour) for n, w in _labels(group, shown).items()
        ]
        bars = [bar for name in shown for bar in _bars(times[name], rewards[name])]
        name_points(figure, axes, named, bars + steps)
    return figure


def _labels(group: Group, shown: Mapping[str, Sample]) -> dict[str, str]:
    """What to write at which points: everything, or if that is too much each algorithm's name at its best one."""
    if len(shown) == len(group.leading):
        return {name: name for name in shown}
    return {name: sample.algorithm for name, sample in group.leading.items()}


def _point(axes: Axes, time: Estimate, reward: Estimate, look: Look, on_front: bool) -> None:
    axes.errorbar(
        time.value,
        reward.value,
        xerr=_arms(time),
        yerr=_arms(reward),
        fmt=look.marker,
        color=look.colour,
        markerfacecolor=look.colour if on_front else PAPER,
        markersize=6,
        markeredgewidth=1.3,
        elinewidth=1.1,
        capsize=2,
        zorder=4,
    )


def _bars(time: Estimate, reward: Estimate) -> list[Box]:
    """Where a point's error bars are; without an interval, the point itself."""
    x, y = time.value, reward.value
    upright = (x, x, y, y) if np.isnan(reward.low) else (x, x, reward.low, reward.high)
    flat = (x, x, y, y) if np.isnan(time.low) else (time.low, time.high, y, y)
    return [upright, flat]


def _arms(estimate: Estimate) -> list[list[float]] | None:
    if np.isnan(estimate.low):
        return None
    return [[max(estimate.value - estimate.low, 0.0)], [max(estimate.high - estimate.value, 0.0)]]


def _front(axes: Axes, points: list[tuple[float, float]]) -> list[Box]:
    """Draw the front; returns where its steps are."""
    front = sorted(points)
    x, y = [x for x, _ in front], [y for _, y in front]
    axes.plot(x, y, color=GREY, linewidth=1.0, linestyle=(0, (2, 2)), drawstyle="steps-post", zorder=2)
    return [(left, right, height, height) for left, right, height in zip(x, x[1:], y)]


def _dots(axes: Axes, group: Group, tried: Sequence[Sample], looks: Mapping[str, Look]) -> str:
    """Draw what was tried over the group's horizon; returns what to say of it."""
    place = (group.environment, group.horizon)
    held = [sample for sample in tried if (sample.environment, sample.horizon) == place and sample.runs]
    for sample in held:
        x, y = sample.ms_per_step.mean(), sample.totals.mean()
        axes.plot(x, y, ".", color=looks[sample.algorithm].colour, alpha=0.35, markersize=4, zorder=1)
    return ", dots: tried in tuning" if held else ""


def log_axis(axes: Axes) -> None:
    """Times on a log axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
