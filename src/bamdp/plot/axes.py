"""The axes that all pictures are drawn on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bamdp.lab.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_SIZE = (6.2, 3.5)  # inches


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
    with matplotlib.rc_context({**style.STYLE, "axes.grid": grid}):
        if figure is not None:
            ax = figure.subplots()
        assert ax is not None
        yield ax
