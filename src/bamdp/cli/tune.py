"""``bamdp tune``: the parameters of a planner in one environment, by grid or by successive halving."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from bamdp._specs import parse_spec, split_commas
from bamdp.cli import console, options, studies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = (
        "Example: bamdp tune grid10 dss-pi --grid n_policies=2,4 prior.beta=2,4,8 discount=.95,.99"
    )
    options.add_env(parser, gym=True)
    options.add_steps(parser)
    parser.add_argument("planner", metavar="PLANNER", help="name or name:key=value,...")
    parser.add_argument(
        "--grid",
        metavar="KEY=A,B",
        nargs="+",
        action="extend",
        default=[],
        help="values to choose from: of the planner's parameters, prior, prior.beta, discount",
    )
    help = "grid, all of it; or halving, which is successive halving (default: grid)"
    options.add_option(parser, "--method", str, "NAME", help, "grid")
    options.add_runs(parser, help="tuning runs, at most")
    help = "draw so many of the grid (default: all)"
    options.add_option(parser, "--configurations", int, "N", help)
    help = "halving: processor seconds; what needs more than two even shares of it for a run is excluded"
    options.add_option(parser, "--budget", float, "S", help)
    help = "halving: steps of a run before the last round"
    options.add_option(parser, "--screening", int, "T", help)
    help = "runs of the chosen configuration, with other seeds (default: 0)"
    options.add_option(parser, "--evaluate", int, "N", help, 0)
    options.add_agent(parser)
    parser.set_defaults(prior=None)  # the default is not fixed if its parameters are to be chosen
    options.add_seed(parser)
    options.add_study_running(parser)
    options.add_store(parser)
    options.add_bins(parser)
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Tune, and print the configurations and the chosen one, or JSON."""
    from bamdp.experiments import TuningResult, tuning_study

    written = options.read_assignments(arguments.grid, "--grid", "key=value,value", "n_steps=25,50")
    tuning_options = ("method", "runs", "configurations", "budget", "screening")
    study = tuning_study(
        options.environment_text(arguments),
        arguments.planner,
        {key: split_commas(values) for key, values in written.items()},
        evaluate=arguments.evaluate,
        prior=arguments.prior,
        tuning={name: getattr(arguments, name) for name in tuning_options},
        **studies.study_arguments(arguments),
    )
    with studies.run_and_collect(study, arguments) as results:
        chosen = next((dict(sample.configuration) for sample in results.samples if sample.chosen), None)
        if arguments.json:
            console.print_json({**studies.results_json(results), "chosen": chosen})
            return 0
        studies.show(TuningResult(study, results).tables)
        studies.tell_notes(results)
        if chosen is not None:
            console.note(f"chosen: {_run_command_line(arguments, chosen)}")
    return 0


def _run_command_line(arguments: argparse.Namespace, chosen: dict[str, Any]) -> str:
    """Return the command that runs the chosen configuration."""
    from bamdp.lab.search_space import planner_parameters, prior_spec

    words = ["bamdp", "run", options.environment_text(arguments), parse_spec(arguments.planner).name]
    parameters = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words += ["--set", *parameters] if parameters else []
    words += ["--prior", str(prior_spec(chosen)), "--discount", str(chosen["discount"])]
    words += [] if arguments.steps is None else ["--steps", str(arguments.steps)]
    words += [] if arguments.rewards is None else ["--rewards", arguments.rewards]
    words += [] if arguments.objective == "episode" else ["--objective", arguments.objective]
    return shlex.join(words)
