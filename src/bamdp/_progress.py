"""Progress bars on standard error, using Rich, which is imported only when a bar is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MOVE_EVERY = 0.05  # seconds
Progress = Callable[[int], Any]  # called with the number of steps just completed


@contextmanager
def step_bar(progress: bool | Progress | None, total: int, label: str = "steps") -> Iterator[Progress | None]:
    """Yield the function to call with the number of completed steps: the caller's, one that advances a bar, or None."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield None
        return
    with growing_bar(label) as (done, more):
        more(total)
        yield done


@contextmanager
def growing_bar(
    label: str, shown: bool = True, force_terminal: bool | None = None
) -> Iterator[tuple[Progress, Progress]]:
    """Show a bar whose total may grow; yield one function to report completed steps and one to add to the total."""
    if not shown:
        yield (lambda n: None), (lambda n: None)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    screen = Console(stderr=True, force_terminal=force_terminal)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Bars(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(escape(label), total=0)
        waiting, last = 0, 0.0

        def done(n: int) -> None:  # limits the update rate, since steps may take microseconds
            nonlocal waiting, last
            waiting += n
            if (now := time.perf_counter()) - last >= MOVE_EVERY:
                bar.advance(task, waiting)
                waiting, last = 0, now

        yield done, lambda n: bar.update(task, total=(bar.tasks[0].total or 0) + n)
