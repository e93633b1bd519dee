"""Run a study on an existing Dask cluster: ``bamdp lab run study.toml --cluster tcp://HOST:8786``.

Like any other pool (:mod:`bamdp.processes`), a cluster receives a few runs at a time. The driver commits the results;
only the driver accesses the store. If a worker dies, Dask assigns its run to another. A run that kills several workers
returns WorkerDied. Progress is reported per run.

Workers must have the same version of bamdp as the driver, which is checked with every run. They also need a single
thread each (``dask worker --nthreads 1``), because processor time is measured.
"""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError, Future
from typing import Any

import bamdp
from bamdp import _checks
from bamdp.processes import Pool, Progress, Work, WorkerDied, work_and_count

CONNECT_TIMEOUT = 10.0  # seconds allowed for reaching the scheduler
FETCH_TIMEOUT = 5.0  # seconds allowed for fetching a result
MIN_CAPACITY = 16  # even without workers, because adaptive clusters only grow when runs are queued


class Cluster(Pool):
    """Pool on the cluster whose scheduler is at ``address``; usable as a context manager."""

    def __init__(self, address: str, progress: Progress | None = None) -> None:
        super().__init__(progress=progress)
        try:
            import distributed
        except ImportError:
            raise ValueError(
                "a cluster needs Dask; install it with: pip install 'dask[distributed]'"
            ) from None
        logging.getLogger("distributed").setLevel(logging.ERROR)  # errors are reported below
        self.address = address
        self.running: dict[Future[Any], Any] = {}  # our future: Dask's future
        try:
            self.client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {address} ({_checks.error_line(error)}); start one with "
                "`dask scheduler` and give its address, such as tcp://127.0.0.1:8786"
            ) from None
        try:  # a worker that cannot import bamdp would die silently on its first run
            self.client.run(exec, "import bamdp")
        except ImportError as error:
            self.client.close()
            raise ValueError(f"workers at {address} have no bamdp ({error}); install it there") from None

    def close(self) -> None:
        self.stop()
        self.client.close()

    @property
    def capacity(self) -> int:
        """Two runs per thread, so that no worker sits idle."""
        return max(2 * sum(self.client.nthreads().values()), MIN_CAPACITY)

    def submit(self, work: Work, item: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.running[future] = self.client.submit(_remote, work, item, bamdp.__version__, pure=False)
        return future

    def poll(self) -> None:
        """Fetch completed results; a result lost with its worker is fetched after Dask recomputes it."""
        for future, remote in list(self.running.items()):
            if remote.status == "pending":
                continue
            try:
                future.set_result(remote.result(timeout=FETCH_TIMEOUT))
            except TimeoutError:  # lost with a worker; Dask is recomputing it
                continue
            except (Exception, CancelledError) as error:
                future.set_exception(error)
            del self.running[future]

    def result_of(self, future: Future[Any]) -> Any:
        from distributed.scheduler import KilledWorker

        error = future.exception()
        if isinstance(error, KilledWorker):
            return WorkerDied()
        if isinstance(error, CancelledError):
            return RuntimeError(
                f"the connection to the scheduler at {self.address} was lost; completed runs are kept: try again"
            )
        if error is not None:
            return error
        result, steps = future.result()
        self.progress(steps)
        return result

    def stop(self) -> None:
        self.client.cancel(list(self.running.values()))
        self.running.clear()


def _remote(work: Work, item: Any, version: str) -> tuple[Any, int]:
    """Process an item on a cluster worker; return the result and the number of steps completed."""
    if version != bamdp.__version__:
        raise RuntimeError(
            f"a worker has bamdp {bamdp.__version__}, the driver {version}; install the same on both"
        )
    return work_and_count(work, item)
