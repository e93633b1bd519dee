"""What one tab watches, in a process of its own.

Compiled planners hold Python's lock while they think, so a thread would freeze every tab; and a process can be ended
when a planner takes too long. The process answers one request after the other through a pipe; each is bounded by
``seconds``, apart from single plans, which cannot be interrupted: for those the process is ended from outside.

Requests are tuples (verb, arguments...); answers are (kind, data) with kind ``"done"``, ``"bad"`` (the caller's fault:
a message and a field) or ``"failed"``; before an answer there may be any number of ``"note"``.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from bamdp._kernels.jit import on_first_compile
from bamdp.settings import FieldError, Setting
from bamdp.studio.playback import Playback
from bamdp.studio.settings import Choice
from bamdp.studio.view import Watcher, expectations, world
from bamdp.studio.why import Decision
from bamdp.studio.world_svg import scene

MEMORY = 16 << 30  # bytes of address space, of which compiler and libraries reserve some without using them

Note = Callable[[str], None]


class Stage:
    """One or two runs in lock-step, and the decisions that are looked at."""

    def __init__(self, settings: list[Setting]) -> None:
        self.runs = [Playback(setting) for setting in settings]
        self.watchers = [Watcher(run) for run in self.runs]
        self.decisions: dict[int, Decision] = {}
        self.lead = self.runs[0]

    def worlds(self) -> list[dict[str, Any]]:
        """What does not change, of each run."""
        found = []
        for run in self.runs:
            data = world(run.env, run.setting.discount, run.end)
            found.append({**data, "scene": scene(data).data()})
        return found

    def frames(self) -> list[dict[str, Any]]:
        """The present step of each run."""
        return [watcher.frame() for watcher in self.watchers]

    def advance(self, steps: int, seconds: float) -> dict[str, Any]:
        """Go on in lock-step, until ``steps`` are done or the time is up."""
        self.decisions.clear()
        begin = time.perf_counter()
        for _ in range(steps):
            least = min(run.t for run in self.runs)  # after a pause on the way back, one may be behind
            moved = [run.advance() for run in self.runs if run.t == least]
            if not all(moved) or time.perf_counter() - begin >= seconds:
                break
        return {"frames": self.frames(), "at_end": self.lead.t == self.lead.end}

    def approach(self, t: int, seconds: float) -> dict[str, Any]:
        """Go back, or on within what was done already."""
        self.decisions.clear()
        there = [run.approach(t, seconds / len(self.runs)) for run in self.runs]
        return {"frames": self.frames(), "there": all(there), "at_end": self.lead.t == self.lead.end}

    def explain(self, lane: int) -> dict[str, Any]:
        """Why this action, of one run."""
        run = self._run(lane)
        if run.t == run.end:
            return {"t": run.t, "over": True}
        self.decisions[lane] = Decision(run)
        return self.decisions[lane].data()

    def node(self, lane: int, t: int, node: int) -> dict[str, Any]:
        """A node of the tree that was last explained."""
        decision = self.decisions.get(lane)
        if decision is None or decision.t != t or decision.plan.tree is None:
            raise FieldError("node", "this tree is no longer there: the run has moved on")
        if node >= len(decision.plan.tree):
            raise FieldError("node", f"node must be in 0..{len(decision.plan.tree) - 1}, got {node}")
        return decision.detail(node)

    def state(self, lane: int, state: int) -> dict[str, Any]:
        """What is expected in any state."""
        run = self._run(lane)
        if not 0 <= state < run.env.n_states:
            raise FieldError("state", f"state must be in 0..{run.env.n_states - 1}, got {state}")
        return {
            "state": state,
            "label": run.env.state_label(state),
            "expects": expectations(run.agent.belief, state, run.visits),
        }

    def _run(self, lane: int) -> Playback:
        if not 0 <= lane < len(self.runs):
            raise FieldError("lane", f"lane must be in 0..{len(self.runs) - 1}, got {lane}")
        return self.runs[lane]


def open_stage(choice: Choice, note: Note) -> tuple[Stage, dict[str, Any]]:
    """Build everything, and take a step with a copy, so that compiling is over when the stage opens."""
    stage = Stage(choice.settings())
    with on_first_compile(lambda: note("compiling")):
        opened = {"worlds": stage.worlds(), "frames": stage.frames()}
        for run in stage.runs:
            run.agent.copy().plan(run.state)
    return stage, opened


def serve(pipe: Any) -> None:
    """Answer until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    _limit_memory()
    stage: Stage | None = None

    def note(text: str) -> None:
        pipe.send(("note", text))

    while True:
        try:
            verb, *arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            if verb == "open":
                stage, answer = open_stage(arguments[0], note)
            else:
                assert stage is not None
                with on_first_compile(lambda: note("compiling")):
                    answer = getattr(stage, verb)(*arguments)
            pipe.send(("done", answer))
        except FieldError as error:
            pipe.send(("bad", {"field": error.field, "error": str(error)}))
        except BrokenPipeError:
            return
        except Exception as error:  # also what we did not think of: the tab should hear of it
            expected = isinstance(error, (ValueError, TypeError, RuntimeError, MemoryError, OSError))
            message = " ".join(str(error).split()) if expected else f"something went wrong: {error!r}"
            pipe.send(("failed", {"error": message or type(error).__name__}))


def _limit_memory() -> None:
    if os.name == "posix":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY if hard < 0 else min(MEMORY, hard), hard))
