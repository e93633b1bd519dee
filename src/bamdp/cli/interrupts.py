"""Ctrl-C ends a command at once, also while compiled code is at work.

Python handles a signal between two of its instructions, and a compiled planner may run for years without one. So a
thread watches, in compiled code of its own, which needs no turn of Python's: Python's C code writes the number of a
signal into a pipe as soon as it comes, and the handler answers there as soon as it has its turn. If there is no answer
within half a second, the thread ends the process with exit status 130. Stores of runs stand that at any moment.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numba
import numpy as np
from numba import types

REACTION_MILLISECONDS = 500  # that Python has for its own handling
STATUS = 130  # of a command that was ended by Ctrl-C
ANSWER, END = 0, 255  # what is written into the pipe beside the numbers of signals

_read: Any = types.ExternalFunction("read", types.intp(types.int32, types.voidptr, types.uintp))
_write: Any = types.ExternalFunction("write", types.intp(types.int32, types.voidptr, types.uintp))
_poll: Any = types.ExternalFunction("poll", types.int32(types.voidptr, types.uintp, types.int32))
_exit: Any = types.ExternalFunction("_exit", types.void(types.int32))


@numba.njit(
    types.void(types.int32, types.uint8[::1], types.uint8[::1], types.uint8[::1]), nogil=True, cache=True
)
def _watch(pipe, byte, request, message):  # type: ignore[no-untyped-def]
    """Read the pipe until its END; end the process if a signal has no answer in time."""
    while _read(pipe, byte.ctypes, 1) == 1 and byte[0] != END:
        if byte[0] != ANSWER and _poll(request.ctypes, 1, REACTION_MILLISECONDS) == 0:
            _write(2, message.ctypes, message.size)
            _exit(STATUS)


@contextmanager
def ctrl_c_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process although compiled code is at work in the block."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not usual or not main or numba.config.DISABLE_JIT or not hasattr(select, "poll"):  # type: ignore[attr-defined]
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    request = np.frombuffer(struct.pack("ihh", reading, select.POLLIN, 0), np.uint8).copy()
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    message = np.frombuffer(f"{show_cursor}stopped\n".encode(), np.uint8).copy()
    arguments = reading, np.zeros(1, np.uint8), request, message
    watcher = threading.Thread(target=_watch, args=arguments, name="ctrl-c", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def answer(number: int, frame: FrameType | None) -> None:
        os.write(writing, bytes([ANSWER]))
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.write(writing, bytes([END]))
        watcher.join()
        os.close(reading)
        os.close(writing)
