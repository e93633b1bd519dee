"""How soon a planner with a model solves two of Gymnasium's tasks, beside a tuned Q-learning.

CartPole-v1 with 3 × 3 × 6 × 5 uniform bins (270 states) and Taxi-v4 (500 states). Nothing is known to either learner:
not the transitions, not the rewards, not where episodes end. Q-learning begins with optimistic values, and its ε falls
with the number of visits of a state; in each task it has the best parameters of a grid of 16, by the mean return in the
second half of 15 000 steps: one run of each point, three of the four best, with seeds of their own. The prior and the
discount of DSS were chosen among four on CartPole (three runs of each), and among a few on Taxi.

    python benchmarks/gym_learning.py            # the picture and the table of the documentation, from the data there
    python benchmarks/gym_learning.py --run      # the data, too (five minutes of an idle machine)
    python benchmarks/gym_learning.py --tune     # the grid of Q-learning (five minutes)
    python benchmarks/gym_learning.py --quick    # few and short runs, drawn in out/, to see that it works
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bamdp
from bamdp import plot
from bamdp.plot import style

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data" / "gym-learning.csv"
PICTURE = ROOT / "docs" / "images" / "gym-learning.png"
CARTPOLE, TAXI = "CartPole-v1", "Taxi-v4"
WORLDS = {CARTPOLE: "gym:CartPole-v1:bins=(3,3,6,5)", TAXI: "gym:Taxi-v4"}
BEST_RETURNS = {CARTPOLE: 500.0, TAXI: 7.94}  # with the model known, and without bins
LIMITS = {CARTPOLE: (0.0, 520.0), TAXI: (-250.0, 20.0)}  # random play in Taxi: about -770
TITLES = {CARTPOLE: "CartPole-v1, 270 states", TAXI: "Taxi-v4, 500 states"}
PLANNER = "dss-pi:n_policies=2,n_samples=2,n_steps=30"
AGENTS: dict[str, dict[str, Any]] = {
    CARTPOLE: {"prior": "sparse:beta=2", "discount": 0.99},
    TAXI: {"prior": "sparse:beta=6", "discount": 0.97},
}
GRID: dict[str, Sequence[Any]] = {
    "learning_rate": (0.1, 0.3, 0.8, 1.0),
    "epsilon": (0.1,),
    "decay": (0.05, 1.0),
    "initial": ("high",),  # with zeros CartPole is learned several times more slowly
    "discount": (0.95, 0.99),
}
HIGH_VALUES = {CARTPOLE: 50.0, TAXI: 5.0}  # optimism, of the size of good values
TUNED: dict[str, dict[str, Any]] = {  # what --tune has chosen
    CARTPOLE: {"learning_rate": 0.3, "epsilon": 0.1, "decay": 0.05, "initial": "high", "discount": 0.99},
    TAXI: {"learning_rate": 1.0, "epsilon": 0.1, "decay": 1.0, "initial": "high", "discount": 0.99},
}
STEPS = {"dss-pi": 5_000, "q-learning": 30_000}
RUNS, TUNING_STEPS, TUNING_SEED = 5, 15_000, 1_000
FIRST_RUNS, FINALISTS, FINAL_RUNS = 1, 4, 3
CHECKPOINTS = (1_000, 2_000, 4_000, 10_000, 20_000, 30_000)
LAST_EPISODES = 10  # that a return is the mean of


def late_return(batch: bamdp.Batch) -> float:
    """Return the mean return of the episodes that end in the second half of the steps."""
    late = [run.episode_returns[run.ends >= len(run.rewards) // 2] for run in batch.runs]
    return float(np.mean(np.concatenate(late)))


def q_learner(world: str, point: Mapping[str, Any], **options: Any) -> bamdp.Batch:
    """Run Q-learning with the parameters of a point of the grid."""
    parameters = {key: HIGH_VALUES[world] if value == "high" else value for key, value in point.items()}
    discount = parameters.pop("discount")
    return bamdp.run_many(WORLDS[world], bamdp.QLearning(**parameters), discount=discount, **options)


def tune(
    world: str,
    steps: int = TUNING_STEPS,
    grid: Mapping[str, Sequence[Any]] = GRID,
    finalists: int = FINALISTS,
) -> dict[str, Any]:
    """Return the best point of the grid; those of the last round are printed."""
    points = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    for runs, kept in ((FIRST_RUNS, finalists), (FINAL_RUNS, 1)):
        options = {"runs": runs, "steps": steps, "seed": TUNING_SEED}
        scores = [late_return(q_learner(world, point, **options)) for point in points]
        order = np.argsort(scores)[::-1]
        points = [points[i] for i in order]
        for score, point in zip(np.sort(scores)[::-1][:finalists], points):
            print(f"{world}, {runs} runs: {score:.1f} {point}", flush=True)
        points = points[:kept]
    return points[0]


def run(
    world: str, tuned: Mapping[str, Any], runs: int = RUNS, steps: Mapping[str, int] = STEPS
) -> dict[str, bamdp.Batch]:
    """Run both learners in a world."""
    dss = bamdp.run_many(WORLDS[world], PLANNER, runs=runs, steps=steps["dss-pi"], **AGENTS[world])
    return {"dss-pi": dss, "q-learning": q_learner(world, tuned, runs=runs, steps=steps["q-learning"])}


def rows_of(world: str, batches: Mapping[str, bamdp.Batch]) -> list[dict[str, Any]]:
    """Return the steps and the return of every episode."""
    return [
        {"world": world, "planner": name, "run": number, "end": int(end), "return": float(value)}
        for name, batch in batches.items()
        for number, one in enumerate(batch.runs)
        for end, value in zip(one.ends, one.episode_returns)
    ]


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the episodes as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, fieldnames=["world", "planner", "run", "end", "return"], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows({**row, "return": f"{row['return']:g}"} for row in rows)


def read_rows(path: Path = DATA) -> list[dict[str, Any]]:
    """Read what :func:`write_rows` wrote."""
    with path.open(newline="") as file:
        return [
            {**row, "run": int(row["run"]), "end": int(row["end"]), "return": float(row["return"])}
            for row in csv.DictReader(file)
        ]


def runs_from(
    rows: Sequence[Mapping[str, Any]], steps: Mapping[str, int]
) -> dict[str, dict[str, list[bamdp.Run]]]:
    """Return the runs by world and planner; rewards are paid at the ends of episodes, which is all that is drawn."""
    found: dict[str, dict[str, list[bamdp.Run]]] = {}
    keys = dict.fromkeys((row["world"], row["planner"], row["run"]) for row in rows)
    for world, planner, number in keys:
        episodes = [r for r in rows if (r["world"], r["planner"], r["run"]) == (world, planner, number)]
        rewards, ends, none = (
            np.zeros(steps[planner]),
            np.zeros(steps[planner], bool),
            np.zeros(steps[planner], int),
        )
        for episode in episodes:
            rewards[episode["end"]], ends[episode["end"]] = episode["return"], True
        one = bamdp.Run(none, none, rewards, ends, np.zeros(steps[planner]))
        found.setdefault(world, {}).setdefault(planner, []).append(one)
    return found


def draw(runs: Mapping[str, Mapping[str, Sequence[bamdp.Run]]], path: Path) -> None:
    """Draw a panel for each world."""
    with style.new_figure(1, len(runs), (4.4, 3.1)) as (figure, panels):
        for axes, (world, parts) in zip(panels, runs.items()):
            axes.set_ylim(LIMITS[world])
            axes.axhline(BEST_RETURNS[world], **style.REFERENCE_LINE)
            plot.returns(dict(parts), episodes=LAST_EPISODES, title=TITLES[world], ax=axes)
    style.save_figure(figure, path)


def table(runs: Mapping[str, Mapping[str, Sequence[bamdp.Run]]]) -> str:
    """Return the mean return of the last episodes after so many steps, in Markdown."""
    head = ["", "", *(f"{steps:,}".replace(",", " ") for steps in CHECKPOINTS)]
    lines = [head, ["---", "---", *["---:"] * len(CHECKPOINTS)]]
    for world, parts in runs.items():
        for planner, group in parts.items():
            lines.append([world, f"`{planner}`", *(_cell(group, steps) for steps in CHECKPOINTS)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(group: Sequence[bamdp.Run], steps: int) -> str:
    if steps > len(group[0].rewards):
        return ""
    values = [one.episode_returns[one.ends < steps][-LAST_EPISODES:].mean() for one in group]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.0f} ± {error:.0f}" if error >= 1 else f"{np.mean(values):.1f} ± {error:.1f}"


def quick(folder: Path) -> Path:
    """Tune, run and draw with few and short runs, in a folder of its own."""
    steps = {"dss-pi": 400, "q-learning": 1_200}
    grid = {key: values[:2] if key == "learning_rate" else values[:1] for key, values in GRID.items()}
    rows = []
    for world in WORLDS:
        tuned = tune(world, 1_000, grid, finalists=2)
        rows += rows_of(world, run(world, tuned, 2, steps))
    write_rows(rows, folder / "gym-learning.csv")
    draw(runs_from(read_rows(folder / "gym-learning.csv"), steps), folder / "gym-learning.png")
    return folder / "gym-learning.png"


def main() -> None:
    """Do what the options ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for option in ("--run", "--tune", "--quick"):
        parser.add_argument(option, action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        print(quick(ROOT / "out"))
        return
    if asked.tune:
        for world in WORLDS:
            print(world, tune(world))
        return
    if asked.run:
        write_rows([row for world in WORLDS for row in rows_of(world, run(world, TUNED[world]))], DATA)
    runs = runs_from(read_rows(), STEPS)
    draw(runs, PICTURE)
    print(table(runs))


if __name__ == "__main__":
    main()
