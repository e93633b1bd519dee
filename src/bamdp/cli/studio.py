"""An agent at work: ``bamdp studio``, a local web page, and ``bamdp explain``, one decision as a page or a picture."""

from __future__ import annotations

import argparse

import bamdp
from bamdp import _checks
from bamdp._specs import parse_spec
from bamdp.cli import console, options
from bamdp.registry import DEFAULT_PLANNER, DEFAULT_PRIOR
from bamdp.studio.settings import Limits

PLAYED_STEP_BYTES = 500  # about what playback keeps of a step
LIMITS = {  # fields of Limits: the option, the metavar and the help
    "seconds": ("--limit", "SECONDS", "for a single decision"),
    "memory": ("--memory", "GB", "that each tab's process may have"),
    "sessions": ("--max-sessions", "N", "tabs at a time, each with a process"),
    "states": ("--max-states", "N", "of an environment"),
    "actions": ("--max-actions", "N", "of an environment"),
    "work": ("--max-work", "N", "simulated steps of a single decision"),
}


def studio_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp studio``."""
    parser.epilog = "Example: bamdp studio grid10 dss-pi --set n_steps=50 --prior sparse:beta=6"
    options.add(parser, "env", default="grid10")
    options.add(parser, "planner", default="dss-pi")
    options.add(parser, "--set", "--rewards", "--objective")
    options.add(parser, "--prior", default=DEFAULT_PRIOR)
    options.add(
        parser, "--discount", type=float, default=0.95, help="for planning, in [0, 1) (default: %(default)s)"
    )
    options.add(parser, "--seed", "--bins")
    help = "where to listen (default: 127.0.0.1, this machine only)"
    options.add_option(parser, "--host", str, "ADDRESS", help, "127.0.0.1")
    options.add_option(parser, "--port", int, "N", "default: the first free one from 8137 on")
    for field, (flag, metavar, help) in LIMITS.items():
        usual = getattr(Limits(), field)
        help = f"{help} (default: {usual:g})"
        parser.add_argument(flag, dest=field, type=type(usual), metavar=metavar, help=help, default=usual)
    parser.add_argument("--open", action="store_true", help="open the page in the web browser")


def studio_command(arguments: argparse.Namespace) -> int:
    """Check the form that the page opens with, and serve until Ctrl-C."""
    from bamdp.studio.settings import Choice

    if not arguments.host.strip():
        raise ValueError(
            "--host is empty, which would listen on every address; leave it out for this machine only, or write the "
            "address to listen on"
        )
    planner = parse_spec(arguments.planner).extended(options.read_assignments(arguments.set), "with --set")
    env = options.environment_text(arguments)
    choice = Choice(
        env=env,
        planners=(str(planner),),  # as the page's form shows it
        files=frozenset({env}),
        **options.values(arguments, *options.RUN_VALUES),
    )
    limits = Limits(**options.values(arguments, *LIMITS))
    choice.settings(limits)  # an error is told here, before anything is served
    port = None if arguments.port is None else _checks.integer(arguments.port, "port", low=0, high=65535)
    try:
        from bamdp.studio import server
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the studio needs {error.name}, which is not installed; install it with: {_checks.install_command('web')}"
        ) from None
    app = server.make_app(choice, host=arguments.host, limits=limits)
    socket = server.listen(arguments.host, port)
    if arguments.host not in server.LOOPBACK:
        console.note(
            f"warning: listening on {arguments.host}: whoever can reach this machine over the network can use the "
            "studio"
        )
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    address = f"http://{host}:{socket.getsockname()[1]}/"
    print(f"bamdp studio: {address}", flush=True)
    console.note("Ctrl-C ends it.")
    if arguments.open:
        import webbrowser

        webbrowser.open(address)
    server.run_server(app, socket)
    return 0


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bamdp explain``."""
    parser.epilog = "Example: bamdp explain grid10 dss-pi --step 40 --prior sparse:beta=6 --out why.html"
    options.add(parser, "env")
    options.add(parser, "planner", default=DEFAULT_PLANNER)
    options.add_option(parser, "--step", int, "T", "which decision (default: 0, the first)", 0)
    options.add_option(parser, "--out", str, "PATH", ".html or .svg (default: why.html)", "why.html")
    options.add(parser, "--set")
    options.add(parser, *options.AGENT)
    options.add(parser, "--seed", "--bins")


def explain_command(arguments: argparse.Namespace) -> int:
    """Run up to the step, and write the decision."""
    from bamdp.studio.explain import check_format, write_explanation
    from bamdp.studio.playback import Playback

    target = check_format(arguments.out)
    step = _checks.integer(arguments.step, "step", low=0, high=_checks.LARGEST_INTEGER - 1)
    _checks.memory(PLAYED_STEP_BYTES * step, f"a run of {step} steps that can be played back")
    env = bamdp.make_world(options.environment_text(arguments))
    setting = options.read_setting(arguments, env, max(step + 1, env.horizon))
    console.announce(setting, env, arguments.planner, step + 1)
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
