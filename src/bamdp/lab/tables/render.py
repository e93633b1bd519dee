"""A table for the terminal, Markdown, CSV, LaTeX (booktabs) and HTML.

Whatever the form, the warning, the notes and the marks go with it; CSV has the warning in a column of its own and
numbers at full precision.
"""

from __future__ import annotations

import csv
import html as markup
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bamdp.lab.tables.table import Cell, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

LATEX = {
    "\\": r"\textbackslash{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "·": r"$\cdot$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "η": r"$\eta$",
    "π": r"$\pi$",
}
ALIGN = {"l": "left", "r": "right"}


BOLD, PLAIN = "Bold: ", "*: "  # how notes speak of what is bold, and where nothing can be


def terminal(table: Table, styled: bool = True) -> RichTable:
    """For Rich to print; without style, in a file or a pipe, what is bold by a note has a star."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    title = Text(f"{table.warning}\n" if table.warning else "", "bold yellow").append(
        table.title, "not bold default"
    )
    drawn = RichTable(
        title=title,
        caption=Text("\n".join(note if styled else note.replace(BOLD, PLAIN) for note in table.notes)),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for name, align in zip(table.header, table.align):
        drawn.add_column(Text(name), justify="left" if align == "l" else "right")
    star = " *" if not styled and any(BOLD in note for note in table.notes) else ""
    for i, row in enumerate(table.rows):
        if i in table.rules:
            drawn.add_section()
        drawn.add_row(*(Text(c.text + star, "bold") if c.bold else Text(c.text) for c in row))
    return drawn


def markdown(table: Table) -> str:
    """GitHub's kind."""
    rule = ["---:" if align == "r" else ":---" for align in table.align]
    lines = [[_in_markdown(name) for name in table.header], rule]
    lines += [[_in_markdown(c.text, c.bold) for c in row] for row in table.rows]
    head = [
        f"**{_in_markdown(table.title)}**",
        *([f"**{_in_markdown(table.warning)}**"] if table.warning else []),
    ]
    grid = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    notes = "\n".join(f"- {_in_markdown(note)}" for note in table.notes)
    return "\n\n".join([*head, grid, *([notes] if notes else [])]) + "\n"


def as_csv(table: Table) -> str:
    """One line a row; a cell of several numbers has a column for each."""
    columns = [_csv_columns(table, j) for j in range(len(table.header))]
    warned = ["warning"] if table.warning else []
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        [name for j in range(len(columns)) for name in _csv_header(table.header[j], columns[j])] + warned
    )
    for row in table.rows:
        fields = [field for cell, parts in zip(row, columns) for field in _csv_fields(cell, parts)]
        writer.writerow(fields + [table.warning] * len(warned))
    return stream.getvalue()


def latex(table: Table) -> str:
    r"""A ``table`` to ``\input``; its preamble needs ``\usepackage{booktabs}``."""
    rows = []
    for i, row in enumerate(table.rows):
        rows += [r"\midrule"] if i in table.rules and i else []
        rows.append(" & ".join(_in_latex(cell) for cell in row) + r" \\")
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


def html(table: Table) -> str:
    """A ``figure`` with the table in it; columns of numbers carry them, for sorting."""
    head = "".join(
        f'<th scope="col" class="{ALIGN[a]}">{_safe(name)}</th>' for name, a in zip(table.header, table.align)
    )
    rows = "\n".join(_html_row(table, i) for i in range(len(table.rows)))
    notes = "".join(f"<li>{_safe(note)}</li>" for note in table.notes)
    warning = f'<p class="warning">{_safe(table.warning)}</p>' if table.warning else ""
    return (
        f'<figure class="table" id="table-{_safe(table.name)}">\n<figcaption>{_safe(table.title)}</figcaption>\n'
        f"{warning}"
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>\n'
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + "</figure>\n"
    )


FORMATS: dict[str, Callable[[Table], str]] = {"md": markdown, "csv": as_csv, "tex": latex, "html": html}


def escape_latex(words: str) -> str:
    """Text with LaTeX's special characters made plain."""
    return "".join(LATEX.get(character, character) for character in words)


def _in_latex(cell: Cell) -> str:
    words = escape_latex(cell.text)
    return rf"\textbf{{{words}}}" if cell.bold else words


def _in_markdown(words: str, bold: bool = False) -> str:
    safe = markup.escape(words, quote=False)
    for character in "\\|*_`":
        safe = safe.replace(character, "\\" + character)
    return f"**{safe}**" if bold else safe


def _safe(words: Any) -> str:
    return markup.escape(str(words))


def _html_row(table: Table, i: int) -> str:
    cells = []
    for j, (cell, align) in enumerate(zip(table.rows[i], table.align)):
        tag, scope = ("th", ' scope="row"') if j == 0 else ("td", "")
        value = "" if cell.value is None else f' data-value="{cell.value!r}"'
        words = f"<strong>{_safe(cell.text)}</strong>" if cell.bold else _safe(cell.text)
        cells.append(f'<{tag}{scope} class="{ALIGN[align]}"{value}>{words}</{tag}>')
    ruled = ' class="rule"' if i in table.rules and i else ""
    return f"<tr{ruled}>{''.join(cells)}</tr>"


def _csv_columns(table: Table, column: int) -> list[str]:
    """What numbers a column's cells hold; none if they are words."""
    return list(dict.fromkeys(what for row in table.rows for what, _ in row[column].numbers))


def _csv_header(name: str, parts: list[str]) -> list[str]:
    return [f"{name} {part}".strip() for part in parts] or [name]


def _csv_fields(cell: Cell, parts: list[str]) -> list[str]:
    if not parts:
        return [cell.text]
    held = dict(cell.numbers)
    return [repr(held[part]) if part in held else "" for part in parts]
