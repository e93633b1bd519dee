"""Arguments that several commands have, and the reading of ``key=value`` after an option."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bamdp._checks import AUTO, HORIZON
from bamdp._specs import split_assignment
from bamdp.cli import console
from bamdp.registry import DEFAULT_PLANNER, DEFAULT_PRIOR, LEARNED_REWARDS, make_planner

Parser = argparse.ArgumentParser


def add_option(
    parser: Parser, name: str, kind: Callable[[str], Any], metavar: str, help: str, default: Any = None
) -> None:
    """Add an option with one value, which ``kind`` makes of the text."""
    parser.add_argument(name, type=kind, metavar=metavar, help=help, default=default)


def add_env(parser: Parser, default: str | None = None, gym: bool = False) -> None:
    """Add the environment argument; with ``gym`` its help names Gymnasium's environments, too."""
    forms = "name, name:key=value,..."
    forms += ", file:model.npz or gym:ID" if gym else " or file:model.npz"
    _add_name(parser, "env", forms, default)


def add_planner(parser: Parser, default: str | None = None) -> None:
    """Add the planner argument."""
    _add_name(parser, "planner", "name, see `bamdp list planners`", default)


def _add_name(parser: Parser, name: str, help: str, default: str | None) -> None:
    if default is None:
        parser.add_argument(name, metavar=name.upper(), help=help)
    else:
        help = f"{help} (default: {default})"
        parser.add_argument(name, metavar=name.upper(), nargs="?", default=default, help=help)


def add_set(parser: Parser) -> None:
    """Add --set, the planner's parameters."""
    help = "parameters of the planner, such as n_steps=100 or generator.depth=50"
    parser.add_argument("--set", metavar="KEY=VALUE", nargs="+", action="extend", default=[], help=help)


def add_agent(parser: Parser, of_planner: bool = False) -> None:
    """Add the options that determine an agent beside its planner: --prior, --rewards, --objective, --discount.

    With ``of_planner`` prior and discount are by default those that the planner was made for.
    """
    add_belief(parser, of_planner)
    add_objective(parser)
    add_planning_discount(parser, of_planner)


def add_belief(parser: Parser, of_planner: bool = False) -> None:
    """Add --prior and --rewards, the agent's belief before the first step."""
    help = "name:key=value,...; several joined by +, as in 3*flat+sparse, are a mixture"
    own = f"; {DEFAULT_PLANNER}: {make_planner(DEFAULT_PLANNER).default_prior}" * of_planner
    help += f" (default: {DEFAULT_PRIOR}{own})"
    add_option(parser, "--prior", str, "SPEC", help, None if of_planner else DEFAULT_PRIOR)
    help = f"known, or learned: {', '.join(LEARNED_REWARDS)}, with parameters as in normal:mu0=1; default: known "
    help += "where they are certain, beta where they are drawn, normal in gym: worlds"
    add_option(parser, "--rewards", str, "MODEL", help)


def add_objective(parser: Parser) -> None:
    """Add --objective, what follows the end of an episode."""
    help = "what follows the end of an episode: nothing (episode, the default) or the next one (lifetime)"
    add_option(parser, "--objective", str, "WHAT", help, "episode")


def number_or_horizon(text: str) -> float | str:
    """Read what an agent plans for: a discount, or the word horizon or auto."""
    if text in (HORIZON, AUTO):
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a discount is a number in [0, 1), or the word horizon or auto, got {text!r}"
        ) from None


def add_planning_discount(parser: Parser, of_planner: bool = False) -> None:
    """Add --discount as an agent takes it: a number, horizon or auto."""
    own = f"; {DEFAULT_PLANNER}: auto" * of_planner
    help = f"for planning (default: 0.95{own}); horizon plans for the total of the steps that are left, "
    help += "auto no further ahead than there are data to learn from"
    add_option(parser, "--discount", number_or_horizon, "γ", help, None if of_planner else 0.95)


def add_discount(parser: Parser) -> None:
    """Add --discount, a number."""
    add_option(parser, "--discount", float, "γ", "default: 0.95", 0.95)


def add_steps(parser: Parser, help: str = "steps of a run (default: the environment's)") -> None:
    """Add --steps, the length of a run."""
    add_option(parser, "--steps", int, "T", help)


def add_runs(parser: Parser, default: int = 10, help: str = "replicates") -> None:
    """Add --runs, the number of replicates."""
    add_option(parser, "--runs", int, "N", f"{help} (default: {default})", default)


def add_seed(parser: Parser, help: str = "same seed, same results") -> None:
    """Add --seed."""
    add_option(parser, "--seed", int, "N", f"{help} (default: 0)", 0)


def add_bins(parser: Parser) -> None:
    """Add --bins, which discretises the observations of a Gymnasium environment."""
    help = "gym: worlds whose observations are not whole numbers: bins of each coordinate, as in 3,3,6,5, or one "
    help += "number for all; quantiles:8 for bins that random play visits equally often"
    add_option(parser, "--bins", str, "N,N", help)


def environment_text(arguments: argparse.Namespace) -> str:
    """Return the text of the environment, with its bins."""
    if arguments.bins is None:
        return str(arguments.env)
    from bamdp.gym.world import with_bins

    return with_bins(arguments.env, arguments.bins)


def add_figure(parser: Parser) -> None:
    """Add --figure, the file of a picture of the learning curves."""
    add_option(parser, "--figure", str, "FILE", "draw the learning curves as FILE, a .png, .svg or .pdf")


def figure_path(arguments: argparse.Namespace) -> Path | None:
    """Return the file of --figure, after a check of its ending."""
    return None if arguments.figure is None else console.check_picture_path(arguments.figure, "--figure")


def draw_figure(path: Path, draw: Callable[..., Any]) -> None:
    """Draw a picture by ``draw(ax=...)`` and write it to a file."""
    from bamdp.lab.figures import save_figure, style

    with style.new_figure() as (figure, (axes,)):
        draw(ax=axes)
    save_figure(figure, path.with_suffix(""), [path.suffix[1:]])
    console.note(f"figure: {path}")


def add_jobs(parser: Parser, default: int | None = 1) -> None:
    """Add --jobs and --progress."""
    help = f"processes; results do not depend on it (default: {default or 1})"
    add_option(parser, "--jobs", int, "N", help, default)
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a progress bar on standard error (default: if that is a terminal)",
    )


def add_json(parser: Parser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_study_running(parser: Parser) -> None:
    """Add how the runs of a study are run: --jobs, --cluster, --retry-failed, --progress."""
    add_jobs(parser, None)
    add_option(parser, "--cluster", str, "ADDRESS", "of a Dask scheduler, such as tcp://127.0.0.1:8786")
    parser.add_argument(
        "--retry-failed", action="store_true", help="do runs again that have failed or were stopped"
    )


def add_store(parser: Parser) -> None:
    """Add --store, the file in which runs are kept."""
    help = (
        "file of the runs (default: beside the study's file, or .bamdp/runs.sqlite in the working directory)"
    )
    add_option(parser, "--store", str, "PATH", help)


def add_quick(parser: Parser) -> None:
    """Add --quick."""
    parser.add_argument("--quick", action="store_true", help="few runs and short ones, marked as such")


def read_assignments(
    texts: Sequence[str],
    option: str = "--set",
    form: str = "key=value",
    example: str = "--set n_steps=100",
) -> dict[str, str]:
    """Read the ``key=value`` texts of an option; messages show the form and the example."""
    assignments: dict[str, str] = {}
    for text in texts:
        try:
            key, value = split_assignment(text, text)
        except ValueError:
            raise ValueError(f"{option} {text!r} is not {form}; write for instance {example}") from None
        if key in assignments:
            raise ValueError(f"{option} gives {key} twice; drop one")
        assignments[key] = value
    return assignments


def setting_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments of :func:`bamdp.settings.make_setting` that come from a command's options."""
    return {
        "parameters": read_assignments(arguments.set),
        "prior": arguments.prior,
        "rewards": arguments.rewards,
        "discount": arguments.discount,
        "objective": arguments.objective,
        "seed": arguments.seed,
    }
