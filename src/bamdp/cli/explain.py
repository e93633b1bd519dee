"""``bamdp explain``: one decision as a page or a picture."""

from __future__ import annotations

import argparse

import bamdp
from bamdp import _checks
from bamdp.cli import console, options
from bamdp.cli.waiting import tell_waiting
from bamdp.registry import DEFAULT_PLANNER
from bamdp.settings import make_setting

PLAYED_STEP_BYTES = 500  # about what playback keeps of a step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = "Example: bamdp explain grid10 dss-pi --step 40 --prior sparse:beta=6 --out why.html"
    options.add_env(parser, gym=True)
    options.add_planner(parser, default=DEFAULT_PLANNER)
    options.add_option(parser, "--step", int, "T", "which decision (default: 0, the first)", 0)
    options.add_option(parser, "--out", str, "PATH", ".html or .svg (default: why.html)", "why.html")
    options.add_set(parser)
    options.add_agent(parser, of_planner=True)
    options.add_seed(parser)
    options.add_bins(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Run up to the step, and write the decision."""
    from bamdp.studio.explain import check_format, write_explanation
    from bamdp.studio.playback import Playback

    target = check_format(arguments.out)
    step = _checks.integer(arguments.step, "step", low=0, high=_checks.LARGEST_INTEGER - 1)
    _checks.memory(PLAYED_STEP_BYTES * step, f"a run of {step} steps that can be played back")
    text = options.environment_text(arguments)
    env = bamdp.make_world(text)
    setting = make_setting(
        text,
        arguments.planner,
        steps=max(step + 1, env.horizon),
        world=env,
        **options.setting_arguments(arguments),
    )
    tell_waiting(setting, env, arguments.planner, steps=step + 1)
    run = Playback(setting)
    with console.compiling():
        with console.progress_bar(step, arguments.planner) as progress:
            while run.t < step:
                done = run.advance(step - run.t, seconds=0.1)
                if progress is not None:
                    progress(done)
        write_explanation(target, run, arguments.planner)
    console.note(f"why: {target}")
    return 0
