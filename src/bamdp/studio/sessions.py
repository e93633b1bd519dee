"""Sessions that control and supervise the runs watched in each tab.

A session owns one worker process and one task that schedules its work: moving to a requested step, playing at the
selected speed, or explaining the next decision. For each kind of event, the session keeps the latest event and sends
it when the tab is ready. A slow tab thus skips frames instead of falling behind, and a reloaded tab receives
everything again.

Workers are processes because compiled planners hold the GIL while planning, so threads would freeze every tab. A
process can also be killed if a planner takes too long. Requests are tuples (verb, arguments...) that name methods of a
:class:`~bamdp.studio.playback.Stage`. Answers are (kind, data) with kind ``"done"`` or ``"failed"``, preceded by any
number of ``"note"`` answers.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import secrets
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException

from bamdp import _checks
from bamdp._kernels.jit import on_first_compile
from bamdp.studio.playback import MOST_STEPS, Choice, Limits, Stage

SLICE_SECONDS = 0.1  # of work between checks for new requests
OPEN_LIMIT = 300.0  # seconds allowed for opening, including compilation
UNWATCHED_LIMIT = 90.0  # seconds without a tab before a session ends
PING_SECONDS = 15.0  # between keep-alive messages to a tab
LIVE_SPEED = 2.0  # steps per second up to which every decision is explained during playback


def serve_requests(pipe: Any, choice: Choice, limits: Limits) -> None:
    """Answer requests from a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the server, which stops this process
    stage: Stage | None = None
    with suppress(EOFError, OSError):  # the server has exited
        while True:
            verb, *arguments = pipe.recv()
            try:
                with on_first_compile(lambda: pipe.send(("note", "compiling"))):
                    stage = stage or Stage(choice.settings(limits))
                    answer = getattr(stage, verb)(*arguments)
                pipe.send(("done", answer))
            except Exception as error:  # report any error to the tab
                expected = isinstance(error, (ValueError, TypeError, RuntimeError, OSError))
                message = _checks.error_line(error) if expected else f"something went wrong: {error!r}"
                pipe.send(("failed", message))


class WorkerFailed(Exception):
    """The worker failed to complete a request, or has exited."""


class Worker:
    """Server side of one worker process: a pipe, and a thread that waits for answers."""

    def __init__(self, choice: Choice, limits: Limits) -> None:
        context = multiprocessing.get_context("spawn")  # fork is unsafe with threads and locks
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=serve_requests, args=(far, choice, limits), daemon=True)
        self._process.start()
        far.close()
        self._thread = ThreadPoolExecutor(1)

    async def request(self, limit: float, request: tuple[Any, ...], note: Callable[[str], None]) -> Any:
        """Send a request and return the answer; ``limit`` in seconds is extended once the worker starts compiling."""
        run = asyncio.get_running_loop().run_in_executor
        try:
            await run(self._thread, self._pipe.send, request)
            while await run(self._thread, self._pipe.poll, limit):
                kind, data = await run(self._thread, self._pipe.recv)
                if kind == "done":
                    return data
                if kind == "failed":
                    raise WorkerFailed(data)
                note(data)
                limit = OPEN_LIMIT
        except (EOFError, OSError) as error:
            raise WorkerFailed(
                "the process of this session has ended, perhaps for want of memory; start again with something smaller"
            ) from error
        await self.end()
        raise WorkerFailed(
            f"the planner took more than {limit:g} seconds for one answer and was stopped; give it less to do (fewer "
            "simulations, policies, samples or steps)"
        )

    async def end(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        await asyncio.to_thread(self._process.join, 5.0)
        self._thread.shutdown()  # everyone waiting for the process has been notified
        self._pipe.close()


class Session:
    """Session of one tab: a worker process, and the task that schedules its work."""

    def __init__(self, choice: Choice, limits: Limits) -> None:
        self.id = secrets.token_urlsafe(12)
        self.choice, self.limits = choice, limits
        self.latest: dict[str, Any] = {}  # latest event of each kind
        self.unsent: set[str] = set()
        self.attached = self.playing = self.closed = self._at_end = False
        self.speed = 4.0  # steps per second; inf means as fast as possible
        self.goal: int | None = None  # target step
        self.seen = time.monotonic()
        self.changed, self._wake, self._turn = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._t, self._explained = 0, -1  # current step, and the step last explained
        self._worker = Worker(choice, limits)
        self._task = asyncio.create_task(self._run())

    # --- requests from the tab --------------------------------------------------------------------------------

    def command(self, verb: str, value: float | None = None) -> None:
        """Accept a command; its effect is reported through events."""
        if verb == "speed":
            self.speed = math.inf if value is None else max(value, 0.1)
        else:
            there = self._t if self.goal is None else self.goal
            goals = {"pause": self._t, "step": there + 1, "back": max(there - 1, 0), "goto": int(value or 0)}
            self.playing, self.goal = verb == "play" and not self._at_end, goals.get(verb)
        self._tell_frame()
        self._wake.set()

    async def ask(self, *question: Any) -> Any:
        """Ask the worker a question between two slices of its work, and return the answer."""
        try:
            return await self._request(*question)
        except WorkerFailed as error:
            raise HTTPException(422, str(error)) from error

    def attach(self) -> None:
        """Register a tab, which will receive all current events."""
        if self.attached and time.monotonic() - self.seen < 2 * PING_SECONDS:
            raise HTTPException(409, "another tab is watching this session")
        self.attached, self.seen = True, time.monotonic()
        self.unsent = set(self.latest)
        self.changed.set()

    def detach(self) -> None:
        """Record that the tab has disconnected; it may come back."""
        self.attached, self.seen = False, time.monotonic()

    def take(self) -> list[tuple[str, Any]]:
        """Return the events not yet sent to the tab, in a meaningful order."""
        self.changed.clear()
        kinds = [kind for kind in ("status", "opened", "frame", "why") if kind in self.unsent]
        self.unsent.clear()
        return [(kind, self.latest[kind]) for kind in kinds]

    def expired(self) -> bool:
        """Return whether the session has been unwatched for too long."""
        return time.monotonic() - self.seen > UNWATCHED_LIMIT

    async def close(self) -> None:
        """End the session and its worker."""
        self.closed = True
        self._task.cancel()
        await self._worker.end()
        self.changed.set()

    # --- the task ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            self._tell("status", {"phase": "opening"})
            opened = await self._request("open", self.choice.start, limit=OPEN_LIMIT)
            self._tell("opened", {"worlds": opened["worlds"], "choice": asdict(self.choice)})
            self._take_frames(opened)
            self._tell("status", {"phase": "ready"})
            due = 0.0
            while True:
                wait = due - time.monotonic()
                if self.goal is not None:
                    await self._approach(self.goal)
                elif self.playing and wait <= 0:
                    due = time.monotonic() + 1 / self.speed
                    await self._play()
                elif self._explained != self._t and (not self.playing or self.speed <= LIVE_SPEED):
                    await self._explain()
                else:
                    await self._rest(wait if self.playing else None)
        except Exception as error:  # report any error to the tab
            self.playing, self.goal = False, None
            message = str(error) if isinstance(error, WorkerFailed) else repr(error)
            self._tell("status", {"phase": "failed", "error": message})

    async def _approach(self, goal: int) -> None:
        self._take_frames(await self._request("go", goal, SLICE_SECONDS))
        arrived = self._at_end or all(frame["t"] == goal for frame in self.latest["frame"]["frames"])
        if arrived and self.goal == goal:
            self.goal = None
            self._tell_frame()

    async def _play(self) -> None:
        target = MOST_STEPS if math.isinf(self.speed) else self._t + 1
        self._take_frames(await self._request("go", target, SLICE_SECONDS))
        if self._at_end:
            self.playing = False
            self._tell_frame()

    async def _explain(self) -> None:
        self._explained = at = self._t
        lanes = [await self._request("explain", lane) for lane in range(len(self.choice.planners))]
        self._tell("why", {"t": at, "lanes": lanes})

    async def _rest(self, seconds: float | None) -> None:
        self._wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    async def _request(self, *request: Any, limit: float | None = None) -> Any:
        """Send a request to the worker when it is free, and return the answer."""
        async with self._turn:
            before = self.latest.get("status")
            limit = limit or self.limits.seconds
            answer = await self._worker.request(
                limit, request, lambda text: self._tell("status", {"phase": text})
            )
            if self.latest.get("status") is not before:
                self._tell("status", {"phase": "ready"})
            return answer

    # --- events sent to the tab ------------------------------------------------------------------------------------

    def _take_frames(self, answer: dict[str, Any]) -> None:
        self._t, self._at_end = answer["frames"][0]["t"], answer["at_end"]
        self.latest["frame"] = {"frames": answer["frames"]}
        self._tell_frame()

    def _tell_frame(self) -> None:
        if "frame" in self.latest:
            speed = None if math.isinf(self.speed) else self.speed
            state = {"playing": self.playing, "goal": self.goal, "at_end": self._at_end, "speed": speed}
            self._tell("frame", {**self.latest["frame"], **state})

    def _tell(self, kind: str, data: Any) -> None:
        self.latest[kind] = data
        self.unsent.add(kind)
        self.changed.set()


class Sessions:
    """All open sessions; those that no tab watches expire."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: dict[str, Session] = {}

    async def new(self, choice: Choice) -> Session:
        """Open a session."""
        session = Session(choice, self.limits)
        self.open[session.id] = session
        return session

    def find(self, id: str) -> Session:
        """Return the session with this id."""
        if id not in self.open:
            raise HTTPException(404, "there is no such session; it may have ended")
        return self.open[id]

    async def end(self, id: str) -> None:
        """End the session with this id, if it exists."""
        if (session := self.open.pop(id, None)) is not None:
            await session.close()

    async def end_all(self) -> None:
        """End all sessions when the server shuts down."""
        for id in list(self.open):
            await self.end(id)

    async def sweep(self, every: float = 10.0) -> None:
        """Periodically end expired sessions."""
        while True:
            await asyncio.sleep(every)
            for id in [id for id, session in self.open.items() if session.expired()]:
                await self.end(id)
