"""A server in a thread, and a tab that listens to it without a browser."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
import time
from contextlib import contextmanager

import httpx

from bamdp.studio import server

PATIENCE = 120.0  # seconds; compiling may be among them


@contextmanager
def running(**options):
    """A studio on a free port."""
    door = server.listen("127.0.0.1", 0)
    made = server.make_server(server.make_app(**options))
    thread = threading.Thread(target=made.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        made.should_exit = True
        thread.join(30)
        door.close()
        assert not thread.is_alive()


class Tab:
    """A session, and everything it has been told."""

    def __init__(self, address, choice=None, id=None):
        self.http = httpx.Client(base_url=address, timeout=PATIENCE)
        self.id = id
        if id is None:
            answer = self.http.post("/api/sessions", json=choice)
            assert answer.status_code == 201, answer.text
            self.id = answer.json()["id"]
        self.heard = queue.Queue()
        self.line = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        self.line.request("GET", f"/api/sessions/{self.id}/events")
        with self.line.getresponse() as stream:
            if stream.status != 200:
                self.heard.put(("refused", stream.status))
                return
            kind = None
            for raw in stream:
                line = raw.decode().rstrip()
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    self.heard.put((kind, json.loads(line[6:])))

    def leave(self):
        """As a page that is closed or loaded again: the connection breaks, the session is not ended."""
        self.line.sock.shutdown(socket.SHUT_RDWR)
        self.listener.join(10)
        self.line.close()
        self.http.close()

    def wait(self, kind, suits=lambda data: True):
        """The next event of a kind that suits."""
        end = time.monotonic() + PATIENCE
        while True:
            found, data = self.heard.get(timeout=max(end - time.monotonic(), 0.01))
            if found == kind and suits(data):
                return data

    def frame(self, t):
        """The frame of a step."""
        return self.wait("frame", lambda data: data["frames"][0]["t"] == t)

    def do(self, what, value=None):
        answer = self.http.post(f"/api/sessions/{self.id}", json={"do": what, "value": value})
        assert answer.status_code == 204, answer.text

    def get(self, path, **query):
        return self.http.get(f"/api/sessions/{self.id}/{path}", params=query)

    def end(self):
        self.http.delete(f"/api/sessions/{self.id}")
        self.listener.join(10)
        self.line.close()
        self.http.close()
