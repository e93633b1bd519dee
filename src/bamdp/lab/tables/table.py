"""One form for every table, and its renderings: terminal, Markdown, CSV, LaTeX (booktabs) and HTML.

A cell is a text to be read and, behind it, the numbers at full precision. Every rendering has the warning, the notes
and the marks; CSV has the warning in a column of its own and the numbers of a cell in columns of their own.
"""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bamdp.statistics import Estimate, standard_error

if TYPE_CHECKING:
    from jinja2 import Environment as TemplateEnvironment
    from rich.table import Table as RichTable

NO_VALUE = "–"
TEXT_WIDTH = 120  # of tables that are no terminal's
ERROR, LOW, HIGH = "standard error", "low", "high"  # names of the CSV columns of a cell's further numbers
BOLD_NOTE, STAR_NOTE = "Bold: ", "*: "  # how notes refer to bold cells, and where nothing can be bold
ALIGNMENTS = {"l": "left", "r": "right"}
LATEX_MATHS = (
    r"\pm \approx - \times \le \ge \to \cdot \alpha \beta \gamma \delta \varepsilon \eta \pi".split()
)
LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    **{character: f"${name}$" for character, name in zip("±≈−×≤≥→·αβγδεηπ", LATEX_MATHS)},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
}


@dataclass(frozen=True)
class TableCell:
    """One entry of a table."""

    text: str
    numbers: tuple[tuple[str, float], ...] = ()  # (name: "" for the value itself, number)
    bold: bool = False

    @property
    def value(self) -> float | None:
        """The number to sort by."""
        return self.numbers[0][1] if self.numbers else None


Entry = TableCell | str | float | None  # what :func:`as_cell` makes a cell of


@dataclass(frozen=True)
class ResultTable:
    """Rows under a header, with what a reader must know to read them."""

    name: str  # of its files
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    align: str  # "l" or "r" for each column
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()  # rows above which a line stands
    warning: str = ""  # what must be seen first, such as that these were quick runs

    def __post_init__(self) -> None:
        widths = {len(self.header), len(self.align), *(len(row) for row in self.rows)}
        if len(widths) != 1:
            raise ValueError(f"table {self.name!r} has rows, header or alignment of different widths")

    def sorted_by(self, key: Callable[[tuple[TableCell, ...]], float]) -> ResultTable:
        """Return the table with its rows in the order of a key."""
        return replace(self, rows=tuple(sorted(self.rows, key=key)))

    def first_rows(self, most: int) -> ResultTable:
        """Return the table with so many rows at most, and a note on those that are left out."""
        if len(self.rows) <= most:
            return self
        more = f"{len(self.rows) - most} more are not shown."
        return replace(self, rows=self.rows[:most], notes=(*self.notes, more))


def rules_between(labels: Sequence[str]) -> tuple[int, ...]:
    """Return the rows above which a line stands: those whose label is another one than that of the row before."""
    return tuple(i for i in range(1, len(labels)) if labels[i] != labels[i - 1])


def make_table(
    name: str,
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Entry]],
    notes: Iterable[str] = (),
    align: str = "",
    rules: Sequence[int] = (),
    warning: str = "",
) -> ResultTable:
    """Return a table of entries, each a cell or what :func:`as_cell` makes one of; empty notes are left out.

    Without ``align``, the first column is on the left and the others are on the right.
    """
    cells = tuple(tuple(map(as_cell, row)) for row in rows)
    align = align or "l" + "r" * (len(header) - 1)
    return ResultTable(
        name, title, tuple(header), cells, align, tuple(filter(None, notes)), tuple(rules), warning
    )


# Cells


def as_cell(entry: Entry) -> TableCell:
    """Return the cell of a text, of a count, or of a number with three significant digits; of None or NaN a dash."""
    if isinstance(entry, TableCell):
        return entry
    if entry is None or isinstance(entry, str):
        return TableCell(NO_VALUE if entry is None else entry)
    return number_cell(entry, str(entry) if isinstance(entry, int) else None)


def number_cell(value: float, words: str | None = None, bold: bool = False) -> TableCell:
    """Return a cell with a number, written with three significant digits or as ``words``."""
    if math.isnan(value):
        return TableCell(NO_VALUE)
    exact = int(value) if isinstance(value, int) else float(value)  # and no NumPy scalar
    return TableCell(significant(value) if words is None else words, (("", exact),), bold)


def mean_cell(values: ArrayLike, shown: int | None = None, bold: bool = False) -> TableCell:
    """Return a cell with the mean of values [R] ± its standard error, with so many decimals or as many as tell."""
    array = np.asarray(values)
    error = standard_error(array)
    return mean_error_cell(
        float(array.mean()) if len(array) else math.nan,
        error,
        decimals([error]) if shown is None else shown,
        bold,
    )


def mean_error_cell(mean: float, error: float, shown: int, bold: bool = False, mark: str = "") -> TableCell:
    """Return a cell with a mean ± standard error; of a single run the mean alone."""
    if math.isnan(mean):
        return TableCell(NO_VALUE)
    around = "" if math.isnan(error) else f" ± {error:.{shown}f}"
    return TableCell(f"{mean:.{shown}f}{around}{mark}", (("", float(mean)), (ERROR, float(error))), bold)


def interval_cell(estimate: Estimate, decimals: int) -> TableCell:
    """Return a cell with both ends of a 95% interval."""
    if math.isnan(estimate.low):
        return TableCell(NO_VALUE)
    words = f"{estimate.low:.{decimals}f} to {estimate.high:.{decimals}f}"
    return TableCell(words, ((LOW, estimate.low), (HIGH, estimate.high)))


def value_interval_cell(estimate: Estimate, decimals: int, bold: bool = False) -> TableCell:
    """Return a cell with a value and its interval in brackets; without an interval, the value alone."""
    if math.isnan(estimate.value):
        return TableCell(NO_VALUE)
    ends = interval_cell(estimate, decimals)
    around = f" [{ends.text}]" if ends.numbers else ""
    numbers = (("", estimate.value), (LOW, estimate.low), (HIGH, estimate.high))
    return TableCell(f"{estimate.value:.{decimals}f}{around}", numbers, bold)


def p_value_cell(p: float) -> TableCell:
    """Return a cell with a p-value; the smallest are not written out."""
    return number_cell(p, "< 0.001" if p < 0.001 else f"{p:.3f}")


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, never with an exponent.

    Examples
    --------
    >>> significant(1312.4), significant(0.012345), significant(7.0)
    ('1312', '0.0123', '7.00')
    """
    if value == 0.0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def decimals_of(words: str) -> int:
    """Return the number of decimals that a number was written with."""
    return len(words.partition(".")[2])


def decimals(errors: Iterable[float]) -> int:
    """Return the decimals that show two digits of the middle one of these standard errors, at most 4; 2 without any.

    Examples
    --------
    >>> decimals([0.5, 4.7, 21.0]), decimals([0.0034]), decimals([])
    (1, 4, 2)
    """
    known = sorted(error for error in errors if error > 0.0)
    if not known:
        return 2
    return min(4, max(0, 1 - math.floor(math.log10(known[len(known) // 2]))))


def parameters_text(configuration: Mapping[str, Any]) -> str:
    """Return parameters as they are written on the command line.

    Examples
    --------
    >>> parameters_text({"n_steps": 25, "prior.beta": 6.0})
    'n_steps=25, prior.beta=6'
    """
    written = (f"{k}={f'{v:g}' if isinstance(v, float) else v}" for k, v in configuration.items())
    return ", ".join(written) or NO_VALUE


# Renderings


def to_rich(table: ResultTable, styled: bool = True) -> RichTable:
    """Return a table for Rich to print; without style, in a file or a pipe, bold cells have a star."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    title = Text(f"{table.warning}\n" if table.warning else "", "bold yellow").append(
        table.title, "not bold default"
    )
    notes = (note if styled else note.replace(BOLD_NOTE, STAR_NOTE) for note in table.notes)
    drawn = RichTable(
        title=title,
        caption=Text("\n".join(notes)),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name, align in zip(table.header, table.align):
        drawn.add_column(Text(name), justify="left" if align == "l" else "right")
    star = " *" if not styled and any(BOLD_NOTE in note for note in table.notes) else ""
    for i, row in enumerate(table.rows):
        if i in table.rules:
            drawn.add_section()
        drawn.add_row(*(Text(c.text + star, "bold") if c.bold else Text(c.text) for c in row))
    return drawn


def without_repeated_notes(tables: Iterable[ResultTable]) -> Iterator[ResultTable]:
    """Yield tables in which a note that stands under an earlier one is left out."""
    shown: set[str] = set()
    for table in tables:
        notes = tuple(note for note in table.notes if note not in shown)
        shown.update(notes)
        yield replace(table, notes=notes)


def to_text(tables: Iterable[ResultTable]) -> str:
    """Return tables as plain text, one under the other."""
    from rich.console import Console

    screen = Console(
        width=TEXT_WIDTH, highlight=False, force_terminal=False, force_jupyter=False, no_color=True
    )
    with screen.capture() as drawn:
        for number, table in enumerate(without_repeated_notes(tables)):
            if number:
                screen.print()
            screen.print(to_rich(table, styled=False))
    return "\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines())


def to_markdown(table: ResultTable) -> str:
    """Return a table in GitHub's Markdown."""
    rule = ["---:" if align == "r" else ":---" for align in table.align]
    lines = [[escape_markdown(name) for name in table.header], rule]
    lines += [
        [f"**{escape_markdown(c.text)}**" if c.bold else escape_markdown(c.text) for c in row]
        for row in table.rows
    ]
    head = [f"**{escape_markdown(words)}**" for words in (table.title, table.warning) if words]
    body = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    notes = "\n".join(f"- {escape_markdown(note)}" for note in table.notes)
    return "\n\n".join([*head, body, *([notes] if notes else [])]) + "\n"


def to_csv(table: ResultTable) -> str:
    """Return a table as CSV, one line per row; a cell of several numbers has a column for each."""
    # names of the numbers in each column; a column without numbers has its texts
    columns = [
        list(dict.fromkeys(name for row in table.rows for name, _ in row[j].numbers))
        for j in range(len(table.header))
    ]
    warned = ["warning"] if table.warning else []
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header: list[str] = []
    for title, names in zip(table.header, columns):
        header += [f"{title} {name}".strip() for name in names] or [title]
    writer.writerow(header + warned)
    for row in table.rows:
        fields: list[str] = []
        for cell, names in zip(row, columns):
            numbers = dict(cell.numbers)
            fields += [repr(numbers[name]) if name in numbers else "" for name in names] or [cell.text]
        writer.writerow(fields + [table.warning] * len(warned))
    return stream.getvalue()


def to_latex(table: ResultTable) -> str:
    r"""Return a ``table`` to ``\input``; its preamble needs ``\usepackage{booktabs}``."""
    rows = []
    for i, row in enumerate(table.rows):
        rows += [r"\midrule"] if i in table.rules and i else []
        cells = (rf"\textbf{{{escape_latex(c.text)}}}" if c.bold else escape_latex(c.text) for c in row)
        rows.append(" & ".join(cells) + r" \\")
    notes = [note for note in (table.warning, *table.notes) if note]
    small = (
        [r"\par\smallskip", r"{\footnotesize " + r"\par ".join(map(escape_latex, notes)) + r"\par}"]
        if notes
        else []
    )
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(table.title)}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{table.align}}}",
            r"\toprule",
            " & ".join(map(escape_latex, table.header)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *small,
            r"\end{table}",
            "",
        ]
    )


def to_html(table: ResultTable) -> str:
    """Return a ``figure`` with the table in it; columns of numbers carry them, for sorting."""
    return html_templates().get_template("table.html").render(table=table)


TABLE_WRITERS: dict[str, Callable[[ResultTable], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
    "html": to_html,
}


def write_table(table: ResultTable, folder: Path, endings: Iterable[str]) -> list[Path]:
    """Write a table into a folder, which is made if needed, in each of these formats; return the paths."""
    paths = {ending: folder / f"{table.name}.{ending}" for ending in endings}
    for ending, path in paths.items():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(TABLE_WRITERS[ending](table), encoding="utf-8")
    return list(paths.values())


@lru_cache(maxsize=1)
def html_templates() -> TemplateEnvironment:
    """Return the HTML templates of the laboratory, in which all text is escaped."""
    from jinja2 import Environment as TemplateEnvironment
    from jinja2 import PackageLoader, StrictUndefined

    templates = TemplateEnvironment(
        loader=PackageLoader("bamdp.lab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals["alignments"] = ALIGNMENTS
    return templates


def escape_latex(words: str) -> str:
    """Return a text in which LaTeX's special characters are escaped."""
    return "".join(LATEX_CHARACTERS.get(character, character) for character in words)


def escape_markdown(words: str) -> str:
    """Return a text in which Markdown's special characters are escaped."""
    escaped = html.escape(words, quote=False)
    for character in "\\|*_`":
        escaped = escaped.replace(character, "\\" + character)
    return escaped
