"""Work on one or several processes: results as they finish, progress step by step, a death noticed and told.

A *pool* works on items, each by a call ``work(item, tick)`` in which ``tick(n)`` tells that n more steps are done.
:func:`stream` feeds a pool and yields ``(item, result)`` in the order in which items finish. It asks for the next item
only when there is room for it, so the list of items may grow while others are worked on.

- :class:`Here` works in this process, one item after the other.
- :class:`Workers` are processes (loky, which comes with joblib). They write the steps that they have done into a small
  shared file, from which progress is drawn. If one dies (killed, or out of memory), the items at hand come back as
  :class:`Lost`, and the next item finds new workers.

An exception in ``work`` comes back as the item's result; what to do about it is the caller's decision.
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
from typing import Any, Protocol, TypeVar

import numpy as np

TELL_EVERY = 0.05  # seconds between two reports of progress
IDLE = 60.0  # seconds after which a worker without work leaves
ATTEMPTS = 5  # to hand an item to processes that keep dying before they take it
BEGUN, STEPS = range(2)  # columns of the shared file

Item = TypeVar("Item")
Progress = Callable[[int], Any]  # is called with the number of steps just done
Work = Callable[[Any, Progress], Any]


class Lost(RuntimeError):
    """The process that had the item died; ``begun`` tells whether it had begun to work on it."""

    def __init__(self, begun: bool) -> None:
        super().__init__("a worker process died (killed, or out of memory); try fewer jobs")
        self.begun = begun


class Pool(Protocol):
    """What :func:`stream` needs."""

    @property
    def places(self) -> int:
        """How many items it takes at a time; a few wait, so that nobody idles."""

    def submit(self, work: Work, item: Any) -> Future[Any]:
        """Begin to work on an item."""

    def look(self) -> None:
        """Pass on the progress that was made since the last look."""

    def outcome(self, future: Future[Any]) -> Any:
        """What an item came to: a result, the exception, or Lost."""

    def stop(self) -> None:
        """Drop everything at hand, at once."""


def stream(
    pool: Pool, work: Work, take: Callable[[], Item | None]
) -> Generator[tuple[Item, Any], None, None]:
    """Work on what ``take`` gives until it gives None with nothing at hand; whoever leaves early stops the pool."""
    at_hand: dict[Future[Any], Item] = {}
    try:
        while True:
            while len(at_hand) < pool.places and (item := take()) is not None:
                at_hand[pool.submit(work, item)] = item
            if not at_hand:
                return
            done, _ = wait(at_hand, timeout=TELL_EVERY, return_when=FIRST_COMPLETED)
            pool.look()
            for future in done:
                yield at_hand.pop(future), pool.outcome(future)
    finally:
        if at_hand:
            pool.stop()


def new_pool(jobs: int, progress: Progress | None = None) -> Here | Workers:
    """This process for one job, else so many workers. A context manager."""
    return Here(progress) if jobs == 1 else Workers(jobs, progress)


class Here:
    """Works in this process; every item is done when :meth:`submit` returns."""

    places = 1

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress or (lambda n: None)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def submit(self, work: Work, item: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(item, self.progress))
        except Exception as error:
            future.set_exception(error)
        return future

    def look(self) -> None:
        pass

    def outcome(self, future: Future[Any]) -> Any:
        return future.exception() or future.result()

    def stop(self) -> None:
        pass


class Workers:
    """So many processes on this machine."""

    def __init__(self, jobs: int, progress: Progress | None = None) -> None:
        self.jobs, self.places = jobs, 2 * jobs
        self.progress = progress or (lambda n: None)
        self.folder = TemporaryDirectory(prefix="bamdp-")
        self.path = Path(self.folder.name, "steps")
        self.counts = np.memmap(self.path, np.int64, "w+", shape=(self.places, 2))
        self.told = np.zeros(self.places, np.int64)
        self.slots: dict[Future[Any], int] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        del self.counts
        self.folder.cleanup()

    def submit(self, work: Work, item: Any) -> Future[Any]:
        slot = next(slot for slot in range(self.places) if slot not in self.slots.values())
        self.counts[slot] = self.told[slot] = 0
        future = self._submit(_work, work, item, self.path, self.places, slot)
        self.slots[future] = slot
        return future

    def _submit(self, *call: Any) -> Future[Any]:
        for _ in range(ATTEMPTS):  # an executor that breaks at this moment may have closed its pipes
            with suppress(BrokenProcessPool, OSError), _children_without_ctrl_c():
                future: Future[Any] = self._executor().submit(*call)
                return future
        raise RuntimeError("worker processes die as soon as they are begun; is memory short? try --jobs 1")

    def _executor(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(max_workers=self.jobs, timeout=IDLE)  # a new one if the last has broken

    def look(self) -> None:
        used = list(self.slots.values())
        now = np.array(self.counts[used, STEPS])  # read once: workers go on counting
        new = int((now - self.told[used]).sum())
        self.told[used] = now
        if new:
            self.progress(new)

    def outcome(self, future: Future[Any]) -> Any:
        slot = self.slots[future]
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            self.progress(-int(self.told[slot]))  # all of it is to be done again
            self.counts[slot, STEPS] = self.told[slot] = 0
            error = Lost(begun=bool(self.counts[slot, BEGUN]))
        self.look()
        del self.slots[future]
        return error or future.result()

    def stop(self) -> None:
        self._executor().shutdown(wait=True, kill_workers=True)
        self.slots.clear()


def _work(work: Work, item: Any, path: Path, places: int, slot: int) -> Any:
    counts = np.memmap(path, np.int64, "r+", shape=(places, 2))
    counts[slot, BEGUN] = 1

    def tell(n: int) -> None:
        counts[slot, STEPS] += n

    return work(item, tell)


@contextmanager
def _children_without_ctrl_c() -> Iterator[None]:
    """Processes begun inside ignore Ctrl-C, which is ours to handle: we end them, and they have no last words."""
    if threading.current_thread() is not threading.main_thread():  # only there can it be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
