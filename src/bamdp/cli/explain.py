"""``bamdp explain``: one decision as a page or a picture."""

from __future__ import annotations

import argparse

import bamdp
from bamdp import _checks
from bamdp.cli import console
from bamdp.cli.run import read_settings
from bamdp.registry import make_planner, make_prior, make_rewards
from bamdp.runs import Setting
from bamdp.studio.explain import check_format, write_explanation
from bamdp.studio.playback import Playback


def do(given: argparse.Namespace) -> int:
    """The command."""
    target = check_format(given.out)
    step = _checks.integer(given.step, "step", low=0)
    env = bamdp.make_env(given.env)
    setting = Setting(
        env=given.env,
        planner=make_planner(given.planner, read_settings(given.set)),
        prior=make_prior(given.prior, env),
        rewards=make_rewards(given.rewards, env),
        discount=given.discount,
        steps=max(step + 1, env.horizon),
        seed=given.seed,
        objective=given.objective,
    )
    run = Playback(setting)
    with console.compiling():
        with console.progress_bar(step, given.planner) as progress:
            while run.t < step:
                done = run.advance(step - run.t, seconds=0.1)
                if progress is not None:
                    progress(done)
        write_explanation(target, run, given.planner)
    console.note(f"why: {target}")
    return 0
