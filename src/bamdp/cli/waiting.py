"""How long planning will take, said before it begins where that is long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bamdp.cli import console
from bamdp.envs import Environment, World, make_world
from bamdp.planning_time import planning_seconds
from bamdp.settings import Setting

if TYPE_CHECKING:
    from bamdp.lab.study import Study

LOOP_SECONDS = 1e-5  # of a real step, beside planning
SWEEP_SECONDS = 15e-9  # of a sweep of backward induction, for each pair
LONG_STEP = 10.0  # seconds from which on a note is printed
LONG_WORK = 3600.0  # the same, for all steps of all runs
MOST_CONFIGURATIONS = 100
TIME_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "year": 365.25 * 86400.0}


def tell_waiting(setting: Setting, env: World, label: str, runs: int = 1, steps: int | None = None) -> None:
    """Print a note if a step, or all of ``runs`` times ``steps``, will take long."""
    step = planning_seconds(setting.planner, env.n_states, env.n_actions, setting.first_discount)
    _tell(f"a step of {label}", step + LOOP_SECONDS, runs * (setting.steps if steps is None else steps))


def tell_waiting_for_study(study: Study) -> None:
    """Print a note for each algorithm whose runs will take long; of many configurations, a hundred are looked at."""
    for cell in study.cells:
        env, chosen = make_world(cell.environment.env), cell.configurations
        some = [*chosen[:: max(1, len(chosen) // MOST_CONFIGURATIONS)], chosen[-1]]
        settings = [cell.setting(configuration) for configuration in some]
        slowest = max(
            settings,
            key=lambda one: planning_seconds(one.planner, env.n_states, env.n_actions, one.first_discount),
        )
        tell_waiting(slowest, env, cell.algorithm, max(1, cell.runs))


def tell_waiting_for_sweeps(env: Environment, steps: int) -> None:
    """Print a note if totals over so many steps will take long to compute."""
    _tell(
        "each step of the totals",
        3 * len(env.reference_worlds) * SWEEP_SECONDS * env.n_states * env.n_actions,
        steps,
    )


def _tell(what: str, step: float, n_steps: int) -> None:
    if step <= LONG_STEP and step * n_steps <= LONG_WORK:
        return
    whole = f", and all {n_steps} of them about {_in_words(step * n_steps)}" if n_steps > 1 else ""
    console.note(f"note: {what} takes about {_in_words(step)}{whole}; Ctrl-C ends it")


def _in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that fits, with one or two digits."""
    years = seconds / TIME_UNITS["year"]
    if years >= 1e4:
        return f"10^{math.log10(years):.0f} years" if math.isfinite(years) else "10^300 years or more"
    unit = max(
        (name for name in TIME_UNITS if seconds >= TIME_UNITS[name]),
        key=TIME_UNITS.__getitem__,
        default="second",
    )
    number = (
        f"{seconds / TIME_UNITS[unit]:.2g}"
        if seconds < 99 * TIME_UNITS[unit]
        else f"{seconds / TIME_UNITS[unit]:.0f}"
    )
    return f"{number} {unit}{'' if number == '1' else 's'}"
