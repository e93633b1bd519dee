"""``bamdp solve``: what one who knows the model can get."""

from __future__ import annotations

import argparse
from dataclasses import asdict

import bamdp
from bamdp.ceilings import ceilings
from bamdp.cli import console


def do(given: argparse.Namespace) -> int:
    """The command."""
    env = bamdp.make_env(given.env)
    steps = env.horizon if given.steps is None else given.steps
    with console.compiling():
        found = ceilings(env, given.discount, steps)
    if given.json:
        figures = asdict(found)
        console.print_json(
            {
                "env": given.env,
                "n_states": env.n_states,
                "n_actions": env.n_actions,
                "discount": figures.pop("discount"),
                "steps": steps,
                "value": figures.pop("value"),
                "gain": figures.pop("gain"),
                "total_reward": figures,
                "version": bamdp.__version__,
            }
        )
        return 0
    gain = "none: it depends on where one is" if found.gain is None else f"{found.gain:.6f}"
    rows = [
        (f"value of the start, discount {given.discount:g}", f"{found.value:.4f}"),
        ("average reward per step", gain),
        (f"total over {steps} steps, best play", f"{found.optimum:.2f}"),
        (f"  policy optimal for discount {given.discount:g}", f"{found.discounted:.2f}"),
        ("  uniformly random play", f"{found.random:.2f}"),
    ]
    title = (
        f"{env.name}: {env.n_states} state{'s' * (env.n_states > 1)}, {env.n_actions} actions, model known"
    )
    if len(env.worlds) > 1:
        title += f" (mean over {len(env.worlds)} worlds)"
    console.print_table(("", "expected"), rows, title, numbers=("expected",))
    return 0
