"""Arguments shared by several commands, and the parsing of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bamdp._parameters import read_value
from bamdp.cli import console
from bamdp.envs.environment import World
from bamdp.registry import DEFAULT_PLANNER, LEARNED_REWARDS
from bamdp.runs import Setting, make_setting

Parser = argparse.ArgumentParser
AGENT = ("--prior", "--rewards", "--objective", "--discount")  # agent options besides the planner
RUN_VALUES = ("prior", "rewards", "objective", "discount", "seed")  # run parameters, as named in functions


ARGUMENTS: dict[str, dict[str, Any]] = {
    "env": {"metavar": "ENV", "help": "name, name:key=value,..., file:model.npz or gym:ID"},
    "planner": {"metavar": "PLANNER", "help": "name, or name:key=value,..., see `bamdp list planners`"},
    "planners": {
        "metavar": "PLANNER",
        "nargs": "*",
        "help": f"names, or name:key=value,..., see `bamdp list planners` (default: {DEFAULT_PLANNER})",
    },
    "study": {"metavar": "STUDY", "help": "the study's file, or the name of one that ships"},
    "--set": {
        "metavar": "KEY=VALUE",
        "nargs": "+",
        "action": "extend",
        "default": [],
        "help": "parameters of every planner that is named, such as n_steps=100 or generator.depth=50",
    },
    "--prior": {
        "metavar": "SPEC",
        "help": "name:key=value,...; several joined by +, as in 3*flat+sparse, are a mixture (default: the planner's)",
    },
    "--rewards": {
        "metavar": "MODEL",
        "help": f"known, or learned: {', '.join(LEARNED_REWARDS)}, with parameters as in normal:mu0=1; default: known "
        "where they are certain, beta where they are drawn, hierarchical in gym: environments",
    },
    "--objective": {
        "metavar": "WHAT",
        "default": "episode",
        "help": "what follows the end of an episode: nothing (episode, the default) or the next one (lifetime)",
    },
    "--discount": {
        "type": read_value,
        "metavar": "γ",
        "help": "for planning (default: the planner's); horizon plans for the total of the steps left, auto no "
        "further ahead than there are data to learn from",
    },
    "--steps": {"type": int, "metavar": "T", "help": "steps of a run (default: the environment's)"},
    "--runs": {"type": int, "metavar": "N", "help": "replicates (default: %(default)s)", "default": 10},
    "--seed": {
        "type": int,
        "metavar": "N",
        "help": "same seed, same results (default: %(default)s)",
        "default": 0,
    },
    "--bins": {
        "metavar": "N,N",
        "help": "for gym: observations that are not whole numbers: bins of each coordinate, as in 3,3,6,5, or one "
        "number for all; quantiles:8 for bins that random play visits equally often",
    },
    "--figure": {"metavar": "FILE", "help": "draw the result as FILE, a .png, .svg or .pdf"},
    "--jobs": {
        "type": int,
        "metavar": "N",
        "help": "processes; results do not depend on it (default: 1)",
        "default": 1,
    },
    "--progress": {
        "action": argparse.BooleanOptionalAction,
        "help": "a progress bar on standard error (default: if that is a terminal)",
    },
    "--json": {"action": "store_true", "help": "print JSON instead of tables"},
    "--quick": {"action": "store_true", "help": "few runs and short ones, marked as such"},
    "--cluster": {"metavar": "ADDRESS", "help": "of a Dask scheduler, such as tcp://127.0.0.1:8786"},
    "--retry-failed": {"action": "store_true", "help": "repeat runs that have failed or were stopped"},
    "--store": {
        "metavar": "PATH",
        "help": "file of the runs (default: beside the study's file, or .bamdp/runs.sqlite in the working directory)",
    },
}


def add(parser: Parser, *names: str, **changes: Any) -> None:
    """Add shared arguments, with any changes; a positional argument with a default is optional."""
    for name in names:
        parts = {**ARGUMENTS[name], **changes}
        if "default" in changes and not name.startswith("-"):
            parts.update(nargs="?", help=f"{parts['help']} (default: %(default)s)")
        parser.add_argument(name, **parts)


def add_option(
    parser: Parser, name: str, kind: Callable[[str], Any], metavar: str, help: str, default: Any = None
) -> None:
    """Add a command-specific option whose single value is parsed by ``kind``."""
    parser.add_argument(name, type=kind, metavar=metavar, help=help, default=default)


def add_study_running(parser: Parser) -> None:
    """Add the options that control how a study is executed: without --jobs, in one process or on the --cluster."""
    add(parser, "--jobs", default=None)
    add(parser, "--progress", "--cluster", "--retry-failed")


def values(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the named arguments as a dictionary."""
    return {name: getattr(arguments, name) for name in names}


def environment_text(arguments: argparse.Namespace) -> str:
    """Return the environment specification, including its bins."""
    if arguments.bins is None:
        return str(arguments.env)
    from bamdp.gym.world import with_bins

    return with_bins(arguments.env, arguments.bins)


def planner_text(arguments: argparse.Namespace, planner: str) -> str:
    """Return the planner specification, including the parameters given with --set."""
    return (
        ("," if ":" in planner else ":").join([planner, ",".join(arguments.set)])
        if arguments.set
        else planner
    )


def read_setting(arguments: argparse.Namespace, world: World, steps: int | None, planner: str) -> Setting:
    """Create the setting from a command's environment, --set and agent options."""
    text, of_run = environment_text(arguments), values(arguments, *RUN_VALUES)
    return make_setting(text, planner_text(arguments, planner), steps=steps, world=world, **of_run)


def figure_path(arguments: argparse.Namespace) -> Path | None:
    """Return the path given with --figure, after checking its extension."""
    return None if arguments.figure is None else console.check_picture_path(arguments.figure)


def draw_figure(path: Path, draw: Callable[..., Any]) -> None:
    """Create a figure with ``draw(ax=...)`` and write it to a file."""
    from bamdp.plot.style import new_figure, save_figure

    with new_figure() as (figure, (axes,)):
        draw(ax=axes)
    save_figure(figure, path)
    console.note(f"figure: {path}")
