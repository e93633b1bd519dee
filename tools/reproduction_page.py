"""Write the generated tables and figures of docs/reproduction.md and docs/deep-sea.md.

    python tools/reproduction_page.py [--from results/dss2020] [--root .]

They are made of exported runs alone. A table stands between marks, which a reader of the page does not see, and only
what is between them is replaced; the prose around them is written by people::

    <!-- begin: fair -->
    ... replaced each time ...
    <!-- end: fair -->

Figures go to docs/images.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bamdp.lab.collect import collect_results
from bamdp.lab.comparisons import groups
from bamdp.lab.exports import export_name, open_exports
from bamdp.lab.figures import Picture, save_figure
from bamdp.lab.papers import TARGETS, paper_study
from bamdp.lab.papers.ablation import ablation_tables, full_configuration, trend_tables
from bamdp.lab.papers.deep_sea import deep_sea_tables
from bamdp.lab.papers.paper_tables import (
    AGREES,
    beside_table1,
    beside_table2,
    of_paper_length,
    paper_entry,
    paper_steps,
    paper_verdict,
    speedup,
)
from bamdp.lab.results import EVALUATE, TUNE, Results, Sample, complete_results, merge_results
from bamdp.lab.store import Store
from bamdp.lab.tables.evaluation import (
    ABOUT_EQUAL,
    NOT_DECIDED,
    against_best,
    matrix,
    overall,
    summaries,
    unfinished,
)
from bamdp.lab.tables.table import (
    Entry,
    ResultTable,
    TableCell,
    decimals,
    make_table,
    mean_cell,
    number_cell,
    to_markdown,
    value_interval_cell,
)
from bamdp.lab.tables.tuning import choices
from bamdp.statistics import standard_error, summarise

STUDIES = tuple(
    f"dss2020/{name}" for name in ("published", "stated", "fair", "single", "ablation", "figure3")
)
PAGES = ("docs/reproduction.md", "docs/deep-sea.md")
IMAGES = "docs/images"
MARK = re.compile(r"<!-- (begin|end): ([\w-]+) -->")
REWARD_TARGETS = {"chain": 370.0, "double_loop": 387.0, "grid5": 79.0, "grid10": 55.0, "maze": 1200.0}
SPEEDUP_TARGET = 10.0
DSS = ("dss-pi", "dss-rtdp")
RIVALS = ("bamcp", "bfs3", "sboss")  # of the paper's Table 1
COMMON_PRIORS = ((-math.inf, "flat"), (2, "sparse, β = 2"), (8, "sparse, β = 8"))  # that all were run with
FIGURES = {
    "reproduction-figure2-published": "Moving-average reward of all algorithms with Appendix C's parameters",
    "reproduction-figure2-fair": "Moving-average reward of all algorithms with what tuning chose",
    "reproduction-ablation": "Total reward of DSS-PI against processor time per step, a line for each parameter",
    "reproduction-ablation_beliefs": "Share of the optimum against the prior's sparsity, the discount and M",
    "deep-sea": "Total bad episodes against time, a panel for each environment",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results of all studies, and where their runs were made."""

    studies: Mapping[str, Results]
    source: str  # versions and machines

    @property
    def published(self) -> Results:
        """Return the complete rows with Appendix C's parameters."""
        return complete_results(self.studies["dss2020/published"])

    @property
    def tuned(self) -> Results:
        """Return the fair comparison and the single choice, with their tuning runs."""
        return merge_results([self.studies["dss2020/fair"], self.studies["dss2020/single"]])

    @property
    def fair(self) -> Results:
        """Return the complete rows of the fair comparison."""
        return complete_results(self.tuned)

    @property
    def stated(self) -> Results:
        """Return the complete rows with priors as the text states them, and with others."""
        return complete_results(self.studies["dss2020/stated"])

    @property
    def ablation(self) -> Results:
        """Return the complete rows of the ablation."""
        return complete_results(self.studies["dss2020/ablation"])

    @property
    def deep_sea(self) -> Results:
        """Return the complete rows of the deep-sea comparison."""
        return complete_results(self.studies["dss2020/figure3"])


@contextmanager
def read_evidence(folder: Path) -> Iterator[Evidence]:
    """Read all studies from their exported files, for the duration of a ``with`` block."""
    paths = [folder / export_name(study) for study in STUDIES]
    with open_exports(paths) as exports:
        studies = {name: collect_results(paper_study(name), exports.store_of(name)) for name in STUDIES}
        yield Evidence(studies, source_of(exports.together))


def source_of(store: Store) -> str:
    """Return the versions and machines behind the runs."""
    records = store.all_records()
    machines = {
        f"{m['processor']}, {m['cores']} cores, Python {m['python']}, NumPy {m['numpy']}, Numba {m['numba']}"
        for m in store.machine_of(record.id for record in records).values()
    }
    versions = ", ".join(sorted({record.version for record in records}))
    return f"bamdp {versions}; {'; '.join(sorted(machines))}."


# Tables that only the page has


def run_counts(studies: Mapping[str, Results], source: str) -> ResultTable:
    """Return how many cells of each study are complete, how many different runs it has, and what they took."""
    rows = []
    for name, found in studies.items():
        done = sum(_finished(found, *cell) for cell in found.cells)
        seconds: dict[tuple[object, ...], float] = {}  # of each run: sweeps share runs, which count once
        for s in found.samples:
            key = (s.environment, s.phase, s.horizon, repr(full_configuration(s.configuration)))
            seconds |= {(*key, r): c for r, c in zip(s.replicates.tolist(), s.cpu_seconds.tolist())}
        cells = number_cell(done, f"{done} of {len(found.cells)}")
        hours = sum(seconds.values()) / 3600.0
        rows.append((name, cells, len(seconds), number_cell(hours, f"{hours:.1f}")))
    header = ("study", "complete cells", "runs", "processor hours")
    note = "Processor time of planning and learning in runs that came to their end."
    return make_table("state", "What has been run", header, rows, [note, source])


def _finished(found: Results, environment: str, algorithm: str) -> bool:
    samples = found.select(EVALUATE, environment, algorithm)
    waits = (environment, algorithm) in found.waiting
    return not waits and bool(samples) and all(sample.complete for sample in samples)


def reward_targets(fair: Results) -> ResultTable:
    """Return whether the better of the two tuned forms of DSS reaches each target."""
    rows = []
    for environment, target in REWARD_TARGETS.items():
        samples = [_sample_of(fair, environment, name) for name in DSS]
        best = max((s for s in samples if s), key=lambda s: s.mean_total, default=None)
        cells = [_mean_interval(sample, sample is best) for sample in samples]
        word = None if best is None else _target_word(best, target)
        rows.append((environment, number_cell(target, f"≥ {target:g}"), *cells, word))
    note = (
        "The verdict is by the mean of the better of the two forms, in bold; both were tuned alike. Narrowly: the "
        "interval contains the target."
    )
    title = "Total reward of DSS with the configurations that tuning chose, mean [95% interval]"
    header = ("environment", "target", *DSS, "verdict")
    return make_table("reward_targets", title, header, rows, [note], "lrrrl")


def _target_word(sample: Sample, target: float) -> str:
    mean = summarise(sample.totals).mean
    word = "met" if mean.value >= target else "missed"
    return f"{word}, narrowly" if mean.low < target <= mean.high else word


def _mean_interval(sample: Sample | None, bold: bool) -> TableCell | None:
    if sample is None:
        return None
    return value_interval_cell(summarise(sample.totals).mean, decimals([standard_error(sample.totals)]), bold)


def speed_targets(published: Results) -> ResultTable:
    """Return how many times faster than the paper's Table 2 a step is, with the paper's parameters."""
    rows = []
    for name in DSS:
        ratios = {s.environment: speedup(s) for s in of_paper_length(published) if s.algorithm == name}
        met = [ratios.get(environment, math.nan) >= SPEEDUP_TARGET for environment in REWARD_TARGETS]
        cells = [
            number_cell(ratios.get(e, math.nan), f"{ratios.get(e, math.nan):.1f}") for e in REWARD_TARGETS
        ]
        rows.append((name, *cells, "met" if all(met) else "missed"))
    title = (
        "Times faster per step than the paper's Table 2, with Appendix C's parameters "
        f"(target: {SPEEDUP_TARGET:g} everywhere)"
    )
    header = ("algorithm", *REWARD_TARGETS, "verdict")
    return make_table("speed_targets", title, header, rows, align="l" + "r" * len(REWARD_TARGETS) + "l")


def rival_table(fair: Results) -> ResultTable:
    """Return the better form of DSS less the best of the paper's rivals, in each environment."""
    rows = []
    for group in groups(fair):
        dss, rival = (
            next((name for name in group.ranked if name in names and group.named[name].runs), None)
            for names in (DSS, RIVALS)
        )
        pair = next((pair for pair in group.compared if {pair.first, pair.second} == {dss, rival}), None)
        if dss is None or rival is None or pair is None:
            continue
        gain, shown = pair.gain(dss), decimals([standard_error(group.named[dss].totals)])
        word = "ahead" if gain.value > 0 else "behind"
        if not pair.distinguishable:
            word = ABOUT_EQUAL if group.narrow(pair) else NOT_DECIDED
        rows.append((group.label, dss, rival, value_interval_cell(gain, shown), word))
    note = (
        "Paired on common random numbers, with the bootstrap 95% interval of that pair. Verdict: sign-flip test, "
        "Holm's correction over all pairs of the environment, 5%; where it does not reject, about equal if the "
        "interval is within 5% of the range from random play to the optimum, else undecided."
    )
    header = ("environment", "DSS", "rival", "DSS − rival", "verdict")
    title = "The better form of DSS against the best of the paper's rivals, both tuned"
    return make_table("rivals", title, header, rows, [note], "lllrl")


def prior_counts(evidence: Evidence) -> ResultTable:
    """Return how many entries of Table 1 agree with each prior that all were run with: one rule for all algorithms."""
    found = _entries(evidence)
    rows = []
    for algorithm, by_prior in found.items():
        shares = {prior: _agreeing(by_prior.get(prior, ())) for prior in COMMON_PRIORS}
        best = max(shares.values())  # of equal ones that with most entries
        rows.append((algorithm, *(_share_cell(share, share == best) for share in shares.values())))
    note = (
        "Entries that agree (Welch's test at 5%), of those that were run with this prior: Appendix C's parameters, the "
        "paper's steps. Fewer runs agree more easily. β = 2 is the prior that the text states, with the rivals' "
        "default sparsity. Bold: the prior that fits best."
    )
    header = ("algorithm", *(name for _, name in COMMON_PRIORS))
    title = "Entries of the paper's Table 1 that agree, by prior"
    return make_table("prior_counts", title, header, rows, [note])


def prior_entries(evidence: Evidence) -> ResultTable:
    """Return every entry that :func:`prior_counts` counts, and those with other priors, beside the paper's."""
    rows = []
    for by_prior in _entries(evidence).values():
        for (_, prior), samples in sorted(by_prior.items()):
            for sample in samples:
                verdict = paper_verdict(sample)
                entry = paper_entry("table1", sample.algorithm, sample.environment)
                if verdict is not None and entry is not None:
                    where = sample.algorithm, sample.environment, prior, sample.runs
                    rows.append(
                        (*where, mean_cell(sample.totals), f"{entry[0]:g} ± {entry[1]:g}", verdict.word)
                    )
    header = ("algorithm", "environment", "prior", "runs", "here", "paper", "verdict")
    title = "Total reward with each prior, mean ± standard error, beside the paper's Table 1"
    return make_table("prior_entries", title, header, rows, align="lllrrrl")


def _entries(evidence: Evidence) -> dict[str, dict[tuple[float, str], list[Sample]]]:
    """Return the samples that stand for entries of Table 1, by algorithm and prior; of several that with most runs."""
    names = (*DSS, *RIVALS)
    entries: dict[str, dict[tuple[float, str], dict[str, Sample]]] = {name: {} for name in names}
    for results in (evidence.published, evidence.stated, evidence.ablation):
        for sample in of_paper_length(results):
            label = sample.algorithm
            label = "dss-pi" if label in ("beta", "prior") else label  # sweeps of the ablation
            algorithm = next((name for name in names if label == name or label.startswith(f"{name}-")), None)
            if algorithm is not None:
                known = entries[algorithm].setdefault(_prior(sample), {})
                if sample.environment not in known or known[sample.environment].runs < sample.runs:
                    known[sample.environment] = replace(sample, algorithm=algorithm)
    return {
        name: {prior: list(samples.values()) for prior, samples in by_prior.items()}
        for name, by_prior in entries.items()
    }


def _agreeing(samples: Sequence[Sample]) -> tuple[int, int]:
    verdicts = [verdict for sample in samples if (verdict := paper_verdict(sample)) is not None]
    return sum(verdict.word == AGREES for verdict in verdicts), len(verdicts)


def _share_cell(share: tuple[int, int], bold: bool) -> TableCell:
    return TableCell(f"{share[0]} of {share[1]}", bold=bold)


def choice_gains(published: Results, fair: Results) -> ResultTable:
    """Return what each algorithm gains by choosing prior, discount and parameters instead of Appendix C's."""
    names = [name for name in published.algorithms if name in fair.algorithms]
    return make_table(
        "choice_gains",
        "Mean total reward with Appendix C's parameters → with what tuning chose",
        ("algorithm", *REWARD_TARGETS),
        [(name, *(_gain(published, fair, e, name) for e in REWARD_TARGETS)) for name in names],
        ["SBOSS and BFS3 have the flat prior on the left, as their published rows have."],
    )


def _gain(published: Results, fair: Results, environment: str, algorithm: str) -> TableCell | None:
    before, after = (_sample_of(found, environment, algorithm) for found in (published, fair))
    if before is None or after is None:
        return None
    shown = decimals([standard_error(before.totals), standard_error(after.totals)])
    first, second = before.mean_total, after.mean_total
    return number_cell(second - first, f"{first:.{shown}f} → {second:.{shown}f}")


def _sample_of(found: Results, environment: str, algorithm: str) -> Sample | None:
    """Return the one evaluation of an algorithm in an environment over the paper's steps, if it is there."""
    samples = [
        sample
        for sample in found.select(EVALUATE, environment, algorithm)
        if sample.runs and sample.horizon == paper_steps(environment)
    ]
    return samples[0] if len(samples) == 1 else None


def prior_table(tuned: Results) -> ResultTable:
    """Return the mean of both forms of DSS with every prior, over all else that tuning tried."""
    pairs = [(environment, algorithm) for environment in tuned.environments for algorithm in DSS]
    tried = [samples for pair in pairs if (samples := _shortest_runs(tuned.select(TUNE, *pair)))]
    priors = sorted({_prior(sample) for samples in tried for sample in samples})
    return make_table(
        "priors",
        "DSS with each prior, mean total reward over all configurations with it that tuning tried",
        ("environment", "algorithm", "steps", *(name for _, name in priors), "paper"),
        [_prior_row(samples, priors) for samples in tried],
        [
            "Each configuration counts once, with the mean of its tuning runs; ± is the standard error over "
            "configurations. Bold: the highest mean of the row.",
        ],
        "llr" + "r" * (len(priors) + 1),
    )


def tuning_times(results: Results) -> ResultTable:
    """Return the processor minutes that each algorithm took to choose in each environment."""
    rows = []
    for name in results.algorithms:
        samples = [results.select(TUNE, environment, name) for environment in results.environments]
        minutes = [sum(float(s.cpu_seconds.sum()) for s in part) / 60.0 for part in samples]
        rows.append((name, *(spent or None for spent in minutes)))
    return make_table(
        "tuning_times",
        "Processor minutes of tuning",
        ("algorithm", *results.environments),
        rows,
        ["Of runs that came to their end; those that were stopped for their time are not in it."],
    )


def _shortest_runs(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the fewest steps per run, which all configurations begin with."""
    run = [sample for sample in samples if sample.runs]
    shortest = min((sample.horizon for sample in run), default=0)
    return [sample for sample in run if sample.horizon == shortest]


def _prior(sample: Sample) -> tuple[float, str]:
    """Return the prior's sparsity, to order by, and its name; the flat one comes first."""
    name, beta = sample.configuration["prior"], sample.configuration.get("prior.beta")
    return (-math.inf, name) if beta is None else (beta, f"{name}, β = {beta:g}")


def _prior_row(samples: Sequence[Sample], priors: Sequence[tuple[float, str]]) -> tuple[Entry, ...]:
    means = [np.array([s.mean_total for s in samples if _prior(s) == prior]) for prior in priors]
    shown = decimals(standard_error(values) for values in means)
    best = max(values.mean() for values in means if len(values))
    cells = [mean_cell(values, shown, len(values) > 0 and bool(values.mean() == best)) for values in means]
    first = samples[0]
    entry = paper_entry("table1", first.algorithm, first.environment)
    if entry is None or paper_steps(first.environment) != first.horizon:
        paper = None
    else:
        paper = number_cell(entry[0], f"{entry[0]:g}")
    return first.environment, first.algorithm, first.horizon, *cells, paper


# Parts of the pages


def page_parts(evidence: Evidence) -> dict[str, str]:
    """Return all generated parts of the pages as Markdown, by name."""
    published, fair, tuned, ablation = evidence.published, evidence.fair, evidence.tuned, evidence.ablation
    score = overall(fair)
    by_environment = [table for name in fair.environments for table in summaries(fair, name)]
    incomplete = [table for found in evidence.studies.values() for table in unfinished(found)]
    best_tables = [table for name in fair.environments for table in against_best(fair, name)]
    sea, sea_detail = deep_sea_tables(evidence.deep_sea)
    return {
        "state": _join(*map(to_markdown, [run_counts(evidence.studies, evidence.source), *incomplete])),
        "targets": _join(to_markdown(reward_targets(fair)), to_markdown(speed_targets(published))),
        "counts": _join(
            to_markdown(prior_counts(evidence)),
            _folded("Every entry, with these priors and others", [prior_entries(evidence)]),
        ),
        "published": _join(
            *map(to_markdown, beside_table1(published)),
            _folded("All rows, with those that the paper does not have", [matrix(published)]),
            _figure("reproduction-figure2-published"),
            _notes(published),
        ),
        "priors": to_markdown(prior_table(tuned)),
        "fair": _join(
            to_markdown(matrix(fair)),
            to_markdown(score) if score else "",
            to_markdown(rival_table(fair)),
            _folded("Differences to the best algorithm of each environment", best_tables),
            _folded("Intervals, shares of the optimum and time, environment by environment", by_environment),
            _figure("reproduction-figure2-fair"),
            _notes(fair),
        ),
        "choices": _join(
            _folded("Everything that was chosen", [choices(tuned)]),
            _folded("Processor time of tuning", [tuning_times(tuned)]),
        ),
        "gains": to_markdown(choice_gains(published, fair)),
        "times": _join(*map(to_markdown, beside_table2(published))),
        "ablation": _join(
            *map(to_markdown, trend_tables(ablation)),
            _figure("reproduction-ablation"),
            _figure("reproduction-ablation_beliefs"),
            _folded("Every configuration", ablation_tables(ablation)),
            _notes(ablation),
        ),
        "deep-sea": _join(
            _figure("deep-sea"),
            to_markdown(sea),
            _folded("Intervals, ranges and time, environment by environment", [sea_detail]),
            _notes(evidence.deep_sea),
        ),
    }


def _figure(stem: str) -> str:
    return f"![{FIGURES[stem]}](images/{stem}.png)"


def _folded(summary: str, tables: Iterable[ResultTable]) -> str:
    """Return tables that are shown on demand; Markdown inside works on GitHub and in the site."""
    return _details(summary, _join(*map(to_markdown, tables)))


def _notes(found: Results) -> str:
    """Return the study's own notes on how it was run."""
    return _details("How it was run", "\n".join(f"- {note}" for note in found.notes))


def _details(summary: str, inner: str) -> str:
    return f'<details markdown="1">\n<summary>{summary}</summary>\n\n{inner}\n\n</details>'


def _join(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())


def draw_figures(evidence: Evidence, folder: Path) -> list[Path]:
    """Draw all figures of the pages as PNG files."""
    pictures: dict[str, Picture] = {}
    for way, found in (("published", evidence.published), ("fair", evidence.fair)):
        pictures |= {f"reproduction-figure2-{way}": p for p in TARGETS["figure2"].pictures(found)}
    pictures |= {f"reproduction-{p.stem}": p for p in TARGETS["ablation"].pictures(evidence.ablation)}
    pictures["deep-sea"], *_ = TARGETS["figure3"].pictures(evidence.deep_sea)
    return [path for stem, p in pictures.items() for path in save_figure(p.draw(), folder / stem, ["png"])]


# Pages


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with the text between its marks replaced."""
    for name in marked(page):
        if name not in parts:
            raise ValueError(f"the page has a part {name!r} that is not generated; known: {', '.join(parts)}")
        between = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        page = between.sub(lambda found, part=parts[name]: f"{found[1]}\n{part.strip()}\n\n{found[2]}", page)
    return page


def marked(page: str) -> list[str]:
    """Return the names of a page's parts; each must begin and end once, one after the other."""
    marks = [(mark[1], mark[2]) for mark in MARK.finditer(page)]
    names = [name for kind, name in marks if kind == "begin"]
    if marks != [(kind, name) for name in names for kind in ("begin", "end")] or len(set(names)) < len(names):
        raise ValueError(
            "marks must come in pairs, <!-- begin: NAME --> and <!-- end: NAME -->, each name once"
        )
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages and their figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--from", dest="folder", default="results/dss2020", metavar="FOLDER", help="exported runs"
    )
    parser.add_argument("--root", default=".", metavar="FOLDER", help="of the repository (default: here)")
    arguments = parser.parse_args(argv)
    root = Path(arguments.root)
    try:
        pages = {path: (root / path).read_text(encoding="utf-8") for path in PAGES}
        with read_evidence(Path(arguments.folder)) as evidence:
            parts = page_parts(evidence)
            filled = {path: fill(page, parts) for path, page in pages.items()}
            figures = draw_figures(evidence, root / IMAGES)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path, page in filled.items():
        (root / path).write_text(page, encoding="utf-8")
    for written in (*filled, *figures):
        print(f"written: {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
