"""Console output: results on standard output, notes and progress on standard error."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bamdp._kernels.jit import COMPILING, on_first_compile
from bamdp.envs.environment import World
from bamdp.processes import Progress, growing_bar
from bamdp.runs import Setting

if TYPE_CHECKING:
    from bamdp.lab.results import Results
    from bamdp.lab.tables import Table

LONG_STEP, LONG_WORK = 10.0, 3600.0  # seconds; announce a longer step or longer total work
HOUR, YEAR = 3600.0, 365.25 * 86400.0  # seconds


def note(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


def show(tables: Iterable[Table], *results: Results) -> None:
    """Print tables to standard output, and the notes of studies to standard error."""
    print("\n\n".join(map(str, tables)))
    for line in dict.fromkeys(line for found in results for line in found.notes):
        note(f"note: {line}")


def announce(setting: Setting, env: World, label: str, n_steps: int) -> None:
    """Print a warning if one step, or ``n_steps`` steps, will take a long time."""
    step = setting.planner.cost(env.n_states, env.n_actions, setting.first_discount).seconds
    if step > LONG_STEP or step * n_steps > LONG_WORK:
        whole = f", and {n_steps} steps take {duration(step * n_steps)}" if n_steps > 1 else ""
        note(f"note: one step of {label} takes about {duration(step)}{whole}; press Ctrl-C to stop")


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


def draw_figure(path: Path, draw: Callable[..., Any]) -> None:
    """Create a figure with ``draw(ax=...)`` and write it to a file."""
    from bamdp.plot.style import new_figure, save_figure

    with new_figure() as (figure, (axes,)):
        draw(ax=axes)
    save_figure(figure, path)
    note(f"figure: {path}")


@contextmanager
def working(label: str, arguments: argparse.Namespace) -> Iterator[tuple[Progress, Progress]]:
    """Announce compilation and show a progress bar; yield functions that advance it and that raise its total."""
    shown = getattr(arguments, "progress", None)
    visible = sys.stderr.isatty() if shown is None else shown
    with (
        on_first_compile(lambda: note(COMPILING)),
        growing_bar(label, visible, force_terminal=True if shown else None) as counters,
    ):
        yield counters
