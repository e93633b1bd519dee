"""Command-line interface, ``bamdp COMMAND ...``: parsing, dispatch and printing.

The command NAME consists of two functions in a module of this package: ``NAME_arguments(parser)`` adds its arguments,
and ``NAME_command(arguments)`` runs it and returns the exit status. An entry in :data:`COMMANDS` registers the
command. Modules are imported only when needed, which keeps ``bamdp --help`` fast.

Invalid input produces a one-line message on standard error and exit status 2; a computation that cannot be completed,
a one-line message and status 1; Ctrl-C, status 130. If BAMDP_DEBUG is set, errors show their traceback.
"""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import bamdp
from bamdp import _checks
from bamdp.cli import console

COMMANDS = {  # name: (module in bamdp.cli, help text)
    "run": ("run", "Run planners in an environment, several times each."),
    "list": ("names", "Environments, planners and priors, with their parameters."),
    "solve": ("theory", "The optimal policy's value and total reward, for a known model."),
    "theory": ("theory", "Bounds on the loss of DSS, and the trade-off in K."),
    "warmup": ("run", "Compile ahead of time."),
    "studio": ("studio", "Watch an agent think, on a local web page."),
    "explain": ("studio", "Why this action: one decision as a page or a picture."),
    "compare": ("studies", "Several planners on common random numbers."),
    "tune": ("studies", "Choose the parameters of a planner."),
    "lab": ("lab", "Whole studies: new, run, status, report, export."),
    "reproduce": ("reproduce", "Tables and figures of the paper."),
}
PATIENCE = 0.5  # seconds to wait after Ctrl-C
ARGUMENT_NAMES = {"what": "list", "lab_command": "lab command"}  # names in messages that differ from dest


class PlainParser(argparse.ArgumentParser):
    """Argument parser with one-line error messages and suggestions."""

    def error(self, message: str) -> NoReturn:
        """Raise the error with a reference to the help."""
        raise ValueError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            _checks.one_of(value, ARGUMENT_NAMES.get(action.dest, action.dest), action.choices)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
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
    """End the process soon after Ctrl-C even when Python cannot respond, such as while LLVM is compiling."""
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
    top = make_parser(words[:1])
    arguments, unknown = top.parse_known_args(words)
    if unknown:
        parser = arguments.parser if arguments.command else top
        near = difflib.get_close_matches(unknown[0], parser._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near and unknown[0].startswith("-") else ""
        parser.error(f"unknown argument {unknown[0]!r}{hint}")
    if not arguments.command:
        top.print_help()
        return 0
    status: int = arguments.run_command(arguments)
    return status


def _report_error(error: BaseException, status: int) -> int:
    if os.environ.get("BAMDP_DEBUG"):
        raise error
    console.note(" ".join(["error:", _checks.error_line(error), *getattr(error, "__notes__", ())]))
    return status


def make_parser(used: Collection[str] = tuple(COMMANDS)) -> PlainParser:
    """Create the parser, adding arguments only for the commands in ``used``."""
    top = PlainParser(
        prog="bamdp",
        description="Bayes-adaptive planning in Markov decision processes.",
        epilog="See `bamdp COMMAND --help` for each, and `bamdp list` for environments, planners and priors.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"bamdp {bamdp.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, help) in COMMANDS.items():
        parser = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        if name in used:
            functions = import_module(f"bamdp.cli.{module}")
            parser.set_defaults(run_command=getattr(functions, f"{name}_command"), parser=parser)
            getattr(functions, f"{name}_arguments")(parser)
    return top
