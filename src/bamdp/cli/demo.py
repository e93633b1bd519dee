"""``bamdp demo``: three planners on the paper's 5 by 5 grid, a table and a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import bamdp
from bamdp.ceilings import optimal_total
from bamdp.cli import console
from bamdp.cli.run import play, print_batches, runs_text
from bamdp.lab import figures
from bamdp.registry import describe_prior, make_planner, make_prior, make_rewards
from bamdp.runs import Batch, Setting

ENV, PRIOR, DISCOUNT, WINDOW = "grid5", "sparse:alpha=0.2,beta=6", 0.95, 100
PAPER = {"n_policies": "2", "n_samples": "2", "n_steps": "25", "n_stages": "1"}  # Appendix C, Grid5
PLANNERS = {
    "DSS-PI": make_planner("dss-pi", PAPER),
    "DSS-RTDP": make_planner("dss-rtdp", {**PAPER, "generator.depth": "15"}),
    "Thompson sampling": make_planner("thompson"),
}


def do(given: argparse.Namespace) -> int:
    """The command."""
    output = Path(given.output)
    if output.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--output must end in .png, .svg or .pdf, got {given.output!r}")
    output.parent.mkdir(parents=True, exist_ok=True)
    env = bamdp.make_env(ENV)
    prior, rewards = make_prior(PRIOR, env), make_rewards(None, env)
    batches: dict[str, Batch] = {}
    with console.compiling():
        for name, planner in PLANNERS.items():
            setting = Setting(ENV, planner, prior, rewards, DISCOUNT, env.horizon, given.seed)
            batches[name] = play(setting, given.runs, given.jobs, f"{name:<18}", given.progress)
        optimum, best = optimal_total(env, env.horizon), bamdp.gain(env.mdp).gain
    first = next(iter(batches.values()))
    title = (
        f"{ENV}, {env.horizon} steps, {runs_text(first)}, prior {describe_prior(prior)}, discount {DISCOUNT}"
    )
    print_batches(batches, optimum, title)
    curves = {name: np.array([run.rewards for run in batch.runs]) for name, batch in batches.items()}
    figure = figures.reward_figure(
        curves,
        window=WINDOW,
        optimum=best,
        title="Learning to cross a slippery 5 × 5 grid",
        note=f"mean of {len(first.runs)} runs, 95% band",
    )
    figures.save_figure(figure, output.with_suffix(""), [output.suffix[1:]])
    console.note(f"learning curve: {output}")
    return 0
