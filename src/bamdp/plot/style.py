"""The style of all figures, and functions for saving them.

The colours are Okabe and Ito's palette, which colour-blind readers can distinguish; line styles and markers vary along
with them, so figures remain readable in black and white. Matplotlib is imported only when needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT_COLOUR, GREY_COLOUR = "#222222", "#555555"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)))
MARKERS = "osD^vPX"
FIGURE_SIZE = (6.2, 3.5)  # inches
OPTIMUM_LABEL = "optimum, model known"
REFERENCE_LINE: dict[str, Any] = {"color": TEXT_COLOUR, "linewidth": 0.9, "linestyle": (0, (4, 3))}
STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY_COLOUR,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "pdf.fonttype": 42,  # embed text as text
    "svg.hashsalt": "bamdp",  # reproducible files
}


def look(index: int) -> dict[str, Any]:
    """Return the colour, line style and marker for a planner's index.

    Examples
    --------
    >>> look(1)["color"], look(1)["marker"]
    ('#D55E00', 's')
    """
    line, colour = divmod(index, len(COLOURS))
    marker = MARKERS[index % len(MARKERS)]
    return {"color": COLOURS[colour], "linestyle": LINES[line % len(LINES)], "marker": marker}


@contextmanager
def new_figure(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = FIGURE_SIZE
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure and the axes of its panels (``size`` in inches each), with the style applied."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()


@contextmanager
def drawing_axes(
    ax: Axes | None, size: tuple[float, float] = FIGURE_SIZE, grid: bool = True
) -> Iterator[Axes]:
    """Yield the axes to plot on, ``ax`` or those of a new pyplot figure, with the style applied."""
    import matplotlib
    from matplotlib import pyplot

    # created outside the context, which would undo the settings of a backend chosen by the first figure
    figure = pyplot.figure(figsize=size, layout="constrained") if ax is None else None
    with matplotlib.rc_context({**STYLE, "axes.grid": grid}):
        yield figure.subplots() if figure is not None else ax  # type: ignore[misc]


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Save a figure in the format of the path's extension, without dates, so that files are reproducible."""
    import matplotlib

    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    undated: Any = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix)
    with matplotlib.rc_context(STYLE):
        figure.savefig(target, dpi=200, metadata=undated)
    return target


def legend_below(figure: Figure, panels: Iterable[Axes], columns: int = 6) -> None:
    """Add one legend for all panels below them."""
    handles: dict[str, Any] = {}
    for axes in panels:
        handles.update({label: handle for handle, label in zip(*axes.get_legend_handles_labels())})
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)


def log_axis(axes: Axes) -> None:
    """Make the x-axis logarithmic, with plain numbers at 1, 3, 10, 30 and so on."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
