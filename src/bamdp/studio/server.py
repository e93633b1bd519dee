"""The studio's web server: FastAPI, events by SSE, everything from this machine.

It is for one person at one machine, so only pages that it has served itself may ask, under a name of this machine. A
foreign page could post to 127.0.0.1, and a foreign name can be made to point there (DNS rebinding): the ``Host`` must
be a name of this machine, and the ``Origin``, where one is given, this very server. Answers tell the page to load
nothing from elsewhere. Every parameter is checked, and errors are sentences that a page shows as they are.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import time
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import bamdp
from bamdp import _checks
from bamdp._specs import documented_parameters, quoted_words
from bamdp.envs.drawing import palette_css
from bamdp.envs.picture import world_css
from bamdp.envs.registry import env_factory, list_envs
from bamdp.planners import PLANNERS, Planner
from bamdp.registry import DEFAULT_PRIOR, PARTS, PRIORS, REWARDS, list_planners, list_priors
from bamdp.settings import FieldError, in_field
from bamdp.studio.explain import STATIC_FILES
from bamdp.studio.sessions import PING_SECONDS, Refused, Session, Sessions
from bamdp.studio.settings import MOST_STEPS, Choice, Limits

MAX_REQUEST_BYTES = 20_000
FIRST_STEP = 60  # that a tab goes to by itself: before it there is little to see
MAX_MESSAGE = 1_000  # characters
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SESSION_COMMANDS = ("play", "pause", "step", "back", "goto", "speed")
FIRST_PORT, LAST_PORT = 8137, 8156  # that are tried if none is asked for
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def make_app(
    first: Choice | None = None, *, host: str = "127.0.0.1", limits: Limits | None = None
) -> FastAPI:
    """Make the application. ``first`` is what a tab opens with that asks for nothing else."""
    sessions = Sessions(limits or Limits())
    opening = first or Choice()
    files = frozenset({opening.env}) if opening.env.startswith(("file:", "gym:")) else frozenset[str]()

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
        return FileResponse(STATIC_FILES / "index.html", media_type="text/html")

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        if name == "palette.css":
            return Response(palette_css() + world_css(), media_type="text/css")
        known = {path.name: path for path in STATIC_FILES.iterdir()}
        if name not in known:
            raise Refused(404, f"there is no {name!r}")
        return FileResponse(known[name], media_type=MEDIA_TYPES[known[name].suffix])

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
                await asyncio.wait_for(session.changed.wait(), PING_SECONDS)
            except TimeoutError:
                yield ": still here\n\n"
        yield "event: closed\ndata: {}\n\n"
    finally:
        session.detach()


def _catalogue(opening: Choice) -> dict[str, Any]:
    return {
        "version": bamdp.__version__,
        "envs": [_plain(info, env_factory(info.name)) for info in list_envs()],
        "planners": [_plain(info, PLANNERS[info.name].cls) for info in list_planners()],
        "priors": [_plain(info, PRIORS[info.name].cls) for info in list_priors()],
        "rewards": list(REWARDS),
        "default_prior": DEFAULT_PRIOR,
        "first_step": FIRST_STEP,
        "first": opening.data(),
    }


def _plain(info: Any, documented: Any) -> dict[str, Any]:
    """Return what is known of a name: help, parameters with defaults as a spec writes them, what they mean, choices."""
    defaults = info.written_parameters()
    about = {key: _about(documented, key) for key in defaults}
    choices = {key: _choices(key, info.parameters[key], about[key]) for key in defaults}
    return {
        "name": info.name,
        "help": info.help,
        "parameters": defaults,
        "about": about,
        "choices": {key: words for key, words in choices.items() if words},
    }


def _about(documented: Any, key: str) -> str:
    """Return what is said of a parameter: where it is documented, with its part, or by a relative that has it, too."""
    part, dot, name = key.partition(".")
    relatives = [entry.cls for entry in PLANNERS.values() if _related(entry.cls, documented)]
    classes = PARTS[part].values() if dot else [documented, *relatives]
    return next((text for cls in classes if (text := documented_parameters(cls).get(name or key))), "")


def _related(one: Any, other: Any) -> bool:
    """Return whether two planners have a base in common that not all planners have."""
    bases = set(getattr(one, "__mro__", ())) & set(getattr(other, "__mro__", ()))
    return bool(bases - set(Planner.__mro__))


def _choices(key: str, default: Any, about: str) -> list[str]:
    """Return the words that a parameter may be; with … among them where numbers are possible as well."""
    if key in PARTS:
        return list(PARTS[key])
    if isinstance(default, bool):
        return ["True", "False"]
    if not isinstance(default, str) or not (words := quoted_words(about)):
        return []
    return [*words, "…"] if "number" in about or key == "depth" else words


# --- what comes in ---------------------------------------------------------------------------------------------


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "send JSON, with the content type application/json")
    raw = b""
    try:
        async for part in request.stream():  # so that no more is read than may be sent
            raw += part
            if len(raw) > MAX_REQUEST_BYTES:
                raise Refused(413, f"a request may have {MAX_REQUEST_BYTES} bytes, this one has more")
    except ClientDisconnect:
        raise Refused(400, "the request was broken off") from None
    try:
        body = json.loads(raw, parse_int=_parse_whole_number)
    except RecursionError:
        raise Refused(422, "the body is nested too deeply; every field is text, a number or a list") from None
    except ValueError:
        raise Refused(400, "the body is not JSON") from None
    for name, value in body.items() if isinstance(body, dict) else ():
        _check_flat(name, value)
    return body


def _parse_whole_number(digits: str) -> int | float:
    """Read a whole number; one that no field can hold becomes a float, perhaps infinity, which every field refuses."""
    return int(digits) if len(digits) <= 20 else float(digits)


def _check_flat(name: str, value: Any) -> None:
    """Refuse objects and lists of lists, which no field is, before anything looks further into them."""
    inside = value if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list)) for item in inside):
        raise FieldError(
            name, f"{name[:40]} must be text, a number or a list of texts; it has lists or objects in it"
        )


def _command(body: Any) -> tuple[str, Any]:
    if not isinstance(body, dict) or set(body) - {"do", "value"}:
        raise FieldError("do", 'a command is {"do": ..., "value": ...}')
    verb, value = body.get("do"), body.get("value")
    with in_field("do"):
        _checks.one_of(verb, "command", SESSION_COMMANDS)
    with in_field("value"):
        if verb == "goto":
            _checks.integer(value, "step", low=0, high=MOST_STEPS)
        elif verb == "speed" and value is not None:
            _checks.real(value, "speed", low=0.1, high=1000.0)
    return str(verb), value


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isdecimal() or len(text) > 9:
        raise FieldError(name, f"{name} must be a whole number, got {text[:20]!r}")
    return int(text)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    @app.exception_handler(FieldError)
    async def refused(request: Request, error: Refused | FieldError) -> Response:
        return refusal(getattr(error, "status", 422), str(error), error.field)

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: HTTPException) -> Response:
        answer = refusal(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:  # the traceback is for the terminal
        return refusal(500, f"something went wrong in the studio: {type(error).__name__}")


# --- who may ask ------------------------------------------------------------------------------------------------


class Guard:
    """Lets in only what comes from this machine's own page, and tells the page to load nothing from elsewhere."""

    def __init__(self, app: Any, host: str) -> None:
        self.app, self.any_address = app, host not in LOOPBACK
        self.names = {*LOOPBACK, host.lower()} | (
            {socket.gethostname().lower()} if self.any_address else set()
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                pairs = [(key.encode(), value.encode()) for key, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *pairs]}
            await send(message)

        try:
            check_origin(Headers(scope=scope), self.names, any_address=self.any_address)
        except Refused as error:
            await refusal(error.status, str(error))(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)


def refusal(status: int, message: str, field: str | None = None) -> Response:
    """Return an answer whose message a page shows as it is; a long one is cut, what is no character is escaped."""
    content = {"error": _readable(message), "field": field and _readable(field)}
    return JSONResponse(content, status_code=status)


def _readable(text: str) -> str:
    short = text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."
    return short.encode("utf-8", "backslashreplace").decode()


def check_origin(headers: Any, names: Container[str], *, any_address: bool) -> None:
    """Refuse names that are not this machine's, and pages that are not ours."""
    host = headers.get("host", "")
    name = _host_name(host)
    if name not in names and not (any_address and _is_address(name)):
        raise Refused(403, f"this server does not answer to the name {name!r}; use its address")
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2] != host
    if foreign or headers.get("sec-fetch-site") == "cross-site":
        raise Refused(403, "only this server's own page may ask")


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


# --- running ----------------------------------------------------------------------------------------------------


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens; without a port on the first free one from 8137 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last_error: OSError | None = None
    for number in range(FIRST_PORT, LAST_PORT + 1) if port is None else [port]:
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, number))
            server.listen()  # now, so that the address that is printed answers at once, and nobody else has it
        except OSError as error:
            server.close()
            last_error = error
        else:
            return server
    tried = port or f"{FIRST_PORT} to {LAST_PORT}"
    reason = last_error and last_error.strerror
    raise ValueError(f"cannot listen on {host} port {tried}: {reason}; choose another")


def run_server(app: FastAPI, server: socket.socket) -> None:
    """Serve the application on a socket until Ctrl-C."""
    make_server(app).run(sockets=[server])


def make_server(app: FastAPI) -> uvicorn.Server:
    """Make a server that is quiet and quick to end: a tab that listens would keep it for ever."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    return uvicorn.Server(config)
