"""``bamdp COMMAND ...``: arguments, and what becomes of errors.

Whatever is wrong with the input ends in one line on standard error and exit status 2; a computation that could
not be completed in one line and status 1; Ctrl-C in status 130. With BAMDP_DEBUG set, errors keep their traceback.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import bamdp
from bamdp import _checks
from bamdp.cli import arguments, console, lab_arguments

LISTS = ("envs", "planners", "priors", "rewards")
KINDS = {"what": "list", "lab_command": "lab command"}  # what messages call an argument


class Parser(argparse.ArgumentParser):
    """Argparse with errors in one line, and suggestions."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            _checks.one_of(value, KINDS.get(action.dest, action.dest), action.choices)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        return _run(words)
    except KeyboardInterrupt as stop:
        console.note(str(stop) or "stopped")
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `bamdp list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, TypeError, OSError) as error:
        return _fail(error, 2)
    except (RuntimeError, MemoryError) as error:
        return _fail(error, 1)


def _run(words: Sequence[str] | None) -> int:
    top = make_parser()
    given, unknown = top.parse_known_args(words)
    if unknown:
        at = given.parser if given.command else top
        near = difflib.get_close_matches(unknown[0], at._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near and unknown[0].startswith("-") else ""
        at.error(f"unknown argument {unknown[0]!r}{hint}")
    if not given.command:
        top.print_help()
        return 0
    status: int = given.do(given)
    return status


def _fail(error: BaseException, status: int) -> int:
    if os.environ.get("BAMDP_DEBUG"):
        raise error
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    message = " ".join([message, *getattr(error, "__notes__", ())])
    console.note(f"error: {message}")
    return status


def make_parser() -> Parser:
    """The parser, and in it those of the commands."""
    top = Parser(
        prog="bamdp",
        description="Bayes-adaptive planning in finite Markov decision processes.",
        epilog="See `bamdp COMMAND --help` for each, and `bamdp list` for what there is to run.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"bamdp {bamdp.__version__}")
    group = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)

    def command(name: str, help: str, do: Any) -> Parser:
        made = group.add_parser(name, help=help, description=help, allow_abbrev=False)
        made.set_defaults(do=do, parser=made)
        return made

    _add_run(command("run", "Let a planner learn an environment, several times over.", _do("run")))
    _add_list(command("list", "Environments, planners and priors, with their parameters.", _do("show")))
    _add_solve(command("solve", "What is there to be had when the model is known.", _do("solve")))
    _add_theory(command("theory", "What the bounds say of DSS, and the trade-off in K.", _do("theory")))
    _add_warmup(command("warmup", "Compile ahead of time.", _do("warmup")))
    _add_studio(command("studio", "Watch an agent think, on a local web page.", _do("studio")))
    _add_explain(command("explain", "Why this action: one decision as a page or a picture.", _do("explain")))
    _add_demo(command("demo", "Three planners on a 5 by 5 grid: a table and a learning curve.", _do("demo")))
    lab_arguments.add_compare(command("compare", "Several planners on the same luck.", _do("compare")))
    lab_arguments.add_tune(command("tune", "Choose the parameters of a planner.", _do("tune")))
    lab_arguments.add_lab(command("lab", "Whole studies: run, status, report, export, import.", _help), _do)
    lab_arguments.add_reproduce(command("reproduce", "Tables and figures of the paper.", _do("reproduce")))
    return top


def _help(given: argparse.Namespace) -> int:
    given.parser.print_help()
    return 0


def _do(module: str, function: str = "do") -> Any:
    def call(given: argparse.Namespace) -> int:
        from importlib import import_module

        status: int = getattr(import_module(f"bamdp.cli.{module}"), function)(given)
        return status

    return call


def _add_run(parser: Parser) -> None:
    parser.epilog = (
        "Example: bamdp run grid10 dss-pi --set n_steps=100 n_stages=2 --prior sparse:beta=6 --jobs 2"
    )
    arguments.add_env(parser, gym=True)
    arguments.add_planner(parser)
    arguments.add_set(parser)
    arguments.add_belief(parser)
    arguments.add_objective(parser)
    arguments.add_discount(parser)
    arguments.add_steps(parser)
    _add_runs(parser, runs=10, jobs=1)
    arguments.add_json(parser)


def _add_runs(parser: Parser, runs: int, jobs: int) -> None:
    parser.add_argument("--runs", type=int, default=runs, metavar="N", help=f"replicates (default: {runs})")
    arguments.add_seed(parser)
    arguments.add_jobs(parser, jobs)
    arguments.add_progress(parser)


def _add_list(parser: Parser) -> None:
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=LISTS, help=" | ".join(LISTS))
    arguments.add_json(parser)


def _add_solve(parser: Parser) -> None:
    arguments.add_env(parser)
    parser.add_argument("--discount", type=float, default=0.95, metavar="γ", help="default: 0.95")
    parser.add_argument("--steps", type=int, metavar="T", help="for the totals (default: the environment's)")
    arguments.add_json(parser)


def _add_theory(parser: Parser) -> None:
    parser.epilog = "Example: bamdp theory --n-policies 4 --n-samples 4 --n-steps 18 --discount 0.95"
    for name, default, help in (
        ("policies", 4, "N, policies at a node"),
        ("samples", 4, "M, samples of each policy"),
        ("steps", 20, "K, steps of a stage"),
        ("stages", 1, "H, stages"),
    ):
        parser.add_argument(
            f"--n-{name}", type=int, default=default, metavar="N", help=f"{help} (default: {default})"
        )
    parser.add_argument("--discount", type=float, default=0.95, metavar="γ", help="default: 0.95")
    parser.add_argument("--delta", type=float, default=0.05, metavar="δ", help="default: 0.05")
    parser.add_argument(
        "--epsilon0", type=float, metavar="ε₀", help="how much the belief changes in a stage (default: 0)"
    )
    parser.add_argument("--c", type=float, metavar="C", help="how much models disagree (default: 0)")
    parser.add_argument("--reward-range", type=float, metavar="X", help="largest less least (default: 1)")
    parser.add_argument("--n-actions", type=int, metavar="N", help="for sparse sampling's tree (default: 2)")
    parser.add_argument("--env", metavar="ENV", help="estimate ε₀ and C of a belief about this environment")
    parser.add_argument(
        "--after", type=int, default=0, metavar="T", help="steps learned before that (default: 0)"
    )
    arguments.add_belief(parser)
    parser.add_argument("--pairs", type=int, default=200, metavar="N", help="of models, for C (default: 200)")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="for ε₀ (default: 10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the estimates (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--output", metavar="PATH", help="draw the trade-off in K (png, svg or pdf)")


def _add_warmup(parser: Parser) -> None:
    parser.add_argument("planners", metavar="PLANNER", nargs="*", help="default: all")
    arguments.add_belief(parser)


def _add_demo(parser: Parser) -> None:
    _add_runs(parser, runs=50, jobs=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--output",
        default="learning-curve.png",
        metavar="PATH",
        help="of the picture (default: learning-curve.png)",
    )


def _add_studio(parser: Parser) -> None:
    parser.epilog = "Example: bamdp studio grid10 dss-pi --set n_steps=50 --prior sparse:beta=6"
    arguments.add_env(parser, default="grid10")
    arguments.add_planner(parser, default="dss-pi")
    arguments.add_set(parser)
    arguments.add_belief(parser)
    arguments.add_objective(parser)
    arguments.add_discount(parser)
    arguments.add_seed(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen (default: 127.0.0.1, this machine only)",
    )
    parser.add_argument("--port", type=int, metavar="N", help="default: the first free one from 8137 on")
    parser.add_argument(
        "--limit", type=float, default=60.0, metavar="SECONDS", help="for a single decision (default: 60)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the web browser")


def _add_explain(parser: Parser) -> None:
    parser.epilog = "Example: bamdp explain grid10 dss-pi --step 40 --prior sparse:beta=6 --out why.html"
    arguments.add_env(parser)
    arguments.add_planner(parser)
    parser.add_argument(
        "--step", type=int, default=0, metavar="T", help="which decision (default: 0, the first)"
    )
    parser.add_argument("--out", default="why.html", metavar="PATH", help=".html or .svg (default: why.html)")
    arguments.add_set(parser)
    arguments.add_belief(parser)
    arguments.add_objective(parser)
    arguments.add_discount(parser)
    arguments.add_seed(parser)
