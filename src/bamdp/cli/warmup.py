"""``bamdp warmup``: compile ahead of time."""

from __future__ import annotations

import argparse
import time

import bamdp
from bamdp.cli import console, options
from bamdp.registry import PLANNERS
from bamdp.runs import warm_up
from bamdp.settings import make_setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("planners", metavar="PLANNER", nargs="*", help="default: all")
    options.add_belief(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Compile the planners for the kind of belief that is asked for."""
    rewards = arguments.rewards or "known"
    # small environments will do: what is compiled does not depend on the size
    known = "double_loop" if rewards == "known" else "bandit"
    env = bamdp.make_env("maze_door" if "models" in arguments.prior else known)
    settings = {
        name: make_setting(env.name, name, prior=arguments.prior, rewards=rewards, steps=2, world=env)
        for name in arguments.planners or PLANNERS
    }
    for name, setting in settings.items():
        begin = time.perf_counter()
        try:
            warm_up(setting)
        except ValueError as error:  # a planner may refuse a belief
            if arguments.planners:
                raise
            console.note(f"{name}: left out, {error}")
            continue
        console.note(f"{name}: ready after {time.perf_counter() - begin:.1f} s")
    if not arguments.planners:
        from bamdp.ceilings import ceilings

        ceilings(env, 0.95, steps=2)
        console.note("solve: ready")
    return 0
