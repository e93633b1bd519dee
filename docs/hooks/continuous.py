"""Tables of docs/continuous-evidence.md, made of docs/data/continuous.csv, continuous-gain.csv and continuous-bins.csv.

``::: continuous steps`` is how many real steps each planner takes in each task; ``::: continuous gain`` the loss in the
scalar system; ``::: continuous ablations`` what changes if a part is left out; ``::: continuous seeds`` every seed; and
``::: continuous bins`` what finite planners earn after binning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas

DATA = Path(__file__).resolve().parent.parent / "data"
LINE = re.compile(r"^::: continuous (\w+)$", flags=re.M)
TASKS = {
    "pendulum": "Pendulum",
    "pendulum-learned": "Pendulum, nothing told",
    "cart-pole": "TIP's cart-pole",
    "mountain-car": "MountainCarContinuous",
    "sparse-pendulum": "sparse pendulum",
    "gain": "unknown gain",
}
ORDER = ("mean", "thompson", "open-loop", "dss")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return LINE.sub(lambda found: TABLES[found[1]](), markdown)


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [list(header), *rows]
    if len(lines) == 1:
        return "*No runs are stored.*"
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def read() -> pandas.DataFrame:
    """Return all runs, with tasks and planners in their order."""
    columns = ["task", "planner", "variant", "seed", "solved", "steps", "returns", "loss", "ms"]
    found = [DATA / name for name in ("continuous.csv", "continuous-gain.csv") if (DATA / name).exists()]
    runs = pandas.concat(
        [pandas.DataFrame(columns=columns), *(pandas.read_csv(path, keep_default_na=False) for path in found)]
    ).drop_duplicates(["task", "planner", "variant", "seed"])
    runs["task"] = pandas.Categorical(runs["task"], list(TASKS))
    runs["planner"] = pandas.Categorical(runs["planner"], ORDER)
    return runs.sort_values(["task", "planner", "variant", "seed"])


def groups(runs: pandas.DataFrame) -> Any:
    """Return the runs of each task, planner and variant."""
    return runs.groupby(["task", "planner", "variant"], observed=True)


def quartiles(steps: pandas.Series) -> str:
    """Return the median and the quartiles."""
    low, middle, high = np.percentile(steps, [25, 50, 75])
    return f"{middle:.0f} ({low:.0f}–{high:.0f})"


def mean_error(values: Iterable[float], form: str = ".2f") -> str:
    """Return a mean with its standard error."""
    array = np.array([float(value) for value in values])
    if len(array) == 1:
        return f"{array[0]:{form}}"
    return f"{array.mean():{form}} ± {array.std(ddof=1) / np.sqrt(len(array)):{form}}"


def episode(returns: pandas.Series, number: int) -> str:
    """Return the mean return of an episode, where all runs have completed it."""
    values = [text.split() for text in returns.astype(str)]
    if any(len(value) < number for value in values):
        return ""
    return mean_error([value[number - 1] for value in values], ".0f")


def steps_table() -> str:
    """Return a table: real steps until a task is solved, and what is earned on the way."""
    runs = read()
    rows = []
    for (task, planner, _), part in groups(runs[(runs["variant"] == "") & (runs["task"] != "gain")]):
        solved = f"{part['solved'].sum()} of {len(part)}"
        first, second = episode(part["returns"], 1), episode(part["returns"], 2)
        rows.append(
            [
                TASKS[task],
                planner,
                solved,
                quartiles(part["steps"]),
                first,
                second,
                f"{part['ms'].mean():.0f}",
            ]
        )
    header = (
        "task",
        "planner",
        "solved",
        "real steps, median (quartiles)",
        "first episode",
        "second episode",
        "ms per decision",
    )
    return table(header, rows)


def gain_table() -> str:
    """Return a table: losses in the scalar system."""
    runs = read()
    runs = runs[(runs["task"] == "gain") & (runs["variant"] == "")]
    rows = [
        [planner, len(part), mean_error(part["loss"]), f"{part['ms'].mean():.0f}"]
        for (_, planner, _), part in groups(runs)
    ]
    return table(("planner", "runs", "loss against the optimal policy", "ms per decision"), rows)


def ablation_table() -> str:
    """Return a table: what changes with one part."""
    runs = read()
    pairs = runs[runs["variant"] != ""][["task", "planner"]].drop_duplicates()
    rows = []
    for (task, planner, variant), part in groups(runs.merge(pairs)):
        result = mean_error(part["loss"]) if task == "gain" else quartiles(part["steps"])
        solved = "" if task == "gain" else f"{part['solved'].sum()} of {len(part)}"
        rows.append([TASKS[task], planner, f"`{variant}`" if variant else "as it is", solved, result])
    return table(("task", "planner", "changed", "solved", "real steps, or loss"), rows)


def seeds_table() -> str:
    """Return a table: the real steps of every seed."""
    runs = read()
    rows = []
    for (task, planner, _), part in groups(runs[(runs["variant"] == "") & (runs["task"] != "gain")]):
        steps = [str(n) if solved else f"({n})" for n, solved in zip(part["steps"], part["solved"])]
        rows.append([TASKS[task], planner, " ".join(steps)])
    return table(("task", "planner", "real steps of each seed; (400): not solved"), rows)


def bins_table() -> str:
    """Return a table: what finite planners earn after binning."""
    runs = pandas.read_csv(DATA / "continuous-bins.csv")
    runs = runs.sort_values(["task", "states", "planner"], ascending=[False, True, False])
    rows = []
    for (task, states, planner), part in runs.groupby(["task", "states", "planner"], sort=False):
        solved = part["solved after"].dropna()
        when = ", ".join(f"{n:,.0f}" for n in solved) or "never"
        rows.append(
            [
                task,
                f"{part['bins'].iloc[0].replace('x', ' × ')} = {states}",
                planner,
                f"{part['last ten'].mean():.0f}"
                if task.startswith("Pend")
                else f"{part['last ten'].mean():.1f}",
                f"{len(solved)} of {len(part)}" + (f" ({when})" if len(solved) else ""),
            ]
        )
    header = ("system", "bins = states", "planner", "return, last ten episodes", "ever solved (after steps)")
    return table(header, rows)


TABLES = {
    "steps": steps_table,
    "gain": gain_table,
    "ablations": ablation_table,
    "seeds": seeds_table,
    "bins": bins_table,
}
