"""Measure what planners lose against the Bayes-optimal policy, and compare it with the bounds.

    python benchmarks/bayes_losses.py          # some minutes: docs/data/bayes-losses.csv, docs/images/bayes-losses.png
    python benchmarks/bayes_losses.py --draw   # draw the figure again, from the data

On a bandit with two arms and on worlds of two and three states the Bayes-optimal values of 8 steps are computed
exactly (FHTS), and losses are measured by `bamdp.theory.bayes_loss`, in which only the visited hyper-states are random.
γ = 0.5, so that what lies beyond 8 steps is worth less than 0.008. All agents plan again at every step. Everything is
seeded: the same machine type and versions give the same file.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bamdp
from bamdp.theory import (
    bamcp_calls,
    bayes_loss,
    corrected_loss_bound,
    dss_calls,
    estimate_c,
    printed_loss_bound,
    sparse_sampling_calls,
)

ROOT = Path(__file__).resolve().parent.parent
DISCOUNT, HORIZON, RUNS, SEED = 0.5, 8, 500, 0
WORLDS: dict[str, dict[str, Any]] = {
    "bandit": {"prior": bamdp.Dirichlet(), "rewards": bamdp.BetaBernoulli(), "n_states": 1},
    "two states": {"prior": bamdp.Dirichlet(alpha=0.5), "rewards": [0.0, 1.0], "n_states": 2},
    "three states": {
        "prior": bamdp.SparseDirichlet(alpha=0.5, beta=1.0),
        "rewards": [0.1, 0.0, 1.0],
        "n_states": 3,
    },
}
BASE = {"n_policies": 4, "n_samples": 16, "n_steps": 4, "n_stages": 1}
SWEEPS = {
    "n_policies": (BASE, (1, 2, 4, 8, 16, 32)),
    "n_samples": (BASE, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    "n_steps": (BASE, (1, 2, 3, 4, 6, 8, 12)),
    "n_stages": ({"n_policies": 3, "n_samples": 3, "n_steps": 2}, (1, 2, 3, 4)),
}
LEARNED = (10, 100, 1000, 10_000, 100_000)  # prior counts per row
FIELDS = (
    "panel",
    "world",
    "planner",
    "x",
    "calls",
    "runs",
    "loss",
    "se",
    "value",
    "c",
    "printed",
    "corrected",
)


def cases() -> Iterator[tuple[str, str, str, float, int, bamdp.Planner]]:
    """Yield (panel, world, planner's name, x, calls to the model, planner) of everything that is measured."""
    for world in WORLDS:
        for panel, (base, values) in SWEEPS.items():
            for x in values:
                dss = {**base, panel: x}
                yield panel, world, "DSS", x, dss_calls(**dss).calls, bamdp.DSS(**dss)
        for name, calls, planner in rivals(n_actions=2):
            yield "calls", world, name, calls, calls, planner


def rivals(n_actions: int) -> Iterator[tuple[str, int, bamdp.Planner]]:
    """Yield (name, calls to the model per decision, planner) of the planners that are compared."""
    for M in (1, 2, 4, 8, 16, 32, 64, 128):
        one = {"n_policies": 4, "n_samples": M, "n_steps": 4, "n_stages": 1}
        yield "DSS, one stage of 4", dss_calls(**one).calls, bamdp.DSS(**one)
    for M in (1, 2, 4, 8):
        two = {"n_policies": 4, "n_samples": M, "n_steps": 2, "n_stages": 2}
        yield "DSS, two stages of 2", dss_calls(**two).calls, bamdp.DSS(**two)
    for n in (2, 4, 8, 16, 32, 64, 128, 256):
        tree = bamdp.BAMCP(n_simulations=n, depth=HORIZON, exploration=1.0)
        yield "BAMCP", bamcp_calls(n, HORIZON), tree
    for width in (1, 2, 3, 4, 6):
        yield (
            "sparse sampling, 3 deep",
            sparse_sampling_calls(n_actions, width, 3),
            bamdp.SparseSampling(width, 3),
        )
    yield "Thompson sampling", 0, bamdp.ThompsonSampling()
    yield "Bayes-greedy", 0, bamdp.BayesGreedy()


def measure(runs: int) -> list[dict[str, Any]]:
    """Measure all rows of the data file."""
    rows = []
    exact: dict[str, dict[Any, Any]] = {name: {} for name in WORLDS}
    c = {
        name: estimate_c(world["prior"].belief(world["n_states"], 2, rewards=world["rewards"]), rng=SEED).mean
        for name, world in WORLDS.items()
    }
    for panel, name, label, x, calls, planner in cases():
        rows.append(row(panel, name, label, x, calls, planner, WORLDS[name], exact[name], c[name], runs))
        print({key: rows[-1][key] for key in ("panel", "world", "planner", "x", "loss", "se")}, flush=True)
    planner = bamdp.DSS(n_policies=4, n_samples=4000, n_steps=HORIZON, replan_every=HORIZON)
    for n in LEARNED:  # a belief with many observations, for which the bound is not vacuous
        prior = bamdp.Dirichlet(alpha=n * np.array([[[0.4, 0.2, 0.4], [0.43, 0.2, 0.37]]] * 3))
        world = {"prior": prior, "rewards": [0.0, 0.3, 1.0], "n_states": 3}
        c_learned = estimate_c(prior.belief(3, 2), pairs=400, rng=SEED).mean
        calls = dss_calls(4, 4000, HORIZON).calls
        few = max(2, runs // 5)
        rows.append(row("learned", "learned", "DSS", n, calls, planner, world, {}, c_learned, few))
    return rows


def row(
    panel: str, name: str, label: str, x: float, calls: int, planner: bamdp.Planner, world: dict[str, Any],
    exact: dict[Any, Any], c: float, runs: int,
) -> dict[str, Any]:  # fmt: skip
    """Measure one row of the data file."""

    def make(seed: np.random.SeedSequence) -> bamdp.Agent:
        return bamdp.Agent(planner, n_actions=2, discount=DISCOUNT, seed=seed, **world)

    loss = bayes_loss(make, HORIZON, runs=runs, seed=SEED, exact=exact)
    bounds = {"printed": math.nan, "corrected": math.nan}
    if isinstance(
        planner, bamdp.DSS
    ):  # the printed bound without its anytime term: the most favourable reading
        sizes = (planner.n_policies, planner.n_samples, planner.n_steps, DISCOUNT)
        for name_of_bound, bound in (("printed", printed_loss_bound), ("corrected", corrected_loss_bound)):
            bounds[name_of_bound] = bound(*sizes, n_stages=planner.n_stages, c=c).total
    figures = {"loss": loss.mean, "se": loss.standard_error, "value": loss.value, "c": c, **bounds}
    head = {"panel": panel, "world": name, "planner": label, "x": x, "calls": calls, "runs": runs}
    return {**head, **{key: f"{value:.6g}" for key, value in figures.items()}}


def read(path: Path) -> list[dict[str, Any]]:
    """Read the data file, with numbers as floats."""
    texts = ("panel", "world", "planner")
    with path.open(newline="") as file:
        return [
            {key: value if key in texts else float(value) for key, value in line.items()}
            for line in csv.DictReader(file)
        ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the figure: sweeps above, planners at equal calls below."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bamdp.plot.style import STYLE

    with matplotlib.rc_context({**STYLE, "axes.titlesize": 9.0}):
        figure = Figure(figsize=(12.0, 6.4), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, 4)
        labels = ("N, policies", "M, samples", "K, steps of a stage", "H, stages of 2 steps")
        for axes, sweep, label in zip(panels[0], SWEEPS, labels):
            draw_sweep(axes, [r for r in rows if r["panel"] == sweep], label)
        for axes, world in zip(panels[1], WORLDS):
            draw_calls(axes, [r for r in rows if r["panel"] == "calls" and r["world"] == world], world)
        draw_learned(panels[1, 3], [r for r in rows if r["panel"] == "learned"])
        panels[0, 0].set_ylabel("loss of DSS (dashed: corrected bound)")
        panels[1, 0].set_ylabel("loss")
        panels[0, 0].legend(frameon=False, fontsize=7.5)
        shared = panels[1, 0].get_legend_handles_labels()
        figure.legend(*shared, frameon=False, fontsize=8, loc="outside lower left", ncols=6)
        panels[1, 3].legend(frameon=False, fontsize=7.5, loc=(0.38, 0.4))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160)


def points(axes: Any, rows: list[dict[str, Any]], colour: str, label: str | None) -> None:
    """Draw losses with two standard errors."""
    rows = sorted(rows, key=lambda r: r["x"])
    x, loss, se = (np.array([r[key] for r in rows]) for key in ("x", "loss", "se"))
    low = np.maximum(loss - 2 * se, loss / 10)
    style = {"color": colour, "markersize": 3.5, "linewidth": 1.2, "elinewidth": 0.8}
    axes.errorbar(x, loss, [loss - low, 2 * se], fmt="o-", label=label, **style)


def frame(axes: Any, label: str, title: str = "") -> None:
    """Set logarithmic axes and mark the region in which bounds are vacuous."""
    axes.set_xscale("log", base=10 if "calls" in label or "row" in label else 2)
    axes.set_yscale("log")
    axes.set_ylim(2e-5, 60)
    axes.axhspan(1 / (1 - DISCOUNT), 60, color="#bbbbbb", alpha=0.35, linewidth=0)
    axes.annotate("vacuous", (0.02, 0.97), xycoords="axes fraction", fontsize=7.5, va="top", color="#444444")
    axes.set_xlabel(label)
    axes.set_title(title)


def draw_sweep(axes: Any, rows: list[dict[str, Any]], label: str) -> None:
    """Draw the losses of DSS, and the corrected bound, against one of its parameters."""
    from bamdp.plot.style import COLOURS

    for colour, world in zip(COLOURS, WORLDS):
        of_world = sorted((r for r in rows if r["world"] == world), key=lambda r: r["x"])
        points(axes, of_world, colour, world)
        axes.plot(
            [r["x"] for r in of_world],
            [r["corrected"] for r in of_world],
            color=colour,
            linestyle="--",
            linewidth=1.0,
        )
    frame(axes, label)
    ticks = sorted({int(r["x"]) for r in rows} - ({3} if label.startswith("K") else set()))
    axes.set_xticks(ticks, [str(x) for x in ticks])
    axes.minorticks_off()


def draw_calls(axes: Any, rows: list[dict[str, Any]], world: str) -> None:
    """Draw the losses of all planners against their calls to the model."""
    from bamdp.plot.style import COLOURS

    for colour, name in zip(COLOURS, dict.fromkeys(r["planner"] for r in rows)):
        of_planner = [r for r in rows if r["planner"] == name]
        if of_planner[0]["calls"] > 0:
            points(axes, of_planner, colour, name)
        else:
            axes.axhline(of_planner[0]["loss"], color=colour, linewidth=1.2, linestyle=":", label=name)
    frame(axes, "calls to the model per decision", world)


def draw_learned(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw the losses of DSS, and both bounds, against the number of observations."""
    from bamdp.plot.style import COLOURS

    points(axes, rows, COLOURS[0], "loss of DSS")
    for which, style in (("corrected", "--"), ("printed", ":")):
        x, bound = zip(*((r["x"], r[which]) for r in rows))
        axes.plot(x, bound, color="#222222", linestyle=style, linewidth=1.2, label=f"bound, {which}")
    frame(axes, "observations of each row", "a belief that has learned")


def main() -> None:
    """Measure, unless only the figure is asked for, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true", help="only draw what has been measured")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "data" / "bayes-losses.csv")
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "images" / "bayes-losses.png")
    arguments = parser.parse_args()
    if not arguments.draw:
        rows = measure(arguments.runs)
        arguments.data.parent.mkdir(parents=True, exist_ok=True)
        with arguments.data.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
    draw(read(arguments.data), arguments.figure)


if __name__ == "__main__":
    main()
