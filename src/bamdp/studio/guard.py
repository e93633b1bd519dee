"""Who may ask: only pages that this server has served itself, under a name of this machine.

A foreign page could post to 127.0.0.1, and a foreign name can be made to point there (DNS rebinding). So the ``Host``
must be a name of this machine, and the ``Origin``, where one is given, this very server. Answers tell the page to load
nothing from elsewhere.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers

from bamdp.studio.sessions import Refused

LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


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
                pairs = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *pairs]}
            await send(message)

        try:
            check_origin(Headers(scope=scope), self.names, any_address=self.any_address)
        except Refused as error:
            await refusal(error.status, str(error))(scope, receive, send_guarded)
        else:
            await self.app(scope, receive, send_guarded)


def refusal(status: int, message: str, field: str | None = None) -> Response:
    """What a page shows as it is."""
    return JSONResponse({"error": message, "field": field}, status_code=status)


def check_origin(headers: Any, names: Iterable[str], *, any_address: bool) -> None:
    """Refuse names that are not this machine's, and pages that are not ours."""
    given = headers.get("host", "")
    name = _host_name(given)
    if name not in set(names) and not (any_address and _is_address(name)):
        raise Refused(403, f"this server does not answer to the name {name!r}; use its address")
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2] != given
    if foreign or headers.get("sec-fetch-site") == "cross-site":
        raise Refused(403, "only this server's own page may ask")


def _host_name(given: str) -> str:
    if given.startswith("["):
        return given[1:].partition("]")[0].lower()
    return given.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False
