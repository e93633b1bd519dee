"""How long planning will take, said before it begins where that is long.

The estimate counts the steps that a planner simulates and the models that it solves
(:mod:`bamdp.planners.shared.tree_sizes`), and multiplies by what one of each takes on an ordinary machine. It is right
within a factor of ten or so, which is enough to tell a second from a year.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bamdp import planners
from bamdp.cli import console
from bamdp.envs import World, make_world
from bamdp.planners import Planner
from bamdp.planners.shared import tree_sizes
from bamdp.planners.shared.tree_search import TreeSearch, auto_depth
from bamdp.settings import Setting

if TYPE_CHECKING:
    from bamdp.lab.study import Study

LOOP_SECONDS = 1e-5  # of a real step, beside planning
STEP_SECONDS = 25e-9  # of a simulated step
OUTCOME_SECONDS = 3e-6  # of a step in a tree of outcomes, whose values are bounded or sampled on the way
PAIR_SECONDS = 250e-9  # of drawing and solving a model, for each pair of state and action
SWEEP_SECONDS = 15e-9  # of a sweep of backward induction, for each pair
LONG_STEP = 10.0  # seconds from which on a note is printed
LONG_WORK = 3600.0  # the same, for all steps of all runs
MOST_CONFIGURATIONS = 100
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "year": 365.25 * 86400.0}


def tell_waiting(setting: Setting, env: World, label: str, runs: int = 1, steps: int | None = None) -> None:
    """Print a note if a step, or all of ``runs`` times ``steps``, will take long."""
    step = planning_seconds(setting.planner, env.n_states, env.n_actions, setting.discount)
    _tell(f"a step of {label}", step + LOOP_SECONDS, runs * (setting.steps if steps is None else steps))


def tell_waiting_for_study(study: Study) -> None:
    """Print a note for each algorithm whose runs will take long; of many configurations, a hundred are looked at."""
    for cell in study.cells:
        env, chosen = make_world(cell.environment.env), cell.configurations
        some = [*chosen[:: max(1, len(chosen) // MOST_CONFIGURATIONS)], chosen[-1]]
        settings = [cell.setting(configuration) for configuration in some]
        slowest = max(
            settings,
            key=lambda one: planning_seconds(one.planner, env.n_states, env.n_actions, one.discount),
        )
        tell_waiting(slowest, env, cell.algorithm, max(1, cell.runs))


def tell_waiting_for_sweeps(env: World, steps: int) -> None:
    """Print a note if totals over so many steps will take long to compute."""
    _tell(
        "each step of the totals", 3 * len(env.worlds) * SWEEP_SECONDS * env.n_states * env.n_actions, steps
    )


def planning_seconds(planner: Planner, n_states: int, n_actions: int, discount: float) -> float:
    """Return about how long a planner takes to choose one action; infinite if that cannot even be counted."""
    solve = PAIR_SECONDS * n_states * n_actions  # one model
    try:
        match planner:
            case planners.DSS():
                sizes = planner.n_policies, planner.n_samples, planner.n_steps, planner.n_stages
                tree = tree_sizes.dss_calls(*sizes)
                return float(tree.calls) * STEP_SECONDS + float(tree.policies) * solve
            case planners.FHTS():  # it gives up at so many hyper-states
                few = n_states * n_actions * planner.horizon < tree_sizes.MOST_DIGITS
                most = planner.max_hyper_states
                histories = tree_sizes.fhts_histories(n_states, n_actions, planner.horizon) if few else most
                return float(min(histories, most)) * STEP_SECONDS
            case planners.SparseSampling():
                calls = tree_sizes.sparse_sampling_calls(n_actions, planner.width, planner.depth)
                return float(calls) * STEP_SECONDS
            case TreeSearch():
                if planner.time_limit is not None:
                    return planner.time_limit
                depth = auto_depth(discount) if isinstance(planner.depth, str) else planner.depth
                return float(tree_sizes.bamcp_calls(planner.n_simulations, depth)) * STEP_SECONDS
            case planners.BFS3() | planners.BayesianSparseSampling():
                return solve + float(planner.n_trajectories) * planner.depth * OUTCOME_SECONDS
            case _ if not getattr(planner, "uses_prior", True):  # it learns values, and solves nothing
                return STEP_SECONDS
            case _:
                return float(getattr(planner, "n_models", 1)) * solve
    except (ValueError, OverflowError):  # too many digits, or more than the largest float
        return math.inf


def _tell(what: str, step: float, n_steps: int) -> None:
    if step <= LONG_STEP and step * n_steps <= LONG_WORK:
        return
    whole = f", and all {n_steps} of them about {_in_words(step * n_steps)}" if n_steps > 1 else ""
    console.note(f"note: {what} takes about {_in_words(step)}{whole}; Ctrl-C ends it")


def _in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that fits, with one or two digits."""
    years = seconds / UNITS["year"]
    if years >= 1e4:
        return f"10^{math.log10(years):.0f} years" if math.isfinite(years) else "10^300 years or more"
    unit = max((name for name in UNITS if seconds >= UNITS[name]), key=UNITS.__getitem__, default="second")
    number = f"{seconds / UNITS[unit]:.2g}" if seconds < 99 * UNITS[unit] else f"{seconds / UNITS[unit]:.0f}"
    return f"{number} {unit}{'' if number == '1' else 's'}"
