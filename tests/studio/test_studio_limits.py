"""What is too large is refused before it is built, what slips through hits a wall, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading

import httpx
import psutil
import pytest
from studio_server import PATIENCE, Tab, running

from bamdp.cli import main
from bamdp.envs import list_envs, make_env
from bamdp.registry import list_planners, make_planner
from bamdp.studio import sessions
from bamdp.studio.playback import Stage
from bamdp.studio.settings import SIZES, Choice, Limits, Size, decision_work, expected_size

CHAIN = {"env": "chain", "planners": ["thompson"]}
LARGE_ON_THE_SLY = {**CHAIN, "env": "random_mdp:n_states=1600,n_actions=24,beta=0"}  # dense, as it turns out

WORLDS = [
    "chain",
    "chain:n_states=17",
    "river_swim",
    "river-swim:n_states=9",
    "grid",
    "grid:size=7",
    "deep_sea:size=6",
    "deep_sea_stochastic:size=5",
    "random_mdp",
    "random-mdp:n_states=8,n_actions=3",
    "random_mdp:n_states=8,prior=flat",
]


@pytest.mark.parametrize("name", WORLDS)
def test_the_size_that_is_expected_is_the_size_that_is_built(name):
    env, size = make_env(name), expected_size(name)
    assert (size.states, size.actions) == (env.n_states, env.n_actions)


def test_every_environment_whose_parameters_set_its_size_has_an_expected_one():
    sized = {info.name for info in list_envs() if {"size", "n_states"} & set(info.parameters)}
    assert sized == set(SIZES)
    for info in list_envs():
        env = make_env(info.name)
        Limits().check_size(info.name, Size(env.n_states, env.n_actions, 1))


@pytest.mark.parametrize("name", [info.name for info in list_planners()])
@pytest.mark.parametrize("env", ["grid:size=50", "chain", "random_mdp:n_states=300,n_actions=24"])
def test_every_planner_is_allowed_as_it_comes(name, env):
    Limits().check_planner(name, make_planner(name), expected_size(env), 0.99)


def test_the_work_of_dss_is_counted_as_it_is_done():
    planner = make_planner("dss-pi:n_policies=3,n_samples=2,n_steps=5,n_stages=2")
    rollouts = 3 * 2 + (3 * 2) ** 2
    assert decision_work(planner, Size(4, 2, 0), 0.9) == pytest.approx(rollouts * (5 + 4 * 2))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--host", ""),
        ("--host", "  "),
        ("--memory", "0.1"),
        ("--memory", "nan"),
        ("--max-sessions", "0"),
        ("--max-states", "99999999999999999999"),
        ("--max-work", "inf"),
        ("--limit", "0"),
        ("--limit", "1e400"),
        ("--limit", "1e7"),
    ],
)
def test_limits_that_are_none_are_refused_in_one_line(capsys, option, value):
    assert main(["studio", "chain", "thompson", option, value]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert option.strip("-") in err


def test_limits_are_raised_by_options(monkeypatch, capsys):
    with monkeypatch.context() as patched:
        patched.setattr("bamdp.studio.server.run_server", lambda app, socket: socket.close())
        options = ["--max-states", "3600", "--max-work", "1e13", "--max-sessions", "2", "--port", "0"]
        assert main(["studio", "grid:size=60", "bamcp:n_simulations=1e10", *options]) == 0
    assert main(["studio", "grid:size=60", "thompson"]) == 2
    assert "--max-states" in capsys.readouterr().err


def test_what_is_too_large_is_refused_before_a_process_is_started(studio):
    answer = httpx.post(f"{studio}/api/sessions", json={**CHAIN, "env": "grid:size=2500"})
    assert answer.status_code == 422
    assert answer.json()["field"] == "env"
    assert "6250000 states" in answer.json()["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of memory")
def test_a_session_that_uses_up_its_memory_says_so_and_the_server_lives_on():
    with running(limits=Limits(memory=1.0)) as address:
        tab = Tab(address, LARGE_ON_THE_SLY)
        problem = tab.wait("status", lambda data: data["phase"] == "failed")
        assert "1 GB of memory" in problem["error"]
        assert "--memory" in problem["error"]
        assert tab.get("state", lane=0, state=0).status_code == 410
        tab.end()
        again = Tab(address, CHAIN)
        again.wait("opened")
        again.end()


class FarEnd:
    """The worker's end of a pipe, with the requests it will get and the answers it gave."""

    def __init__(self, *requests):
        self.requests, self.answers = list(requests), []

    def recv(self):
        if not self.requests:
            raise EOFError
        return self.requests.pop(0)

    def send(self, answer):
        self.answers.append(answer)


def test_a_worker_that_runs_out_of_memory_ends_with_its_answer(monkeypatch):
    def burst(*arguments):
        raise MemoryError

    monkeypatch.setattr(sessions, "open_stage", burst)
    monkeypatch.setattr(sessions, "limit_memory", lambda memory: None)
    monkeypatch.setattr(sessions.signal, "signal", lambda *arguments: None)
    far = FarEnd(("open", Choice()), ("frames",))
    sessions.serve_requests(far, Limits(memory=2.5))
    ((kind, data),) = far.answers
    assert kind == "ended"
    assert "2.5 GB" in data["error"]


def test_a_question_is_refused_when_the_worker_ends_over_it():
    async def ask():
        session = sessions.Session(Choice.read(CHAIN))

        async def request(limit, compiling, request, note):
            raise sessions.WorkerGone("gone")

        session._line.request = request
        session._open = lambda: asyncio.sleep(0, True)
        session.start()
        with pytest.raises(sessions.Refused, match="gone"):
            await asyncio.wait_for(session.ask("state", 0, 0), 30)
        await session.close()

    asyncio.run(ask())


def test_a_session_that_is_closed_while_it_starts_leaves_no_process():
    async def open_and_close():
        for pause in (0.0, 0.001, 0.01, 0.1):
            session = sessions.Session(Choice.read(CHAIN))
            session.start()
            await asyncio.sleep(pause)
            await session.close()

    before = set(psutil.Process().children())
    asyncio.run(open_and_close())
    psutil.wait_procs(set(psutil.Process().children()) - before, timeout=30)
    left = [
        process for process in set(psutil.Process().children()) - before if "spawn_main" in _line(process)
    ]
    assert left == []


def _line(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def left_behind():
    gc.collect()
    kinds = (sessions.Session, sessions.WorkerLine)
    objects = sum(issubclass(type(thing), kinds) for thing in gc.get_objects())
    return objects, threading.active_count(), len(os.listdir("/proc/self/fd"))


def visit(address, n):
    """Open a session, take a step, end it, ``n`` times."""
    for seed in range(n):
        tab = Tab(address, {**CHAIN, "seed": seed})
        tab.wait("opened")
        tab.do("step")
        tab.frame(1)
        tab.end()


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
def test_sessions_that_have_ended_leave_nothing_behind():
    with running() as address:
        visit(address, 1)
        before = left_behind()
        visit(address, 5)
        after = left_behind()
    assert after[0] <= before[0] + 1
    assert after[1] <= before[1] + 4
    assert after[2] <= before[2] + 4


class NearLine:
    """A worker in the server's own process, so that hundreds of them take seconds."""

    stage = None

    def __init__(self, limits):
        pass

    async def start(self):
        if NearLine.stage is None:
            NearLine.stage = Stage(Choice.read(CHAIN).settings())

    async def request(self, limit, compiling, request, note):
        verb, *arguments = request
        if verb == "open":
            return "done", {"worlds": NearLine.stage.worlds(), "frames": NearLine.stage.frames()}
        return "done", getattr(NearLine.stage, verb)(*arguments)

    async def end(self):
        pass


@pytest.mark.slow
def test_the_memory_of_the_server_is_flat_over_hundreds_of_sessions(monkeypatch):
    """What a session is told is more than 8 kB, so that sessions that stay would be seen."""
    monkeypatch.setattr(sessions, "WorkerLine", NearLine)
    used = []
    with running() as address, httpx.Client(base_url=address, timeout=PATIENCE) as http:
        for _ in range(2):
            for _ in range(150):
                id = http.post("/api/sessions", json=CHAIN).json()["id"]
                with http.stream("GET", f"/api/sessions/{id}/events") as events:
                    assert any(line == "event: why" for line in events.iter_lines())
                assert http.delete(f"/api/sessions/{id}").status_code == 204
            gc.collect()
            used.append(psutil.Process().memory_info().rss)
    assert used[1] - used[0] < 150 * 8e3, used
