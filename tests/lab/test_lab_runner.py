"""Studies that are really run: the same on any number of processes and on a cluster, limits, errors, two drivers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from lab_fakes import contents

import bamdp
from bamdp.envs import Environment
from bamdp.lab.collect import collect_results, study_status
from bamdp.lab.reading import parse_study
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.units import FAILED, FINISHED, OVER_LIMIT

STUDY = parse_study("""
title = "Small"
environments = ["chain", "double_loop"]
steps = 60
runs = 4
[algorithms.random]
[algorithms.thompson]
[algorithms.q-learning]
epsilon = [0.1, 0.3]
[tuning]
runs = 2
""")
N_RUNS = 2 * (4 + 4 + (2 * 2 + 4))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What one process comes to."""
    with Store(tmp_path_factory.mktemp("lab") / "one.sqlite") as store:
        run_study(STUDY, store)
        return contents(store)


def test_two_processes_come_to_the_same_bits_as_one(tmp_path, reference):
    known, done = [], []
    with Store(tmp_path / "s.sqlite") as store:
        run_study(STUDY, store, jobs=2, more=known.append, steps=done.append)
        assert contents(store) == reference
        assert len(reference) == N_RUNS
        assert all(cell.complete for cell in study_status(STUDY, store))
    assert sum(known) == sum(done) == 60 * N_RUNS


def test_a_study_that_is_complete_runs_nothing(tmp_path, reference):
    with Store(tmp_path / "s.sqlite") as store:
        run_study(STUDY, store)
        finished = [record.finished for record in store.all_records()]
        known = []
        run_study(STUDY, store, more=known.append)
        assert sum(known) == 0
        assert [record.finished for record in store.all_records()] == finished


def test_totals_are_the_sums_of_the_traces(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        run_study(STUDY, store)
        for sample in collect_results(STUDY, store).samples:
            traces = sample.traces()
            assert traces.shape == (sample.runs, 60)
            assert traces.sum(axis=1).tolist() == sample.totals.tolist()
            assert (sample.ms_per_step > 0).all()


def test_more_runs_go_on_from_those_that_are_there(tmp_path):
    few, many = (
        parse_study(f'environments = ["chain"]\nalgorithms = ["random"]\nsteps = 30\nruns = {n}')
        for n in (2, 5)
    )
    with Store(tmp_path / "s.sqlite") as store:
        run_study(few, store)
        before = contents(store)
        run_study(many, store)
        after = contents(store)
        assert len(after) == 5
        assert before.items() <= after.items()
        assert collect_results(few, store).samples[0].runs == 2  # a study shows its own runs only


def test_a_run_that_raises_is_recorded_and_does_not_stop_the_study(tmp_path):
    study = parse_study("""
        environments = ["chain"]
        steps = 20
        runs = 2
        [algorithms.fhts]
        horizon = 6
        max_hyper_states = 2
        [algorithms.random]
    """)
    with Store(tmp_path / "s.sqlite") as store:
        run_study(study, store)
        broken, sound = collect_results(study, store).samples
        assert broken.runs == 0
        assert all("hyper-states" in line for line in broken.failures)
        assert len(broken.failures) == sound.runs == 2
        run_study(study, store)  # and is not tried again
        assert [cell.failed for cell in study_status(study, store)] == [2, 0]
        run_study(study, store, retry_failed=True)
        assert [record.status for record in store.all_records()].count(FAILED) == 2


def test_a_run_far_over_the_limit_is_stopped_early(tmp_path):
    study = parse_study(
        'environments = ["chain"]\nalgorithms = ["random"]\nsteps = 100000\nruns = 1\nlimit = 1e-8'
    )
    with Store(tmp_path / "s.sqlite") as store:
        run_study(study, store)
        (record,) = store.all_records()
        assert record.status == OVER_LIMIT
        assert record.steps <= 10_000  # a tenth
        assert "over the limit of 1e-08 s/step: stopped after" in record.error
        assert "over the limit" in collect_results(study, store).samples[0].excluded


def test_a_run_whose_first_decision_would_never_end_is_not_begun(tmp_path):
    study = parse_study(
        """
        environments = ["chain"]
        steps = 100
        runs = 2
        [algorithms.dss-pi]
        n_policies = 128
        n_samples = 32
        n_steps = 200
        n_stages = 3
        """
    )
    with Store(tmp_path / "s.sqlite") as store:
        run_study(study, store, jobs=2)
        records = store.all_records()
        assert [record.status for record in records] == [OVER_LIMIT] * 2
        assert all("over the limit of 0.25 s/step: not begun, about 3" in record.error for record in records)


def test_a_run_within_twice_the_limit_is_stopped_when_it_has_used_up_its_time():
    from bamdp.lab.runner import _TimeLimit

    watch = _TimeLimit(limit=1.0, steps=100)
    ended = _watched(watch, pace=1.5)
    assert watch.exceeded
    assert ended == pytest.approx(100 / 1.5, abs=2)
    assert _watched(_TimeLimit(limit=1.0, steps=100), pace=2.5) == 20
    assert _watched(_TimeLimit(limit=1.0, steps=500), pace=2.5) == 50  # the first steps may be slow
    assert _watched(_TimeLimit(limit=1.0, steps=100), pace=0.99) is None


def _watched(watch, pace):
    """The step at which a run of so many seconds a step is ended; None if it is not."""
    from bamdp.simulation import Step

    for t in range(watch.steps):
        if not watch(None, None, Step(t, 0, 0, 0.0, 0, False, seconds=pace)):
            return t
    return None


def test_the_limit_is_on_planning_and_learning_not_on_the_world(tmp_path, monkeypatch):
    """The world takes 2 ms a step, the agent far less than the limit of 1 ms."""
    real = Environment.step

    def slow(self, action):
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
        return real(self, action)

    monkeypatch.setattr(Environment, "step", slow)
    study = parse_study(
        'environments = ["chain"]\nalgorithms = ["random"]\nruns = 1\nsteps = 40\nlimit = 0.001'
    )
    with Store(tmp_path / "s.sqlite") as store:
        run_study(study, store)
        (record,) = store.all_records()
    assert record.status == FINISHED


def test_a_second_driver_waits_for_the_first_and_does_not_do_its_work_again(tmp_path, reference):
    """Two at the same time, in two threads: together they run every run once."""
    known, done = [], []

    def drive():
        with Store(tmp_path / "s.sqlite") as store:
            run_study(STUDY, store, more=known.append, steps=done.append)

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(tmp_path / "s.sqlite") as store:
        assert contents(store) == reference
        assert store.claims.claimed() == set()


@contextlib.contextmanager
def cluster(folder, workers, path=str(Path(bamdp.__file__).parents[1])):
    """A scheduler and so many worker processes on this machine; yields its address, the workers and last itself.

    They see the package at ``path``.
    """
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python = [sys.executable, "-m"]
    quiet |= {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path}}
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    begun = [subprocess.Popen([*python, "distributed.cli.dask_scheduler", *options], **quiet)]
    try:
        while not (file.exists() and file.read_text().strip()):
            assert begun[0].poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        one = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        begun += [subprocess.Popen([*python, *one], **quiet) for _ in range(workers)]
        yield address, [*begun[1:], begun[0]]  # the scheduler last
    finally:
        for process in begun:
            process.kill()
            process.wait()


def test_a_cluster_comes_to_the_same_bits_even_if_a_worker_is_killed(tmp_path, reference):
    from bamdp.lab.cluster import Cluster

    done = []
    with cluster(tmp_path, workers=2) as (address, workers), Store(tmp_path / "s.sqlite") as store:
        with Cluster(address, done.append) as pool:
            pool.client.wait_for_workers(2, timeout=60)

            def progress(n):
                if len(done) == N_RUNS // 4:
                    workers[0].send_signal(signal.SIGKILL)
                done.append(n)

            pool.progress = progress
            run_study(STUDY, store, pool=pool)
        assert contents(store) == reference
        assert workers[0].poll() is not None
        assert workers[1].poll() is None
    assert sum(done) == 60 * N_RUNS


@pytest.mark.slow
def test_a_study_whose_scheduler_is_killed_ends_with_a_line_and_goes_on_with_another(tmp_path, reference):
    from bamdp.lab.cluster import Cluster

    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    done = []
    with cluster(tmp_path / "first", workers=2) as (address, workers), Store(tmp_path / "s.sqlite") as store:

        def progress(n):
            done.append(n)
            if len(done) == N_RUNS // 4:
                workers[-1].send_signal(signal.SIGKILL)  # the scheduler

        with Cluster(address) as pool:
            pool.client.wait_for_workers(2, timeout=60)
            pool.progress = progress
            with pytest.raises((RuntimeError, OSError)) as lost:
                run_study(STUDY, store, pool=pool)
        assert "\n" not in str(lost.value)
        kept = contents(store)
        assert N_RUNS // 4 <= len(kept) < len(reference)
        assert kept.items() <= reference.items()  # what is there is what it should be
    with cluster(tmp_path / "second", workers=2) as (address, _), Store(tmp_path / "s.sqlite") as store:
        with Cluster(address) as pool:
            pool.client.wait_for_workers(2, timeout=60)
            run_study(STUDY, store, pool=pool)
        assert contents(store) == reference


def test_workers_of_another_version_are_refused(tmp_path):
    from bamdp.lab.cluster import _remote

    with pytest.raises(RuntimeError, match=r"a worker has bamdp .*, the driver 99\.0; install the same"):
        _remote(print, "item", "99.0")


def test_workers_without_the_package_are_noticed_at_once(tmp_path):
    """Where it is installed in earnest they have it all the same, so a broken one is put in its place."""
    from bamdp.lab.cluster import Cluster

    (tmp_path / "bamdp.py").write_text("raise ImportError('No module named bamdp')")
    with cluster(tmp_path, workers=1, path=str(tmp_path)) as (address, _):
        import distributed

        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        with pytest.raises(ValueError, match="have no bamdp"):
            Cluster(address)


def test_addresses_that_lead_nowhere_are_refused(monkeypatch):
    from bamdp.lab import cluster as module

    with pytest.raises(ValueError, match="'here' is not the address of a scheduler"):
        module.Cluster("here")
    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 0.5)
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp://127"):
        module.Cluster("tcp://127.0.0.1:9")


def test_without_dask_the_extra_is_named(monkeypatch):
    from bamdp.lab.cluster import Cluster

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install .*\[cluster\]"):
        Cluster("tcp://127.0.0.1:9")
