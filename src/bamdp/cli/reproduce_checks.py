"""What ``bamdp reproduce`` is asked for, looked at as a whole: what is wrong with it is said before anything is run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bamdp import _checks

if TYPE_CHECKING:
    from bamdp.lab.papers import Target
    from bamdp.lab.papers.library import Parts

FIGURE3, PAGE = "figure3", "page"
FLAGS = {
    "way": "--as",
    "environments": "--environments",
    "algorithms": "--algorithms",
    "exports": "--from",
    "store": "--store",
    "jobs": "--jobs",
    "cluster": "--cluster",
    "retry_failed": "--retry-failed",
    "json": "--json",
}
RUNNING = ("store", "jobs", "cluster", "retry_failed")


def check(given: argparse.Namespace) -> dict[str, Target]:
    """The targets that are made of studies; raises if anything cannot be done as asked."""
    from bamdp.lab.papers import TARGETS, WAYS

    for name in given.targets:
        _checks.one_of(name, "target", [*TARGETS, FIGURE3, PAGE])
    if given.way is not None:
        _checks.one_of(given.way, "way to reproduce", WAYS)
    if PAGE in given.targets:
        _check_page(given)
    if FIGURE3 in given.targets:
        _check_figure3(given)
    if given.exports:
        _refuse(given, RUNNING, "--from runs nothing")
    return {name: TARGETS[name] for name in given.targets if name in TARGETS}


def parts_of(wanted: dict[str, Target], given: argparse.Namespace) -> dict[str, Parts]:
    """The parts of studies that each target needs; an error names the target that does not have what is asked for."""
    from bamdp.lab.papers import PUBLISHED, parts

    found = {}
    for name, target in wanted.items():
        studies = target.studies[given.way or PUBLISHED]
        try:
            found[name] = parts(studies, given.quick, given.environments, given.algorithms)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def _check_page(given: argparse.Namespace) -> None:
    others = [name for name in given.targets if name != PAGE]
    if others:
        raise ValueError(f"the page is made by itself; ask for {', '.join(others)} in another command")
    if not given.exports:
        raise ValueError("the page is made of exported files alone; say which: --from results/dss2020")
    _refuse(
        given,
        ("way", "environments", "algorithms", "json", *RUNNING),
        "the page is one whole, of runs that are there",
    )
    if given.quick and given.output is None:
        raise ValueError(
            "quick runs are no results to publish; name a copy of the repository with --output to try it"
        )


def _check_figure3(given: argparse.Namespace) -> None:
    from bamdp.figure3 import CONTESTANTS, CONTESTS

    others = [name for name in given.targets if name != FIGURE3]
    if others:
        why = f"{FIGURE3} has contests and agents of its own, so to name some takes another command"
        _refuse(given, ("environments", "algorithms"), why)
    why = f"{FIGURE3} keeps its runs in runs.jsonl, in the folder that --output names, and goes on from them"
    _refuse(given, ("way", "exports", "json", "store", "cluster", "retry_failed"), why)
    for name in given.environments or ():
        _checks.one_of(name, "contest", CONTESTS)
    for name in given.algorithms or ():
        _checks.one_of(name, "contestant", CONTESTANTS)


def _refuse(given: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Options that would be ignored are an error."""
    used = [FLAGS[name] for name in names if getattr(given, name) not in (None, False)]
    if used:
        raise ValueError(f"{why}; drop {', '.join(used)}")
