"""Console output: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bamdp import processes
from bamdp._kernels.jit import COMPILING, on_first_compile
from bamdp.envs.environment import World
from bamdp.processes import Progress
from bamdp.runs import Setting

PICTURES = (".png", ".svg", ".pdf")
PLAIN_WIDTH = 120  # of tables written to a file or pipe
LONG_STEP, LONG_WORK = 10.0, 3600.0  # seconds; announce a longer step or longer total work
HOUR, YEAR = 3600.0, 365.25 * 86400.0  # seconds


def note(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def remark(text: str) -> None:
    """Print to standard error a note that qualifies the results."""
    note(f"note: {text}")


def announce(setting: Setting, env: World, label: str, n_steps: int) -> None:
    """Print a warning if one step, or ``n_steps`` steps, will take a long time."""
    step = setting.planner.cost(env.n_states, env.n_actions, setting.first_discount).seconds
    if step > LONG_STEP or step * n_steps > LONG_WORK:
        whole = f", and all {n_steps} of them {duration(step * n_steps)}" if n_steps > 1 else ""
        remark(f"a step of {label} takes about {duration(step)}{whole}; Ctrl-C ends it")


def duration(seconds: float) -> str:
    """Return a duration in seconds, minutes, hours or years."""
    for unit, name in ((YEAR, "years"), (HOUR, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}" if seconds < 100 * unit else f"{seconds / unit:.0f} {name}"
    return f"{seconds:.2g} s"


def print_json(value: Any) -> None:
    """Print JSON to standard output, replacing non-finite numbers by null."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_picture_path(path: str, endings: Sequence[str] = PICTURES, option: str = "--figure") -> Path:
    """Check that a picture's file extension is supported, and return the path."""
    if Path(path).suffix not in endings:
        raise ValueError(f"{option} must end in {', '.join(endings[:-1])} or {endings[-1]}, got {path!r}")
    return Path(path)


@contextmanager
def compiling() -> Iterator[None]:
    """Print a note the first time something is compiled inside the block."""
    with on_first_compile(lambda: note(COMPILING)):
        yield


@contextmanager
def progress_bar(total: int, label: str, shown: bool | None = None) -> Iterator[Progress]:
    """Show a progress bar over ``total`` steps, and yield the function that advances it."""
    with terminal_bar(label, shown) as (steps, more):
        more(total)
        yield steps


@contextmanager
def terminal_bar(label: str, shown: bool | None = None) -> Iterator[tuple[Progress, Progress]]:
    """Show a progress bar whose total may grow; yield one function that advances it and one that raises the total.

    If ``shown`` is None, show the bar only if standard error is a terminal.
    """
    seen = sys.stderr.isatty() if shown is None else shown
    with processes.growing_bar(label, seen, force_terminal=True if shown else None) as counters:
        yield counters


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, numbers: Sequence[str] = ()
) -> None:
    """Print a table to standard output, right-aligning the columns named in ``numbers``."""
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
        screen.print(Text(title, style="bold"), table, sep="\n")
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()))
