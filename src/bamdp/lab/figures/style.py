"""The style that all figures share, labels beside lines and points, and how figures become files.

An algorithm has the same look in every figure of a study: a colour of Okabe and Ito's palette, which the colour-blind
can tell apart, and a line and a marker, which survive black and white print. Labels stand beside lines and points, so
that nobody needs to look up a legend. Matplotlib is imported only when a figure is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp.lab.results import Sample

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT_COLOUR, GREY_COLOUR, GRID_COLOUR, PAPER_COLOUR = "#222222", "#555555", "#e4e4e4", "#ffffff"
WARNING_COLOUR = "#b00020"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = "osD^vPX<>"
FIGURE_FORMATS = ("png", "svg", "pdf")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.edgecolor": GREY_COLOUR,
    "axes.labelcolor": TEXT_COLOUR,
    "axes.titlecolor": TEXT_COLOUR,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID_COLOUR,
    "grid.linewidth": 0.6,
    "text.color": TEXT_COLOUR,
    "xtick.color": GREY_COLOUR,
    "ytick.color": GREY_COLOUR,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "pdf.fonttype": 42,  # letters stay letters
    "svg.hashsalt": "bamdp",  # the same figure is the same file
}
DataBox = tuple[float, float, float, float]  # left, right, bottom, top, in the axes' data
LABEL_SIZE = 8.0  # of letters, in points
LINE_HEIGHT = 0.155  # inches that a line of text takes
# from a point; the best first
LABEL_OFFSETS = [(dx, dy) for dy in (5, -13, 16, -24, 28, -36) for dx in (8, -8)]
CURVE_SIZE = (6.2, 3.5)  # inches


@dataclass(frozen=True)
class Look:
    """The colour, line and marker of one algorithm."""

    colour: str
    line: Any
    marker: str

    def variant(self, number: int) -> Look:
        """Return the same colour with another line and marker, for configurations of one algorithm."""
        if not number:
            return self
        line = LINE_STYLES[(LINE_STYLES.index(self.line) + number) % len(LINE_STYLES)]
        return replace(self, line=line, marker=MARKERS[(MARKERS.index(self.marker) + number) % len(MARKERS)])


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return a look for each label, by its position.

    Examples
    --------
    >>> looks(["dss-pi", "bamcp"])["bamcp"].colour
    '#D55E00'
    """
    n = len(COLOURS)
    return {
        label: Look(COLOURS[i % n], LINE_STYLES[i // n % len(LINE_STYLES)], MARKERS[i % len(MARKERS)])
        for i, label in enumerate(dict.fromkeys(labels))
    }


def sample_looks(named: Mapping[str, Sample], known: Mapping[str, Look]) -> dict[str, Look]:
    """Return the looks of samples: configurations of one algorithm are variants of its look."""
    seen: Counter[str] = Counter()
    chosen = {}
    for name, sample in named.items():
        chosen[name] = known[sample.algorithm].variant(seen[sample.algorithm])
        seen[sample.algorithm] += 1
    return chosen


@contextmanager
def new_figure(
    panels: int = 1, size: tuple[float, float] = (6.2, 3.5), columns: int = 3
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure and the axes of its panels, within which the common style holds."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(panels, columns)
    down = -(-panels // across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(size[0] * across, size[1] * down), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
        for empty in axes[panels:]:
            empty.set_axis_off()
        yield figure, axes[:panels]


def save_figure(figure: Figure, stem: str | Path, formats: Iterable[str] = FIGURE_FORMATS) -> list[Path]:
    """Write a figure as ``stem.png`` and so on and return the paths; the same figure gives the same bytes, undated."""
    import matplotlib

    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    target = Path(stem)
    target.parent.mkdir(parents=True, exist_ok=True)
    paths = {ending: target.with_name(f"{target.name}.{ending}") for ending in formats}
    with matplotlib.rc_context(STYLE):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once for all formats: it is half the work
        for ending, path in paths.items():
            figure.savefig(path, format=ending, dpi=200, facecolor=PAPER_COLOUR, metadata=dates.get(ending))
    return list(paths.values())


def draw_line(axes: Axes, x: ArrayLike, mean: ArrayLike, interval: Any, look: Look, **options: Any) -> None:
    """Draw a line in a look and its band, both ends of which are given."""
    axes.plot(x, mean, color=look.colour, linestyle=look.line, linewidth=1.4, **{"zorder": 3, **options})
    axes.fill_between(x, *interval, color=look.colour, alpha=0.18, linewidth=0)


def add_title(axes: Axes, words: str, note: str = "") -> None:
    """Add a title and, smaller under it, a note such as the number of runs."""
    axes.set_title(words, pad=17.0 if note else 6.0)
    look: dict[str, Any] = {"color": GREY_COLOUR, "fontsize": 7.5, "textcoords": "offset points"}
    axes.annotate(note, (0.0, 1.0), xycoords="axes fraction", xytext=(0, 5), **look)


def add_level_line(axes: Axes, height: float, words: str) -> None:
    """Add a horizontal line, such as the optimum, with its name on it and room for that."""
    axes.axhline(height, color=TEXT_COLOUR, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    look: dict[str, Any] = {"color": TEXT_COLOUR, "fontsize": 7.5, "textcoords": "offset points"}
    axes.annotate(words, (0.01, height), xycoords=("axes fraction", "data"), xytext=(0, 2.5), **look)
    low, high = axes.get_ylim()
    axes.set_ylim(top=max(high, height + 0.09 * (height - low)))


def add_warning(figure: Figure, words: str) -> None:
    """Add a line of text under the figure that must not be overlooked."""
    if words:
        figure.supxlabel(words, fontsize=7.5, color=WARNING_COLOUR, x=0.01, ha="left")


def add_legend_below(figure: Figure, panels: Sequence[Axes], words: str = "") -> None:
    """Add one legend for all panels under them, with the text of :func:`add_warning`."""
    handles: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(str(label), handle)
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": min(6, len(handles))}
    legend = figure.legend(list(handles.values()), list(handles), title=words, **place)
    legend.get_title().set(color=WARNING_COLOUR, fontsize=7.5)


def runs_range(counts: Iterable[int]) -> str:
    """Return the number of runs in words; a range if it differs."""
    positive = [count for count in counts if count]
    if not positive:
        return "no runs"
    low, high = min(positive), max(positive)
    return f"{low} run{'s' * (low > 1)}" if low == high else f"{low} to {high} runs"


def log_spaced_steps(horizon: int, count: int = 240, first: int = 1) -> NDArray[np.int64]:
    """Return about ``count`` steps at which a curve is drawn, evenly on a log axis, the last one among them."""
    return np.unique(np.geomspace(max(first, 1), horizon, count).round().astype(int))


# Labels beside lines and points


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, str]], panel_height: float) -> None:
    """Write (label, y, colour) at the right edge, beside their lines, moved apart where they would overlap.

    The panel's height in inches determines the room that a line of text takes.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    ordered = sorted((float(to_axes.transform((x, y))[1]), label, colour) for label, y, colour in ends)
    options: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    moved = spread_labels([height for height, *_ in ordered], LINE_HEIGHT / panel_height)
    for (line_end, label, colour), y in zip(ordered, moved):
        axes.plot([1.0, 1.015], [line_end, y], color=colour, linewidth=0.7, **options)
        axes.text(1.022, y, label, color=colour, fontsize=LABEL_SIZE, va="center", **options)


def spread_labels(heights: Sequence[float], gap: float) -> list[float]:
    """Return ascending heights in [0, 1], moved so that neighbours are at least ``gap`` apart and all stay inside.

    Among all such heights these have the least sum of squared moves: isotonic regression of the heights less the gaps.
    Where there is no room for all, they run over both ends alike.

    Examples
    --------
    >>> [round(y, 3) for y in spread_labels([0.5, 0.5, 0.9], gap=0.1)]
    [0.45, 0.55, 0.9]
    >>> [round(y, 3) for y in spread_labels([0.95, 1.0], gap=0.1)]
    [0.9, 1.0]
    """
    from scipy.optimize import isotonic_regression

    if not len(heights):
        return []
    offsets = gap * np.arange(len(heights))
    targets, room = np.asarray(heights) - offsets, 1.0 - gap * (len(heights) - 1)
    if room >= 0.0:
        targets = np.clip(targets, 0.0, room)
    return [float(y) for y in isotonic_regression(targets).x + offsets]


def label_points(
    figure: Figure,
    axes: Axes,
    named: Sequence[tuple[str, float, float, str]],
    obstacles: Sequence[DataBox] = (),
) -> None:
    """Write (label, x, y, colour) beside their points, where they cover the least of obstacles and other labels."""
    figure.draw_without_rendering()  # limits and sizes are final only then
    taken = [_pixels(axes, box) for box in obstacles]
    for label, x, y, colour in named:
        look: dict[str, Any] = {"color": colour, "fontsize": LABEL_SIZE, "zorder": 5}
        text = axes.annotate(label, (x, y), xytext=LABEL_OFFSETS[0], textcoords="offset points", **look)
        boxes = [_move_label(text, offset).get_window_extent() for offset in LABEL_OFFSETS]
        costs = [_covered(box, taken) + box.width * box.height - _covered(box, [axes.bbox]) for box in boxes]
        best = int(np.argmin(np.round(costs)))
        _move_label(text, LABEL_OFFSETS[best])
        taken.append(boxes[best])


def _pixels(axes: Axes, box: DataBox) -> Any:
    """Return a box of the data in pixels, with a small margin."""
    from matplotlib.transforms import Bbox as PixelBox

    left, right, bottom, top = box
    return PixelBox(axes.transData.transform([(left, bottom), (right, top)])).padded(4.0)


def _move_label(text: Any, offset: tuple[int, int]) -> Any:
    text.xyann = offset
    text.set_horizontalalignment("left" if offset[0] > 0 else "right")
    return text


def _covered(box: Any, others: Sequence[Any]) -> float:
    """Return the area that a box shares with others."""
    shared = [box.intersection(box, other) for other in others]
    return float(sum(part.width * part.height for part in shared if part is not None))


@contextmanager
def drawing_axes(
    ax: Axes | None, size: tuple[float, float] = CURVE_SIZE, grid: bool = True
) -> Iterator[Axes]:
    """Yield the axes to draw on, within the library's style: ``ax``, or those of a new figure of pyplot."""
    import matplotlib

    figure = None
    if ax is None:
        from matplotlib import pyplot

        # before the style is set: the first figure may choose a backend, whose settings would be taken back with it
        figure = pyplot.figure(figsize=size, layout="constrained")
    with matplotlib.rc_context({**STYLE, "axes.grid": grid}):
        if figure is not None:
            ax = figure.subplots()
        assert ax is not None
        yield ax
