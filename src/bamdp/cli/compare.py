"""``bamdp compare``: several planners in one environment, on common random numbers."""

from __future__ import annotations

import argparse

from bamdp.cli import console, options, studies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = "Example: bamdp compare grid5 dss-pi:n_steps=25 thompson bamcp --runs 30 --jobs 2"
    options.add_env(parser, gym=True)
    options.add_steps(parser)
    parser.add_argument("planners", metavar="PLANNER", nargs="+", help="name or name:key=value,...")
    options.add_agent(parser)
    options.add_seed(parser)
    options.add_runs(parser)
    options.add_study_running(parser)
    options.add_store(parser)
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the comparison, and print tables or JSON."""
    from bamdp.lab import tables
    from bamdp.lab.results import comparable_results
    from bamdp.lab.tables import unfinished

    planners = arguments.planners
    twice = next((name for name in planners if planners.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; drop one, or give it other parameters: {twice}:key=value")
    algorithms = {name: {"planner": name} for name in planners}
    study = studies.study_from_arguments(arguments, algorithms, runs=arguments.runs, prior=arguments.prior)
    with studies.run_and_collect(study, arguments) as results:
        if arguments.json:
            console.print_json(studies.results_json(results))
            return 0
        label = study.environments[0].label
        complete = comparable_results(results)
        pairs = tables.against_best(complete, label) if len(study.cells) > 1 else ()
        studies.show([*tables.summaries(complete, label), *unfinished(results), *pairs])
        studies.tell_notes(results)
    return 0
