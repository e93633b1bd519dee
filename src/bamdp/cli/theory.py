"""``bamdp theory``: what the bounds say of DSS with given parameters, and the trade-off in K."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import bamdp
from bamdp import _checks, theory
from bamdp.cli import console
from bamdp.registry import make_prior, make_rewards
from bamdp.theory.bounds import Bound

FORMATS = (".png", ".svg", ".pdf")
TERMS = {
    "anytime": "anytime: a policy is held for K steps",
    "thompson": "Thompson: it was made for another model",
    "truncation": "truncation: nothing is seen beyond",
    "sampling": "sampling: candidates are few and compared by samples",
}
BAR = 30  # columns of the longest bar


@dataclass(frozen=True)
class Given:
    """The parameters, checked, with what was estimated."""

    sizes: dict[str, int]  # n_policies, n_samples, n_steps, n_stages
    discount: float
    belief: dict[str, float]  # epsilon0, c, delta, reward_range
    n_actions: int
    estimated: dict[str, float]

    def bound(self, which: Callable[..., Bound], n_steps: int | None = None) -> Bound:
        """A bound, here or for another K."""
        sizes = self.sizes if n_steps is None else {**self.sizes, "n_steps": n_steps}
        return which(discount=self.discount, **sizes, **self.belief)

    def rule(self) -> theory.KRule:
        """Appendix C."""
        few = {name: self.belief[name] for name in ("epsilon0", "c", "delta")}
        return theory.k_rule(self.sizes["n_policies"], self.sizes["n_samples"], self.discount, **few)

    def __str__(self) -> str:
        N, M, K, H = self.sizes.values()
        e, c, d = (self.belief[name] for name in ("epsilon0", "c", "delta"))
        return (
            f"N={N} policies, M={M} samples, K={K} steps, H={H} stages, γ={self.discount:g}, δ={d:g}, "
            f"ε₀={e:.3g}, C={c:.3g}"
        )


def do(given: argparse.Namespace) -> int:
    """The command."""
    if given.output is not None and Path(given.output).suffix not in FORMATS:
        raise ValueError(f"--output must end in .png, .svg or .pdf, got {given.output!r}")
    with console.compiling():
        at = _read(given)
    printed, mended = at.bound(theory.printed_loss_bound), at.bound(theory.mended_loss_bound)
    if given.json:
        console.print_json(_as_json(at, printed, mended))
    else:
        _print_bounds(at, printed, mended)
        _print_calls(at)
        _print_rule(at)
        _print_trade_off(at)
    if given.output is not None:
        _draw(at, Path(given.output))
    return 0


def _read(given: argparse.Namespace) -> Given:
    names = ("n_policies", "n_samples", "n_steps", "n_stages")
    sizes = {name: _checks.integer(getattr(given, name), name) for name in names}
    discount = _checks.discount(given.discount)
    found = {"epsilon0": 0.0, "c": 0.0, "reward_range": 1.0, "n_actions": 2.0}
    estimated: dict[str, float] = {}
    if given.env is not None:
        estimated = _estimate(given, sizes["n_steps"], discount)
        found.update(estimated)
    elif given.after:
        raise ValueError("--after says how long an agent lives in an environment; name one with --env")
    asked = {name: getattr(given, name) for name in found if getattr(given, name) is not None}
    found.update(asked)
    n_actions = found.pop("n_actions")
    belief = {**found, "delta": given.delta}
    kept = {name: value for name, value in estimated.items() if name not in asked}
    return Given(sizes, discount, belief, _checks.integer(int(n_actions), "n_actions"), kept)


def _estimate(given: argparse.Namespace, n_steps: int, discount: float) -> dict[str, float]:
    """ε₀ and C of the belief that a Thompson sampling agent has after some steps."""
    env = bamdp.make_env(given.env)
    agent = bamdp.Agent(
        bamdp.ThompsonSampling(),
        prior=make_prior(given.prior, env),
        rewards=make_rewards(given.rewards, env),
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=discount,
        terminal=env.mdp.terminal,
        action_mask=env.mdp.action_mask,
        seed=_checks.integer(given.seed, "seed", low=0),
    )
    after = _checks.integer(given.after, "after", low=0)
    bamdp.simulate(agent, env, after, seed=given.seed)
    state = env.reset(seed=given.seed)
    rewards = (0.0, 1.0) if env.stochastic_rewards else (float(env.rewards.min()), float(env.rewards.max()))
    span = rewards[1] - rewards[0] or 1.0
    c = theory.estimate_c(agent.belief, pairs=given.pairs, reward_range=span, rng=given.seed)
    drift = theory.estimate_epsilon0(
        agent.belief, state, discount, n_steps=n_steps, episodes=given.episodes, rng=given.seed
    )
    return {
        "epsilon0": drift.epsilon0,
        "c": c.mean,
        "reward_range": span,
        "n_actions": float(env.n_actions),
    }


def _print_bounds(at: Given, printed: Bound, mended: Bound) -> None:
    columns = ("what is lost at most", "Theorem 1 as printed", "mended")
    rows = [(text, _term(printed, name), _term(mended, name)) for name, text in TERMS.items()]
    rows.append(("sum", f"{printed.total:.4g}", f"{mended.total:.4g}"))
    rows.append(("the most that any policy can lose", f"{printed.range:.4g}", f"{mended.range:.4g}"))
    rows.append(("the bound is", _verdict(printed), _verdict(mended)))
    console.print_table(columns, rows, f"DSS with {at}", numbers=columns[1:])
    if at.estimated:
        console.note(f"estimated: {', '.join(f'{k}={v:.4g}' for k, v in at.estimated.items())}")


def _print_calls(at: Given) -> None:
    rows = [(name, _digits(count)) for name, count in _calls(at).items()]
    depth = at.sizes["n_steps"] * at.sizes["n_stages"]
    console.print_table(
        ("size of the trees", "number"),
        rows,
        f"\nLooking {depth} steps ahead, {at.n_actions} actions",
        numbers=("number",),
    )


def _print_rule(at: Given) -> None:
    print(f"\nAppendix C's rule, (ε₀ + C) K + γ^K ≤ √(ln(M/δ) / 8N): {at.rule()}.")


def _print_trade_off(at: Given) -> None:
    """A row for some K, with a bar of the mended bound."""
    K = at.sizes["n_steps"]
    shown = sorted({1, 2, 5, 10, 20, 50, 100, 200, 500, K} & set(range(1, 1 + max(20, 4 * K))))
    printed = {k: at.bound(theory.printed_loss_bound, k) for k in shown}
    mended = {k: at.bound(theory.mended_loss_bound, k) for k in shown}
    longest = max(bound.total for bound in mended.values())
    rows = []
    for k in shown:
        bar = "█" * round(BAR * mended[k].total / longest) + (" vacuous" if mended[k].vacuous else "")
        name = f"{k}{' *' if k == K else ''}"
        rows.append((name, f"{printed[k].total:.4g}", f"{mended[k].total:.4g}", bar))
    columns = ("K", "as printed", "mended", "mended bound")
    most = f"{mended[K].range:.4g}"
    title = f"\nThe trade-off in K (* as asked; more than {most} cannot be lost)"
    console.print_table(columns, rows, title, numbers=columns[1:3])


def _draw(at: Given, output: Path) -> None:
    from bamdp.theory.figure import trade_off

    panels = {
        "Theorem 1, as printed": partial(at.bound, theory.printed_loss_bound),
        "mended": partial(at.bound, theory.mended_loss_bound),
    }
    trade_off(output, panels, at.sizes["n_steps"], note=str(at))
    console.note(f"trade-off in K: {output}")


def _as_json(at: Given, printed: Bound, mended: Bound) -> dict[str, Any]:
    rule = at.rule()
    return {
        **at.sizes,
        "discount": at.discount,
        **at.belief,
        "n_actions": at.n_actions,
        "estimated": sorted(at.estimated),
        "printed": _bound_json(printed),
        "mended": _bound_json(mended),
        "calls": {name: _count_json(count) for name, count in _calls(at).items()},
        "k_rule": {
            "satisfiable": rule.satisfiable,
            "low": rule.low,
            "high": rule.high,
            "allowed": rule.allowed,
            "needed": rule.needed,
        },
        "version": bamdp.__version__,
    }


def _bound_json(bound: Bound) -> dict[str, Any]:
    return {
        "terms": dict(bound.terms),
        "total": bound.total,
        "most": bound.range,
        "vacuous": bound.vacuous,
    }


def _calls(at: Given) -> dict[str, int | None]:
    """Counts by what they count; None beyond all measure."""
    counts: dict[str, int | None] = {}
    try:
        tree = theory.dss_calls(**at.sizes)
        counts |= {"DSS, decision nodes": tree.nodes, "DSS, models drawn and solved": tree.policies}
        counts |= {"DSS, calls to the generative model": tree.calls}
    except ValueError:
        counts |= {"DSS, calls to the generative model": None}
    depth = at.sizes["n_steps"] * at.sizes["n_stages"]
    try:
        count: int | None = theory.sparse_sampling_calls(at.n_actions, at.sizes["n_samples"], depth)
    except ValueError:
        count = None
    return {**counts, "sparse sampling, calls": count}


def _count_json(count: int | None) -> dict[str, Any]:
    """Whole numbers that every reader of JSON can hold; the logarithm in any case that can be computed."""
    small = count is not None and count < 2**53
    return {"exact": count if small else None, "log10": None if count is None else math.log10(count)}


def _digits(count: int | None) -> str:
    if count is None:
        return "more than 10^10000"
    return f"{count:,}".replace(",", " ") if count < 10**12 else f"about 10^{math.log10(count):.1f}"


def _term(bound: Bound, name: str) -> str:
    return f"{bound.terms[name]:.4g}" if name in bound.terms else "–"


def _verdict(bound: Bound) -> str:
    return "vacuous" if bound.vacuous else "meaningful"
