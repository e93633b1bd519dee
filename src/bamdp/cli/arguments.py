"""Arguments that several commands have."""

from __future__ import annotations

import argparse

from bamdp.registry import DEFAULT_PRIOR, REWARDS


def add_env(parser: argparse.ArgumentParser, default: str | None = None, gym: bool = False) -> None:
    """Where; in a Gymnasium environment, too, if ``gym``."""
    forms = (
        "name, name:key=value,..., file:model.npz or gym:ID"
        if gym
        else "name, name:key=value,... or file:model.npz"
    )
    _add_name(parser, "env", forms, default)


def add_planner(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Who."""
    _add_name(parser, "planner", "name, see `bamdp list planners`", default)


def _add_name(parser: argparse.ArgumentParser, name: str, help: str, default: str | None) -> None:
    if default is None:
        parser.add_argument(name, metavar=name.upper(), help=help)
    else:
        help = f"{help} (default: {default})"
        parser.add_argument(name, metavar=name.upper(), nargs="?", default=default, help=help)


def add_set(parser: argparse.ArgumentParser) -> None:
    """With which parameters."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="parameters of the planner, such as n_steps=100 or generator.depth=50",
    )


def add_steps(parser: argparse.ArgumentParser) -> None:
    """How long."""
    parser.add_argument("--steps", type=int, metavar="T", help="steps of a run (default: the environment's)")


def add_belief(parser: argparse.ArgumentParser) -> None:
    """What agents believe at first."""
    parser.add_argument(
        "--prior",
        default=DEFAULT_PRIOR,
        metavar="SPEC",
        help=f"name:key=value,...; several joined by +, as in 3*flat+sparse, are a mixture (default: {DEFAULT_PRIOR})",
    )
    parser.add_argument(
        "--rewards",
        metavar="MODEL",
        help=f"{', '.join(REWARDS)}, the last three learned, with parameters as in normal:mu0=1; default: known where "
        "they are certain, beta where they are drawn, normal in gym: worlds",
    )


def add_objective(parser: argparse.ArgumentParser) -> None:
    """What follows the end of an episode."""
    parser.add_argument(
        "--objective",
        default="episode",
        metavar="WHAT",
        help="what follows the end of an episode: nothing (episode, the default) or the next one (lifetime)",
    )


def add_discount(parser: argparse.ArgumentParser) -> None:
    """Of planning."""
    parser.add_argument(
        "--discount", type=float, default=0.95, metavar="γ", help="for planning (default: 0.95)"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Which luck."""
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="same seed, same results (default: 0)"
    )


def add_jobs(parser: argparse.ArgumentParser, default: int | None = 1) -> None:
    """How many at a time."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=default,
        metavar="N",
        help=f"processes; results do not depend on it (default: {default or 1})",
    )


def add_progress(parser: argparse.ArgumentParser) -> None:
    """A bar."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a progress bar on standard error (default: if that is a terminal)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """For other programs."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
