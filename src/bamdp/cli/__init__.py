"""Command-line interface, ``bamdp COMMAND ...``: dispatch, errors and Ctrl-C.

:mod:`bamdp.cli.arguments` declares the commands and their arguments. The function of a command receives the parsed
arguments and returns the exit status. Its module is imported only when needed, which keeps ``bamdp --help`` fast.

Invalid input produces a one-line message on standard error and exit status 2; a computation that cannot be completed,
a one-line message and status 1; Ctrl-C, status 130. If BAMDP_DEBUG is set, errors show their traceback.
"""

from __future__ import annotations

import difflib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from bamdp import _checks
from bamdp.cli import console
from bamdp.cli.arguments import make_parser

PATIENCE = 0.5  # seconds to wait after Ctrl-C


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; ``gym:my_module:ID`` may be a module in the current folder."""
    sys.path.append(os.getcwd())
    try:
        with _ended_soon_by_ctrl_c():
            return _parse_and_run(sys.argv[1:] if words is None else words)
    except KeyboardInterrupt as stop:
        console.note(str(stop) or "stopped")
        return 130
    except BrokenPipeError:  # the reader has closed the pipe, as in `bamdp list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, TypeError, OSError) as error:
        return _report_error(error, 2)
    except (RuntimeError, MemoryError, ArithmeticError) as error:
        return _report_error(error, 1)


@contextmanager
def _ended_soon_by_ctrl_c() -> Iterator[None]:
    """End the process soon after Ctrl-C even when Python cannot respond, for example while LLVM is compiling."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def watch() -> None:
        while signal.SIGINT in reader.recv(1):
            sys.unraisablehook = lambda _: None  # from partially constructed objects
            if not over.wait(PATIENCE):
                console.note("stopped")
                os._exit(130)

    over, before = threading.Event(), signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        writer.close()
        watcher.join()
        reader.close()


def _parse_and_run(words: Sequence[str]) -> int:
    arguments, unknown = make_parser().parse_known_args(words)
    if unknown:
        near = difflib.get_close_matches(unknown[0], arguments.parser._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near and unknown[0].startswith("-") else ""
        arguments.parser.error(f"unknown argument {unknown[0]!r}{hint}")
    if not arguments.run_command:
        arguments.parser.print_help()
        return 0
    module, _, function = arguments.run_command.partition(".")
    status: int = getattr(import_module(f"bamdp.cli.{module}"), function)(arguments)
    return status


def _report_error(error: BaseException, status: int) -> int:
    if os.environ.get("BAMDP_DEBUG"):
        raise error
    console.note(" ".join(["error:", _checks.error_line(error), *getattr(error, "__notes__", ())]))
    return status
