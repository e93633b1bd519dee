"""Sessions: what each tab watches, paced and supervised.

A session owns one worker process and one task, which decides what the worker does next: answer a question about a node
or a state, go towards a step that was asked for, play on at the chosen speed, or explain the decision at hand, in this
order. Everything that a tab should know is kept as the latest of its kind and sent when the tab is ready for it, so a
slow tab gets fewer frames and never old ones, and a reloaded tab gets everything again.

Compiled planners hold Python's lock while they think, so a thread would freeze every tab; and a process can be ended
when a planner takes too long. The process answers one request after the other through a pipe; each is bounded by
``seconds``, apart from single plans, which cannot be interrupted: for those the process is ended from outside.

Requests are tuples (verb, arguments...); answers are (kind, data) with kind ``"done"``, ``"bad"`` (the caller's fault:
a message and a field), ``"failed"``, or ``"ended"`` (out of memory: the process ends with this answer); before an
answer there may be any number of ``"note"``.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bamdp._kernels.jit import on_first_compile
from bamdp.settings import FieldError
from bamdp.studio.playback import Stage
from bamdp.studio.settings import BYTES_PER_GB, Choice, Limits

SESSION_ENDED = "this session has ended; start again"
WORKER_LOST = (
    "the process of this session has ended, perhaps for want of memory, of which it may have {memory:g} GB; start "
    "again with something smaller, or start the studio with a larger --memory"
)
OUT_OF_MEMORY = (
    "this needs more than the {memory:g} GB of memory that a session may have, and its process was ended; choose "
    "something smaller, or start the studio with a larger --memory"
)

MAX_QUESTIONS = 8  # of one session that wait for an answer
SLICE_SECONDS = 0.1  # of work between two looks at what is asked for
OPEN_LIMIT = 300.0  # seconds to open, compiling included
UNWATCHED_LIMIT = 90.0  # seconds without a tab before a session ends
PING_SECONDS = 15.0  # between two signs of life that a tab is sent
IDLE_LIMIT = 3600.0  # seconds without a command before a session ends, tab or not
LIVE_SPEED = 2.0  # steps per second up to which every decision is explained on the way


def open_stage(choice: Choice, limits: Limits) -> tuple[Stage, dict[str, Any]]:
    """Build everything, and plan once with a copy, so that compiling is over when the stage opens."""
    stage = Stage(choice.settings(limits))
    opened = {"worlds": stage.worlds(), "frames": stage.frames()}
    for run in stage.runs:
        run.agent.copy().plan(run.state)
    return stage, opened


def serve_requests(pipe: Any, limits: Limits) -> None:
    """Answer the requests that come through a pipe until it is closed, or the memory is used up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    limit_memory(limits.memory)
    stage: Any = None
    while True:
        try:
            verb, *arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            with on_first_compile(lambda: pipe.send(("note", "compiling"))):
                if verb == "open":
                    stage, answer = open_stage(arguments[0], limits)
                else:
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


# --- the line to a process -----------------------------------------------------------------------------------------


class WorkerGone(Exception):
    """The worker process has ended, or has to be; ``field`` is what in the form was the reason, if any."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


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
                raise WorkerGone(SESSION_ENDED)
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


class Refused(Exception):
    """A request that is refused, with an HTTP status."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


@dataclass
class Session:
    """What one tab watches: a worker process, and a task that decides what the worker does next."""

    choice: Choice
    limits: Limits = field(default_factory=Limits)
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    latest: dict[str, Any] = field(default_factory=dict)  # what the tab should know, by kind
    unsent: set[str] = field(default_factory=set)
    attached: bool = False
    playing: bool = False
    speed: float = 4.0  # steps per second; inf for as fast as it goes
    goal: int | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        self.seen = self.commanded = time.monotonic()
        self.changed, self.wake = asyncio.Event(), asyncio.Event()
        self._questions: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self._explained = -1  # the step whose decision was explained last
        self._t = self._known = 0
        self._at_end = self._apart = False
        self._line = WorkerLine(self.limits)
        self._task: asyncio.Task[None] | None = None

    # --- what a tab does --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin in the background."""
        self._task = asyncio.create_task(self._run())

    def command(self, verb: str, value: Any = None) -> None:
        """Take a command; what comes of it is told by events."""
        self.commanded = time.monotonic()
        if verb == "speed":
            self.speed = math.inf if value is None else float(value)
        else:
            there = self._t if self.goal is None else self.goal
            goals = {
                "play": None,
                "pause": self._t if self._apart else None,
                "step": there + 1,
                "back": max(there - 1, 0),
                "goto": value,
            }
            self.playing, self.goal = verb == "play" and not self._at_end, goals[verb]
        self._tell_frame()
        self.wake.set()

    async def ask(self, *question: Any) -> Any:
        """Ask the worker something between two slices of its work, and return its answer."""
        if self.closed or self.latest.get("status", {}).get("phase") == "failed":
            raise Refused(410, SESSION_ENDED)
        if len(self._questions) >= MAX_QUESTIONS:
            raise Refused(429, "too many questions at once; wait for an answer")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._questions.append((question, answer))
        self.wake.set()
        return await answer

    def attach(self) -> None:
        """Take note that a tab listens: it is told everything, from the beginning."""
        if self.attached and time.monotonic() - self.seen < 2 * PING_SECONDS:
            raise Refused(409, "another tab is watching this session")
        self.attached = True
        self.seen = time.monotonic()
        self.unsent = set(self.latest)
        if self.unsent:
            self.changed.set()

    def detach(self) -> None:
        """Take note that the tab has gone, perhaps to come back."""
        self.attached = False
        self.seen = time.monotonic()

    def take(self) -> list[tuple[str, Any]]:
        """Return what the tab has not been told, in the order in which it makes sense."""
        self.changed.clear()
        kinds = [kind for kind in ("status", "opened", "frame", "why") if kind in self.unsent]
        self.unsent.clear()
        return [(kind, self.latest[kind]) for kind in kinds]

    def expired(self) -> bool:
        """Return whether no tab has watched, or nobody has given a command, for too long."""
        now = time.monotonic()
        return now - self.seen > UNWATCHED_LIMIT or now - self.commanded > IDLE_LIMIT

    async def close(self) -> None:
        """End the session and its worker."""
        self.closed = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._task
        await self._line.end()
        self._refuse_questions(SESSION_ENDED)
        self.changed.set()

    # --- the task ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._open()
            due = 0.0
            while not self.closed:
                if self._questions:
                    await self._answer()
                elif self.goal is not None:
                    await self._approach(self.goal)
                elif self.playing and (wait := due - time.monotonic()) <= 0:
                    due = time.monotonic() + 1 / self.speed
                    await self._play()
                elif self._explained != self._t and (not self.playing or self.speed <= LIVE_SPEED):
                    await self._explain()
                else:
                    await self._rest(wait if self.playing else None)
        except Exception as error:  # whatever it is, the tab must hear of it
            expected = isinstance(error, WorkerGone)
            message = str(error) if expected else f"something went wrong in the studio: {error!r}"
            self.playing, self.goal = False, None
            await self._line.end()
            self._tell(
                "status", {"phase": "failed", "error": message, "field": getattr(error, "field", None)}
            )
            self._refuse_questions(message)

    async def _open(self) -> None:
        """Start the worker and build the stage."""
        self._tell("status", {"phase": "opening"})
        await self._line.start()
        answer = await self._work("open", self.choice, limit=OPEN_LIMIT)
        self._tell("opened", {"worlds": answer["worlds"], "choice": self.choice.data()})
        self._take_frames(answer)
        self._tell("status", {"phase": "ready"})

    async def _answer(self) -> None:
        question, answer = self._questions[0]  # it stays there, to be refused if the worker ends meanwhile
        kind, data = await self._request(self.limits.seconds, *question)
        del self._questions[0]
        if not answer.done():
            if kind == "done":
                answer.set_result(data)
            else:
                answer.set_exception(Refused(422 if kind == "bad" else 503, data["error"], data.get("field")))
        if kind == "ended":
            raise WorkerGone(data["error"])

    async def _approach(self, goal: int) -> None:
        if goal <= self._known:
            answer = await self._work("approach", goal, SLICE_SECONDS)
            there = answer["there"]
        else:
            answer = await self._work("advance", goal - self._t, SLICE_SECONDS)
            there = answer["frames"][0]["t"] >= goal or answer["at_end"]
        if there and self.goal == goal:
            self.goal = None
        self._take_frames(answer)

    async def _play(self) -> None:
        answer = await self._work("advance", 1_000_000 if math.isinf(self.speed) else 1, SLICE_SECONDS)
        self.playing = self.playing and not answer["at_end"]
        self._take_frames(answer)

    async def _explain(self) -> None:
        at = self._t
        lanes = [await self._work("explain", lane) for lane in range(len(self.choice.planners))]
        self._explained = at
        self._tell("why", {"t": at, "lanes": lanes})

    async def _rest(self, seconds: float | None) -> None:
        self.wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.wake.wait(), seconds)

    # --- the worker -------------------------------------------------------------------------------------------

    async def _work(self, *request: Any, limit: float | None = None) -> Any:
        """Send a request that must succeed for the session to go on, and return the answer."""
        kind, data = await self._request(limit or self.limits.seconds, *request)
        if kind != "done":
            raise WorkerGone(data["error"], data.get("field"))
        return data

    async def _request(self, limit: float, *request: Any) -> tuple[str, Any]:
        before = self.latest.get("status")
        answer = await self._line.request(
            limit, OPEN_LIMIT, request, lambda text: self._tell("status", {"phase": text})
        )
        if self.latest.get("status") is not before:
            self._tell("status", {"phase": "ready"})
        return answer

    def _refuse_questions(self, message: str) -> None:
        for _, answer in self._questions:
            if not answer.done():
                answer.set_exception(Refused(410, message))
        self._questions.clear()

    # --- what the tab is told -----------------------------------------------------------------------------------

    def _take_frames(self, answer: dict[str, Any]) -> None:
        self._t, self._known = answer["frames"][0]["t"], answer["frames"][0]["known"]
        self._at_end = bool(answer.get("at_end"))
        # one has come further on the way
        self._apart = any(frame["t"] != self._t for frame in answer["frames"])
        self.latest["frame"] = {"frames": answer["frames"]}
        self._tell_frame()

    def _tell_frame(self) -> None:
        if "frame" in self.latest:
            state = {"playing": self.playing, "goal": self.goal, "at_end": self._at_end}
            speed = None if math.isinf(self.speed) else self.speed
            self._tell("frame", {**self.latest["frame"], **state, "speed": speed})

    def _tell(self, kind: str, data: Any) -> None:
        self.latest[kind] = data
        self.unsent.add(kind)
        self.changed.set()


class Sessions:
    """All sessions that are open, up to a number, until they expire."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: dict[str, Session] = {}

    async def new(self, choice: Choice) -> Session:
        """Open one, if it is not too large; a session that no tab listens to makes room if there is none."""
        choice.check_beforehand(self.limits)
        while len(self.open) >= self.limits.sessions:  # another may have come in while one was ended
            left = [session for session in self.open.values() if not session.attached]
            if not left:
                message = f"{self.limits.sessions} tabs are open already; close one, or start the studio with a larger "
                raise Refused(503, message + "--max-sessions")
            await self.end(min(left, key=lambda session: session.seen).id)
        session = Session(choice, self.limits)
        self.open[session.id] = session
        session.start()
        return session

    def find(self, id: str) -> Session:
        """Return the session with an id; raise Refused if there is none."""
        if id not in self.open:
            raise Refused(404, "there is no such session; it may have ended")
        return self.open[id]

    async def end(self, id: str) -> None:
        """End the session with an id, if there is one."""
        session = self.open.pop(id, None)
        if session is not None:
            await session.close()

    async def end_all(self) -> None:
        """End all sessions, when the server ends."""
        for id in list(self.open):
            await self.end(id)

    async def sweep(self, every: float = 10.0) -> None:
        """End the sessions that have expired, again and again."""
        while True:
            await asyncio.sleep(every)
            for id in [id for id, session in self.open.items() if session.expired()]:
                await self.end(id)
