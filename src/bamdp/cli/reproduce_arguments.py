"""The arguments of ``bamdp reproduce``, and the hook that runs it."""

from __future__ import annotations

import argparse

from bamdp.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = "Example: bamdp reproduce table1 table2 figure2 --quick --jobs 2"
    parser.add_argument(
        "targets", metavar="TARGET", nargs="+", help="table1, table2, figure2, figure3, ablation, page"
    )
    parser.add_argument(
        "--as",
        dest="way",
        metavar="WAY",
        help="published (Appendix C's parameters) or fair (every algorithm tuned alike; default: published)",
    )
    parser.add_argument("--environments", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="also write tables, figures and reports (figures without it: out/reproduction); of page: the root of the "
        "repository whose page is written (default: here)",
    )
    parser.add_argument(
        "--from",
        dest="exports",
        nargs="+",
        metavar="PATH",
        help="of exported files or folders with them, such as results/dss2020; nothing is run",
    )
    options.add_quick(parser)
    options.add_study_running(parser)
    options.add_store(parser)
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Reproduce the targets."""
    from bamdp.cli.reproduce import do

    return do(arguments)
