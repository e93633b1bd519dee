"""Generate the tables and figures of the research pages from exported runs.

    python paper/pages.py                 # docs/reproduction.md, docs/evidence.md, docs/deep-sea.md
    python paper/pages.py evidence        # one of them

The script replaces the text between the markers <!-- begin: NAME --> and <!-- end: NAME --> on each page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import figures
import numpy as np
from exports import Export, read_export, rewards
from numpy.typing import NDArray
from pandas import DataFrame
from seas import sea_totals

from bamdp.cli.studies import beside_the_paper, paper_numbers
from bamdp.lab import tables
from bamdp.lab.comparisons import holm, sign_flip_p
from bamdp.lab.results import Results
from bamdp.lab.store import EVALUATE
from bamdp.lab.tables import Table, decimals, interval_text, mean_text
from bamdp.statistics import estimate, standard_error

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
MARK = re.compile(r"(<!-- begin: ([\w-]+) -->\n).*?(<!-- end: \2 -->)", flags=re.S)
FILES = {"dss2020/single2": "dss2020/fair2"}  # studies stored in the file of another study
ENVIRONMENTS = ("chain", "double_loop", "grid5", "grid10", "maze")
DSS = ("dss-pi", "dss-rtdp")
RIVALS = ("bamcp", "bfs3", "sboss")
VERDICTS = {"agrees": " =", "better": " +", "worse": " −"}
PRIORS = ("law", "flat", "wrong")
FAMILY_DISCOUNT = 0.95
ORDERED_SWEEPS = {
    "N": "n_policies",
    "M": "n_samples",
    "K": "n_steps",
    "H": "n_stages",
    "N-one-stage": "n_policies",
    "M-one-stage": "n_samples",
    "trials": "generator.n_trials",
    "depth": "generator.depth",
}
TIMES = {"10us": "10 µs", "100us": "100 µs", "1ms": "1 ms", "10ms": "10 ms", "100ms": "100 ms"}
TIMED_EVERYWHERE = ("chain", "double_loop", "grid5")


@cache
def read(study: str) -> Export:
    """Read an exported study."""
    return read_export(RESULTS / f"{FILES.get(study, study)}.runs.xz", study)


def evaluations(results: Results, environment: str | None = None, algorithm: str | None = None) -> DataFrame:
    """Return the completed evaluation runs."""
    runs = results.select(EVALUATE, environment, algorithm)
    return runs[runs.failure == ""]


def shared(first: DataFrame, second: DataFrame) -> NDArray[np.float64]:
    """Return the differences in total reward on common replicates."""
    return (first.set_index("replicate").total - second.set_index("replicate").total).dropna().to_numpy()


def state(studies: Iterable[str]) -> Table:
    """Return a table of the number of runs in each study and their processor time."""
    rows = []
    for name in studies:
        runs = read(name).runs
        once = runs[runs.failure == ""].drop_duplicates(
            ["environment", "phase", "replicate", "cpu_seconds", "total"]
        )
        rows.append(
            {"study": name, "runs": len(once), "processor hours": f"{once.cpu_seconds.sum() / 3600:.1f}"}
        )
    return Table("state", "Exported runs", DataFrame(rows))


# Reproduction


def published() -> Table:
    """Compare our totals under Appendix C's parameters with the paper's Table 1, and mark those that agree."""
    beside = beside_the_paper(read("dss2020/published")).frame
    cells = {
        (one.algorithm, one.environment): f"{one.here}{VERDICTS[one.verdict]} ({one.paper.partition(' ')[0]})"
        for one in beside.itertuples()
    }
    rows = [{"algorithm": a, **{e: cells[a, e] for e in ENVIRONMENTS}} for a in (*DSS, *RIVALS)]
    note = "In brackets the paper's mean. = agrees, + better, − worse (Welch's test at 5%, not corrected)."
    return Table(
        "published", "Total reward ± standard error beside the paper's Table 1", DataFrame(rows), [note]
    )


def prior_counts() -> Table:
    """Count the entries of Table 1 that agree with each prior when all algorithms share one rule."""
    found: dict[str, dict[str, dict[str, DataFrame]]] = {name: {} for name in (*DSS, *RIVALS)}
    for study in ("published", "stated", "ablation"):
        for (environment, label, prior), runs in evaluations(read(f"dss2020/{study}")).groupby(
            ["environment", "label", "prior"], sort=False
        ):
            sweep = runs.algorithm.iloc[0] in ("beta", "prior")
            name = (
                "dss-pi"
                if sweep
                else next((n for n in found if label == n or label.startswith(f"{n}-")), None)
            )
            if name is None or runs.horizon.iloc[0] != paper_numbers()["steps"][environment]:
                continue
            entries = found[name].setdefault(_prior_name(prior), {})
            if environment not in entries or len(entries[environment]) < len(runs):
                entries[environment] = runs.assign(algorithm=name, label=name)
    rows = []
    for name, by_prior in found.items():
        row = {"algorithm": name}
        for prior in ("flat", "sparse, β = 2", "sparse, β = 8"):
            entries = by_prior.get(prior, {})
            agree = [_verdict(runs) == "agrees" for runs in entries.values()]
            row[prior] = f"{sum(agree)} of {len(agree)}"
        rows.append(row)
    return Table("counts", "Entries of the paper's Table 1 that agree, by prior", DataFrame(rows))


def _prior_name(prior: str) -> str:
    beta = re.search(r"beta=(\d+)", prior)
    return f"sparse, β = {beta[1]}" if beta else prior


def _verdict(runs: DataFrame) -> str:
    one = beside_the_paper(Results("", runs.assign(asked=0))).frame
    return str(one.verdict.iloc[0])


def fair() -> Results:
    """Return the fair comparison, extended by the one with a single choice for all environments."""
    parts = [read("dss2020/fair"), read("dss2020/single")]
    runs = DataFrame([row for part in parts for row in part.runs.to_dict("records")])
    return replace(parts[0], runs=runs)


def gains() -> Table:
    """Compare the mean total reward under Appendix C's parameters with that of the tuned parameters."""
    before, after = read("dss2020/published"), read("dss2020/fair")
    rows = []
    for name in ("dss-pi", *RIVALS, "thompson"):
        row = {"algorithm": name}
        for environment in ENVIRONMENTS:
            totals = [evaluations(study, environment, name).total for study in (before, after)]
            shown = decimals([standard_error(values) for values in totals])
            row[environment] = " → ".join(f"{values.mean():.{shown}f}" for values in totals)
        rows.append(row)
    return Table("gains", "Mean total reward: Appendix C's parameters → tuned", DataFrame(rows))


def times() -> Table:
    """Compare the processor time per step with the paper's Table 2."""
    runs, paper = evaluations(read("dss2020/published")), paper_numbers()
    rows = []
    for name in (*DSS, *RIVALS):
        row = {"algorithm": name}
        for environment in ENVIRONMENTS:
            ours = runs[(runs.environment == environment) & (runs.algorithm == name)].ms_per_step.mean()
            seconds = paper["table2"][name].get(environment)
            theirs = "–" if seconds is None else f"{1e3 * seconds / paper['steps'][environment]:.3g}"
            row[environment] = f"{tables.significant(ours, 3)} ({theirs})"
        rows.append(row)
    title = "Milliseconds per step with Appendix C's parameters, in brackets the paper's Table 2"
    return Table("times", title, DataFrame(rows))


def trends() -> Table:
    """Return the effect of moving each DSS parameter from its smallest value to Appendix C's, and on to its largest."""
    halves = []
    for environment in read("dss2020/ablation").environments:
        base = _base(environment)
        for sweep, parameter in ORDERED_SWEEPS.items():
            runs = evaluations(read("dss2020/ablation"), environment, sweep)
            by_value = dict(list(runs.groupby([one.get(parameter) for one in runs.configuration])))
            values = sorted(by_value)
            if len(values) < 2:
                continue
            at_base = any(_same(base, one) for one in runs.configuration)
            middle = base[parameter] if at_base else values[len(values) // 2]
            for low, high in ((values[0], middle), (middle, values[-1])):
                if low != high:
                    halves.append((environment, sweep, low, high, shared(by_value[high], by_value[low])))
    adjusted = holm([sign_flip_p(gap, len(halves)) for *_, gap in halves])
    rows = []
    for (environment, sweep, low, high, gap), p in zip(halves, adjusted):
        found = estimate(np.mean, gap)
        if found.low <= 0.0 <= found.high:
            continue
        word = "rises" if found.value > 0 else "falls"
        rows.append(
            {
                "environment": environment,
                "sweep": sweep,
                "from": low,
                "to": high,
                "difference": interval_text(found, 2),
                "verdict": word if p <= 0.05 else f"perhaps {word}",
            }
        )
    note = (
        f"Of {len(halves)} halves of sweeps those whose interval excludes 0; perhaps: it does not hold after Holm's "
        "correction over all of them."
    )
    return Table(
        "trends", "What changes the total reward of DSS around Appendix C's values", DataFrame(rows), [note]
    )


def _base(environment: str) -> Mapping[str, object]:
    return evaluations(read("dss2020/published"), environment, "dss-pi").configuration.iloc[0]


def _same(first: Mapping[str, object], second: Mapping[str, object]) -> bool:
    return {"leaf": "zero", **first} == {"leaf": "zero", **second}


# Evidence


def families() -> list[Table]:
    """Return the discounted returns under the correct prior, and the cost of a flat or wrong prior."""
    results = read("bbrl2016/families")
    returns: dict[tuple[str, str], NDArray[np.float64]] = {}
    for (family, algorithm), runs in evaluations(results).groupby(["environment", "algorithm"], sort=False):
        found = rewards(runs.sort_values("replicate"))
        returns[family, algorithm] = found @ FAMILY_DISCOUNT ** np.arange(found.shape[1])
    names = list(dict.fromkeys(algorithm for _, algorithm in returns))
    correct = [name for name in names if not name.endswith(("-flat", "-wrong"))]
    level, cost = [], []
    for name in correct:
        base = name.removesuffix("-law")
        level.append({"algorithm": base})
        cost.append({"algorithm": base})
        for family in results.environments:
            best = max(correct, key=lambda one, family=family: returns[family, one].mean())
            values = returns[family, name]
            text = mean_text(values.mean(), standard_error(values), decimals([standard_error(values)]))
            gap = estimate(np.mean, values - returns[family, best])
            level[-1][family] = text + (" *" if name == best else " ≈" if gap.high >= 0.0 else "")
            if name != base:
                gaps = [
                    estimate(np.mean, values - returns[family, f"{base}-{prior}"]) for prior in PRIORS[1:]
                ]
                seen = ["" if one.low <= 0.0 <= one.high else "!" for one in gaps]
                cost[-1][family] = " / ".join(f"{one.value:.2g}{mark}" for one, mark in zip(gaps, seen))
    note = (
        "*: the highest mean; ≈: the 95% interval of the paired difference to it contains 0. 300 worlds each."
    )
    costs = "The first number is the return with the correct prior minus that with the flat one, the second minus that "
    costs += "with the wrong one; !: the 95% interval excludes 0."
    title = "Return discounted by 0.95 over 250 steps with the correct prior, mean ± standard error"
    return [
        Table("families", title, DataFrame(level), [note]),
        Table(
            "costs", "Cost of a flat / wrong prior", DataFrame([row for row in cost if len(row) > 1]), [costs]
        ),
    ]


def pooled() -> Results:
    """Return the second fair comparison, pooling the three searches of each algorithm."""
    results = read("dss2020/fair2")
    names = results.runs.algorithm.str.partition("#")[0]
    return replace(
        results, runs=results.runs.assign(algorithm=names, label=names, asked=3 * results.runs.asked)
    )


def scored(results: Results) -> Table:
    """Return the matrix of total rewards, with the interquartile mean of normalised scores as the last column."""
    table, score = tables.matrix(results), tables.overall(results)
    frame = table.frame
    if score is not None:
        iqm = dict(zip(score.frame.algorithm, score.frame["IQM, 95% interval"]))
        frame = frame.assign(score=[iqm.get(name, "–") for name in frame.algorithm])
    note = "score: interquartile mean of (total − random) / (optimum − random), with its 95% interval."
    return Table(table.name, table.title, frame, [tables.MARKS_NOTE, note if score is not None else ""])


def searches() -> Table:
    """Return the mean total reward of each of the three searches, for the algorithms whose searches differ most."""
    runs = evaluations(read("dss2020/fair2"))
    means = runs.groupby(["environment", "algorithm"], sort=False).total.mean()
    rows = {}
    for (environment, label), mean in means.items():
        algorithm = label.partition("#")[0]
        if algorithm in ("dss-pi", "dss-rtdp", "adaptive-dss", "thompson", "beb"):
            rows.setdefault(algorithm, {"algorithm": algorithm}).setdefault(environment, []).append(
                f"{mean:.4g}"
            )
    frame = DataFrame(
        [
            {key: cell if isinstance(cell, str) else ", ".join(cell) for key, cell in row.items()}
            for row in rows.values()
        ]
    )
    return Table("searches", "Mean total reward of each of three searches", frame)


def seas() -> Table:
    """Return the number of bad episodes of every algorithm in both seas after equal tuning."""
    results = read("dss2020/deep-sea")
    rows = []
    for algorithm in results.runs.algorithm.unique():
        row = {"algorithm": algorithm}
        for environment in results.environments:
            bad = sea_totals(results, environment, algorithm)
            if bad is not None:
                row[environment] = mean_text(bad.mean(), standard_error(bad), 1)
        rows.append(row)
    rows.sort(key=lambda row: float(row["deterministic"].split()[0]))
    return Table("seas", "Bad episodes of 1000, mean ± standard error over 20 runs", DataFrame(rows))


def within_time() -> Table:
    """Return the mean normalised score for each time limit per step."""
    scores = figures.time_scores(read("dss2020/time"))
    rows = []
    for algorithm in dict.fromkeys(name for _, name, _ in scores):
        row = {"algorithm": algorithm}
        for time, words in TIMES.items():
            cells = [scores.get((environment, algorithm, time)) for environment in TIMED_EVERYWHERE]
            if all(cell is not None for cell in cells):
                mean = np.mean([cell[0] for cell in cells])
                error = np.sqrt(np.sum([cell[1] ** 2 for cell in cells])) / len(cells)
                row[words] = mean_text(float(mean), float(error), 3)
        rows.append(row)
    rows.sort(key=lambda row: -max(float(text.split()[0]) for text in list(row.values())[1:]))
    note = (
        f"Mean over {', '.join(TIMED_EVERYWHERE)}; 20 runs, 10 above 1 ms, 4 at 100 ms. –: in some environment no "
        "configuration is that fast."
    )
    title = "Normalised score within a time per step, ± standard error"
    return Table("within_time", title, DataFrame(rows, columns=["algorithm", *TIMES.values()]), [note])


# Deep sea


def deep_sea() -> Table:
    """Return the bad episodes of the agents in the paper's Figure 3, and of additional agents."""
    results = read("dss2020/figure3")
    rows = []
    for name, words in figures.SEA_AGENTS.items():
        row = {"agent": words}
        for environment in results.environments:
            bad = sea_totals(results, environment, name)
            row[environment] = "–" if bad is None else mean_text(bad.mean(), standard_error(bad), 1)
        rows.append(row)
    note = "10 runs each; of 1000 episodes (size 10) or 2500 (size 20)."
    return Table("bad_episodes", "Bad episodes, mean ± standard error", DataFrame(rows), [note])


# Pages


def image(name: str, words: str) -> str:
    """Return the Markdown for a figure."""
    return f"![{words}](images/{name}.png)\n"


REPRODUCED = ("dss2020/published", "dss2020/stated", "dss2020/fair", "dss2020/single", "dss2020/ablation")
EVIDENCE = ("bbrl2016/families", "dss2020/fair2", "dss2020/single2", "dss2020/deep-sea", "dss2020/time")
PAGES: dict[str, dict[str, Callable[[], Sequence[Table | str]]]] = {
    "reproduction": {
        "state": lambda: [state(REPRODUCED)],
        "published": lambda: [
            published(),
            image("reproduction-figure2", "Moving average of the reward over time"),
        ],
        "counts": lambda: [prior_counts()],
        "fair": lambda: [scored(fair())],
        "gains": lambda: [gains()],
        "times": lambda: [times()],
        "ablation": lambda: [
            image("reproduction-ablation", "Total reward of DSS against its parameters"),
            trends(),
        ],
    },
    "evidence": {
        "state": lambda: [state(EVIDENCE)],
        "families": families,
        "second": lambda: [scored(pooled()), searches()],
        "single": lambda: [scored(read("dss2020/single2"))],
        "seas": lambda: [seas()],
        "time": lambda: [
            image("reward-within-time", "Normalised score against time per step"),
            within_time(),
        ],
    },
    "deep-sea": {
        "deep-sea": lambda: [image("deep-sea", "Total number of bad episodes against episodes"), deep_sea()],
    },
}
DRAWN: dict[str, Callable[[], None]] = {
    "reproduction": lambda: (
        figures.draw_learning(read("dss2020/published"), DOCS / "images/reproduction-figure2.png"),
        figures.draw_ablation(read("dss2020/ablation"), DOCS / "images/reproduction-ablation.png", _base),
    ),
    "evidence": lambda: figures.draw_times(read("dss2020/time"), DOCS / "images/reward-within-time.png"),
    "deep-sea": lambda: figures.draw_seas(read("dss2020/figure3"), DOCS / "images/deep-sea.png"),
}


def filled(page: str, text: str) -> str:
    """Return the page with the text between its markers regenerated."""
    parts = PAGES[page]

    def made(found: re.Match[str]) -> str:
        blocks = [one if isinstance(one, str) else one.to_markdown() for one in parts[found[2]]()]
        return f"{found[1]}\n" + "\n".join(blocks) + f"\n{found[3]}"

    return MARK.sub(made, text)


def main() -> None:
    """Write the pages named on the command line (by default, all of them) and their figures."""
    for page in sys.argv[1:] or PAGES:
        path = DOCS / f"{page}.md"
        path.write_text(filled(page, path.read_text(encoding="utf-8")), encoding="utf-8")
        DRAWN[page]()
        print(f"written: {path}")


if __name__ == "__main__":
    main()
