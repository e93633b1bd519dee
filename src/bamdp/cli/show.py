"""Commands that show one thing: ``bamdp list``, ``solve``, ``theory``, ``studio`` and ``explain``."""

from __future__ import annotations

import argparse
import webbrowser
from dataclasses import asdict
from functools import partial
from typing import Any

import bamdp
from bamdp import _checks, theory
from bamdp._parameters import Entry, InfoList
from bamdp.cli import console
from bamdp.cli.arguments import LISTS, RUN_VALUES, environment_text, picture_path, planner_text, values
from bamdp.envs.registry import list_envs
from bamdp.registry import DEFAULT_PLANNER, list_planners, list_priors, list_rewards
from bamdp.runs import make_setting

BAR = 30  # width of the longest bar in characters


def list_names(arguments: argparse.Namespace) -> int:
    """Print one list or all of them."""
    from bamdp.continuous.agent import PLANNERS, PRIORS

    classes: dict[str, Any] = {**PLANNERS, **{f"--prior {name}": cls for name, cls in PRIORS.items()}}
    continuous = InfoList.of({name: Entry(cls) for name, cls in classes.items()})
    every = dict(zip(LISTS, (list_envs(), list_planners(), list_priors(), list_rewards(), continuous)))
    chosen = {arguments.list: every[arguments.list]} if arguments.list else every
    if arguments.json:
        data = {name: [info.data() for info in listed] for name, listed in chosen.items()}
        console.print_json(data.get(arguments.list, data))
    else:
        print("\n\n".join(f"{LISTS[name]}\n\n{listed}" for name, listed in chosen.items()))
    return 0


def solve(arguments: argparse.Namespace) -> int:
    """Solve the environment and print a table or JSON."""
    from pandas import DataFrame

    from bamdp.envs.ceilings import ceilings
    from bamdp.lab.tables import Table

    env, figure = bamdp.make_env(arguments.env), picture_path(arguments.figure)
    steps = env.horizon if arguments.steps is None else _checks.integer(arguments.steps, "steps")
    with console.working("", arguments):
        solved = ceilings(env, arguments.discount, steps)
    if figure is not None:
        best = bamdp.policy_iteration(env.mdp, arguments.discount)
        title = f"{env.name}: optimal policy"
        console.draw_figure(figure, partial(bamdp.plot.policy, env, best, title=title))
    if arguments.json:
        totals = asdict(solved)
        given = {"env": arguments.env, "n_states": env.n_states, "n_actions": env.n_actions, "steps": steps}
        found = {name: totals.pop(name) for name in ("discount", "value", "gain")}
        console.print_json({**given, **found, "total_reward": totals, "version": bamdp.__version__})
        return 0
    rows = {
        f"value of the start, discount {arguments.discount:g}": f"{solved.value:.4f}",
        "average reward per step": "–" if solved.gain is None else f"{solved.gain:.6f}",
        f"total over {steps} steps, optimal policy": f"{solved.optimum:.2f}",
        f"  policy optimal for discount {arguments.discount:g}": f"{solved.discounted:.2f}",
        "  uniformly random actions": f"{solved.random:.2f}",
    }
    states = f"{env.n_states} state{'s' * (env.n_states > 1)}"
    drawn = f" (mean over {len(env.models())} models)" if env.draws_model else ""
    title = f"{env.name}: {states}, {env.n_actions} actions, known model{drawn}"
    console.show([Table("solve", title, DataFrame({"": [*rows], "expected": [*rows.values()]}))])
    return 0


def theory_bounds(arguments: argparse.Namespace) -> int:
    """Print the bounds for several K around the selected one, the size of the tree and the rule for choosing K."""
    from pandas import DataFrame

    from bamdp.lab.tables import Table

    names = ("n_policies", "n_samples", "n_steps", "discount", "n_stages", "c", "epsilon0", "delta")
    given = values(arguments, *names)
    printed, corrected = theory.printed_loss_bound(**given), theory.corrected_loss_bound(**given)
    rule = theory.k_rule(**{name: given[name] for name in names if name not in ("n_steps", "n_stages")})
    calls = theory.dss_calls(*(given[name] for name in ("n_policies", "n_samples", "n_steps", "n_stages")))
    if arguments.json:
        both = [{**b.terms, "total": b.total, "range": b.range} for b in (printed, corrected)]
        console.print_json(
            {
                **given,
                "printed": both[0],
                "corrected": both[1],
                "calls": asdict(calls),
                "k_rule": asdict(rule),
            }
        )
        return 0
    terms = ", ".join(f"{name} {value:.4g}" for name, value in corrected.terms.items())
    notes = [
        f"Terms of the corrected bound for K = {given['n_steps']}: {terms}.",
        f"Appendix C's rule, (ε₀ + C) K + γ^K ≤ √(ln(M/δ) / 8N): {rule}.",
    ]
    title = f"Upper bounds on the loss of DSS, which cannot exceed {corrected.range:.4g}"
    rows = [_bounds_for(given, k) for k in sorted({1, 2, 4, 8, 16, 32, 64, 128, given["n_steps"]})]
    console.show([Table("theory", title, DataFrame(rows), notes)])
    return 0


def _bounds_for(given: dict[str, Any], k: int) -> dict[str, str]:
    """Return the bounds for stages of k steps, with a bar for the corrected bound."""
    here = {**given, "n_steps": k}
    printed, corrected = theory.printed_loss_bound(**here), theory.corrected_loss_bound(**here)
    calls = theory.dss_calls(
        *(here[name] for name in ("n_policies", "n_samples", "n_steps", "n_stages"))
    ).calls
    bar = "█" * max(1, round(BAR * corrected.total / corrected.range))
    return {
        "K": f"{k}{' *' * (k == given['n_steps'])}",
        "Theorem 1 as printed": f"{printed.total:.4g}",
        "corrected bound": f"{corrected.total:.4g}",
        "": "vacuous" if corrected.vacuous else bar,
        "calls per decision": f"{calls:,}".replace(",", " ") if calls < 10**12 else f"{calls:.1e}",
    }


def studio(arguments: argparse.Namespace) -> int:
    """Check the initial form, and serve the page until Ctrl-C."""
    from bamdp.studio.playback import FIRST, Choice, Limits

    limits, first = Limits(arguments.max_states, arguments.limit), FIRST
    if arguments.env is not None:
        planner = planner_text(arguments, arguments.planner or FIRST.planners[0])
        first = Choice(environment_text(arguments), (planner,), **values(arguments, *RUN_VALUES))
    first.settings(limits)  # report errors before the server starts
    port = None if arguments.port is None else _checks.integer(arguments.port, "port", low=0, high=65535)
    try:
        from bamdp.studio import server
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the studio needs {error.name}, which is not installed; install it with: pip install fastapi uvicorn"
        ) from None
    host, socket = arguments.host, server.listen(arguments.host, port)
    if host not in server.LOOPBACK:
        console.note(f"warning: listening on {host}: everyone on this network can use the studio")
    address = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}/"
    print(f"bamdp studio: {address}", flush=True)
    console.note("Press Ctrl-C to stop.")
    if arguments.open:
        webbrowser.open(address)
    server.make_server(server.make_app(first, host=host, limits=limits)).run(sockets=[socket])
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """Run the agent up to the given step, and write its decision."""
    from bamdp.studio.explain import FORMATS, write_explanation
    from bamdp.studio.playback import Playback, make_discrete

    target = picture_path(arguments.figure, FORMATS)
    assert target is not None
    step = _checks.integer(arguments.step, "step", low=0, high=_checks.LARGEST_INTEGER - 1)
    text, planner = environment_text(arguments), planner_text(arguments, arguments.planner or DEFAULT_PLANNER)
    env = make_discrete(text)
    steps = max(step + 1, env.horizon)
    setting = make_setting(text, planner, steps=steps, world=env, **values(arguments, *RUN_VALUES))
    console.announce(setting, env, planner, step + 1)
    run = Playback(setting)
    with console.working(planner, arguments) as (done, more):
        more(step)
        while run.t < step:
            run.advance()
            done(1)
        write_explanation(target, run)
    console.note(f"explanation: {target}")
    return 0
