"""Execution of work items in one or several processes, and progress bars.

A *pool* processes each item by calling ``work(item, tick)``, where ``tick(n)`` reports n more completed steps.
:func:`stream` feeds a pool and yields ``(item, result)`` in order of completion. It requests the next item only when
the pool has capacity, so items may be added while others are processed.

With one job, a :class:`Pool` processes items in the current process. With several, it uses processes (loky, included in
joblib) and reports an item's steps when it is complete. If a process dies (killed or out of memory), all running items
return :class:`WorkerDied`, and new processes are started for the next item.

An exception raised by ``work`` is returned as the item's result; the caller decides how to handle it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

POLL_SECONDS = 0.05  # polling interval
IDLE_SECONDS = 60.0  # idle time after which a process exits

Item = TypeVar("Item")
Progress = Callable[[int], Any]  # called with the number of steps just completed
Work = Callable[[Any, Progress], Any]


class WorkerDied(RuntimeError):
    """Error for an item whose process, or another process of its pool, died."""

    def __init__(self) -> None:
        super().__init__("a worker process died (killed, or out of memory); try fewer jobs")


class Pool(AbstractContextManager["Pool"]):
    """Pool of ``jobs`` local processes that reports completed steps to ``progress``; a single job starts no process."""

    def __init__(self, jobs: int = 1, progress: Progress | None = None) -> None:
        self.jobs, self.progress = jobs, progress or (lambda n: None)

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        """The number of items accepted at a time, including a queue that keeps all processes busy."""
        return 1 if self.jobs == 1 else 2 * self.jobs

    def submit(self, work: Work, item: Any) -> Future[Any]:
        """Submit an item; a single job processes it immediately."""
        future: Future[Any] = Future()
        try:
            if self.jobs > 1:
                return self._executor().submit(work_and_count, work, item)
            future.set_result((work(item, self.progress), 0))
        except Exception as error:
            broken = self.jobs > 1 and isinstance(error, OSError)  # no process could be started
            future.set_exception(BrokenProcessPool() if broken else error)
        return future

    def _executor(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        # loky replaces a broken executor. Only this process handles Ctrl-C; it then terminates the others.
        ignore = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
        return get_reusable_executor(max_workers=self.jobs, timeout=IDLE_SECONDS, **ignore)

    def poll(self) -> None:
        """Update the status of work that is done elsewhere."""

    def result_of(self, future: Future[Any]) -> Any:
        """Return the result of an item: what ``work`` returned, the exception, or WorkerDied."""
        error = future.exception()
        if error is not None:
            return WorkerDied() if isinstance(error, BrokenProcessPool) else error
        result, steps = future.result()
        self.progress(steps)
        return result

    def stop(self) -> None:
        """Cancel all running items immediately."""
        if self.jobs > 1:
            self._executor().shutdown(wait=True, kill_workers=True)

    def close(self) -> None:
        """Release the pool's resources."""


def stream(
    pool: Pool, work: Work, take: Callable[[], Item | None]
) -> Generator[tuple[Item, Any], None, None]:
    """Process items from ``take`` until it returns None and all are complete; closing the generator stops the pool."""
    in_work: dict[Future[Any], Item] = {}
    try:
        while True:
            while len(in_work) < pool.capacity and (item := take()) is not None:
                in_work[pool.submit(work, item)] = item
            if not in_work:
                return
            done, _ = wait(in_work, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            pool.poll()
            for future in done:
                yield in_work.pop(future), pool.result_of(future)
    finally:
        if in_work:
            pool.stop()


def work_and_count(work: Work, item: Any) -> tuple[Any, int]:
    """Process an item in another process; return the result and the number of completed steps."""
    steps: list[int] = []
    return work(item, steps.append), sum(steps)


# --- progress bars ----------------------------------------------------------------------------------------------------


@contextmanager
def step_bar(progress: bool | Progress | None, total: int) -> Iterator[Progress]:
    """Yield the function to call with the number of completed steps: the caller's, or one that advances a bar."""
    if callable(progress):
        yield progress
        return
    with growing_bar("steps", bool(progress)) as (done, more):
        more(total)
        yield done


@contextmanager
def growing_bar(
    label: str, shown: bool = True, force_terminal: bool | None = None
) -> Iterator[tuple[Progress, Progress]]:
    """Show a bar on standard error; yield one function to report completed steps and one to add to the total."""
    if not shown:
        yield (lambda n: None), (lambda n: None)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bars

    screen = Console(stderr=True, force_terminal=force_terminal)
    with Bars(console=screen, transient=True) as bar:
        task = bar.add_task(escape(label), total=0)
        yield partial(bar.advance, task), lambda n: bar.update(task, total=(bar.tasks[0].total or 0) + n)
