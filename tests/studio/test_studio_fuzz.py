"""Whatever is sent to whichever route: the answer is JSON with a message, never a traceback, never a server error."""

from __future__ import annotations

import asyncio
import json
import math
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bamdp.studio import server, sessions
from bamdp.studio.sessions import Sessions
from bamdp.studio.settings import Limits

FUZZ = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

DIGITS = [
    "1" + "0" * 400,
    "9" * 5000,
    "-" + "9" * 400,
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "1e-400",
    "0.1e5",
]
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.integers(-3, 120_000),
    st.sampled_from([10**400, -(10**400), 2**53, 2**63, 2**64]),
)
texts = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(categories=["Cs", "Cc", "Nd", "Lo"]), max_size=10),
    st.sampled_from(
        ["", " ", "7", "٣", "²", "9" * 400, "x" * 5000, "\ud800", "\0", "../x", "%00", "1e400", "-1", "NaN"]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
specs = st.builds(
    lambda name, key, value: f"{name}:{key}={value}",
    st.sampled_from(
        ["grid", "chain", "random_mdp", "bandit", "dss-pi", "bamcp", "fhts", "sparse", "file", "gym", "?"]
    ),
    st.sampled_from(
        ["size", "n_states", "n_steps", "n_stages", "n_simulations", "means", "horizon", "seed", "=", ","]
    ),
    st.one_of(
        numbers, texts, st.sampled_from(["(" * 150, "[" * 150 + "]" * 150, "9" * 300, "1e308", "none", "1/0"])
    ),
)
fields = st.sampled_from(
    [
        "env",
        "prior",
        "rewards",
        "discount",
        "objective",
        "seed",
        "steps",
        "planners",
        "do",
        "value",
        "lane",
        "x",
    ]
)
forms = st.dictionaries(fields, st.one_of(values, specs, st.lists(specs, max_size=3)), max_size=6)
commands = st.fixed_dictionaries(
    {}, optional={"do": st.one_of(st.sampled_from(server.SESSION_COMMANDS), values), "value": values}
)
paths = st.sampled_from(
    [
        *("/", "/api", "/api/catalogue", "/api/sessions", "/static/app.js", "/static/{id}", "/{id}"),
        *(f"/api/sessions/{{id}}{rest}" for rest in ("", "/node", "/state", "/events", "/nothing")),
    ]
)
methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])


class StillSession(sessions.Session):
    """A session without a worker: questions are answered with what was asked."""

    def start(self):
        self._tell("status", {"phase": "ready"})
        self._take_frames({"frames": [{"t": 3, "known": 3}]})

    async def ask(self, *question):
        return {"asked": question}


class Client:
    """Talks to the application without a network."""

    def __init__(self, app):
        self.app = app

    def request(self, method, path, **options):
        async def ask():
            door = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=door, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def client():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sessions, "Session", StillSession)
        yield Client(server.make_app(limits=Limits(sessions=4)))


@pytest.fixture(scope="module")
def one(client):
    """The id of a session that nobody ends: a tab is listening."""
    id = send(client, "POST", "/api/sessions", {"env": "chain"}).json()["id"]
    session = client.app.state.sessions.find(id)
    session.attached = True
    return id


def check(answer):
    """The status is no server's error but the one that is documented, and a refusal is JSON with a message."""
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        body = answer.json()
        assert set(body) == {"error", "field"}
        assert body["error"]
        assert len(body["error"]) <= server.MAX_MESSAGE + 3
        assert "Traceback" not in body["error"]
    return answer


def send(client, method, path, body):
    """Send a value as Python writes it, numbers that JSON does not have included."""
    raw = isinstance(body, bytes) or hasattr(body, "__aiter__")
    content = body if raw else json.dumps(body).encode()
    return client.request(method, path, content=content, headers={"content-type": "application/json"})


@FUZZ
@given(form=st.one_of(forms, values))
def test_any_form_is_answered(client, form):
    answer = check(send(client, "POST", "/api/sessions", form))
    assert answer.status_code in (201, 413, 422)
    if answer.status_code == 422:
        assert answer.json()["field"] is not None


@FUZZ
@given(command=st.one_of(commands, values))
def test_any_command_is_answered(client, one, command):
    answer = check(send(client, "POST", f"/api/sessions/{one}", command))
    assert answer.status_code in (200, 413, 422)
    session = client.app.state.sessions.find(one)
    assert session.goal is None or 0 <= session.goal <= 10**6
    assert 0.1 <= session.speed <= 1000 or session.speed == math.inf


@FUZZ
@given(
    question=st.sampled_from(["node", "state"]),
    query=st.dictionaries(
        st.sampled_from(["lane", "t", "node", "state", "x"]), st.one_of(texts, numbers.map(str)), max_size=5
    ),
)
def test_any_question_is_answered(client, one, question, query):
    query = {name: text.encode("utf-8", "replace") for name, text in query.items()}
    answer = check(client.request("GET", f"/api/sessions/{one}/{question}", params=query))
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["field"] in ("lane", "t", "node", "state")


@FUZZ
@given(path=paths, id=texts, method=methods, body=st.one_of(st.binary(max_size=200), values))
def test_any_method_on_any_route_is_answered(client, path, id, method, body):
    check(send(client, method, path.replace("{id}", quote(id.encode("utf-8", "replace"), safe="")), body))


@FUZZ
@given(
    raw=st.one_of(
        st.binary(max_size=300), st.sampled_from([b"", b"[" * 19_000, b'{"env":' * 2_000, b"\xff\xfe"])
    )
)
def test_any_bytes_are_answered(client, raw):
    answer = check(send(client, "POST", "/api/sessions", raw))
    assert answer.status_code in (201, 400, 413, 422)


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize(
    "field", ["discount", "seed", "steps", "env", "prior", "rewards", "objective", "planners"]
)
def test_numbers_out_of_all_bounds_are_refused_with_their_field(client, field, digits):
    if (field, digits) in (("discount", "1e-400"), ("seed", "0.1e5")):
        digits = "-1.5"
    answer = check(send(client, "POST", "/api/sessions", f'{{"{field}": {digits}}}'.encode()))
    assert answer.status_code == 422
    assert answer.json()["field"] == field


@pytest.mark.parametrize("digits", [digits for digits in DIGITS if digits != "0.1e5"])
@pytest.mark.parametrize("verb", ["speed", "goto"])
def test_no_number_breaks_a_command(client, one, verb, digits):
    answer = check(
        send(client, "POST", f"/api/sessions/{one}", f'{{"do": "{verb}", "value": {digits}}}'.encode())
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == "value"


@pytest.mark.parametrize(
    "value", ["[" * 900 + "]" * 900, '{"a":' * 500 + "1" + "}" * 500, "[[1]]", '[{"a": []}]']
)
def test_nested_values_are_refused_with_their_field(client, one, value):
    for field in ("env", "planners", "seed", "discount"):
        answer = check(send(client, "POST", "/api/sessions", f'{{"{field}": {value}}}'.encode()))
        assert (answer.status_code, answer.json()["field"]) == (422, field)
    answer = check(
        send(client, "POST", f"/api/sessions/{one}", f'{{"do": "goto", "value": {value}}}'.encode())
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "value")


def test_a_body_that_is_too_long_is_not_read_to_its_end(client):
    read = []

    async def endless():
        for _ in range(1000):
            read.append(1)
            yield b"[" * 10_000

    check(send(client, "POST", "/api/sessions", endless()))
    assert len(read) < 10


def test_beyond_the_last_session_one_is_told_what_to_do(client):
    async def full(self, choice):
        raise sessions.Refused(503, "4 tabs are open already; close one")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sessions, "new", full)
        answer = check(send(client, "POST", "/api/sessions", {"env": "chain"}))
    assert answer.status_code == 503
    assert "close one" in answer.json()["error"]
