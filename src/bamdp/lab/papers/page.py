"""The page on the reproduction, ``docs/reproduction.md``, and the README's part of it, made of exported files alone.

Every number of these studies stands between marks (:mod:`bamdp.lab.papers.marks`) and is written by :func:`sections`;
the rest is prose, with numbers of the paper and some that were measured before with other programs. Figures go to
``docs/images``. What has not been run is said to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bamdp.lab.figures import save_figure
from bamdp.lab.papers import TARGETS, sweep_words, words
from bamdp.lab.papers.beside import beside_table1, beside_table2
from bamdp.lab.papers.evidence import Evidence, gathered, tuned
from bamdp.lab.papers.headlines import headlines
from bamdp.lab.papers.library import STUDIES
from bamdp.lab.papers.marks import fill
from bamdp.lab.papers.priors import prior_table
from bamdp.lab.papers.sweeps import ablation_tables, full
from bamdp.lab.papers.trends import trend_tables
from bamdp.lab.papers.verdicts import choice_gains, reward_targets, speed_targets
from bamdp.lab.pictures import Picture
from bamdp.lab.results import EVALUATE, Results
from bamdp.lab.tables import (
    ResultTable,
    choices,
    matrix,
    overall,
    summaries,
    times,
    to_markdown,
    tuning_times,
    unfinished,
)
from bamdp.lab.tables.table import number_cell, text_cell

PAGE, README, IMAGES = Path("docs/reproduction.md"), Path("README.md"), Path("docs/images")
PREFIX = "reproduction-"
NOT_YET = "*Not run yet.*"
MISSING = "*Nothing: every row that was asked for is complete.*"
FAIR = ("dss2020/fair", "dss2020/single")
SWEEPS_SAY = (sweep_words.more, sweep_words.hurting, sweep_words.equal_cost, sweep_words.beliefs)


def publish(exports: Sequence[str | Path], root: str | Path = ".", *, quick: bool = False) -> list[Path]:
    """Write the page, the README's part and the figures; returns what was written."""
    folder = Path(root)
    pages = [folder / PAGE, folder / README]
    for path in pages:
        if not path.exists():
            raise FileNotFoundError(
                2, "run it in the repository's root, or name that with --output", str(path)
            )
    with gathered(exports, quick=quick) as evidence:
        drawn = draw(evidence, folder / IMAGES)
        found = sections(evidence, {path.stem.removeprefix(PREFIX) for path in drawn})
    for path in pages:
        path.write_text(fill(path.read_text(encoding="utf-8"), found), encoding="utf-8")
    return [*pages, *drawn]


def sections(evidence: Evidence, drawn: Iterable[str]) -> dict[str, str]:
    """All parts of the pages, by name; ``drawn`` are the figures that there are."""
    there = set(drawn)
    return {
        "summary": _list(headlines(evidence)) or NOT_YET,
        "state": _state(evidence),
        "targets": _targets(evidence),
        "published": _of(evidence.published, _published, there),
        "priors": _of(evidence.whole("dss2020/fair"), _priors),
        "unfinished": _unfinished(evidence),
        "fair": _of(evidence.fair, _fair, there),
        "choices": _of(evidence.whole(*FAIR), _choices),
        "gains": _table_or(choice_gains(evidence)),
        "ceiling": _join(*words.ceiling(evidence.fair or evidence.published)) or NOT_YET,
        "times": _of(evidence.published, _times),
        "ablation": _of(evidence.ablation, _ablation, there),
        "readme": _of(evidence.fair, _readme, there),
    }


def pictures(evidence: Evidence) -> list[tuple[str, Picture]]:
    """The page's figures, with the names of their files."""
    held = []
    for way, results in (("published", evidence.published), ("fair", evidence.fair)):
        if results is not None:
            held += [(f"{picture.stem}-{way}", picture) for picture in TARGETS["figure2"].pictures(results)]
    if evidence.ablation is not None:
        held += [(picture.stem, picture) for picture in TARGETS["ablation"].pictures(evidence.ablation)]
    return held


def draw(evidence: Evidence, folder: Path) -> list[Path]:
    """As PNG, which is what pages show."""
    return [
        path
        for stem, picture in pictures(evidence)
        for path in save_figure(picture.draw(), folder / f"{PREFIX}{stem}", ["png"])
    ]


def _of(results: Results | None, write: Callable[..., str], *rest: object) -> str:
    return NOT_YET if results is None else write(results, *rest)


def _state(evidence: Evidence) -> str:
    rows = []
    for name in STUDIES:
        results = evidence.studies.get(name)
        if results is None:
            rows.append((text_cell(name), text_cell("not run yet"), text_cell("–")))
            continue
        done = sum(_finished(results, *cell) for cell in results.cells)
        runs = _different_runs(results)
        cells = number_cell(done, f"{done} of {len(results.cells)}")
        rows.append((text_cell(name), cells, number_cell(runs, str(runs))))
    table = ResultTable("state", "What has been run", ("study", "complete cells", "runs"), tuple(rows), "lrr")
    warned = any(results.quick for results in evidence.studies.values())
    warning = "**Quick runs: these numbers are not results.**" if warned else ""
    return _join(warning, to_markdown(table), evidence.source)


def _different_runs(results: Results) -> int:
    """How many: sweeps have some in common, which count once."""
    found: dict[tuple[object, ...], set[int]] = {}
    for s in results.samples:
        place = (s.environment, s.phase, s.horizon, repr(full(s.configuration)))
        found.setdefault(place, set()).update(s.replicates.tolist())
    return sum(map(len, found.values()))


def _targets(evidence: Evidence) -> str:
    return _join(
        to_markdown(reward_targets(evidence)),
        _list(words.missed(evidence)),
        to_markdown(speed_targets(evidence)),
        _list(words.too_slow(evidence)),
    )


def _finished(results: Results, environment: str, algorithm: str) -> bool:
    found = results.select(EVALUATE, environment, algorithm)
    waits = (environment, algorithm) in results.waiting
    return not waits and bool(found) and all(sample.complete for sample in found)


def _published(results: Results, drawn: set[str]) -> str:
    return _join(
        _list(words.agreement(results)),
        *(to_markdown(table) for table in beside_table1(results)),
        _folded("All rows, with those that the paper does not have", [matrix(results)]),
        _figure(
            drawn, "figure2-published", "Moving-average reward of all algorithms with Appendix C's parameters"
        ),
        _notes(results),
    )


def _unfinished(evidence: Evidence) -> str:
    whole = {name: evidence.studies.get(name) for name in STUDIES}
    parts = []
    for name, results in whole.items():
        held = [to_markdown(table) for table in unfinished(results)] if results is not None else []
        if held:
            parts.append(_join(f"In `{name}`:", *held))
    if any(results is None for results in whole.values()):
        names = ", ".join(f"`{name}`" for name, results in whole.items() if results is None)
        parts.append(f"Not run at all yet: {names}.")
    return _join(*parts) or MISSING


def _fair(results: Results, drawn: set[str]) -> str:
    score = overall(results)
    detail = [table for name in results.environments for table in summaries(results, name)]
    return _join(
        to_markdown(matrix(results)),
        _list([*words.winners(results), *words.stuck(results), *words.ranking(results)]),
        to_markdown(score) if score else "",
        _folded("Intervals, shares of the optimum and time, environment by environment", detail),
        _figure(
            drawn, "figure2-fair", "Moving-average reward of all algorithms with what the protocol chose"
        ),
        _notes(results),
    )


def _choices(results: Results) -> str:
    if not tuned(results):
        return NOT_YET
    return _join(
        _list([*words.choices_of_priors(results), *words.choices_of_shapes(results)]),
        _folded("Everything that was chosen", [choices(results)]),
        _folded("Processor time that choosing took", [tuning_times(results)]),
    )


def _priors(results: Results) -> str:
    return _table_or(prior_table(results))


def _times(results: Results) -> str:
    beside = [to_markdown(table) for table in beside_table2(results)]
    return _join(*beside) or _join(to_markdown(times(results)))


def _ablation(results: Results, drawn: set[str]) -> str:
    return _join(
        _list([line for say in SWEEPS_SAY for line in say(results)]),
        *(to_markdown(table) for table in trend_tables(results)),
        _figure(
            drawn,
            "ablation",
            "Total reward of DSS-PI against processor time of a step, one line for each parameter",
        ),
        _figure(
            drawn,
            "ablation_beliefs",
            "Share of the optimum against the prior's sparsity, the discount and the number of samples",
        ),
        _folded("Every configuration", ablation_tables(results)),
        _notes(results),
    )


def _readme(results: Results, drawn: set[str]) -> str:
    figure = _figure(drawn, "figure2-fair", "Moving-average reward of each algorithm, world by world", README)
    return _join(to_markdown(matrix(results)), _list(words.ranking(results)), figure)


def _notes(results: Results) -> str:
    """What the studies themselves say: how they were run, and what was excluded."""
    return _join("How it was run:", _list(results.notes)) if results.notes else ""


def _figure(drawn: set[str], stem: str, description: str, page: Path = PAGE) -> str:
    if stem not in drawn:
        return ""
    return f"![{description}]({'docs/' if page == README else ''}images/{PREFIX}{stem}.png)"


def _folded(summary: str, shown: Iterable[ResultTable]) -> str:
    """What is shown when asked for; Markdown inside works on GitHub and in the site."""
    inner = _join(*map(to_markdown, shown))
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{inner}\n\n</details>'


def _table_or(table: ResultTable | None) -> str:
    return NOT_YET if table is None else to_markdown(table)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _join(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
