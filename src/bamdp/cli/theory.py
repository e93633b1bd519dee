"""Commands ``bamdp solve``, which solves a known model, and ``bamdp theory``, which bounds the loss of DSS."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from typing import Any

import bamdp
from bamdp import _checks, theory
from bamdp.cli import console, options

BAR = 30  # width of the longest bar in characters


def solve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp solve``."""
    options.add(parser, "env", help="name, name:key=value,... or file:model.npz")
    options.add_option(parser, "--discount", float, "γ", "default: %(default)s", 0.95)
    options.add(parser, "--steps", help="for the totals (default: the environment's)")
    options.add(
        parser, "--figure", help="draw the optimal policy and its values as FILE, a .png, .svg or .pdf"
    )
    options.add(parser, "--json")


def solve_command(arguments: argparse.Namespace) -> int:
    """Solve the environment and print a table or JSON."""
    from bamdp.envs.ceilings import GAIN_STATES, ceilings

    env, figure = bamdp.make_env(arguments.env), options.figure_path(arguments)
    steps = env.horizon if arguments.steps is None else _checks.integer(arguments.steps, "steps")
    with console.compiling():
        solved = ceilings(env, arguments.discount, steps)
    if figure is not None:
        best = bamdp.policy_iteration(env.mdp, arguments.discount)
        options.draw_figure(
            figure, partial(bamdp.plot.policy, env, best, title=f"{env.name}: optimal policy")
        )
    if arguments.json:
        totals = asdict(solved)
        given = {"env": arguments.env, "n_states": env.n_states, "n_actions": env.n_actions, "steps": steps}
        values = {name: totals.pop(name) for name in ("discount", "value", "gain")}
        console.print_json({**given, **values, "total_reward": totals, "version": bamdp.__version__})
        return 0
    large = env.n_states > GAIN_STATES
    none = f"not computed, over {GAIN_STATES} states" if large else "none: it depends on the state"
    rows = [
        (f"value of the start, discount {arguments.discount:g}", f"{solved.value:.4f}"),
        ("average reward per step", none if solved.gain is None else f"{solved.gain:.6f}"),
        (f"total over {steps} steps, optimal policy", f"{solved.optimum:.2f}"),
        (f"  policy optimal for discount {arguments.discount:g}", f"{solved.discounted:.2f}"),
        ("  uniformly random actions", f"{solved.random:.2f}"),
    ]
    states = f"{env.n_states} state{'s' * (env.n_states > 1)}"
    title = f"{env.name}: {states}, {env.n_actions} actions, model known"
    if env.draws_model:
        title += f" (mean over {len(env.models())} models)"
    console.print_table(("", "expected"), rows, title, numbers=("expected",))
    return 0


def theory_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp theory``."""
    parser.epilog = "Example: bamdp theory --n-policies 4 --n-samples 500 --n-steps 8 --discount 0.5 --c 0.01"
    for flag, kind, metavar, help, default in (
        ("--n-policies", int, "N", "policies at a node", 4),
        ("--n-samples", int, "M", "samples of each policy", 500),
        ("--n-steps", int, "K", "steps of a stage", 8),
        ("--n-stages", int, "H", "stages", 1),
        ("--discount", float, "γ", "in [0, 1)", 0.5),
        ("--c", float, "C", "how much models of the belief disagree", 0.01),
        ("--epsilon0", float, "ε₀", "how much the belief changes in a stage", 0.0),
        ("--delta", float, "δ", "probability with which Theorem 1 may fail", 0.05),
    ):
        options.add_option(parser, flag, kind, metavar, f"{help} (default: %(default)s)", default)
    options.add(parser, "--json")


def theory_command(arguments: argparse.Namespace) -> int:
    """Print the bounds for several K around the selected one, the size of the tree and the rule for choosing K."""
    names = ("n_policies", "n_samples", "n_steps", "discount", "n_stages", "c", "epsilon0", "delta")
    given = options.values(arguments, *names)
    bounds = {
        "printed": theory.printed_loss_bound(**given),
        "corrected": theory.corrected_loss_bound(**given),
    }
    rule = theory.k_rule(**{name: given[name] for name in names if name not in ("n_steps", "n_stages")})
    calls = theory.dss_calls(*(given[name] for name in ("n_policies", "n_samples", "n_steps", "n_stages")))
    if arguments.json:
        terms = {name: {**b.terms, "total": b.total, "range": b.range} for name, b in bounds.items()}
        console.print_json({**given, **terms, "calls": asdict(calls), "k_rule": asdict(rule)})
        return 0
    K = given["n_steps"]
    rows = [_row(given, k, k == K) for k in sorted({1, 2, 4, 8, 16, 32, 64, 128, K})]
    columns = ("K", "Theorem 1 as printed", "corrected bound", "", "calls per decision")
    title = f"Upper bounds on the loss of DSS, which cannot exceed {bounds['corrected'].range:.4g}"
    console.print_table(columns, rows, title, numbers=columns[:3])
    print(f"\nTerms of the corrected bound for K = {K}: ", end="")
    print(", ".join(f"{name} {value:.4g}" for name, value in bounds["corrected"].terms.items()))
    print(f"Appendix C's rule, (ε₀ + C) K + γ^K ≤ √(ln(M/δ) / 8N): {rule}.")
    return 0


def _row(given: dict[str, Any], k: int, chosen: bool) -> tuple[str, ...]:
    """Return the bounds for stages of k steps, with a bar for the corrected bound."""
    here = {**given, "n_steps": k}
    printed, corrected = theory.printed_loss_bound(**here), theory.corrected_loss_bound(**here)
    bar = "vacuous" if corrected.vacuous else "█" * max(1, round(BAR * corrected.total / corrected.range))
    calls = theory.dss_calls(given["n_policies"], given["n_samples"], k, given["n_stages"]).calls
    count = f"{calls:,}".replace(",", " ") if calls < 10**12 else f"{calls:.1e}"
    return f"{k}{' *' * chosen}", f"{printed.total:.4g}", f"{corrected.total:.4g}", bar, count
