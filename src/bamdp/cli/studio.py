"""Commands ``bamdp studio``, a local web page, and ``bamdp explain``, which writes one decision to a file."""

from __future__ import annotations

import argparse
import webbrowser

import bamdp
from bamdp import _checks
from bamdp.cli import console, options
from bamdp.registry import DEFAULT_PLANNER
from bamdp.studio.settings import FIRST, Choice, Limits

USUAL = Limits()


def studio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp studio``."""
    parser.epilog = "Example: bamdp studio grid10 dss-pi --set n_steps=50 --prior sparse:beta=6"
    options.add(parser, "env", default=FIRST.env)
    options.add(parser, "planner", default=FIRST.planners[0])
    options.add(parser, "--set", *options.AGENT, "--seed", "--bins")
    for flag, kind, metavar, help, default in (
        ("--host", str, "ADDRESS", "where to listen (default: this machine only)", "127.0.0.1"),
        ("--port", int, "N", "default: 8137, or where that is taken a free one", None),
        ("--limit", float, "SECONDS", "for a single decision (default: %(default)g)", USUAL.seconds),
        ("--max-states", int, "N", "of an environment (default: %(default)s)", USUAL.states),
    ):
        options.add_option(parser, flag, kind, metavar, help, default)
    parser.add_argument("--open", action="store_true", help="open the page in the web browser")


def studio_command(arguments: argparse.Namespace) -> int:
    """Check the initial form, and serve the page until Ctrl-C."""
    limits = Limits(arguments.max_states, arguments.limit)
    planner = options.planner_text(arguments, arguments.planner)
    run = options.values(arguments, *options.RUN_VALUES)
    first = Choice(options.environment_text(arguments), (planner,), **run)
    first.settings(limits)  # report errors before the server starts
    port = None if arguments.port is None else _checks.integer(arguments.port, "port", low=0, high=65535)
    try:
        from bamdp.studio import server
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the studio needs {error.name}, which is not installed; install it with: pip install fastapi uvicorn"
        ) from None
    host = arguments.host.strip() or "127.0.0.1"
    socket = server.listen(host, port)
    if host not in server.LOOPBACK:
        console.note(f"warning: listening on {host}: everyone in this network can use the studio")
    address = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}/"
    print(f"bamdp studio: {address}", flush=True)
    console.note("Ctrl-C ends it.")
    if arguments.open:
        webbrowser.open(address)
    server.make_server(server.make_app(first, host=host, limits=limits)).run(sockets=[socket])
    return 0


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp explain``."""
    parser.epilog = "Example: bamdp explain grid10 dss-pi --step 40 --prior sparse:beta=6 --figure why.html"
    options.add(parser, "env")
    options.add(parser, "planner", default=DEFAULT_PLANNER)
    options.add_option(parser, "--step", int, "T", "which decision (default: 0, the first)", 0)
    options.add(parser, "--figure", default="why.html", help="a .html page or a .svg (default: %(default)s)")
    options.add(parser, "--set", *options.AGENT, "--seed", "--bins")


def explain_command(arguments: argparse.Namespace) -> int:
    """Run the agent up to the given step, and write its decision."""
    from bamdp.studio.explain import FORMATS, write_explanation
    from bamdp.studio.playback import Playback

    target = console.check_picture_path(arguments.figure, FORMATS)
    step = _checks.integer(arguments.step, "step", low=0, high=_checks.LARGEST_INTEGER - 1)
    env = bamdp.make_world(options.environment_text(arguments))
    setting = options.read_setting(arguments, env, max(step + 1, env.horizon), arguments.planner)
    console.announce(setting, env, arguments.planner, step + 1)
    run = Playback(setting)
    with console.compiling(), console.progress_bar(step, arguments.planner) as progress:
        while run.t < step:
            run.advance()
            progress(1)
        write_explanation(target, run)
    console.note(f"why: {target}")
    return 0
