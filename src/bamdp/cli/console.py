"""Output of the commands: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bamdp import _progress
from bamdp._kernels.jit import COMPILING, on_first_compile
from bamdp._progress import Progress

PICTURES = (".png", ".svg", ".pdf")
PLAIN_WIDTH = 120  # of tables that go to a file or another program


def note(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def remark(text: str) -> None:
    """Print what a reader should know on standard error."""
    note(f"note: {text}")


def print_json(value: Any) -> None:
    """Print JSON on standard output; numbers that are not finite must have become null before."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def check_picture_path(output: str, option: str = "--output") -> Path:
    """Check that the file name of a picture has an ending that can be written, and return its path."""
    if Path(output).suffix not in PICTURES:
        raise ValueError(f"{option} must end in .png, .svg or .pdf, got {output!r}")
    return Path(output)


@contextmanager
def compiling() -> Iterator[None]:
    """Tell, once, if something is compiled inside the block; Ctrl-C ends at once what compiled code does there."""
    from bamdp.cli.waiting import ctrl_c_at_once

    with on_first_compile(lambda: note(COMPILING)), ctrl_c_at_once():
        yield


@contextmanager
def progress_bar(total: int, label: str, shown: bool | None = None) -> Iterator[Progress | None]:
    """Show a bar over ``total`` steps, and yield the function that advances it; None where no bar is shown."""
    if not _is_shown(shown):
        yield None
        return
    with terminal_bar(label, shown) as (steps, more):
        more(total)
        yield steps


@contextmanager
def terminal_bar(label: str, shown: bool | None = None) -> Iterator[tuple[Progress, Progress]]:
    """Show a bar whose end is not known at the beginning; yield functions for steps done, and for more to do.

    With ``shown`` None there is a bar if standard error is a terminal.
    """
    with _progress.growing_bar(label, _is_shown(shown), force_terminal=True if shown else None) as counters:
        yield counters


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
