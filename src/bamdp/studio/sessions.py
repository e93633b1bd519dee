"""Sessions: what each tab watches, paced and supervised.

A session owns one worker process and one task, which decides what the worker does next: answer a question about a node
or a state, go towards a step that was asked for, play on at the chosen speed, or explain the decision at hand, in this
order. Everything that a tab should know is kept as the latest of its kind and sent when the tab is ready for it, so a
slow tab gets fewer frames and never old ones, and a reloaded tab gets everything again.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bamdp.studio.limits import Limits
from bamdp.studio.settings import Choice
from bamdp.studio.worker import WorkerGone, WorkerLine

MAX_QUESTIONS = 8  # of one session that wait for an answer
SLICE_SECONDS = 0.1  # of work between two looks at what is asked for
OPEN_LIMIT = 300.0  # seconds to open, compiling included
UNWATCHED_LIMIT = 90.0  # seconds without a tab before a session ends
PING_SECONDS = 15.0  # between two signs of life that a tab is sent
IDLE_LIMIT = 3600.0  # seconds without a command before a session ends, tab or not
LIVE_SPEED = 2.0  # steps per second up to which every decision is explained on the way


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
        if verb == "play":
            self.playing, self.goal = not self._at_end, None
        elif verb == "pause":
            self.playing, self.goal = False, self._t if self._apart else None
        elif verb == "step":
            self.playing, self.goal = False, (self._t if self.goal is None else self.goal) + 1
        elif verb == "back":
            self.playing, self.goal = False, max((self._t if self.goal is None else self.goal) - 1, 0)
        elif verb == "goto":
            self.playing, self.goal = False, int(value)
        elif verb == "speed":
            self.speed = math.inf if value is None else float(value)
        self._tell_frame()
        self.wake.set()

    async def ask(self, *question: Any) -> Any:
        """Ask the worker something between two slices of its work, and return its answer."""
        if self.closed or self.latest.get("status", {}).get("phase") == "failed":
            raise Refused(410, "this session has ended; start again")
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
        self._refuse_questions("this session has ended; start again")
        self.changed.set()

    # --- the task ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            ready = await self._open()
            due = 0.0
            while ready and not self.closed:
                if self._questions:
                    await self._answer()
                elif self.goal is not None:
                    await self._approach(self.goal)
                elif self.playing and (wait := due - time.monotonic()) <= 0:
                    due = time.monotonic() + 1 / self.speed
                    await self._play()
                elif self._should_explain():
                    await self._explain()
                elif self.playing:
                    await self._rest(wait)
                else:
                    await self._rest(None)
        except Exception as error:  # whatever it is, the tab must hear of it
            message = (
                str(error)
                if isinstance(error, WorkerGone)
                else f"something went wrong in the studio: {error!r}"
            )
            self.playing, self.goal = False, None
            await self._line.end()
            self._tell("status", {"phase": "failed", "error": message})
            self._refuse_questions(message)

    async def _open(self) -> bool:
        """Start the worker and build the stage; False where what was asked for cannot be built."""
        self._tell("status", {"phase": "opening"})
        await self._line.start()
        kind, answer = await self._request(OPEN_LIMIT, "open", self.choice)
        if kind != "done":
            await self._line.end()
            self._tell("status", {"phase": "failed", **answer})
            self._refuse_questions(answer["error"])
            return False
        self._tell("opened", {"worlds": answer["worlds"], "choice": _described(self.choice)})
        self._take_frames(answer)
        self._tell("status", {"phase": "ready"})
        return True

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
        fast = math.isinf(self.speed)
        answer = await self._work("advance", 1_000_000 if fast else 1, SLICE_SECONDS)
        self.playing = self.playing and not answer["at_end"]
        self._take_frames(answer)

    def _should_explain(self) -> bool:
        calm = not self.playing or self.speed <= LIVE_SPEED
        return calm and self._explained != self._t

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

    async def _work(self, *request: Any) -> Any:
        """Send a request that must succeed for the session to go on, and return the answer."""
        kind, data = await self._request(self.limits.seconds, *request)
        if kind != "done":
            raise WorkerGone(data["error"])
        return data

    async def _request(self, limit: float, *request: Any) -> tuple[str, Any]:
        noted: list[str] = []

        def note(text: str) -> None:
            noted.append(text)
            self._tell("status", {"phase": text})

        answer = await self._line.request(limit, OPEN_LIMIT, request, note)
        if noted:
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
        self._apart = any(
            frame["t"] != self._t for frame in answer["frames"]
        )  # one has come further on the way
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


def _described(choice: Choice) -> dict[str, Any]:
    names = ("env", "prior", "rewards", "discount", "objective", "seed")
    return {**{name: getattr(choice, name) for name in names}, "planners": list(choice.planners)}


class Sessions:
    """All sessions that are open, up to a number, until they expire."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: dict[str, Session] = {}

    async def new(self, choice: Choice) -> Session:
        """Open one, if it is not too large; a session that no tab listens to makes room if there is none."""
        choice.check_beforehand(self.limits)
        while len(self.open) >= self.limits.sessions:  # another may have come in while one was ended
            left = [s for s in self.open.values() if not s.attached]
            if not left:
                raise Refused(
                    503,
                    f"{self.limits.sessions} tabs are open already; close one, or start the studio with a larger "
                    "--max-sessions",
                )
            await self.end(min(left, key=lambda s: s.seen).id)
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
