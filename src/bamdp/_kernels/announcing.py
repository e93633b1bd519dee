"""Tell whoever waits that functions are being compiled: some seconds, once on each machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

QUIET_SECONDS = 10.0  # without compiling, after which it is announced again
COMPILING = "compiling for this machine (only the first time; kept on disk) ..."
_listeners: dict[object, Callable[[], None] | None] = {}  # of blocks of on_first_compile; None once called


@contextmanager
def on_first_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if anything is compiled inside the block, in place of a line in the log."""
    block = object()
    _listeners[block] = tell
    try:
        yield
    finally:
        del _listeners[block]


class Announcer(event.Listener):
    """Calls the functions given to :func:`on_first_compile`; without any, warns in the log ``bamdp``.

    Compiling takes seconds in which nothing else happens; warnings are shown where nobody has configured logging.
    """

    busy_until = -QUIET_SECONDS

    def on_start(self, event: Any) -> None:
        for block, tell in _listeners.items():
            if tell is not None:
                _listeners[block] = None
                tell()
        quiet = time.monotonic() - self.busy_until > QUIET_SECONDS
        if self._is_ours(event) and not _listeners and quiet:
            logging.getLogger("bamdp").warning(COMPILING)
        self.on_end(event)

    def on_end(self, event: Any) -> None:
        if self._is_ours(event):
            Announcer.busy_until = time.monotonic()

    def _is_ours(self, event: Any) -> bool:
        return str(event.data["dispatcher"].py_func.__module__).partition(".")[0] == "bamdp"


event.register("numba:compile", Announcer())
