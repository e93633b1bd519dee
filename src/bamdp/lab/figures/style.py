"""How all figures look, and how they become files. Matplotlib is imported only when one is drawn.

An algorithm has the same look in every figure of a study: a colour of Okabe and Ito's palette, which the colour-blind
can tell apart, and a line and a marker, which survive black and white print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bamdp.lab.results import Sample

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, GRID, PAPER, ALARM = "#222222", "#555555", "#e4e4e4", "#ffffff", "#b00020"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = "osD^vPX<>"
FORMATS = ("png", "svg", "pdf")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "pdf.fonttype": 42,  # letters stay letters
    "svg.hashsalt": "bamdp",  # the same figure is the same file
}


@dataclass(frozen=True)
class Look:
    """Of one algorithm."""

    colour: str
    line: Any
    marker: str

    def variant(self, number: int) -> Look:
        """The same colour with another line and marker, for configurations of one algorithm."""
        if not number:
            return self
        line = LINES[(LINES.index(self.line) + number) % len(LINES)]
        return replace(self, line=line, marker=MARKERS[(MARKERS.index(self.marker) + number) % len(MARKERS)])


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label, by its place.

    Examples
    --------
    >>> looks(["dss-pi", "bamcp"])["bamcp"].colour
    '#D55E00'
    """
    n = len(COLOURS)
    return {
        label: Look(COLOURS[i % n], LINES[i // n % len(LINES)], MARKERS[i % len(MARKERS)])
        for i, label in enumerate(dict.fromkeys(labels))
    }


def variants(named: Mapping[str, Sample], known: Mapping[str, Look]) -> dict[str, Look]:
    """Looks of samples: configurations of one algorithm are variants of its look."""
    seen: Counter[str] = Counter()
    found = {}
    for name, sample in named.items():
        found[name] = known[sample.algorithm].variant(seen[sample.algorithm])
        seen[sample.algorithm] += 1
    return found


@contextmanager
def sheet(
    panels: int = 1, size: tuple[float, float] = (6.2, 3.5), columns: int = 3
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with so many panels, within which the house's style holds."""
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


def save(figure: Figure, stem: str | Path, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write a figure as ``stem.png`` and so on; the same figure gives the same bytes, with no date in them."""
    import matplotlib

    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    target = Path(stem)
    target.parent.mkdir(parents=True, exist_ok=True)
    paths = {ending: target.with_name(f"{target.name}.{ending}") for ending in formats}
    with matplotlib.rc_context(STYLE):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once for all formats: it is half the work
        for ending, path in paths.items():
            figure.savefig(path, format=ending, dpi=200, facecolor=PAPER, metadata=dates.get(ending))
    return list(paths.values())


def title(axes: Axes, words: str, note: str = "") -> None:
    """What it is and, smaller under it, how many runs or the like."""
    axes.set_title(words, pad=17.0 if note else 6.0)
    look: dict[str, Any] = {"color": GREY, "fontsize": 7.5, "textcoords": "offset points"}
    axes.annotate(note, (0.0, 1.0), xycoords="axes fraction", xytext=(0, 5), **look)


def level(axes: Axes, height: float, words: str) -> None:
    """A line across, such as the optimum, with its name on it and room for that."""
    axes.axhline(height, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    axes.annotate(
        words,
        (0.01, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2.5),
        textcoords="offset points",
        fontsize=7.5,
        color=INK,
    )
    low, high = axes.get_ylim()
    axes.set_ylim(top=max(high, height + 0.09 * (height - low)))


def warn(figure: Figure, words: str) -> None:
    """A line under everything, for what must not be overlooked."""
    if words:
        figure.supxlabel(words, fontsize=7.5, color=ALARM, x=0.01, ha="left")


def legend_below(figure: Figure, panels: Sequence[Axes], words: str = "") -> None:
    """One legend for all panels, under them, and what :func:`warn` would say."""
    handles: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(str(label), handle)
    legend = figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(6, len(handles)),
        title=words,
    )
    legend.get_title().set(color=ALARM, fontsize=7.5)


def runs_text(counts: Iterable[int]) -> str:
    """How many runs there are behind something."""
    held = [count for count in counts if count]
    if not held:
        return "no runs"
    low, high = min(held), max(held)
    return f"{low} run{'s' * (low > 1)}" if low == high else f"{low} to {high} runs"


def points(horizon: int, count: int = 240, first: int = 1) -> NDArray[np.int64]:
    """Steps at which a curve is drawn: about ``count``, evenly on a log axis, the last one among them."""
    return np.unique(np.geomspace(max(first, 1), horizon, count).round().astype(int))
