"""Figures of a study's results, as Matplotlib figures and as PNG, SVG and PDF files."""

from bamdp.lab.figures.curves import (
    learning_curves,
    pareto,
    regret_curves,
    reward_against_time,
    reward_figure,
    trailing_mean,
)
from bamdp.lab.figures.parameters import ablation_curves, heat_maps
from bamdp.lab.figures.style import COLOURS, FIGURE_FORMATS, STYLE, Look, looks, save_figure

__all__ = [
    "COLOURS",
    "FIGURE_FORMATS",
    "STYLE",
    "Look",
    "ablation_curves",
    "heat_maps",
    "learning_curves",
    "looks",
    "pareto",
    "regret_curves",
    "reward_against_time",
    "reward_figure",
    "save_figure",
    "trailing_mean",
]
