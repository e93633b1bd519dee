"""The studio's web server: FastAPI, events by SSE, everything from this machine.

It is for one person at one machine; :mod:`bamdp.studio.guard` keeps others out. Every parameter is checked, and what is
wrong is told in words that a page shows as they are.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse

import bamdp
from bamdp import _checks
from bamdp.envs import list_envs
from bamdp.registry import DEFAULT_PRIOR, REWARDS, list_planners, list_priors
from bamdp.settings import FieldError
from bamdp.studio import palette
from bamdp.studio.guard import Guard, refusal
from bamdp.studio.sessions import MOST_SESSIONS, PING, STEP_LIMIT, Refused, Session, Sessions
from bamdp.studio.settings import MOST_STEPS, Choice

STATIC = Path(__file__).with_name("static")
LARGEST = 20_000  # bytes of a request
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
COMMANDS = ("play", "pause", "step", "back", "goto", "speed")


def make_app(
    first: Choice | None = None,
    *,
    host: str = "127.0.0.1",
    most_sessions: int = MOST_SESSIONS,
    step_limit: float = STEP_LIMIT,
) -> FastAPI:
    """The application. ``first`` is what a tab opens with that asks for nothing else."""
    sessions = Sessions(most_sessions, step_limit)
    opening = first or Choice()
    files = frozenset({opening.env}) if opening.env.startswith("file:") else frozenset[str]()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(sessions.sweep())
        yield
        sweeper.cancel()
        await sessions.end_all()

    app = FastAPI(title="bamdp studio", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.sessions = sessions
    app.add_middleware(Guard, host=host)
    _add_errors(app)

    @app.get("/")
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", media_type="text/html")

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        if name == "palette.css":
            return Response(palette.css(), media_type="text/css")
        known = {path.name: path for path in STATIC.iterdir()}
        if name not in known:
            raise Refused(404, f"there is no {name!r}")
        return FileResponse(known[name], media_type=KINDS.get(known[name].suffix, "application/octet-stream"))

    @app.get("/api/catalogue")
    async def catalogue() -> Response:
        return JSONResponse(_catalogue(opening))

    @app.post("/api/sessions")
    async def new(request: Request) -> Response:
        session = await sessions.new(Choice.read(await _body(request), files))
        return JSONResponse({"id": session.id}, status_code=201)

    @app.delete("/api/sessions/{id}")
    async def end(id: str) -> Response:
        await sessions.end(id)
        return Response(status_code=204)

    @app.post("/api/sessions/{id}")
    async def command(id: str, request: Request) -> Response:
        session = sessions.find(id)
        session.command(*_command(await _body(request)))
        return JSONResponse({"ok": True})

    @app.get("/api/sessions/{id}/node")
    async def node(id: str, request: Request) -> Response:
        lane, t, node = (_number(request, name) for name in ("lane", "t", "node"))
        return JSONResponse(await sessions.find(id).ask("node", lane, t, node))

    @app.get("/api/sessions/{id}/state")
    async def state(id: str, request: Request) -> Response:
        lane, state = (_number(request, name) for name in ("lane", "state"))
        return JSONResponse(await sessions.find(id).ask("state", lane, state))

    @app.get("/api/sessions/{id}/events")
    async def events(id: str) -> Response:
        session = sessions.find(id)
        session.attach()
        return StreamingResponse(_events(session), media_type="text/event-stream")

    return app


async def _events(session: Session) -> AsyncIterator[str]:
    try:
        yield "retry: 1000\n\n"
        while not session.closed:
            session.seen = time.monotonic()
            for kind, data in session.take():
                yield f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
            try:
                await asyncio.wait_for(session.changed.wait(), PING)
            except TimeoutError:
                yield ": still here\n\n"
        yield "event: closed\ndata: {}\n\n"
    finally:
        session.detach()


def _catalogue(opening: Choice) -> dict[str, Any]:
    return {
        "version": bamdp.__version__,
        "envs": [_plain(asdict(info)) for info in list_envs()],
        "planners": [_plain(asdict(info)) for info in list_planners()],
        "priors": [_plain(asdict(info)) for info in list_priors()],
        "rewards": list(REWARDS),
        "default_prior": DEFAULT_PRIOR,
        "first": {
            **{
                name: getattr(opening, name)
                for name in ("env", "prior", "rewards", "discount", "objective", "seed", "steps")
            },
            "planners": list(opening.planners),
        },
    }


def _plain(info: dict[str, Any]) -> dict[str, Any]:
    """Defaults as they would be written in a spec."""
    written = {key: _written(value) for key, value in info["parameters"].items()}
    return {**info, "parameters": written}


def _written(value: Any) -> str:
    return "none" if value is None else str(value).replace(" ", "")


# --- what comes in ---------------------------------------------------------------------------------------------


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "send JSON, with the content type application/json")
    raw = await request.body()
    if len(raw) > LARGEST:
        raise Refused(413, f"a request may have {LARGEST} bytes, this one has {len(raw)}")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None


def _command(given: Any) -> tuple[str, Any]:
    if not isinstance(given, dict) or set(given) - {"do", "value"}:
        raise FieldError("do", 'a command is {"do": ..., "value": ...}')
    do, value = given.get("do"), given.get("value")
    try:
        _checks.one_of(do, "command", COMMANDS)
        if do == "goto":
            _checks.integer(value, "step", low=0, high=MOST_STEPS)
        elif do == "speed" and value is not None:
            _checks.real(value, "speed", low=0.1, high=1000.0)
    except (ValueError, TypeError) as error:
        raise FieldError("value", str(error)) from None
    return str(do), value


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isdecimal() or len(text) > 9:
        raise FieldError(name, f"{name} must be a whole number, got {text[:20]!r}")
    return int(text)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return refusal(error.status, str(error), error.field)

    @app.exception_handler(FieldError)
    async def bad_field(request: Request, error: FieldError) -> Response:
        return refusal(400, str(error), error.field)


# --- running ----------------------------------------------------------------------------------------------------


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port on the first free one from 8137 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for number in range(8137, 8157) if port is None else [port]:
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, number))
            server.listen()  # now, so that the address that is told can be called at once, and nobody else has it
        except OSError as error:
            server.close()
            last = error
        else:
            return server
    raise ValueError(
        f"cannot listen on {host} port {port or '8137 to 8156'}: {last and last.strerror}; choose another"
    )


def run(app: FastAPI, server: socket.socket) -> None:
    """Serve until Ctrl-C."""
    make_server(app).run(sockets=[server])


def make_server(app: FastAPI) -> uvicorn.Server:
    """Quiet, and quick to end: a tab that listens would keep it for ever."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    return uvicorn.Server(config)
