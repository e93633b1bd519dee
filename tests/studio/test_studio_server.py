"""The server: sessions that play and rewind, tabs that leave each other alone, limits, and what the command says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import httpx
import psutil
import pytest
from studio_runs import DSS, run_of
from studio_server import Tab, running

import bamdp.studio
from bamdp.cli import main
from bamdp.registry import make_planner
from bamdp.studio import server, sessions
from bamdp.studio.playback import Choice, Limits
from bamdp.studio.view import Watcher

CHAIN = {"env": "chain", "planners": ["thompson"], "prior": "sparse", "seed": 3}


def same_frame(shown, t, seed=3):
    """What was sent is what a run of our own shows."""
    ours = Watcher(run_of("chain", "thompson", seed=seed, t=t, steps=1000)).frame()
    return all(
        shown[name] == ours[name] for name in ("t", "state", "total", "visits", "entropy", "policy", "curve")
    )


def test_a_session_steps_rewinds_and_jumps(studio):
    tab = Tab(studio, CHAIN)
    assert tab.wait("frame")["frames"][0]["t"] == 0
    tab.do("step")
    tab.frame(1)
    tab.do("goto", 60)
    there = tab.frame(60)
    assert same_frame(there["frames"][0], 60)
    tab.do("back")
    tab.frame(59)
    tab.do("goto", 7)
    assert same_frame(tab.frame(7)["frames"][0], 7)
    tab.end()


def test_decisions_are_explained_and_nodes_can_be_opened(studio):
    tab = Tab(studio, {"env": "chain", "planners": [DSS]})
    assert tab.wait("why")["t"] == 0
    tab.do("goto", 5)
    why = tab.wait("why", lambda data: data["t"] == 5)["lanes"][0]
    node = int(max(why["tree"]["nodes"], key=int))
    assert tab.get("node", lane=0, t=5, node=node).json()["steps"] == 6
    assert "moved on" in tab.get("node", lane=0, t=4, node=node).json()["detail"]
    assert tab.get("node", lane=0, t=5, node=10**6).status_code == 422
    assert [row["action"] for row in tab.get("state", lane=0, state=4).json()["expects"]] == [0, 1]
    tab.end()


def test_two_tabs_do_not_disturb_each_other_and_a_reloaded_one_is_told_everything_again(studio):
    tabs = [Tab(studio, {**CHAIN, "seed": seed}) for seed in (3, 4)]
    for tab, t in zip(tabs, (20, 33)):
        tab.wait("opened")
        tab.do("goto", t)
    for tab, seed, t in zip(tabs, (3, 4), (20, 33)):
        assert same_frame(tab.frame(t)["frames"][0], t, seed)
    tabs[0].end()
    tabs[1].leave()
    time.sleep(0.3)
    again = Tab(studio, id=tabs[1].id)
    assert again.wait("opened")["choice"]["seed"] == 4
    assert again.frame(33)["frames"][0]["known"] == 33
    again.end()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"env": "gird5"}, "did you mean 'grid5'"),
        ({"env": "grid:size=60"}, "--max-states"),
        ({"planners": ("thompson", "dss-pi:n_steps=0")}, "n_steps must be at least 1"),
        ({"planners": ("bamcp:n_simulations=1e12",)}, "--limit"),
        ({"planners": ("random",) * 3}, "one planner or two"),
        ({"seed": -1}, "at least 0"),
    ],
)
def test_the_form_is_checked(form, message):
    with pytest.raises(ValueError, match=message):
        Choice(**form).settings(Limits())


def test_a_bad_choice_is_told_to_the_tab(studio):
    tab = Tab(studio, {**CHAIN, "prior": "spars"})
    problem = tab.wait("status", lambda data: data["phase"] == "failed")
    assert "did you mean 'sparse'" in problem["error"]
    tab.end()
    assert httpx.post(f"{studio}/api/sessions", json={"env": "chain", "seed": "x"}).status_code == 422


def test_a_slow_planner_freezes_nobody_and_is_stopped(monkeypatch):
    with running(limits=Limits(seconds=1e6)) as address:
        quick = Tab(address, {**CHAIN, "planners": ["random"]})
        quick.wait("opened")
        monkeypatch.setattr(sessions, "OPEN_LIMIT", 5.0)
        slow = Tab(address, {"env": "chain", "planners": ["bamcp:time_limit=1000000"]})
        quick.do("goto", 20)
        quick.frame(20)
        quick.end()
        slow.do("pause")  # it is heard, although its worker is busy
        problem = slow.wait("status", lambda data: data["phase"] == "failed")
        assert "took more than 5 seconds" in problem["error"]
        slow.end()


def test_a_session_that_no_tab_watches_ends_and_no_process_is_left(monkeypatch):
    monkeypatch.setattr(sessions, "UNWATCHED_LIMIT", 0.1)
    before = set(psutil.Process().children())
    with running() as address:
        tab = Tab(address, CHAIN)
        tab.wait("status")
        tab.leave()
        state = f"{address}/api/sessions/{tab.id}/state?lane=0&state=0"
        while httpx.get(state, timeout=60).status_code != 404:
            time.sleep(0.5)
    left = set(psutil.Process().children()) - before
    assert not [process for process in left if "spawn_main" in " ".join(process.cmdline())]


def test_only_names_of_this_machine_and_known_commands_are_answered(studio):
    assert httpx.get(studio, headers={"host": "evil.example"}).status_code == 400
    for path in ("/", "/static/palette.css", "/static/studio.css", "/static/icon.svg"):
        assert httpx.get(studio + path).status_code == 200
    for command in ({"do": "fly"}, {"do": "goto", "value": -1}, []):
        assert httpx.post(f"{studio}/api/sessions/nobody", json=command).status_code == 422
    assert httpx.post(f"{studio}/api/sessions/nobody", json={"do": "play"}).status_code == 404


def test_the_form_says_what_each_parameter_means_and_which_words_it_may_be(studio):
    parts = httpx.get(f"{studio}/api/catalogue").json()
    assert {"grid10", "maze", "bandit"} <= {info["name"] for info in parts["envs"]}
    planners = {info["name"]: {one["name"]: one for one in info["parameters"]} for info in parts["planners"]}
    for name, parameters in planners.items():
        for key, parameter in parameters.items():
            for word in parameter["choices"]:
                make_planner(name, {key: word})  # every word is one that the planner takes
    assert planners["dss-pi"]["n_steps"]["default"] == "20"
    assert "generator.depth" in planners["dss-rtdp"]
    assert planners["dss-pi"]["leaf"]["choices"] == ["zero", "mean", "upper", "policy"]


def test_the_command_prints_its_address_and_ends_with_ctrl_c():
    command = "-m bamdp studio chain thompson --seed 4 --prior flat --port 0".split()
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored here
    )
    address = re.fullmatch(r"bamdp studio: (http://\S+)\n", process.stdout.readline())[1]
    first = httpx.get(f"{address}api/catalogue").json()["first"]
    assert (first["planners"], first["seed"], first["prior"]) == (["thompson"], 4, "flat")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("", 130)
    assert "warning" not in err
    with server.listen("127.0.0.1", 0) as taken, pytest.raises(ValueError, match="cannot listen"):
        server.listen("127.0.0.1", taken.getsockname()[1])


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "bamdp.studio.server", raising=False)
    monkeypatch.delattr(bamdp.studio, "server", raising=False)
    assert main(["studio", "chain", "thompson"]) == 2
    assert "pip install fastapi uvicorn" in capsys.readouterr().err
