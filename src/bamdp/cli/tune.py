"""``bamdp tune``: the parameters of a planner in one environment, by grid or by successive halving."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from typing import Any

from bamdp._specs import parse_spec, split_commas
from bamdp.cli import console, options, studies
from bamdp.registry import DEFAULT_PRIOR

MOST_ROWS = 20  # configurations in the table


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
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Tune, and print the configurations and the chosen one, or JSON."""
    from bamdp.lab import tables

    study = studies.study_from_arguments(arguments, **_study_tables(arguments))
    if len(study.cells[0].configurations) < 2:
        raise ValueError("there is nothing to choose; give several values, such as --grid n_steps=25,50,100")
    with studies.run_and_collect(study, arguments) as results:
        chosen = next((dict(sample.configuration) for sample in results.samples if sample.chosen), None)
        if arguments.json:
            console.print_json({**studies.results_json(results), "chosen": chosen})
            return 0
        label = study.environments[0].label
        tried = tables.tried_configurations(results, label, study.cells[0].algorithm)
        if len(tried.rows) > MOST_ROWS:
            more = f"{len(tried.rows) - MOST_ROWS} more are not shown; --json has all."
            tried = dataclasses.replace(tried, rows=tried.rows[:MOST_ROWS], notes=(*tried.notes, more))
        studies.show([tried, *(tables.summaries(results, label) if study.runs else ())])
        studies.tell_notes(results)
        if chosen is not None:
            console.note(f"chosen: {_run_command_line(arguments, chosen)}")
    return 0


def _study_tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the tables of the study that are particular to tuning."""
    written = options.read_assignments(arguments.grid, "--grid", "key=value,value", "n_steps=25,50")
    space = {key: split_commas(values) for key, values in written.items()}
    tunes_prior = any(key.startswith("prior.") for key in space)
    tuning_options = ("method", "runs", "configurations", "budget", "screening")
    tuning = {name: getattr(arguments, name) for name in tuning_options}
    return {
        "runs": arguments.evaluate,
        "prior": arguments.prior or ("sparse" if tunes_prior else DEFAULT_PRIOR),
        "algorithms": {arguments.planner: {"planner": arguments.planner, **space}},
        "tuning": {name: value for name, value in tuning.items() if value is not None},
    }


def _run_command_line(arguments: argparse.Namespace, chosen: dict[str, Any]) -> str:
    """Return the command that runs the chosen configuration."""
    from bamdp.lab.search_space import planner_parameters, prior_text

    words = ["bamdp", "run", arguments.env, parse_spec(arguments.planner).name]
    parameters = [f"{key}={value}" for key, value in planner_parameters(chosen).items()]
    words += ["--set", *parameters] if parameters else []
    words += ["--prior", prior_text(chosen), "--discount", repr(chosen["discount"])]
    words += [] if arguments.steps is None else ["--steps", str(arguments.steps)]
    words += [] if arguments.rewards is None else ["--rewards", arguments.rewards]
    words += [] if arguments.objective == "episode" else ["--objective", arguments.objective]
    return shlex.join(words)
