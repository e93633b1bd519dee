"""Output of the commands: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bamdp._kernels.jit import on_first_compile
from bamdp.processes import Progress

PICTURES = (".png", ".svg", ".pdf")
PLAIN_WIDTH = 120  # of tables that go to a file or another program


def note(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print JSON on standard output; numbers that are not finite must have become null before."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def check_picture_path(output: str) -> Path:
    """Check that the file name of a picture has an ending that can be written, and return its path."""
    if Path(output).suffix not in PICTURES:
        raise ValueError(f"--output must end in .png, .svg or .pdf, got {output!r}")
    return Path(output)


@contextmanager
def compiling() -> Iterator[None]:
    """Tell, once, if something is compiled inside the block; Ctrl-C ends at once what compiled code does there."""
    from bamdp.cli.interrupts import ctrl_c_at_once  # compiled itself, when it is imported for the first time

    with (
        ctrl_c_at_once(),
        on_first_compile(lambda: note("compiling for this machine (only the first time; kept on disk) ...")),
    ):
        yield


@contextmanager
def progress_bar(total: int, label: str, shown: bool | None = None) -> Iterator[Progress | None]:
    """Show a bar over ``total`` steps, and yield the function that advances it; None where no bar is shown."""
    if not _is_shown(shown):
        yield None
        return
    with growing_bar(label, shown) as (steps, more):
        more(total)
        yield steps


@contextmanager
def growing_bar(label: str, shown: bool | None = None) -> Iterator[tuple[Progress, Progress]]:
    """Show a bar whose end is not known at the beginning; yield functions for steps done, and for more to do.

    With ``shown`` None there is a bar if standard error is a terminal.
    """
    if not _is_shown(shown):
        yield (lambda n: None), (lambda n: None)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    screen = Console(stderr=True, force_terminal=True if shown else None)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    total = 0
    with Bars(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(escape(label), total=0)

        def more(n: int) -> None:
            nonlocal total
            total += n
            bar.update(task, total=total)

        yield lambda n: bar.advance(task, n), more


def _is_shown(shown: bool | None) -> bool:
    return sys.stderr.isatty() if shown is None else shown


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numbers: Sequence[str] = ()
) -> None:
    """Print a table on standard output; the columns named in ``numbers`` are flush right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    print_rich(Text(title, style="bold"), table)


def print_rich(*parts: Any) -> None:
    """Print renderables of Rich on standard output, without blanks at the ends of lines."""
    from rich.console import Console
    from rich.text import Text

    screen = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    with screen.capture() as drawn:
        for part in parts:
            screen.print(part, soft_wrap=isinstance(part, Text))
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()))
