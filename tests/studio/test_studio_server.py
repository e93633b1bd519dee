"""The server: sessions that play and rewind, tabs that do not disturb each other, and doors that are shut."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from studio_runs import DSS, run_of
from studio_server import Tab, running

from bamdp.registry import list_planners, make_planner
from bamdp.studio import server, sessions
from bamdp.studio.playback import Stage
from bamdp.studio.settings import Choice, Limits
from bamdp.studio.view import Watcher

CHAIN = {"env": "chain", "planners": ["thompson"], "seed": 3}


@pytest.fixture
def tab(studio):
    made = Tab(studio, CHAIN)
    made.wait("opened")
    yield made
    made.end()


@pytest.fixture
def patient_studio():
    with running(limits=Limits(seconds=1e6)) as address:
        yield address


def same_frame(shown, run):
    """What was sent is what a run of our own shows."""
    ours = Watcher(run).frame()
    return all(
        shown[name] == ours[name] for name in ("t", "state", "total", "visits", "entropy", "policy", "curve")
    )


def test_a_session_steps_rewinds_and_jumps(tab):
    first = tab.wait("frame")["frames"][0]
    assert first["t"] == 0
    tab.do("step")
    tab.frame(1)
    tab.do("goto", 60)
    there = tab.frame(60)
    assert same_frame(there["frames"][0], run_of("chain", "thompson", seed=3, t=60, steps=1000))
    tab.do("back")
    tab.frame(59)
    tab.do("goto", 7)
    assert same_frame(tab.frame(7)["frames"][0], run_of("chain", "thompson", seed=3, t=7, steps=1000))
    tab.do("goto", 60)
    assert tab.frame(60)["frames"][0]["curve"] == there["frames"][0]["curve"]


@pytest.mark.slow
def test_playing_goes_on_until_paused_and_stops_at_the_end(studio):
    tab = Tab(studio, {**CHAIN, "steps": 300})
    tab.wait("opened")
    tab.do("speed", 30)
    tab.do("play")
    assert tab.wait("frame", lambda data: data["playing"] and data["frames"][0]["t"] >= 3)
    tab.do("pause")
    assert not tab.wait("frame", lambda data: not data["playing"])["playing"]
    tab.do("speed", None)
    tab.do("play")
    last = tab.frame(300)
    assert last["at_end"]
    assert not last["playing"]
    assert tab.wait("why", lambda data: data["t"] == 300)["lanes"][0]["over"]
    tab.end()


def test_decisions_are_explained_when_it_rests_and_nodes_can_be_opened(studio):
    tab = Tab(studio, {"env": "chain", "planners": [DSS]})
    why = tab.wait("why")
    assert why["t"] == 0
    assert why["lanes"][0]["tree"]["nodes"]
    tab.do("goto", 5)
    why = tab.wait("why", lambda data: data["t"] == 5)["lanes"][0]
    node = int(max(why["tree"]["nodes"], key=int))
    detail = tab.get("node", lane=0, t=5, node=node).json()
    assert detail["steps"] == 6
    assert tab.get("node", lane=0, t=4, node=node).status_code == 422
    assert "moved on" in tab.get("node", lane=0, t=4, node=node).json()["error"]
    assert tab.get("node", lane=0, t=5, node=10**6).status_code == 422
    assert tab.get("node", lane=1, t=5, node=0).status_code == 422
    assert tab.get("node", lane="x", t=5, node=0).json()["field"] == "lane"
    expects = tab.get("state", lane=0, state=4).json()["expects"]
    assert [row["action"] for row in expects] == [0, 1]
    assert tab.get("state", lane=0, state=5).status_code == 422
    tab.end()


@pytest.mark.slow
def test_two_agents_go_in_lock_step_under_common_random_numbers(studio):
    tab = Tab(studio, {"env": "chain", "planners": ["thompson", "thompson"], "seed": 1})
    tab.wait("opened")
    tab.do("goto", 40)
    one, other = tab.frame(40)["frames"]
    assert one["curve"] == other["curve"]
    tab.do("goto", 11)
    assert [frame["t"] for frame in tab.frame(11)["frames"]] == [11, 11]
    tab.end()


@pytest.mark.slow
def test_tabs_do_not_disturb_each_other(studio):
    tabs = [Tab(studio, {**CHAIN, "seed": seed}) for seed in (3, 4)]
    for tab, t in zip(tabs, (20, 33)):
        tab.wait("opened")
        tab.do("goto", t)
    for tab, seed, t in zip(tabs, (3, 4), (20, 33)):
        assert same_frame(tab.frame(t)["frames"][0], run_of("chain", "thompson", seed=seed, t=t, steps=1000))
        tab.end()


def test_a_reloaded_tab_is_told_everything_again_and_a_second_one_is_refused(studio):
    tab = Tab(studio, CHAIN)
    tab.wait("opened")
    tab.do("goto", 30)
    tab.frame(30)
    second = Tab(studio, id=tab.id)
    assert second.heard.get(timeout=10) == ("refused", 409)
    second.line.close()
    second.http.close()
    second.listener.join(10)
    tab.leave()
    time.sleep(0.3)
    again = Tab(studio, id=tab.id)
    assert again.wait("opened")["choice"]["seed"] == 3
    assert again.frame(30)["frames"][0]["known"] == 30
    again.end()


def test_bad_choices_are_told_with_their_field(studio):
    answer = httpx.post(f"{studio}/api/sessions", json={"env": "chain", "planners": ["dss-pi:n_steps=0"]})
    assert answer.status_code == 422
    assert answer.json()["field"] == "planner 0"
    assert "n_steps must be at least 1" in answer.json()["error"]
    tab = Tab(studio, {"env": "chain", "planners": ["thompson"], "prior": "spars"})
    problem = tab.wait("status", lambda data: data["phase"] == "failed")
    assert problem["field"] == "prior"
    assert "did you mean 'sparse'" in problem["error"]
    assert tab.get("state", lane=0, state=0).status_code == 410
    tab.end()
    answer = httpx.post(f"{studio}/api/sessions", json={"env": "chain", "discount": 2})
    assert answer.status_code == 422
    assert answer.json()["field"] == "discount"


def test_a_slow_planner_freezes_nobody(patient_studio):
    studio = patient_studio
    slow = Tab(studio, {"env": "chain", "planners": ["bamcp:time_limit=1000000"]})
    slow.wait("status", lambda data: data["phase"] == "opening")
    quick = Tab(studio, CHAIN)
    quick.wait("opened")
    quick.do("goto", 20)
    quick.frame(20)
    quick.end()
    slow.do("pause")  # it is heard, although its worker is busy
    slow.end()  # and ending it does not wait


@pytest.mark.slow
def test_one_decision_may_not_take_for_ever(monkeypatch):
    monkeypatch.setattr(sessions, "OPEN_LIMIT", 4.0)
    with running(limits=Limits(seconds=1e6)) as address:
        tab = Tab(address, {"env": "chain", "planners": ["bamcp:time_limit=1000000"]})
        problem = tab.wait("status", lambda data: data["phase"] == "failed")
        assert "took more than 4 seconds" in problem["error"]
        tab.end()


@pytest.mark.slow
def test_there_is_a_limit_to_tabs_and_forgotten_ones_make_room():
    with running(limits=Limits(sessions=1)) as address:
        tab = Tab(address, CHAIN)
        tab.wait("status")
        refused = httpx.post(f"{address}/api/sessions", json=CHAIN)
        assert refused.status_code == 503
        assert "close one" in refused.json()["error"]
        tab.leave()
        time.sleep(0.3)
        other = Tab(address, CHAIN)
        other.wait("status")
        assert httpx.get(f"{address}/api/sessions/{tab.id}/state?lane=0&state=0").status_code == 404
        other.end()


def test_sessions_expire_when_nobody_listens_or_wishes():
    session = sessions.Session.__new__(sessions.Session)
    session.seen = session.commanded = time.monotonic()
    assert not session.expired()
    session.seen -= sessions.UNWATCHED_LIMIT + 1
    assert session.expired()
    session.seen = time.monotonic()
    session.commanded -= sessions.IDLE_LIMIT + 1
    assert session.expired()


REFUSED = [
    ({"host": "evil.example"}, 403),
    ({"host": "evil.example:8137"}, 403),
    ({"host": ""}, 403),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), REFUSED, ids=[str(headers) for headers, _ in REFUSED])
@pytest.mark.parametrize("path", ["/", "/api/catalogue", "/static/app.js"])
def test_other_names_and_other_pages_are_refused(studio, path, headers, status):
    assert httpx.get(studio + path, headers=headers).status_code == status
    assert httpx.get(studio + path).status_code == 200


def test_names_of_this_machine_are_known_by_what_it_listens_to():
    def check(host, **options):
        server.check_origin({"host": host}, {"127.0.0.1", "localhost", "::1"}, **options)

    for host in ("127.0.0.1:8137", "localhost:1", "[::1]:8137", "LOCALHOST"):
        check(host, any_address=False)
    with pytest.raises(sessions.Refused, match="192"):
        check("192.168.0.7:8137", any_address=False)
    check("192.168.0.7:8137", any_address=True)
    check("[fe80::1]:8137", any_address=True)
    with pytest.raises(sessions.Refused, match="evil"):
        check("evil.example", any_address=True)


def test_pages_may_load_nothing_from_elsewhere(studio):
    answer = httpx.get(studio)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers
    for path in ("/static/palette.css", "/static/studio.css", "/static/icon.svg"):
        assert httpx.get(studio + path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/nothing.js", "/docs"]
)
def test_nothing_else_is_served(studio, path):
    assert httpx.get(studio + path).status_code == 404


def test_requests_must_be_small_json(studio):
    post = f"{studio}/api/sessions"
    json = {"content-type": "application/json"}
    assert httpx.post(post, content="env=chain").status_code == 415
    assert httpx.post(post, content="{", headers=json).status_code == 400
    assert httpx.post(post, content="[" * 10_000, headers=json).status_code == 422
    assert httpx.post(post, content=" " * 30_000, headers=json).status_code == 413
    assert httpx.post(post, content="3", headers=json).status_code == 422


COMMANDS = [
    ({"do": "fly"}, "unknown command"),
    ({"do": "goto"}, "step must be a whole number"),
    ({"do": "goto", "value": -1}, "at least 0"),
    ({"do": "goto", "value": 10**9}, "at most 100000"),
    ({"do": "goto", "value": "7"}, "whole number"),
    ({"do": "speed", "value": 0}, "at least 0.1"),
    ({"do": "speed", "value": "fast"}, "must be a number"),
    ({"do": "play", "more": 1}, "a command is"),
    ([], "a command is"),
]


@pytest.mark.parametrize(("command", "message"), COMMANDS, ids=[str(command) for command, _ in COMMANDS])
def test_bad_commands_are_refused(command, message):
    with pytest.raises(ValueError, match=message):
        server._command(command)


def test_commands_to_nobody_are_refused(studio):
    assert httpx.post(f"{studio}/api/sessions/nobody", json={"do": "play"}).status_code == 404
    assert httpx.get(f"{studio}/api/sessions/nobody/events").status_code == 404
    assert httpx.delete(f"{studio}/api/sessions/nobody").status_code == 204


def test_the_catalogue_names_everything_and_what_to_begin_with():
    found = server._catalogue(Choice(env="grid5", planners=("thompson",)))
    assert {"grid10", "maze", "bandit"} <= {info["name"] for info in found["envs"]}
    dss = next(info for info in found["planners"] if info["name"] == "dss-pi")
    assert dss["parameters"]["n_steps"] == "20"
    assert found["first"]["env"] == "grid5"


def test_a_port_that_is_taken_is_said_to_be():
    taken = server.listen("127.0.0.1", 0)
    taken.listen()
    with pytest.raises(ValueError, match="cannot listen"):
        server.listen("127.0.0.1", taken.getsockname()[1])
    taken.close()


def test_one_that_is_behind_catches_up_before_both_go_on():
    stage = Stage(Choice(env="chain", planners=("thompson", "random")).settings())
    stage.advance(40, 1e9)
    stage.runs[0].seek(10)  # as after a pause on the way back
    stage.runs[1].seek(15)
    assert [frame["t"] for frame in stage.advance(3, 1e9)["frames"]] == [13, 15]
    assert [frame["t"] for frame in stage.advance(5, 1e9)["frames"]] == [18, 18]


def test_a_pause_on_the_way_back_brings_both_to_the_same_step():
    session = sessions.Session(Choice(env="chain", planners=("thompson", "random")))
    frames = [{"t": 9, "known": 40}, {"t": 15, "known": 40}]
    session.goal = 3
    session._take_frames({"frames": frames, "at_end": False})
    session.command("pause")
    assert session.goal == 9
    session._take_frames({"frames": [frames[0], frames[0]], "at_end": False})
    session.command("pause")
    assert session.goal is None


def test_questions_are_refused_when_the_session_cannot_open():
    async def ask():
        session = sessions.Session(Choice(env="chain", planners=("nosuch",)))
        session.start()
        try:
            with pytest.raises(sessions.Refused, match="unknown planner"):
                await asyncio.wait_for(session.ask("state", 0, 0), 60)
        finally:
            await session.close()

    asyncio.run(ask())


def test_the_catalogue_says_what_each_parameter_means_and_which_words_it_may_be(studio):
    known = httpx.get(f"{studio}/api/catalogue").json()
    listed = {what: {info["name"]: info for info in known[what]} for what in ("envs", "planners", "priors")}
    for infos in listed.values():
        for info in infos.values():
            assert set(info["about"]) == set(info["parameters"])
            assert all(info["about"].values()), info
    for name, info in listed["planners"].items():
        for key, words in info["choices"].items():
            for word in words:
                if word != "…":
                    make_planner(name, {key: word})  # every word is one that the planner takes
            assert info["parameters"][key] in words
    assert listed["planners"]["dss-pi"]["choices"]["leaf"] == ["zero", "mean", "upper", "policy"]
    assert "…" in listed["planners"]["thompson"]["choices"]["resample"]
    assert listed["envs"]["chain"]["choices"]["rewards"] == ["action", "effect"]
    texts = [
        key for info in list_planners() for key, value in info.parameters.items() if isinstance(value, str)
    ]
    offered = [key for info in known["planners"] for key in info["choices"]]
    assert set(texts) <= set(offered)
