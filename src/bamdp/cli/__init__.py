"""The command line, ``bamdp COMMAND ...``: parses, calls, prints.

A command NAME is two functions in a module of this package: ``NAME_arguments(parser)`` adds its arguments and
``NAME_command(arguments)`` runs it and returns the exit status. A line in :data:`COMMANDS` registers it. Its module is
imported only when it is called, so that ``bamdp --help`` stays quick.

Bad input ends in one line on standard error and exit status 2, a computation that could not be completed in one line
and status 1, Ctrl-C in status 130. With BAMDP_DEBUG set, errors keep their traceback.
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

COMMANDS = {  # the module in bamdp.cli, and the help
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
PATIENCE = 0.5  # seconds after Ctrl-C
ARGUMENT_NAMES = {"what": "list", "lab_command": "lab command"}  # in messages, where dest is not plain


class PlainParser(argparse.ArgumentParser):
    """Argparse with errors in one line, and suggestions."""

    def error(self, message: str) -> NoReturn:
        """Raise the error, with a pointer to the help."""
        raise ValueError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            _checks.one_of(value, ARGUMENT_NAMES.get(action.dest, action.dest), action.choices)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        with _ended_soon_by_ctrl_c():
            return _parse_and_run(sys.argv[1:] if words is None else words)
    except KeyboardInterrupt as stop:
        console.note(str(stop) or "stopped")
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `bamdp list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, TypeError, OSError) as error:
        return _report_error(error, 2)
    except (RuntimeError, MemoryError, ArithmeticError) as error:
        return _report_error(error, 1)


@contextmanager
def _ended_soon_by_ctrl_c() -> Iterator[None]:
    """End the process after Ctrl-C even where Python is not reached at once, as while LLVM compiles."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def watch() -> None:
        while signal.SIGINT in reader.recv(1):
            sys.unraisablehook = lambda _: None  # of objects that were half made
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
    """Make the parser, in which the commands that are ``used`` have their arguments."""
    top = PlainParser(
        prog="bamdp",
        description="Bayes-adaptive planning in finite Markov decision processes.",
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
