"""A loop in compiled code that waits for signals, and needs no turn of Python's (:mod:`bamdp.cli.waiting`)."""

from __future__ import annotations

from typing import Any

import numba
from numba import types

from bamdp._kernels.numba_internals import c_function

REACTION_MILLISECONDS = 500  # that Python has for its own handling
STATUS = 130  # of a process that was ended by Ctrl-C
ANSWER, CLOSE = 0, 255  # what is written into the pipe beside the numbers of signals

_read = c_function("read", types.intp, types.int32, types.voidptr, types.uintp)
_write = c_function("write", types.intp, types.int32, types.voidptr, types.uintp)
_poll = c_function("poll", types.int32, types.voidptr, types.uintp, types.int32)
_exit = c_function("_exit", types.void, types.int32)


def _watch(pipe, byte, request, message):
    """Read the pipe until its CLOSE; end the process if a signal has no answer in time."""
    while _read(pipe, byte.ctypes, 1) == 1 and byte[0] != CLOSE:
        if byte[0] != ANSWER and _poll(request.ctypes, 1, REACTION_MILLISECONDS) == 0:
            _write(2, message.ctypes, message.size)
            _exit(STATUS)


def compiled_watch() -> Any:
    """Return the loop, compiled; None where it cannot be."""
    if _read is None or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    bytes_ = types.uint8[::1]
    return numba.njit(types.void(types.int32, bytes_, bytes_, bytes_), nogil=True, cache=True)(_watch)
