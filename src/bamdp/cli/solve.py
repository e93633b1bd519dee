"""``bamdp solve``: the values and totals that can be had when the model is known."""

from __future__ import annotations

import argparse
from dataclasses import asdict

import bamdp
from bamdp import _checks
from bamdp.cli import console, options
from bamdp.cli.waiting import tell_waiting_for_sweeps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    options.add_env(parser)
    options.add_discount(parser)
    options.add_steps(parser, help="for the totals (default: the environment's)")
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Solve the environment, and print a table or JSON."""
    from bamdp.ceilings import GAIN_STATES, ceilings

    env = bamdp.make_env(arguments.env)
    steps = env.horizon if arguments.steps is None else arguments.steps
    _checks.integer(steps, "steps")
    tell_waiting_for_sweeps(env, steps)
    with console.compiling():
        solved = ceilings(env, arguments.discount, steps)
    if arguments.json:
        totals = asdict(solved)
        console.print_json(
            {
                "env": arguments.env,
                "n_states": env.n_states,
                "n_actions": env.n_actions,
                "discount": totals.pop("discount"),
                "steps": steps,
                "value": totals.pop("value"),
                "gain": totals.pop("gain"),
                "total_reward": totals,
                "version": bamdp.__version__,
            }
        )
        return 0
    large = env.n_states > GAIN_STATES
    none = f"not computed, over {GAIN_STATES} states" if large else "none: it depends on where one is"
    gain = none if solved.gain is None else f"{solved.gain:.6f}"
    rows = [
        (f"value of the start, discount {arguments.discount:g}", f"{solved.value:.4f}"),
        ("average reward per step", gain),
        (f"total over {steps} steps, best play", f"{solved.optimum:.2f}"),
        (f"  policy optimal for discount {arguments.discount:g}", f"{solved.discounted:.2f}"),
        ("  uniformly random play", f"{solved.random:.2f}"),
    ]
    states = f"{env.n_states} state{'s' * (env.n_states > 1)}"
    title = f"{env.name}: {states}, {env.n_actions} actions, model known"
    if len(env.reference_worlds) > 1:
        title += f" (mean over {len(env.reference_worlds)} worlds)"
    console.print_table(("", "expected"), rows, title, numbers=("expected",))
    return 0
