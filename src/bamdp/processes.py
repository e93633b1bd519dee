"""Work on one or several processes: results as they finish, and a process that dies is reported.

A *pool* works on items, each by a call ``work(item, tick)`` in which ``tick(n)`` reports that n more steps are done.
:func:`stream` feeds a pool and yields ``(item, result)`` in the order in which items finish. It asks for the next item
only when the pool can take it, so the list of items may grow while others are worked on.

- :class:`Pool` works in this process, one item after the other.
- :class:`ProcessPool` has processes (loky, which comes with joblib) and reports the steps of an item when it is done.
  If one dies (killed, or out of memory), the items in work come back as :class:`WorkerDied`, and the next item finds
  new processes.

An exception in ``work`` comes back as the item's result; the caller decides what to do about it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Self, TypeVar

from bamdp._progress import Progress

POLL_SECONDS = 0.05  # between two looks at a pool
IDLE_SECONDS = 60.0  # after which a process without work ends

Item = TypeVar("Item")
Work = Callable[[Any, Progress], Any]


class WorkerDied(RuntimeError):
    """The process that had the item, or another of the same pool, died."""

    def __init__(self) -> None:
        super().__init__("a worker process died (killed, or out of memory); try fewer jobs")


class Pool:
    """Works in this process; a context manager. ``progress`` is called with steps just done."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress or (lambda n: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def capacity(self) -> int:
        """The number of items that it takes at a time; more than it works on, so that no process idles."""
        return 1

    def submit(self, work: Work, item: Any) -> Future[Any]:
        """Begin to work on an item; here, do all of it."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(item, self.progress))
        except Exception as error:
            future.set_exception(error)
        return future

    def poll(self) -> None:
        """Look after work that is done elsewhere."""

    def result_of(self, future: Future[Any]) -> Any:
        """Return the result of an item: what ``work`` returned, the exception, or WorkerDied."""
        return future.exception() or future.result()

    def stop(self) -> None:
        """Drop all items in work, at once."""

    def close(self) -> None:
        """Free what the pool holds."""


def stream(
    pool: Pool, work: Work, take: Callable[[], Item | None]
) -> Generator[tuple[Item, Any], None, None]:
    """Work on the items that ``take`` returns until it returns None and none is left; closing it stops the pool."""
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


def new_pool(jobs: int, progress: Progress | None = None) -> Pool:
    """Return a pool of ``jobs`` processes, or of this process alone for one job; it is a context manager."""
    return Pool(progress) if jobs == 1 else ProcessPool(jobs, progress)


class ProcessPool(Pool):
    """Works in ``jobs`` processes on this machine."""

    def __init__(self, jobs: int, progress: Progress | None = None) -> None:
        super().__init__(progress)
        self.jobs = jobs

    @property
    def capacity(self) -> int:
        return 2 * self.jobs

    def submit(self, work: Work, item: Any) -> Future[Any]:
        try:
            future: Future[Any] = self._executor().submit(work_and_count, work, item)
        except (BrokenProcessPool, OSError):  # it breaks at this moment
            future = Future()
            future.set_exception(BrokenProcessPool())
        return future

    def _executor(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        # loky returns a new one if the last has broken. Ctrl-C is for this process, which ends the others.
        ignore = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
        return get_reusable_executor(max_workers=self.jobs, timeout=IDLE_SECONDS, **ignore)

    def result_of(self, future: Future[Any]) -> Any:
        error = future.exception()
        if error is not None:
            return WorkerDied() if isinstance(error, BrokenProcessPool) else error
        result, steps = future.result()
        self.progress(steps)
        return result

    def stop(self) -> None:
        self._executor().shutdown(wait=True, kill_workers=True)


def work_and_count(work: Work, item: Any) -> tuple[Any, int]:
    """Work on an item in another process; return the result and the number of steps that were done."""
    steps = 0

    def count(n: int) -> None:
        nonlocal steps
        steps += n

    return work(item, count), steps
