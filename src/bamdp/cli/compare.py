"""``bamdp compare``: several planners in one environment, on the same luck."""

from __future__ import annotations

import argparse
from typing import Any

import bamdp
from bamdp.cli import console, studies


def do(given: argparse.Namespace) -> int:
    """The command."""
    from bamdp.lab import tables
    from bamdp.lab.collect import collect_results
    from bamdp.lab.reading import make_study
    from bamdp.lab.results import comparable_results
    from bamdp.lab.store import Store
    from bamdp.lab.tables import unfinished

    study = make_study(as_study(given))
    with Store(studies.store_path(study, given.store)) as store:
        studies.run(study, store, given)
        with console.compiling():
            found = collect_results(study, store)
        if given.json:
            console.print_json(studies.results_json(found))
        else:
            label = study.environments[0].label
            done = comparable_results(found)
            pairs = tables.against_best(done, label) if len(study.cells) > 1 else ()
            studies.show([*tables.summaries(done, label), *unfinished(found), *pairs])
            studies.tell_notes(found)
    return 0


def as_study(given: argparse.Namespace) -> dict[str, Any]:
    """The arguments as the tables of a study."""
    twice = next((name for name in given.planners if given.planners.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; drop one, or give it other parameters: {twice}:key=value")
    place = {} if given.steps is None else {"steps": given.steps}
    study: dict[str, Any] = {
        "title": f"{bamdp.make_world(given.env).name}: {', '.join(given.planners)}",
        "runs": given.runs,
        "seed": given.seed,
        "prior": given.prior,
        "discount": given.discount,
        "objective": given.objective,
        "environments": {given.env: place},
        "algorithms": {name: {"planner": name} for name in given.planners},
    }
    return study | ({} if given.rewards is None else {"rewards": given.rewards})
