"""Published studies as data, and what of them can be reproduced: ``bamdp reproduce TARGET``.

A target is a table or figure of a paper. To add one: an entry in :data:`TARGETS`, and its study, if it is a new one, as
TOML beside this file. Studies are also known to ``bamdp lab`` by their names, such as ``dss2020/fair``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bamdp import _checks
from bamdp.lab.comparisons import groups
from bamdp.lab.figures import MOVING_AVERAGE_CAPTION, Picture, Pictures
from bamdp.lab.papers.ablation import ablation_pictures, ablation_tables, trend_tables
from bamdp.lab.papers.deep_sea import deep_sea_pictures, deep_sea_tables
from bamdp.lab.papers.paper_tables import beside_table1, beside_table2
from bamdp.lab.reading import STUDIES, paper_study
from bamdp.lab.results import TUNE, Results, complete_results
from bamdp.lab.study import Study
from bamdp.lab.tables.evaluation import matrix, overall, processor_times, unfinished
from bamdp.lab.tables.table import ResultTable
from bamdp.lab.tables.tuning import choices

__all__ = ["FAIR", "PUBLISHED", "STUDIES", "TARGETS", "WAYS", "Target", "paper_study", "study_parts"]

PUBLISHED, FAIR = WAYS = ("published", "fair")
FIGURE2_PANELS = ("grid5", "grid10", "double_loop", "maze", "chain")  # in the paper's order
TABLE1_STUDIES = {PUBLISHED: ("dss2020/published",), FAIR: ("dss2020/fair", "dss2020/single")}


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper, and how it is made."""

    help: str
    studies: Mapping[str, tuple[str, ...]]  # by way: published or fair
    tables: Callable[[Results], list[ResultTable]]
    pictures: Callable[[Results], list[Picture]] = lambda results: []


def _table1(results: Results) -> list[ResultTable]:
    done = complete_results(results)
    score = overall(done)
    tuned = [choices(results)] if results.select(TUNE) else []
    return [matrix(done), *([score] if score else []), *beside_table1(done), *unfinished(results), *tuned]


def _table2(results: Results) -> list[ResultTable]:
    done = complete_results(results)
    return [processor_times(done), *beside_table2(done), *unfinished(results)]


def _figure2(results: Results) -> list[Picture]:
    shown = [group for group in groups(complete_results(results)) if group.leading]
    # others come last
    shown.sort(key=lambda group: (*FIGURE2_PANELS, group.environment).index(group.environment))
    return [Pictures(results).learning("figure2", MOVING_AVERAGE_CAPTION, shown)] if shown else []


def _figure3(results: Results) -> list[ResultTable]:
    return [*deep_sea_tables(complete_results(results)), *unfinished(results)]


def _ablation(results: Results) -> list[ResultTable]:
    return [*ablation_tables(results), *trend_tables(results), *unfinished(results)]


TARGETS: dict[str, Target] = {
    "table1": Target("total reward of each algorithm in each environment", TABLE1_STUDIES, _table1),
    "table2": Target("processor time per episode and per step", TABLE1_STUDIES, _table2),
    "figure2": Target("moving-average reward on a log time axis", TABLE1_STUDIES, unfinished, _figure2),
    "figure3": Target(
        "bad episodes in deep sea, with Bootstrapped DQN",
        dict.fromkeys(WAYS, ("dss2020/figure3",)),
        _figure3,
        lambda results: deep_sea_pictures(complete_results(results)),
    ),
    "ablation": Target(
        "DSS against N, M, K, H, leaf value, prior and discount; not in the paper",
        dict.fromkeys(WAYS, ("dss2020/ablation",)),
        _ablation,
        ablation_pictures,
    ),
}


class StudyParts(NamedTuple):
    """The parts of several studies that have certain environments and algorithms."""

    studies: dict[str, Study]  # by name
    # studies that choose for all environments together, where only some are asked for
    left_out: tuple[str, ...]


def study_parts(
    names: Sequence[str], quick: bool, environments: list[str] | None, algorithms: list[str] | None
) -> StudyParts:
    """Return the parts of these studies with the environments and algorithms asked for (None: all of them).

    Studies without any of the algorithms are not in the result. A label that no study has is an error.
    """
    studies = {name: paper_study(name, quick=quick) for name in names}
    env_labels = dict.fromkeys(e.label for study in studies.values() for e in study.environments)
    known = dict.fromkeys(cell.algorithm for study in studies.values() for cell in study.cells)
    for label in environments or ():
        _checks.one_of(label, "environment of the study", env_labels)
    for label in algorithms or ():
        _checks.one_of(label, "algorithm of the study", known)
    if environments is not None and set(environments) == set(env_labels):
        environments = None
    selected, left_out = {}, []
    for name, study in studies.items():
        labels = {cell.algorithm for cell in study.cells}
        kept = None if algorithms is None else [label for label in algorithms if label in labels]
        if kept == []:
            continue
        if environments is not None and study.tuning is not None and study.tuning.across:
            left_out.append(name)
        elif not study.select(environments, kept):
            raise ValueError("none of these algorithms is run in these environments")
        else:
            selected[name] = study.only(environments, kept)
    if not selected:
        raise ValueError("these algorithms choose for all environments together; drop --environments")
    return StudyParts(selected, tuple(left_out))
