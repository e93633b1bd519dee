"""Tables of a study's results, and their renderings: terminal, Markdown, CSV, LaTeX, HTML."""

from bamdp.lab.tables.evaluation import (
    against_best,
    all_pairs,
    episodes,
    matrix,
    overall,
    summaries,
    times,
    unfinished,
)
from bamdp.lab.tables.table import (
    TABLE_WRITERS,
    ResultTable,
    TableCell,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_rich,
    to_text,
    without_repeated_notes,
)
from bamdp.lab.tables.tuning import (
    choices,
    environments,
    parameters,
    tried_configurations,
    troubles,
    tuning_times,
)

__all__ = [
    "TABLE_WRITERS",
    "ResultTable",
    "TableCell",
    "against_best",
    "all_pairs",
    "choices",
    "environments",
    "episodes",
    "matrix",
    "overall",
    "parameters",
    "summaries",
    "times",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_rich",
    "to_text",
    "tried_configurations",
    "troubles",
    "tuning_times",
    "unfinished",
    "without_repeated_notes",
]
