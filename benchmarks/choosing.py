"""Measure the table of the page "choosing a planner and a prior": every planner with every prior, in four worlds.

    python benchmarks/choosing.py          # some minutes: docs/data/choosing.csv
    python benchmarks/choosing.py --table  # from the data: print the table for the page, draw docs/images/choosing.png

Parameters are the defaults or the paper's, the same in all worlds and not tuned; γ = 0.95, rewards known.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bamdp
from bamdp.envs.ceilings import optimal_total
from bamdp.runs import make_setting, run_setting

DATA = Path(__file__).resolve().parent.parent / "docs" / "data" / "choosing.csv"
PICTURE = DATA.parents[1] / "images" / "choosing.png"
RUNS, DISCOUNT = 20, 0.95
ENVS = ("chain", "double_loop", "river_swim", "grid5")
PRIORS = ("flat", "sparse:alpha=0.2,beta=2", "sparse:alpha=0.2,beta=6")
PLANNERS = {
    "DSS-PI": "dss-pi:n_policies=4,n_samples=4,n_steps=20",
    "DSS-PI, mean leaf": "dss-pi:n_policies=4,n_samples=8,n_steps=20,leaf=mean",
    "Thompson sampling": "thompson",
    "Thompson, kept 1/(1−γ) steps": "thompson:resample=discount",
    "BAMCP, 300 simulations": "bamcp:n_simulations=300,depth=50",
    "BFS3": "bfs3",
    "SBOSS": "sboss",
    "BEB": "beb",
    "Bayes-greedy": "bayes-greedy",
    "ε-greedy": "epsilon-greedy",
}
FIELDS = ("env", "planner", "spec", "prior", "runs", "steps", "mean", "se", "optimum", "ms_per_step")


def measure(runs: int) -> Iterator[dict[str, Any]]:
    """Measure one row of data for each cell of the table."""
    for name in ENVS:
        env = bamdp.make_env(name)
        best = optimal_total(env, env.horizon)
        for label, spec in PLANNERS.items():
            for prior in PRIORS:
                setting = make_setting(name, spec, prior=prior, discount=DISCOUNT, world=env)
                batch = run_setting(setting, runs)
                yield {
                    "env": name,
                    "planner": label,
                    "spec": spec,
                    "prior": prior,
                    "runs": runs,
                    "steps": env.horizon,
                    "mean": f"{batch.mean:.2f}",
                    "se": f"{batch.standard_error:.2f}",
                    "optimum": f"{best:.2f}",
                    "ms_per_step": f"{batch.ms_per_step:.3f}",
                }


def table(rows: list[dict[str, str]]) -> str:
    """Return the table in Markdown: percent of the known-model optimum for each prior, and the time per step."""
    lines = [
        f"| planner | {' | '.join(f'`{env}`' for env in ENVS)} | ms per step |",
        "|---|" + "---|" * (len(ENVS) + 1),
    ]
    for label in PLANNERS:
        of_planner = [row for row in rows if row["planner"] == label]
        cells = [" · ".join(_share(row) for row in of_planner if row["env"] == env) for env in ENVS]
        times = [float(row["ms_per_step"]) for row in of_planner]
        lines.append(f"| {label} | {' | '.join(cells)} | {min(times):.2g}–{max(times):.2g} |")
    return "\n".join(lines)


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Draw the table as a heat map: a panel for each environment, a row for each planner, a column for each prior."""
    import matplotlib.pyplot as plt
    import numpy as np

    figure, axes = plt.subplots(1, len(ENVS), figsize=(10.5, 4.6), sharey=True, layout="constrained")
    for panel, env in zip(axes, ENVS):
        shares = np.array(
            [
                [float(_share(row)) for row in rows if (row["planner"], row["env"]) == (label, env)]
                for label in PLANNERS
            ]
        )
        image = panel.imshow(shares, vmin=0.0, vmax=100.0, cmap="YlGnBu", aspect="auto")
        for (i, j), share in np.ndenumerate(shares):
            colour = "white" if share > 60.0 else "black"
            panel.text(j, i, f"{share:.0f}", ha="center", va="center", fontsize=9, color=colour)
        panel.set_title(env, fontsize=11)
        panel.set_xticks(range(len(PRIORS)), ["flat", "β = 2", "β = 6"], fontsize=9)
        panel.set_yticks(range(len(PLANNERS)), list(PLANNERS), fontsize=9)
        panel.tick_params(length=0)
    bar = figure.colorbar(image, ax=axes, shrink=0.75, pad=0.015)
    bar.set_label("total reward, per cent of the optimum", fontsize=9)
    figure.supxlabel("prior: flat Dirichlet(1/S), or sparse with β", fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _share(row: dict[str, str]) -> str:
    """Return the mean reward in percent of the optimum."""
    return f"{100 * float(row['mean']) / float(row['optimum']):.0f}"


def main() -> None:
    """Measure, unless only the table is asked for, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table", action="store_true", help="measure nothing: print the table, draw the picture"
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    if not arguments.table:
        arguments.data.parent.mkdir(parents=True, exist_ok=True)
        with arguments.data.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            for row in measure(arguments.runs):
                writer.writerow(row)
                file.flush()
    with arguments.data.open(newline="") as file:
        rows = list(csv.DictReader(file))
    print(table(rows))
    draw(rows, arguments.picture)


if __name__ == "__main__":
    main()
