"""Notifications about compilation, which takes several seconds once per machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

QUIET_SECONDS = 10.0  # pause in compiling after which it is announced again
COMPILING = "compiling for this machine (only the first time; kept on disk) ..."
_listeners: dict[object, Callable[[], None] | None] = {}  # one per on_first_compile block; None once called


@contextmanager
def on_first_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if anything is compiled inside the block, instead of logging a message."""
    block = object()
    _listeners[block] = tell
    try:
        yield
    finally:
        del _listeners[block]


class Announcer(event.Listener):
    """Listener that calls the functions given to :func:`on_first_compile`, or else warns in the log ``bamdp``.

    Compilation blocks for seconds, so the message is a warning, which is shown even if logging is not configured.
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
