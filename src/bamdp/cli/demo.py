"""``bamdp demo``: three planners on the paper's 5 by 5 grid, a table and a picture."""

from __future__ import annotations

import argparse
import os

import numpy as np

import bamdp
from bamdp.cli import console, options
from bamdp.cli.run import print_batches, run_with_progress
from bamdp.settings import make_setting

PAPER = "n_policies=2,n_samples=2,n_steps=25,n_stages=1"  # Appendix C, Grid5
DEMO_PLANNERS = {
    "DSS-PI": f"dss-pi:{PAPER}",
    "DSS-RTDP": f"dss-rtdp:{PAPER},generator.depth=15",
    "Thompson sampling": "thompson",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    options.add_runs(parser, 50)
    options.add_seed(parser)
    options.add_jobs(parser, min(2, os.cpu_count() or 1))
    help = "of the picture (default: learning-curve.png)"
    options.add_option(parser, "--output", str, "PATH", help, "learning-curve.png")


def run_command(arguments: argparse.Namespace) -> int:
    """Run the three planners, print the table and draw the learning curves."""
    from bamdp.ceilings import optimal_total
    from bamdp.lab import figures

    output = console.check_picture_path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    env = bamdp.make_env("grid5")
    batches = {}
    with console.compiling():
        for name, planner in DEMO_PLANNERS.items():
            setting = make_setting(
                env.name, planner, prior="sparse:alpha=0.2,beta=6", seed=arguments.seed, world=env
            )
            batches[name] = run_with_progress(
                setting, arguments.runs, arguments.jobs, f"{name:<18}", arguments.progress
            )
        optimum, best = optimal_total(env, env.horizon), bamdp.gain(env.mdp).gain
    print_batches(batches, optimum, f", discount {setting.discount}")
    figure = figures.reward_figure(
        {name: np.array([run.rewards for run in batch.runs]) for name, batch in batches.items()},
        window=100,
        optimum=best,
        title="Learning to cross a slippery 5 × 5 grid",
        note=f"mean of {arguments.runs} runs, 95% band",
    )
    figures.save_figure(figure, output.with_suffix(""), [output.suffix[1:]])
    console.note(f"learning curve: {output}")
    return 0
