"""``bamdp warmup``: compile ahead of time."""

from __future__ import annotations

import argparse
import time

import bamdp
from bamdp.ceilings import ceilings
from bamdp.cli import console
from bamdp.registry import PLANNERS, make_planner, make_prior, make_rewards
from bamdp.runs import Setting, warm_up

KNOWN, LEARNED = "double_loop", "bandit"  # small: what is compiled does not depend on the size


def do(given: argparse.Namespace) -> int:
    """The command."""
    rewards = given.rewards or "known"
    env = bamdp.make_env("maze_door" if "models" in given.prior else KNOWN if rewards == "known" else LEARNED)
    names = given.planners or list(PLANNERS)
    settings = {
        name: Setting(
            env=env.name,
            planner=make_planner(name),
            prior=make_prior(given.prior, env),
            rewards=make_rewards(rewards, env),
            discount=0.95,
            steps=2,
        )
        for name in names
    }
    for name, setting in settings.items():
        begin = time.perf_counter()
        try:
            warm_up(setting)
        except ValueError as error:  # a planner may refuse a belief
            if given.planners:
                raise
            console.note(f"{name}: left out, {error}")
            continue
        console.note(f"{name}: ready after {time.perf_counter() - begin:.1f} s")
    if not given.planners:
        ceilings(env, 0.95, steps=2)
        console.note("solve: ready")
    return 0
