"""``bamdp studio``: a local web page that shows an agent at work."""

from __future__ import annotations

import argparse

from bamdp import _checks
from bamdp._specs import split_spec
from bamdp.cli import console
from bamdp.cli.run import read_settings
from bamdp.studio.settings import MOST_SEED, Choice


def do(given: argparse.Namespace) -> int:
    """The command."""
    name, written = split_spec(given.planner)
    for key, value in read_settings(given.set).items():
        if key in written:
            raise ValueError(f"{key} is given twice, in {given.planner!r} and with --set; drop one")
        written[key] = value
    spec = f"{name}:{','.join(f'{k}={v}' for k, v in written.items())}" if written else name
    choice = Choice(
        env=given.env,
        planners=(spec,),
        prior=given.prior,
        rewards=given.rewards,
        discount=_checks.discount(given.discount),
        objective=given.objective,
        seed=_checks.integer(given.seed, "seed", low=0, high=MOST_SEED),
        files=frozenset({given.env}),
    )
    choice.settings()  # what is wrong with it is told here and now
    limit = _checks.real(given.limit, "limit", low=0.0, open_low=True)
    port = None if given.port is None else _checks.integer(given.port, "port", low=0, high=65535)
    try:
        from bamdp.studio import server
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the studio needs {error.name}, which is not installed: pip install 'bamdp[web]'"
        ) from None
    app = server.make_app(choice, host=given.host, step_limit=limit)
    socket = server.listen(given.host, port)
    if given.host not in server.LOOPBACK:
        console.note(
            f"warning: listening on {given.host}: whoever can reach this machine over the network can use the studio"
        )
    shown = f"[{given.host}]" if ":" in given.host else given.host
    address = f"http://{shown}:{socket.getsockname()[1]}/"
    print(f"bamdp studio: {address}", flush=True)
    console.note("Ctrl-C ends it.")
    if given.open:
        import webbrowser

        webbrowser.open(address)
    server.run_server(app, socket)
    return 0
