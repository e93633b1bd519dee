"""Arguments of the laboratory's commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from bamdp.cli import arguments

FORMATS = ("runs", "csv", "parquet")

Parser = argparse.ArgumentParser


def add_compare(parser: Parser) -> None:
    """Of ``bamdp compare``."""
    parser.epilog = "Example: bamdp compare grid5 dss-pi:n_steps=25 thompson bamcp --runs 30 --jobs 2"
    arguments.add_env(parser)
    arguments.add_steps(parser)
    parser.add_argument("planners", metavar="PLANNER", nargs="+", help="name or name:key=value,...")
    arguments.add_belief(parser)
    arguments.add_objective(parser)
    arguments.add_discount(parser)
    arguments.add_seed(parser)
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="replicates (default: 10)")
    add_running(parser)
    add_store(parser)
    arguments.add_json(parser)


def add_tune(parser: Parser) -> None:
    """Of ``bamdp tune``."""
    parser.epilog = (
        "Example: bamdp tune grid10 dss-pi --grid n_policies=2,4 prior.beta=2,4,8 discount=.95,.99"
    )
    arguments.add_env(parser)
    arguments.add_steps(parser)
    parser.add_argument("planner", metavar="PLANNER", help="name or name:key=value,...")
    parser.add_argument(
        "--grid",
        metavar="KEY=A,B",
        nargs="+",
        action="extend",
        default=[],
        help="values to choose from: of the planner's parameters, prior, prior.beta, discount",
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        default="grid",
        help="grid, all of it; or halving, which is successive halving (default: grid)",
    )
    parser.add_argument(
        "--runs", type=int, default=10, metavar="N", help="tuning runs, at most (default: 10)"
    )
    parser.add_argument(
        "--configurations", type=int, metavar="N", help="draw so many of the grid (default: all)"
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="S",
        help="halving: processor seconds; what needs more than two even shares of it for a run is excluded",
    )
    parser.add_argument(
        "--screening", type=int, metavar="T", help="halving: steps of a run before the last round"
    )
    parser.add_argument(
        "--evaluate",
        type=int,
        default=0,
        metavar="N",
        help="runs of what was chosen, with other luck (default: 0)",
    )
    arguments.add_belief(parser)
    parser.set_defaults(prior=None)  # the default is not fixed if its parameters are to be chosen
    arguments.add_objective(parser)
    arguments.add_discount(parser)
    arguments.add_seed(parser)
    add_running(parser)
    add_store(parser)
    arguments.add_json(parser)


def add_reproduce(parser: Parser) -> None:
    """Of ``bamdp reproduce``."""
    parser.epilog = "Example: bamdp reproduce table1 table2 figure2 --quick --jobs 2"
    parser.add_argument(
        "targets", metavar="TARGET", nargs="+", help="table1, table2, figure2, figure3, ablation"
    )
    parser.add_argument(
        "--as",
        dest="way",
        metavar="WAY",
        help="published (Appendix C's parameters) or fair (the same chances for everybody; default: published)",
    )
    parser.add_argument("--environments", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="also write tables, figures and reports (figures without it: out/reproduction)",
    )
    parser.add_argument(
        "--from",
        dest="exports",
        nargs="+",
        metavar="PATH",
        help="of exported files or folders with them, such as results/dss2020; nothing is run",
    )
    add_quick(parser)
    add_running(parser)
    add_store(parser)
    arguments.add_json(parser)


def add_lab(parser: Parser, do: Callable[[str, str], Any]) -> None:
    """Of ``bamdp lab``, which has commands of its own; ``do`` finds what is to be done, by module and function."""
    parser.epilog = (
        "A study is a TOML file, see docs/laboratory.md; or dss2020/published, fair, single, "
        "ablation or figure3."
    )
    group = parser.add_subparsers(
        dest="lab_command", metavar="COMMAND", title="commands", parser_class=type(parser)
    )

    def command(name: str, function: str, help: str) -> Parser:
        made = group.add_parser(name, help=help, description=help, allow_abbrev=False)
        made.set_defaults(do=do("lab", function), parser=made)
        made.add_argument("study", metavar="STUDY", help="the study's file, or the name of one that ships")
        add_store(made)
        return made

    run = command("run", "run", "Run what a study needs and its store does not have yet.")
    add_running(run)
    add_quick(run)
    status = command(
        "status", "status", "What is done, running, missing and failed, and how long the rest will take."
    )
    add_quick(status)
    arguments.add_json(status)
    report = command("report", "report", "Tables, figures and a page that opens offline.")
    report.add_argument("--output", metavar="FOLDER", help="default: STUDY-report")
    add_quick(report)
    export = command("export", "export", "Write the runs to a portable file, CSV or Parquet.")
    export.add_argument("--format", choices=FORMATS, default="runs", help="default: runs, which import reads")
    export.add_argument("--output", metavar="PATH", help="default: beside the study")
    export.add_argument(
        "--thin", action="store_true", help="without the rewards of tuning runs step by step: much smaller"
    )
    add_quick(export)
    taken = command("import", "import_", "Take in the runs that export has written.")
    taken.add_argument("file", metavar="FILE", nargs="?", help="default: STUDY.runs.xz")


def add_running(parser: Parser) -> None:
    """How."""
    arguments.add_jobs(parser, None)
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://127.0.0.1:8786"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="do runs again that have failed or were stopped"
    )
    arguments.add_progress(parser)


def add_store(parser: Parser) -> None:
    """Where runs are kept."""
    parser.add_argument(
        "--store", metavar="PATH", help="file of the runs (default: beside the study, or in .bamdp)"
    )


def add_quick(parser: Parser) -> None:
    """For a first look."""
    parser.add_argument("--quick", action="store_true", help="few runs and short ones, marked as such")
