"""Studies that are really run: the same on any number of processes and on a cluster, limits, errors, dead workers."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from lab_fakes import contents, queue_of, record

import bamdp
from bamdp.lab.results import collect_results, rewards
from bamdp.lab.runner import _TimeLimit, run_study
from bamdp.lab.store import FAILED, FINISHED, OVER_LIMIT, Store
from bamdp.lab.study import parse_study
from bamdp.processes import WorkerDied
from bamdp.simulation import Step

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


def records(study, store):
    return list(store.records(unit.id for unit in study.units()).values())


def test_two_processes_come_to_the_same_bits_as_one(store, reference):
    known, done = [], []
    run_study(STUDY, store, jobs=2, more=known.append, steps=done.append)
    assert contents(store) == reference
    assert len(reference) == N_RUNS
    assert sum(known) == sum(done) == 60 * N_RUNS
    known.clear()
    run_study(STUDY, store, more=known.append)  # complete: nothing is run
    assert sum(known) == 0


def test_common_random_numbers_and_totals_of_the_traces(store):
    run_study(STUDY, store)
    runs = collect_results(STUDY, store).runs
    assert rewards(runs).sum(axis=1).tolist() == runs.total.tolist()
    assert (runs.ms_per_step > 0).all()
    for name in ("random", "q-learning"):
        alone = bamdp.run_many("chain", name, runs=4, steps=60)
        if name == "random":
            found = runs[(runs.environment == "chain") & (runs.algorithm == name)]
            assert found.total.tolist() == alone.totals.tolist()


def test_a_run_that_raises_is_recorded_and_does_not_stop_the_study(store):
    study = parse_study("""
        environments = ["chain"]
        steps = 20
        runs = 2
        [algorithms.fhts]
        horizon = 6
        max_hyper_states = 2
        [algorithms.random]
    """)
    run_study(study, store)
    before = {one.id: one.finished for one in records(study, store)}
    assert Counter(one.status for one in records(study, store)) == {FAILED: 2, FINISHED: 2}
    runs = collect_results(study, store).runs
    assert runs[runs.algorithm == "fhts"].failure.str.contains("hyper-states").all()
    run_study(study, store)  # they are not tried again,
    assert {one.id: one.finished for one in records(study, store)} == before
    done = []
    run_study(study, store, retry_failed=True, more=done.append)  # unless asked for
    assert len(done) == 2


def test_a_run_far_over_the_limit_is_stopped_early_and_a_hopeless_one_not_begun(store):
    study = parse_study("""
        steps = 100000
        runs = 1
        [environments.chain]
        limit = 1e-8
        [algorithms.random]
        [algorithms.dss-pi]
        n_policies = 128
        n_samples = 32
        n_steps = 200
        n_stages = 3
    """)
    run_study(study, store)
    stopped, hopeless = records(study, store)
    assert stopped.status == hopeless.status == OVER_LIMIT
    assert 0 < stopped.steps <= 10_000  # a tenth
    assert "over the limit of 1e-08 s/step: stopped after" in stopped.error
    assert "not begun" in hopeless.error
    assert collect_results(study, store).runs.excluded.str.contains("over the limit").all()


@pytest.mark.parametrize(
    ("pace", "steps", "end"), [(1.5, 100, 66), (2.5, 100, 20), (2.5, 500, 50), (0.99, 100, None)]
)
def test_a_run_is_stopped_when_it_cannot_keep_the_limit(pace, steps, end):
    watch = _TimeLimit(limit=1.0, steps=steps)
    stops = (t for t in range(steps) if not watch(None, None, Step(t, 0, 0, 0.0, 0, False, seconds=pace)))
    stop = next(stops, None)
    assert stop == end if end is None else abs(stop - end) <= 2


def test_two_drivers_share_a_store(tmp_path, reference):
    def drive():
        with Store(tmp_path / "s.sqlite") as store:
            run_study(STUDY, store)

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(tmp_path / "s.sqlite") as store:
        assert contents(store) == reference


# Workers that die


DEADLY = parse_study('environments = ["chain"]\nalgorithms = ["random", "q-learning"]\nruns = 3\nsteps = 4')


def is_bad(unit):
    return unit.replicate == 1 and type(unit.setting.planner).__name__ == "Random"


def test_a_run_whose_process_always_dies_is_recorded_as_failed_and_its_companions_are_not(store):
    """Two at a time; whenever the bad one is among them, both are lost."""
    queue, tried = queue_of(DEADLY, store), Counter()
    while at_hand := [unit for unit in (queue.take(), queue.take()) if unit is not None]:
        tried.update(unit.id for unit in at_hand)
        died = any(map(is_bad, at_hand))
        for unit in at_hand:
            queue.finish(unit, WorkerDied() if died else record(unit))
    (failed,) = [one for one in records(DEADLY, store) if one.status == FAILED]
    assert "died 3 times" in failed.error
    assert failed.replicate == 1
    assert sorted(tried.values())[-2:] == [2, 4]  # the companion once more, the bad one three times alone
    assert len(store) == len(DEADLY.units())


# Dask


@contextlib.contextmanager
def cluster(folder, workers, path=str(Path(bamdp.__file__).parents[1])):
    """A scheduler and so many workers on this machine; yields its address, the workers and last the scheduler."""
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
        yield address, [*begun[1:], begun[0]]
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
    assert sum(done) == 60 * N_RUNS


def test_workers_of_another_version_or_without_the_package_are_refused(tmp_path):
    from bamdp.lab.cluster import Cluster, _remote

    with pytest.raises(RuntimeError, match=r"a worker has bamdp .*, the driver 99\.0; install the same"):
        _remote(print, "item", "99.0")
    (tmp_path / "bamdp.py").write_text("raise ImportError('No module named bamdp')")
    with cluster(tmp_path, workers=1, path=str(tmp_path)) as (address, _):
        import distributed

        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        with pytest.raises(ValueError, match="have no bamdp"):
            Cluster(address)


def test_an_address_that_leads_nowhere_is_refused_and_without_dask_the_extra_is_named(monkeypatch):
    from bamdp.lab import cluster as module

    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 0.5)
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp://127"):
        module.Cluster("tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'dask\[distributed\]'"):
        module.Cluster("tcp://127.0.0.1:9")
