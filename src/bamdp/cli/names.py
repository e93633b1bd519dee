"""Command ``bamdp list``: the available names and their parameters."""

from __future__ import annotations

import argparse
from typing import Any

from bamdp._parameters import Entry, InfoList
from bamdp.cli import console, options
from bamdp.envs.registry import list_envs
from bamdp.registry import list_planners, list_priors, list_rewards


def list_continuous() -> InfoList:
    """List the planners and priors for continuous observations."""
    from bamdp.continuous.agent import PLANNERS, PRIORS

    classes: dict[str, Any] = {**PLANNERS, **{f"--prior {name}": cls for name, cls in PRIORS.items()}}
    return InfoList.of({name: Entry(cls) for name, cls in classes.items()})


LISTS: dict[str, tuple[Any, str]] = {  # name: (function, title)
    "envs": (
        list_envs,
        "Environments   (parameters: grid:size=7; your own model: file:model.npz; Gymnasium's: gym:FrozenLake-v1)",
    ),
    "planners": (list_planners, "Planners   (parameters: dss-pi:n_steps=100, or --set n_steps=100)"),
    "priors": (
        list_priors,
        "Priors   (parameters: sparse:alpha=0.2,beta=6; alpha may be x/S; a mixture: flat+sparse)",
    ),
    "rewards": (list_rewards, "Rewards   (parameters: normal:mu0=1,by=next)"),
    "continuous": (
        list_continuous,
        "For continuous observations, such as gym:Pendulum-v1: planners and priors",
    ),
}


def list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp list``."""
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=LISTS, help=" | ".join(LISTS))
    options.add(parser, "--json")


def list_command(arguments: argparse.Namespace) -> int:
    """Print one list or all of them."""
    chosen = [arguments.what] if arguments.what else list(LISTS)
    infos = {what: LISTS[what][0]() for what in chosen}
    if arguments.json:
        lists = {what: [info.data() for info in listed] for what, listed in infos.items()}
        console.print_json(lists if arguments.what is None else lists[arguments.what])
        return 0
    for what, listed in infos.items():
        rows = [(info.name, info.help, info.parameters_text() or "–") for info in listed]
        console.print_table(("name", "what it is", "parameters and defaults"), rows, LISTS[what][1])
    return 0
