"""Published studies as data, and what of them can be reproduced: ``bamdp reproduce TARGET``.

A target is a table or figure of a paper. To add one: an entry in :data:`TARGETS`, and its study, if it is a new one, as
TOML beside this file. Studies are also known to ``bamdp lab`` by their names, such as ``dss2020/fair``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bamdp.lab.comparisons import groups
from bamdp.lab.figures import learning_curves, looks
from bamdp.lab.papers.beside import beside_table1, beside_table2
from bamdp.lab.papers.library import STUDIES, paper_study, parts
from bamdp.lab.papers.sweep_figures import ablation_pictures
from bamdp.lab.papers.sweeps import ablation_tables
from bamdp.lab.papers.trends import trend_tables
from bamdp.lab.pictures import BANDS_CAPTION, MOVING_AVERAGE_CAPTION, Picture
from bamdp.lab.results import Results, complete_results
from bamdp.lab.tables import ResultTable, choices, matrix, overall, times, unfinished

__all__ = ["FAIR", "PUBLISHED", "STUDIES", "TARGETS", "WAYS", "Target", "paper_study", "parts"]

PUBLISHED, FAIR = WAYS = ("published", "fair")
ORDER = ("grid5", "grid10", "double_loop", "maze", "chain")  # of the panels in Figure 2


@dataclass(frozen=True)
class Target:
    """Something that a paper shows, and how it is made."""

    help: str
    studies: Mapping[str, tuple[str, ...]]  # by way: published or fair
    tables: Callable[[Results], list[ResultTable]]
    pictures: Callable[[Results], list[Picture]] = lambda results: []


def _table1(results: Results) -> list[ResultTable]:
    done = complete_results(results)
    tuned = [choices(results)] if any(sample.phase == "tune" for sample in results.samples) else []
    score = overall(done)
    return [
        matrix(done),
        *([score] if score else []),
        *beside_table1(done),
        *unfinished(results),
        *tuned,
    ]


def _table2(results: Results) -> list[ResultTable]:
    done = complete_results(results)
    return [times(done), *beside_table2(done), *unfinished(results)]


def _figure2(results: Results) -> list[Picture]:
    done = complete_results(results)
    shown = sorted(
        (group for group in groups(done) if any(sample.runs for sample in group.samples)),
        key=lambda group: ORDER.index(group.environment) if group.environment in ORDER else len(ORDER),
    )
    looked = looks(results.algorithms)
    draw = lambda: learning_curves(shown, looked, warning=results.warning)
    return [Picture("figure2", f"{MOVING_AVERAGE_CAPTION} {BANDS_CAPTION}", draw)] if shown else []


TABLE1 = {PUBLISHED: ("dss2020/published",), FAIR: ("dss2020/fair", "dss2020/single")}
TARGETS: dict[str, Target] = {
    "table1": Target("total reward of each algorithm in each environment", TABLE1, _table1),
    "table2": Target("processor time of an episode and of a step", TABLE1, _table2),
    "figure2": Target("moving-average reward on a log time axis", TABLE1, unfinished, _figure2),
    "ablation": Target(
        "DSS against N, M, K, H, leaf value, prior and discount; not in the paper",
        dict.fromkeys(WAYS, ("dss2020/ablation",)),
        lambda results: [*ablation_tables(results), *trend_tables(results), *unfinished(results)],
        ablation_pictures,
    ),
}
