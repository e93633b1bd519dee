"""Web server of the studio: FastAPI with server-sent events, running entirely on the local machine.

The server is meant for one user on one machine. Because a foreign host name can be pointed at 127.0.0.1 (DNS
rebinding), the ``Host`` header must name this machine. Commands are JSON, so pages from other origins cannot send any.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from bamdp.envs.drawing import palette_css
from bamdp.envs.registry import list_envs
from bamdp.registry import REWARDS, list_planners, list_priors
from bamdp.studio.explain import STATIC_FILES
from bamdp.studio.playback import FIRST, MOST_STEPS, Choice, Limits
from bamdp.studio.sessions import PING_SECONDS, Session, Sessions

PORT = 8137  # default
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Command(BaseModel):
    """Request from a tab to its session; ``value`` is the target step or the speed (None: as fast as possible)."""

    do: Literal["play", "pause", "step", "back", "goto", "speed"]
    value: Annotated[float, Field(ge=0, le=MOST_STEPS)] | None = None


class FreshFiles(StaticFiles):
    """Static files that browsers revalidate, so that they never show an older version."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file with a header that forces revalidation."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def make_app(first: Choice = FIRST, *, host: str = "127.0.0.1", limits: Limits | None = None) -> FastAPI:
    """Create the application; ``first`` is the initial form of a tab that does not specify its own."""
    sessions = Sessions(limits or Limits())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(sessions.sweep())
        yield
        sweeper.cancel()
        await sessions.end_all()

    app = FastAPI(title="bamdp studio", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK] if host in LOOPBACK[:2] else ["*"])

    @app.get("/")
    async def page() -> Response:
        return FileResponse(STATIC_FILES / "index.html", headers={"cache-control": "no-cache"})

    @app.get("/static/palette.css")
    async def palette() -> Response:
        return Response(palette_css(), media_type="text/css")

    app.mount("/static", FreshFiles(directory=STATIC_FILES))

    @app.get("/api/catalogue")
    async def catalogue() -> dict[str, Any]:
        lists = {"envs": list_envs(), "planners": list_planners(), "priors": list_priors()}
        parts = {what: [info.data() for info in listed] for what, listed in lists.items()}
        return {"first": asdict(first), **parts, "rewards": REWARDS}

    @app.post("/api/sessions", status_code=201)
    async def new(choice: Choice) -> dict[str, str]:
        return {"id": (await sessions.new(choice)).id}

    @app.delete("/api/sessions/{id}", status_code=204)
    async def end(id: str) -> None:
        await sessions.end(id)

    @app.post("/api/sessions/{id}", status_code=204)
    async def command(id: str, command: Command) -> None:
        sessions.find(id).command(command.do, command.value)

    @app.get("/api/sessions/{id}/node")
    async def node(id: str, lane: int, t: int, node: int) -> Any:
        return await sessions.find(id).ask("node", lane, t, node)

    @app.get("/api/sessions/{id}/state")
    async def state(id: str, lane: int, state: int) -> Any:
        return await sessions.find(id).ask("state", lane, state)

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
                await asyncio.wait_for(session.changed.wait(), PING_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
        yield "event: closed\ndata: {}\n\n"
    finally:
        session.detach()


def listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; without ``port``, use the default port or, if it is taken, a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    error = None
    for number in (PORT, 0) if port is None else (port,):
        try:
            # listen immediately, so that the printed address works at once
            return socket.create_server((host, number), family=family)
        except OSError as problem:
            error = problem.strerror
    raise ValueError(f"cannot listen on {host} port {port or PORT}: {error}; choose another")


def make_server(app: FastAPI) -> uvicorn.Server:
    """Create a quiet server that exits promptly even if a tab is still listening."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    return uvicorn.Server(config)
