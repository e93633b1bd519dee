"""Published studies as data, and what of them can be reproduced: ``bamdp reproduce TARGET``.

A target is a table or figure of a paper. To add one: an entry in :data:`TARGETS`, and its study, if it is a new one, as
TOML beside this file. Studies are also known to ``bamdp lab`` by their names, such as ``dss2020/fair``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from bamdp import _checks
from bamdp.lab.papers.beside import beside_table1
from bamdp.lab.reading import parse_study
from bamdp.lab.results import Results
from bamdp.lab.study import Study
from bamdp.lab.tables import Table, choices, matrix

STUDIES = ("dss2020/published", "dss2020/fair", "dss2020/single", "dss2020/ablation")
PUBLISHED, FAIR = WAYS = ("published", "fair")


@dataclass(frozen=True)
class Target:
    """Something that a paper shows, and how it is made."""

    help: str
    studies: Mapping[str, str]  # by way: published or fair
    tables: Callable[[Results], list[Table]]


def _table1(results: Results) -> list[Table]:
    tuned = [choices(results)] if any(sample.phase == "tune" for sample in results.samples) else []
    return [matrix(results), *beside_table1(results), *tuned]


TARGETS: dict[str, Target] = {
    "table1": Target(
        "Total reward of each algorithm in each environment (Grover, Basu & Dimitrakakis 2020).",
        {PUBLISHED: "dss2020/published", FAIR: "dss2020/fair"},
        _table1,
    ),
}


def paper_study(name: str, *, quick: bool = False) -> Study:
    """A study that ships with the package."""
    _checks.one_of(name, "study of a paper", STUDIES)
    source = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse_study(source, quick=quick, path=Path(name))
