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
    options.add_bins(parser)
    options.add_figure(parser)
    options.add_json(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the comparison, and print tables or JSON."""
    from bamdp.experiments import ComparisonResult, comparison_study

    figure = options.figure_path(arguments)
    study = comparison_study(
        options.environment_text(arguments),
        arguments.planners,
        runs=arguments.runs,
        prior=arguments.prior,
        **studies.study_arguments(arguments),
    )
    with studies.run_and_collect(study, arguments) as results:
        if figure is not None:
            options.draw_figure(figure, ComparisonResult(study, results).plot)
        if arguments.json:
            console.print_json(studies.results_json(results))
            return 0
        studies.show(ComparisonResult(study, results).tables)
        studies.tell_notes(results)
    return 0
