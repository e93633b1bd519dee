"""A unit of work: one run of a study, and what comes of it.

The time limit. A configuration keeps a limit of L seconds a step if its mean processor time a step, of planning and
learning, compiling not in it, is at most L. A run is stopped as soon as it cannot keep it any more, when it has used up
L for each of its T steps; or earlier, if after 20 steps or more the mean is above 2 L. It is then recorded as over the
limit. A single step is never interrupted.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import bamdp
from bamdp.agent import Agent, Run, Step
from bamdp.envs import Environment
from bamdp.lab.identity import (
    Facts,
    agent_stream,
    canonical,
    digest,
    environment_stream,
    run_identity,
    setting_facts,
)
from bamdp.lab.traces import encode
from bamdp.processes import Progress
from bamdp.runs import play, warm_up
from bamdp.settings import Setting

DONE, FAILED, OVER = STATUSES = ("done", "failed", "over")
PATIENCE = 20  # steps before a run can be stopped for its mean time
BY_FAR = 2.0  # times the limit


@dataclass(frozen=True)
class Unit:
    """One run."""

    id: str
    setting: Setting
    facts: Facts  # of the setting
    setting_id: str  # their digest: the same for all replicates and phases
    phase: str
    replicate: int
    limit: float  # seconds a step


@dataclass(frozen=True)
class Outcome:
    """What came of a run: done, failed, or over the limit."""

    status: str
    steps: int = 0  # that were taken
    total: float = 0.0
    ms_per_step: float = 0.0
    cpu_seconds: float = 0.0
    trace: bytes = b""
    error: str = ""  # a line
    limit: float = 0.0  # under which it was run
    reproducible: bool = True
    machine: str = ""  # where, as JSON
    version: str = ""  # of bamdp


def units_of(setting: Setting, phase: str, replicates: range, limit: float) -> list[Unit]:
    """The replicates of a setting."""
    facts = setting_facts(setting)
    name = digest(facts)
    return [Unit(run_identity(name, phase, r), setting, facts, name, phase, r, limit) for r in replicates]


def work(unit: Unit, tick: Progress) -> Outcome:
    """Do it. An error of the planner is an outcome, too."""
    common: dict[str, Any] = {
        "limit": unit.limit,
        "machine": machine_facts(),
        "version": bamdp.__version__,
    }
    watch = _Watch(unit.limit, unit.setting.steps)
    told = 0

    def count(n: int) -> None:
        nonlocal told
        told += n
        tick(n)

    try:
        reproducible = warm_up(unit.setting)
        seeds = environment_stream(unit.facts, unit.phase, unit.replicate), agent_stream(unit.id)
        run = play(unit.setting, *seeds, count, callbacks=[watch])
    except Exception as error:
        notes = getattr(error, "__notes__", ())  # how far it came
        line = " ".join(" ".join([f"{type(error).__name__}: {error}", *notes]).split())
        return Outcome(FAILED, error=line, **common)
    finally:
        tick(unit.setting.steps - told)  # steps that will never be done are not waited for
    if watch.over:
        return Outcome(OVER, error=_over(unit, run), **_figures(run), **common)
    return Outcome(DONE, trace=encode(run.rewards), reproducible=reproducible, **_figures(run), **common)


class _Watch:
    """Ends a run that is over its limit."""

    def __init__(self, limit: float, steps: int) -> None:
        self.limit, self.steps = limit, steps
        self.spent = 0.0
        self.over = False

    def __call__(self, agent: Agent, env: Environment, step: Step) -> bool:
        if step.t == 0:  # it may have loaded code; it is not in ms_per_step either
            return True
        self.spent += step.seconds
        hopeless = self.spent > self.limit * self.steps
        by_far = step.t >= PATIENCE and self.spent > BY_FAR * self.limit * step.t
        self.over = (hopeless or by_far) and step.t + 1 < self.steps
        return not self.over


def _figures(run: Run) -> dict[str, Any]:
    return {
        "steps": len(run.rewards),
        "total": run.total_reward,
        "ms_per_step": run.ms_per_step,
        "cpu_seconds": run.seconds,
    }


def _over(unit: Unit, run: Run) -> str:
    return (
        f"over the limit of {unit.limit:g} s/step: stopped after {len(run.rewards)} of {unit.setting.steps} steps at "
        f"{run.ms_per_step / 1e3:.3g} s/step"
    )


@lru_cache(maxsize=1)
def machine_facts() -> str:
    """Of the machine that this process runs on, as canonical JSON."""
    import numba

    return canonical(
        {
            "machine": platform.machine(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
        }
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(named, platform.processor())
    except OSError:
        return platform.processor()
