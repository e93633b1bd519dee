"""The regret plots: total bad episodes against time, a panel a contest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bamdp.figure3.contests import CONTESTANTS, CONTESTS, PAPER, Contest
from bamdp.figure3.records import Record, counts, interval, records_of
from bamdp.lab.figures import COLOURS, STYLE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

SHOWN = ("dss-sparse", "psrl-sparse", "rmax", "bdqn", "psrl-flat", "dss-flat")  # the others are in tables
LINES = dict.fromkeys(("psrl-flat", "dss-flat"), (0, (4, 1.5)))
LOOKS = dict(zip(SHOWN, (*COLOURS[:4], COLOURS[1], COLOURS[0])))
POINTS = 400  # of a curve


def draw(records: Sequence[Record], path: str | Path) -> None:
    """Draw all contests that have records; the ending of ``path`` decides the format (png, svg, pdf)."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    held = {record.contest for record in records}
    panels = [contest for name, contest in CONTESTS.items() if name in held]
    if not panels:
        raise ValueError("there are no runs to draw; do some first")
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.0 * across, 3.3 * down + 0.6), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False).ravel()
        handles: dict[str, Artist] = {}
        for axes, contest in zip(grid, panels):
            _panel(axes, contest, records)
            handles.update({label: h for h, label in zip(*axes.get_legend_handles_labels())})
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=4, frameon=False
        )
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160)


def _panel(axes: Axes, contest: Contest, records: Sequence[Record]) -> None:
    """Means as lines, pointwise 95% intervals as bands, ends of the paper's curves as diamonds."""
    at = np.unique(np.linspace(0, contest.episodes - 1, POINTS).astype(int))
    steps = (at + 1) * contest.size
    runs = []
    for who in SHOWN:
        found = records_of(records, contest.name, who)
        if not found:
            continue
        runs.append(len(found))
        mean, half = interval(counts(found, contest)[:, at])
        colour, label = LOOKS[who], CONTESTANTS[who].label
        axes.plot(steps, mean, color=colour, linestyle=LINES.get(who, "-"), linewidth=1.5, label=label)
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        if (contest.name, who) in PAPER:
            end = PAPER[contest.name, who]
            face = "white" if who in LINES else colour
            axes.plot(
                [contest.steps], [end], "D", color=colour, markerfacecolor=face, markersize=5, clip_on=False
            )
    if any((contest.name, who) in PAPER for who in SHOWN):
        axes.plot(
            [],
            [],
            "D",
            color="#444444",
            markerfacecolor="white",
            label="end of the paper's curve",
            markersize=5,
        )
    axes.set_xlim(0, contest.steps)
    axes.set_ylim(bottom=0)
    axes.set_title(contest.title)
    number = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
    axes.set_xlabel(f"steps (mean of {number} runs, 95% interval)")
    axes.set_ylabel("total bad episodes")
