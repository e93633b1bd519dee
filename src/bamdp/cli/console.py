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
    if not _seen(wanted):
        yield None
        return
    with growing_bar(label, wanted) as (steps, more):
        more(total)
        yield steps


@contextmanager
def growing_bar(label: str, wanted: bool | None = None) -> Iterator[tuple[Progress, Progress]]:
    """A bar whose end is not known at the beginning: functions to tell of steps done, and of more to do."""
    if not _seen(wanted):
        yield (lambda n: None), (lambda n: None)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    screen = Console(stderr=True, force_terminal=True if wanted else None)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    known = 0
    with Bars(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(escape(label), total=0)

        def more(n: int) -> None:
            nonlocal known
            known += n
            bar.update(task, total=known)

        yield lambda n: bar.advance(task, n), more


def _seen(wanted: bool | None) -> bool:
    return sys.stderr.isatty() if wanted is None else wanted


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numbers: Sequence[str] = ()
) -> None:
    """A table on standard output; the columns named in ``numbers`` are flush right."""
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
    """Rich's renderables on standard output, without blanks at the ends of lines."""
    from rich.console import Console
    from rich.text import Text

    screen = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    with screen.capture() as drawn:
        for part in parts:
            screen.print(part, soft_wrap=isinstance(part, Text))
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()))
