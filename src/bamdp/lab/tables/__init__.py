"""Tables of a study's results, and their forms: terminal, Markdown, CSV, LaTeX, HTML."""

from bamdp.lab.tables.evaluation import matrix, overall, summaries, times
from bamdp.lab.tables.pairs import against_best, all_pairs
from bamdp.lab.tables.render import FORMATS, as_csv, html, latex, markdown, terminal
from bamdp.lab.tables.table import Cell, Table
from bamdp.lab.tables.tuning import choices, configurations, environments, parameters, troubles, tuning_times

__all__ = [
    "FORMATS",
    "Cell",
    "Table",
    "against_best",
    "all_pairs",
    "as_csv",
    "choices",
    "configurations",
    "environments",
    "html",
    "latex",
    "markdown",
    "matrix",
    "overall",
    "parameters",
    "summaries",
    "terminal",
    "times",
    "troubles",
    "tuning_times",
]
