"""Long work: a note says how long it will take before it begins, and Ctrl-C ends it at once.

Python handles a signal between two of its instructions, and a compiled planner may run for years without one. So a
thread watches, in compiled code of its own, which needs no turn of Python's: Python's C code writes the number of a
signal into a pipe as soon as it comes, and the handler answers there as soon as it has its turn. If there is no answer
within half a second, the thread ends the process with exit status 130. Stores of runs stand that at any moment.
"""

from __future__ import annotations

import math
import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from bamdp._kernels.watching import ANSWER, CLOSE, compiled_watch
from bamdp.cli import console
from bamdp.envs.environment import Environment, World
from bamdp.envs.registry import make_world
from bamdp.settings import Setting

if TYPE_CHECKING:
    from bamdp.lab.study import Study

LOOP_SECONDS = 1e-5  # of a real step, beside planning
SWEEP_SECONDS = 15e-9  # of a sweep of backward induction, for each pair
LONG_STEP = 10.0  # seconds from which on a note is printed
LONG_WORK = 3600.0  # the same, for all steps of all runs
MOST_CONFIGURATIONS = 100
TIME_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "year": 365.25 * 86400.0}

compiled_once = cache(compiled_watch)


def tell_waiting(setting: Setting, env: World, label: str, runs: int = 1, steps: int | None = None) -> None:
    """Print a note if a step, or all of ``runs`` times ``steps``, will take long."""
    step = setting.planner.cost(env.n_states, env.n_actions, setting.first_discount).seconds
    _tell(f"a step of {label}", step + LOOP_SECONDS, runs * (setting.steps if steps is None else steps))


def tell_waiting_for_study(study: Study) -> None:
    """Print a note for each algorithm whose runs will take long; of many configurations, a hundred are looked at."""
    for cell in study.cells:
        env, chosen = make_world(cell.environment.env), cell.configurations
        some = [*chosen[:: max(1, len(chosen) // MOST_CONFIGURATIONS)], chosen[-1]]
        settings = [cell.setting(configuration) for configuration in some]
        slowest = max(
            settings,
            key=lambda one: one.planner.cost(env.n_states, env.n_actions, one.first_discount).seconds,
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
    console.remark(f"{what} takes about {_in_words(step)}{whole}; Ctrl-C ends it")


def _in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that fits, with one or two digits."""
    years = seconds / TIME_UNITS["year"]
    if years >= 1e4:
        return f"10^{math.log10(years):.0f} years" if math.isfinite(years) else "10^300 years or more"
    unit = next((name for name in reversed(TIME_UNITS) if seconds >= TIME_UNITS[name]), "second")
    amount = seconds / TIME_UNITS[unit]
    number = f"{amount:.2g}" if amount < 99 else f"{amount:.0f}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


@contextmanager
def ctrl_c_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process although compiled code is at work in the block."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    watch = compiled_once() if usual and main and hasattr(select, "poll") else None
    if watch is None:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    request = np.frombuffer(struct.pack("ihh", reading, select.POLLIN, 0), np.uint8).copy()
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides it
    message = np.frombuffer(f"{show_cursor}stopped\n".encode(), np.uint8).copy()
    arguments = reading, np.zeros(1, np.uint8), request, message
    watcher = threading.Thread(target=watch, args=arguments, name="ctrl-c", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def answer(number: int, frame: FrameType | None) -> None:
        os.write(writing, bytes([ANSWER]))
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.write(writing, bytes([CLOSE]))
        watcher.join()
        os.close(reading)
        os.close(writing)
