"""Kill -9 at random moments: nothing that was committed is lost, nothing is there twice, the end is the same.

The driver is the real command. Each time something else is killed: the driver with all its workers, the driver alone
(its workers are left behind), or one worker (the driver goes on). After every kill the store is read: all that was
in it is still there, unchanged. In the end it holds the same bits as that of a run without interruption.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import psutil
import pytest
from lab_fakes import contents

from bamdp.lab.results import collect_results, study_status
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.study import load_study

STUDY = """
title = "Kills"
environments = ["chain"]
steps = 1500
runs = {runs}
[algorithms.random]
[algorithms.q-learning]
epsilon = [0.1, 0.2, 0.3]
[tuning]
method = "halving"
runs = {tuning}
"""
PATIENCE = 120.0  # seconds for anything to happen


def begin(path):
    command = [sys.executable, "-m", "bamdp", "lab", "run", str(path), "--jobs", "2"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)


def workers(driver):
    """Its worker processes; joblib's keeper of shared resources is none."""
    found = []
    for child in psutil.Process(driver.pid).children():
        try:
            if not any("resource_tracker" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def read(path):
    with Store(path) as store:
        return contents(store)


def count(path):
    """How many runs are committed; none as long as there is no store."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for(path, driver, wanted):
    """Until so many runs are committed, or it is over."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and driver.poll() is None and count(path) < wanted:
        time.sleep(0.1)


def kill(driver, what, dice):
    if what == "worker":
        alive = workers(driver)
        if alive:
            dice.choice(alive).kill()
        return
    if what == "all":
        os.killpg(driver.pid, signal.SIGKILL)
    else:
        driver.kill()
    driver.wait()


def shown(study, store):
    """What a report is made of."""
    return (
        collect_results(study, store).runs[["phase", "configuration", "total", "chosen"]].to_dict("records")
    )


def torture(tmp_path, kills, runs, tuning):
    (tmp_path / "s.toml").write_text(STUDY.format(runs=runs, tuning=tuning))
    study = load_study(tmp_path / "s.toml")
    with Store(tmp_path / "whole.sqlite") as store:
        run_study(study, store)
        whole = contents(store)
        table = shown(study, store)
    dice, path = random.Random(kills), tmp_path / "s.sqlite"
    drivers = [begin(tmp_path / "s.toml")]
    happened, before = [], {}
    try:
        while len(happened) < kills:
            few = max(2, len(whole) // (2 * kills))
            wait_for(path, drivers[-1], len(before) + dice.randrange(1, few))
            assert drivers[-1].poll() is None, f"it was over after {happened}: {drivers[-1].communicate()}"
            time.sleep(dice.random() * 0.3)
            happened.append(("all", "worker", "driver")[len(happened) % 3])
            kill(drivers[-1], happened[-1], dice)
            after = read(path)
            assert before.items() <= after.items()
            before = after
            if happened[-1] != "worker":
                drivers.append(begin(tmp_path / "s.toml"))
        _, errors = drivers[-1].communicate(timeout=PATIENCE)
        assert drivers[-1].returncode == 0, errors
    finally:
        for driver in drivers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.communicate()
    with Store(path) as store:
        assert before.items() <= contents(store).items()
        assert contents(store) == whole
        assert all(cell["complete"] for cell in study_status(study, store))
        assert shown(study, store) == table
        counts = store.connection.execute("SELECT count(*), count(DISTINCT id) FROM runs")
        assert counts.fetchone() == (len(whole), len(whole))
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return happened


def test_three_kills_lose_nothing_and_duplicate_nothing(tmp_path):
    assert len(torture(tmp_path, kills=3, runs=40, tuning=9)) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(tmp_path, jobs):
    (tmp_path / "s.toml").write_text(STUDY.format(runs=400, tuning=2).replace("1500", "20000"))
    command = [sys.executable, "-m", "bamdp", "lab", "run", str(tmp_path / "s.toml"), "--jobs", str(jobs)]
    driver = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may have it ignored
    )
    try:
        wait_for(tmp_path / "s.sqlite", driver, 1)
        os.killpg(driver.pid, signal.SIGINT)
        out, err = driver.communicate(timeout=PATIENCE)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.communicate()
    assert driver.returncode == 130
    assert out == b""
    assert b"resume with the same command" in err
    assert b"Traceback" not in err
    with Store(tmp_path / "s.sqlite") as store:
        assert len(store) > 0
