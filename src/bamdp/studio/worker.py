"""What one tab watches, in a process of its own, and the line to that process.

Compiled planners hold Python's lock while they think, so a thread would freeze every tab; and a process can be ended
when a planner takes too long. The process answers one request after the other through a pipe; each is bounded by
``seconds``, apart from single plans, which cannot be interrupted: for those the process is ended from outside.

Requests are tuples (verb, arguments...); answers are (kind, data) with kind ``"done"``, ``"bad"`` (the caller's fault:
a message and a field), ``"failed"``, or ``"ended"`` (out of memory: the process ends with this answer); before an
answer there may be any number of ``"note"``.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from bamdp._kernels.jit import on_first_compile
from bamdp.envs.picture import draw_world
from bamdp.settings import FieldError, Setting
from bamdp.studio.limits import BYTES_PER_GB, Limits
from bamdp.studio.playback import Playback
from bamdp.studio.settings import Choice
from bamdp.studio.view import Watcher, expectations
from bamdp.studio.why import Decision

WORKER_LOST = (
    "the process of this session has ended, perhaps for want of memory, of which it may have {memory:g} GB; start "
    "again with something smaller, or start the studio with a larger --memory"
)
OUT_OF_MEMORY = (
    "this needs more than the {memory:g} GB of memory that a session may have, and its process was ended; choose "
    "something smaller, or start the studio with a larger --memory"
)

Note = Callable[[str], None]


class Stage:
    """One or two runs in lock-step, and the decisions that are looked at."""

    def __init__(self, settings: list[Setting]) -> None:
        self.runs = [Playback(setting) for setting in settings]
        self.watchers = [Watcher(run) for run in self.runs]
        self.decisions: dict[int, Decision] = {}
        self.lead = self.runs[0]

    def worlds(self) -> list[dict[str, Any]]:
        """Return what does not change, of each run."""
        worlds = [watcher.world for watcher in self.watchers]
        return [{**world, "scene": draw_world(world).data()} for world in worlds]

    def frames(self) -> list[dict[str, Any]]:
        """Return the present step of each run."""
        return [watcher.frame() for watcher in self.watchers]

    def advance(self, steps: int, seconds: float) -> dict[str, Any]:
        """Go on in lock-step, until ``steps`` are done or the time is up; return the frames."""
        self.decisions.clear()
        begin = time.perf_counter()
        for _ in range(steps):
            least = min(run.t for run in self.runs)  # after a pause on the way back, one may be behind
            moved = [run.advance() for run in self.runs if run.t == least]
            if not all(moved) or time.perf_counter() - begin >= seconds:
                break
        return {"frames": self.frames(), "at_end": self.lead.t == self.lead.end}

    def approach(self, t: int, seconds: float) -> dict[str, Any]:
        """Go towards a recorded step; return the frames and whether it is reached."""
        self.decisions.clear()
        there = [run.approach(t, seconds / len(self.runs)) for run in self.runs]
        return {"frames": self.frames(), "there": all(there), "at_end": self.lead.t == self.lead.end}

    def explain(self, lane: int) -> dict[str, Any]:
        """Return why the next action is chosen, of one run."""
        run = self._run(lane)
        if run.t == run.end:
            return {"t": run.t, "over": True}
        self.decisions[lane] = Decision(run)
        return self.decisions[lane].data()

    def node(self, lane: int, t: int, node: int) -> dict[str, Any]:
        """Return the details of a node of the tree that was last explained."""
        decision = self.decisions.get(lane)
        if decision is None or decision.t != t or decision.plan.tree is None:
            raise FieldError("node", "this tree is no longer there: the run has moved on")
        if node >= len(decision.plan.tree):
            raise FieldError("node", f"node must be in 0..{len(decision.plan.tree) - 1}, got {node}")
        return decision.detail(node)

    def state(self, lane: int, state: int) -> dict[str, Any]:
        """Return what is expected in any state."""
        run = self._run(lane)
        if not 0 <= state < run.env.n_states:
            raise FieldError("state", f"state must be in 0..{run.env.n_states - 1}, got {state}")
        return {
            "state": state,
            "label": run.looks.state_label(state),
            "expects": expectations(run, state),
        }

    def _run(self, lane: int) -> Playback:
        if not 0 <= lane < len(self.runs):
            raise FieldError("lane", f"lane must be in 0..{len(self.runs) - 1}, got {lane}")
        return self.runs[lane]


def open_stage(choice: Choice, limits: Limits, note: Note) -> tuple[Stage, dict[str, Any]]:
    """Build everything, and plan once with a copy, so that compiling is over when the stage opens."""
    stage = Stage(choice.settings(limits))
    with on_first_compile(lambda: note("compiling")):
        opened = {"worlds": stage.worlds(), "frames": stage.frames()}
        for run in stage.runs:
            run.agent.copy().plan(run.state)
    return stage, opened


def serve_requests(pipe: Any, limits: Limits) -> None:
    """Answer the requests that come through a pipe until it is closed, or the memory is used up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    limit_memory(limits.memory)
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
                stage, answer = open_stage(arguments[0], limits, note)
            else:
                assert stage is not None
                with on_first_compile(lambda: note("compiling")):
                    answer = getattr(stage, verb)(*arguments)
            pipe.send(("done", answer))
        except FieldError as error:
            pipe.send(("bad", {"field": error.field, "error": str(error)}))
        except BrokenPipeError:
            return
        except MemoryError:
            stage = None  # so that there is room for the answer
            pipe.send(("ended", {"error": OUT_OF_MEMORY.format(memory=limits.memory)}))
            return
        except Exception as error:  # also what we did not think of: the tab should hear of it
            expected = isinstance(error, (ValueError, TypeError, RuntimeError, OSError))
            message = " ".join(str(error).split()) if expected else f"something went wrong: {error!r}"
            pipe.send(("failed", {"error": message or type(error).__name__}))


def limit_memory(memory: float) -> None:
    """Let this process have ``memory`` GB of its own, where the system can be told so.

    Address space as such is not limited: compiler and libraries reserve much that they never use.
    """
    if os.name == "posix":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = int(memory * BYTES_PER_GB)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


# --- the line to it ---------------------------------------------------------------------------------------------


class WorkerGone(Exception):
    """The worker process has ended, or had to be ended."""


class WorkerLine:
    """The server's side: one worker process, a pipe to it, and a thread that waits so that nobody else has to."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._thread = ThreadPoolExecutor(1)
        self._starting = threading.Lock()
        self._process: Any = None
        self._pipe: Any = None
        self._ended = False

    async def start(self) -> None:
        """Start the process. It is spawned, not forked: threads and locks do not survive forks."""
        await self._wait_for(self._start)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        with self._starting:
            if self._ended:
                raise WorkerGone("this session has ended; start again")
            self._pipe, far = context.Pipe()
            self._process = context.Process(target=serve_requests, args=(far, self._limits), daemon=True)
            self._process.start()
            far.close()

    async def request(
        self, limit: float, compiling: float, request: tuple[Any, ...], note: Callable[[str], None]
    ) -> tuple[str, Any]:
        """Send a request and wait for the answer for ``limit`` seconds, or ``compiling`` seconds once it compiles."""
        try:
            await self._wait_for(self._pipe.send, request)
            end = time.monotonic() + limit
            while True:
                if not await self._wait_for(self._pipe.poll, max(end - time.monotonic(), 0.0)):
                    raise WorkerGone(
                        f"the planner took more than {limit:g} seconds for one answer and was stopped; give it less to "
                        "do (fewer simulations, policies, samples or steps)"
                    )
                kind, data = await self._wait_for(self._pipe.recv)
                if kind != "note":
                    return kind, data
                end = time.monotonic() + compiling
                note(data)
        except (EOFError, OSError) as error:
            raise WorkerGone(WORKER_LOST.format(memory=self._limits.memory)) from error

    async def end(self) -> None:
        """End the process, whatever it is doing, and give back what belongs to it."""
        if not self._ended:
            self._ended = True
            await asyncio.to_thread(self._end)

    def _end(self) -> None:
        with self._starting:  # one that is being started is ended as soon as it has a number
            process, self._process = self._process, None
        if process is not None and process.pid is not None:
            process.kill()
            process.join(5.0)
            with suppress(ValueError):  # the system may take longer to end it; it is forgotten all the same
                process.close()
        self._thread.shutdown()  # what waited for the process has heard of its end
        if self._pipe is not None:
            self._pipe.close()

    async def _wait_for(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
