"""The line to a worker: a process, a pipe, and a thread that waits so that nobody else has to."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bamdp.studio import worker

LOST = "the process of this session has ended, perhaps for want of memory; start again"


class Gone(Exception):
    """The worker has ended, or had to be."""


class Line:
    """One worker process; see :mod:`bamdp.studio.worker` for what is said."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._process: Any = None
        self._pipe: Any = None

    async def start(self) -> None:
        """Begin the process. It is a new one, not a fork: threads and locks do not survive forks."""
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=worker.serve, args=(far,), daemon=True)
        await self._wait_for(self._process.start)
        far.close()

    async def request(
        self, limit: float, compiling: float, request: tuple[Any, ...], note: Callable[[str], None]
    ) -> tuple[str, Any]:
        """Ask, and wait for the answer for ``limit`` seconds, or for ``compiling`` from when it begins to compile."""
        try:
            await self._wait_for(self._pipe.send, request)
            end = time.monotonic() + limit
            while True:
                if not await self._wait_for(self._pipe.poll, max(end - time.monotonic(), 0.0)):
                    raise Gone(
                        f"the planner took more than {limit:g} seconds for one answer and was stopped; give it less to "
                        "do (fewer simulations, policies, samples or steps)"
                    )
                kind, data = await self._wait_for(self._pipe.recv)
                if kind != "note":
                    return kind, data
                end = time.monotonic() + compiling
                note(data)
        except (EOFError, OSError) as error:
            raise Gone(LOST) from error

    def end(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None and process.pid is not None:
            process.kill()
            process.join(1.0)
        self._thread.shutdown(wait=False)

    async def _wait_for(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
