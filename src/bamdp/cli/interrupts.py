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
from functools import cache
from types import FrameType

import numpy as np

from bamdp._kernels.watching import ANSWER, CLOSE, compiled_watch

compiled_once = cache(compiled_watch)


@contextmanager
def ctrl_c_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process although compiled code is at work in the block."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    watch = compiled_once() if usual and main and hasattr(select, "poll") else None
    if watch is None:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    request = np.frombuffer(struct.pack("ihh", reading, select.POLLIN, 0), np.uint8).copy()
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    message = np.frombuffer(f"{show_cursor}stopped\n".encode(), np.uint8).copy()
    arguments = reading, np.zeros(1, np.uint8), request, message
    watcher = threading.Thread(target=watch, args=arguments, name="ctrl-c", daemon=True)
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
        os.write(writing, bytes([CLOSE]))
        watcher.join()
        os.close(reading)
        os.close(writing)
