"""The command line, ``bamdp COMMAND ...``: parses, calls, prints. What it does is done elsewhere.

A command NAME is two functions in one of the modules here: ``NAME_arguments(parser)`` adds its arguments, and
``NAME_command(arguments)`` runs it and returns the exit status. It is registered by a line in :data:`COMMANDS`, and its
module is imported only when it is called, so that ``bamdp --help`` stays quick.

Errors in the input end in one line on standard error and exit status 2; a computation that could not be completed
in one line and status 1; Ctrl-C in status 130. With BAMDP_DEBUG set, errors keep their traceback.

Why argparse, and not Typer: options such as ``--set a=1 b=2`` and ``--grid k=1,2 j=3`` take several values, which
Typer does not have; and our messages (one line, with the nearest name suggested) would have to be put in place of its
own all the same. The declarations of arguments are less than a fifth of the code here, most of it a table of help texts
(``options.py``), which Typer needs just as well.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import bamdp
from bamdp import _checks
from bamdp.cli import console

COMMANDS = {  # the module in bamdp.cli, and the help
    "run": ("run", "Let a planner learn an environment, several times over."),
    "list": ("names", "Environments, planners and priors, with their parameters."),
    "solve": ("theory", "What is there to be had when the model is known."),
    "theory": ("theory", "What the bounds say of DSS, and the trade-off in K."),
    "warmup": ("run", "Compile ahead of time."),
    "studio": ("studio", "Watch an agent think, on a local web page."),
    "explain": ("studio", "Why this action: one decision as a page or a picture."),
    "demo": ("run", "Three planners on a 5 by 5 grid: a table and a learning curve."),
    "compare": ("studies", "Several planners on common random numbers."),
    "tune": ("studies", "Choose the parameters of a planner."),
    "lab": ("lab", "Whole studies: new, run, status, report, check, export, import."),
    "reproduce": ("reproduce", "Tables and figures of the paper."),
    "completion": ("names", "A script that completes commands and names in bash or zsh."),
}
LONGEST_MESSAGE = 1000  # characters
ARGUMENT_NAMES = {"what": "list", "lab_command": "lab command"}  # in messages, where dest is not plain


class PlainParser(argparse.ArgumentParser):
    """Argparse with errors in one line, and suggestions."""

    def error(self, message: str) -> NoReturn:
        """Raise the error, with a pointer to the help."""
        raise ValueError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            _checks.one_of(value, ARGUMENT_NAMES.get(action.dest, action.dest), action.choices)


class CommandParser(PlainParser):
    """The parser of a command, which gets its arguments from the command's module when it is first used."""

    command: tuple[str, str] | None = None  # the module that has yet to be imported, and the name in it

    def load(self) -> None:
        """Import the command's module and add its arguments, if that has not been done."""
        if self.command is not None:
            (module, name), self.command = self.command, None
            commands = import_module(f"bamdp.cli.{module}")
            self.set_defaults(run_command=getattr(commands, f"{name}_command"), parser=self)
            getattr(commands, f"{name}_arguments")(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, after importing the command's module."""
        self.load()
        return super().parse_known_args(args, namespace)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        return _parse_and_run(words)
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


def _parse_and_run(words: Sequence[str] | None) -> int:
    top = make_parser()
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
    message = " ".join([_checks.error_line(error), *getattr(error, "__notes__", ())])
    if len(message) > LONGEST_MESSAGE:  # it repeats what was given: the ends tell most
        message = f"{message[: LONGEST_MESSAGE // 2]} ... {message[-LONGEST_MESSAGE // 2 :]}"
    console.note(f"error: {message}")
    return status


def make_parser() -> PlainParser:
    """Make the parser; those of the commands get their arguments when they are used."""
    top = PlainParser(
        prog="bamdp",
        description="Bayes-adaptive planning in finite Markov decision processes.",
        epilog="See `bamdp COMMAND --help` for each, and `bamdp list` for what there is to run.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"bamdp {bamdp.__version__}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=CommandParser
    )
    for name, (module, help) in COMMANDS.items():
        parser = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        parser.command = module, name
    return top
