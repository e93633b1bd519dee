"""What can be computed before anything is run.

``bamdp solve`` has the values and totals of a known model, ``bamdp theory`` what the bounds say of DSS and the
trade-off in K.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import bamdp
from bamdp import _checks, theory
from bamdp.cli import console, options
from bamdp.cli.waiting import tell_waiting_for_sweeps
from bamdp.runs import new_agent
from bamdp.settings import make_setting
from bamdp.theory.bounds import Bound, trade_off

SIZES = {  # options: the default and the help
    "n_policies": (4, "N, policies at a node"),
    "n_samples": (4, "M, samples of each policy"),
    "n_steps": (20, "K, steps of a stage"),
    "n_stages": (1, "H, stages"),
}
# where neither given nor estimated
CONSTANTS = {"epsilon0": 0.0, "c": 0.0, "reward_range": 1.0, "n_actions": 2.0}
BOUNDS: dict[str, Callable[..., Bound]] = {
    "printed": theory.printed_loss_bound,
    "mended": theory.mended_loss_bound,
}
TERMS = {
    "anytime": "anytime: a policy is held for K steps",
    "thompson": "Thompson: it was made for another model",
    "truncation": "truncation: nothing is seen beyond",
    "sampling": "sampling: candidates are few and compared by samples",
}
NUMBER = {"type": float, "help": "default: %(default)s"}  # of --discount, which is no word here
BAR = 30  # columns of the longest bar


def solve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp solve``."""
    options.add(parser, "env", help="name, name:key=value,... or file:model.npz")
    options.add(parser, "--discount", **NUMBER)
    options.add(parser, "--steps", help="for the totals (default: the environment's)")
    options.add(parser, "--json")


def solve_command(arguments: argparse.Namespace) -> int:
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


def theory_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp theory``."""
    parser.epilog = "Example: bamdp theory --n-policies 4 --n-samples 4 --n-steps 18 --discount 0.95"
    add = partial(options.add_option, parser)
    for name, (default, help) in SIZES.items():
        add(f"--{name.replace('_', '-')}", int, "N", f"{help} (default: {default})", default)
    options.add(parser, "--discount", **NUMBER)
    add("--delta", float, "δ", "default: 0.05", 0.05)
    add("--epsilon0", float, "ε₀", "how much the belief changes in a stage (default: 0)")
    add("--c", float, "C", "how much models disagree (default: 0)")
    add("--reward-range", float, "X", "largest less least (default: 1)")
    add("--n-actions", int, "N", "for sparse sampling's tree (default: 2)")
    add("--env", str, "ENV", "estimate ε₀ and C of a belief about this environment")
    add("--after", int, "T", "steps learned before that (default: 0)", 0)
    options.add(parser, "--prior", "--rewards")
    add("--pairs", int, "N", "of models, for C (default: 200)", 200)
    add("--episodes", int, "N", "for ε₀ (default: 10)", 10)
    options.add(parser, "--seed", help="of the estimates (default: %(default)s)")
    options.add(parser, "--json")
    add("--output", str, "PATH", "draw the trade-off in K (png, svg or pdf)")


def theory_command(arguments: argparse.Namespace) -> int:
    """Compute the bounds, and print tables or JSON, and draw the trade-off."""
    output = None if arguments.output is None else console.check_picture_path(arguments.output)
    with console.compiling():
        parameters = _read_parameters(arguments)
    if arguments.json:
        console.print_json(_as_json(parameters))
    else:
        _print_tables(parameters)
    if output is not None:
        titles = {"Theorem 1, as printed": "printed", "mended": "mended"}
        panels = {title: partial(parameters.bound, which) for title, which in titles.items()}
        trade_off(output, panels, parameters.sizes["n_steps"], note=str(parameters))
        console.note(f"trade-off in K: {output}")
    return 0


# --- parameters ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoundParameters:
    """The parameters of the bounds, given or estimated."""

    sizes: dict[str, int]  # n_policies, n_samples, n_steps, n_stages
    discount: float
    belief: dict[str, float]  # epsilon0, c, reward_range, delta
    n_actions: int
    estimated: dict[str, float]

    def bound(self, which: str, n_steps: int | None = None) -> Bound:
        """Return a bound, printed or mended, for K as it is or for another K."""
        sizes = self.sizes if n_steps is None else {**self.sizes, "n_steps": n_steps}
        return BOUNDS[which](discount=self.discount, **sizes, **self.belief)

    @property
    def depth(self) -> int:
        """How many steps the tree looks ahead, K H."""
        return self.sizes["n_steps"] * self.sizes["n_stages"]

    def rule(self) -> theory.KRule:
        """Return the K that satisfy Appendix C's rule."""
        constants = {name: self.belief[name] for name in ("epsilon0", "c", "delta")}
        return theory.k_rule(self.sizes["n_policies"], self.sizes["n_samples"], self.discount, **constants)

    def tree_sizes(self) -> dict[str, int | None]:
        """Return the sizes of the trees of DSS and sparse sampling; None for what is too large to compute."""
        counts: dict[str, int | None] = {}
        calls = sparse_calls = None
        with suppress(ValueError):
            dss = theory.dss_calls(**self.sizes)
            counts = {"DSS, decision nodes": dss.nodes, "DSS, models drawn and solved": dss.policies}
            calls = dss.calls
        with suppress(ValueError):
            sparse_calls = theory.sparse_sampling_calls(self.n_actions, self.sizes["n_samples"], self.depth)
        return {**counts, "DSS, calls to the generative model": calls, "sparse sampling, calls": sparse_calls}

    def __str__(self) -> str:
        N, M, K, H = self.sizes.values()
        e, c, d = (self.belief[name] for name in ("epsilon0", "c", "delta"))
        return (
            f"N={N} policies, M={M} samples, K={K} steps, H={H} stages, γ={self.discount:g}, δ={d:g}, "
            f"ε₀={e:.3g}, C={c:.3g}"
        )


def _read_parameters(arguments: argparse.Namespace) -> BoundParameters:
    """Check the arguments, and estimate those that are not given if there is an environment."""
    sizes = {name: _checks.integer(getattr(arguments, name), name) for name in SIZES}
    discount = _checks.discount(arguments.discount)
    if arguments.env is None and arguments.after:
        raise ValueError("--after says how long an agent lives in an environment; name one with --env")
    chosen = {name: getattr(arguments, name) for name in CONSTANTS if getattr(arguments, name) is not None}
    estimated = {} if arguments.env is None else _estimate(arguments, sizes["n_steps"], discount)
    constants = {**CONSTANTS, **estimated, **chosen}
    n_actions = _checks.integer(int(constants.pop("n_actions")), "n_actions")
    used = {name: value for name, value in estimated.items() if name not in chosen}
    return BoundParameters(sizes, discount, {**constants, "delta": arguments.delta}, n_actions, used)


def _estimate(arguments: argparse.Namespace, n_steps: int, discount: float) -> dict[str, float]:
    """Estimate ε₀ and C of the belief that a Thompson sampling agent has after some steps."""
    after = _checks.integer(arguments.after, "after", low=0)
    env = bamdp.make_env(arguments.env)
    values = options.values(arguments, "prior", "rewards", "discount", "seed")
    setting = make_setting(arguments.env, "thompson", steps=max(1, after), world=env, **values)
    agent = new_agent(setting, env, setting.seed)
    bamdp.simulate(agent, env, after, seed=setting.seed)
    state = env.reset(seed=setting.seed)
    span = 1.0 if env.stochastic_rewards else float(env.rewards.max()) - float(env.rewards.min()) or 1.0
    c = theory.estimate_c(agent.belief, pairs=arguments.pairs, reward_range=span, rng=setting.seed)
    drift = theory.estimate_epsilon0(
        agent.belief, state, discount, n_steps=n_steps, episodes=arguments.episodes, rng=setting.seed
    )
    return {"epsilon0": drift.epsilon0, "c": c.mean, "reward_range": span, "n_actions": float(env.n_actions)}


# --- output -------------------------------------------------------------------------------------------------------


def _print_tables(parameters: BoundParameters) -> None:
    """Print the bounds term by term, the sizes of the trees, the rule for K and the trade-off in K."""
    both = [parameters.bound(which) for which in BOUNDS]
    rows = [
        (text, *(f"{bound.terms[name]:.4g}" if name in bound.terms else "–" for bound in both))
        for name, text in TERMS.items()
    ]
    rows.append(("sum", *(f"{bound.total:.4g}" for bound in both)))
    rows.append(("the most that any policy can lose", *(f"{bound.range:.4g}" for bound in both)))
    rows.append(("the bound is", *("vacuous" if bound.vacuous else "meaningful" for bound in both)))
    columns = ("what is lost at most", "Theorem 1 as printed", "mended")
    console.print_table(columns, rows, f"DSS with {parameters}", numbers=columns[1:])
    if parameters.estimated:
        console.note(f"estimated: {', '.join(f'{k}={v:.4g}' for k, v in parameters.estimated.items())}")
    title = f"\nLooking {parameters.depth} steps ahead, {parameters.n_actions} actions"
    sizes = [(name, _digits(count)) for name, count in parameters.tree_sizes().items()]
    console.print_table(("size of the trees", "number"), sizes, title, numbers=("number",))
    print(f"\nAppendix C's rule, (ε₀ + C) K + γ^K ≤ √(ln(M/δ) / 8N): {parameters.rule()}.")
    _print_trade_off(parameters)


def _print_trade_off(parameters: BoundParameters) -> None:
    """Print a row for each of some K, with a bar for the mended bound."""
    K = parameters.sizes["n_steps"]
    shown = sorted({k for k in (1, 2, 5, 10, 20, 50, 100, 200, 500) if k <= max(20, 4 * K)} | {K})
    bounds = {k: [parameters.bound(which, k) for which in BOUNDS] for k in shown}
    longest = max(mended.total for _, mended in bounds.values())
    rows = []
    for k, (printed, mended) in bounds.items():
        bar = "█" * round(BAR * mended.total / longest) + (" vacuous" if mended.vacuous else "")
        name = f"{k} *" if k == K else str(k)
        rows.append((name, f"{printed.total:.4g}", f"{mended.total:.4g}", bar))
    columns = ("K", "as printed", "mended", "mended bound")
    title = f"\nThe trade-off in K (* as asked; more than {bounds[K][1].range:.4g} cannot be lost)"
    console.print_table(columns, rows, title, numbers=columns[1:3])


def _as_json(parameters: BoundParameters) -> dict[str, Any]:
    """Return what --json prints."""
    rule = parameters.rule()
    bounds = {which: parameters.bound(which) for which in BOUNDS}
    return {
        **parameters.sizes,
        "discount": parameters.discount,
        **parameters.belief,
        "n_actions": parameters.n_actions,
        "estimated": sorted(parameters.estimated),
        **{
            which: {"terms": dict(b.terms), "total": b.total, "most": b.range, "vacuous": b.vacuous}
            for which, b in bounds.items()
        },
        "calls": {name: _count_json(count) for name, count in parameters.tree_sizes().items()},
        "k_rule": {name: getattr(rule, name) for name in ("satisfiable", "low", "high", "allowed", "needed")},
        "version": bamdp.__version__,
    }


def _count_json(count: int | None) -> dict[str, Any]:
    """Return a number that every reader of JSON can hold, and its logarithm; null for what is too large."""
    small = count is not None and count < 2**53
    return {"exact": count if small else None, "log10": None if count is None else math.log10(count)}


def _digits(count: int | None) -> str:
    if count is None:
        return "more than 10^10000"
    return f"{count:,}".replace(",", " ") if count < 10**12 else f"about 10^{math.log10(count):.1f}"
