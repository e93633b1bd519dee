"""Where output goes: results to standard output, everything else, calmly, to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bamdp._kernels.jit import on_first_compile
from bamdp.runs import Progress

PLAIN_WIDTH = 120  # of tables that go to a file or another program


def note(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """On standard output; numbers that are not finite must have become null."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def compiling() -> Iterator[None]:
    """Say so, once, if something is compiled inside the block."""
    with on_first_compile(lambda: note("compiling for this machine (only the first time; kept on disk) ...")):
        yield


@contextmanager
def progress_bar(total: int, label: str, wanted: bool | None = None) -> Iterator[Progress | None]:
    """A bar over ``total`` steps; None instead of a function to call where nobody would see it."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True, force_terminal=True if wanted else None)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda n: bar.advance(task, n)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numbers: Sequence[str] = ()
) -> None:
    """A table on standard output; the columns named in ``numbers`` are flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    screen = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    with screen.capture() as drawn:
        screen.print(Text(title, style="bold"), soft_wrap=True)
        screen.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()))
