"""Work on one or several processes: results as they finish, progress per step, and a process that dies is reported.

A *pool* works on items, each by a call ``work(item, tick)`` in which ``tick(n)`` reports that n more steps are done.
:func:`stream` feeds a pool and yields ``(item, result)`` in the order in which items finish. It asks for the next item
only when there is room for it, so the list of items may grow while others are worked on.

- :class:`Pool` works in this process, one item after the other.
- :class:`ProcessPool` has processes (loky, which comes with joblib). They write the number of steps that they have done
  into a small shared file, from which progress is read. If one dies (killed, or out of memory), the items in work come
  back as :class:`WorkerDied`, and the next item finds new processes.

An exception in ``work`` comes back as the item's result; the caller decides what to do about it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import numpy as np

from bamdp._progress import Progress

TELL_EVERY = 0.05  # seconds between two reports of progress
IDLE_SECONDS = 60.0  # after which a process without work ends
SUBMIT_ATTEMPTS = 5  # to hand an item to processes that keep dying before they take it
BEGUN, STEPS_DONE = range(2)  # columns of the shared file

Item = TypeVar("Item")
Work = Callable[[Any, Progress], Any]


class WorkerDied(RuntimeError):
    """The process that had the item died; ``begun`` says whether it had begun to work on it."""

    def __init__(self, begun: bool) -> None:
        super().__init__("a worker process died (killed, or out of memory); try fewer jobs")
        self.begun = begun


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
        """Report the progress that was made since the last call."""

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
            done, _ = wait(in_work, timeout=TELL_EVERY, return_when=FIRST_COMPLETED)
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
        self.folder = TemporaryDirectory(prefix="bamdp-")
        self.path = Path(self.folder.name, "steps")
        self.counts = np.memmap(self.path, np.int64, "w+", shape=(self.capacity, 2))
        self.reported = np.zeros(self.capacity, np.int64)  # steps of each slot that progress has been told of
        self.slots: dict[Future[Any], int] = {}
        self._excepthook = threading.excepthook
        threading.excepthook = self._report_thread

    def _report_thread(self, args: Any) -> None:
        """Pass on exceptions of threads, but for those of loky's own thread, whose workers Ctrl-C may have ended."""
        if args.thread is None or not args.thread.name.startswith("ExecutorManagerThread"):
            self._excepthook(args)

    @property
    def capacity(self) -> int:
        return 2 * self.jobs

    def close(self) -> None:
        threading.excepthook = self._excepthook
        del self.counts
        self.folder.cleanup()

    def submit(self, work: Work, item: Any) -> Future[Any]:
        slot = next(slot for slot in range(self.capacity) if slot not in self.slots.values())
        self.counts[slot] = self.reported[slot] = 0
        future = self._submit(_work_in_slot, work, item, self.path, self.capacity, slot)
        self.slots[future] = slot
        return future

    def _submit(self, *call: Any) -> Future[Any]:
        for _ in range(SUBMIT_ATTEMPTS):  # an executor that breaks at this moment may have closed its pipes
            with suppress(BrokenProcessPool, OSError), _children_without_ctrl_c():
                future: Future[Any] = self._executor().submit(*call)
                return future
        raise RuntimeError("worker processes die as soon as they are started; is memory short? try --jobs 1")

    def _executor(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        # loky returns a new one if the last has broken
        return get_reusable_executor(max_workers=self.jobs, timeout=IDLE_SECONDS)

    def poll(self) -> None:
        used = list(self.slots.values())
        now = np.array(self.counts[used, STEPS_DONE])  # read once: workers go on counting
        new = int((now - self.reported[used]).sum())
        self.reported[used] = now
        if new:
            self.progress(new)

    def result_of(self, future: Future[Any]) -> Any:
        slot = self.slots[future]
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            self.progress(-int(self.reported[slot]))  # all of it is to be done again
            self.counts[slot, STEPS_DONE] = self.reported[slot] = 0
            error = WorkerDied(begun=bool(self.counts[slot, BEGUN]))
        self.poll()
        del self.slots[future]
        return error or future.result()

    def stop(self) -> None:
        self._executor().shutdown(wait=True, kill_workers=True)
        self.slots.clear()


def _work_in_slot(work: Work, item: Any, path: Path, capacity: int, slot: int) -> Any:
    """Work on an item in a worker process, counting its steps in a row of the shared file."""
    counts = np.memmap(path, np.int64, "r+", shape=(capacity, 2))
    counts[slot, BEGUN] = 1

    def tick(n: int) -> None:
        counts[slot, STEPS_DONE] += n

    return work(item, tick)


@contextmanager
def _children_without_ctrl_c() -> Iterator[None]:
    """Let processes that are started inside ignore Ctrl-C: this process handles it and ends them quietly."""
    if threading.current_thread() is not threading.main_thread():  # signals can be set only there
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
