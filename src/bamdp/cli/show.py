"""``bamdp list``: what there is to run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from bamdp.cli import console
from bamdp.envs import list_envs
from bamdp.registry import list_planners, list_priors, list_rewards

LISTS: dict[str, Any] = {
    "envs": list_envs,
    "planners": list_planners,
    "priors": list_priors,
    "rewards": list_rewards,
}
TITLES = {
    "envs": "Environments   (parameters: grid:size=7; your own model: file:model.npz; Gymnasium's: gym:FrozenLake-v1)",
    "planners": "Planners   (parameters: --set n_steps=100)",
    "priors": "Priors   (parameters: sparse:alpha=0.2,beta=6; alpha may be x/S; a mixture: flat+sparse)",
    "rewards": "Rewards   (parameters: normal:mu0=1,by=next)",
}


def do(given: argparse.Namespace) -> int:
    """The command."""
    chosen = list(LISTS) if given.what is None else [given.what]
    if given.json:
        found = {what: [asdict(info) for info in LISTS[what]()] for what in chosen}
        console.print_json(found if given.what is None else found[given.what])
        return 0
    for what in chosen:
        rows = [(info.name, info.help, _parameters(info.parameters)) for info in LISTS[what]()]
        console.print_table(("name", "what it is", "parameters and defaults"), rows, TITLES[what])
    return 0


def _parameters(parameters: dict[str, Any]) -> str:
    return "  ".join(f"{name}={_plain(value)}" for name, value in parameters.items()) or "–"


def _plain(value: Any) -> str:
    return "none" if value is None else str(value).replace(" ", "")
